/* List the windows of an owner, and the pages without a head. */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- windows --------------------------------------------------------------------------------- */

/* Up to this many windows are searched one by one, from the newest on. */
enum { STEPS_MAX = 8 };

static bool add_window(void *context, const bson_t *document)
{
    spill_listing_t *listing = context;
    bson_iter_t window;
    uint32_t length;
    if (!bson_iter_init_find(&window, document, "_id") || !BSON_ITER_HOLDS_UTF8(&window))
        return true;
    const char *text = bson_iter_utf8(&window, &length);
    spill_listing_add_text(listing, text, length);
    return true;
}

static void match_id(const spill_definition_t *definition, const spill_value_t *value,
                     bson_t *match)
{
    char path[SPILL_MONGO_ID_PATH_SIZE];
    bson_t id;
    spill_mongo_id_path(definition, path);
    BSON_APPEND_DOCUMENT_BEGIN(match, path, &id);
    spill_value_append(value, &id, "$eq");
    bson_append_document_end(match, &id);
}

/* List each window once, as {_id: text}: a search by id may find several parts of a window. */
static void append_list(const spill_definition_t *definition, const spill_list_query_t *query,
                        bson_t *pipeline)
{
    char window[SPILL_NAME_SIZE + 1];
    const char *field = definition->window_field;
    int order = query->windows.newest_first ? -1 : 1;
    int64_t limit = (int64_t)query->limit;
    snprintf(window, sizeof window, "$%s", field);
    if (query->windows.id)
        BCON_APPEND(pipeline, "1", "{", "$group", "{", "_id", BCON_UTF8(window), "}", "}", "2", "{",
                    "$sort", "{", "_id", BCON_INT32(order), "}", "}", "3", "{", "$limit",
                    BCON_INT64(limit), "}");
    else
        BCON_APPEND(pipeline, "1", "{", "$sort", "{", field, BCON_INT32(order), "}", "}", "2", "{",
                    "$limit", BCON_INT64(limit), "}", "3", "{", "$project", "{", "_id",
                    BCON_UTF8(window), "}", "}");
}

/* Append a bound on _ids {owner, window, part}; with `behind`, the end of the owner's _ids. */
static void append_bound(bson_t *range, const char *comparison, const spill_value_t *owner,
                         const char *window, bool behind)
{
    bson_t id;
    BSON_APPEND_DOCUMENT_BEGIN(range, comparison, &id);
    spill_value_append(owner, &id, SPILL_STORED_ID_OWNER);
    if (window)
        BSON_APPEND_UTF8(&id, SPILL_STORED_ID_WINDOW, window);
    if (behind)
        BSON_APPEND_MAXKEY(&id, window ? SPILL_STORED_ID_PART : SPILL_STORED_ID_WINDOW);
    bson_append_document_end(range, &id);
}

/*
 * Find the newest window before query->after. It uses only the index of _ids, so the cost does not
 * depend on the number of the owner's documents.
 */
static spill_code_t step_back(spill_mongo_t *store, const spill_definition_t *definition,
                              const spill_list_query_t *query, spill_listing_t *listing,
                              spill_error_t *error)
{
    bson_t pipeline = BSON_INITIALIZER, stage, match, owner, range;
    const char *after = spill_list_after_window(query), *high = after ? after : query->windows.to;
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    if (store->sharded) {
        BSON_APPEND_DOCUMENT_BEGIN(&match, definition->page_owner, &owner);
        spill_value_append(query->windows.owner, &owner, "$eq");
        bson_append_document_end(&match, &owner);
    }
    BSON_APPEND_DOCUMENT_BEGIN(&match, "_id", &range);
    append_bound(&range, "$gt", query->windows.owner, query->windows.from, false);
    append_bound(&range, "$lt", query->windows.owner, high, !after);
    bson_append_document_end(&match, &range);
    bson_append_document_end(&stage, &match);
    bson_append_document_end(&pipeline, &stage);
    BCON_APPEND(&pipeline, "1", "{", "$sort", "{", "_id", BCON_INT32(-1), "}", "}", "2", "{",
                "$limit", BCON_INT64(1), "}", "3", "{", "$project", "{", "_id",
                BCON_UTF8("$" SPILL_STORED_PAGE_WINDOW), "}", "}");
    spill_code_t code = spill_mongo_each(store, definition->collection, &pipeline, false,
                                         add_window, listing, error);
    bson_destroy(&pipeline);
    return code;
}

