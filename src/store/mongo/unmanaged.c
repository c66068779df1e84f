/*
 * Unmanaged arrays: a program that does not know Spillway keeps them in a definition's place. ADOPT
 * adds bookkeeping to the document. UNMANAGE puts the pages' elements before its own and removes
 * the bookkeeping. Each is one update, and allows concurrent pushes.
 */
#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- ADOPT, ADOPT_SPLIT ---------------------------------------------------------------------- */

/* Append a new head's bookkeeping; `first`: the number of slots that were cut. */
static void append_bookkeeping(const spill_mongo_document_t *document, int64_t incarnation,
                               int64_t first, int64_t pages, bson_t *spill)
{
    const spill_request_t *request = document->request;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{SPILL_STORED_INCARNATION, incarnation},
                   {SPILL_STORED_REV, incarnation + (pages > 0 ? 1 : 0)},
                   {SPILL_STORED_FIRST, first},
                   {SPILL_STORED_OP_COUNT, 0},
                   {SPILL_STORED_PAGES, pages},
                   {SPILL_STORED_WATERMARK, 0},
                   {SPILL_STORED_REMOVED, 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        BSON_APPEND_INT64(spill, numbers[i].name, numbers[i].value);
    if (!spill_schema_of(request->definition)->appends_to_head)
        BSON_APPEND_INT64(spill, SPILL_STORED_TOTAL, 0);
    spill_mongo_append_ops(request, SPILL_STORED_OPS, spill);
    spill_mongo_append_open(document, incarnation, SPILL_STORED_OPEN, spill);
}

int64_t spill_mongo_bookkeeping_bytes(const spill_request_t *request, int64_t pages)
{
    bson_t spill = BSON_INITIALIZER;
    spill_mongo_t nowhere = {0};
    spill_mongo_document_t document;
    spill_mongo_document_init(&document, &nowhere, request);
    append_bookkeeping(&document, 1, 0, pages, &spill);
    if (document.count[0] != '\0')
        BSON_APPEND_BOOL(&spill, SPILL_STORED_COUNTED, true);
    int64_t bytes = (int64_t)spill.len;
    bson_destroy(&spill);
    return bytes;
}

/*
 * Set the bookkeeping, as an expression. `counted` records whether the application kept a count,
 * which then stays when the array is unmanaged again.
 */
static void set_bookkeeping(const spill_mongo_document_t *document, int64_t incarnation,
                            int64_t first, int64_t pages, bson_t *set)
{
    char count[SPILL_NAME_SIZE + 1];
    bson_t expression, parts, literal, spill;
    bson_append_document_begin(set, document->spill, -1, &expression);
    BSON_APPEND_ARRAY_BEGIN(&expression, "$mergeObjects", &parts);
    BSON_APPEND_DOCUMENT_BEGIN(&parts, "0", &literal);
    BSON_APPEND_DOCUMENT_BEGIN(&literal, "$literal", &spill);
    append_bookkeeping(document, incarnation, first, pages, &spill);
    bson_append_document_end(&literal, &spill);
    bson_append_document_end(&parts, &literal);
    snprintf(count, sizeof count, "$%s", document->count);
    if (document->count[0] != '\0')
        BCON_APPEND(&parts, "1", "{", SPILL_STORED_COUNTED, "{", "$ne", "[", "{", "$type",
                    BCON_UTF8(count), "}", "missing", "]", "}", "}");
    bson_append_array_end(&expression, &parts);
    bson_append_document_end(set, &expression);
}

/* Set the count field: the elements in the document, and those that were cut. */
static void set_count(const spill_mongo_document_t *document, int64_t first, bson_t *set)
{
    char array[SPILL_NAME_SIZE + 1];
    snprintf(array, sizeof array, "$%s", document->array);
    if (document->count[0] != '\0')
        BCON_APPEND(set, document->count, "{", "$toInt", "{", "$add", "[", "{", "$size",
                    BCON_UTF8(array), "}", BCON_INT64(first), "]", "}", "}");
}

/*
 * Append the guard as operands "0" to "4" of an $and. The array has no bookkeeping, not even
 * without its incarnation: that head is damaged, and has pages. No field of the application may be
 * overwritten: the overflow and pages fields are absent, and `spill` is absent or a document. The
 * array has more than `least` elements. The guard is one expression, because a server may unpack
 * the document again for each field in a filter.
 */
static void append_adopt_guard(const spill_mongo_document_t *document, int64_t least, bson_t *all)
{
    const spill_definition_t *definition = document->request->definition;
    char incarnation[SPILL_MONGO_PATH_SIZE], rev[SPILL_MONGO_PATH_SIZE];
    const char *absent[] = {definition->overflow_field, definition->pages_field};
    bson_t *live = spill_mongo_live(document);
    BCON_APPEND(all, "0", "{", "$eq", "[", "[", "{", "$type",
                BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_INCARNATION, incarnation)), "}",
                "{", "$type", BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_REV, rev)), "}", "]",
                "[", "missing", "missing", "]", "]", "}", "1", "{", "$in", "[", "{", "$type",
                "$" SPILL_STORED_ROOT, "}", "[", "missing", "object", "]", "]", "}", "2", "{",
                "$gt", "[", BCON_DOCUMENT(live), BCON_INT64(least), "]", "}");
    bson_destroy(live);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        char field[SPILL_NAME_SIZE + 1];
        snprintf(field, sizeof field, "$%s", absent[i]);
        if (absent[i][0] != '\0')
            BCON_APPEND(all, i == 0 ? "3" : "4", "{", "$eq", "[", "{", "$type", BCON_UTF8(field),
                        "}", "missing", "]", "}");
    }
}

