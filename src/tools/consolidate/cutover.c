/*
 * Cutting over, the steps for one collection and those over all, and finishing.
 *
 * In CUTTING the place says which member is current. The members before it are open: the
 * application writes to their slices, so no run may change these slices any longer.
 *
 * There is always a gap between the last comparison and the end of an application's writes. A
 * rename closes it: no client writes to the name under which the collection is put aside, and every
 * write acknowledged before the rename is in it. So what is copied and compared after the rename is
 * complete. Saving the place behind the member opens its slice to the application.
 *
 *      catch up -> rename -> compare until equal -> view -> save the place: open
 *                     |            |                 |
 *                     +------------+-----------------+--> too slow, failed or Ctrl-C: rename back
 *
 * Renaming back is safe until the place is saved: up to then only this run writes to the slice.
 */
#include "tools/consolidate/consolidate_run.h"
#include "util/error.h"

#include <inttypes.h>

/* ---- one collection -------------------------------------------------------------------------- */

/* --max-pause in microseconds. */
static int64_t pause_limit_us(const spill_consolidate_run_t *run)
{
    int64_t pause_s = run->options->pause_s;
    return (pause_s > 0 ? pause_s : SPILL_CONSOLIDATE_PAUSE_S) * 1000000;
}

/* For passes with a pause_us. SPILL_REFUSED: a member's estimate does not fit. */
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
                      (double)run->slowest_us / 1e6, (double)pause_limit_us(run) / 1e6,
                      run->result->changing, run->group->count);
}

/* Read the list of collections. Insert a stray of the member into the collection put aside. */
static spill_code_t list_and_absorb(spill_consolidate_run_t *run, bool *found, spill_error_t *error)
{
    *found = false;
    SPILL_TRY(spill_consolidate_list(run, error));
    SPILL_TRY(spill_consolidate_absorb(run, run->place.member, false, found, error));
    return *found ? spill_consolidate_list(run, error) : SPILL_OK;
}

/* While the member's writers continue, make its slice nearly equal. */
static spill_code_t catch_up(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into};
    int64_t documents = run->result->documents; /* counted when both sides are compared at last */
    spill_code_t code = spill_consolidate_conclude(run, &way, pause_limit_us(run), error);
    run->result->documents = documents;
    return code == SPILL_OK ? refuse_slow(run, error) : code;
}

/* Catch up with the last writes before the rename, and compare, until both sides are equal. */
static spill_code_t compare_until_equal(spill_consolidate_run_t *run, const spill_joined_t *member,
                                        spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into, .kept = true};
    SPILL_TRY(spill_consolidate_conclude(run, &way, SPILL_CONSOLIDATE_EQUAL, error));
    if (run->result->changing == 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' still differs from its documents in '%s' after %" PRId64
                      " passes, although only this command writes to both",
                      member->kept, run->group->into, run->result->passes);
}

/* Rename the member back, if it is put aside. */
static spill_code_t rename_back(spill_consolidate_run_t *run, const spill_joined_t *member,
                                spill_error_t *error)
{
    bool found;
    SPILL_TRY(list_and_absorb(run, &found, error));
    if (spill_consolidate_kind_of(run, member->kept, NULL) != SPILL_CONSOLIDATE_COLLECTION)
        return SPILL_OK;
    SPILL_TRY(spill_consolidate_drop_view(run, run->place.member, error));
    return spill_consolidate_rename(run, member->kept, member->collection, error);
}

/* The pause failed with `code`: rename the member back for its writers. */
static spill_code_t put_back(spill_consolidate_run_t *run, const spill_joined_t *member,
                             spill_code_t code, spill_error_t *error)
{
    spill_error_t failure;
    if (rename_back(run, member, &failure) != SPILL_OK)
        return spill_fail(error, failure.code,
                          "'%s' is put aside as '%s', and cannot get its name back: %.200s; run "
                          "the same command to continue",
                          member->collection, member->kept, failure.message);
    if (run->late)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' was put aside, could not be compared in time, and was renamed "
                          "back: allow more seconds (--max-pause), or stop its writers, and cut "
                          "over again",
                          member->collection);
    return code;
}

