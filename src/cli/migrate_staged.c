/* The two stages of migrate: in place, then into the planned definition. */
#include "cli/operate.h"

#include "core/array.h"
#include "definition/schema.h"
#include "store/store.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

static spill_staged_t staged_of(const spill_cli_migrate_t *run)
{
    return (spill_staged_t){
        .store = run->store, .uri = run->uri[0] != '\0' ? run->uri : NULL, .planned = run->planned};
}

typedef struct stage_line {
    const char *name, *original, *layout;
    int64_t dropped, refused;
} stage_line_t;

#define STAGE(type, member) SPILL_FIELD(type, stage_line_t, member, #member)
static const spill_field_t stage_fields[] = {STAGE(TEXT, name), STAGE(TEXT, original),
                                             STAGE(TEXT, layout), STAGE(INT64, dropped),
                                             STAGE(INT64, refused)};
static const spill_record_t stage_record = SPILL_RECORD("stage", stage_line_t, stage_fields);

/* Print the second stage of an original. */
static void print_planned(const spill_cli_migrate_t *run, int64_t dropped, int64_t refused)
{
    const spill_definition_t *definition = &run->planned->definition;
    const char *documents = definition->page_collection[0] != '\0' ? definition->page_collection
                                                                   : definition->collection;
    if (run->invocation->json) {
        const stage_line_t line = {definition->name, run->planned->original.name,
                                   spill_layout_name(definition->layout), dropped, refused};
        spill_cli_print_record(&stage_record, &line);
        return;
    }
    spill_cli_print("%s: from there they are copied to layout %s%s, in %s", definition->name,
                    spill_layout_name(definition->layout),
                    definition->layout == SPILL_LAYOUT_OUTLIER ? ", keep oldest" : "", documents);
    if (dropped > 0)
        printf("; %" PRId64 " %s not kept there: --finish deletes %s for good", dropped,
               spill_cli_plural(dropped, "element is", "elements are"),
               dropped == 1 ? "it" : "them");
    if (refused > 0)
        printf("; %" PRId64 " %s an element that it cannot store, and would be skipped", refused,
               spill_cli_plural(refused, "array has", "arrays have"));
    printf("\n");
    spill_cli_print("%s: after --finish the array is in '%s', no longer in '%s': programs need the "
                    "library to read and append\n",
                    definition->name, definition->collection, run->planned->original.collection);
}

/* Migrate in place, under the original's name, and copy from there. */
spill_code_t spill_cli_staged_catch_up(spill_cli_migrate_t *run, spill_error_t *error)
{
    const spill_planned_t *planned = run->planned;
    spill_staged_t staged = staged_of(run);
    run->definition = &planned->original;
    run->survey = (spill_migrate_result_t){0};
    SPILL_TRY(spill_staged_begin(&staged, error));
    SPILL_TRY(spill_cli_migrate_cancel_undo(run, planned->original.name, error));
    spill_migrate_options_t survey = {.resumes = run->resumes};
    SPILL_TRY(spill_migrate_survey(run->store, run->definition, &survey, &run->survey, error));
    SPILL_TRY(spill_cli_migrate_pass(run, spill_migrate, "reshaped", error));
    return spill_cli_migrate_catch_up(run, planned->original.name, planned->definition.name, error);
}

static void show_refused(void *context, const spill_migrated_t *migrated)
{
    (void)context;
    if (migrated->failed)
        fprintf(stderr, "spillway: would be skipped: %s\n", migrated->failed->message);
}

spill_code_t spill_cli_staged_look(spill_cli_migrate_t *run, spill_error_t *error)
{
    spill_staged_t staged = staged_of(run);
    spill_migrate_options_t options = {.planned = &run->planned->definition,
                                       .threads = 1,
                                       .migrated = show_refused,
                                       .context = run};
    spill_migrate_result_t predicted = {0};
    int64_t dropped = 0;
    run->definition = &run->planned->original;
    run->survey = (spill_migrate_result_t){0};
    spill_migrate_options_t predictions = spill_cli_migrate_predictions(run);
    SPILL_TRY(spill_migrate_survey(run->store, run->definition, &predictions, &run->survey, error));
    SPILL_TRY(spill_staged_count_dropped(&staged, &dropped, error));
    SPILL_TRY(spill_migrate_predict(run->store, run->definition, &options, &predicted, error));
    run->failed += predicted.failed;
    spill_cli_migrate_print_survey(run);
    print_planned(run, dropped + predicted.over_cap, predicted.failed);
    return SPILL_OK;
}

static spill_code_t refuse_finish(const spill_cli_migrate_t *run, int64_t failed,
                                  spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is kept: %" PRId64 " of its arrays could not be copied to '%s' (they "
                      "are named above); nothing was dropped",
                      run->planned->original.name, failed, run->name);
}

