/*
 * Layouts reference and subset: documents of one element {_id: {owner, page}, <owner>, <its
 * fields>, spill}, and the head's summary.
 */
#include "store/mongo/mongo.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "definition/stored_element.h"
#include "store/render.h"
#include "store/transition.h"

/* ---- the summary ----------------------------------------------------------------------------- */

/* Does the step complete an edit of a shown element? Then update it, even at the same rank.
 */
static bool shows_edited(const spill_request_t *request, const spill_state_t *before,
                         const spill_state_t *after)
{
    return request->kind == SPILL_REQUEST_COMPLETE && before->intent_edit &&
           spill_top_shows(&after->top, request->change.seq);
}

bool spill_mongo_summary_changes(const spill_mongo_document_t *document,
                                 const spill_state_t *before, const spill_state_t *after)
{
    const spill_definition_t *definition = document->request->definition;
    return document->referenced && document->head && after->present &&
           (document->request->kind ==
                SPILL_REQUEST_RECOUNT || /* other programs may have changed it */
            shows_edited(document->request, before, after) ||
            !spill_sum_equal(&before->sum, &after->sum) ||
            !spill_top_equal(&before->top, &after->top) ||
            spill_state_count(definition, before) != spill_state_count(definition, after));
}

void spill_mongo_set_sum(const spill_mongo_document_t *document, const spill_state_t *after,
                         bool literal, bson_t *set)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t sum = BSON_INITIALIZER;
    spill_sum_append(&after->sum, "sum", &sum);
    spill_mongo_set_document(spill_mongo_path(document, "sum", path), &sum, literal, set);
    bson_destroy(&sum);
}

void spill_mongo_set_summary(const spill_mongo_document_t *document, const spill_state_t *after,
                             const spill_run_t *top, bool literal, bson_t *set)
{
    const spill_definition_t *definition = document->request->definition;
    bson_t summary = BSON_INITIALIZER;
    spill_render_summary(definition, after, top, &summary);
    spill_mongo_set_document(definition->array, &summary, literal, set);
    spill_mongo_set_sum(document, after, literal, set);
    spill_mongo_set_top(document, &after->top, literal, set);
    bson_destroy(&summary);
}

/* ---- appends --------------------------------------------------------------------------------- */

/* An append does not read a journal that is longer; the client that spills it reads it. */
enum { JOURNAL_SHORT = 16, TRIES_MAX = 100 };

static spill_code_t read_head(spill_mongo_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    bool shows = request->append.due > 0 && request->append.due <= JOURNAL_SHORT;
    spill_request_t read = spill_request_reading(request);
    read.read.want = shows ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    read.read.limit = request->append.due_limit;
    read.read.want_top =
        request->append.element_count > 1; /* new elements may rank between shown ones */
    spill_response_clear(response);
    return spill_mongo_read(store, &read, response, error);
}

/* Set the answer to an append that was carried out on the head in `response`. */
static void answer(const spill_request_t *request, int64_t seq, const spill_state_t *after,
                   spill_response_t *response)
{
    spill_state_copy(after, &response->state);
    response->outcome = SPILL_DONE;
    response->seq = seq;
    response->shows_read = request->append.due > 0 && request->append.due <= JOURNAL_SHORT;
    for (size_t i = 0; response->shows_read && i < request->append.element_count &&
                       (int64_t)response->run.count < request->append.due_limit;
         i++)
        spill_run_add(&response->run, seq + (int64_t)i, &request->append.elements[i]);
}

/* Try once to append to an existing head. */
static spill_code_t try_append(spill_mongo_t *store, const spill_mongo_document_t *document,
                               spill_response_t *response, bool *done, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    spill_facts_t facts = {.fields_bytes = response->state.fields_bytes +
                                           spill_update_growth(request->append.update)};
    spill_state_t after = {0};
    spill_effect_t effect;
    spill_code_t code = SPILL_OK;
    spill_state_copy(&response->state, &after);
    *done = false;
    if (spill_transition(request, &facts, &after, &effect) == SPILL_DONE)
        code = spill_mongo_append_computed(store, document, response, &after, done, error);
    if (code == SPILL_OK && *done)
        answer(request, effect.seq, &after, response);
    spill_state_release(&after);
    return code;
}

