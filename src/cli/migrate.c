/* migrate: reshape arrays of other programs as a plan says, while these programs run. */
#include "tools/migrate/migrate.h"
#include "cli/operate.h"
#include "cli/server_notes.h"
#include "core/array.h"
#include "core/building.h"
#include "definition/difference.h"
#include "store/raw_reader.h"
#include "store/store.h"
#include "tools/migrate/planned.h"
#include "tools/migrate/undoing.h"
#include "util/error.h"
#include "util/text.h"

#include <string.h>
#include <unistd.h>

typedef struct migrate_options {
    spill_cli_operate_given_t operate;
    const char *only;
    const char *owner;
    bool finish;
    bool undo;
    bool yes;
} migrate_options_t;

static const migrate_options_t DEFAULTS = {0};

/* A dry run refuses what saving the definition would refuse. */
static spill_code_t check_stored(const spill_cli_migrate_t *run, spill_error_t *error)
{
    spill_definition_t stored;
    spill_code_t code = spill_store_definition(run->store, run->definition->name, &stored, error);
    if (code == SPILL_OK)
        return spill_definition_compatible(&stored, run->definition, error);
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/* A dry run before the beginning predicts clashes of names. */
static spill_code_t check_names(spill_cli_migrate_t *run, const spill_definition_t *definition,
                                spill_error_t *error)
{
    char *remark = NULL;
    bool undoing;
    SPILL_TRY(spill_undoing_is(run->store, definition->name, &undoing, error));
    if (undoing)
        spill_cli_say("'%s': an undo of this migration has begun and not ended. Run this command "
                      "with --undo --execute to end it; with --execute alone, it migrates again",
                      definition->name);
    spill_code_t code = spill_migrate_check_names(run->store, run->uri[0] != '\0' ? run->uri : NULL,
                                                  definition, &remark, error);
    if (remark) {
        run->refused = true;
        spill_cli_say("%s", remark);
    }
    bson_free(remark);
    return code;
}

/* On a server, an undo also removes the names. On an embedded store the arrays need them. */
static spill_code_t remove_names(const spill_cli_migrate_t *run, const char *name,
                                 spill_error_t *error)
{
    return run->uri[0] != '\0' && run->failed == 0 && !run->owner
               ? spill_migrate_remove_names(run->store, run->uri, name, error)
               : SPILL_OK;
}

/* An undo left owners managed, because their arrays do not fit. Print the ways on. */
static void print_ways_on(const spill_cli_migrate_t *run)
{
    const char *name = run->definition->name;
    if (run->last.failed == 0 || run->owner || run->planned)
        return;
    spill_cli_say(
        "'%s': the undo is incomplete: %s could not be undone and %s managed, so the "
        "definition stays. `spillway export' and the library read all elements. The ways "
        "on: shorten the arrays (`spillway trim', `spillway remove'), then undo again, "
        "or one by one with --owner; or make each element a document (`spillway convert "
        "STORE %s --layout reference'). To go back: `spillway migrate STORE %s --execute'",
        name, spill_counted_text(run->last.failed, "owner", "owners").text,
        run->last.failed == 1 ? "stays" : "stay", name, name);
}

static spill_code_t undo_in_place(spill_cli_migrate_t *run, spill_error_t *error)
{
    SPILL_TRY(spill_cli_migrate_pass(run, spill_migrate_undo, "undone", error));
    print_ways_on(run);
    return remove_names(run, run->definition->name, error);
}

/* Head and pages have everything, so nothing is compared or dropped. */
static spill_code_t finish_in_place(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    int64_t owners = 0;
    spill_code_t code =
        spill_migrate_count_managed(run->store, run->definition->name, &owners, error);
    if (code == SPILL_NOT_FOUND)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' was not migrated yet, so there is nothing to finish: run migrate "
                          "--execute first",
                          run->name);
    SPILL_TRY(code);
    if (given->operate.execute)
        spill_cli_migrate_print_finished(run, owners, &(spill_copy_result_t){0});
    return SPILL_OK;
}