static spill_code_t walk_back(spill_mongo_t *store, const spill_definition_t *definition,
                              const spill_list_query_t *query, spill_listing_t *listing,
                              spill_error_t *error)
{
    spill_list_query_t next = *query;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t after = SPILL_BUFFER_INIT;
    size_t before = SIZE_MAX;
    while (listing->count < query->limit && listing->count != before) {
        before = listing->count;
        SPILL_TRY(step_back(store, definition, &next, listing, error));
        spill_buffer_clear(&after);
        spill_buffer_append(&after, listing->last.data, listing->last.size);
        next.after = after.data;
        next.after_bytes = after.size;
    }
    return SPILL_OK;
}

/* List many windows in one command, which reads all of the owner's documents. */
static spill_code_t list_windows(spill_mongo_t *store, const spill_definition_t *definition,
                                 const spill_list_query_t *query, spill_listing_t *listing,
                                 spill_error_t *error)
{
    const char *after = spill_list_after_window(query);
    bson_t pipeline = BSON_INITIALIZER, stage, match, owner, window;
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    BSON_APPEND_DOCUMENT_BEGIN(&match, definition->page_owner, &owner);
    spill_value_append(query->windows.owner, &owner, "$eq");
    bson_append_document_end(&match, &owner);
    if (query->windows.from || query->windows.to || after) {
        BSON_APPEND_DOCUMENT_BEGIN(&match, definition->window_field, &window);
        if (query->windows.from)
            BSON_APPEND_UTF8(&window, "$gte", query->windows.from);
        if (query->windows.to)
            BSON_APPEND_UTF8(&window, "$lte", query->windows.to);
        if (after)
            BSON_APPEND_UTF8(&window, query->windows.newest_first ? "$lt" : "$gt", after);
        bson_append_document_end(&match, &window);
    }
    if (query->windows.id)
        match_id(definition, query->windows.id, &match);
    else
        BCON_APPEND(&match, SPILL_STORED_PAGE_PART, BCON_INT32(0), SPILL_STORED_PAGE_INCARNATION,
                    "{", "$exists", BCON_BOOL(true), "}");
    bson_append_document_end(&stage, &match);
    bson_append_document_end(&pipeline, &stage);
    append_list(definition, query, &pipeline);
    spill_code_t code = spill_mongo_each(store, definition->collection, &pipeline, false,
                                         add_window, listing, error);
    bson_destroy(&pipeline);
    return code;
}

spill_code_t spill_mongo_windows(spill_store_t *store, const spill_definition_t *definition,
                                 const spill_binding_t *binding, const spill_list_query_t *query,
                                 spill_listing_t *listing, spill_error_t *error)
{
    (void)binding;
    spill_mongo_t *mongo = (spill_mongo_t *)store;
    bool few = query->windows.newest_first && !query->windows.id && query->limit <= STEPS_MAX;
    return few ? walk_back(mongo, definition, query, listing, error)
               : list_windows(mongo, definition, query, listing, error);
}

/* ---- ... of several owners ------------------------------------------------------------------- */

typedef struct windows {
    spill_listing_t *listing;
    size_t limit;
    bool all;
} windows_t;

static bool add_name(void *context, const bson_t *document)
{
    windows_t *windows = context;
    bson_iter_t id;
    windows->all = windows->listing->count < windows->limit;
    if (!windows->all || !bson_iter_init_find(&id, document, "_id"))
        return false;
    spill_value_t name = spill_value_from_iter(&id);
    spill_listing_add_owner(windows->listing, &name);
    return true;
}