/*
 * The filter, with the guard of time, by the server's clock at its start. `cuts`: also the run's.
 * The comparison with $$NOW is alone in an $or: if the collection has another index, the DocumentDB
 * engine tries to use an index for comparisons below $and, and then has no $$NOW.
 */
static void make_filter(const spill_mongo_document_t *document, bool cuts, bson_t *filter)
{
    const spill_request_t *request = document->request;
    bson_t expression, all;
    spill_mongo_select(document, filter);
    spill_mongo_append_viable(request->definition, filter);
    BSON_APPEND_DOCUMENT_BEGIN(filter, "$expr", &expression);
    BSON_APPEND_ARRAY_BEGIN(&expression, "$and", &all);
    append_adopt_guard(document, cuts ? (int64_t)request->adopt.run->count : 0, &all);
    if (request->adopt.until > 0)
        BCON_APPEND(&all, "5", "{", "$or", "[", "{", "$lt", "[", "$$NOW",
                    BCON_DATE_TIME(request->adopt.until / 1000), "]", "}", "]", "}");
    if (cuts)
        spill_mongo_append_same_run(document, 6, &all);
    bson_append_array_end(&expression, &all);
    bson_append_document_end(filter, &expression);
}

/* Cut the array in a stage before the others: the document is full, so no stage may enlarge it. */
static void append_cut_stage(const spill_mongo_document_t *document, const char *key,
                             bson_t *pipeline)
{
    bson_t stage, set;
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, key, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$set", &set);
    spill_mongo_append_without(document, 0, (int64_t)document->request->adopt.run->count, &set);
    bson_append_document_end(&stage, &set);
    bson_append_document_end(pipeline, &stage);
}

static void make_pipeline(const spill_mongo_document_t *document, bool cuts, int64_t incarnation,
                          bson_t *pipeline)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    int64_t pages = cuts ? 1 + request->adopt.more_pages : 0;
    bson_t stage, set;
    bson_init(pipeline);
    if (cuts)
        append_cut_stage(document, "0", pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, cuts ? "1" : "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$set", &set);
    set_bookkeeping(document, incarnation, request->adopt.slots, pages, &set);
    set_count(document, request->adopt.slots, &set);
    if (cuts && definition->overflow_field[0] != '\0')
        bson_append_bool(&set, definition->overflow_field, -1, true);
    if (cuts)
        spill_append_count(&set, definition->pages_field, pages);
    bson_append_document_end(&stage, &set);
    bson_append_document_end(pipeline, &stage);
}

/* The time limit on the server. */
static uint32_t max_time_ms(const spill_request_t *request)
{
    return (uint32_t)(request->adopt.run_us / 1000);
}

/* Update, and return the result of a READ in the answer of the update. */
static spill_code_t modify_and_read(spill_mongo_t *store, const spill_mongo_document_t *document,
                                    const bson_t *filter, const bson_t *pipeline,
                                    spill_response_t *response, bool *done, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t fields = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t after = BSON_INITIALIZER;
    spill_request_t read = spill_request_shown(document->request);
    spill_mongo_document_t shown = *document;
    shown.request = &read;
    spill_mongo_project_read(&shown, false, &fields);
    SPILL_TRY(spill_mongo_modify_within(store, document->collection, filter, pipeline,
                                        max_time_ms(document->request), &fields, &after, done,
                                        error));
    if (!*done || spill_mongo_is_unprojected(&after))
        return SPILL_OK;
    SPILL_TRY(
        spill_mongo_decode_reply(&shown, &after, &response->state, &response->run, NULL, error));
    response->shows_read = response->state.present;
    return SPILL_OK;
}

/* An ADOPT gets a later incarnation if needed. An ADOPT_SPLIT cannot, because its pages have their
 * incarnation already: it is refused. */
spill_code_t spill_mongo_adopt(spill_mongo_t *store, const spill_request_t *request,
                               spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    int64_t incarnation;
    bool done = false, cuts = request->kind == SPILL_REQUEST_ADOPT_SPLIT;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    spill_mongo_document_init(&document, store, request);
    SPILL_TRY(spill_mongo_date(store, request, &incarnation, error));
    if (cuts && incarnation != request->incarnation)
        return SPILL_OK;
    make_filter(&document, cuts, &filter);
    make_pipeline(&document, cuts, incarnation, &pipeline);
    if (request->adopt.shown == 0)
        SPILL_TRY(spill_mongo_modify_within(store, document.collection, &filter, &pipeline,
                                            max_time_ms(request), NULL, NULL, &done, error));
    else
        SPILL_TRY(modify_and_read(store, &document, &filter, &pipeline, response, &done, error));
    response->outcome = done ? SPILL_DONE : SPILL_REFUSED_GUARD;
    return SPILL_OK;
}

