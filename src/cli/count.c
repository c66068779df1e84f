/* count: how many elements an owner has, and where. */
#include "cli/bucket.h"

#include <inttypes.h>

/* Print the statistics that the head stores. */
static void print_values(const spill_count_t *count)
{
    printf(",\"values\":%" PRId64, count->values);
    if (count->values > 0)
        printf(",\"sum\":%.17g,\"average\":%.17g", count->sum, count->average);
}

static spill_code_t count(spill_cli_session_t *session, spill_error_t *error)
{
    if (spill_cli_is_bucket(session))
        return spill_cli_bucket_count(session, error);
    spill_count_t count;
    spill_code_t code = spill_array_count(session->array, session->owner, &count, error);
    if (code == SPILL_OK && !count.exists)
        return spill_cli_no_owner(session, error);
    if (code == SPILL_OK) {
        fputs("{\"owner\":", stdout);
        spill_cli_print_value(session->owner, false);
        printf(",\"count\":%" PRId64 ",\"head\":%" PRId64 ",\"pages\":%" PRId64, count.count,
               count.head, count.pages);
        if (spill_array_get_definition(session->array)->value_field[0] != '\0')
            print_values(&count);
        puts("}");
    }
    return code;
}

static spill_exit_t run_count(const spill_invocation_t *invocation)
{
    return spill_cli_with_array(invocation, SPILL_CLI_READ, count);
}

const spill_command_t spill_command_count = {
    .name = "count",
    .arguments = "STORE NAME OWNER",
    .arguments_min = 3,
    .arguments_max = 3,
    .summary = "Count an owner's elements",
    .text = "Prints one JSON document: \"count\" is exact at one moment during the call, "
            "\"head\" is how many elements are in the head document, \"pages\" how many page "
            "documents exist. An owner that does not exist is an error (exit code 3). For a "
            "layout with a summary, it also has the number of values, their sum and their "
            "average. With layout bucket it has \"count\" and \"windows\".\n"
            "\n"
            "Example:\n"
            "  spillway count feeds.db events alice",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_PARTIAL,
    .run = run_count};
