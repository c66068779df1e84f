/* explain: the documents that store an owner's elements. */
#include "cli/cli.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "cli/draw.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "layout/document_limits.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

typedef struct explain_options {
    bool documents;
    bool all;
} explain_options_t;

static const explain_options_t DEFAULTS = {0};

/* When a document is shown, its array is shortened to this many elements at each end. */
#define SHOWN_AT_START 2
#define SHOWN_AT_END 1

/* If there are more than twice this many pages, only the first and last ones are drawn. */
#define DRAWN_AT_EACH_END 8

typedef struct explain {
    const spill_cli_session_t *session;
    const spill_definition_t *definition;
    int64_t pages;                  /* of the owner */
    int64_t next_page;              /* the number of the next document; -1: the head */
    int64_t watermark;              /* the head's: numbers below it were trimmed */
    char window[SPILL_WINDOW_SIZE]; /* of a bucket, or "" */
    spill_cli_stretch_t stretch;
} explain_t;

static spill_counted_text_t elements_text(int64_t count)
{
    return spill_counted_text(count, "element", "elements");
}

/* ---- reading a document ---------------------------------------------------------------------- */

static int64_t array_length(const bson_iter_t *array)
{
    bson_iter_t iter;
    int64_t length = 0;
    if (BSON_ITER_HOLDS_ARRAY(array) && bson_iter_recurse(array, &iter))
        while (bson_iter_next(&iter))
            length++;
    return length;
}

/* The sum of the runs of deleted numbers, stored as pairs of first number and length. */
static int64_t sum_of_gaps(const bson_iter_t *array)
{
    bson_iter_t iter;
    int64_t sum = 0, place = 0;
    if (BSON_ITER_HOLDS_ARRAY(array) && bson_iter_recurse(array, &iter))
        for (; bson_iter_next(&iter); place++)
            sum += place % 2 == 1 ? bson_iter_as_int64(&iter) : 0;
    return sum;
}

/* The page's stored number, because a trim may have deleted pages before it; else a running count.
 */
static int64_t page_number(const explain_t *explain, const bson_t *document)
{
    bson_iter_t iter;
    bool counted =
        explain->next_page < 0 || spill_schema_of(explain->definition)->has_referenced_elements;
    return !counted && spill_path_find(document, SPILL_STORED_PAGE_NUMBER, &iter)
               ? bson_iter_as_int64(&iter)
               : explain->next_page;
}

/* A head has bookkeeping for each of its arrays; a page and a bucket's document have one. */
static void put_place_path(const explain_t *explain, bool head, const char *field,
                           char path[SPILL_BOOKKEEPING_PATH_SIZE])
{
    if (head && !spill_schema_of(explain->definition)->has_windows)
        spill_bookkeeping_path(explain->definition->array, field, path);
    else
        snprintf(path, SPILL_BOOKKEEPING_PATH_SIZE, SPILL_STORED_ROOT ".%s", field);
}

static int64_t watermark_of(const explain_t *explain, const bson_t *head)
{
    char low[SPILL_BOOKKEEPING_PATH_SIZE];
    bson_iter_t iter;
    put_place_path(explain, true, SPILL_STORED_WATERMARK, low);
    return spill_path_find(head, low, &iter) ? bson_iter_as_int64(&iter) : 0;
}

