/* stats and threshold: numbers, lengths and sizes of arrays, and how many elements a head should
 * hold. */
#include "cli/cli.h"
#include "cli/process.h"
#include "tools/definition_jobs.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>

/* ---- stats ----------------------------------------------------------------------------------- */

typedef struct stats_options {
    int64_t limit;
} stats_options_t;

static const stats_options_t STATS_DEFAULTS = {.limit = 10};

#define TOP_MAX 1000

typedef struct percentiles {
    int64_t p50, p90, p99, p999, max;
} percentiles_t;

#define PERCENTILE(member, name) SPILL_FIELD(INT64, percentiles_t, member, name)
static const spill_field_t percentile_fields[] = {PERCENTILE(p50, "p50"), PERCENTILE(p90, "p90"),
                                                  PERCENTILE(p99, "p99"), PERCENTILE(p999, "p99.9"),
                                                  PERCENTILE(max, "max")};
static const spill_record_t percentile_record =
    SPILL_RECORD("lengths", percentiles_t, percentile_fields);

#define OWNER(type, member) SPILL_FIELD(type, spill_stats_owner_t, member, #member)
static const spill_field_t owner_fields[] = {OWNER(VALUE, owner), OWNER(INT64, elements),
                                             OWNER(INT64, bytes)};
static const spill_record_t owner_record = SPILL_RECORD("owner", spill_stats_owner_t, owner_fields);

typedef struct stats_line {
    const char *definition;
    spill_stats_t stats;
    percentiles_t lengths;
} stats_line_t;

#define STATS(type, member, ...) SPILL_FIELD(type, stats_line_t, member, __VA_ARGS__)
static const spill_field_t stats_fields[] = {
    STATS(TEXT, definition, "definition"),
    STATS(INT64, stats.owners, "owners"),
    STATS(INT64, stats.unmanaged, "unmanaged", .flags = SPILL_FIELD_SPARSE),
    STATS(INT64, stats.elements, "elements"),
    STATS(INT64, stats.bytes, "bytes"),
    STATS(RECORD, lengths, "lengths", .of = &percentile_record),
    STATS(LIST, stats.largest, "largest", .of = &owner_record,
          .count_offset = offsetof(stats_line_t, stats.largest_count))};
static const spill_record_t stats_record = SPILL_RECORD("stats", stats_line_t, stats_fields);

static percentiles_t percentiles_of(const spill_stats_t *stats)
{
    return (percentiles_t){.p50 = spill_stats_percentile(stats, 500),
                           .p90 = spill_stats_percentile(stats, 900),
                           .p99 = spill_stats_percentile(stats, 990),
                           .p999 = spill_stats_percentile(stats, 999),
                           .max = spill_stats_percentile(stats, 1000)};
}

static void print_text(const char *name, const spill_stats_t *stats)
{
    spill_cli_print("%s: %s, %s, %s", name,
                    spill_counted_text(stats->owners, "owner", "owners").text,
                    spill_counted_text(stats->elements, "element", "elements").text,
                    spill_counted_text(stats->bytes, "byte", "bytes").text);
    if (stats->elements > 0)
        printf(" (%.1f an element)", (double)stats->bytes / (double)stats->elements);
    if (stats->unmanaged > 0)
        printf("; %s %s not managed yet",
               spill_counted_text(stats->unmanaged, "array", "arrays").text,
               spill_cli_plural(stats->unmanaged, "is", "are"));
    const percentiles_t lengths = percentiles_of(stats);
    printf("\nlengths: p50=%" PRId64 " p90=%" PRId64 " p99=%" PRId64 " p99.9=%" PRId64
           " max=%" PRId64,
           lengths.p50, lengths.p90, lengths.p99, lengths.p999, lengths.max);
    puts(stats->largest_count > 0 ? "\nlargest owners (elements, bytes, owner):" : "");
    for (size_t i = 0; i < stats->largest_count; i++) {
        const spill_stats_owner_t *entry = &stats->largest[i];
        printf("%10" PRId64 " %12" PRId64 "  ", entry->elements, entry->bytes);
        spill_cli_print_value(&entry->owner, false);
        putchar('\n');
    }
}

