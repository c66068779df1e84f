/* edit and remove: change or remove single elements, or those that match a filter. */
#include "cli/cli.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- edit ------------------------------------------------------------------------------------ */

typedef struct edit_options {
    const char *id;
} edit_options_t;

static const edit_options_t EDIT_DEFAULTS = {0};

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
    char window[SPILL_WINDOW_SIZE] = "";
    int64_t seq = 0;
    SPILL_TRY(spill_value_from_json(json, strlen(json), &storage, &id, error));
    if (spill_cli_is_bucket(session))
        SPILL_TRY(spill_bucket_edit_id(session->array, session->owner, &id, element, window, &seq,
                                       error));
    else
        SPILL_TRY(spill_array_edit_id(session->array, session->owner, &id, element, &seq, error));
    spill_cli_print_done(session, window, "edited", seq);
    return SPILL_OK;
}

static spill_code_t edit_by_number(spill_cli_session_t *session, const spill_value_t *element,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_cli_address_t address;
    spill_value_t owner;
    spill_cli_parse_address(session->invocation, session->invocation->arguments[3], &address);
    SPILL_TRY(spill_cli_address_owner(session, &address, &storage, &owner, error));
    SPILL_TRY(spill_array_edit(session->array, &owner, address.seq, element, error));
    spill_cli_print_done(session, address.window, "edited", address.seq);
    return SPILL_OK;
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

static const spill_option_t EDIT_OPTIONS[] = {
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
    .options = EDIT_OPTIONS,
    .defaults = &EDIT_DEFAULTS,
    .options_bytes = sizeof EDIT_DEFAULTS,
    .run = run_edit};

/* ---- remove ---------------------------------------------------------------------------------- */

typedef struct remove_options {
    const char *id;
    const char *where;
    int64_t limit;
} remove_options_t;

static const remove_options_t REMOVE_DEFAULTS = {0};

static spill_code_t remove_by_id(spill_cli_session_t *session, const char *json,
                                 spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t id;
    int64_t seq;
    char window[SPILL_WINDOW_SIZE] = "";
    SPILL_TRY(spill_value_from_json(json, strlen(json), &storage, &id, error));
    if (spill_cli_is_bucket(session))
        SPILL_TRY(spill_bucket_remove_id(session->array, session->owner, &id, window, &seq, error));
    else
        SPILL_TRY(spill_array_remove_id(session->array, session->owner, &id, &seq, error));
    spill_cli_print_done(session, window, "removed", seq);
    if (!session->invocation->json)
        printf("%s%s%" PRId64 "\n", window, window[0] != '\0' ? ":" : "", seq);
    return SPILL_OK;
}

static spill_code_t remove_where(spill_cli_session_t *session, const remove_options_t *options,
                                 spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    bson_t filter;
    int64_t removed = 0;
    SPILL_TRY(
        spill_value_from_json(options->where, strlen(options->where), &storage, &value, error));
    if (value.type != BSON_TYPE_DOCUMENT ||
        !bson_init_static(&filter, value.data, value.size_bytes))
        return spill_fail(error, SPILL_INVALID, "--where takes a document");
    spill_code_t code =
        (spill_cli_is_bucket(session) ? spill_bucket_remove_where : spill_array_remove_where)(
            session->array, session->owner, &filter, options->limit, &removed, error);
    if (code == SPILL_OK && removed == 0)
        code = spill_cli_is_bucket(session) ? spill_cli_bucket_exists(session, error)
                                            : spill_cli_check_owner(session, error);
    if (code != SPILL_OK && removed == 0)
        return code;
    spill_cli_print_done(session, NULL, "count", removed); /* after an error: those before it */
    if (!session->invocation->json)
        printf("%" PRId64 "\n", removed);
    return code;
}

static spill_code_t remove_element(spill_cli_session_t *session, spill_error_t *error)
{
    const remove_options_t *options = session->invocation->options;
    if (options->id)
        return remove_by_id(session, options->id, error);
    if (options->where)
        return remove_where(session, options, error);
    spill_cli_address_t address;
    spill_cli_parse_address(session->invocation, session->invocation->arguments[3], &address);
    SPILL_SCOPED(bson_destroy) bson_t name = BSON_INITIALIZER;
    spill_value_t owner;
    SPILL_TRY(spill_cli_address_owner(session, &address, &name, &owner, error));
    SPILL_TRY(spill_array_remove(session->array, &owner, address.seq, error));
    spill_cli_print_done(session, address.window, "removed", address.seq);
    return SPILL_OK;
}

static spill_exit_t run_remove(const spill_invocation_t *invocation)
{
    const remove_options_t *options = invocation->options;
    spill_cli_address_t address;
    if ((invocation->argument_count == 4) + (options->id != NULL) + (options->where != NULL) != 1)
        return spill_cli_usage(invocation, "give one of SEQ, --id and --where");
    bool good = true;
    if (options->id || options->where)
        good = spill_cli_parse_id(invocation, options->id ? options->id : options->where);
    else
        good = spill_cli_parse_address(invocation, invocation->arguments[3], &address);
    return good ? spill_cli_with_array(invocation, SPILL_CLI_WRITE, remove_element)
                : SPILL_EXIT_USAGE;
}

static const spill_option_t REMOVE_OPTIONS[] = {
    {"id", "JSON", SPILL_OPTION_TEXT, offsetof(remove_options_t, id),
     "Not by SEQ: the element with this id; of several, the one with the lowest number"},
    {"where", "JSON", SPILL_OPTION_TEXT, offsetof(remove_options_t, where),
     "Not by SEQ: the elements that match this filter; prints their number"},
    {"limit", "N", SPILL_OPTION_NUMBER, offsetof(remove_options_t, limit),
     "With --where: at most N, the oldest first"},
    {0}};

const spill_command_t spill_command_remove = {
    .name = "remove",
    .arguments = "STORE NAME OWNER [SEQ]",
    .arguments_min = 3,
    .arguments_max = 4,
    .summary = "Remove elements by sequence number, by id, or by a filter",
    .text = "A number is not used again, and the other elements keep their numbers. With --id the "
            "number is printed. A filter is a query of equalities and $eq, $ne, $gt, $gte, $lt, "
            "$lte, $in, $nin and $exists; it reads the whole array. With layout bucket, SEQ is "
            "WINDOW:SEQ, such as 2026-03:7.\n"
            "\n"
            "Examples:\n"
            "  spillway remove feeds.db events alice 7\n"
            "  spillway remove feeds.db events alice --id '\"e-4711\"'\n"
            "  spillway remove feeds.db events alice --where '{\"type\": \"login\"}'",
    .common = SPILL_COMMON_DURABILITY,
    .options = REMOVE_OPTIONS,
    .defaults = &REMOVE_DEFAULTS,
    .options_bytes = sizeof REMOVE_DEFAULTS,
    .run = run_remove};
