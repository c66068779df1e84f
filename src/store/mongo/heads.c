/* Heads: their incarnations; making, updating and dropping them. */
#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>

/* ---- incarnations ---------------------------------------------------------------------------- */

/*
 * A new head has a later incarnation than any dropped head, whatever the clocks of clients say. The
 * rev of {_id: "dropped"} is raised before a head is dropped.
 */
spill_code_t spill_mongo_date(spill_mongo_t *store, const spill_request_t *request,
                              int64_t *incarnation, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t record = BSON_INITIALIZER;
    bool found;
    bson_iter_t rev;
    *incarnation = request->incarnation;
    BCON_APPEND(&pipeline, "0", "{", "$match", "{", "_id", "dropped", "}", "}");
    SPILL_TRY(
        spill_mongo_first(store, SPILL_MONGO_DROP_RECORDS, &pipeline, &record, &found, error));
    if (found && bson_iter_init_find(&rev, &record, SPILL_STORED_REV) &&
        spill_iter_int64(&rev) >= *incarnation)
        *incarnation = spill_iter_int64(&rev) + 1;
    return SPILL_OK;
}

spill_code_t spill_mongo_raise_dropped_rev(spill_mongo_t *store, int64_t rev, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    BCON_APPEND(&filter, "_id", "dropped");
    BCON_APPEND(&update, "$max", "{", SPILL_STORED_REV, BCON_INT64(rev), "}");
    bool done = false;
    while (!done) /* two clients may insert the document at once */
        SPILL_TRY(
            spill_mongo_upsert(store, SPILL_MONGO_DROP_RECORDS, &filter, &update, &done, error));
    return SPILL_OK;
}

/* ---- making a head --------------------------------------------------------------------------- */

/* Render the head of a window with the request's elements. */
static void render_window(const spill_mongo_document_t *document, const spill_state_t *after,
                          bson_t *head)
{
    const spill_request_t *request = document->request;
    SPILL_SCOPED(spill_run_release) spill_run_t run = {0};
    SPILL_SCOPED(spill_ops_release) spill_ops_t ops = {0};
    SPILL_SCOPED(bson_destroy) bson_t fields = BSON_INITIALIZER;
    for (size_t i = 0; i < request->append.element_count; i++)
        spill_run_add(&run, spill_request_seq(request, 0, i), &request->append.elements[i]);
    spill_mongo_list_ops(request, &ops);
    spill_value_append(request->owner, &fields, "_id");
    spill_render_head(request->definition, after, &fields, &run, NULL, &ops, false, head);
}

/* Insert the head of a window with the request's elements. */
static spill_code_t insert_window(spill_mongo_t *store, const spill_mongo_document_t *document,
                                  const spill_state_t *after, bool *done, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t head = BSON_INITIALIZER;
    render_window(document, after, &head);
    return spill_mongo_insert(store, document->collection, &head, done, error);
}

/* The filter of an upsert that makes a head. */
static void select_without_head(const spill_mongo_document_t *document, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE], first[SPILL_MONGO_PATH_SIZE];
    /* Another program may have pushed an element since the READ: then do not make a head. */
    snprintf(first, sizeof first, "%s.0", document->array);
    spill_mongo_select(document, filter);
    BCON_APPEND(filter, spill_mongo_path(document, SPILL_STORED_INCARNATION, path), "{", "$exists",
                BCON_BOOL(false), "}", first, "{", "$exists", BCON_BOOL(false), "}");
    spill_mongo_append_viable(document->request->definition, filter);
}

/* Add the array to the document, or insert the document; a head of another client is not changed.
 */
static spill_code_t upsert_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                const spill_mongo_roll_t *roll, spill_state_t *after, bool *done,
                                spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    select_without_head(document, &filter);
    spill_mongo_update_of_new_head(document, after, roll, &update);
    spill_code_t code =
        spill_mongo_upsert(store, document->collection, &filter, &update, done, error);
    return spill_mongo_blocked(document, code, error);
}

spill_code_t spill_mongo_make_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                   const spill_mongo_roll_t *roll, spill_state_t *after, bool *done,
                                   spill_error_t *error)
{
    SPILL_TRY(spill_mongo_date(store, document->request, &after->incarnation, error));
    after->rev = after->incarnation;
    return spill_mongo_is_bucket(document) ? insert_window(store, document, after, done, error)
                                           : upsert_head(store, document, roll, after, done, error);
}

/* ---- making several heads -------------------------------------------------------------------- */

/* The upserts, in one array for each part of them. A window's head is an insert: `updates`. */
typedef struct upserts {
    bson_t **filters;
    bson_t **updates;
    size_t count;
} upserts_t;

