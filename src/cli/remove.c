/* remove: take one element out, by its number or by its id. */
#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

typedef struct remove_options {
    const char *id;
} remove_options_t;

static const remove_options_t DEFAULTS = {0};

static spill_code_t remove_by_id(spill_cli_session_t *session, const char *json,
                                 spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id;
    int64_t seq;
    spill_code_t code = spill_value_from_json(json, strlen(json), &storage, &id, error);
    if (code == SPILL_OK)
        code = spill_array_remove_id(session->array, session->owner, &id, &seq, error);
    if (code == SPILL_OK)
        printf("%" PRId64 "\n", seq);
    bson_destroy(&storage);
    return code;
}

static spill_code_t remove_element(spill_cli_session_t *session, spill_error_t *error)
{
    const remove_options_t *options = session->invocation->options;
    if (options->id)
        return remove_by_id(session, options->id, error);
    int64_t seq = 0;
    spill_cli_parse_number(session->invocation->arguments[3], &seq);
    return spill_array_remove(session->array, session->owner, seq, error);
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    const remove_options_t *options = invocation->options;
    int64_t seq = 0;
    if ((invocation->argument_count == 4) == (options->id != NULL))
        return spill_cli_usage(invocation, "give either SEQ or --id");
    bool good = options->id ? spill_cli_parse_id(invocation, options->id)
                            : spill_cli_parse_seq(invocation, invocation->arguments[3], &seq);
    return good ? spill_cli_with_array(invocation, SPILL_CLI_WRITE, remove_element)
                : SPILL_EXIT_USAGE;
}

static const spill_option_t OPTIONS[] = {
    {"id", "JSON", SPILL_OPTION_TEXT, offsetof(remove_options_t, id),
     "Not by SEQ: the element with this id, of several the one with the lowest number"},
    {0}};

const spill_command_t spill_command_remove = {
    .name = "remove",
    .arguments = "STORE NAME OWNER [SEQ]",
    .arguments_min = 3,
    .arguments_max = 4,
    .summary = "Remove one element by its sequence number or its id",
    .text = "The number is not used again, and the numbers of the others stay. With --id it is "
            "printed.\n"
            "\n"
            "Examples:\n"
            "  spillway remove feeds.db events alice 7\n"
            "  spillway remove feeds.db events alice --id '\"e-4711\"'",
    .common = SPILL_COMMON_DURABILITY,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run};