/* Read one document's numbers from its bookkeeping. */
static void read_place(const explain_t *explain, bool head, const bson_t *document,
                       spill_cli_place_t *place)
{
    const spill_definition_t *definition = explain->definition;
    char first[SPILL_BOOKKEEPING_PATH_SIZE], gaps[SPILL_BOOKKEEPING_PATH_SIZE];
    char gone[SPILL_BOOKKEEPING_PATH_SIZE], journal[SPILL_BOOKKEEPING_PATH_SIZE];
    bool referenced = spill_schema_of(definition)->has_referenced_elements;
    bson_iter_t iter;
    put_place_path(explain, head, SPILL_STORED_FIRST, first);
    put_place_path(explain, head, SPILL_STORED_DELETED_RUNS, gaps);
    put_place_path(explain, head, SPILL_STORED_DELETED, gone);
    put_place_path(explain, head, SPILL_STORED_JOURNAL, journal);
    place->first = spill_path_find(document, first, &iter) ? bson_iter_as_int64(&iter) : 0;
    if (referenced && !head)
        place->elements = bson_has_field(document, definition->page_owner);
    else if (referenced ? spill_path_find(document, journal, &iter)
                        : spill_path_find(document,
                                          head ? definition->array : definition->page_array, &iter))
        place->elements = array_length(&iter);
    place->end = place->first + place->elements;
    if (spill_path_find(document, gone, &iter))
        place->end += array_length(&iter);
    if (spill_path_find(document, gaps, &iter))
        place->end += sum_of_gaps(&iter);
    place->slots =
        spill_schema_of(definition)->is_capped ? place->elements : place->end - place->first;
    place->bytes = document->len;
    place->limits = spill_document_limits(definition, &definition->bounds, head);
    if (referenced && !head)
        place->limits.slots_max = 1;
}

/* Read a head's summary; *known: the elements that it could show. False: no summary. */
static bool read_top(const explain_t *explain, const bson_t *document, spill_cli_place_t *top,
                     int64_t *known)
{
    const spill_definition_t *definition = explain->definition;
    char noted[SPILL_BOOKKEEPING_PATH_SIZE], shown[2 * SPILL_NAME_SIZE];
    bson_iter_t iter;
    if (!spill_schema_of(definition)->has_top)
        return false;
    spill_bookkeeping_path(definition->array, SPILL_STORED_TOP, noted);
    snprintf(shown, sizeof shown, "%s.%s", definition->array, definition->top_field);
    *known = spill_path_find(document, noted, &iter) ? array_length(&iter) : 0;
    if (spill_path_find(document, shown, &iter)) {
        top->elements = array_length(&iter);
        top->bytes = spill_value_from_iter(&iter).size_bytes;
    }
    top->limits = (spill_limits_t){.slots_max = INT64_MAX, .bytes_max = spill_top_room(definition)};
    return true;
}

/* ---- printing -------------------------------------------------------------------------------- */

typedef struct place_line {
    const spill_cli_place_t *place;
    const char *window; /* in a bucket, where part 0 is page -1; else "" */
    int64_t page;
    const spill_cli_place_t *top; /* the summary of a head, or NULL */
    int64_t known;
} place_line_t;

#define PLACE(type, member, name) SPILL_FIELD(type, spill_cli_place_t, member, name)
static const spill_field_t collection_fields[] = {PLACE(TEXT, collection, "collection")};
static const spill_field_t place_fields[] = {
    PLACE(INT64, first, "first"),       PLACE(INT64, end, "end"),
    PLACE(INT64, elements, "elements"), PLACE(INT64, limits.slots_max, "elementsMax"),
    PLACE(INT64, bytes, "bytes"),       PLACE(INT64, limits.bytes_max, "bytesMax")};
static const spill_field_t top_fields[] = {PLACE(INT64, elements, "topShown"),
                                           PLACE(INT64, bytes, "topBytes"),
                                           PLACE(INT64, limits.bytes_max, "topBytesMax")};
static const spill_record_t collection_record =
    SPILL_RECORD("collection", spill_cli_place_t, collection_fields);
static const spill_record_t place_record = SPILL_RECORD("place", spill_cli_place_t, place_fields);
static const spill_record_t top_record = SPILL_RECORD("top", spill_cli_place_t, top_fields);

static bool has_top(const void *record)
{
    return ((const place_line_t *)record)->top != NULL;
}

#define LINE(type, member, name, ...) SPILL_FIELD(type, place_line_t, member, name, __VA_ARGS__)
static const spill_field_t line_fields[] = {
    LINE(FIELDS, place, "place", .of = &collection_record),
    LINE(TEXT, window, "window", .flags = SPILL_FIELD_SPARSE),
    LINE(INT64, page, "page", .flags = 0),
    LINE(FIELDS, place, "place", .of = &place_record),
    LINE(INT64, known, "top", .when = has_top),
    LINE(FIELDS, top, "top", .of = &top_record)};