static void release_upserts(upserts_t *upserts)
{
    for (size_t i = 0; i < upserts->count; i++) {
        bson_destroy(upserts->filters[i]);
        bson_destroy(upserts->updates[i]);
    }
    bson_free(upserts->filters);
    bson_free(upserts->updates);
}

/* A capped head: set which of the request's elements it keeps. `top_n` must outlive *roll. */
static void make_first_roll(const spill_request_t *request, const spill_state_t *after,
                            const spill_effect_t *effect, spill_run_t *top_n,
                            spill_mongo_roll_t *roll)
{
    *roll = (spill_mongo_roll_t){.live = after->live,
                                 .counted = true,
                                 .skipped = (int64_t)spill_append_skipped(request, effect)};
    if (!spill_schema_of(request->definition)->keeps_top_n)
        return;
    spill_run_t nothing = {0};
    spill_mongo_gather_top_n(request, &nothing, after, effect, top_n);
    *roll =
        (spill_mongo_roll_t){.live = after->live, .counted = true, .top_n = top_n, .after = after};
}

/* Add the upsert of a head that does not exist; nothing if the head would have no room. */
static void add_upsert(spill_mongo_t *store, const spill_request_t *request, int64_t incarnation,
                       upserts_t *upserts)
{
    SPILL_SCOPED(spill_run_release) spill_run_t top_n = {0};
    SPILL_SCOPED(spill_top_release) spill_top_t nothing = {0};
    SPILL_SCOPED(spill_state_release) spill_state_t after = {0};
    const spill_facts_t facts = {.fields_bytes = spill_fields_growth(request),
                                 .old_bytes = -1,
                                 .journal = spill_needs_journal(request) ? &nothing : NULL};
    spill_mongo_document_t document;
    spill_request_t dated = *request;
    spill_effect_t effect;
    spill_mongo_roll_t roll;
    bson_t filter = BSON_INITIALIZER, update = BSON_INITIALIZER;
    dated.incarnation = incarnation;
    spill_mongo_document_init(&document, store, &dated);
    bool capped = spill_schema_of(request->definition)->is_capped;
    if (spill_transition(&dated, &facts, &after, &effect) == SPILL_DONE) {
        if (capped)
            make_first_roll(&dated, &after, &effect, &top_n, &roll);
        if (spill_mongo_is_bucket(&document)) {
            render_window(&document, &after, &update);
        } else {
            select_without_head(&document, &filter);
            spill_mongo_update_of_new_head(&document, &after, capped ? &roll : NULL, &update);
        }
        upserts->filters[upserts->count] = bson_copy(&filter);
        upserts->updates[upserts->count++] = bson_copy(&update);
    }
    bson_destroy(&filter);
    bson_destroy(&update);
}

/* A window that another client has made first is not changed. */
static spill_code_t insert_windows(spill_mongo_t *store, const char *collection,
                                   const upserts_t *upserts, spill_error_t *error)
{
    bool *refused = bson_malloc0(upserts->count * sizeof *refused);
    spill_code_t code = spill_mongo_insert_all(
        store, collection, (const bson_t *const *)upserts->updates, upserts->count, refused, error);
    bson_free(refused);
    return code;
}

spill_code_t spill_mongo_make_heads(spill_mongo_t *store, const spill_request_t *requests,
                                    size_t count, spill_error_t *error)
{
    SPILL_SCOPED(release_upserts)
    upserts_t upserts = {.filters = bson_malloc0(count * sizeof(bson_t *)),
                         .updates = bson_malloc0(count * sizeof(bson_t *))};
    const spill_definition_t *definition = requests->definition;
    int64_t incarnation;
    SPILL_TRY(spill_mongo_date(store, requests, &incarnation, error));
    for (size_t i = 0; i < count; i++)
        add_upsert(store, &requests[i], incarnation, &upserts);
    if (upserts.count == 0)
        return SPILL_OK;
    if (spill_schema_of(definition)->has_windows)
        return insert_windows(store, definition->collection, &upserts, error);
    return spill_mongo_update_all(
        store, definition->collection, (const bson_t *const *)upserts.filters,
        (const bson_t *const *)upserts.updates, upserts.count, true, error);
}

/* ---- other fields ---------------------------------------------------------------------------- */

void spill_mongo_exclude_own(const spill_definition_t *definition, bson_t *projection)
{
    const char *own[SPILL_OWN_FIELDS_MAX];
    size_t count = spill_own_fields(definition, own);
    BSON_APPEND_INT32(projection, "fields." SPILL_STORED_ROOT, 0);
    for (size_t i = 0; i < count; i++) {
        char path[SPILL_NAME_SIZE + 8];
        snprintf(path, sizeof path, "fields.%s", own[i]);
        BSON_APPEND_INT32(projection, path, 0);
    }
}