/*
 * It is refused if transition.c refuses it for the head that was read. It is also refused if the
 * write fails although the head has not changed: then an operation of one of its appends was seen.
 */
spill_code_t spill_mongo_append_referenced(spill_mongo_t *store,
                                           const spill_mongo_document_t *document,
                                           spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    int64_t rev = -1, end = -1;
    spill_code_t code = SPILL_OK;
    for (int tries = 0; code == SPILL_OK && tries < TRIES_MAX; tries++) {
        bool done;
        code = read_head(store, request, response, error);
        response->outcome = SPILL_REFUSED_GUARD;
        if (code != SPILL_OK)
            break;
        const spill_state_t *state = &response->state;
        response->refusal_explained =
            spill_append_refusal(request, state, response->op_found) != SPILL_REFUSAL_NONE;
        bool same = state->present && state->rev == rev && spill_state_end(state) == end;
        if (response->refusal_explained || same)
            break;
        rev = state->rev;
        end = spill_state_end(state);
        if (state->present) {
            code = try_append(store, document, response, &done, error);
        } else {
            code = spill_mongo_make_head(store, document, NULL, response, error);
            done = code == SPILL_OK && response->outcome == SPILL_DONE;
            if (done) {
                spill_state_t made = response->state;
                answer(request, 0, &made, response);
            }
        }
        if (code != SPILL_OK || done)
            break;
    }
    return code;
}

/* ---- documents of one element ---------------------------------------------------------------- */

void spill_mongo_project_referenced(bson_t *projection)
{
    BSON_APPEND_UTF8(projection, "element", "$$ROOT");
}

bool spill_mongo_element_of(const spill_definition_t *definition, const bson_t *document,
                            int64_t *seq, bson_t *element)
{
    bson_iter_t iter, first;
    bool numbered =
        bson_iter_init(&iter, document) && bson_iter_find_descendant(&iter, "spill.first", &first);
    *seq = numbered ? spill_iter_int64(&first) : -1;
    return spill_stored_element_read(definition, document, element) && numbered;
}

static bool is_wanted(const spill_request_t *request, int64_t seq)
{
    if (request->read.want == SPILL_WANT_NONE || request->read.limit < 1)
        return false;
    return request->read.want == SPILL_WANT_BACKWARD ? seq <= request->read.seq
                                                     : seq >= request->read.seq;
}

void spill_mongo_decode_referenced(const spill_mongo_document_t *document, const bson_t *projected,
                                   spill_state_t *state, spill_run_t *run)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    bson_t whole, element;
    if (!state->present || !bson_iter_init_find(&iter, projected, "element") ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    bson_iter_document(&iter, &size, &data);
    if (!bson_init_static(&whole, data, size))
        return;
    if (spill_stored_element_read(document->request->definition, &whole, &element)) {
        spill_value_t value = spill_value_from_document(&element);
        state->live = 1;
        state->live_bytes = element.len;
        if (is_wanted(document->request, state->first))
            spill_run_add(run, state->first, &value);
    }
    bson_destroy(&element);
}

/* ---- runs of referenced elements ------------------------------------------------------------- */

typedef struct gathering {
    const spill_request_t *request;
    spill_response_t *response;
} gathering_t;

static bool gather(void *context, const bson_t *document)
{
    gathering_t *gathering = context;
    spill_run_t *run = &gathering->response->run;
    int64_t seq, most = gathering->request->read.bytes_most;
    bson_t element;
    if (spill_mongo_element_of(gathering->request->definition, document, &seq, &element)) {
        spill_value_t value = spill_value_from_document(&element);
        spill_run_add(run, seq, &value);
    }
    bson_destroy(&element);
    gathering->response->stopped = most > 0 && (int64_t)run->arena.size >= most;
    return !gathering->response->stopped;
}