/* A dry run: predict what cannot be saved or reshaped, and print what would be done. */
static spill_code_t survey_in_place(spill_cli_migrate_t *run, spill_error_t *error)
{
    spill_migrate_options_t predictions = spill_cli_migrate_predictions(run);
    run->survey = (spill_migrate_result_t){0};
    SPILL_TRY(check_stored(run, error));
    SPILL_TRY(check_names(run, run->definition, error));
    SPILL_TRY(spill_migrate_survey(run->store, run->definition, &predictions, &run->survey, error));
    spill_cli_migrate_print_survey(run);
    return SPILL_OK;
}

static spill_code_t migrate_in_place(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    if (given->finish)
        return finish_in_place(run, error);
    if (given->undo)
        return undo_in_place(run, error);
    if (!given->operate.execute)
        return survey_in_place(run, error);
    run->survey = (spill_migrate_result_t){0};
    SPILL_TRY(spill_store_define(run->store, run->definition, error));
    SPILL_TRY(spill_cli_migrate_cancel_undo(run, run->definition->name, error));
    spill_migrate_options_t survey = {.resumes = run->resumes};
    SPILL_TRY(spill_migrate_survey(run->store, run->definition, &survey, &run->survey, error));
    return spill_cli_migrate_pass(run, spill_migrate, "reshaped", error);
}

static spill_code_t migrate_staged(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    const spill_planned_t *planned = run->planned;
    if (given->undo) {
        SPILL_TRY(spill_cli_staged_undo(run, spill_staged_undo, "undone", error));
        return remove_names(run, planned->original.name, error);
    }
    if (!given->operate.execute) {
        SPILL_TRY(check_names(run, &planned->original, error));
        SPILL_TRY(check_names(run, &planned->definition, error));
        return spill_cli_staged_look(run, error);
    }
    return given->finish ? spill_cli_staged_finish(run, error)
                         : spill_cli_staged_catch_up(run, error);
}

static spill_code_t is_saved(const spill_cli_migrate_t *run, const char *name, bool *saved,
                             spill_error_t *error)
{
    spill_definition_t stored;
    spill_code_t code = spill_store_definition(run->store, name, &stored, error);
    *saved = code == SPILL_OK;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/* A run saves the building's checkpoint first, and deletes it last. */
static spill_code_t has_checkpoint(const spill_cli_migrate_t *run, bool *any, spill_error_t *error)
{
    SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
    SPILL_TRY(spill_building_load(run->store, run->definition->name, &building, error));
    *any = building.stored != NULL;
    return SPILL_OK;
}

/* The definition is missing. An array that is managed all the same needs it again. */
static spill_code_t refuse_undefined(const spill_cli_migrate_t *run, spill_error_t *error)
{
    bool any;
    const spill_definition_t *definition = run->planned ? &run->planned->original : run->definition;
    SPILL_TRY(spill_migrate_has_undefined(run->store, definition, &any, error));
    if (!any)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s': documents of '%s' have arrays that are managed, but the definition is "
                      "missing. Run migrate with the same plan and --execute, which saves the "
                      "definition again; then undo once more",
                      definition->name, definition->collection);
}

/* On a server, without definitions and without a checkpoint there is nothing left to undo. */
static spill_code_t is_undone(const spill_cli_migrate_t *run, bool *undone, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    bool saved = true, original_saved = false, begun = false;
    *undone = false;
    if (!given->undo || run->uri[0] == '\0')
        return SPILL_OK;
    SPILL_TRY(is_saved(run, run->definition->name, &saved, error));
    if (run->planned) {
        SPILL_TRY(is_saved(run, run->planned->original.name, &original_saved, error));
        SPILL_TRY(has_checkpoint(run, &begun, error));
    }
    *undone = !saved && !original_saved && !begun;
    return *undone ? refuse_undefined(run, error) : SPILL_OK;
}

static bool is_chosen(const migrate_options_t *given, const spill_planned_t *planned)
{
    return !given->only || strcmp(given->only, planned->definition.name) == 0;
}