/* The view needs the old name: a stray of that name is absorbed, and the slice catches up. */
static spill_code_t make_view(spill_consolidate_run_t *run, const spill_joined_t *member,
                              spill_error_t *error)
{
    for (bool found = true; found;) { /* the pause bounds it */
        SPILL_TRY(list_and_absorb(run, &found, error));
        if (found)
            SPILL_TRY(compare_until_equal(run, member, error));
    }
    return spill_consolidate_make_view(run, run->place.member, error);
}

static spill_code_t close_member(spill_consolidate_run_t *run, const spill_joined_t *member,
                                 bool named, spill_error_t *error)
{
    if (named)
        SPILL_TRY(spill_consolidate_rename(run, member->collection, member->kept, error));
    SPILL_TRY(compare_until_equal(run, member, error));
    return run->checkpoint.views ? make_view(run, member, error) : SPILL_OK;
}

/* The pause: from the rename until the place behind the member may be saved. */
static spill_code_t pause_member(spill_consolidate_run_t *run, const spill_joined_t *member,
                                 bool named, spill_error_t *error)
{
    run->late = false;
    run->deadline_us = spill_throttle_now_us(&run->throttle) + pause_limit_us(run);
    spill_code_t code = close_member(run, member, named, error);
    run->deadline_us = 0;
    if (code != SPILL_OK && code != SPILL_CONFLICT) /* after a conflict another run continues */
        code = put_back(run, member, code, error);
    return code;
}

/*
 * Cut over the current member and open its slice, by saving the place behind it. If it fails
 * before, the member is renamed back, provided that the store can be reached and no other run has
 * continued.
 */
static spill_code_t cut_member(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_opened_t opened = {.member = &run->group->members[run->place.member]};
    bool found;
    SPILL_TRY(list_and_absorb(run, &found, error));
    bool named =
        spill_consolidate_kind_of(run, opened.member->kept, NULL) == SPILL_CONSOLIDATE_ABSENT;
    if (named)
        SPILL_TRY(catch_up(run, error));
    int64_t began_us = spill_throttle_now_us(&run->throttle);
    SPILL_TRY(pause_member(run, opened.member, named, error));
    run->place.member++;
    SPILL_TRY(spill_consolidate_place_save(run, error));
    opened.pause_us = spill_throttle_now_us(&run->throttle) - began_us;
    if (run->options->opened)
        run->options->opened(run->options->context, &opened);
    return SPILL_OK;
}

/* ---- cutting over ---------------------------------------------------------------------------- */

/* Do all passes and checks before the first collection is put aside. */
static spill_code_t prepare_cut(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into};
    /* a definition may have been saved since the copy began */
    SPILL_SCOPED(bson_destroy) bson_t refused = BSON_INITIALIZER;
    SPILL_TRY(spill_consolidate_check_definitions(run, &refused, error));
    SPILL_TRY(spill_consolidate_refuse_first(&refused, "", error));
    if (run->options->views)
        SPILL_TRY(spill_consolidate_try_views(run, error));
    SPILL_TRY(spill_consolidate_passes(run, &way, pause_limit_us(run), error));
    SPILL_TRY(refuse_slow(run, error));
    run->checkpoint.views = run->options->views;
    return spill_consolidate_enter(run, SPILL_CONSOLIDATE_CUTTING, error);
}

/* Report the members that earlier runs have opened. */
static void report_open(const spill_consolidate_run_t *run, size_t open)
{
    for (size_t i = 0; i < open && run->options->opened; i++) {
        spill_consolidate_opened_t opened = {.member = &run->group->members[i], .before = true};
        run->options->opened(run->options->context, &opened);
    }
}

