/* append: elements from the command line, or one per line from stdin. */
#include "cli/cli.h"
#include "cli/process.h"

#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/redact.h"
#include "util/text.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define BATCH_ELEMENTS 1000
#define BATCH_BYTES (1024 * 1024)
/* A line of a live pipe is appended about half a second after it arrived. */
#define BATCH_US 500000
#define WAIT_MS 200
/* With --op all of stdin is one batch, which must fit into memory. */
#define OPERATION_BYTES (64 * 1024 * 1024)

typedef struct append_options {
    const char *op;
    bool atomic;
    bool if_absent;
} append_options_t;

/* Elements in one buffer; their values are made when the batch is complete. */
typedef struct batch {
    spill_buffer_t bytes;
    spill_buffer_t sizes; /* of spill_value_t with offsets instead of data */
    size_t count;
} batch_t;

typedef struct append_state {
    spill_cli_session_t *session;
    spill_op_t op;
    bool with_op;
    bool atomic;
    batch_t batch;
    int64_t began_us; /* when the batch's first element arrived */
} append_state_t;

static void batch_add(batch_t *batch, const spill_value_t *element)
{
    spill_value_t value = *element;
    value.data = NULL;
    spill_buffer_append(&batch->bytes, element->data, element->size_bytes);
    spill_buffer_append(&batch->sizes, &value, sizeof value);
    batch->count++;
}

static spill_value_t *batch_values(batch_t *batch)
{
    spill_value_t *values = (spill_value_t *)(void *)batch->sizes.data;
    const uint8_t *at = batch->bytes.data;
    for (size_t i = 0; i < batch->count; i++) {
        values[i].data = at;
        at += values[i].size_bytes;
    }
    return values;
}

static void batch_clear(batch_t *batch)
{
    spill_buffer_clear(&batch->bytes);
    spill_buffer_clear(&batch->sizes);
    batch->count = 0;
}

#define RESULT(type, member, ...) SPILL_FIELD(type, spill_append_result_t, member, __VA_ARGS__)
static const spill_field_t result_fields[] = {
    RESULT(INT64, first, "first"),
    RESULT(INT64, count, "count"),
    RESULT(BOOL, repeated, "repeated"),
    RESULT(INT64, dropped, "dropped", .flags = SPILL_FIELD_SPARSE),
    RESULT(INT64, crowded_out, "crowdedOut", .flags = SPILL_FIELD_SPARSE),
    RESULT(INT64, duplicates, "duplicates", .flags = SPILL_FIELD_SPARSE)};
static const spill_record_t result_record =
    SPILL_RECORD("result", spill_append_result_t, result_fields);

/* Flush, so that no acknowledgement waits in a buffer, and report a failed write. */
static spill_code_t print_result(const spill_invocation_t *invocation,
                                 const spill_append_result_t *result, spill_error_t *error)
{
    int64_t added = result->count - result->duplicates, last = result->first + added - 1;
    if (invocation->json) {
        spill_cli_print_record(&result_record, result);
    } else if (added == 0) {
        puts("none");
    } else if (added == 1) {
        printf("%" PRId64 "\n", result->first);
    } else {
        printf("%" PRId64 "..%" PRId64 "\n", result->first, last);
    }
    if (result->repeated && !invocation->quiet)
        fputs("spillway: the operation was applied before: nothing was written this time\n",
              stderr);
    if (result->duplicates > 0 && !invocation->quiet)
        fprintf(stderr, "spillway: the array had %" PRId64 " of %" PRId64 " %s already\n",
                result->duplicates, result->count,
                spill_cli_plural(result->count, "element", "elements"));
    if (result->dropped > 0 && !invocation->quiet)
        fprintf(stderr, "spillway: %" PRId64 " of %s %s not kept: the cap keeps other elements\n",
                result->dropped, result->count == 1 ? "1 element" : "the elements",
                spill_cli_plural(result->dropped, "is", "are"));
    if (result->crowded_out > 0 && !invocation->quiet)
        fprintf(stderr,
                "spillway: %" PRId64 " %s dropped: with the head's other fields, the elements "
                "exceed headBytesMax (--max-bytes)\n",
                result->crowded_out,
                spill_cli_plural(result->crowded_out, "older element was", "older elements were"));
    spill_code_t code = spill_cli_flush(error);
    if (code != SPILL_OK)
        spill_fail_prefix(error, code,
                          "elements %" PRId64 " to %" PRId64
                          " were appended, but this could not be printed",
                          result->first, last);
    return code;
}