spill_code_t spill_mongo_windows_of(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_listing_t *owners, size_t limit,
                                    spill_listing_t *windows, bool *all, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *projection = BCON_NEW("_id", "{", SPILL_STORED_ID_OWNER, "$" SPILL_STORED_PAGE_OWNER,
                                  SPILL_STORED_ID_WINDOW, "$" SPILL_STORED_PAGE_WINDOW, "}");
    windows_t found = {.listing = windows, .limit = limit, .all = true};
    bson_t of, in;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, definition->page_owner, &of);
    BSON_APPEND_ARRAY_BEGIN(&of, "$in", &in);
    for (size_t i = 0; i < owners->count; i++) {
        char buffer[16];
        const char *key;
        spill_item_t item = spill_listing_item(owners, i);
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_value_append(&item.owner, &in, key);
    }
    bson_append_array_end(&of, &in);
    bson_append_document_end(&filter, &of);
    BCON_APPEND(&filter, SPILL_STORED_PAGE_PART, BCON_INT32(0), SPILL_STORED_PAGE_INCARNATION, "{",
                "$exists", BCON_BOOL(true), "}");
    const spill_mongo_query_t query = {&filter, NULL, projection, 0};
    SPILL_TRY(spill_mongo_find((spill_mongo_t *)store, definition->collection, &query, false,
                               add_name, &found, error));
    *all = found.all;
    return SPILL_OK;
}

/* ---- orphans --------------------------------------------------------------------------------- */

/*
 * List pages without a head in one aggregation: group the pages by owner and incarnation, look up
 * the owners' heads, and return incarnations without a head. So the server reads all pages once,
 * and sends only orphans.
 *
 * Other programs write to these documents, so a missing head does not prove that its owner was
 * dropped. A closed page does not prove it either: a drop may have stopped before it removed the
 * head.
 */

typedef struct search {
    const spill_list_query_t *query;
    spill_listing_t *listing;
    size_t limit;   /* owners that may still be added */
    bool unordered; /* the documents are not in order */
} search_t;

/* ---- ... the answer -------------------------------------------------------------------------- */

static void read_incarnation(const bson_iter_t *iter, spill_orphan_t *orphan)
{
    bson_iter_t field;
    bson_iter_recurse(iter, &field);
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "incarnation") == 0)
            orphan->incarnation = spill_iter_int64(&field);
        else if (strcmp(key, "pages") == 0)
            orphan->pages = spill_iter_int64(&field);
    }
}

/* Find the incarnation that follows `after`; false: there is none. */
static bool next_incarnation(const bson_iter_t *incarnations, int64_t after, spill_orphan_t *next)
{
    bson_iter_t iter;
    bool any = false;
    bson_iter_recurse(incarnations, &iter);
    while (bson_iter_next(&iter)) {
        spill_orphan_t one = {.owner = next->owner, .now = next->now};
        if (!BSON_ITER_HOLDS_DOCUMENT(&iter))
            continue;
        read_incarnation(&iter, &one);
        if (one.incarnation > after && (!any || one.incarnation < next->incarnation))
            *next = one;
        any = any || one.incarnation > after;
    }
    return any;
}

/* documents: how many have the owner's _id; managed: one of them has a head. */
static spill_orphan_owner_t read_now(const bson_t *document)
{
    bson_iter_t documents, managed;
    if (!bson_iter_init_find(&documents, document, "documents") ||
        !BSON_ITER_HOLDS_NUMBER(&documents) || !bson_iter_init_find(&managed, document, "managed"))
        return SPILL_ORPHAN_UNKNOWN;
    if (bson_iter_as_int64(&documents) == 0)
        return SPILL_ORPHAN_NO_DOCUMENT;
    return bson_iter_as_bool(&managed) ? SPILL_ORPHAN_MANAGED : SPILL_ORPHAN_PLAIN;
}