static const spill_record_t line_record = SPILL_RECORD("line", place_line_t, line_fields);

/* Report whether the page is in the middle of many: without --all only a sum shows these. */
static bool is_left_out(const explain_t *explain, int64_t page)
{
    const explain_options_t *options = explain->session->invocation->options;
    return !options->all && explain->pages > 2 * DRAWN_AT_EACH_END && page >= DRAWN_AT_EACH_END &&
           page < explain->pages - DRAWN_AT_EACH_END;
}

static void show_place(explain_t *explain, const char *collection, int64_t page,
                       const bson_t *document)
{
    char name[32] = "head";
    bool referenced = page >= 0 && spill_schema_of(explain->definition)->has_referenced_elements;
    spill_cli_place_t place = {.name = name, .collection = collection};
    spill_cli_place_t top = {.name = "top", .collection = collection};
    int64_t known = 0;
    read_place(explain, page < 0, document, &place);
    place.watermark = explain->watermark;
    bool shows_top = page < 0 && read_top(explain, document, &top, &known);
    int64_t number = referenced ? place.first : page;
    if (spill_schema_of(explain->definition)->has_windows)
        snprintf(name, sizeof name, "part %" PRId64, page + 1);
    else if (page >= 0)
        snprintf(name, sizeof name, referenced ? "%" PRId64 : "page %" PRId64, number);
    if (explain->session->invocation->json) {
        const place_line_t line = {&place, explain->window, number, shows_top ? &top : NULL, known};
        spill_cli_print_record(&line_record, &line);
    } else if (is_left_out(explain, page)) {
        spill_cli_stretch_add(&explain->stretch, &place);
    } else {
        if (page == explain->pages - DRAWN_AT_EACH_END)
            spill_cli_draw_stretch(&explain->stretch);
        spill_cli_draw_place(&place);
        if (shows_top)
            spill_cli_draw_top(&top, known);
    }
}

/* Copy the document with its array shortened to a few elements and the number left out. */
static void shorten_array(const bson_t *document, const char *array, bson_t *shortened)
{
    bson_iter_t iter;
    bson_t inner, child;
    size_t part = strcspn(array, ".");
    bson_init(shortened);
    bson_iter_init(&iter, document);
    while (bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        spill_value_t value = spill_value_from_iter(&iter);
        bool around = array[part] == '.' && strlen(key) == part && strncmp(key, array, part) == 0;
        if (around && spill_inner_document(&iter, &inner)) {
            shorten_array(&inner, array + part + 1, &child);
            BSON_APPEND_DOCUMENT(shortened, key, &child);
            bson_destroy(&child);
            continue;
        }
        int64_t length = strcmp(key, array) == 0 ? array_length(&iter) : 0;
        if (length <= SHOWN_AT_START + SHOWN_AT_END + 1) {
            spill_value_append(&value, shortened, key);
            continue;
        }
        bson_t shown;
        bson_iter_t element;
        bson_append_array_begin(shortened, key, -1, &shown);
        bson_iter_recurse(&iter, &element);
        for (int64_t i = 0; bson_iter_next(&element); i++) {
            value = spill_value_from_iter(&element);
            if (i < SHOWN_AT_START || i >= length - SHOWN_AT_END) {
                spill_value_append(&value, &shown, bson_iter_key(&element));
            } else if (i == SHOWN_AT_START) {
                char text[64];
                snprintf(text, sizeof text, "... %" PRId64 " more ...",
                         length - SHOWN_AT_START - SHOWN_AT_END);
                bson_append_utf8(&shown, bson_iter_key(&element), -1, text, -1);
            }
        }
        bson_append_array_end(shortened, &shown);
    }
}

