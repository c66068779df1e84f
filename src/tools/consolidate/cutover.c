/*
 * Cutting over and finishing.
 *
 * Between the last comparison and the moment in which an application's writes stop there is always
 * a gap. A rename closes it: under the name that a collection is kept aside by nobody writes, and
 * what was acknowledged before the rename is in it. So what is brought and compared after that is
 * all there is.
 */
#include "tools/consolidate/run.h"

#include "util/error.h"

#include <inttypes.h>

/* ---- cutting over ---------------------------------------------------------------------------- */

static spill_code_t put_aside(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_list(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_check_names(run, error);
    for (size_t i = 0; i < run->group->count && code == SPILL_OK; i++) {
        const spill_joined_t *member = &run->group->members[i];
        if (spill_consolidate_kind_of(run, member->collection, NULL) ==
            SPILL_CONSOLIDATE_COLLECTION)
            code = spill_consolidate_rename(run, member->collection, member->kept, error);
    }
    return code;
}

/* Passes after which all has to be equal. */
static spill_code_t pass_to_end(spill_consolidate_run_t *run, const spill_consolidate_way_t *way,
                                const char *why, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_passes(run, way, error);
    if (code == SPILL_OK && run->result->changing > 0)
        code = spill_fail(error, SPILL_REFUSED,
                          "%zu of %zu collections still differ after %" PRId64 " passes: %s",
                          run->result->changing, run->group->count, run->result->passes, why);
    return code;
}

/* Up to the moment from which nobody may write any more. */
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
        code = pass_to_end(run, &way, "stop their writers first", error);
    if (code == SPILL_OK) {
        run->mark.views = run->options->views;
        code = spill_consolidate_enter(run, SPILL_CONSOLIDATE_CUTTING, error);
    }
    return code;
}

static spill_code_t cut(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into, .kept = true};
    spill_code_t code = put_aside(run, error);
    if (code == SPILL_OK)
        code = pass_to_end(run, &way, "undo it, and look at them", error);
    if (code == SPILL_OK && run->mark.views)
        code = spill_consolidate_make_views(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_list(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_check_names(run, error);
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
        if (!run->mark.copied)
            return spill_fail(error, SPILL_REFUSED,
                              "the copy into '%s' has not ended with all of it equal yet: go on "
                              "with it first",
                              run->group->into);
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