static spill_code_t append_batch(append_state_t *state, spill_error_t *error)
{
    spill_cli_session_t *session = state->session;
    if (state->batch.count == 0)
        return SPILL_OK;
    if (spill_cli_is_bucket(session)) {
        spill_code_t code =
            spill_cli_bucket_append(session, batch_values(&state->batch), state->batch.count,
                                    state->with_op ? &state->op : NULL, !state->atomic, error);
        batch_clear(&state->batch);
        return code;
    }
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = state->with_op ? &state->op : NULL;
    options.fill = !state->atomic;
    spill_append_result_t result;
    spill_code_t code =
        spill_array_append(session->array, session->owner, batch_values(&state->batch),
                           state->batch.count, &options, &result, error);
    spill_error_t late;
    if (code == SPILL_OK)
        code = print_result(session->invocation, &result, error);
    else if (result.count > 0 && print_result(session->invocation, &result, &late) != SPILL_OK)
        spill_cli_fail(&late);
    batch_clear(&state->batch);
    return code;
}

static spill_code_t add_line(append_state_t *state, const char *line, size_t size, int64_t number,
                             spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    spill_code_t code = spill_value_from_json(line, size, &storage, &element, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code, "stdin:%" PRId64, number);
    batch_add(&state->batch, &element);
    if (state->with_op && state->batch.bytes.size > OPERATION_BYTES)
        return spill_fail(error, SPILL_TOO_BIG,
                          "stdin:%" PRId64 ": with --op all of the input is one batch, and it has "
                          "passed 64 MiB: append it in smaller pieces",
                          number);
    return SPILL_OK;
}

static bool is_blank(const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\r", line[i]) || line[i] == '\0')
            return false;
    return true;
}

/* Report whether to append the gathered lines now. With --op all of the input is one batch. */
static bool is_batch_due(const append_state_t *state)
{
    const batch_t *batch = &state->batch;
    if (state->with_op || batch->count == 0)
        return false;
    return batch->count >= BATCH_ELEMENTS || batch->bytes.size >= BATCH_BYTES ||
           spill_clock_monotonic_us(NULL) - state->began_us >= BATCH_US;
}

/* Gather lines in batches and append them, up to the end of the input, a bad line or Ctrl-C. */
static spill_code_t append_as_they_come(append_state_t *state, spill_error_t *error)
{
    SPILL_SCOPED(spill_cli_lines_release) spill_cli_lines_t lines = {0};
    spill_cli_lines_state_t come;
    const char *line;
    size_t size;
    int64_t number = 0;
    SPILL_TRY(spill_cli_lines_next(&lines, WAIT_MS, &come, &line, &size, error));
    while (come != SPILL_CLI_LINES_END) {
        number += come == SPILL_CLI_LINES_ONE ? 1 : 0;
        if (come == SPILL_CLI_LINES_ONE && !is_blank(line, size)) {
            if (state->batch.count == 0)
                state->began_us = spill_clock_monotonic_us(NULL);
            SPILL_TRY(add_line(state, line, size, number, error));
        }
        if (is_batch_due(state))
            SPILL_TRY(append_batch(state, error));
        SPILL_TRY(spill_cli_lines_next(&lines, WAIT_MS, &come, &line, &size, error));
    }
    return SPILL_OK;
}

