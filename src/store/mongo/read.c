/* READ: one aggregation that finds a document and cuts out of it what is asked for. */
#include "store/mongo/mongo.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- which document -------------------------------------------------------------------------- */

/*
 * Of the committed pages of this incarnation the last one that begins at or below seq, and above
 * `over`. An index on (owner, first) finds it; see catalog.c.
 */
static void append_page_holding(const spill_request_t *request, int64_t over, bson_t *stages)
{
    bson_t stage, match, owner;
    BSON_APPEND_DOCUMENT_BEGIN(stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    BSON_APPEND_DOCUMENT_BEGIN(&match, request->definition->page_owner, &owner);
    spill_value_append(request->owner, &owner, "$eq");
    bson_append_document_end(&match, &owner);
    BCON_APPEND(&match, "spill.first", "{", "$lte", BCON_INT64(request->seq), "$gt",
                BCON_INT64(over), "}", "spill.epoch", BCON_INT64(request->epoch), "_id.page", "{",
                "$lt", BCON_INT64(request->pages), "}");
    bson_append_document_end(&stage, &match);
    bson_append_document_end(stages, &stage);
    BCON_APPEND(stages, "1", "{", "$sort", "{", "spill.first", BCON_INT32(-1), "_id",
                BCON_INT32(-1), "}", "}", "2", "{", "$limit", BCON_INT32(1), "}");
}

static void append_document(const spill_mongo_document_t *document, bson_t *stages)
{
    bson_t stage, filter;
    BSON_APPEND_DOCUMENT_BEGIN(stages, "0", &stage);
    spill_mongo_select(document, &filter);
    BSON_APPEND_DOCUMENT(&stage, "$match", &filter);
    bson_destroy(&filter);
    bson_append_document_end(stages, &stage);
}

/* ---- which elements -------------------------------------------------------------------------- */

/* How many live elements have numbers below `seq`, as an expression of the document. */
static bson_t *live_below(const spill_mongo_document_t *document, int64_t seq, const bson_t *live)
{
    char first[SPILL_MONGO_PATH_SIZE], gone[SPILL_MONGO_PATH_SIZE];
    return BCON_NEW("$min", "[", BCON_DOCUMENT(live), "{", "$max", "[", BCON_INT64(0), "{",
                    "$subtract", "[", "{", "$subtract", "[", BCON_INT64(seq),
                    BCON_UTF8(spill_mongo_ref(document, "first", first)), "]", "}", "{", "$size",
                    "{", "$filter", "{", "input", "{", "$ifNull", "[",
                    BCON_UTF8(spill_mongo_ref(document, "gone", gone)), "[", "]", "]", "}", "cond",
                    "{", "$lt", "[", "$$this", BCON_INT64(seq), "]", "}", "}", "}", "}", "]", "}",
                    "]", "}", "]");
}

/*
 * run: the elements; from: the place of the first of them in the array. Forward the place is where
 * seq begins, backward so far before its end that `limit` fit between.
 */
static void project_run(const spill_mongo_document_t *document, bson_t *projection)
{
    const spill_request_t *request = document->request;
    bool forward = request->want == SPILL_WANT_FORWARD;
    int64_t limit = request->limit < INT32_MAX ? request->limit : INT32_MAX;
    int64_t seq = request->seq;
    if (!forward && seq < INT64_MAX)
        seq++;
    char array[SPILL_NAME_SIZE + 1];
    snprintf(array, sizeof array, "$%s", document->array);
    bson_t *all = BCON_NEW("$ifNull", "[", BCON_UTF8(array), "[", "]", "]");
    bson_t *live = BCON_NEW("$size", BCON_DOCUMENT(all));
    bson_t *place = live_below(document, seq, live);
    bson_t *from = forward ? bson_copy(place)
                           : BCON_NEW("$max", "[", BCON_INT64(0), "{", "$subtract", "[",
                                      BCON_DOCUMENT(place), BCON_INT64(limit), "]", "}", "]");
    bson_t *count = forward ? BCON_NEW("$add", "[", BCON_INT64(limit), "]")
                            : BCON_NEW("$min", "[", BCON_INT64(limit), BCON_DOCUMENT(place), "]");
    BCON_APPEND(projection, "from", BCON_DOCUMENT(from), "run", "{", "$cond", "[", "{", "$gt", "[",
                BCON_DOCUMENT(count), BCON_INT64(0), "]", "}", "{", "$slice", "[",
                BCON_DOCUMENT(all), BCON_DOCUMENT(from), "{", "$max", "[", BCON_INT64(1),
                BCON_DOCUMENT(count), "]", "}", "]", "}", "[", "]", "]", "}");
    bson_destroy(all);
    bson_destroy(live);
    bson_destroy(place);
    bson_destroy(from);
    bson_destroy(count);
}

/* Number of the live element at place `place`, and on from there, past those that are gone. */
static void number_run(const bson_t *projected, bool backward, const spill_state_t *state,
                       spill_run_t *run)
{
    bson_iter_t iter, elements;
    if (!bson_iter_init_find(&iter, projected, "from"))
        return;
    int64_t seq = state->first + bson_iter_as_int64(&iter);
    if (!bson_iter_init_find(&iter, projected, "run") || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !bson_iter_recurse(&iter, &elements))
        return;
    size_t passed = 0;
    while (bson_iter_next(&elements)) {
        while (passed < state->gone.count && state->gone.at[passed] <= seq) {
            passed++;
            seq++;
        }
        spill_value_t value = spill_value_from_iter(&elements);
        spill_run_add(run, seq++, &value);
    }
    for (size_t i = 0; backward && i < run->count / 2; i++) {
        spill_run_entry_t entry = run->entries[i];
        run->entries[i] = run->entries[run->count - 1 - i];
        run->entries[run->count - 1 - i] = entry;
    }
}

/* ---- the head's other fields ----------------------------------------------------------------- */

/* The whole document under `fields`, then without what is the array's own. */
static void append_without_own(const spill_definition_t *definition, bson_t *stages,
                               const char *key)
{
    const char *own[] = {definition->array, definition->count_field, definition->overflow_field,
                         definition->pages_field, "spill"};
    bson_t stage, projection;
    bson_append_document_begin(stages, key, -1, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &projection);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        char path[SPILL_NAME_SIZE + 8];
        if (own[i][0] == '\0')
            continue;
        snprintf(path, sizeof path, "fields.%s", own[i]);
        BSON_APPEND_INT32(&projection, path, 0);
    }
    bson_append_document_end(&stage, &projection);
    bson_append_document_end(stages, &stage);
}