/* Choose the arrays. Report those that cannot be migrated before anything is begun, and skip them.
 */
static spill_code_t choose_arrays(spill_cli_migrate_t *run, const spill_planned_t *arrays,
                                  bool *chosen, size_t count, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        spill_error_t refusal;
        chosen[i] = is_chosen(given, &arrays[i]);
        any = any || chosen[i];
        if (!chosen[i] || spill_planned_check(&arrays[i], &refusal) == SPILL_OK)
            continue;
        chosen[i] = false;
        run->refused = true;
        spill_cli_say("passed over: %s", refusal.message);
    }
    if (any)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "the plan has no definition '%s' to migrate",
                      given->only);
}

static spill_code_t check_source(const spill_cli_migrate_t *run, spill_error_t *error)
{
    return spill_migrate_check_source(run->store, run->uri[0] != '\0' ? run->uri : NULL, run->entry,
                                      error);
}

/* If the scan could not find out which elements are the newest, a person must write the order. */
static spill_code_t check_order(const spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    spill_error_t refusal;
    if (!run->entry->order_missing)
        return SPILL_OK;
    const char *where = run->entry->staged ? "original\" or \"definition" : "definition";
    spill_fail(
        &refusal, SPILL_REFUSED,
        "'%s': the plan does not know at which end the arrays grow (\"growsAt\": \"unknown\"): "
        "write \"order\": \"oldest-first\" into its \"%s\" if new elements are added at their end, "
        "or \"order\": \"newest-first\" if they are added at their front",
        run->name, where);
    if (given->operate.execute) {
        *error = refusal;
        return SPILL_REFUSED;
    }
    if (!run->invocation->quiet)
        fprintf(stderr, "spillway: before --execute: %s\n", refusal.message);
    return SPILL_OK;
}

/* Without --execute, say what an undo would do. With it, the undo itself counts who fails. */
static spill_code_t check_undo(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    int64_t failed = run->failed;
    spill_code_t code =
        run->planned
            ? spill_cli_staged_undo(run, spill_staged_check_undo, "can be undone", error)
            : spill_cli_migrate_pass(run, spill_migrate_measure_undo, "can be undone", error);
    if (code == SPILL_TOO_BIG)
        print_ways_on(run);
    SPILL_TRY(code);
    run->failed = given->operate.execute ? failed : run->failed;
    if (!given->operate.execute && run->last.failed > 0 && !run->invocation->quiet)
        spill_cli_say("%s: %s would stay managed, for the reasons above", run->name,
                      spill_counted_text(run->last.failed, "owner", "owners").text);
    if (!given->operate.execute && !run->invocation->quiet)
        spill_cli_say("%s: --execute would put %s of %s back into the documents of %s, and delete "
                      "the pages%s",
                      run->name, spill_counted_text(run->last.elements, "element", "elements").text,
                      spill_counted_text(run->last.owners, "owner", "owners").text,
                      run->definition->collection,
                      run->planned ? " and the copies in the planned layout" : "");
    return SPILL_OK;
}

/* A dry run on a server says how many documents have no array in the array's field. */
static spill_code_t report_other_types(const spill_cli_migrate_t *run,
                                       const spill_definition_t *definition, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    int64_t count;
    char *first;
    if (given->operate.execute || run->uri[0] == '\0' || run->invocation->quiet)
        return SPILL_OK;
    SPILL_TRY(spill_migrate_find_other_types(run->uri, definition, &count, &first, error));
    if (count > 0)
        spill_cli_say("%s: %s%s another value than an array in '%s', and %s unchanged; one of "
                      "them: %s",
                      run->name, count == SPILL_MIGRATE_OTHER_TYPES_MAX ? "at least " : "",
                      spill_counted_text(count, "document has", "documents have").text,
                      definition->array, count == 1 ? "stays" : "stay",
                      first ? first : "(not UTF-8)");
    bson_free(first);
    return SPILL_OK;
}

