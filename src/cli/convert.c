/* convert: copy the arrays of a definition into another layout. */
#include "tools/definition_jobs.h"

#include "cli/cli.h"
#include "cli/copy.h"
#include "cli/process.h"
#include "cli/walk.h"
#include "core/array.h"
#include "definition/schema.h"
#include "store/raw_reader.h"
#include "tools/migrate/undoing.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct convert_options {
    const char *layout;
    const char *keep;
    const char *as;
    const char *sort_by;
    spill_cli_copy_given_t copy;
    bool finish;
    bool yes;
} convert_options_t;

static const convert_options_t DEFAULTS = {0};

typedef struct convert_run {
    const spill_invocation_t *invocation;
    spill_store_t *store;
    spill_cli_copy_t copy;
    char as[SPILL_NAME_SIZE];
    bool finished;                 /* by an earlier run */
    spill_definition_t definition; /* the new one, also in a dry run */
    bool keeps_top_n;
} convert_run_t;

/* ---- the new definition ---------------------------------------------------------------------- */

static spill_code_t parse_layout(const convert_options_t *given, const spill_definition_t *from,
                                 spill_layout_t *layout, spill_keep_t *keep, spill_error_t *error)
{
    *layout = from->layout;
    *keep = SPILL_KEEP_NEWEST;
    SPILL_TRY(spill_cli_layout(given->layout, layout, error));
    return spill_cli_keep(given->keep, keep, error);
}

/* The new definition's name: --as, or the old name followed by the layout or the kept end. */
static spill_code_t choose_name(convert_run_t *run, spill_error_t *error)
{
    const convert_options_t *given = run->invocation->options;
    const char *name = run->invocation->arguments[1];
    int length = given->as ? snprintf(run->as, sizeof run->as, "%s", given->as)
                           : snprintf(run->as, sizeof run->as, "%s.%s", name,
                                      given->keep     ? given->keep
                                      : given->layout ? given->layout
                                                      : "new");
    if (length >= (int)sizeof run->as)
        return spill_fail(error, SPILL_INVALID, "the new definition's name is too long: give --as");
    return SPILL_OK;
}

/* An existing definition must be as the command line says. */
static spill_code_t check_definition(const convert_options_t *given,
                                     const spill_definition_t *there, spill_layout_t layout,
                                     spill_keep_t keep, spill_error_t *error)
{
    if (given->layout && there->layout != layout)
        return spill_fail(error, SPILL_REFUSED, "definition '%s' exists, and its layout is %s",
                          there->name, spill_layout_name(there->layout));
    if (given->keep && there->keep != keep)
        return spill_fail(error, SPILL_REFUSED, "definition '%s' exists, and keeps the %s",
                          there->name, spill_keep_name(there->keep));
    if (given->sort_by && strcmp(there->sort_field, given->sort_by) != 0)
        return spill_fail(error, SPILL_REFUSED, "definition '%s' exists, and its sortField is '%s'",
                          there->name, there->sort_field);
    return SPILL_OK;
}

/* The old definition is missing: find out whether an earlier run has finished and dropped it. */
static spill_code_t find_finished(convert_run_t *run, spill_code_t missing, spill_error_t *error)
{
    spill_error_t other;
    spill_code_t code = spill_convert_finished(run->store, run->invocation->arguments[1], run->as,
                                               &run->finished, &other);
    if (code != SPILL_OK)
        *error = other;
    return code != SPILL_OK || run->finished ? code : missing;
}

/* Make the new definition with all options of the command line, so a refusal leaves nothing behind.
 */
static spill_code_t plan_definition(const convert_run_t *run, const spill_definition_t *from,
                                    spill_layout_t layout, const spill_keep_t *keep,
                                    const spill_bounds_t *bounds, spill_definition_t *definition,
                                    spill_error_t *error)
{
    const convert_options_t *given = run->invocation->options;
    SPILL_TRY(spill_convert_check(run->store, from->name, run->as, error));
    SPILL_TRY(spill_convert_definition(from, run->as, layout, keep, definition, error));
    if (given->sort_by && snprintf(definition->sort_field, sizeof definition->sort_field, "%s",
                                   given->sort_by) >= (int)sizeof definition->sort_field)
        return spill_fail(error, SPILL_INVALID, "--sort-by is too long");
    spill_copy_set_bounds(bounds, definition);
    definition->largest = definition->bounds;
    return SPILL_OK;
}

