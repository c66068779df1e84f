/* List the windows of an owner, and the pages without a head. */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <spillway/bucket.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- windows --------------------------------------------------------------------------------- */

/* Up to this many windows are searched one by one, from the newest on. */
enum { STEPS_MAX = 8 };

/* A search for windows of an owner. */
typedef struct finding {
    const spill_definition_t *definition;
    const spill_value_t *owner;
    spill_listing_t *listing;
    spill_code_t code; /* of a document that has no window's _id */
    spill_error_t failure;
} finding_t;

/* Is `id` the _id of a document of this window? */
static bool is_in_window(const finding_t *finding, const bson_iter_t *id, const char *window)
{
    spill_value_t owner;
    const char *of;
    int64_t page;
    return spill_mongo_split_id(finding->definition, id, &owner, &of, &page) &&
           spill_value_compare(&owner, finding->owner) == 0 && strcmp(of, window) == 0;
}

/* Add a result {_id: text, document}. A group of documents has no `document`. */
static bool add_window(void *context, const bson_t *document)
{
    finding_t *finding = context;
    bson_iter_t window, id;
    uint32_t length;
    if (!bson_iter_init_find(&window, document, "_id"))
        return true;
    const char *text = BSON_ITER_HOLDS_UTF8(&window) ? bson_iter_utf8(&window, &length) : NULL;
    if (bson_iter_init_find(&id, document, "document") &&
        (!text || !is_in_window(finding, &id, text)))
        finding->code =
            spill_mongo_fail_id(finding->definition->collection, &id, &finding->failure);
    else if (text)
        spill_listing_add_text(finding->listing, text, length);
    return finding->code == SPILL_OK;
}

/* The result of a search: the failure of a document, with the store's place. */
static spill_code_t fail_windows(const spill_mongo_t *store, spill_code_t code,
                                 const spill_error_t *failure, spill_error_t *error)
{
    if (code == SPILL_OK)
        return SPILL_OK;
    if (error)
        *error = *failure;
    return spill_fail_prefix(error, code, "%s", store->place);
}

/* Carry out a search. */
static spill_code_t find_windows(spill_mongo_t *store, const bson_t *pipeline, finding_t *finding,
                                 spill_error_t *error)
{
    SPILL_TRY(spill_mongo_each(store, finding->definition->collection, pipeline, false, add_window,
                               finding, error));
    return fail_windows(store, finding->code, &finding->failure, error);
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
                    BCON_UTF8(window), "document", "$_id", "}", "}");
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
                BCON_UTF8("$" SPILL_STORED_PAGE_WINDOW), "document", "$_id", "}", "}");
    finding_t finding = {
        .definition = definition, .owner = query->windows.owner, .listing = listing};
    spill_code_t code = find_windows(store, &pipeline, &finding, error);
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
        BSON_APPEND_INT32(&match, SPILL_STORED_PAGE_PART, 0);
    bson_append_document_end(&stage, &match);
    bson_append_document_end(&pipeline, &stage);
    append_list(definition, query, &pipeline);
    finding_t finding = {
        .definition = definition, .owner = query->windows.owner, .listing = listing};
    spill_code_t code = find_windows(store, &pipeline, &finding, error);
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
    const spill_definition_t *definition;
    spill_listing_t *listing;
    size_t limit;
    bool all;
    spill_code_t code; /* of a document that has no window's _id */
    spill_error_t failure;
} windows_t;

static bool add_name(void *context, const bson_t *document)
{
    windows_t *windows = context;
    bson_iter_t id;
    spill_value_t owner;
    const char *window;
    int64_t page;
    windows->all = windows->listing->count < windows->limit;
    if (!windows->all || !bson_iter_init_find(&id, document, "_id"))
        return false;
    if (!spill_mongo_split_id(windows->definition, &id, &owner, &window, &page)) {
        windows->code =
            spill_mongo_fail_id(windows->definition->collection, &id, &windows->failure);
        return false;
    }
    SPILL_SCOPED(bson_destroy) bson_t memory = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&memory, &owner, window);
    spill_listing_add_owner(windows->listing, &name);
    return true;
}

