/* copy: definitions and their arrays, from one store to another; what convert shares with it. */
#include "cli/copy.h"

#include "cli/cli.h"
#include "cli/process.h"
#include "cli/walk.h"
#include "core/array.h"
#include "tools/definition_jobs.h"
#include "util/error.h"
#include "util/estimate.h"
#include "util/text.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* ---- shared by copy and convert -------------------------------------------------------------- */

/* The owners of all definitions that are copied, or 0. */
static int64_t count_all(spill_cli_copy_t *copy)
{
    int64_t all = 0;
    for (const char *const *name = copy->names; *name; name++) {
        spill_array_t *array;
        spill_error_t ignored;
        if (spill_array_open(copy->source, *name, &array, &ignored) != SPILL_OK)
            return 0;
        int64_t owners = spill_cli_count_owners(&copy->progress, array);
        spill_array_close(array);
        if (owners < 0)
            return 0;
        all += owners;
    }
    return all;
}

static void show_progress(void *context, const spill_copy_result_t *result)
{
    spill_cli_copy_t *copy = context;
    double seconds = spill_cli_progress_seconds(&copy->progress);
    if (result->owners == 0 && result->checked > 0) {
        spill_cli_progress_print(&copy->progress, "%" PRId64 " elements checked, %.0f/s",
                                 result->checked, (double)result->checked / seconds);
        return;
    }
    if (copy->owners_all < 0 && spill_cli_progress_due(&copy->progress)) {
        copy->owners_all = count_all(copy);
        spill_cli_progress_restart(&copy->progress, result->owners);
    }
    char of[32] = "";
    if (copy->owners_all >= result->owners)
        snprintf(of, sizeof of, " of %" PRId64, copy->owners_all);
    spill_cli_progress_part(
        &copy->progress, result->owners, copy->owners_all,
        "%" PRId64 "%s owners, %.0f elements/s, %" PRId64 " elements copied, %" PRId64 " verified",
        result->owners, of, (double)result->elements / seconds, result->elements, result->verified);
}

static bool has_seq(const void *record)
{
    return ((const spill_copy_difference_t *)record)->seq >= 0;
}

#define DIFFERENCE(type, member, ...)                                                              \
    SPILL_FIELD(type, spill_copy_difference_t, member, __VA_ARGS__)
static const spill_field_t difference_fields[] = {
    DIFFERENCE(TEXT, definition, "definition"),
    DIFFERENCE(POINTER, owner, "owner"),
    DIFFERENCE(TEXT, window, "window", .flags = SPILL_FIELD_SPARSE),
    DIFFERENCE(INT64, seq, "seq", .flags = SPILL_FIELD_OMIT_UNLESS, .when = has_seq),
    DIFFERENCE(INT64, count, "differences"),
    DIFFERENCE(TEXT, text, "text")};
static const spill_record_t difference_record =
    SPILL_RECORD("difference", spill_copy_difference_t, difference_fields);

#define RESULT(member, ...) SPILL_FIELD(INT64, spill_cli_copy_t, member, __VA_ARGS__)
static const spill_field_t result_fields[] = {
    RESULT(result.owners, "owners"),
    RESULT(result.windows, "windows", .flags = SPILL_FIELD_SPARSE),
    RESULT(unmanaged, "unmanaged", .flags = SPILL_FIELD_SPARSE),
    RESULT(result.elements, "elements"),
    RESULT(result.before, "before"),
    RESULT(result.verified, "verified"),
    RESULT(result.dropped, "dropped", .flags = SPILL_FIELD_SPARSE),
    RESULT(result.differences, "differences")};
static const spill_record_t result_record = SPILL_RECORD("result", spill_cli_copy_t, result_fields);

static void print_difference(void *context, const spill_copy_difference_t *difference)
{
    spill_cli_copy_t *copy = context;
    spill_cli_progress_break(&copy->progress);
    if (copy->invocation->json) {
        spill_cli_print_record(&difference_record, difference);
        return;
    }
    spill_cli_print("%s: owner ", difference->definition);
    spill_cli_print_value(difference->owner, false);
    if (difference->window)
        printf(", window %s", difference->window);
    if (difference->seq >= 0)
        printf(", element %" PRId64, difference->seq);
    spill_cli_print(": %s", difference->text);
    if (difference->count > 1)
        printf(", and %" PRId64 " more %s", difference->count - 1,
               spill_cli_plural(difference->count - 1, "difference", "differences"));
    putchar('\n');
}

void spill_cli_copy_print_result(const spill_cli_copy_t *copy)
{
    const spill_copy_result_t *result = &copy->result;
    double seconds = spill_cli_progress_seconds(&copy->progress);
    if (!copy->invocation->quiet && result->elements > 0 && seconds >= SPILL_CLI_LONG_S)
        fprintf(stderr, "%s, %.0f elements/s\n", spill_duration_text(seconds).text,
                (double)result->elements / seconds);
    spill_cli_print_result(copy->invocation, &result_record, copy);
}

