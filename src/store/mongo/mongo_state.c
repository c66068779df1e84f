/* The state of a document: the projection that asks the server for it, and reading the answer. */
#include "store/mongo/mongo_document.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- projection ------------------------------------------------------------------------------ */

/* The documents that may have a field. */
typedef enum holder {
    EVERY,
    HEAD,       /* a head */
    PAGE,       /* a page */
    OLDEST,     /* a head that keeps the oldest */
    SEALABLE,   /* any document but a head that keeps the newest */
    TOP_N,      /* a head that keeps the top-N */
    REFERENCED, /* a head of referenced elements */
} holder_t;

typedef struct number {
    const char *name;
    holder_t of;
} number_t;

/*
 * The field of the computed numbers. A server computes it within each element of an array that the
 * document has under that name, so it is a name that no application gives.
 */
#define COMPUTED "spillwayState"

static const number_t numbers[] = {
    {SPILL_STORED_INCARNATION, EVERY}, {SPILL_STORED_REV, EVERY},
    {SPILL_STORED_FIRST, EVERY},       {SPILL_STORED_OP_COUNT, EVERY},
    {SPILL_STORED_DELETED, EVERY},     {SPILL_STORED_DELETED_RUNS, TOP_N},
    {SPILL_STORED_PAGES, HEAD},        {SPILL_STORED_WATERMARK, HEAD},
    {SPILL_STORED_REMOVED, HEAD},      {SPILL_STORED_INTENT, HEAD},
    {SPILL_STORED_TOTAL, OLDEST},      {SPILL_STORED_SUM, REFERENCED},
    {SPILL_STORED_SOURCE_REV, PAGE},   {SPILL_STORED_LEASE, PAGE},
    {SPILL_STORED_SEALED, SEALABLE},   {SPILL_STORED_CLOSED, SEALABLE}};

static bool may_hold(const spill_mongo_document_t *document, holder_t of)
{
    const spill_schema_t *schema = spill_schema_of(document->request->definition);
    switch (of) {
    case HEAD:
        return document->head;
    case PAGE:
        return !document->head;
    case OLDEST:
        return document->head && !schema->appends_to_head;
    case SEALABLE:
        return !document->head || !schema->appends_to_head;
    case TOP_N:
        return schema->keeps_top_n;
    case REFERENCED:
        return document->referenced && document->head;
    default:
        return true;
    }
}

/*
 * Some servers copy what a size measures, so only two of the sizes include the elements. Referenced
 * elements: the array is the journal, which is in `spill`.
 */
static void project_sizes(const spill_mongo_document_t *document, bson_t *projection)
{
    char array[SPILL_MONGO_PATH_SIZE + 1];
    snprintf(array, sizeof array, "$%s", document->array);
    BCON_APPEND(projection, "arrayBytes", "{", "$bsonSize", "{", "a", BCON_UTF8(array), "}", "}");
    if (!document->head)
        return;
    BCON_APPEND(projection, "rootBytes", "{", "$bsonSize", "$$ROOT", "}");
    spill_mongo_append_own_size(document->request->definition, document->referenced, "ownBytes",
                                projection);
}

static bool is_sized(const spill_request_t *request)
{
    return request->kind != SPILL_REQUEST_READ || !request->read.unsized;
}

/*
 * Paths: *live becomes an expression of "stats:int" if a document around the array's own fields is
 * another value.
 */
static void require_documents(const spill_mongo_document_t *document, bson_t **live)
{
    char parents[SPILL_MONGO_PARENTS_MAX][SPILL_NAME_SIZE];
    for (size_t i = spill_mongo_own_parents(document->request->definition, parents); i > 0; i--) {
        char ref[SPILL_NAME_SIZE + 1], text[SPILL_NAME_SIZE + 1];
        snprintf(ref, sizeof ref, "$%s", parents[i - 1]);
        snprintf(text, sizeof text, "%s:", parents[i - 1]);
        bson_t *checked =
            BCON_NEW("$cond", "[", "{", "$in", "[", "{", "$type", BCON_UTF8(ref), "}", "[",
                     "missing", "object", "]", "]", "}", BCON_DOCUMENT(*live), "{", "$concat", "[",
                     BCON_UTF8(text), "{", "$type", BCON_UTF8(ref), "}", "]", "}", "]");
        bson_destroy(*live);
        *live = checked;
    }
}

