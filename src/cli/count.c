/* count: how many elements an owner has, and where. */
#include "cli/bucket.h"

#include "util/error.h"

typedef struct count_line {
    const spill_value_t *owner;
    spill_count_t count;
    bool has_values; /* the head stores statistics */
} count_line_t;

static bool has_values(const void *record)
{
    return ((const count_line_t *)record)->has_values;
}

static bool has_average(const void *record)
{
    return has_values(record) && ((const count_line_t *)record)->count.values > 0;
}

#define COUNT(type, member, ...) SPILL_FIELD(type, count_line_t, count.member, #member, __VA_ARGS__)
static const spill_field_t count_fields[] = {SPILL_FIELD(POINTER, count_line_t, owner, "owner"),
                                             COUNT(INT64, count, .flags = 0),
                                             COUNT(INT64, head, .flags = 0),
                                             COUNT(INT64, pages, .flags = 0),
                                             COUNT(INT64, values, .when = has_values),
                                             COUNT(DOUBLE, sum, .when = has_average),
                                             COUNT(DOUBLE, average, .when = has_average)};
static const spill_record_t count_record = SPILL_RECORD("count", count_line_t, count_fields);

static spill_code_t count(spill_cli_session_t *session, spill_error_t *error)
{
    if (spill_cli_is_bucket(session))
        return spill_cli_bucket_count(session, error);
    spill_count_t count;
    SPILL_TRY(spill_array_count(session->array, session->owner, &count, error));
    if (!count.exists)
        return spill_cli_no_owner(session, error);
    const spill_definition_t *definition = spill_array_get_definition(session->array);
    const count_line_t line = {session->owner, count, definition->value_field[0] != '\0'};
    spill_cli_print_record(&count_record, &line);
    return SPILL_OK;
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