/* The plan replaces what `spillway define' has changed since. Say what that is. */
static spill_code_t report_difference(const spill_cli_migrate_t *run,
                                      const spill_definition_t *planned, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    spill_definition_t stored;
    spill_code_t code = spill_store_definition(run->store, planned->name, &stored, error);
    if (code != SPILL_OK)
        return code == SPILL_NOT_FOUND ? SPILL_OK : code;
    SPILL_SCOPED(spill_free_text) char *text = spill_definition_difference(&stored, planned);
    if (text)
        spill_cli_say("'%s': the plan differs from the stored definition: %s; %s", planned->name,
                      text,
                      given->operate.execute ? "the plan replaces it"
                                             : "--execute replaces it with the plan");
    return SPILL_OK;
}

/* A finish of arrays in place saves nothing. */
static spill_code_t report_differences(const spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    if (!run->planned)
        return given->finish ? SPILL_OK : report_difference(run, run->definition, error);
    SPILL_TRY(report_difference(run, &run->planned->original, error));
    return report_difference(run, &run->planned->definition, error);
}

/* Check what can be known before anything is changed. */
static spill_code_t check_one(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    if (given->undo)
        return check_undo(run, error);
    const spill_definition_t *reshaped = run->planned ? &run->planned->original : run->definition;
    bool begins = true;
    SPILL_TRY(check_order(run, error));
    if (run->uri[0] != '\0')
        SPILL_TRY(spill_collation_check_at(run->uri, reshaped->collection, error));
    if (run->planned)
        SPILL_TRY(
            spill_cli_staged_check(run, given->operate.execute, given->finish, &begins, error));
    /* A finished migration has moved the arrays out of the collection. */
    if (!begins)
        return spill_migrate_check_source_collection(run->uri[0] != '\0' ? run->uri : NULL,
                                                     run->entry, error);
    SPILL_TRY(check_source(run, error));
    SPILL_TRY(report_differences(run, error));
    return report_other_types(run, reshaped, error);
}

/* Migrate one entry. An embedded store knows what it matches only once the definition is saved. */
static spill_code_t migrate_one(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    run->resumes = given->operate.execute && !given->undo && !given->finish;
    if (!given->undo && !given->finish)
        spill_cli_warn_of_ttl(run->invocation,
                              run->planned ? &run->planned->original : run->definition, 1);
    bool unseen = run->uri[0] == '\0' && given->operate.execute && !given->undo && !given->finish;
    SPILL_TRY(run->planned ? migrate_staged(run, error) : migrate_in_place(run, error));
    return unseen ? check_source(run, error) : SPILL_OK;
}

static spill_code_t work_on_array(spill_cli_migrate_t *run, spill_cli_migrate_fn one,
                                  spill_error_t *error)
{
    bool undone = false;
    spill_code_t code = SPILL_OK;
    SPILL_TRY(is_undone(run, &undone, error));
    if (!undone) {
        spill_job_metrics_begin(&run->operate.metrics, run->name);
        code = one(run, error);
        if (code != SPILL_OK || one == migrate_one)
            spill_job_metrics_end(&run->operate.metrics, code, error);
        return code;
    }
    if (one == migrate_one)
        spill_cli_say("'%s' is not migrated: there is nothing left to undo", run->name);
    return SPILL_OK;
}

static spill_code_t each_array(spill_cli_migrate_t *run, const spill_planned_t *arrays,
                               const bool *chosen, size_t count, spill_cli_migrate_fn one,
                               spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        run->entry = &arrays[i];
        run->definition = &arrays[i].definition;
        run->planned = arrays[i].staged ? &arrays[i] : NULL;
        run->target = arrays[i].staged ? &arrays[i].definition : NULL;
        run->name = arrays[i].definition.name;
        if (chosen[i])
            code = work_on_array(run, one, error);
    }
    run->entry = NULL;
    run->definition = NULL;
    run->planned = NULL;
    return code;
}

static void close_reader(spill_raw_reader_t **reader)
{
    spill_raw_reader_close(*reader);
}

