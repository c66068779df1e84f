/* edit: replace one element. */
#include "cli/cli.h"

#include <string.h>

static spill_code_t edit(spill_cli_session_t *session, spill_error_t *error)
{
    char **arguments = session->invocation->arguments;
    int64_t seq = 0;
    spill_cli_parse_number(arguments[3], &seq);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    spill_code_t code =
        spill_value_from_json(arguments[4], strlen(arguments[4]), &storage, &element, error);
    if (code == SPILL_OK)
        code = spill_array_edit(session->array, session->owner, seq, &element, error);
    bson_destroy(&storage);
    return code;
}

/* Arguments are checked before the store is touched: a malformed one is a matter of usage. */
static spill_exit_t run(const spill_invocation_t *invocation)
{
    int64_t seq = 0;
    if (!spill_cli_parse_seq(invocation, invocation->arguments[3], &seq))
        return SPILL_EXIT_USAGE;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    bool good = spill_cli_parse_element(invocation, invocation->arguments[4], &storage, &element);
    bson_destroy(&storage);
    return good ? spill_cli_with_array(invocation, SPILL_CLI_WRITE, edit) : SPILL_EXIT_USAGE;
}

const spill_command_t spill_command_edit = {
    .name = "edit",
    .arguments = "STORE NAME OWNER SEQ JSON",
    .arguments_min = 5,
    .arguments_max = 5,
    .summary = "Replace one element by its sequence number",
    .text = "Refused (exit code 4) where the new element no longer fits its document.\n"
            "\n"
            "Example:\n"
            "  spillway edit feeds.db events alice 7 '{\"type\": \"logout\"}'",
    .common = SPILL_COMMON_DURABILITY,
    .run = run};
