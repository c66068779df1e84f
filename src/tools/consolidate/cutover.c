/*
 * Cutting over and finishing.
 *
 * Between the last comparison and the moment in which an application's writes stop there is always
 * a gap. A rename closes it: under the name that a collection is kept aside by nobody writes, and
 * what was acknowledged before the rename is in it. So what is copied and compared after the rename
 * is all there is.
 *
 * Collections are put aside one at a time, each when its slice is nearly equal, so that each one's
 * pause is short. In CUTTING the place says whose turn it is: the members before it are settled.
 *
 *      catch up -> rename -> compare until equal -> view -> the next member
 *                     |            |
 *                     +------------+--> too slow, or Ctrl-C: rename back
 */
#include "tools/consolidate/run.h"

#include "util/error.h"

#include <inttypes.h>

/* ---- cutting over ---------------------------------------------------------------------------- */

static int64_t pause_of(const spill_consolidate_run_t *run)
{
    int64_t pause_s = run->options->pause_s;
    return (pause_s > 0 ? pause_s : SPILL_CONSOLIDATE_PAUSE_S) * 1000000;
}

/* After passes for an estimate: refuse, if a collection's writers would have to wait too long. */
static spill_code_t refuse_slow(const spill_consolidate_run_t *run, spill_error_t *error)
{
    if (run->result->changing == 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' changes too fast, or is too large: after %" PRId64
                      " passes the writers would have to wait for about %.1f s while it is "
                      "compared, and --max-pause is %.0f s (%zu of %zu collections are too slow); "
                      "slow the writers down, or allow more seconds",
                      run->group->members[run->slowest].collection, run->result->passes,
                      (double)run->slowest_us / 1e6, (double)pause_of(run) / 1e6,
                      run->result->changing, run->group->count);
}

/* Up to the moment from which collections are put aside. */
static spill_code_t approach(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into};
    bson_t refused = BSON_INITIALIZER; /* a definition may have been made since the copy began */
    spill_code_t code = spill_consolidate_check_definitions(run, &refused, error);
    if (code == SPILL_OK)
        code = spill_consolidate_refuse_first(&refused, "", error);
    bson_destroy(&refused);
    if (code == SPILL_OK && run->options->views)
        code = spill_consolidate_try_views(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_passes(run, &way, pause_of(run), error);
    if (code == SPILL_OK)
        code = refuse_slow(run, error);
    if (code == SPILL_OK) {
        run->mark.views = run->options->views;
        code = spill_consolidate_enter(run, SPILL_CONSOLIDATE_CUTTING, error);
    }
    return code;
}

/* Read what is there, and refuse what was made under an old name. */
static spill_code_t look(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_list(run, error);
    return code == SPILL_OK ? spill_consolidate_check_names(run, error) : code;
}

/* The writers of the member go on, so passes make its slice nearly equal before it is put aside. */
static spill_code_t catch_up(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into};
    int64_t documents = run->result->documents; /* they count when they are settled */
    spill_code_t code = spill_consolidate_settle(run, &way, pause_of(run), error);
    run->result->documents = documents;
    return code == SPILL_OK ? refuse_slow(run, error) : code;
}

/* It cannot be settled in time: its writers get it back. */
static spill_code_t put_back(spill_consolidate_run_t *run, const spill_joined_t *member,
                             spill_code_t code, spill_error_t *error)
{
    spill_error_t failure;
    bool late = run->late;
    if (spill_consolidate_rename(run, member->kept, member->collection, &failure) != SPILL_OK)
        return spill_fail(error, failure.code,
                          "'%s' is put aside as '%s', and cannot get its name "
                          "again: %.200s",
                          member->collection, member->kept, failure.message);
    if (!late)
        return code;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' was put aside, could not be compared in time, and has its name again: "
                      "allow more seconds (--max-pause), or stop its writers, and cut over again",
                      member->collection);
}

/* Nobody writes to the member any more: what came last is copied, and all of it compared. */
static spill_code_t settle(spill_consolidate_run_t *run, const spill_joined_t *member, bool fenced,
                           spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into, .kept = true};
    if (fenced)
        run->deadline_us = spill_throttle_now_us(&run->throttle) + pause_of(run);
    spill_code_t code = spill_consolidate_settle(run, &way, SPILL_CONSOLIDATE_EQUAL, error);
    run->deadline_us = 0;
    if (code == SPILL_OK && run->result->changing > 0)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' still differs from its documents in '%s' after %" PRId64
                          " passes, although nobody writes to it: undo it, and look at them",
                          member->kept, run->group->into, run->result->passes);
    if (fenced && (code == SPILL_CANCELLED || run->late))
        return put_back(run, member, code, error);
    return code;
}

/* The member whose turn it is. One that a run before has put aside is settled without a deadline.
 */
