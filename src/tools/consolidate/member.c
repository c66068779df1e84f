/*
 * Cutting over one collection.
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
#include "tools/consolidate/run.h"

#include "util/error.h"

#include <inttypes.h>

int64_t spill_consolidate_pause(const spill_consolidate_run_t *run)
{
    int64_t pause_s = run->options->pause_s;
    return (pause_s > 0 ? pause_s : SPILL_CONSOLIDATE_PAUSE_S) * 1000000;
}

spill_code_t spill_consolidate_refuse_slow(const spill_consolidate_run_t *run, spill_error_t *error)
{
    if (run->result->changing == 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' changes too fast, or is too large: after %" PRId64
                      " passes the writers would have to wait for about %.1f s while it is "
                      "compared, and --max-pause is %.0f s (%zu of %zu collections are too slow); "
                      "slow the writers down, or allow more seconds",
                      run->group->members[run->slowest].collection, run->result->passes,
                      (double)run->slowest_us / 1e6, (double)spill_consolidate_pause(run) / 1e6,
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
    spill_code_t code = spill_consolidate_conclude(run, &way, spill_consolidate_pause(run), error);
    run->result->documents = documents;
    return code == SPILL_OK ? spill_consolidate_refuse_slow(run, error) : code;
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
    run->deadline_us = spill_throttle_now_us(&run->throttle) + spill_consolidate_pause(run);
    spill_code_t code = close_member(run, member, named, error);
    run->deadline_us = 0;
    if (code != SPILL_OK && code != SPILL_CONFLICT) /* after a conflict another run continues */
        code = put_back(run, member, code, error);
    return code;
}

spill_code_t spill_consolidate_cut_member(spill_consolidate_run_t *run, spill_error_t *error)
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