static void show_document(const explain_t *explain, const char *collection, const char *array,
                          const bson_t *document)
{
    bson_t shortened;
    shorten_array(document, array, &shortened);
    if (!explain->session->invocation->json)
        spill_cli_print("%s ", collection);
    spill_cli_print_document(&shortened, false);
    bson_destroy(&shortened);
}

static bool visit_document(void *context, const char *collection, const bson_t *document)
{
    explain_t *explain = context;
    const explain_options_t *options = explain->session->invocation->options;
    const spill_definition_t *definition = explain->definition;
    bool removed = spill_schema_of(definition)->has_referenced_elements &&
                   explain->next_page >= 0 && !bson_has_field(document, definition->page_owner);
    if (removed && !options->documents)
        return true;
    int64_t page = page_number(explain, document);
    explain->next_page = page + 1;
    if (page < 0)
        explain->watermark = watermark_of(explain, document);
    if (options->documents)
        show_document(explain, collection, page < 0 ? definition->array : definition->page_array,
                      document);
    else
        show_place(explain, collection, page, document);
    return !ferror(stdout);
}

static void print_costs(const spill_definition_t *definition, const spill_count_t *count)
{
    const spill_bounds_t *bounds = &definition->bounds;
    bool newest = spill_schema_of(definition)->appends_to_head;
    if (spill_schema_of(definition)->has_referenced_elements) {
        printf("append: the head, one operation; when %" PRId64 " %s in it, each is "
               "written to another document (one operation each, and one on the head)\n",
               bounds->threshold,
               spill_cli_plural(bounds->threshold, "element waits", "elements wait"));
        puts("a page by cursor: the head, and one operation for all of its documents");
        puts("count and average: the head");
        if (spill_schema_of(definition)->has_top)
            spill_cli_print("the %" PRId64 " %s%s: the head\n", definition->top_count,
                            definition->sort_field[0] != '\0' ? "highest by " : "newest",
                            definition->sort_field);
        return;
    }
    if (!spill_schema_of(definition)->has_pages) {
        bool top_n = spill_schema_of(definition)->keeps_top_n;
        printf("append: the head, one operation%s; past %s or %" PRId64
               " bytes its %s elements are dropped\n",
               top_n ? " (on a server a read and a write)" : "",
               elements_text(bounds->threshold).text, bounds->head_bytes_max,
               top_n ? "lowest ranking" : "oldest");
        puts("any page: the head, one document");
        return;
    }
    if (newest) {
        printf("append: the head, one operation; past %s or %" PRId64
               " bytes its oldest run spills into page %" PRId64 " (three operations)\n",
               elements_text(bounds->threshold + bounds->page_capacity).text,
               bounds->head_bytes_max, count->pages);
        int64_t most = spill_head_limits(definition, bounds).slots_max;
        printf("head: at most %" PRId64 " elements: %" PRId64 " (--threshold), a page of %" PRId64
               " that the next spill moves, and %" PRId64 " more that may arrive while it does\n",
               most, bounds->threshold, bounds->page_capacity,
               most - bounds->threshold - bounds->page_capacity);
        puts("newest page: the head, one document");
    } else if (count->pages == 0) {
        printf("append: the head, one operation, until it holds %s or %" PRId64 " bytes\n",
               elements_text(bounds->threshold).text, bounds->head_bytes_max);
        puts("newest page: the head, one document");
    } else {
        printf("append: page %" PRId64 ", the tail, one operation, until it holds %s or %" PRId64
               " bytes\n",
               count->pages - 1, elements_text(bounds->page_capacity).text, bounds->page_bytes_max);
        printf("newest page: the head and page %" PRId64 ", two documents\n", count->pages - 1);
    }
    puts("a page by cursor: the head and the page document that holds it, wherever it starts");
}

/* Report whether to print lines for people, not documents. */
static bool is_text(const spill_cli_session_t *session)
{
    const explain_options_t *options = session->invocation->options;
    return !session->invocation->json && !options->documents;
}