static spill_code_t cut_members(spill_consolidate_run_t *run, spill_error_t *error)
{
    size_t open;
    spill_code_t code = spill_consolidate_own_place(run, &open, error);
    report_open(run, open);
    run->progress.collections_all = run->group->count;
    SPILL_TRY(code);
    while (run->place.member < run->group->count)
        SPILL_TRY(cut_member(run, error));
    SPILL_TRY(spill_consolidate_absorb_all(run, run->group->count, error));
    if (run->checkpoint.views)
        SPILL_TRY(spill_consolidate_make_views(run, error));
    return spill_consolidate_enter(run, SPILL_CONSOLIDATE_CUT, error);
}

static spill_code_t cut_over(spill_consolidate_run_t *run, spill_error_t *error)
{
    switch (run->checkpoint.phase) {
    case SPILL_CONSOLIDATE_NONE:
        return spill_fail(error, SPILL_REFUSED, "nothing was copied into '%s' yet: copy first",
                          run->group->into);
    case SPILL_CONSOLIDATE_UNDOING:
    case SPILL_CONSOLIDATE_RESTORING:
        return spill_fail(error, SPILL_REFUSED, "it is being undone: continue with --undo");
    case SPILL_CONSOLIDATE_COPYING:
        SPILL_TRY(prepare_cut(run, error));
        return cut_members(run, error);
    case SPILL_CONSOLIDATE_CUTTING:
        return cut_members(run, error);
    case SPILL_CONSOLIDATE_CUT:
        run->result->done = true;
        return spill_consolidate_absorb_all(run, run->group->count, error);
    case SPILL_CONSOLIDATE_FINISHING:
    case SPILL_CONSOLIDATE_FINISHED:
        break;
    }
    run->result->done = true;
    return SPILL_OK;
}

spill_code_t spill_consolidate_cut_over(spill_raw_admin_t *admin,
                                        const spill_consolidation_t *group,
                                        const spill_consolidate_options_t *options,
                                        spill_consolidate_result_t *result, spill_error_t *error)
{
    SPILL_SCOPED(spill_consolidate_release) spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, result, error);
    return code == SPILL_OK ? cut_over(&run, error) : code;
}

/* ---- finishing ------------------------------------------------------------------------------- */

static spill_code_t drop_kept(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++) {
        const char *kept = run->group->members[i].kept;
        if (spill_consolidate_kind_of(run, kept, NULL) == SPILL_CONSOLIDATE_COLLECTION)
            SPILL_TRY(spill_consolidate_drop(run, kept, error));
    }
    return SPILL_OK;
}

static spill_code_t begin_finish(spill_consolidate_run_t *run, spill_error_t *error)
{
    const char *into = run->group->into;
    SPILL_TRY(spill_consolidate_absorb_all(run, run->group->count, error));
    if (spill_consolidate_kind_of(run, into, NULL) != SPILL_CONSOLIDATE_COLLECTION)
        return spill_fail(error, SPILL_REFUSED,
                          "the collection '%s' no longer exists: only the old ones are left", into);
    return spill_consolidate_enter(run, SPILL_CONSOLIDATE_FINISHING, error);
}

static spill_code_t finish_members(spill_consolidate_run_t *run, spill_error_t *error)
{
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_FINISHED) {
        run->result->done = true;
        return SPILL_OK;
    }
    if (run->checkpoint.phase < SPILL_CONSOLIDATE_CUT ||
        run->checkpoint.phase > SPILL_CONSOLIDATE_FINISHED)
        SPILL_TRY(cut_over(run, error));
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_CUT)
        SPILL_TRY(begin_finish(run, error));
    SPILL_TRY(drop_kept(run, error));
    return spill_consolidate_enter(run, SPILL_CONSOLIDATE_FINISHED, error);
}

spill_code_t spill_consolidate_finish(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                      const spill_consolidate_options_t *options,
                                      spill_consolidate_result_t *result, spill_error_t *error)
{
    SPILL_SCOPED(spill_consolidate_release) spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, result, error);
    return code == SPILL_OK ? finish_members(&run, error) : code;
}