/* Refuse what saving the definition would refuse. The conversion saves it after its check. */
static spill_code_t check_unsaved(const convert_run_t *run, spill_error_t *error)
{
    SPILL_TRY(spill_definition_check(&run->definition, error));
    return spill_store_check_others(run->store, &run->definition, error);
}

/* Find the new definition, or make it; the options then have it. */
static spill_code_t make_definition(convert_run_t *run, spill_copy_options_t *options,
                                    spill_error_t *error)
{
    const convert_options_t *given = run->invocation->options;
    spill_definition_t from;
    spill_layout_t layout;
    spill_keep_t keep;
    const char *name = run->invocation->arguments[1];
    spill_code_t code = choose_name(run, error);
    if (code == SPILL_OK)
        code = spill_store_definition(run->store, name, &from, error);
    if (code == SPILL_NOT_FOUND && given->finish)
        code = find_finished(run, code, error);
    if (code == SPILL_OK && !run->finished)
        code = parse_layout(given, &from, &layout, &keep, error);
    if (code != SPILL_OK || run->finished)
        return code;
    code = spill_store_definition(run->store, run->as, &run->definition, error);
    if (code == SPILL_OK) {
        code = check_definition(given, &run->definition, layout, keep, error);
    } else if (code == SPILL_NOT_FOUND && !given->finish) { /* --finish needs a definition */
        code = plan_definition(run, &from, layout, given->keep ? &keep : NULL, &options->bounds,
                               &run->definition, error);
        if (code == SPILL_OK)
            code = check_unsaved(run, error);
        options->definition = &run->definition;
    }
    run->keeps_top_n = code == SPILL_OK && spill_schema_of(&run->definition)->keeps_top_n;
    return code;
}

/* ---- a dry run ------------------------------------------------------------------------------- */

typedef struct survey {
    spill_array_t *array;
    int64_t owners;
    int64_t elements;
} survey_t;

static spill_code_t survey_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    survey_t *survey = context;
    spill_count_t count;
    SPILL_TRY(spill_array_count(survey->array, owner, &count, error));
    survey->owners += count.exists;
    survey->elements += count.count;
    return SPILL_OK;
}

typedef struct survey_line {
    const char *name, *as;
    spill_layout_t layout;
    bool has_windows;
    int64_t owners, unmanaged, elements;
} survey_line_t;

static const char *layout_name(int layout)
{
    return spill_layout_name((spill_layout_t)layout);
}

static bool has_windows(const void *record)
{
    return ((const survey_line_t *)record)->has_windows;
}

static bool has_owners(const void *record)
{
    return !has_windows(record);
}

#define SURVEY(type, member, ...) SPILL_FIELD(type, survey_line_t, member, __VA_ARGS__)
static const spill_field_t survey_fields[] = {
    SURVEY(TEXT, name, "name"),
    SURVEY(TEXT, as, "as"),
    SURVEY(ENUM, layout, "layout", .name_of = layout_name),
    SURVEY(INT64, owners, "windows", .when = has_windows),
    SURVEY(INT64, owners, "owners", .when = has_owners),
    SURVEY(INT64, unmanaged, "unmanaged", .flags = SPILL_FIELD_SPARSE),
    SURVEY(INT64, elements, "elements")};
static const spill_record_t survey_record = SPILL_RECORD("survey", survey_line_t, survey_fields);

/* From layout bucket, each owner counted here is a window. */
static void print_survey(const convert_run_t *run, const survey_t *survey)
{
    const spill_definition_t *definition = &run->definition;
    const char *name = run->invocation->arguments[1];
    bool windows = spill_schema_of(spill_array_get_definition(survey->array))->has_windows;
    if (run->invocation->json) {
        const survey_line_t line = {
            name,           definition->name,    definition->layout, windows,
            survey->owners, run->copy.unmanaged, survey->elements};
        spill_cli_print_record(&survey_record, &line);
        return;
    }
    const char *noun = windows ? spill_cli_plural(survey->owners, "window", "windows")
                               : spill_cli_plural(survey->owners, "array", "arrays");
    spill_cli_print("%s: %" PRId64 " %s to convert, of %" PRId64 " %s, as '%s': layout %s", name,
                    survey->owners, noun, survey->elements,
                    spill_cli_plural(survey->elements, "element", "elements"), definition->name,
                    spill_layout_name(definition->layout));
    if (definition->layout == SPILL_LAYOUT_OUTLIER)
        printf(", keep %s", spill_keep_name(definition->keep));
    spill_cli_print(", in %s.%s\n", definition->collection, definition->array);
}

