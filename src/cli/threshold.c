/* threshold: how many elements a head should hold. */
#include "cli/cli.h"

#include "tools/definition_jobs.h"
#include "util/error.h"

#include <inttypes.h>

typedef struct threshold_options {
    int64_t target;
    int64_t element;
} threshold_options_t;

/* The examples of the outlier pattern use heads of 200 KB. */
static const threshold_options_t DEFAULTS = {.target = 200 * 1000, .element = -1};

typedef struct result {
    int64_t target, element, threshold;
} result_t;

#define RESULT(member) SPILL_FIELD(INT64, result_t, member, #member)
static const spill_field_t result_fields[] = {RESULT(target), RESULT(element), RESULT(threshold)};
static const spill_record_t result_record = SPILL_RECORD("result", result_t, result_fields);

static void print_threshold(const spill_invocation_t *invocation, int64_t target, int64_t element)
{
    int64_t threshold = spill_threshold(target, element);
    if (invocation->json) {
        spill_cli_print_record(&result_record, &(result_t){target, element, threshold});
    } else {
        printf("%" PRId64 "\n", threshold);
    }
    if (!invocation->json && !invocation->quiet)
        fprintf(stderr,
                "a head of %" PRId64 " bytes with elements of %" PRId64 " bytes on average\n",
                target, element);
}

/* From the mean size of the existing elements, rounded up. */
static spill_code_t measure_array(spill_cli_session_t *session, spill_error_t *error)
{
    const threshold_options_t *options = session->invocation->options;
    SPILL_SCOPED(spill_stats_release) spill_stats_t stats = {0};
    SPILL_TRY(spill_stats_collect(session->array, 0, &stats, error));
    if (stats.elements == 0)
        return spill_fail(error, SPILL_NOT_FOUND,
                          "'%s' has no elements to measure: give their size with --element",
                          session->invocation->arguments[1]);
    print_threshold(session->invocation, options->target,
                    (stats.bytes + stats.elements - 1) / stats.elements);
    return SPILL_OK;
}

static spill_exit_t run_threshold(const spill_invocation_t *invocation)
{
    const threshold_options_t *options = invocation->options;
    if (options->target == 0 || options->element == 0)
        return spill_cli_usage(invocation, "--target and --element must be at least 1 byte");
    if (invocation->argument_count == 1)
        return spill_cli_usage(invocation, "NAME is missing: STORE NAME measures one definition");
    if ((invocation->argument_count == 2) == (options->element > 0))
        return spill_cli_usage(invocation, "give either --element or STORE NAME");
    if (invocation->argument_count == 2)
        return spill_cli_with_array(invocation, SPILL_CLI_READ, measure_array);
    print_threshold(invocation, options->target, options->element);
    spill_error_t error;
    return spill_cli_close(NULL, NULL, SPILL_OK, &error);
}

static const spill_option_t OPTIONS[] = {
    {"target", "SIZE", SPILL_OPTION_SIZE, offsetof(threshold_options_t, target),
     "Size that a head should have (200KB)"},
    {"element", "SIZE", SPILL_OPTION_SIZE, offsetof(threshold_options_t, element),
     "Average size of an element"},
    {0}};

const spill_command_t spill_command_threshold = {
    .name = "threshold",
    .arguments = "[STORE NAME]",
    .arguments_min = 0,
    .arguments_max = 2,
    .summary = "Compute how many elements a head should hold",
    .text = "Target size divided by average element size, rounded down to a readable number. With "
            "STORE NAME the average is measured from the existing elements. A head's "
            "bound in bytes holds for any threshold.\n"
            "\n"
            "Examples:\n"
            "  spillway threshold --target 200KB --element 200B\n"
            "  spillway threshold feeds.db events --target 200KB",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_threshold};
