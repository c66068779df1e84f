/* remove: take one element out. */
#include "cli/cli.h"

static spill_code_t remove_element(spill_cli_session_t *session, spill_error_t *error)
{
    int64_t seq = 0;
    spill_cli_parse_number(session->invocation->arguments[3], &seq);
    return spill_array_remove(session->array, session->owner, seq, error);
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    int64_t seq = 0;
    if (!spill_cli_parse_seq(invocation, invocation->arguments[3], &seq))
        return SPILL_EXIT_USAGE;
    return spill_cli_with_array(invocation, SPILL_CLI_WRITE, remove_element);
}

const spill_command_t spill_command_remove = {
    .name = "remove",
    .arguments = "STORE NAME OWNER SEQ",
    .arguments_min = 4,
    .arguments_max = 4,
    .summary = "Remove one element by its sequence number",
    .text = "The number is not used again, and the numbers of the others stay.\n"
            "\n"
            "Example:\n"
            "  spillway remove feeds.db events alice 7",
    .common = SPILL_COMMON_DURABILITY,
    .run = run};