void spill_mongo_decode_fields(const bson_t *projected, bson_t **fields)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, projected, "fields") || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    const uint8_t *data;
    uint32_t size;
    bson_iter_document(&iter, &size, &data);
    *fields = bson_new_from_data(data, size);
}

bool spill_mongo_has_operators(const spill_request_t *request)
{
    return request->append.update && !bson_empty(request->append.update);
}

spill_code_t spill_mongo_update_head(spill_mongo_t *store, const spill_mongo_document_t *document,
                                     bool *done, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    spill_mongo_select(document, &filter);
    BCON_APPEND(&filter, spill_mongo_path(document, SPILL_STORED_INCARNATION, path), "{", "$exists",
                BCON_BOOL(true), "}");
    spill_mongo_append_seen_guard(document, true, &filter);
    spill_mongo_update_of_fields(document, &update);
    return spill_mongo_modify(store, document->collection, &filter, &update, NULL, NULL, done,
                              error);
}

/* ---- dropping a head ------------------------------------------------------------------------- */

void spill_mongo_append_without_spill(const char *key, bson_t *pipeline)
{
    BCON_APPEND(pipeline, key, "{", "$set", "{", SPILL_STORED_ROOT, "{", "$cond", "[", "{", "$eq",
                "[", "$" SPILL_STORED_ROOT, "{", "}", "]", "}", "$$REMOVE", "$" SPILL_STORED_ROOT,
                "]", "}", "}", "}");
}

/* Remove an empty document around the array, if no other array has bookkeeping. */
static void append_prune(const char *parent, bson_t *pipeline)
{
    char buffer[16], ref[SPILL_NAME_SIZE + 1];
    const char *key;
    bson_uint32_to_string(bson_count_keys(pipeline), &key, buffer, sizeof buffer);
    snprintf(ref, sizeof ref, "$%s", parent);
    BCON_APPEND(pipeline, key, "{", "$set", "{", parent, "{", "$cond", "[", "{", "$and", "[", "{",
                "$eq", "[", BCON_UTF8(ref), "{", "}", "]", "}", "{", "$eq", "[", "{", "$type",
                "$" SPILL_STORED_ROOT, "}", "missing", "]", "}", "]", "}", "$$REMOVE",
                BCON_UTF8(ref), "]", "}", "}", "}");
}

/*
 * The pipeline that removes the array's own fields from the head, `spill` with its last array, and
 * then the empty documents around the fields.
 */
static void make_drop(const spill_mongo_document_t *document, bson_t *pipeline)
{
    char parents[SPILL_MONGO_PARENTS_MAX][SPILL_NAME_SIZE];
    bool stays = document->request->drop_head.document_stays;
    const char *own[SPILL_OWN_FIELDS_MAX];
    size_t count = spill_own_fields(document->request->definition, own);
    bson_t unset, stage;
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, "0", &stage);
    BSON_APPEND_ARRAY_BEGIN(&stage, "$unset", &unset);
    BSON_APPEND_UTF8(&unset, "0", document->spill);
    for (size_t i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i + 1, &key, buffer, sizeof buffer);
        BSON_APPEND_UTF8(&unset, key, own[i]);
    }
    bson_append_array_end(&stage, &unset);
    bson_append_document_end(pipeline, &stage);
    spill_mongo_append_without_spill("1", pipeline);
    size_t around = stays ? 0 : spill_mongo_own_parents(document->request->definition, parents);
    for (size_t i = around; i > 0; i--)
        append_prune(parents[i - 1], pipeline);
}

/* Delete the document if it has only its _id; the filter checks that no field was added since. */
static spill_code_t delete_bare(const spill_mongo_step_t *step, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    bool found;
    spill_mongo_select(&step->document, &filter);
    BCON_APPEND(&filter, "$expr", "{", "$eq", "[", "{", "$size", "{", "$objectToArray", "$$ROOT",
                "}", "}", BCON_INT64(1), "]", "}");
    return spill_mongo_delete(step->store, step->document.collection, &filter, &found, error);
}

spill_code_t spill_mongo_drop_head(const spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    const char *collection = step->document.collection;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    SPILL_TRY(spill_mongo_raise_dropped_rev(step->store, step->read->state.rev, error));
    spill_mongo_unchanged(step, &filter);
    if (spill_mongo_is_bucket(&step->document)) /* all fields belong to the array */
        return spill_mongo_delete(step->store, collection, &filter, done, error);
    make_drop(&step->document, &pipeline);
    SPILL_TRY(
        spill_mongo_modify(step->store, collection, &filter, &pipeline, NULL, NULL, done, error));
    return *done && !step->request->drop_head.document_stays ? delete_bare(step, error) : SPILL_OK;
}
