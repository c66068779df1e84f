/* contains: ask an array whether it has elements with given ids. */
#include "cli/cli.h"
#include "util/error.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

typedef struct answer {
    spill_value_t id;
    bool present;
    int64_t seq; /* -1: absent */
} answer_t;

static const spill_field_t answer_fields[] = {SPILL_FIELD(VALUE, answer_t, id, "id"),
                                              SPILL_FIELD(BOOL, answer_t, present, "present"),
                                              SPILL_FIELD(INT64, answer_t, seq, "seq")};
static const spill_record_t answer_record = SPILL_RECORD("answer", answer_t, answer_fields);

static void print_answer(const spill_invocation_t *invocation, const answer_t *answer)
{
    if (invocation->json) {
        spill_cli_print_record(&answer_record, answer);
        return;
    }
    char *json = spill_value_to_json(&answer->id, false);
    if (answer->present)
        spill_cli_print("%" PRId64 " %s\n", answer->seq, json ? json : "?");
    else
        spill_cli_print("absent %s\n", json ? json : "?");
    bson_free(json);
}

/* An owner that does not exist has no element. */
static spill_code_t ask(spill_cli_session_t *session, const char *json, bool *present,
                        spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    answer_t answer;
    SPILL_TRY(spill_value_from_json(json, strlen(json), &storage, &answer.id, error));
    spill_code_t code =
        spill_array_find_id(session->array, session->owner, &answer.id, &answer.seq, error);
    if (code != SPILL_OK && code != SPILL_NOT_FOUND)
        return code;
    answer.present = code == SPILL_OK;
    *present = answer.present;
    print_answer(session->invocation, &answer);
    return SPILL_OK;
}

static spill_code_t contains(spill_cli_session_t *session, spill_error_t *error)
{
    const spill_invocation_t *invocation = session->invocation;
    bool all = true;
    if (spill_cli_is_bucket(session))
        return spill_fail(error, SPILL_INVALID,
                          "contains: '%s' has layout 'bucket'; 'explain' and 'edit --id' find its "
                          "elements",
                          spill_array_get_definition(session->array)->name);
    for (int i = 3; i < invocation->argument_count; i++) {
        bool present;
        SPILL_TRY(ask(session, invocation->arguments[i], &present, error));
        all = all && present;
    }
    session->found = !all;
    return SPILL_OK;
}

static spill_exit_t run_contains(const spill_invocation_t *invocation)
{
    for (int i = 3; i < invocation->argument_count; i++)
        if (!spill_cli_parse_id(invocation, invocation->arguments[i]))
            return SPILL_EXIT_USAGE;
    return spill_cli_with_array(invocation, SPILL_CLI_READ, contains);
}

const spill_command_t spill_command_contains = {
    .name = "contains",
    .arguments = "STORE NAME OWNER ID...",
    .arguments_min = 4,
    .arguments_max = INT_MAX,
    .summary = "Ask whether an array has elements with these ids",
    .text =
        "The definition needs --id-field; with --id-field . an element is its own id. Prints one "
        "line for each id, in order: the element's sequence number, or 'absent', and the id. "
        "Each id is looked up by an index, so the cost does not depend on the array's length. "
        "The ids are looked up one after the other.\n"
        "\n"
        "Exit code: 0 if the array has all of the ids, 1 if one is absent.\n"
        "\n"
        "Examples:\n"
        "  spillway contains feeds.db followers alice '\"bob\"' '\"carol\"'\n"
        "  spillway contains feeds.db likes post-1 --json 4711",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_PARTIAL,
    .run = run_contains};
