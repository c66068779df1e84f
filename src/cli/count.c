/* count: how many elements an owner has, and where. */
#include "cli/cli.h"

#include <inttypes.h>

static spill_code_t count(spill_cli_session_t *session, spill_error_t *error)
{
    spill_count_t count;
    spill_code_t code = spill_array_count(session->array, session->owner, &count, error);
    if (code == SPILL_OK) {
        fputs("{\"owner\":", stdout);
        spill_cli_print_value(session->owner, false);
        printf(",\"count\":%" PRId64 ",\"head\":%" PRId64 ",\"pages\":%" PRId64 "}\n", count.count,
               count.head, count.pages);
    }
    return code;
}

static spill_exit_t run(const spill_invocation_t *invocation)
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
            "\"head\" is how many of them the head document holds, \"pages\" how many page "
            "documents there are. An owner that does not exist counts 0.\n"
            "\n"
            "Example:\n"
            "  spillway count feeds.db events alice",
    .common = SPILL_COMMON_JSON,
    .run = run};