/* Append lines before a bad one or before Ctrl-C, unless all lines are one operation. */
static spill_code_t append_lines(append_state_t *state, spill_error_t *error)
{
    spill_error_t late;
    spill_cli_catch_interrupts();
    spill_code_t code = append_as_they_come(state, error);
    bool interrupted = code == SPILL_OK && spill_cli_interrupted();
    if (interrupted && state->with_op)
        return spill_fail(error, SPILL_CANCELLED,
                          "interrupted: nothing of the operation was appended");
    if (code == SPILL_OK)
        code = append_batch(state, error);
    else if (!state->with_op && append_batch(state, &late) != SPILL_OK)
        spill_cli_fail(&late);
    if (code == SPILL_OK && interrupted)
        code = spill_fail(error, SPILL_CANCELLED,
                          "interrupted: every complete line that was read before is appended");
    return code;
}

/*
 * Report whether a message shows the id and its base unchanged. Messages mask control characters
 * and possible passwords.
 */
static bool is_printable(const char *id)
{
    char *text = bson_strdup_printf("%s@0", id);
    char *redacted = spill_redact(text);
    char *visible = spill_visible_text(redacted);
    bool same = strcmp(visible, text) == 0;
    bson_free(visible);
    bson_free(redacted);
    bson_free(text);
    return same;
}

/* --op ID@BASE, or ID alone: then the base is read, and printed before the first try. */
static spill_code_t prepare_op(append_state_t *state, const char *text, spill_error_t *error)
{
    const char *at = strrchr(text, '@');
    size_t id_bytes = at ? (size_t)(at - text) : strlen(text);
    state->op = (spill_op_t){.id = text, .id_bytes = id_bytes};
    if (id_bytes == 0 || id_bytes > SPILL_OP_ID_MAX)
        return spill_fail(error, SPILL_INVALID, "--op: an operation id has 1 to %d bytes",
                          SPILL_OP_ID_MAX);
    state->with_op = true;
    if (!at && !is_printable(text)) /* a retry has a base, and is accepted */
        return spill_fail(error, SPILL_INVALID,
                          "--op: the id has characters that cannot be printed for a retry, or "
                          "looks like a connection string: choose another one");
    if (at)
        return spill_cli_parse_number(at + 1, &state->op.base)
                   ? SPILL_OK
                   : spill_fail(error, SPILL_INVALID,
                                "--op: '%s' after the last @ is not a base: " SPILL_CLI_NUMBER,
                                at + 1);
    const spill_cli_session_t *session = state->session;
    if (spill_cli_is_bucket(session)) {
        state->op.base = -1; /* read later, when the elements and their window are known */
        return SPILL_OK;
    }
    SPILL_TRY(spill_array_op_base(session->array, session->owner, &state->op.base, error));
    fprintf(stderr, "%s@%" PRId64 "\n", text, state->op.base);
    fflush(stderr);
    return SPILL_OK;
}

/* Append the elements of the command line in one batch. */
static spill_code_t append_arguments(append_state_t *state, const spill_invocation_t *invocation,
                                     spill_error_t *error)
{
    for (int i = 3; i < invocation->argument_count; i++) {
        const char *text = invocation->arguments[i];
        SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
        spill_value_t element;
        SPILL_TRY(spill_value_from_json(text, strlen(text), &storage, &element, error));
        batch_add(&state->batch, &element);
    }
    return append_batch(state, error);
}

static void release_state(append_state_t *state)
{
    spill_buffer_release(&state->batch.bytes);
    spill_buffer_release(&state->batch.sizes);
}

static spill_code_t append_elements(spill_cli_session_t *session, spill_error_t *error)
{
    const spill_invocation_t *invocation = session->invocation;
    const append_options_t *options = invocation->options;
    SPILL_SCOPED(release_state)
    append_state_t state = {.session = session, .atomic = options->atomic};
    const spill_definition_t *definition = spill_array_get_definition(session->array);
    if (options->if_absent && !definition->unique)
        return spill_fail(error, SPILL_INVALID,
                          "--if-absent: '%s' does not keep each id once; define an array with "
                          "--unique",
                          definition->name);
    if (options->op)
        SPILL_TRY(prepare_op(&state, options->op, error));
    bool from_stdin =
        invocation->argument_count == 3 ||
        (invocation->argument_count == 4 && strcmp(invocation->arguments[3], "-") == 0);
    return from_stdin ? append_lines(&state, error) : append_arguments(&state, invocation, error);
}

