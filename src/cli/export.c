/* export: the logical arrays, or the documents, as NDJSON. */
#include "cli/bucket.h"

#include "util/error.h"

typedef struct export_options {
    bool relaxed;
    bool documents;
    bool plain;
} export_options_t;

static const export_options_t DEFAULTS = {0};

typedef struct export_run {
    const export_options_t *options;
    bool bucket;
    bool found; /* anything was printed */
} export_run_t;

typedef struct exported_element_line {
    const spill_value_t *owner;
    const char *window;
    int64_t seq;
    const char *element;
} exported_element_line_t;

#define ELEMENT(type, member, ...)                                                                 \
    SPILL_FIELD(type, exported_element_line_t, member, #member, __VA_ARGS__)
static const spill_field_t element_fields[] = {
    ELEMENT(POINTER, owner, .flags = 0), ELEMENT(TEXT, window, .flags = SPILL_FIELD_SPARSE),
    ELEMENT(INT64, seq, .flags = 0), ELEMENT(JSON, element, .flags = 0)};
static const spill_record_t element_record =
    SPILL_RECORD("element", exported_element_line_t, element_fields);

typedef struct document_line {
    const char *collection, *document;
} document_line_t;

static const spill_field_t document_fields[] = {
    SPILL_FIELD(TEXT, document_line_t, collection, "collection"),
    SPILL_FIELD(JSON, document_line_t, document, "document")};
static const spill_record_t document_record =
    SPILL_RECORD("document", document_line_t, document_fields);

/* Stop the walk when the output has failed. */
static bool print_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    export_run_t *run = context;
    run->found = true;
    char *json = spill_cli_json(&element->value, !run->options->relaxed);
    if (!json) {
        spill_cli_leave_out(owner, element->seq);
        return true;
    }
    spill_value_t of = *owner;
    char window[SPILL_WINDOW_SIZE];
    bool bucket = run->bucket && spill_bucket_split(owner, &of, window);
    const exported_element_line_t line = {&of, bucket ? window : NULL, element->seq, json};
    if (run->options->relaxed)
        spill_cli_print_record(&element_record, &line);
    else
        spill_cli_print_canonical(&element_record, &line);
    bson_free(json);
    return !ferror(stdout);
}

static bool print_document(void *context, const char *collection, const bson_t *document)
{
    export_run_t *run = context;
    run->found = true;
    spill_value_t value = spill_value_from_document(document);
    char *json = spill_cli_json(&value, !run->options->relaxed);
    if (!json) {
        spill_cli_leave_out_document(collection, document);
        return true;
    }
    const document_line_t line = {collection, json};
    spill_cli_print_record(&document_record, &line);
    bson_free(json);
    return !ferror(stdout);
}

static spill_code_t export_array(spill_cli_session_t *session, spill_error_t *error)
{
    const export_options_t *options = session->invocation->options;
    export_run_t run = {.options = options, .bucket = spill_cli_is_bucket(session)};
    spill_code_t code =
        options->documents
            ? spill_array_documents(session->array, session->owner, options->plain, print_document,
                                    &run, error)
            : spill_array_export(session->array, session->owner, print_element, &run, error);
    if (code == SPILL_CANCELLED)
        return spill_cli_flush(error);
    if (code == SPILL_OK && session->owner && !run.found)
        return spill_cli_check_owner(session, error);
    return code;
}

static spill_code_t export_arrays(spill_cli_session_t *session, spill_error_t *error)
{
    if (session->owner && spill_cli_is_bucket(session))
        return spill_cli_each_window(session, export_array, error);
    return export_array(session, error);
}

static spill_exit_t run_export(const spill_invocation_t *invocation)
{
    const export_options_t *options = invocation->options;
    if (options->plain && !options->documents)
        return spill_cli_usage(invocation, "--plain needs --documents");
    return spill_cli_with_array(invocation, SPILL_CLI_READ, export_arrays);
}

static const spill_option_t OPTIONS[] = {
    {"relaxed", NULL, SPILL_OPTION_FLAG, offsetof(export_options_t, relaxed),
     "Relaxed Extended JSON, easier to read; the types of numbers may be lost"},
    {"documents", NULL, SPILL_OPTION_FLAG, offsetof(export_options_t, documents),
     "Heads and pages, as a document database would store them"},
    {"plain", NULL, SPILL_OPTION_FLAG, offsetof(export_options_t, plain),
     "With --documents: without bookkeeping"},
    {0}};

const spill_command_t spill_command_export = {
    .name = "export",
    .arguments = "STORE NAME [OWNER]",
    .arguments_min = 2,
    .arguments_max = 3,
    .summary = "Write the arrays, or their documents, as NDJSON",
    .text = "A line is {\"owner\": ..., \"seq\": n, \"element\": ...}, owners in the store's "
            "order, each owner's elements oldest first; with layout bucket {\"owner\": ..., "
            "\"window\": ..., \"seq\": n, \"element\": ...}, window by window. With --documents it "
            "is {\"collection\": "
            "..., \"document\": ...}, a head followed by its pages. Output is streamed: "
            "memory does not grow with the length of an array.\n"
            "\n"
            "Examples:\n"
            "  spillway export feeds.db events | zstd > events.ndjson.zst\n"
            "  spillway export feeds.db events alice --relaxed\n"
            "  spillway export feeds.db events --documents --plain |\n"
            "    jq -c 'select(.collection == \"users\") | .document' > users.ndjson",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_export};
