/*
 * Layouts reference and subset: documents of one element {_id: {owner, page}, <owner>, <its
 * fields>, spill}, and the head's summary.
 */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_element.h"
#include "store/render.h"
#include "store/transition.h"
#include "util/error.h"

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
    response->outcome = SPILL_DONE;
    while (!response->stopped && watermark < end &&
           (int64_t)response->run.count < request->read.limit) {
        int64_t from = forward || end - watermark <= width ? watermark : end - width;
        int64_t to = forward && end - watermark > width ? watermark + width : end;
        SPILL_TRY(read_between(store, request, from, to, response, error));
        watermark = forward ? to : watermark;
        end = forward ? end : from;
        width = width < INT64_MAX / 16 ? width * 8 : width;
    }
    return SPILL_OK;
}

/* ---- deleting documents of one element ------------------------------------------------------- */

spill_code_t spill_mongo_delete_element(spill_mongo_t *store,
                                        const spill_mongo_document_t *document, bool *done,
                                        spill_error_t *error)
{
    const spill_request_t *request = document->request;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    spill_mongo_select(document, &filter);
    if (request->kind == SPILL_REQUEST_EMPTY_PAGE)
        BSON_APPEND_INT64(&filter, "spill.epoch", request->incarnation);
    else
        BCON_APPEND(&filter, "spill.epoch", "{", "$lte", BCON_INT64(request->incarnation), "}");
    return spill_mongo_delete(store, document->collection, &filter, done, error);
}
