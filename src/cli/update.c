/* update: change the other fields of an owner's head. */
#include "cli/cli.h"
#include "util/error.h"

#include <string.h>

typedef struct update_options {
    bool create;
} update_options_t;

static const update_options_t DEFAULTS = {0};

/* Parse the update, a JSON object. SPILL_PARSE, SPILL_INVALID. */
static spill_code_t parse_update(const char *json, bson_t *storage, bson_t *update,
                                 spill_error_t *error)
{
    spill_value_t value;
    SPILL_TRY(spill_value_from_json(json, strlen(json), storage, &value, error));
    if (value.type != BSON_TYPE_DOCUMENT ||
        !bson_init_static(update, value.data, value.size_bytes) || bson_empty(update))
        return spill_fail(error, SPILL_INVALID,
                          "an update is a document of operators, such as {\"$set\": {\"name\": "
                          "\"Alice\"}}");
    return SPILL_OK;
}

static spill_code_t update_head(spill_cli_session_t *session, spill_error_t *error)
{
    const update_options_t *options = session->invocation->options;
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    bson_t update;
    SPILL_TRY(parse_update(session->invocation->arguments[3], &storage, &update, error));
    if (!options->create && !spill_cli_is_bucket(session))
        SPILL_TRY(spill_cli_check_owner(session, error));
    SPILL_TRY(spill_array_update(session->array, session->owner, &update, error));
    spill_cli_print_done(session, NULL, "updated", 1);
    return SPILL_OK;
}

static spill_exit_t run_update(const spill_invocation_t *invocation)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_error_t error;
    bson_t update;
    if (parse_update(invocation->arguments[3], &storage, &update, &error) != SPILL_OK)
        return spill_cli_usage(invocation, "%s", error.message);
    return spill_cli_with_array(invocation, SPILL_CLI_WRITE, update_head);
}

static const spill_option_t OPTIONS[] = {{"create", NULL, SPILL_OPTION_FLAG,
                                          offsetof(update_options_t, create),
                                          "Create the owner if it does not exist"},
                                         {0}};

const spill_command_t spill_command_update = {
    .name = "update",
    .arguments = "STORE NAME OWNER UPDATE",
    .arguments_min = 4,
    .arguments_max = 4,
    .summary = "Change the other fields of an owner's head",
    .text =
        "UPDATE is a document of MongoDB's operators: $set, $unset, $inc, $min and $max, and on "
        "a server any other one. It applies in one atomic step to fields of the head besides "
        "the array and its bookkeeping; those are refused. `spillway explain --documents' shows "
        "the head. Not for layout bucket, whose windows have no other fields of the "
        "application.\n"
        "\n"
        "Examples:\n"
        "  spillway update feeds.db events alice '{\"$set\": {\"name\": \"Alice\"}}'\n"
        "  spillway update feeds.db events alice '{\"$inc\": {\"visits\": 1}}' --create",
    .common = SPILL_COMMON_DURABILITY,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_update};