/* ---- UNMANAGE ------------------------------------------------------------------------------- */

/* Set the array: the pages' elements, then the head's at the time of the update. */
static void set_array(const spill_mongo_document_t *document, bson_t *set)
{
    static const spill_run_t none = {0};
    const spill_request_t *request = document->request;
    char array[SPILL_NAME_SIZE + 1];
    snprintf(array, sizeof array, "$%s", document->array);
    bson_t older = BSON_INITIALIZER;
    spill_unmanaged_append(request->definition, "$literal", request->unmanage.run, &none, &older);
    if (spill_grows_at_front(request->definition))
        BCON_APPEND(set, document->array, "{", "$concatArrays", "[", BCON_UTF8(array),
                    BCON_DOCUMENT(&older), "]", "}");
    else
        BCON_APPEND(set, document->array, "{", "$concatArrays", "[", BCON_DOCUMENT(&older),
                    BCON_UTF8(array), "]", "}");
    bson_destroy(&older);
}

/* If the application kept a count, set it to the count of the whole array; else remove it. */
static void set_own_count(const spill_mongo_document_t *document, bson_t *set)
{
    char counted[SPILL_MONGO_PATH_SIZE], array[SPILL_NAME_SIZE + 1];
    if (document->count[0] == '\0')
        return;
    snprintf(array, sizeof array, "$%s", document->array);
    BCON_APPEND(set, document->count, "{", "$cond", "[",
                BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_COUNTED, counted)), "{", "$add",
                "[", "{", "$size", BCON_UTF8(array), "}",
                BCON_INT32((int32_t)document->request->unmanage.run->count), "]", "}", "$$REMOVE",
                "]", "}");
}

/* Remove the bookkeeping first: a document that was full has no room for it and all elements. */
static void unmanage_pipeline(const spill_mongo_document_t *document, bson_t *pipeline)
{
    const char *own[SPILL_OWN_FIELDS_MAX];
    size_t count = spill_own_fields(document->request->definition, own);
    const char *const keys[] = {"0", "1", "2", "3"}, *const *key = keys;
    uint32_t fields = 0;
    bson_t stage, set = BSON_INITIALIZER, unset;
    bson_init(pipeline);
    set_own_count(document, &set);
    if (!bson_empty(&set)) {
        BCON_APPEND(pipeline, *key, "{", "$set", BCON_DOCUMENT(&set), "}");
        key++;
    }
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, key[0], &stage);
    BSON_APPEND_ARRAY_BEGIN(&stage, "$unset", &unset);
    BSON_APPEND_UTF8(&unset, "0", document->spill);
    for (size_t i = 0; i < count; i++) {
        char buffer[16];
        const char *place;
        if (strcmp(own[i], document->array) == 0 || strcmp(own[i], document->count) == 0)
            continue;
        bson_uint32_to_string(++fields, &place, buffer, sizeof buffer);
        BSON_APPEND_UTF8(&unset, place, own[i]);
    }
    bson_append_array_end(&stage, &unset);
    bson_append_document_end(pipeline, &stage);
    spill_mongo_append_without_spill(key[1], pipeline);
    bson_reinit(&set);
    set_array(document, &set);
    BCON_APPEND(pipeline, key[2], "{", "$set", BCON_DOCUMENT(&set), "}");
    bson_destroy(&set);
}

spill_code_t spill_mongo_unmanage(spill_mongo_t *store, const spill_request_t *request,
                                  spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    char incarnation[SPILL_MONGO_PATH_SIZE], rev[SPILL_MONGO_PATH_SIZE];
    char pages[SPILL_MONGO_PATH_SIZE], intent[SPILL_MONGO_PATH_SIZE];
    bool done = false;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    spill_mongo_document_init(&document, store, request);
    SPILL_TRY(spill_mongo_raise_dropped_rev(store, request->rev, error));
    spill_mongo_select(&document, &filter);
    spill_mongo_append_viable(request->definition, &filter);
    BCON_APPEND(&filter, spill_mongo_path(&document, SPILL_STORED_INCARNATION, incarnation),
                BCON_INT64(request->incarnation),
                spill_mongo_path(&document, SPILL_STORED_REV, rev), BCON_INT64(request->rev),
                spill_mongo_path(&document, SPILL_STORED_PAGES, pages),
                BCON_INT64(request->unmanage.pages),
                spill_mongo_path(&document, SPILL_STORED_INTENT, intent), "{", "$exists",
                BCON_BOOL(false), "}");
    unmanage_pipeline(&document, &pipeline);
    spill_code_t code = spill_mongo_modify(store, document.collection, &filter, &pipeline, NULL,
                                           NULL, &done, error);
    response->outcome = done ? SPILL_DONE : SPILL_REFUSED_GUARD;
    return code == SPILL_TOO_BIG ? SPILL_OK : code; /* refused: it would exceed the limit */
}