/* Add a result {_id: owner, incarnations: [{incarnation, pages}, ...], documents, managed}. */
static bool add_result(void *context, const bson_t *document)
{
    search_t *search = context;
    const spill_buffer_t *last = &search->listing->last;
    bson_iter_t id, incarnations;
    if (!bson_iter_init_find(&id, document, "_id") ||
        !bson_iter_init_find(&incarnations, document, "incarnations") ||
        !BSON_ITER_HOLDS_ARRAY(&incarnations))
        return true;
    search->unordered = last->size > 0 ? !spill_mongo_follows(last->data, last->size, &id)
                                       : !spill_mongo_follows(search->query->after,
                                                              search->query->after_bytes, &id);
    if (search->unordered)
        return false;
    spill_orphan_t orphan = {.owner = spill_value_from_iter(&id), .now = read_now(document)};
    for (int64_t after = INT64_MIN; next_incarnation(&incarnations, after, &orphan);
         after = orphan.incarnation)
        spill_listing_add_orphan(search->listing, &orphan);
    spill_mongo_set_last(search->listing, &id);
    return --search->limit > 0;
}

/* ---- ... the pipeline ------------------------------------------------------------------------ */

static void append_match(const spill_mongo_t *store, const spill_definition_t *definition,
                         const spill_list_query_t *query, bson_t *pipeline)
{
    bson_t stage, match, id, place;
    bson_iter_t after;
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    if (query->orphans.owner) {
        spill_request_t request = {
            .definition = definition, .owner = query->orphans.owner, .page = 0};
        spill_mongo_document_t page;
        spill_mongo_document_init(&page, store, &request);
        spill_mongo_append_shard(&page, &match);
    }
    BSON_APPEND_DOCUMENT_BEGIN(&match, "_id", &id);
    if (query->orphans.owner) {
        spill_mongo_append_page_ids(definition, query->orphans.owner, &id);
    } else if (query->after_bytes > 0 &&
               bson_init_static(&place, query->after, query->after_bytes) &&
               bson_iter_init(&after, &place) && bson_iter_next(&after)) {
        spill_value_t owner = spill_value_from_iter(&after);
        spill_mongo_append_page_bound(definition, &owner, "$gt", true, &id);
    }
    BSON_APPEND_INT32(&id, "$type", BSON_TYPE_DOCUMENT);
    bson_append_document_end(&match, &id);
    BCON_APPEND(&match, SPILL_STORED_PAGE_INCARNATION, "{", "$exists", BCON_BOOL(true), "}");
    bson_append_document_end(&stage, &match);
    bson_append_document_end(pipeline, &stage);
}

/* Group by owner and incarnation, and then by owner. */
static void append_groups(const spill_definition_t *definition, bson_t *pipeline)
{
    char array[SPILL_NAME_SIZE + 1];
    bool bucket = spill_schema_of(definition)->has_windows;
    snprintf(array, sizeof array, "$%s", definition->page_array);
    bson_t *owner = bucket ? BCON_NEW("o", "{", SPILL_STORED_ID_OWNER, "$" SPILL_STORED_PAGE_OWNER,
                                      SPILL_STORED_ID_WINDOW, "$" SPILL_STORED_PAGE_WINDOW, "}")
                           : BCON_NEW("o", "$" SPILL_STORED_PAGE_OWNER);
    BSON_APPEND_UTF8(owner, "incarnation", "$" SPILL_STORED_PAGE_INCARNATION);
    /* With keep oldest, pages without elements are tombstones, which stay. */
    bson_t *pages =
        !spill_schema_of(definition)->appends_to_head
            ? BCON_NEW("$sum", "{", "$cond", "[", "{", "$gt", "[", "{", "$size", "{", "$cond", "[",
                       "{", "$isArray", BCON_UTF8(array), "}", BCON_UTF8(array), "[", "]", "]", "}",
                       "}", BCON_INT64(0), "]", "}", BCON_INT64(1), BCON_INT64(0), "]", "}")
            : BCON_NEW("$sum", BCON_INT64(1));
    bson_t *head =
        BCON_NEW("$max", "{", "$cond", "[", "{", "$eq", "[", "$" SPILL_STORED_PAGE_PART,
                 BCON_INT32(0), "]", "}", "$" SPILL_STORED_PAGE_INCARNATION, BCON_NULL, "]", "}");
    BCON_APPEND(pipeline, "1", "{", "$group", "{", "_id", BCON_DOCUMENT(owner), "pages",
                BCON_DOCUMENT(pages), "head", BCON_DOCUMENT(head), "}", "}", "2", "{", "$group",
                "{", "_id", "$_id.o", "incarnations", "{", "$push", "{", "incarnation",
                "$_id.incarnation", "pages", "$pages", "}", "}", "head", "{", "$max", "$head", "}",
                "}", "}");
    bson_destroy(owner);
    bson_destroy(pages);
    bson_destroy(head);
}