/*
 * Append `live`: the array's length, or the name of the field's type if it is not an array. If the
 * answer has the field itself, the length is enough, which a server computes faster: it fails if
 * the field is not an array, and null is in the answer.
 */
static void project_live(const spill_mongo_document_t *document, bool finds, bson_t *projection)
{
    char array[SPILL_MONGO_PATH_SIZE + 1];
    snprintf(array, sizeof array, "$%s", document->array);
    if (finds && spill_mongo_is_sliced(document)) {
        spill_mongo_append_length(array, "live", projection);
        return;
    }
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *live = BCON_NEW("$cond", "[", "{", "$isArray", BCON_UTF8(array), "}", "{", "$size",
                            BCON_UTF8(array), "}", "{", "$type", BCON_UTF8(array), "}", "]");
    if (document->head && !document->referenced)
        require_documents(document, &live);
    BSON_APPEND_DOCUMENT(projection, "live", live);
}

/*
 * Append COMPUTED: the fields that the document may have. A server computes each, even an absent
 * one. A `find` returns them where they are, in `spill`, so that the server computes nothing.
 */
static void project_numbers(const spill_mongo_document_t *document, const number_t *list,
                            size_t count, bool finds, bson_t *projection)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t state;
    BSON_APPEND_INT32(projection, "_id", 0);
    for (size_t i = 0; finds && i < count; i++)
        if (may_hold(document, list[i].of))
            BSON_APPEND_INT32(projection, spill_mongo_path(document, list[i].name, path), 1);
    if (finds)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(projection, COMPUTED, &state);
    for (size_t i = 0; i < count; i++)
        if (may_hold(document, list[i].of))
            BSON_APPEND_UTF8(&state, list[i].name, spill_mongo_ref(document, list[i].name, path));
    bson_append_document_end(projection, &state);
}

/* The fields of a page's owner and of a window, which are compared with the _id. */
#define PAGE_OWNER "spillwayOwner"
#define PAGE_WINDOW "spillwayWindow"

static bool shows_owner(const spill_mongo_document_t *document)
{
    return (!document->head && !document->referenced) || spill_mongo_is_bucket(document);
}

static void project_owner(const spill_mongo_document_t *document, bson_t *projection)
{
    const spill_definition_t *definition = document->request->definition;
    char field[SPILL_NAME_SIZE + 1];
    snprintf(field, sizeof field, "$%s", definition->page_owner);
    BSON_APPEND_UTF8(projection, PAGE_OWNER, field);
    snprintf(field, sizeof field, "$%s", definition->window_field);
    if (spill_mongo_is_bucket(document))
        BSON_APPEND_UTF8(projection, PAGE_WINDOW, field);
}

void spill_mongo_project_state(const spill_mongo_document_t *document, bool ops, bool finds,
                               bson_t *projection)
{
    char path[SPILL_MONGO_PATH_SIZE];
    project_numbers(document, numbers, sizeof numbers / sizeof *numbers, finds, projection);
    if (spill_mongo_is_bucket(document))
        BSON_APPEND_UTF8(projection, SPILL_STORED_WINDOW_STATS,
                         spill_mongo_ref(document, SPILL_STORED_WINDOW_STATS, path));
    if (!document->head)
        BSON_APPEND_UTF8(projection, SPILL_MONGO_PAGE_ID, "$_id");
    if (document->referenced && !document->head) {
        spill_mongo_project_referenced(projection);
        return;
    }
    if (shows_owner(document))
        project_owner(document, projection);
    project_live(document, finds, projection);
    if (ops)
        BSON_APPEND_UTF8(projection, SPILL_STORED_OPS,
                         spill_mongo_ref(document, SPILL_STORED_OPS, path));
    spill_mongo_project_top(document, projection);
    if (is_sized(document->request))
        project_sizes(document, projection);
}

