/* read, count and export: a page of an owner's elements, their number, and all arrays. */
#include "cli/cli.h"
#include "cli/process.h"
#include "core/array.h"
#include "tools/import/import_names.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

/* ---- read ------------------------------------------------------------------------------------ */

typedef struct read_options {
    int64_t limit;
    int64_t before;
    int64_t after; /* INT64_MAX: not given */
    int64_t skip;
    bool oldest;
    bool top;         /* layout subset */
    const char *from; /* layout bucket */
    const char *to;
    const char *cursor;
} read_options_t;

typedef struct element_line {
    int64_t seq;
    const char *element;
} element_line_t;

static const spill_field_t element_fields[] = {
    SPILL_FIELD(INT64, element_line_t, seq, "seq"),
    SPILL_FIELD(JSON, element_line_t, element, "element")};
static const spill_record_t element_record =
    SPILL_RECORD("element", element_line_t, element_fields);

static void print_slice(const spill_cli_session_t *session, const spill_slice_t *slice)
{
    for (size_t i = 0; i < slice->count; i++) {
        const spill_element_t *element = &slice->elements[i];
        char *json = spill_cli_json(&element->value, false);
        const element_line_t line = {element->seq, json};
        if (!json)
            spill_cli_leave_out(session->owner, element->seq);
        else if (session->invocation->json)
            spill_cli_print_record(&element_record, &line);
        else
            printf("%" PRId64 "\t%s\n", element->seq, json);
        bson_free(json);
    }
}

static void free_slice(spill_slice_t **slice)
{
    spill_slice_free(*slice);
}

/* Print the elements. SPILL_NOT_FOUND: the owner does not exist. */
static spill_code_t print_page(const spill_cli_session_t *session, const spill_slice_t *slice,
                               spill_error_t *error)
{
    print_slice(session, slice);
    SPILL_TRY(spill_cli_flush(error));
    return slice->count == 0 ? spill_cli_check_owner(session, error) : SPILL_OK;
}

/* In a bucket each window has its own numbers, so options with numbers alone are refused. */
static spill_code_t read_bucket(spill_cli_session_t *session, spill_error_t *error)
{
    const read_options_t *given = session->invocation->options;
    if (given->before != INT64_MAX || given->after != INT64_MAX || given->skip != 0)
        return spill_fail(error, SPILL_INVALID,
                          "the layout is bucket: give --from, --to and --cursor instead of "
                          "--before, --after and --skip");
    spill_cli_bucket_read_t read = {.limit = given->limit,
                                    .oldest = given->oldest,
                                    .from = given->from,
                                    .to = given->to,
                                    .cursor = given->cursor};
    return spill_cli_bucket_read(session, &read, error);
}

/* Layout subset: read the summary's elements from the head alone. */
static spill_code_t read_top(spill_cli_session_t *session, spill_error_t *error)
{
    const read_options_t *given = session->invocation->options;
    if (given->before != INT64_MAX || given->after != INT64_MAX || given->skip != 0 ||
        given->oldest || given->from || given->to || given->cursor)
        return spill_fail(error, SPILL_INVALID, "--top can be combined only with --limit");
    SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
    SPILL_TRY(spill_array_top(session->array, session->owner, given->limit, &slice, error));
    SPILL_TRY(print_page(session, slice, error));
    if (slice->more && (int64_t)slice->count < given->limit && !session->invocation->quiet)
        fprintf(stderr,
                "spillway: the summary has room for %zu of the elements that rank highest, in half "
                "of %" PRId64
                " bytes; read them all without --top, or make room with `define --max-bytes` "
                "and a larger number, then `repair`\n",
                slice->count, spill_array_get_definition(session->array)->bounds.head_bytes_max);
    return SPILL_OK;
}

/*
 * Print the options of the next page, unless all elements behind this one were removed. If that
 * cannot be read, the next page reports why.
 */
static void print_next(const spill_cli_session_t *session, spill_read_options_t options,
                       const spill_slice_t *slice)
{
    const read_options_t *given = session->invocation->options;
    spill_error_t ignored;
    if (!slice->more || !spill_cli_prints_tables(session->invocation) || session->invocation->quiet)
        return;
    options.limit = 1;
    options.skip = 0;
    *(given->oldest ? &options.after : &options.before) = slice->next;
    SPILL_SCOPED(free_slice) spill_slice_t *following = NULL;
    spill_code_t code =
        spill_array_read(session->array, session->owner, &options, &following, &ignored);
    if (code != SPILL_OK || following->count > 0)
        fprintf(stderr, "next: %s--limit %" PRId64 " --%s %" PRId64 "\n",
                given->oldest ? "--oldest " : "", given->limit, given->oldest ? "after" : "before",
                slice->next);
}