/* Check arguments before the store is opened: a malformed one is a usage error. */
static spill_exit_t run_append(const spill_invocation_t *invocation)
{
    for (int i = 3; i < invocation->argument_count; i++) {
        const char *text = invocation->arguments[i];
        if (strcmp(text, "-") == 0 && invocation->argument_count == 4)
            continue;
        bson_t storage = BSON_INITIALIZER;
        spill_value_t element;
        bool good = spill_cli_parse_element(invocation, text, &storage, &element);
        bson_destroy(&storage);
        if (!good)
            return SPILL_EXIT_USAGE;
    }
    return spill_cli_with_array(invocation, SPILL_CLI_WRITE, append_elements);
}

static const spill_option_t OPTIONS[] = {
    {"op", "ID[@BASE]", SPILL_OPTION_TEXT, offsetof(append_options_t, op),
     "Operation id of the whole batch, with the base that an earlier try printed"},
    {"atomic", NULL, SPILL_OPTION_FLAG, offsetof(append_options_t, atomic),
     "Append a batch that fits a page in full or not at all"},
    {"if-absent", NULL, SPILL_OPTION_FLAG, offsetof(append_options_t, if_absent),
     "Fail unless the definition keeps each id once, so that elements are left out whose ids the "
     "array has"},
    {0}};

static const append_options_t DEFAULTS = {0};

const spill_command_t spill_command_append = {
    .name = "append",
    .arguments = "STORE NAME OWNER [JSON...|-]",
    .arguments_min = 3,
    .arguments_max = INT_MAX,
    .summary = "Append elements to an owner's array",
    .text =
        "Elements are Extended JSON values, given as arguments or one per line on stdin (-, or no "
        "arguments). Their sequence numbers are printed: 7, or 7..9 for a batch.\n"
        "\n"
        "Elements given as arguments are one batch, and so is all of stdin with --op. "
        "Without --op, stdin is appended in batches of a thousand lines; lines of a slow pipe are "
        "appended within a second. Lines before a malformed one, or before "
        "Ctrl-C (exit code 130), stay appended.\n"
        "\n"
        "With keep oldest, a batch may be split to fill documents. Elements of other clients may "
        "then come between, and after a failure a first part of the batch may be stored. With "
        "--atomic a batch that fits a page is not split. If it does not fit the current document, "
        "that document, or even the head, stays partly empty.\n"
        "\n"
        "With --op a retry cannot append twice. Without @BASE, the id with its base is "
        "printed on stderr before the first try: give exactly that for a retry.\n"
        "\n"
        "With layout capped, stderr, or with --json \"dropped\", reports how many of the elements "
        "were not kept. With --sort-by, \"crowdedOut\" reports how many older elements were "
        "dropped because the head has too many bytes.\n"
        "\n"
        "If the definition keeps each id once (define --unique), elements whose ids the array has "
        "are left out: stderr, or with --json \"duplicates\", reports how many.\n"
        "\n"
        "With layout bucket each element goes to its window, and WINDOW:7 or WINDOW:7..9 is "
        "printed for each window; with --op all elements must be in one window.\n"
        "\n"
        "Examples:\n"
        "  spillway append feeds.db events alice '{\"type\": \"login\"}'\n"
        "  spillway append feeds.db events alice --op order-17 '\"paid\"'\n"
        "  spillway append feeds.db followers alice --if-absent '\"bob\"' '\"carol\"'\n"
        "  spillway append feeds.db events alice --op order-17@0 '\"paid\"'\n"
        "  spillway append feeds.db events '{\"$oid\": \"5f1d7a3e9d1b2c0001a2b3c4\"}' - \\\n"
        "    < new.ndjson",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_DURABILITY,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_append};