static void take_fields(const bson_t *projected, bson_t **fields)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, projected, "fields") || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    const uint8_t *data;
    uint32_t size;
    bson_iter_document(&iter, &size, &data);
    *fields = bson_new_from_data(data, size);
}

/* ---- the step -------------------------------------------------------------------------------- */

static bson_t *make_pipeline(const spill_mongo_document_t *document, int64_t over)
{
    const spill_request_t *request = document->request;
    bool holding = request->page == SPILL_PAGE_HOLDING;
    bson_t *stages = bson_new();
    if (holding)
        append_page_holding(request, over, stages);
    else
        append_document(document, stages);
    bson_t stage, projection;
    bson_append_document_begin(stages, holding ? "3" : "1", -1, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &projection);
    spill_mongo_project_state(document, request->op || request->want_ops, &projection);
    if (request->want != SPILL_WANT_NONE)
        project_run(document, &projection);
    bool want_fields = request->want_fields && document->head;
    if (want_fields)
        BSON_APPEND_UTF8(&projection, "fields", "$$ROOT");
    bson_append_document_end(&stage, &projection);
    bson_append_document_end(stages, &stage);
    if (want_fields)
        append_without_own(request->definition, stages, "2");
    return stages;
}

static void look_up_op(const spill_request_t *request, spill_ops_t *ops, spill_response_t *response)
{
    const spill_op_entry_t *entry = spill_ops_find(ops, request->op->id, request->op->id_bytes);
    response->op_found = entry != NULL;
    if (entry)
        response->op = *entry;
}

static spill_code_t find(spill_mongo_t *store, const spill_mongo_document_t *document, int64_t over,
                         bson_t *projected, bool *found, spill_error_t *error)
{
    bson_t *pipeline = make_pipeline(document, over);
    spill_code_t code =
        spill_mongo_first(store, document->collection, pipeline, projected, found, error);
    bson_destroy(pipeline);
    return code;
}

/*
 * The page that holds a number begins at most one page's length below it, unless numbers were
 * removed between two pages: so far is looked first, for a server may sort all that it finds.
 */
static spill_code_t find_holding(spill_mongo_t *store, const spill_mongo_document_t *document,
                                 bson_t *projected, bool *found, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    int64_t over = request->seq - request->definition->largest.page_capacity;
    spill_code_t code = SPILL_OK;
    *found = false;
    if (over >= 0) {
        code = find(store, document, over, projected, found, error);
        if (code != SPILL_OK || *found)
            return code;
        bson_destroy(projected);
    }
    return find(store, document, -1, projected, found, error);
}

spill_code_t spill_mongo_read(spill_mongo_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    spill_mongo_document_init(&document, store, request);
    bson_t projected;
    bool found;
    spill_code_t code = request->page == SPILL_PAGE_HOLDING
                            ? find_holding(store, &document, &projected, &found, error)
                            : find(store, &document, 0, &projected, &found, error);
    response->outcome = SPILL_DONE;
    if (found) {
        spill_ops_t ops = {0};
        code = spill_mongo_state(&document, &projected, &response->state, &ops, error);
        if (code == SPILL_OK && response->state.present) {
            number_run(&projected, request->want == SPILL_WANT_BACKWARD, &response->state,
                       &response->run);
            take_fields(&projected, &response->fields);
            if (request->op)
                look_up_op(request, &ops, response);
            if (request->want_ops)
                spill_ops_copy(&ops, &response->ops);
        }
        spill_ops_release(&ops);
    }
    bson_destroy(&projected);
    return code;
}