static spill_code_t read_page(spill_cli_session_t *session, spill_error_t *error)
{
    const spill_invocation_t *invocation = session->invocation;
    const read_options_t *given = invocation->options;
    if (given->top)
        return read_top(session, error);
    if (spill_cli_is_bucket(session))
        return read_bucket(session, error);
    if (given->from || given->to || given->cursor)
        return spill_fail(error, SPILL_INVALID,
                          "--from, --to and --cursor are for the layout bucket");
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.order = given->oldest ? SPILL_OLDEST_FIRST : SPILL_NEWEST_FIRST;
    options.limit = given->limit;
    options.before = given->before;
    options.after = given->after == INT64_MAX ? -1 : given->after;
    options.skip = given->skip;
    SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
    SPILL_TRY(spill_array_read(session->array, session->owner, &options, &slice, error));
    SPILL_TRY(print_page(session, slice, error));
    print_next(session, options, slice);
    return SPILL_OK;
}

static spill_exit_t run_read(const spill_invocation_t *invocation)
{
    return spill_cli_with_array(invocation, SPILL_CLI_READ, read_page);
}

static const spill_option_t READ_OPTIONS[] = {
    {"limit", "N", SPILL_OPTION_NUMBER, offsetof(read_options_t, limit),
     "Most elements to print (20)"},
    {"before", "S", SPILL_OPTION_NUMBER, offsetof(read_options_t, before),
     "Only elements with sequence numbers below S"},
    {"after", "S", SPILL_OPTION_NUMBER, offsetof(read_options_t, after),
     "Only elements with sequence numbers above S"},
    {"skip", "N", SPILL_OPTION_NUMBER, offsetof(read_options_t, skip),
     "Skip N elements first, counted from the end where the read begins"},
    {"oldest", NULL, SPILL_OPTION_FLAG, offsetof(read_options_t, oldest),
     "Oldest first; newest first is the default"},
    {"top", NULL, SPILL_OPTION_FLAG, offsetof(read_options_t, top),
     "Highest ranking first: layout subset, the elements in the summary; capped, all elements"},
    {"from", "TIME", SPILL_OPTION_TEXT, offsetof(read_options_t, from),
     "Layout bucket: only elements from TIME on, such as 2026-03 or 2026-03-05T10:20 (UTC)"},
    {"to", "TIME", SPILL_OPTION_TEXT, offsetof(read_options_t, to),
     "Layout bucket: only elements before TIME"},
    {"cursor", "WINDOW:SEQ", SPILL_OPTION_TEXT, offsetof(read_options_t, cursor),
     "Layout bucket: continue behind this element"},
    {0}};

static const read_options_t READ_DEFAULTS = {.limit = 20, .before = INT64_MAX, .after = INT64_MAX};

const spill_command_t spill_command_read = {
    .name = "read",
    .arguments = "STORE NAME OWNER",
    .arguments_min = 3,
    .arguments_max = 3,
    .summary = "Read a page of elements, newest first",
    .text =
        "A line is the sequence number, a tab, and the element as relaxed Extended JSON; "
        "with --json it is {\"seq\": n, \"element\": ...}. On a terminal, if elements remain, the "
        "options that read the next page are printed on stderr: 'next: --limit 20 --before "
        "98'. A sequence number stays valid as a cursor while other clients append or remove.\n"
        "\n"
        "With layout bucket, lines begin with WINDOW:SEQ, which is also the cursor; if windows are "
        "named by a field, --from and --to are windows, both included.\n"
        "\n"
        "With layout subset, --top reads the elements that rank highest from the head alone; with "
        "layout capped and --sort-by, it reads all elements by rank.\n"
        "\n"
        "Examples:\n"
        "  spillway read feeds.db events alice\n"
        "  spillway read feeds.db events alice --before 98\n"
        "  spillway read feeds.db events alice --oldest --after 999 --limit 100 --json\n"
        "  spillway read shop.db reviews bike --top --limit 3",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .options = READ_OPTIONS,
    .defaults = &READ_DEFAULTS,
    .options_bytes = sizeof READ_DEFAULTS,
    .run = run_read};

/* ---- count ----------------------------------------------------------------------------------- */

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

static bool pass_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)context;
    (void)owner;
    (void)element;
    return true;
}

static spill_code_t check_elements(spill_cli_session_t *session, spill_error_t *error)
{
    return spill_array_export(session->array, session->owner, pass_element, NULL, error);
}

spill_code_t spill_cli_check_readable(spill_cli_session_t *session, spill_error_t *error)
{
    if (!session->invocation->partial)
        return SPILL_OK;
    return spill_cli_is_bucket(session) ? spill_cli_each_window(session, check_elements, error)
                                        : check_elements(session, error);
}