spill_code_t spill_mongo_windows_of(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_listing_t *owners, size_t limit,
                                    spill_listing_t *windows, bool *all, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *projection = BCON_NEW("_id", BCON_INT32(1));
    windows_t found = {.definition = definition, .listing = windows, .limit = limit, .all = true};
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
    BSON_APPEND_INT32(&filter, SPILL_STORED_PAGE_PART, 0);
    const spill_mongo_query_t query = {.filter = &filter, .projection = projection};
    SPILL_TRY(spill_mongo_find((spill_mongo_t *)store, definition->collection, &query, false,
                               add_name, &found, error));
    *all = found.all;
    return fail_windows((spill_mongo_t *)store, found.code, &found.failure, error);
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

/* Add documents that have a page's fields, but no page's _id. `example` is one of these _ids. */
static void add_strays(const search_t *search, const bson_t *document)
{
    bson_iter_t count, example;
    spill_orphan_t orphan = {.owner = {.type = BSON_TYPE_NULL}};
    if (search->query->orphans.owner)
        orphan.owner = *search->query->orphans.owner;
    if (!bson_iter_init_find(&count, document, "strays") ||
        !bson_iter_init_find(&example, document, "example"))
        return;
    orphan.strays = spill_iter_int64(&count);
    spill_value_t id = spill_value_from_iter(&example);
    char *json = spill_value_to_json(&id, false);
    snprintf(orphan.example, sizeof orphan.example, "%s", json ? json : "?");
    bson_free(json);
    if (orphan.strays > 0)
        spill_listing_add_orphan(search->listing, &orphan);
}

/*
 * Add a result {_id: owner, incarnations: [{incarnation, pages}, ...], strays, example, documents,
 * managed}.
 */
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
    if (search->query->after_bytes == 0)
        add_strays(search, document);
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
    if (query->orphans.owner || query->after_bytes > 0)
        BSON_APPEND_INT32(&id, "$type", BSON_TYPE_DOCUMENT);
    else
        BSON_APPEND_MINKEY(&id, "$gte");
    bson_append_document_end(&match, &id);
    BCON_APPEND(&match, SPILL_STORED_PAGE_INCARNATION, "{", "$exists", BCON_BOOL(true), "}");
    bson_append_document_end(&stage, &match);
    bson_append_document_end(pipeline, &stage);
}

/* An expression, to be destroyed: the document's owner, if it has the _id of a page; else null. */
static bson_t *owner_of_page(const spill_definition_t *definition, const bson_t *own)
{
    if (spill_schema_of(definition)->has_windows)
        return BCON_NEW("$cond", "[", BCON_DOCUMENT(own), "{", SPILL_STORED_ID_OWNER,
                        "$" SPILL_STORED_PAGE_OWNER, SPILL_STORED_ID_WINDOW,
                        "$" SPILL_STORED_PAGE_WINDOW, "}", BCON_NULL, "]");
    return BCON_NEW("$cond", "[", BCON_DOCUMENT(own), "$" SPILL_STORED_PAGE_OWNER, BCON_NULL, "]");
}

/* An expression, to be destroyed: is the document a page that counts? */
static bson_t *is_counted(const spill_definition_t *definition, const bson_t *own)
{
    char array[SPILL_NAME_SIZE + 1];
    snprintf(array, sizeof array, "$%s", definition->page_array);
    if (spill_schema_of(definition)->appends_to_head)
        return bson_copy(own);
    /* With keep oldest, pages without elements are tombstones, which stay. */
    return BCON_NEW("$and", "[", BCON_DOCUMENT(own), "{", "$gt", "[", "{", "$size", "{", "$cond",
                    "[", "{", "$isArray", BCON_UTF8(array), "}", BCON_UTF8(array), "[", "]", "]",
                    "}", "}", BCON_INT32(0), "]", "}", "]");
}