static spill_code_t stats_of_array(spill_cli_session_t *session, spill_error_t *error)
{
    const stats_options_t *options = session->invocation->options;
    const char *name = spill_array_get_definition(session->array)->name;
    spill_stats_t stats;
    spill_code_t code = spill_stats_collect(session->array, (size_t)options->limit, &stats, error);
    session->found |= stats.skipped > 0;
    bool printable = code == SPILL_OK || code == SPILL_CORRUPT;
    if (printable && session->invocation->json)
        spill_cli_print_record(&stats_record, &(stats_line_t){name, stats, percentiles_of(&stats)});
    else if (printable)
        print_text(name, &stats);
    spill_stats_release(&stats);
    return code;
}

static spill_code_t stats_of_owner(spill_cli_session_t *session, spill_error_t *error)
{
    if (!spill_cli_is_bucket(session))
        return spill_fail(error, SPILL_INVALID,
                          "the statistics of an owner are for the layout bucket");
    SPILL_TRY(spill_cli_check_readable(session, error));
    return spill_cli_bucket_stats(session, error);
}

static spill_exit_t run_stats(const spill_invocation_t *invocation)
{
    const stats_options_t *options = invocation->options;
    if (options->limit > TOP_MAX)
        return spill_cli_usage(invocation, "--limit is at most %d", TOP_MAX);
    if (invocation->argument_count > 2)
        return spill_cli_with_array(invocation, SPILL_CLI_READ, stats_of_owner);
    spill_cli_stop_without_reader();
    return spill_cli_with_arrays(invocation, SPILL_CLI_READ, stats_of_array, NULL);
}

static const spill_option_t STATS_OPTIONS[] = {{"limit", "N", SPILL_OPTION_NUMBER,
                                                offsetof(stats_options_t, limit),
                                                "How many of the largest owners to list (10)"},
                                               {"top", "limit", SPILL_OPTION_OLD_NAME, 0, NULL},
                                               {0}};

const spill_command_t spill_command_stats = {
    .name = "stats",
    .arguments = "STORE [NAME [OWNER]]",
    .arguments_min = 1,
    .arguments_max = 3,
    .summary = "Show how many elements there are and how long the arrays",
    .text = "Owners, elements, bytes, exact nearest-rank percentiles of the arrays' lengths, and "
            "the largest owners. Heads and pages know how many elements they have, so these are "
            "not read, except with layouts reference and subset, and with --partial. A damaged "
            "element is found by `verify`. Memory does not grow with the number of elements, "
            "because only the number of owners for each length is kept.\n"
            "\n"
            "With OWNER, for layout bucket: the number of elements in each of its windows, with "
            "sum, average, minimum and maximum of their values; then all windows together. No "
            "element is read.\n"
            "\n"
            "With --partial, the elements that can be read are counted. The statistics of an OWNER "
            "are refused with exit code 3 if some of its elements cannot be read.\n"
            "\n"
            "Examples:\n"
            "  spillway stats feeds.db\n"
            "  spillway stats feeds.db events --limit 3 --json\n"
            "  spillway stats shop.db reviews bike-7",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_PARTIAL,
    .walked = "read",
    .interrupted = "the same command starts again with the first owner",
    .options = STATS_OPTIONS,
    .defaults = &STATS_DEFAULTS,
    .options_bytes = sizeof STATS_DEFAULTS,
    .run = run_stats};

/* ---- threshold ------------------------------------------------------------------------------- */

typedef struct threshold_options {
    int64_t target;
    int64_t element;
} threshold_options_t;

/* The examples of the outlier pattern use heads of 200 KB. */
static const threshold_options_t THRESHOLD_DEFAULTS = {.target = 200 * 1000, .element = -1};

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

static const spill_option_t THRESHOLD_OPTIONS[] = {
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
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .walked = "measured",
    .interrupted = "the same command starts again with the first owner",
    .options = THRESHOLD_OPTIONS,
    .defaults = &THRESHOLD_DEFAULTS,
    .options_bytes = sizeof THRESHOLD_DEFAULTS,
    .run = run_threshold};