static bool count_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    (void)element;
    ++*(int64_t *)context;
    return true;
}

/* Count an unmanaged array as one that is in the head: `stats' and `export' include it, too. */
static spill_code_t count_any(const spill_cli_session_t *session, spill_count_t *count,
                              spill_error_t *error)
{
    spill_code_t code = spill_array_count(session->array, session->owner, count, error);
    if (code != SPILL_REFUSED || error->reason != SPILL_REASON_UNMANAGED)
        return code;
    int64_t elements = 0;
    SPILL_TRY(
        spill_walk_any(session->array, session->owner, count_element, &elements, NULL, error));
    *count = (spill_count_t){.exists = true, .count = elements, .head = elements, .next = elements};
    return SPILL_OK;
}

static spill_code_t count(spill_cli_session_t *session, spill_error_t *error)
{
    SPILL_TRY(spill_cli_check_readable(session, error));
    if (spill_cli_is_bucket(session))
        return spill_cli_bucket_count(session, error);
    spill_count_t count;
    SPILL_TRY(count_any(session, &count, error));
    if (!count.exists)
        return spill_cli_no_owner(session, error);
    const spill_definition_t *definition = spill_array_get_definition(session->array);
    const count_line_t line = {session->owner, count, definition->value_field[0] != '\0'};
    spill_cli_print_result(session->invocation, &count_record, &line);
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
    .text =
        "\"count\" is exact at one moment during the call, "
        "\"head\" is how many elements are in the head document, \"pages\" how many page "
        "documents exist. An owner that does not exist is an error (exit code 3). For a "
        "layout with a summary, it also has the number of values, their sum and their "
        "average. With layout bucket it has \"count\" and \"windows\". An array on a server that "
        "Spillway does not manage yet is counted in its document.\n"
        "\n"
        "With --partial, all elements of the owner are read first. If some cannot be read, the "
        "command prints their numbers instead of a count, and ends with exit code 3.\n"
        "\n"
        "Example:\n"
        "  spillway count feeds.db events alice",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_PARTIAL,
    .run = run_count};

/* ---- export ---------------------------------------------------------------------------------- */

typedef struct export_options {
    bool relaxed;
    bool documents;
    bool plain;
} export_options_t;

static const export_options_t EXPORT_DEFAULTS = {0};

typedef struct export_run {
    const export_options_t *options;
    const char *heads; /* their collection */
    const char *names; /* of the definition, as JSON */
    bool bucket;
    int64_t *lines; /* printed */
    bool found;     /* anything was printed, or cannot be printed */
    spill_array_t *array;
} export_run_t;

typedef struct exported_element_line {
    const spill_value_t *owner;
    const char *window;
    int64_t seq;
    const char *element;
} exported_element_line_t;

#define ELEMENT(type, member, ...)                                                                 \
    SPILL_FIELD(type, exported_element_line_t, member, #member, __VA_ARGS__)
static const spill_field_t exported_fields[] = {
    ELEMENT(POINTER, owner, .flags = 0), ELEMENT(TEXT, window, .flags = SPILL_FIELD_SPARSE),
    ELEMENT(INT64, seq, .flags = 0), ELEMENT(JSON, element, .flags = 0)};
static const spill_record_t exported_record =
    SPILL_RECORD("element", exported_element_line_t, exported_fields);

typedef struct document_line {
    const char *collection, *document;
    const char *definition; /* of a head: its names */
} document_line_t;

static const spill_field_t document_fields[] = {
    SPILL_FIELD(TEXT, document_line_t, collection, "collection"),
    SPILL_FIELD(JSON, document_line_t, document, "document"),
    SPILL_FIELD(JSON, document_line_t, definition, "definition", .flags = SPILL_FIELD_SPARSE)};
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
        spill_cli_print_record(&exported_record, &line);
    else
        spill_cli_print_canonical(&exported_record, &line);
    bson_free(json);
    ++*run->lines;
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
    bool is_head = strcmp(collection, run->heads) == 0;
    const document_line_t line = {collection, json, is_head ? run->names : NULL};
    spill_cli_print_record(&document_record, &line);
    bson_free(json);
    ++*run->lines;
    return !ferror(stdout);
}

/* ---- arrays that are not managed ------------------------------------------------------------- */

static spill_code_t export_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    export_run_t *run = context;
    return spill_walk_any(run->array, owner, print_element, run, NULL, error);
}

static spill_code_t export_elements(spill_cli_session_t *session, export_run_t *run,
                                    spill_error_t *error)
{
    if (!spill_array_has_unmanaged(run->array))
        return spill_array_export(run->array, session->owner, print_element, run, error);
    if (session->owner) {
        SPILL_TRY(export_owner(run, session->owner, error));
        return run->found ? SPILL_OK : spill_check_unheaded(run->array, session->owner, error);
    }
    int64_t skipped;
    spill_code_t code = spill_each_array(run->array, export_owner, run, &skipped, error);
    session->found = skipped > 0;
    return spill_end_walk(run->array, code, error);
}

