/* stats: numbers, lengths and sizes. */
#include "cli/bucket.h"

#include "tools/definition_jobs.h"

#include "util/error.h"

#include <inttypes.h>

typedef struct stats_options {
    int64_t top;
} stats_options_t;

static const stats_options_t DEFAULTS = {.top = 10};

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
    spill_cli_print("%s: %" PRId64 " owners, %" PRId64 " elements, %" PRId64 " bytes", name,
                    stats->owners, stats->elements, stats->bytes);
    if (stats->elements > 0)
        printf(" (%.1f an element)", (double)stats->bytes / (double)stats->elements);
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
    spill_code_t code = spill_stats_collect(session->array, (size_t)options->top, &stats, error);
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
    return spill_cli_is_bucket(session)
               ? spill_cli_bucket_stats(session, error)
               : spill_fail(error, SPILL_INVALID,
                            "the statistics of an owner are for the layout bucket");
}

static spill_exit_t run_stats(const spill_invocation_t *invocation)
{
    const stats_options_t *options = invocation->options;
    if (options->top > TOP_MAX)
        return spill_cli_usage(invocation, "--top is at most %d", TOP_MAX);
    if (invocation->argument_count > 2)
        return spill_cli_with_array(invocation, SPILL_CLI_READ, stats_of_owner);
    return spill_cli_with_arrays(invocation, SPILL_CLI_READ, stats_of_array, NULL);
}

static const spill_option_t OPTIONS[] = {{"top", "N", SPILL_OPTION_NUMBER,
                                          offsetof(stats_options_t, top),
                                          "How many of the largest owners to list (10)"},
                                         {0}};

const spill_command_t spill_command_stats = {
    .name = "stats",
    .arguments = "STORE [NAME [OWNER]]",
    .arguments_min = 1,
    .arguments_max = 3,
    .summary = "Show how many elements there are and how long the arrays",
    .text = "Owners, elements, bytes, exact nearest-rank percentiles of the arrays' lengths, and "
            "the largest owners. Reads every element once; memory does not grow with their "
            "number, because only the number of owners for each length is kept.\n"
            "\n"
            "With OWNER, for layout bucket: the number of elements in each of its windows, with "
            "sum, average, minimum and maximum of their values; then all windows together. No "
            "element is read.\n"
            "\n"
            "Examples:\n"
            "  spillway stats feeds.db\n"
            "  spillway stats feeds.db events --top 3 --json\n"
            "  spillway stats shop.db reviews bike-7",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_stats};