bool spill_mongo_is_unprojected(const bson_t *answer)
{
    return bson_has_field(answer, "_id");
}

void spill_mongo_project_end(const spill_mongo_document_t *document, bson_t *projection)
{
    static const number_t end[] = {{SPILL_STORED_INCARNATION, EVERY},
                                   {SPILL_STORED_FIRST, EVERY},
                                   {SPILL_STORED_OP_COUNT, EVERY},
                                   {SPILL_STORED_DELETED, EVERY},
                                   {SPILL_STORED_DELETED_RUNS, TOP_N}};
    project_numbers(document, end, sizeof end / sizeof *end, false, projection);
    /* After an append the field is an array. */
    char array[SPILL_NAME_SIZE + 1];
    snprintf(array, sizeof array, "$%s", document->array);
    spill_mongo_append_length(array, "live", projection);
}

/* ---- reading a projection -------------------------------------------------------------------- */

typedef struct parser {
    const spill_mongo_document_t *document;
    spill_code_t code;
    spill_error_t *error;
} parser_t;

static void fail_field(parser_t *parser, const char *field, const char *expected)
{
    if (parser->code == SPILL_OK)
        parser->code =
            spill_fail(parser->error, SPILL_CORRUPT, "%s: %s.%s is not %s",
                       parser->document->collection, parser->document->spill, field, expected);
}

/* The sum of the counts of all operations in a document does not overflow. */
#define OP_NUMBER_MAX (INT64_C(1) << 40)

/* Read a number of any type. One out of range is an error; it returns 0. */
static int64_t number_of(parser_t *parser, const bson_iter_t *iter, const char *field)
{
    int64_t number = spill_mongo_whole_number(iter);
    if (number >= 0)
        return number;
    fail_field(parser, field, "a whole number from 0");
    return 0;
}

static void read_deleted(parser_t *parser, const bson_iter_t *field, spill_seqs_t *deleted)
{
    bson_iter_t iter;
    if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &iter)) {
        fail_field(parser, SPILL_STORED_DELETED, "an array");
        return;
    }
    for (int64_t end = 0; bson_iter_next(&iter);) {
        int64_t seq = number_of(parser, &iter, SPILL_STORED_DELETED);
        if (seq < end)
            fail_field(parser, SPILL_STORED_DELETED, "a list of ascending numbers");
        spill_seqs_insert(deleted, seq);
        end = seq + 1;
    }
}

static void read_gaps(parser_t *parser, const bson_iter_t *field, spill_seqs_t *deleted)
{
    bson_iter_t iter;
    if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &iter)) {
        fail_field(parser, SPILL_STORED_DELETED_RUNS, "an array");
        return;
    }
    for (int64_t end = -1; bson_iter_next(&iter);) {
        int64_t first = number_of(parser, &iter, SPILL_STORED_DELETED_RUNS);
        int64_t count =
            bson_iter_next(&iter) ? number_of(parser, &iter, SPILL_STORED_DELETED_RUNS) : -1;
        if (count < 1 || first <= end) /* guards compare the list: adjacent runs are one */
            fail_field(parser, SPILL_STORED_DELETED_RUNS, "a list of ascending runs of numbers");
        else
            spill_seqs_insert_run(deleted, first, first + count);
        end = first + (count > 0 ? count : 0);
    }
}

static void read_sum(parser_t *parser, const bson_iter_t *field, spill_sum_t *sum)
{
    spill_value_t value = spill_value_from_iter(field);
    if (!spill_sum_read(&value, sum))
        fail_field(parser, SPILL_STORED_SUM, "a sum");
}

