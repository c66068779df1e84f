/* edit: replace one element, by its number or by its id. */
#include "cli/bucket.h"

#include "util/error.h"

#include <string.h>

typedef struct edit_options {
    const char *id;
} edit_options_t;

static const edit_options_t DEFAULTS = {0};

/* The new element: the last argument. */
static const char *element_of(const spill_invocation_t *invocation)
{
    return invocation->arguments[invocation->argument_count - 1];
}

static spill_code_t edit_by_id(spill_cli_session_t *session, const char *json,
                               const spill_value_t *element, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t id;
    char window[SPILL_WINDOW_SIZE];
    int64_t seq = 0;
    SPILL_TRY(spill_value_from_json(json, strlen(json), &storage, &id, error));
    if (spill_cli_is_bucket(session))
        return spill_bucket_edit_id(session->array, session->owner, &id, element, window, &seq,
                                    error);
    return spill_array_edit_id(session->array, session->owner, &id, element, &seq, error);
}

static spill_code_t edit_by_number(spill_cli_session_t *session, const spill_value_t *element,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_cli_address_t address;
    spill_value_t owner;
    spill_cli_parse_address(session->invocation, session->invocation->arguments[3], &address);
    SPILL_TRY(spill_cli_address_owner(session, &address, &storage, &owner, error));
    return spill_array_edit(session->array, &owner, address.seq, element, error);
}

static spill_code_t edit(spill_cli_session_t *session, spill_error_t *error)
{
    const char *json = element_of(session->invocation);
    const edit_options_t *options = session->invocation->options;
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    SPILL_TRY(spill_value_from_json(json, strlen(json), &storage, &element, error));
    return options->id ? edit_by_id(session, options->id, &element, error)
                       : edit_by_number(session, &element, error);
}

/* Check arguments before the store is opened: a malformed one is a usage error. */
static spill_exit_t run_edit(const spill_invocation_t *invocation)
{
    const edit_options_t *options = invocation->options;
    spill_cli_address_t address;
    if ((invocation->argument_count == 5) == (options->id != NULL))
        return spill_cli_usage(invocation, "give either SEQ or --id, and the new element");
    bool good = options->id
                    ? spill_cli_parse_id(invocation, options->id)
                    : spill_cli_parse_address(invocation, invocation->arguments[3], &address);
    if (!good)
        return SPILL_EXIT_USAGE;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    good = spill_cli_parse_element(invocation, element_of(invocation), &storage, &element);
    bson_destroy(&storage);
    return good ? spill_cli_with_array(invocation, SPILL_CLI_WRITE, edit) : SPILL_EXIT_USAGE;
}

static const spill_option_t OPTIONS[] = {
    {"id", "JSON", SPILL_OPTION_TEXT, offsetof(edit_options_t, id),
     "Not by SEQ: the element with this id; of several, the one with the lowest number"},
    {0}};

const spill_command_t spill_command_edit = {
    .name = "edit",
    .arguments = "STORE NAME OWNER [SEQ] JSON",
    .arguments_min = 4,
    .arguments_max = 5,
    .summary = "Replace one element by its sequence number or its id",
    .text = "Refused (exit code 4) if the new element does not fit its document.\n"
            "With layout bucket, SEQ is WINDOW:SEQ, such as 2026-03:7, and the element stays in "
            "its window.\n"
            "\n"
            "Examples:\n"
            "  spillway edit feeds.db events alice 7 '{\"type\": \"logout\"}'\n"
            "  spillway edit feeds.db events alice --id 12 '{\"id\": 12, \"type\": \"logout\"}'",
    .common = SPILL_COMMON_DURABILITY,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_edit};