/* Writers that continue to push create new arrays in the documents. */
static spill_code_t report_late_pushes(spill_cli_migrate_t *run, spill_error_t *error)
{
    spill_migrate_result_t late = {0};
    SPILL_TRY(spill_migrate_survey(run->store, &run->planned->original, NULL, &late, error));
    if (late.owners == 0)
        return SPILL_OK;
    run->failed += late.owners;
    fprintf(stderr,
            "spillway: %" PRId64 " documents of '%s' have a field '%s' again: a program still "
            "pushes there. These elements are not in '%s'\n",
            late.owners, run->planned->original.collection, run->planned->original.array,
            run->name);
    return SPILL_OK;
}

spill_code_t spill_cli_staged_finish(spill_cli_migrate_t *run, spill_error_t *error)
{
    spill_staged_t staged = staged_of(run);
    spill_migrate_options_t options = spill_cli_migrate_hooks(run);
    spill_copy_result_t result = {0};
    spill_stage_t stage;
    int64_t failed = run->failed;
    SPILL_TRY(spill_staged_find_stage(&staged, &stage, error));
    run->definition = &run->planned->original;
    if (stage == SPILL_STAGE_COPYING)
        SPILL_TRY(spill_cli_staged_catch_up(run, error));
    if (run->failed > failed)
        return refuse_finish(run, run->failed - failed, error);
    spill_code_t code = spill_staged_finish(&staged, &options, &result, error);
    spill_cli_progress_break(&run->operate.progress);
    SPILL_TRY(code);
    if (stage != SPILL_STAGE_FINISHED)
        SPILL_TRY(report_late_pushes(run, error));
    spill_cli_migrate_print_finished(run, result.owners, &result);
    if (stage == SPILL_STAGE_FINISHED)
        fprintf(stderr, "spillway: an earlier run finished the migration to '%s'\n", run->name);
    else if (result.owners == 0)
        fprintf(stderr, "spillway: '%s' has no array: the original had none\n", run->name);
    return SPILL_OK;
}

/* Progress of the drop of the planned definition, which an undo contains. */
typedef struct dropping {
    spill_cli_migrate_t *run;
    int64_t all; /* owners that were to be dropped; -1: not counted yet, 0: unknown */
} dropping_t;

/* The original's owners are walked, too: an undo shows that progress itself. */
static void show_dropped(void *context, spill_array_t *array, int64_t owners)
{
    dropping_t *dropping = context;
    spill_cli_progress_t *progress = &dropping->run->operate.progress;
    const char *name = dropping->run->planned->definition.name;
    if (strcmp(spill_array_get_definition(array)->name, name) != 0)
        return;
    if (owners == 1)
        spill_cli_progress_restart(progress, 0);
    if (!spill_cli_progress_due(progress))
        return;
    if (dropping->all < 0) {
        int64_t left = spill_cli_count_owners(progress, array);
        dropping->all = left >= 0 ? owners + left : 0;
    }
    spill_cli_progress_part(progress, owners, dropping->all,
                            "%" PRId64 " of %" PRId64 " owners dropped, '%s'", owners,
                            dropping->all > owners ? dropping->all : owners, name);
}

spill_code_t spill_cli_staged_undo(spill_cli_migrate_t *run, spill_cli_undo_fn undo,
                                   const char *step, spill_error_t *error)
{
    spill_staged_t staged = staged_of(run);
    spill_migrate_options_t options = spill_cli_migrate_hooks(run);
    spill_migrate_result_t result = {0};
    dropping_t dropping = {.run = run, .all = -1};
    run->definition = &run->planned->original;
    run->store->walked = show_dropped;
    run->store->walk_context = &dropping;
    spill_code_t code = undo(&staged, &options, &result, error);
    run->store->walked = NULL;
    spill_cli_progress_break(&run->operate.progress);
    run->failed += result.failed;
    run->last = result;
    if (code == SPILL_OK || code == SPILL_CANCELLED)
        spill_cli_migrate_print_result(run, step, code, &result);
    return code;
}

spill_code_t spill_cli_staged_check(spill_cli_migrate_t *run, bool execute, bool finish,
                                    bool *begins, spill_error_t *error)
{
    spill_staged_t staged = staged_of(run);
    spill_stage_t stage;
    *begins = false;
    SPILL_TRY(spill_staged_find_stage(&staged, &stage, error));
    if (finish && stage == SPILL_STAGE_NONE)
        return spill_fail(error, SPILL_REFUSED,
                          "no migration to '%s' was begun: there is nothing to finish", run->name);
    bool going_on = stage == SPILL_STAGE_NONE || stage == SPILL_STAGE_COPYING;
    *begins = going_on;
    run->unfinished = run->unfinished || (going_on && execute && !finish);
    return SPILL_OK;
}
