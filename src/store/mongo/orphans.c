/*
 * List pages without a head in one aggregation: group the pages by owner and incarnation, look up
 * the owners' heads, and return incarnations without a head. So the server reads all pages once,
 * and sends only orphans.
 *
 * Other programs write to these documents, so a missing head does not prove that its owner was
 * dropped. A closed page does not prove it either: a drop may have stopped before it removed the
 * head.
 */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "store/render.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct search {
    const spill_list_query_t *query;
    spill_listing_t *listing;
    size_t limit;   /* owners that may still be added */
    bool unordered; /* the documents are not in order */
} search_t;

/* ---- the answer ------------------------------------------------------------------------------ */

static void read_incarnation(const bson_iter_t *iter, spill_orphan_t *orphan)
{
    bson_iter_t field;
    bson_iter_recurse(iter, &field);
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "epoch") == 0)
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
        spill_orphan_t one = {.owner = next->owner};
        if (!BSON_ITER_HOLDS_DOCUMENT(&iter))
            continue;
        read_incarnation(&iter, &one);
        if (one.incarnation > after && (!any || one.incarnation < next->incarnation))
            *next = one;
        any = any || one.incarnation > after;
    }
    return any;
}

/* Add a result {_id: owner, incarnations: [{incarnation, pages}, ...]}. */
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
    spill_orphan_t orphan = {.owner = spill_value_from_iter(&id)};
    for (int64_t after = INT64_MIN; next_incarnation(&incarnations, after, &orphan);
         after = orphan.incarnation)
        spill_listing_add_orphan(search->listing, &orphan);
    spill_mongo_set_last(search->listing, &id);
    return --search->limit > 0;
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

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
    BCON_APPEND(&match, "spill.epoch", "{", "$exists", BCON_BOOL(true), "}");
    bson_append_document_end(&stage, &match);
    bson_append_document_end(pipeline, &stage);
}

/* Group by owner and incarnation, and then by owner. */
static void append_groups(const spill_definition_t *definition, bson_t *pipeline)
{
    char array[SPILL_NAME_SIZE + 1];
    bool bucket = spill_schema_of(definition)->has_windows;
    snprintf(array, sizeof array, "$%s", definition->page_array);
    bson_t *owner = bucket ? BCON_NEW("o", "{", "owner", "$_id.owner", "window", "$_id.window", "}")
                           : BCON_NEW("o", "$_id.owner");
    BSON_APPEND_UTF8(owner, "epoch", "$spill.epoch");
    /* With keep oldest, pages without elements are tombstones, which stay. */
    bson_t *pages =
        !spill_schema_of(definition)->appends_to_head
            ? BCON_NEW("$sum", "{", "$cond", "[", "{", "$gt", "[", "{", "$size", "{", "$cond", "[",
                       "{", "$isArray", BCON_UTF8(array), "}", BCON_UTF8(array), "[", "]", "]", "}",
                       "}", BCON_INT64(0), "]", "}", BCON_INT64(1), BCON_INT64(0), "]", "}")
            : BCON_NEW("$sum", BCON_INT64(1));
    bson_t *head = BCON_NEW("$max", "{", "$cond", "[", "{", "$eq", "[", "$_id.part", BCON_INT32(0),
                            "]", "}", "$spill.epoch", BCON_NULL, "]", "}");
    BCON_APPEND(pipeline, "1", "{", "$group", "{", "_id", BCON_DOCUMENT(owner), "pages",
                BCON_DOCUMENT(pages), "head", BCON_DOCUMENT(head), "}", "}", "2", "{", "$group",
                "{", "_id", "$_id.o", "incarnations", "{", "$push", "{", "epoch", "$_id.epoch",
                "pages", "$pages", "}", "}", "head", "{", "$max", "$head", "}", "}", "}");
    bson_destroy(owner);
    bson_destroy(pages);
    bson_destroy(head);
}

/*
 * Append `head`: the incarnation of the owner's head, or null. In layout bucket the head is one of
 * the documents. The lookup compares fields: with a variable in an expression some servers would
 * read all heads for each owner.
 */
static void append_heads(const spill_definition_t *definition, bson_t *pipeline)
{
    char incarnation[SPILL_NAME_SIZE + 32];
    bool bucket = spill_schema_of(definition)->has_windows;
    if (bucket)
        snprintf(incarnation, sizeof incarnation, "$head");
    else
        snprintf(incarnation, sizeof incarnation, "$heads.spill.%s.epoch", definition->array);
    const char *const keys[] = {"3", "4", "5", "6"}, *const *key = keys;
    if (!bucket)
        BCON_APPEND(pipeline, *key++, "{", "$lookup", "{", "from",
                    BCON_UTF8(definition->collection), "localField", "_id", "foreignField", "_id",
                    "as", "heads", "}", "}");
    BCON_APPEND(pipeline, key[0], "{", "$project", "{", "incarnations", "{", "$filter", "{",
                "input", "$incarnations", "as", "one", "cond", "{", "$and", "[", "{", "$gt", "[",
                "$$one.pages", BCON_INT64(0), "]", "}", "{", "$lt", "[", "$$one.epoch", "{",
                "$ifNull", "[", "{", "$max", BCON_UTF8(incarnation), "}", BCON_INT64(INT64_MAX),
                "]", "}", "]", "}", "]", "}", "}", "}", "}", "}", key[1], "{", "$match", "{",
                "incarnations.0", "{", "$exists", BCON_BOOL(true), "}", "}", "}", key[2], "{",
                "$sort", "{", "_id", BCON_INT32(1), "}", "}");
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