/* Count those of one definition. */
static spill_code_t count_unmanaged(spill_cli_copy_t *copy, const char *name, spill_error_t *error)
{
    spill_array_t *array;
    int64_t count;
    SPILL_TRY(spill_array_open(copy->source, name, &array, error));
    spill_code_t code = spill_count_unmanaged(array, &count, error);
    spill_array_close(array);
    if (code != SPILL_OK || count == 0)
        return code;
    copy->unmanaged += count;
    spill_cli_progress_break(&copy->progress);
    spill_cli_say("%s: %s that Spillway does not manage %s left out: adopt %s first "
                  "(`spillway migrate'), or `export' writes the elements",
                  name, spill_counted_text(count, "array", "arrays").text,
                  spill_cli_plural(count, "is", "are"), spill_cli_plural(count, "it", "them"));
    return SPILL_OK;
}

spill_code_t spill_cli_copy_count_unmanaged(spill_cli_copy_t *copy, spill_error_t *error)
{
    for (const char *const *name = copy->names; *name; name++)
        SPILL_TRY(count_unmanaged(copy, *name, error));
    return SPILL_OK;
}

void spill_cli_copy_start(spill_cli_copy_t *copy, const spill_invocation_t *invocation,
                          spill_store_t *source, const char *const *names)
{
    copy->invocation = invocation;
    copy->source = source;
    copy->names = names;
    copy->owners_all = -1;
    spill_cli_progress_start(&copy->progress, invocation->quiet);
}

static spill_code_t check_interrupt(void *context, int64_t elements, spill_error_t *error)
{
    (void)context;
    (void)elements;
    return spill_cli_interrupted() ? spill_fail(error, SPILL_CANCELLED, "interrupted") : SPILL_OK;
}

void spill_cli_copy_hook(spill_cli_copy_t *copy, const spill_cli_copy_given_t *given,
                         spill_copy_options_t *options)
{
    options->bounds = (spill_bounds_t){.threshold = given->threshold,
                                       .page_capacity = given->page,
                                       .head_bytes_max = given->head_bytes,
                                       .page_bytes_max = given->page_bytes};
    options->unverified = given->no_verify;
    options->differs = print_difference;
    options->progress = show_progress;
    options->turn = check_interrupt;
    options->context = copy;
}

spill_exit_t spill_cli_copy_exit(const spill_cli_copy_t *copy, spill_code_t code,
                                 spill_exit_t closed)
{
    if (code != SPILL_OK && code != SPILL_CANCELLED && copy->result.elements > 0) {
        /* No second run can copy what is lost. */
        const bool lost = code == SPILL_CORRUPT && copy->invocation->partial;
        fprintf(stderr, "spillway: %" PRId64 " %s copied; %s\n", copy->result.elements,
                spill_cli_plural(copy->result.elements, "element is", "elements are"),
                lost ? "damaged owners are left out: `spillway export STORE NAME OWNER --partial' "
                       "writes what can be read of one"
                     : "after removing the cause, run the same command to continue");
    }
    const bool found = copy->result.differences > 0 || copy->unmanaged > 0;
    return closed == SPILL_EXIT_DONE && found ? SPILL_EXIT_FOUND : closed;
}

spill_code_t spill_cli_copy_interrupted(const spill_cli_copy_t *copy, spill_code_t code,
                                        spill_error_t *error)
{
    if (code != SPILL_CANCELLED || !spill_cli_interrupted())
        return code;
    return spill_fail(
        error, code, "interrupted after %" PRId64 " %s: run the same command to continue",
        copy->result.elements, spill_cli_plural(copy->result.elements, "element", "elements"));
}

/* ---- copy ------------------------------------------------------------------------------------ */

typedef struct copy_options {
    spill_cli_copy_given_t copy;
} copy_options_t;

static const copy_options_t DEFAULTS = {.copy = {0}};

typedef struct copy_run {
    const spill_invocation_t *invocation;
    spill_store_t *source;
    spill_store_t *target;
    spill_cli_copy_t copy;
} copy_run_t;

/* ---- what to copy ---------------------------------------------------------------------------- */

/* The names on the command line, or the names of all definitions. Free with bson_strfreev. */
static spill_code_t list_names(const copy_run_t *run, char ***names, spill_error_t *error)
{
    const spill_invocation_t *invocation = run->invocation;
    spill_definition_t *definitions = NULL;
    size_t given = (size_t)invocation->argument_count - 2;
    size_t count = 0;
    *names = NULL;
    spill_code_t code = SPILL_OK;
    spill_definition_t unused;
    for (size_t i = 0; code == SPILL_OK && i < given; i++)
        code = spill_store_definition(run->source, invocation->arguments[2 + i], &unused, error);
    if (code == SPILL_OK && given == 0)
        code = spill_store_definitions(run->source, &definitions, &count, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code, "source");
    count = given > 0 ? given : count;
    *names = bson_malloc0((count + 1) * sizeof **names);
    for (size_t i = 0; i < count; i++)
        (*names)[i] = bson_strdup(given > 0 ? invocation->arguments[2 + i] : definitions[i].name);
    bson_free(definitions);
    return SPILL_OK;
}