static void read_intent(parser_t *parser, const bson_iter_t *field, spill_state_t *state)
{
    bson_iter_t iter;
    if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &iter)) {
        fail_field(parser, SPILL_STORED_INTENT, "a document");
        return;
    }
    state->intent = true;
    while (bson_iter_next(&iter)) {
        if (strcmp(bson_iter_key(&iter), SPILL_STORED_INTENT_SEQ) == 0)
            state->intent_seq =
                number_of(parser, &iter, SPILL_STORED_INTENT "." SPILL_STORED_INTENT_SEQ);
        else if (strcmp(bson_iter_key(&iter), SPILL_STORED_INTENT_PAGE) == 0)
            state->intent_page =
                number_of(parser, &iter, SPILL_STORED_INTENT "." SPILL_STORED_INTENT_PAGE);
        else if (strcmp(bson_iter_key(&iter), SPILL_STORED_SOURCE_REV) == 0)
            state->intent_source_rev =
                number_of(parser, &iter, SPILL_STORED_INTENT "." SPILL_STORED_SOURCE_REV);
        else if (strcmp(bson_iter_key(&iter), SPILL_STORED_INTENT_VALUE) == 0)
            read_sum(parser, &iter, &state->intent_value);
    }
    state->intent_edit = state->intent_source_rev > 0;
}

static void read_field(parser_t *parser, const bson_iter_t *iter, spill_state_t *state)
{
    const char *key = bson_iter_key(iter);
    if (strcmp(key, SPILL_STORED_DELETED) == 0) {
        read_deleted(parser, iter, &state->deleted);
    } else if (strcmp(key, SPILL_STORED_DELETED_RUNS) == 0) {
        read_gaps(parser, iter, &state->deleted);
    } else if (strcmp(key, SPILL_STORED_SUM) == 0) {
        read_sum(parser, iter, &state->sum);
    } else if (strcmp(key, SPILL_STORED_INTENT) == 0) {
        read_intent(parser, iter, state);
    } else if (strcmp(key, SPILL_STORED_SEALED) == 0) {
        state->sealed = bson_iter_as_bool(iter);
    } else if (strcmp(key, SPILL_STORED_CLOSED) == 0) {
        state->closed = bson_iter_as_bool(iter);
    } else {
        struct {
            const char *name;
            int64_t *to;
        } fields[] = {{SPILL_STORED_INCARNATION, &state->incarnation},
                      {SPILL_STORED_REV, &state->rev},
                      {SPILL_STORED_FIRST, &state->first},
                      {SPILL_STORED_OP_COUNT, &state->op_count},
                      {SPILL_STORED_PAGES, &state->pages},
                      {SPILL_STORED_WATERMARK, &state->watermark},
                      {SPILL_STORED_TOTAL, &state->total},
                      {SPILL_STORED_REMOVED, &state->removed},
                      {SPILL_STORED_SOURCE_REV, &state->source_rev},
                      {SPILL_STORED_LEASE, &state->lease}};
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (strcmp(key, fields[i].name) == 0)
                *fields[i].to = number_of(parser, iter, key);
    }
}

/* Read a number that the server computed; 0 if it is missing or null. */
static int64_t find_number(parser_t *parser, const bson_t *document, const char *name)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, name) || BSON_ITER_HOLDS_NULL(&iter))
        return 0;
    return number_of(parser, &iter, name);
}

/* The server measured {a: array}; a missing array adds nothing to it. */
static void read_sizes(parser_t *parser, const bson_t *projected, spill_state_t *state)
{
    enum { EMPTY_DOCUMENT = 5 };
    const spill_mongo_document_t *document = parser->document;
    int64_t array = find_number(parser, projected, "arrayBytes");
    state->live_bytes =
        state->live > 0 ? array - SPILL_MONGO_EMPTY_ARRAY - spill_array_framing(state->live) : 0;
    state->fields_bytes = find_number(parser, projected, "rootBytes");
    if (state->fields_bytes == 0)
        return;
    state->fields_bytes += EMPTY_DOCUMENT - find_number(parser, projected, "ownBytes");
    if (array > EMPTY_DOCUMENT && !document->referenced)
        state->fields_bytes -=
            array - EMPTY_DOCUMENT + (int64_t)strlen(spill_path_leaf(document->array)) - 1;
}

