/* read: a page of an owner's elements, and the cursor for the next one. */
#include "cli/bucket.h"

#include "util/error.h"

#include <inttypes.h>

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
    if (slice->more && !invocation->quiet)
        fprintf(stderr, "next: %s--limit %" PRId64 " --%s %" PRId64 "\n",
                given->oldest ? "--oldest " : "", given->limit, given->oldest ? "after" : "before",
                slice->next);
    return SPILL_OK;
}

static spill_exit_t run_read(const spill_invocation_t *invocation)
{
    return spill_cli_with_array(invocation, SPILL_CLI_READ, read_page);
}

static const spill_option_t OPTIONS[] = {
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

static const read_options_t DEFAULTS = {.limit = 20, .before = INT64_MAX, .after = INT64_MAX};

const spill_command_t spill_command_read = {
    .name = "read",
    .arguments = "STORE NAME OWNER",
    .arguments_min = 3,
    .arguments_max = 3,
    .summary = "Read a page of elements, newest first",
    .text =
        "A line is the sequence number, a tab, and the element as relaxed Extended JSON; "
        "with --json it is {\"seq\": n, \"element\": ...}. If elements remain, the "
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
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_read};
