/* Documents of layout bucket: their statistics, and the listing of an owner's windows. */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/window.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- statistics ------------------------------------------------------------------------------ */

void spill_mongo_set_statistics(const spill_mongo_document_t *document, const spill_state_t *after,
                                bool literal, bson_t *set)
{
    const spill_definition_t *definition = document->request->definition;
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t stats = BSON_INITIALIZER, window_stats = BSON_INITIALIZER;
    spill_window_stats_render(&after->window_stats, after->live, definition, &stats);
    spill_window_stats_append(&after->window_stats, "tally", &window_stats);
    spill_mongo_set_document(definition->stats_field, &stats, literal, set);
    spill_mongo_set_document(spill_mongo_path(document, "tally", path), &window_stats, literal,
                             set);
    bson_destroy(&stats);
    bson_destroy(&window_stats);
}

/* ---- reads ----------------------------------------------------------------------------------- */

void spill_mongo_bucket_fields(const spill_mongo_document_t *document, bson_t **fields)
{
    bson_t *without = bson_new();
    spill_value_append(document->request->owner, without, "_id");
    bson_copy_to_excluding_noinit(*fields, without, "_id", NULL);
    bson_destroy(*fields);
    *fields = without;
}

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
    spill_value_append(owner, &id, "owner");
    if (window)
        BSON_APPEND_UTF8(&id, "window", window);
    if (behind)
        BSON_APPEND_MAXKEY(&id, window ? "part" : "window");
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
                BCON_UTF8("$_id.window"), "}", "}");
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
        BCON_APPEND(&match, "_id.part", BCON_INT32(0), "spill.epoch", "{", "$exists",
                    BCON_BOOL(true), "}");
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
