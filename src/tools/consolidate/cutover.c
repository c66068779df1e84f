/*
 * Cutting over and finishing: the steps over all collections. member.c has the steps for one.
 *
 * In CUTTING the place says which member is current. The members before it are open: the
 * application writes to their slices, so no run may change these slices any longer.
 */
#include "tools/consolidate/run.h"

#include "util/error.h"

#include <inttypes.h>

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
    SPILL_TRY(spill_consolidate_passes(run, &way, spill_consolidate_pause(run), error));
    SPILL_TRY(spill_consolidate_refuse_slow(run, error));
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
        SPILL_TRY(spill_consolidate_cut_member(run, error));
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