/*
 * A document lists the newest operation first. Each has its number of elements and the number of
 * elements after it, so its first number follows from the document's end.
 */
static void read_ops(parser_t *parser, const bson_t *projected, const spill_state_t *state,
                     spill_ops_t *ops)
{
    bson_iter_t iter, entries;
    if (!bson_iter_init_find(&iter, projected, SPILL_STORED_OPS))
        return;
    if (!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &entries)) {
        fail_field(parser, SPILL_STORED_OPS, "an array");
        return;
    }
    spill_ops_t newest_first = {0};
    int64_t end = spill_state_end(state);
    int64_t ordinal = state->op_count;
    while (bson_iter_next(&entries)) {
        spill_op_entry_t entry = {0};
        int64_t after = 0;
        bson_iter_t field;
        if (!BSON_ITER_HOLDS_DOCUMENT(&entries) || !bson_iter_recurse(&entries, &field)) {
            fail_field(parser, SPILL_STORED_OPS, "an array of documents");
            break;
        }
        while (bson_iter_next(&field)) {
            const char *key = bson_iter_key(&field);
            if (strcmp(key, SPILL_STORED_OP_ELEMENTS) == 0)
                entry.count = number_of(parser, &field, "ops.count");
            else if (strcmp(key, SPILL_STORED_OP_AFTER) == 0)
                after = number_of(parser, &field, "ops.after");
            if (strcmp(key, SPILL_STORED_OP_ID) != 0 || !BSON_ITER_HOLDS_BINARY(&field))
                continue;
            uint32_t size;
            const uint8_t *id;
            bson_iter_binary(&field, NULL, &size, &id);
            entry.id_bytes = (uint8_t)(size < SPILL_OP_ID_MAX ? size : SPILL_OP_ID_MAX);
            memcpy(entry.id, id, entry.id_bytes);
        }
        if (entry.count > OP_NUMBER_MAX || after > OP_NUMBER_MAX) {
            fail_field(parser, SPILL_STORED_OPS, "a list of counts");
            break;
        }
        end -= entry.count + after;
        entry.seq = end;
        entry.ordinal = --ordinal;
        if (entry.id_bytes > 0)
            spill_ops_push(&newest_first, &entry, SIZE_MAX);
    }
    for (size_t i = newest_first.count; i > 0; i--)
        spill_ops_push(ops, &newest_first.entries[i - 1], SIZE_MAX);
    spill_ops_release(&newest_first);
}

/* The name of the type of a field that is not an array; else NULL. See project_live. */
static const char *wrong_type(const spill_mongo_document_t *document, const bson_t *projected,
                              const bson_iter_t *live)
{
    bson_iter_t array;
    if (BSON_ITER_HOLDS_UTF8(live))
        return bson_iter_utf8(live, NULL);
    bool null = spill_mongo_is_sliced(document) &&
                spill_path_find(projected, document->array, &array) && BSON_ITER_HOLDS_NULL(&array);
    return null ? "null" : NULL;
}

/* `type` is "PARENT:TYPE": the value at this parent of one of the definition's fields. */
static spill_code_t fail_blocked(const spill_mongo_document_t *document, const char *type,
                                 bool present, spill_error_t *error)
{
    const spill_definition_t *definition = document->request->definition;
    const char *own[SPILL_OWN_FIELDS_MAX];
    const char *colon = strrchr(type, ':');
    const size_t length = (size_t)(colon - type);
    spill_obstruction_t found = {.collection = document->collection,
                                 .path = definition->array,
                                 .type = strcmp(colon + 1, "array") == 0 ? BSON_TYPE_ARRAY
                                                                         : BSON_TYPE_EOD,
                                 .has_head = present};
    size_t count = spill_own_fields(definition, own);
    for (size_t i = 0; i < count && found.length == 0; i++) {
        if (strncmp(own[i], type, length) != 0 || own[i][length] != '.')
            continue;
        found.path = own[i];
        found.length = length;
    }
    return spill_path_refuse(&found, error);
}

