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
    bson_t refused = BSON_INITIALIZER; /* a definition may have been saved since the copy began */
    spill_code_t code = spill_consolidate_check_definitions(run, &refused, error);
    if (code == SPILL_OK)
        code = spill_consolidate_refuse_first(&refused, "", error);
    bson_destroy(&refused);
    if (code == SPILL_OK && run->options->views)
        code = spill_consolidate_try_views(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_passes(run, &way, spill_consolidate_pause(run), error);
    if (code == SPILL_OK)
        code = spill_consolidate_refuse_slow(run, error);
    if (code == SPILL_OK) {
        run->checkpoint.views = run->options->views;
        code = spill_consolidate_enter(run, SPILL_CONSOLIDATE_CUTTING, error);
    }
    return code;
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
    while (code == SPILL_OK && run->place.member < run->group->count)
        code = spill_consolidate_cut_member(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_absorb_all(run, run->group->count, error);
    if (code == SPILL_OK && run->checkpoint.views)
        code = spill_consolidate_make_views(run, error);
    return code == SPILL_OK ? spill_consolidate_enter(run, SPILL_CONSOLIDATE_CUT, error) : code;
}

static spill_code_t cut_over(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    switch (run->checkpoint.phase) {
    case SPILL_CONSOLIDATE_NONE:
        return spill_fail(error, SPILL_REFUSED, "nothing was copied into '%s' yet: copy first",
                          run->group->into);
    case SPILL_CONSOLIDATE_UNDOING:
    case SPILL_CONSOLIDATE_RESTORING:
        return spill_fail(error, SPILL_REFUSED, "it is being undone: continue with --undo");
    case SPILL_CONSOLIDATE_COPYING:
        code = prepare_cut(run, error);
        break;
    case SPILL_CONSOLIDATE_CUTTING:
        break;
    case SPILL_CONSOLIDATE_CUT:
        run->result->done = true;
        return spill_consolidate_absorb_all(run, run->group->count, error);
    case SPILL_CONSOLIDATE_FINISHING:
    case SPILL_CONSOLIDATE_FINISHED:
        run->result->done = true;
        return SPILL_OK;
    }
    return code == SPILL_OK ? cut_members(run, error) : code;
}

spill_code_t spill_consolidate_cut_over(spill_raw_admin_t *admin,
                                        const spill_consolidation_t *group,
                                        const spill_consolidate_options_t *options,
                                        spill_consolidate_result_t *result, spill_error_t *error)
{
    spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, result, error);
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

static spill_code_t finish_members(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_FINISHED) {
        run->result->done = true;
        return SPILL_OK;
    }
    if (run->checkpoint.phase < SPILL_CONSOLIDATE_CUT ||
        run->checkpoint.phase > SPILL_CONSOLIDATE_FINISHED)
        code = cut_over(run, error);
    if (code == SPILL_OK && run->checkpoint.phase == SPILL_CONSOLIDATE_CUT) {
        code = spill_consolidate_absorb_all(run, run->group->count, error);
        if (code == SPILL_OK &&
            spill_consolidate_kind_of(run, run->group->into, NULL) != SPILL_CONSOLIDATE_COLLECTION)
            code = spill_fail(error, SPILL_REFUSED,
                              "the collection '%s' no longer exists: only the old ones are left",
                              run->group->into);
        if (code == SPILL_OK)
            code = spill_consolidate_enter(run, SPILL_CONSOLIDATE_FINISHING, error);
    }
    if (code == SPILL_OK)
        code = drop_kept(run, error);
    return code == SPILL_OK ? spill_consolidate_enter(run, SPILL_CONSOLIDATE_FINISHED, error)
                            : code;
}

spill_code_t spill_consolidate_finish(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                      const spill_consolidate_options_t *options,
                                      spill_consolidate_result_t *result, spill_error_t *error)
{
    spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, result, error);
    if (code == SPILL_OK)
        code = finish_members(&run, error);
    spill_consolidate_release(&run);
    return code;
}