/*
 * Append `head`: the incarnation of the owner's head, or null; and outside layout bucket what
 * read_now reads. In layout bucket the head is one of
 * the documents. The lookup compares fields: with a variable in an expression some servers would
 * read all heads for each owner.
 */
static void append_heads(const spill_definition_t *definition, bson_t *pipeline)
{
    char path[SPILL_MONGO_PATH_SIZE], incarnation[SPILL_MONGO_PATH_SIZE + 8];
    bool bucket = spill_schema_of(definition)->has_windows;
    if (bucket)
        snprintf(incarnation, sizeof incarnation, "$head");
    else
        snprintf(incarnation, sizeof incarnation, "$heads.%s",
                 spill_bookkeeping_path(definition->array, SPILL_STORED_INCARNATION, path));
    const char *const keys[] = {"3", "4", "5", "6"}, *const *key = keys;
    if (!bucket)
        BCON_APPEND(pipeline, *key++, "{", "$lookup", "{", "from",
                    BCON_UTF8(definition->collection), "localField", "_id", "foreignField", "_id",
                    "as", "heads", "}", "}");
    bson_t *project = BCON_NEW("incarnations", "{", "$filter", "{", "input", "$incarnations", "as",
                               "one", "cond", "{", "$and", "[", "{", "$gt", "[", "$$one.pages",
                               BCON_INT64(0), "]", "}", "{", "$lt", "[", "$$one.incarnation", "{",
                               "$ifNull", "[", "{", "$max", BCON_UTF8(incarnation), "}",
                               BCON_INT64(INT64_MAX), "]", "}", "]", "}", "]", "}", "}", "}");
    if (!bucket)
        BCON_APPEND(project, "documents", "{", "$size", "$heads", "}", "managed", "{", "$gt", "[",
                    "{", "$ifNull", "[", "{", "$max", BCON_UTF8(incarnation), "}", BCON_INT64(0),
                    "]", "}", BCON_INT64(0), "]", "}");
    BCON_APPEND(pipeline, key[0], "{", "$project", BCON_DOCUMENT(project), "}", key[1], "{",
                "$match", "{", "incarnations.0", "{", "$exists", BCON_BOOL(true), "}", "}", "}",
                key[2], "{", "$sort", "{", "_id", BCON_INT32(1), "}", "}");
    bson_destroy(project);
}

spill_code_t spill_mongo_orphans(spill_store_t *store, const spill_definition_t *definition,
                                 const spill_binding_t *binding, const spill_list_query_t *query,
                                 spill_listing_t *listing, spill_error_t *error)
{
    (void)binding;
    spill_mongo_t *mongo = (spill_mongo_t *)store;
    search_t search = {.query = query, .listing = listing, .limit = query->limit};
    const char *collection = spill_schema_of(definition)->has_windows ? definition->collection
                                                                      : definition->page_collection;
    if (spill_schema_of(definition)->is_capped)
        return SPILL_OK;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    append_match(mongo, definition, query, &pipeline);
    append_groups(definition, &pipeline);
    append_heads(definition, &pipeline);
    SPILL_TRY(spill_mongo_each(mongo, collection, &pipeline, false, add_result, &search, error));
    return search.unordered ? spill_mongo_fail_order(mongo, collection, error) : SPILL_OK;
}