/* If the array's field is not an array, the document is unmanaged or the field was overwritten. */
static spill_code_t read_live(parser_t *parser, const bson_t *projected, spill_state_t *state,
                              spill_error_t *error)
{
    const spill_mongo_document_t *document = parser->document;
    bson_iter_t iter;
    state->live = 0;
    if (!bson_iter_init_find(&iter, projected, "live"))
        return SPILL_OK;
    /* The elements are where they are in the document; the array around them is, too. */
    spill_obstruction_t found = {
        .collection = document->collection, .path = document->array, .has_head = state->present};
    if (spill_mongo_is_sliced(document) &&
        spill_path_blocked(projected, document->array, &found.length, &found.type))
        return spill_path_refuse(&found, error);
    const char *type = wrong_type(document, projected, &iter);
    if (type) {
        if (strcmp(type, "missing") == 0)
            return SPILL_OK;
        if (strchr(type, ':') != NULL)
            return fail_blocked(document, type, state->present, error);
        return spill_fail(error, state->present ? SPILL_CORRUPT : SPILL_REFUSED,
                          "%s: field '%s' is of type %s, not an array; %s", document->collection,
                          document->array, type,
                          state->present ? "another program has written to it"
                                         : "unset it before you append");
    }
    state->live = number_of(parser, &iter, "live");
    const spill_request_t *request = document->request;
    bool shown = request->kind == SPILL_REQUEST_READ && request->read.unmanaged;
    if (!state->present && document->head && state->live > 0 && !shown)
        return spill_unmanaged_refuse(document->request->definition, state->live, error);
    return SPILL_OK;
}

/* Set the page from the document's _id; in other stores the request has it. */
static void read_bucket(parser_t *parser, const bson_t *projected, spill_state_t *state)
{
    enum { PART_BYTES = 1 + 5 + 4 };
    bson_iter_t iter;
    if (state->fields_bytes > 0)
        state->fields_bytes -= PART_BYTES;
    if (!state->present || !bson_iter_init_find(&iter, projected, SPILL_STORED_WINDOW_STATS))
        return;
    spill_value_t window_stats = spill_value_from_iter(&iter);
    if (!spill_window_stats_read(&window_stats, &state->window_stats))
        fail_field(parser, SPILL_STORED_WINDOW_STATS, "what statistics are made of");
}

/* Read the number of a page from its _id. */
static int64_t read_page(parser_t *parser, const bson_t *projected)
{
    const spill_mongo_document_t *document = parser->document;
    bson_iter_t id;
    int64_t page;
    if (document->head || !bson_iter_init_find(&id, projected, SPILL_MONGO_PAGE_ID))
        return 0;
    if (spill_mongo_read_id(document->request, &id, &page) && page >= 0)
        return page;
    if (parser->code == SPILL_OK)
        parser->code = spill_mongo_fail_id(document->collection, &id, parser->error);
    return 0;
}

/*
 * Some reads find a page by its _id, others by its owner field, and by the field of its window. If
 * they name different ones, the others would miss its elements.
 */
static void require_owner(parser_t *parser, const bson_t *projected)
{
    const spill_mongo_document_t *document = parser->document;
    const spill_definition_t *definition = document->request->definition;
    bson_iter_t iter;
    spill_value_t own = *document->request->owner;
    const char *window = NULL, *wrong = NULL;
    if (spill_mongo_is_bucket(document))
        spill_window_split(document->request->owner, &own, &window);
    bool found = bson_iter_init_find(&iter, projected, PAGE_OWNER);
    spill_value_t owner = found ? spill_value_from_iter(&iter) : (spill_value_t){0};
    if (!found || spill_value_compare(&owner, &own) != 0)
        wrong = definition->page_owner;
    else if (window &&
             !(bson_iter_init_find(&iter, projected, PAGE_WINDOW) && BSON_ITER_HOLDS_UTF8(&iter) &&
               strcmp(bson_iter_utf8(&iter, NULL), window) == 0))
        wrong = definition->window_field;
    if (wrong && parser->code == SPILL_OK)
        parser->code = spill_fail(parser->error, SPILL_CORRUPT,
                                  "%s: the document's '%s' is not the one of its _id",
                                  document->collection, wrong);
}