/*
 * Say what --documents does not write: an unmanaged array is a field of a document of the
 * application, which reads it with its driver. Only names of owners are read.
 */
static spill_code_t report_unmanaged(const spill_cli_session_t *session, const export_run_t *run,
                                     spill_error_t *error)
{
    int64_t unmanaged;
    if (session->owner)
        return SPILL_OK;
    SPILL_TRY(spill_count_unmanaged(run->array, &unmanaged, error));
    if (unmanaged > 0)
        spill_cli_say("%s of '%s' with arrays that Spillway does not manage yet %s not written: "
                      "they are the application's documents. `export' without --documents writes "
                      "their elements",
                      spill_counted_text(unmanaged, "document", "documents").text, run->heads,
                      spill_cli_plural(unmanaged, "is", "are"));
    return SPILL_OK;
}

static spill_code_t export_documents(spill_cli_session_t *session, export_run_t *run,
                                     spill_error_t *error)
{
    SPILL_TRY(spill_array_documents(run->array, session->owner, run->options->plain, print_document,
                                    run, error));
    return report_unmanaged(session, run, error);
}

static spill_code_t export_array(spill_cli_session_t *session, spill_error_t *error)
{
    const export_options_t *options = session->invocation->options;
    const spill_definition_t *definition = spill_array_get_definition(session->array);
    SPILL_SCOPED(bson_destroy) bson_t names = BSON_INITIALIZER;
    spill_import_names_append(definition, &names);
    const spill_value_t value = spill_value_from_document(&names);
    SPILL_SCOPED(spill_free_text) char *text = spill_cli_json(&value, true);
    export_run_t run = {.options = options,
                        .heads = definition->collection,
                        .names = text,
                        .bucket = spill_cli_is_bucket(session),
                        .lines = &session->walk.lines,
                        .array = session->array};
    spill_code_t code = options->documents ? export_documents(session, &run, error)
                                           : export_elements(session, &run, error);
    if (code == SPILL_CANCELLED && !spill_cli_interrupted())
        return spill_cli_flush(error);
    if (code == SPILL_OK && session->owner && !run.found)
        return spill_cli_check_owner(session, error);
    return code;
}

static spill_code_t export_arrays(spill_cli_session_t *session, spill_error_t *error)
{
    spill_cli_stop_on_interrupt(session->store);
    spill_cli_stop_without_reader();
    session->walk.lines = 0;
    spill_code_t code = session->owner && spill_cli_is_bucket(session)
                            ? spill_cli_each_window(session, export_array, error)
                            : export_array(session, error);
    if (code != SPILL_CANCELLED || !session->owner || !spill_cli_interrupted())
        return code;
    return spill_fail(error, code,
                      "interrupted after %s: the output ends there; the same command starts again "
                      "with the first element",
                      spill_counted_text(session->walk.lines, "line", "lines").text);
}

static spill_exit_t run_export(const spill_invocation_t *invocation)
{
    const export_options_t *options = invocation->options;
    if (options->plain && !options->documents)
        return spill_cli_usage(invocation, "--plain needs --documents");
    return spill_cli_with_array(invocation, SPILL_CLI_READ, export_arrays);
}

static const spill_option_t EXPORT_OPTIONS[] = {
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
            "..., \"document\": ...}, a head followed by its pages. The line of a head has a "
            "third field, \"definition\", with the names in the documents. Output is streamed: "
            "memory does not grow with the length of an array.\n"
            "\n"
            "On a server, arrays that Spillway does not manage yet (plain arrays, which no sweep, "
            "migration or gateway has adopted) are exported too. Their elements are numbered from "
            "0 on, the oldest first. With --documents they are left out, and their number is "
            "printed on stderr.\n"
            "\n"
            "With --partial, every element that can be read is written. The first and the last "
            "number of each hole are printed on stderr, and the exit code is 3.\n"
            "\n"
            "Examples:\n"
            "  spillway export feeds.db events | zstd > events.ndjson.zst\n"
            "  spillway export feeds.db events alice --relaxed\n"
            "  spillway export feeds.db events --documents --plain |\n"
            "    jq -c 'select(.collection == \"users\") | .document' > users.ndjson",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .walked = "exported",
    .interrupted = "the output ends there; the same command starts again with the first owner",
    .options = EXPORT_OPTIONS,
    .defaults = &EXPORT_DEFAULTS,
    .options_bytes = sizeof EXPORT_DEFAULTS,
    .run = run_export};