static spill_code_t survey_arrays(const convert_run_t *run, spill_error_t *error)
{
    survey_t survey = {0};
    SPILL_TRY(spill_array_open(run->store, run->invocation->arguments[1], &survey.array, error));
    spill_cli_walk_t walk;
    spill_cli_walk_start(&walk, run->invocation, run->store, "counted");
    spill_code_t code = spill_each_owner(survey.array, survey_owner, &survey, false, error);
    spill_cli_walk_end(&walk, run->store, code, error);
    if (code == SPILL_OK)
        print_survey(run, &survey);
    spill_array_close(survey.array);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* An undo that has ended incomplete has left the other arrays to the application, on purpose. */
static spill_code_t count_unmanaged(convert_run_t *run, spill_error_t *error)
{
    bool undoing;
    SPILL_TRY(spill_undoing_is(run->store, run->invocation->arguments[1], &undoing, error));
    return undoing ? SPILL_OK : spill_cli_copy_count_unmanaged(&run->copy, error);
}

static spill_code_t convert_arrays(convert_run_t *run, spill_error_t *error)
{
    const convert_options_t *given = run->invocation->options;
    const char *name = run->invocation->arguments[1];
    const char *const names[] = {name, NULL};
    char uri[SPILL_CLI_URI];
    SPILL_TRY(spill_cli_store_uri(run->invocation->arguments[0], uri, error));
    spill_copy_options_t options = {.as = run->as,
                                    .uri = spill_raw_reader_serves(uri) ? uri : NULL};
    spill_cli_copy_start(&run->copy, run->invocation, run->store, names);
    spill_cli_copy_hook(&run->copy, &given->copy, &options);
    spill_code_t code = make_definition(run, &options, error);
    if (code != SPILL_OK || run->finished)
        return code;
    spill_copy_result_t *result = &run->copy.result;
    if (given->finish || run->invocation->dry_run)
        SPILL_TRY(count_unmanaged(run, error)); /* --finish drops the name */
    if (run->invocation->dry_run)
        code = spill_copy_check(run->store, run->store, name, &options, result, error);
    else if (given->finish)
        code = spill_convert_finish(run->store, name, &options, result, error);
    else
        code = spill_convert(run->store, name, &options, result, error);
    if (code == SPILL_OK && !given->finish && !run->invocation->dry_run)
        code = count_unmanaged(run, error);
    spill_cli_progress_break(&run->copy.progress);
    return code == SPILL_OK && run->invocation->dry_run ? survey_arrays(run, error) : code;
}

static void print_next_step(const convert_run_t *run)
{
    const convert_options_t *given = run->invocation->options;
    const char *name = run->invocation->arguments[1];
    if (run->invocation->quiet)
        return;
    if (run->finished)
        fprintf(stderr, "'%s' no longer exists: it was finished before\n", name);
    else if (given->finish)
        fprintf(stderr, "'%s' is dropped; its arrays are in '%s'\n", name, run->as);
    else if (run->copy.result.differences == 0) {
        if (run->copy.result.dropped > 0)
            fprintf(stderr, "%" PRId64 " %s not in '%s', which keeps only the %s\n",
                    run->copy.result.dropped,
                    spill_cli_plural(run->copy.result.dropped, "element is", "elements are"),
                    run->as, run->keeps_top_n ? "best" : "newest");
        fprintf(stderr,
                "the arrays are in '%s'; '%s' is unchanged. To change over, stop the clients, run "
                "convert ... --as %s --finish, then let them open '%s'\n",
                run->as, name, run->as, run->as);
    } else if (run->copy.result.ahead > 0) {
        fprintf(stderr,
                "%" PRId64 " %s more in '%s' than in '%s': it may be the only complete copy, so "
                "drop nothing there before you know why\n",
                run->copy.result.ahead,
                spill_cli_plural(run->copy.result.ahead, "owner has", "owners have"), run->as,
                name);
    }
}

static spill_exit_t run_convert(const spill_invocation_t *invocation)
{
    const convert_options_t *given = invocation->options;
    convert_run_t run = {.invocation = invocation};
    if (!given->layout && !given->as && !given->keep)
        return spill_cli_usage(invocation, "give --layout LAYOUT, --keep, or --as NAME");
    if (given->finish && given->copy.no_verify)
        return spill_cli_usage(invocation, "--no-verify cannot be combined with --finish");
    if (given->finish && invocation->dry_run)
        return spill_cli_usage(invocation, "--finish cannot be combined with --dry-run");
    spill_exit_t refused = SPILL_EXIT_DONE;
    if (given->finish && !given->yes)
        refused = spill_cli_confirm(invocation, "Compare, then drop '%s' with its documents?",
                                    invocation->arguments[1]);
    if (refused != SPILL_EXIT_DONE)
        return refused;
    spill_error_t error;
    spill_cli_mode_t mode = invocation->dry_run ? SPILL_CLI_READ : SPILL_CLI_WRITE;
    spill_code_t code = spill_cli_open_store(invocation, mode, &run.store, &error);
    if (code == SPILL_OK) {
        spill_cli_stop_on_interrupt(run.store);
        code = spill_cli_copy_interrupted(&run.copy, convert_arrays(&run, &error), &error);
    }
    if (code == SPILL_OK && !invocation->dry_run) {
        spill_cli_copy_print_result(&run.copy);
        print_next_step(&run);
    } else if (code == SPILL_OK && !invocation->quiet) {
        fprintf(stderr, "nothing was changed: act without --dry-run\n");
    }
    spill_exit_t closed = spill_cli_close(NULL, run.store, code, &error);
    return spill_cli_copy_exit(&run.copy, code, closed);
}

#define TEXT(field) SPILL_OPTION_TEXT, offsetof(convert_options_t, field)
#define FLAG(field) SPILL_OPTION_FLAG, offsetof(convert_options_t, field)

static const spill_option_t OPTIONS[] = {
    {"layout", "LAYOUT", TEXT(layout), "The new layout"},
    {"to", "layout", SPILL_OPTION_OLD_NAME, 0, NULL},
    {"keep", "newest|oldest", TEXT(keep), "Which elements the new head keeps (outlier)"},
    {"as", "NAME", TEXT(as), "The new definition (NAME.LAYOUT); created if it does not exist"},
    {"sort-by", "PATH", TEXT(sort_by), "Capped: keep the highest by this field; subset: show them"},
    SPILL_CLI_COPY_OPTIONS(convert_options_t, copy),
    {"finish", NULL, FLAG(finish), "Continue, compare everything, and drop the old definition"},
    {"yes", NULL, FLAG(yes), "With --finish: do not ask"},
    {0}};

const spill_command_t spill_command_convert = {
    .name = "convert",
    .arguments = "STORE NAME",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Copy the arrays of a definition into another layout",
    .text =
        "Copies all arrays of NAME into a new definition. The old documents stay until --finish. "
        "--as names the new definition. If it does not exist, it is created with collections of "
        "its own, and with the old one's bounds and field names, or those of the new layout if "
        "its documents have another shape. To choose them yourself, create it with 'define' "
        "first. Any of the layouts outlier, capped, reference, subset and bucket can be converted "
        "to any other.\n"
        "\n"
        "Elements keep their sequence numbers, and all are compared. "
        "Layout capped keeps the newest elements, or with --sort-by those that rank highest; "
        "\"dropped\" reports how many it drops. To "
        "layout bucket, each element goes to the window of its time, in the old order. From "
        "layout bucket, elements are numbered again, window by window.\n"
        "\n"
        "If the new layout cannot store every element, all elements are checked before anything is "
        "written. The first that cannot be stored is named by owner and number (exit code 2).\n"
        "\n"
        "After an interruption, or if NAME has grown since, run the same command to continue. "
        "Owners with arrays that differ, because they were changed meanwhile, are printed, and the "
        "exit code is 1. Compare both: if no client has written to the new definition and it "
        "has no more than NAME, drop the owner there, and convert again. If it has more, it "
        "may be the only complete copy: drop nothing there.\n"
        "\n"
        "To change over: convert while clients work on NAME; stop them; convert with --finish, "
        "which copies the rest, compares, and drops NAME; let them open the new name.\n"
        "\n"
        "Examples:\n"
        "  spillway convert feeds.db events --keep oldest --dry-run\n"
        "  spillway convert feeds.db events --keep oldest\n"
        "  spillway convert feeds.db events --layout outlier --as recent --threshold 50 --page 50\n"
        "  spillway convert feeds.db events --as recent --finish",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET |
              SPILL_COMMON_DURABILITY | SPILL_COMMON_DRY_RUN,
    .durability = SPILL_DURABILITY_LOG,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_convert};