static explain_t explain_of(const spill_cli_session_t *session)
{
    return (explain_t){.session = session,
                       .definition = spill_array_get_definition(session->array),
                       .next_page = -1,
                       .stretch = SPILL_CLI_STRETCH_INIT};
}

static spill_code_t show_documents(explain_t *explain, spill_error_t *error)
{
    const spill_cli_session_t *session = explain->session;
    spill_code_t code = spill_array_documents(session->array, session->owner, false, visit_document,
                                              explain, error);
    return code == SPILL_CANCELLED ? spill_cli_flush(error) : code;
}

static spill_code_t explain_owner(spill_cli_session_t *session, spill_error_t *error)
{
    explain_t explain = explain_of(session);
    spill_count_t count;
    SPILL_TRY(spill_array_count(session->array, session->owner, &count, error));
    if (!count.exists)
        return spill_cli_no_owner(session, error);
    explain.pages = count.pages;
    if (is_text(session)) {
        spill_cli_print_value(session->owner, false);
        printf(": %" PRId64 " %s, %" PRId64 " in the head, %" PRId64
               " %s; the next sequence number is %" PRId64 "\n",
               count.count, spill_cli_plural(count.count, "element", "elements"), count.head,
               count.pages, spill_cli_plural(count.pages, "page", "pages"), count.next);
    }
    SPILL_TRY(show_documents(&explain, error));
    if (is_text(session))
        print_costs(explain.definition, &count);
    return SPILL_OK;
}

/* A line for the window, then its parts. */
static spill_code_t explain_window(spill_cli_session_t *session, spill_error_t *error)
{
    explain_t explain = explain_of(session);
    spill_value_t owner;
    spill_count_t count;
    SPILL_TRY(spill_array_count(session->array, session->owner, &count, error));
    if (!count.exists || !spill_bucket_split(session->owner, &owner, explain.window))
        return SPILL_OK;
    explain.pages = count.pages;
    if (is_text(session))
        printf("%s: %" PRId64 " %s in %" PRId64 " %s; the next sequence number is %" PRId64 "\n",
               explain.window, count.count, spill_cli_plural(count.count, "element", "elements"),
               count.pages + 1, spill_cli_plural(count.pages + 1, "part", "parts"), count.next);
    return show_documents(&explain, error);
}

static spill_code_t explain_any(spill_cli_session_t *session, spill_error_t *error)
{
    SPILL_TRY(spill_cli_check_readable(session, error));
    if (!spill_cli_is_bucket(session))
        return explain_owner(session, error);
    SPILL_TRY(spill_cli_each_window(session, explain_window, error));
    if (is_text(session))
        puts("append: the last part of the element's window, one operation; a window: its parts");
    return SPILL_OK;
}

static spill_exit_t run_explain(const spill_invocation_t *invocation)
{
    return spill_cli_with_array(invocation, SPILL_CLI_READ, explain_any);
}

static const spill_option_t OPTIONS[] = {
    {"documents", NULL, SPILL_OPTION_FLAG, offsetof(explain_options_t, documents),
     "Show the documents themselves, with their arrays shortened"},
    {"all", NULL, SPILL_OPTION_FLAG, offsetof(explain_options_t, all),
     "Draw every page, however many there are"},
    {0}};

const spill_command_t spill_command_explain = {
    .name = "explain",
    .arguments = "STORE NAME OWNER",
    .arguments_min = 3,
    .arguments_max = 3,
    .summary = "Show which documents store an owner's elements",
    .text = "Draws the head and each page with its sequence numbers, [first..end), "
            "and how full it is, by elements or by bytes, whichever bound is nearer. Also prints "
            "which documents an append and a page read use. If there are many pages, the middle "
            "ones are summed up. With --json, prints one document per line; the head is page "
            "-1.\n"
            "\n"
            "With layout bucket: each window of the owner, and its parts.\n"
            "\n"
            "Examples:\n"
            "  spillway explain feeds.db events alice\n"
            "  spillway explain feeds.db events alice --documents",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_explain};