static spill_code_t cut_member(spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_joined_t *member = &run->group->members[run->place.member];
    spill_code_t code = look(run, error);
    bool named = code == SPILL_OK && spill_consolidate_kind_of(run, member->collection, NULL) ==
                                         SPILL_CONSOLIDATE_COLLECTION;
    if (named)
        code = catch_up(run, error);
    if (code == SPILL_OK && named)
        code = spill_consolidate_rename(run, member->collection, member->kept, error);
    if (code == SPILL_OK)
        code = settle(run, member, named, error);
    if (code == SPILL_OK)
        code = look(run, error);
    if (code == SPILL_OK && run->mark.views)
        code = spill_consolidate_make_view(run, run->place.member, error);
    return code;
}

static spill_code_t cut(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    spill_code_t code = spill_consolidate_place_load(run, error);
    if (place->changing > 0) /* of a version that compared all members together */
        place->member = place->changing = 0;
    if (code == SPILL_OK)
        code = spill_consolidate_place_save(run, error);
    run->progress.collections_all = run->group->count;
    while (code == SPILL_OK && place->member < run->group->count) {
        code = cut_member(run, error);
        if (code != SPILL_OK)
            break;
        place->member++;
        code = spill_consolidate_place_save(run, error);
    }
    if (code == SPILL_OK && run->mark.views)
        code = spill_consolidate_make_views(run, error);
    if (code == SPILL_OK)
        code = look(run, error);
    return code == SPILL_OK ? spill_consolidate_enter(run, SPILL_CONSOLIDATE_CUT, error) : code;
}

static spill_code_t cut_over(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    switch (run->mark.phase) {
    case SPILL_CONSOLIDATE_NONE:
        return spill_fail(error, SPILL_REFUSED, "nothing was copied into '%s' yet: copy first",
                          run->group->into);
    case SPILL_CONSOLIDATE_UNDOING:
    case SPILL_CONSOLIDATE_RESTORING:
        return spill_fail(error, SPILL_REFUSED, "it is being undone: --undo goes on with that");
    case SPILL_CONSOLIDATE_COPYING:
        code = approach(run, error);
        break;
    case SPILL_CONSOLIDATE_CUTTING:
        break;
    case SPILL_CONSOLIDATE_CUT:
    case SPILL_CONSOLIDATE_FINISHING:
    case SPILL_CONSOLIDATE_FINISHED:
        run->result->done = true;
        return SPILL_OK;
    }
    return code == SPILL_OK ? cut(run, error) : code;
}

spill_code_t spill_consolidate_cut_over(spill_foreign_t *foreign,
                                        const spill_consolidation_t *group,
                                        const spill_consolidate_options_t *options,
                                        spill_consolidate_result_t *result, spill_error_t *error)
{
    spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, foreign, group, options, result, error);
    if (code == SPILL_OK)
        code = cut_over(&run, error);
    spill_consolidate_release(&run);
    return code;
}

/* ---- finishing ------------------------------------------------------------------------------- */

static spill_code_t drop_kept(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_list(run, error);
    for (size_t i = 0; i < run->group->count && code == SPILL_OK; i++) {
        const char *kept = run->group->members[i].kept;
        if (spill_consolidate_kind_of(run, kept, NULL) == SPILL_CONSOLIDATE_COLLECTION)
            code = spill_consolidate_drop(run, kept, error);
    }
    return code;
}

static spill_code_t finish(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    if (run->mark.phase == SPILL_CONSOLIDATE_FINISHED) {
        run->result->done = true;
        return SPILL_OK;
    }
    if (run->mark.phase < SPILL_CONSOLIDATE_CUT || run->mark.phase > SPILL_CONSOLIDATE_FINISHED)
        code = cut_over(run, error);
    if (code == SPILL_OK && run->mark.phase == SPILL_CONSOLIDATE_CUT) {
        code = spill_consolidate_list(run, error);
        if (code == SPILL_OK)
            code = spill_consolidate_check_names(run, error);
        if (code == SPILL_OK &&
            spill_consolidate_kind_of(run, run->group->into, NULL) != SPILL_CONSOLIDATE_COLLECTION)
            code = spill_fail(error, SPILL_REFUSED,
                              "there is no collection '%s' any more: the old ones are all there is",
                              run->group->into);
        if (code == SPILL_OK)
            code = spill_consolidate_enter(run, SPILL_CONSOLIDATE_FINISHING, error);
    }
    if (code == SPILL_OK)
        code = drop_kept(run, error);
    return code == SPILL_OK ? spill_consolidate_enter(run, SPILL_CONSOLIDATE_FINISHED, error)
                            : code;
}

spill_code_t spill_consolidate_finish(spill_foreign_t *foreign, const spill_consolidation_t *group,
                                      const spill_consolidate_options_t *options,
                                      spill_consolidate_result_t *result, spill_error_t *error)
{
    spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, foreign, group, options, result, error);
    if (code == SPILL_OK)
        code = finish(&run, error);
    spill_consolidate_release(&run);
    return code;
}