/*
 * Group by owner and incarnation, and then by owner. Documents that have the fields of a page, but
 * no page's _id, are counted with the owner null.
 */
static void append_groups(const spill_definition_t *definition, bson_t *pipeline)
{
    SPILL_SCOPED(spill_mongo_destroy) bson_t *own = spill_mongo_has_page_id(definition);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *owner = owner_of_page(definition, own);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *counted = is_counted(definition, own);
    BCON_APPEND(pipeline, "1", "{", "$group", "{", "_id", "{", "o", BCON_DOCUMENT(owner),
                "incarnation", "$" SPILL_STORED_PAGE_INCARNATION, "}", "pages", "{", "$sum", "{",
                "$cond", "[", BCON_DOCUMENT(counted), BCON_INT64(1), BCON_INT64(0), "]", "}", "}",
                "strays", "{", "$sum", "{", "$cond", "[", BCON_DOCUMENT(own), BCON_INT64(0),
                BCON_INT64(1), "]", "}", "}", "example", "{", "$max", "{", "$cond", "[",
                BCON_DOCUMENT(own), BCON_NULL, "$_id", "]", "}", "}", "head", "{", "$max", "{",
                "$cond", "[", "{", "$eq", "[", "$" SPILL_STORED_PAGE_PART, BCON_INT32(0), "]", "}",
                "$" SPILL_STORED_PAGE_INCARNATION, BCON_NULL, "]", "}", "}", "}", "}");
    BCON_APPEND(pipeline, "2", "{", "$group", "{", "_id", "$_id.o", "incarnations", "{", "$push",
                "{", "incarnation", "$_id.incarnation", "pages", "$pages", "}", "}", "strays", "{",
                "$sum", "$strays", "}", "example", "{", "$max", "$example", "}", "head", "{",
                "$max", "$head", "}", "}", "}");
}

/*
 * Append `head`: the incarnation of the owner's head, or null; and outside layout bucket what
 * read_now reads. In layout bucket the head is one of the documents. With `strays` keep the
 * documents that have no page's _id. The lookup compares fields: with a variable in an expression
 * some servers would read all heads for each owner.
 */
static void append_heads(const spill_definition_t *definition, bool strays, bson_t *pipeline)
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
    bson_t *project =
        BCON_NEW("incarnations", "{", "$filter", "{", "input", "$incarnations", "as", "one", "cond",
                 "{", "$and", "[", "{", "$gt", "[", "$$one.pages", BCON_INT64(0), "]", "}", "{",
                 "$lt", "[", "$$one.incarnation", "{", "$ifNull", "[", "{", "$max",
                 BCON_UTF8(incarnation), "}", BCON_INT64(INT64_MAX), "]", "}", "]", "}", "]", "}",
                 "}", "}", "strays", BCON_INT32(1), "example", BCON_INT32(1));
    if (!bucket)
        BCON_APPEND(project, "documents", "{", "$size", "$heads", "}", "managed", "{", "$gt", "[",
                    "{", "$ifNull", "[", "{", "$max", BCON_UTF8(incarnation), "}", BCON_INT64(0),
                    "]", "}", BCON_INT64(0), "]", "}");
    BCON_APPEND(pipeline, key[0], "{", "$project", BCON_DOCUMENT(project), "}", key[1], "{",
                "$match", "{", "$or", "[", "{", "incarnations.0", "{", "$exists", BCON_BOOL(true),
                "}", "}", "{", "strays", "{", "$gt", BCON_INT64(strays ? 0 : INT64_MAX), "}", "}",
                "]", "}", "}", key[2], "{", "$sort", "{", "_id", BCON_INT32(1), "}", "}");
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
    append_heads(definition, query->after_bytes == 0, &pipeline);
    SPILL_TRY(spill_mongo_each(mongo, collection, &pipeline, false, add_result, &search, error));
    return search.unordered ? spill_mongo_fail_order(mongo, collection, error) : SPILL_OK;
}