/*
 * Every writer stores these numbers. A missing one would be read as 0, and no guard would match, so
 * each change of the document would be tried again and again. A document that has some of them but
 * no incarnation is managed, too: as absent, its elements would be lost without an error. A
 * document with the _id of a page or of a window belongs to no one else: as absent, no step could
 * put another one in its place.
 */
static void require_numbers(parser_t *parser, const bson_iter_t *fields, int64_t incarnation)
{
    bool own = !parser->document->head || spill_mongo_is_bucket(parser->document);
    static const number_t required[] = {{SPILL_STORED_REV, EVERY},
                                        {SPILL_STORED_FIRST, EVERY},
                                        {SPILL_STORED_OP_COUNT, EVERY},
                                        {SPILL_STORED_PAGES, HEAD},
                                        {SPILL_STORED_TOTAL, OLDEST}};
    const char *missing = NULL;
    bool any = incarnation > 0;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        bson_iter_t field, iter = fields ? *fields : (bson_iter_t){0};
        bool found = fields && BSON_ITER_HOLDS_DOCUMENT(&iter) &&
                     bson_iter_recurse(&iter, &field) && bson_iter_find(&field, required[i].name);
        any = any || found;
        if (!found && may_hold(parser->document, required[i].of))
            missing = required[i].name;
    }
    if ((any || own) && incarnation < 1)
        fail_field(parser, SPILL_STORED_INCARNATION, "a whole number from 1");
    else if (any && missing)
        fail_field(parser, missing, "there");
}

bool spill_mongo_find_state(const spill_mongo_document_t *document, const bson_t *projected,
                            bson_iter_t *state)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, projected, SPILL_STORED_ROOT))
        return bson_iter_init(&iter, projected) &&
               bson_iter_find_descendant(&iter, document->spill, state);
    return bson_iter_init_find(state, projected, COMPUTED) && BSON_ITER_HOLDS_DOCUMENT(state);
}

spill_code_t spill_mongo_state(const spill_mongo_document_t *document, const bson_t *projected,
                               bool whole, spill_state_t *state, spill_ops_t *ops,
                               spill_error_t *error)
{
    parser_t parser = {.document = document, .error = error};
    bson_iter_t iter, fields;
    spill_state_clear(state);
    bool found = spill_mongo_find_state(document, projected, &iter);
    if (found && BSON_ITER_HOLDS_ARRAY(&iter))
        fail_field(&parser, SPILL_STORED_INCARNATION, "a whole number from 0");
    if (found && BSON_ITER_HOLDS_DOCUMENT(&iter) && bson_iter_recurse(&iter, &fields))
        while (bson_iter_next(&fields))
            read_field(&parser, &fields, state);
    if (state->pages > 0 && !spill_schema_of(document->request->definition)->has_pages)
        fail_field(&parser, SPILL_STORED_PAGES, "0, though the layout has no pages");
    state->present = state->incarnation > 0;
    if (whole)
        require_numbers(&parser, found ? &iter : NULL, state->incarnation);
    if (parser.code != SPILL_OK && !state->present)
        return parser.code;
    state->gaps = state->present && spill_schema_of(document->request->definition)->keeps_top_n;
    spill_code_t code = read_live(&parser, projected, state, error);
    if (code == SPILL_OK)
        code = spill_mongo_decode_top(document, projected, state, error);
    if (code != SPILL_OK)
        return code;
    state->page = read_page(&parser, projected);
    if (whole && state->present && state->live > 0 && shows_owner(document))
        require_owner(&parser, projected);
    if (is_sized(document->request))
        read_sizes(&parser, projected, state);
    if (spill_mongo_is_bucket(document))
        read_bucket(&parser, projected, state);
    if (parser.code == SPILL_OK && ops)
        read_ops(&parser, projected, state, ops);
    return parser.code;
}