static void free_flags(bool **flags)
{
    bson_free(*flags);
}

static void free_arrays(spill_planned_t **arrays)
{
    bson_free(*arrays);
}

/* Set `name` to the database of the server's URI; "" on an embedded store. */
static spill_code_t database_of(const spill_cli_migrate_t *run, char *name, size_t size,
                                spill_error_t *error)
{
    SPILL_SCOPED(close_reader) spill_raw_reader_t *reader = NULL;
    name[0] = '\0';
    if (run->uri[0] == '\0')
        return SPILL_OK;
    SPILL_TRY(spill_raw_reader_open(run->uri, NULL, &reader, error));
    bson_strncpy(name, spill_raw_reader_database(reader), size);
    return SPILL_OK;
}

/* Can one owner be undone? Of one definition, which is migrated in place. */
static spill_code_t check_undone_owner(const spill_planned_t *arrays, const bool *chosen,
                                       size_t count, spill_error_t *error)
{
    size_t definitions = 0;
    for (size_t i = 0; i < count; i++) {
        definitions += chosen[i] ? 1 : 0;
        if (chosen[i] && arrays[i].staged)
            return spill_fail(error, SPILL_INVALID,
                              "--owner: '%s' is not migrated in place, so only the whole migration "
                              "can be undone",
                              arrays[i].definition.name);
    }
    return definitions == 1 ? SPILL_OK
                            : spill_fail(error, SPILL_INVALID,
                                         "--owner: the plan has %zu definitions: choose one with "
                                         "--only",
                                         definitions);
}

/* A migration in two stages needs its plan. */
static spill_code_t refuse_building(spill_store_t *store, const char *name, spill_error_t *error)
{
    char building[SPILL_NAME_SIZE];
    SPILL_SCOPED(spill_building_release) spill_building_t checkpoint = {0};
    SPILL_TRY(spill_building_load(store, name, &checkpoint, error));
    SPILL_TRY(spill_building_of_original(store, name, building, error));
    if (!checkpoint.stored && building[0] == '\0')
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' belongs to a migration in two stages: give its plan", name);
}

/* Set *planned to the stored definition `name`, whose arrays are migrated in place. */
static spill_code_t load_stored(const spill_cli_migrate_t *run, const char *name,
                                spill_planned_t *planned, spill_error_t *error)
{
    spill_code_t code = spill_store_definition(run->store, name, &planned->definition, error);
    if (code == SPILL_NOT_FOUND)
        return spill_fail(error, code, "there is no plan (file) and no definition '%s'", name);
    SPILL_TRY(code);
    SPILL_TRY(refuse_building(run->store, name, error));
    planned->may_be_empty = true;
    if (run->undoes || spill_planned_in_place(&planned->definition))
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is not of layout outlier that keeps the newest: arrays get it with a "
                      "plan only (`spillway plan')",
                      name);
}

/*
 * The arrays of the plan's file or, if there is no such file, the arrays of the stored definition
 * with that name.
 */
static spill_code_t load_arrays(const spill_cli_migrate_t *run, spill_planned_t **arrays,
                                size_t *count, spill_error_t *error)
{
    const char *plan = run->invocation->arguments[1];
    char database[SPILL_NAME_SIZE];
    if (access(plan, F_OK) == 0) {
        SPILL_TRY(database_of(run, database, sizeof database, error));
        return spill_plan_file_arrays(plan, database, arrays, count, error);
    }
    *arrays = bson_malloc0(sizeof **arrays);
    SPILL_TRY(load_stored(run, plan, *arrays, error));
    *count = 1;
    return SPILL_OK;
}