/* Read elements with numbers in [from, end), at most as many as are still missing. */
static spill_code_t read_between(spill_mongo_t *store, const spill_request_t *request, int64_t from,
                                 int64_t end, spill_response_t *response, spill_error_t *error)
{
    gathering_t gathering = {.request = request, .response = response};
    int order = request->read.want == SPILL_WANT_FORWARD ? 1 : -1;
    size_t had = response->run.count, used = response->run.arena.size;
    int64_t limit = request->read.limit - (int64_t)had;
    bson_t pipeline = BSON_INITIALIZER, stage, match;
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    spill_mongo_append_page_owner(request, &match);
    BCON_APPEND(&match, "spill.first", "{", "$gte", BCON_INT64(from), "$lt", BCON_INT64(end), "}",
                "spill.epoch", BCON_INT64(request->incarnation));
    bson_append_document_end(&stage, &match);
    bson_append_document_end(&pipeline, &stage);
    BCON_APPEND(&pipeline, "1", "{", "$sort", "{", "spill.first", BCON_INT32(order), "_id",
                BCON_INT32(order), "}", "}", "2", "{", "$limit",
                BCON_INT64(limit < INT32_MAX ? limit : INT32_MAX), "}");
    /*
     * Name the index. The index of ranks also has the numbers, but behind the values: a server may
     * choose it and read all of the owner's entries. If the right index was dropped, use any.
     */
    const char *collection = request->definition->page_collection;
    bool ranked = spill_schema_of(request->definition)->has_rank_index;
    spill_error_t no_index;
    spill_code_t code = SPILL_INVALID;
    if (ranked)
        code = spill_mongo_each_by(store, collection, &pipeline, "spillway_first",
                                   request->read.may_be_old, gather, &gathering, &no_index);
    if (code != SPILL_OK && ranked && no_index.retryable) {
        if (error)
            *error = no_index;
    } else if (code != SPILL_OK) {
        spill_run_t *run = &response->run;
        run->count = had;
        run->arena.size = used;
        response->stopped = false;
        code = spill_mongo_each(store, collection, &pipeline, request->read.may_be_old, gather,
                                &gathering, error);
    }
    bson_destroy(&pipeline);
    return code;
}

/*
 * A server may sort all documents that it finds. So a query covers twice as many numbers as
 * elements are missing, and more only if many of these numbers are deleted.
 */
spill_code_t spill_mongo_read_elements(spill_mongo_t *store, const spill_request_t *request,
                                       spill_response_t *response, spill_error_t *error)
{
    bool forward = request->read.want == SPILL_WANT_FORWARD;
    int64_t watermark = request->read.watermark, end = request->read.pages;
    if (request->read.want == SPILL_WANT_TOP_N)
        return spill_mongo_read_top_n(store, request, response, error);
    if (forward && request->read.seq > watermark)
        watermark = request->read.seq;
    if (!forward && request->read.seq < end - 1)
        end = request->read.seq + 1;
    int64_t width = request->read.limit < INT32_MAX ? 2 * request->read.limit : INT32_MAX;
    spill_code_t code = SPILL_OK;
    response->outcome = SPILL_DONE;
    while (code == SPILL_OK && !response->stopped && watermark < end &&
           (int64_t)response->run.count < request->read.limit) {
        int64_t from = forward || end - watermark <= width ? watermark : end - width;
        int64_t to = forward && end - watermark > width ? watermark + width : end;
        code = read_between(store, request, from, to, response, error);
        watermark = forward ? to : watermark;
        end = forward ? end : from;
        width = width < INT64_MAX / 16 ? width * 8 : width;
    }
    return code;
}

/* ---- deleting documents of one element ------------------------------------------------------- */

spill_code_t spill_mongo_delete_element(spill_mongo_t *store,
                                        const spill_mongo_document_t *document, bool *done,
                                        spill_error_t *error)
{
    const spill_request_t *request = document->request;
    bson_t filter;
    spill_mongo_select(document, &filter);
    if (request->kind == SPILL_REQUEST_EMPTY_PAGE)
        BSON_APPEND_INT64(&filter, "spill.epoch", request->incarnation);
    else
        BCON_APPEND(&filter, "spill.epoch", "{", "$lte", BCON_INT64(request->incarnation), "}");
    spill_code_t code = spill_mongo_delete(store, document->collection, &filter, done, error);
    bson_destroy(&filter);
    return code;
}