/* Copy all names. Continue after a definition with damaged owners, and fail at the end. */
static spill_code_t copy_all(copy_run_t *run, char **names, spill_error_t *error)
{
    const copy_options_t *given = run->invocation->options;
    spill_copy_options_t options = {.as = NULL};
    spill_cli_copy_hook(&run->copy, &given->copy, &options);
    spill_code_t damage = SPILL_OK;
    spill_code_t code = SPILL_OK;
    assert(names != NULL);
    for (size_t i = 0; code == SPILL_OK && names[i]; i++) {
        spill_error_t late;
        code = spill_copy(run->source, run->target, names[i], &options, &run->copy.result, &late);
        if (code != SPILL_OK)
            *error = late;
        if (code == SPILL_CORRUPT) {
            damage = code;
            code = SPILL_OK;
        }
    }
    return code == SPILL_OK ? damage : code;
}

static void free_names(char ***names)
{
    bson_strfreev(*names);
}

/* Create the target only after the names were found in the source. */
static spill_code_t copy_stores(copy_run_t *run, spill_error_t *error)
{
    spill_invocation_t target = *run->invocation;
    SPILL_SCOPED(free_names) char **names = NULL;
    target.arguments++;
    spill_code_t code = spill_cli_open_store(run->invocation, SPILL_CLI_READ, &run->source, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code, "source");
    SPILL_TRY(list_names(run, &names, error));
    code = spill_cli_open_store(&target, SPILL_CLI_CREATE, &run->target, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code, "target");
    spill_cli_copy_start(&run->copy, run->invocation, run->source, (const char *const *)names);
    spill_cli_stop_on_interrupt(run->source);
    code = copy_all(run, names, error);
    if (code == SPILL_OK)
        code = spill_cli_copy_count_unmanaged(&run->copy, error);
    code = spill_cli_copy_interrupted(&run->copy, code, error);
    spill_cli_progress_break(&run->copy.progress);
    return code;
}

static spill_exit_t run_copy(const spill_invocation_t *invocation)
{
    if (strcmp(invocation->arguments[0], invocation->arguments[1]) == 0)
        return spill_cli_usage(invocation, "source and target are the same store");
    copy_run_t run = {.invocation = invocation};
    spill_error_t error, closing;
    spill_code_t code = copy_stores(&run, &error);
    if (code == SPILL_OK)
        spill_cli_copy_print_result(&run.copy);
    if (spill_store_close(run.target, &closing) != SPILL_OK && code == SPILL_OK) {
        error = closing;
        code = spill_fail_prefix(&error, closing.code, "target");
    }
    spill_exit_t result = spill_cli_close(NULL, run.source, code, &error);
    return spill_cli_copy_exit(&run.copy, code, result);
}

static const spill_option_t OPTIONS[] = {SPILL_CLI_COPY_OPTIONS(copy_options_t, copy), {0}};

const spill_command_t spill_command_copy = {
    .name = "copy",
    .arguments = "STORE STORE [NAME...]",
    .arguments_min = 2,
    .arguments_max = INT_MAX,
    .summary = "Copy definitions and their arrays from one store to another",
    .text = "Copies from the first store to the second, of any kinds; NAME... are definitions, by "
            "default all. Elements keep their sequence numbers, so cursors stay valid, and "
            "the owners' other fields are copied too. The target gets the definition, with the "
            "bounds given here. If it has the definition already, only bounds and window may "
            "differ (else exit code 4).\n"
            "\n"
            "If a copy was interrupted, or if the source has grown since, run the same command to "
            "continue. Nothing is copied twice. Then everything is compared, "
            "element by element. An owner with different arrays (changed in the "
            "source after it was copied, or in the target) is printed with the first number that "
            "differs. Nothing is overwritten, and the exit code is 1. If nothing that only the "
            "target has is needed, drop that owner there, and copy again. The summary comes last.\n"
            "\n"
            "Examples:\n"
            "  spillway copy feeds.db mongodb://localhost/feeds\n"
            "  spillway copy @production.uri backup.db events --quiet\n"
            "  spillway copy feeds.db env: events --threshold 50 --page 50",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET |
              SPILL_COMMON_DURABILITY | SPILL_COMMON_PARTIAL | SPILL_COMMON_MODE,
    .durability = SPILL_DURABILITY_LOG,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_copy};