static spill_code_t work_on_all(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    SPILL_SCOPED(free_arrays) spill_planned_t *arrays = NULL;
    size_t count = 0;
    run->undoes = given->undo;
    SPILL_TRY(load_arrays(run, &arrays, &count, error));
    SPILL_SCOPED(free_flags) bool *chosen = bson_malloc0((count + 1) * sizeof *chosen);
    SPILL_TRY(choose_arrays(run, arrays, chosen, count, error));
    if (run->owner)
        SPILL_TRY(check_undone_owner(arrays, chosen, count, error));
    SPILL_TRY(each_array(run, arrays, chosen, count, check_one, error));
    if (given->undo && !given->operate.execute)
        return SPILL_OK;
    return each_array(run, arrays, chosen, count, migrate_one, error);
}

static spill_code_t migrate_all(spill_cli_migrate_t *run, spill_error_t *error)
{
    const migrate_options_t *given = run->invocation->options;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner;
    spill_code_t code = SPILL_INVALID; /* run_migrate has checked the owner */
    if (!given->owner || spill_cli_parse_owner(run->invocation, given->owner, &storage, &owner)) {
        run->owner = given->owner ? &owner : NULL;
        code = work_on_all(run, error);
    }
    run->owner = NULL;
    bson_destroy(&storage);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* A server's database need not be a store yet; opening it writes nothing. */
static spill_cli_mode_t migrate_mode(const spill_invocation_t *invocation, bool execute)
{
    char uri[SPILL_CLI_URI];
    spill_error_t error;
    if (spill_cli_store_uri(invocation->arguments[0], uri, &error) == SPILL_OK &&
        spill_raw_reader_serves(uri))
        return SPILL_CLI_CREATE;
    return execute ? SPILL_CLI_WRITE : SPILL_CLI_READ;
}

/* Print what is wrong with --owner, if anything. */
static bool check_owner_option(const spill_invocation_t *invocation)
{
    const migrate_options_t *given = invocation->options;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner;
    bool good = given->undo;
    if (!given->undo)
        spill_cli_usage(invocation, "--owner is for --undo");
    else
        good = spill_cli_parse_owner(invocation, given->owner, &storage, &owner);
    bson_destroy(&storage);
    return good;
}

static spill_exit_t run_migrate(const spill_invocation_t *invocation)
{
    const migrate_options_t *given = invocation->options;
    spill_exit_t refused = SPILL_EXIT_DONE;
    if (invocation->dry_run && given->operate.execute)
        return spill_cli_usage(invocation, "--dry-run cannot be combined with --execute");
    if (given->undo && given->finish)
        return spill_cli_usage(invocation, "--finish cannot be combined with --undo");
    if (given->owner && !check_owner_option(invocation))
        return SPILL_EXIT_USAGE;
    if (given->owner && given->operate.execute && !given->yes)
        refused = spill_cli_confirm(invocation,
                                    "Unmanage the array of owner %s? Sweeps, and programs that "
                                    "edit or remove its elements, must be stopped.",
                                    given->owner);
    else if (given->undo && given->operate.execute && !given->yes)
        refused = spill_cli_confirm(invocation,
                                    "Unmanage the arrays of '%s'? Programs that use "
                                    "Spillway's library must be stopped.",
                                    invocation->arguments[1]);
    else if (given->finish && given->operate.execute && !given->yes)
        refused = spill_cli_confirm(invocation,
                                    "Compare, then drop the originals of the arrays of '%s'? "
                                    "Elements that a layout capped does not keep are deleted for "
                                    "good (without --execute, their number is printed). "
                                    "Programs that write to the originals must be stopped.",
                                    invocation->arguments[1]);
    if (refused != SPILL_EXIT_DONE)
        return refused;
    spill_exit_t status = spill_cli_migrate_operate(
        invocation, &given->operate, migrate_mode(invocation, given->operate.execute), migrate_all);
    if (!given->operate.execute && status != SPILL_EXIT_USAGE && status != SPILL_EXIT_FAILED &&
        !invocation->quiet)
        fprintf(stderr, "nothing was changed: act with --execute\n");
    return status;
}

static const spill_option_t OPTIONS[] = {
    SPILL_CLI_OPERATE_OPTIONS(migrate_options_t, operate, SPILL_CLI_RATE_OF_OWNERS),
    SPILL_CLI_THREADS_OPTION(migrate_options_t, operate, "Migrate owners,"),
    {"only", "NAME", SPILL_OPTION_TEXT, offsetof(migrate_options_t, only),
     "Only this definition of the plan"},
    {"finish", NULL, SPILL_OPTION_FLAG, offsetof(migrate_options_t, finish),
     "Continue, compare everything, and drop the originals of arrays not migrated in place"},
    {"undo", NULL, SPILL_OPTION_FLAG, offsetof(migrate_options_t, undo),
     "Unmanage the arrays, with all elements that they have now"},
    {"owner", "OWNER", SPILL_OPTION_TEXT, offsetof(migrate_options_t, owner),
     "With --undo: only the array of this owner. The definition stays"},
    {"yes", NULL, SPILL_OPTION_FLAG, offsetof(migrate_options_t, yes),
     "With --finish and --undo: do not ask"},
    {0}};

const spill_command_t spill_command_migrate = {
    .name = "migrate",
    .arguments = "STORE PLAN",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Reshape existing arrays as a plan says, while programs run",
    .text =
        "PLAN is what `spillway plan --output' writes, and may be edited: each array with "
        "\"migrate\": true is reshaped to its \"definition\". Without --execute, prints what "
        "would be done.\n"
        "\n"
        "Arrays are migrated in place to layout outlier, keep newest. For any other layout, arrays "
        "are first migrated in place under another definition (NAME.original), and copied from "
        "there into the planned one, owner by owner. Run it again, or `sweep', for later changes. "
        "Until --finish the original stays, programs continue to use it, and the planned "
        "definition can be read but not changed. To change over: stop the writers; run --finish, "
        "which copies the rest, compares everything, and drops the original (and what a cap does "
        "not keep); let programs open the planned definition.\n"
        "\n"
        "One update adopts each document. Updates of single documents move its oldest elements to "
        "pages; every page is read again and compared. Other programs may "
        "continue: they may push at any time, and edit and pull while the document has no pages "
        "yet (put "
        "\"overflowPages\": {\"$exists\": false}, or the name in your definition, into their "
        "filters). No acknowledged write is lost or doubled. It may be killed at any moment: run "
        "the same command to continue. It begins where the killed run ended; the next run, or "
        "`sweep', finds what has grown before that position. Full documents, "
        "to which every push fails, are adopted too.\n"
        "\n"
        "Owners that fail (damaged, or full and edited at that moment) are skipped and "
        "printed (the first ten), and the exit code is 1. Definitions that cannot be migrated are "
        "skipped too, "
        "with exit code 4. `spillway sweep' moves elements that are pushed later. --undo "
        "unmanages the arrays that fit their documents again, within 16 MiB. The others stay "
        "managed, the first ten are printed, the exit code is 1, and the definition stays. If none "
        "fits, or one of a migration in two stages does not, nothing is changed (exit code 4). "
        "PLAN may also be the name of a stored definition, such as one that `define --preset "
        "gateway' saved, if its arrays are migrated in place; --execute then cancels an undo that "
        "has not ended. After --finish there is no way back. "
        "With --owner, --undo unmanages one array that was migrated in place. The definition and "
        "the other owners stay; a sweep or another migration adopts the array again.\n"
        "\n"
        "Examples:\n"
        "  spillway plan mongodb://localhost/shop --output plan.json\n"
        "  spillway migrate mongodb://localhost/shop plan.json\n"
        "  spillway migrate mongodb://localhost/shop plan.json --execute --rate 5000 --log moved\n"
        "  spillway migrate mongodb://localhost/shop plan.json --execute --finish\n"
        "  spillway migrate mongodb://localhost/shop plan.json --execute --undo\n"
        "  spillway migrate mongodb://localhost/shop plan.json --undo --owner ann\n"
        "  spillway migrate mongodb://localhost/shop posts.comments --undo",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET |
              SPILL_COMMON_DURABILITY | SPILL_COMMON_MODE | SPILL_COMMON_DRY_RUN,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_migrate};
