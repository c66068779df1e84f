/*
 * READ of SPILL_ELEMENTS: runs of referenced elements, whose documents have one element each. A
 * READ that ranks elements is in rank.c.
 */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "util/error.h"

typedef struct gathering {
    const spill_request_t *request;
    spill_response_t *response;
    spill_code_t code; /* of the first document that is no element of the owner */
    spill_error_t failure;
} gathering_t;

/* Keep the highest source_rev of the documents, and the number of the element that has it. */
static void note_highest(int64_t source_rev, int64_t page, spill_state_t *state)
{
    if (source_rev > state->source_rev) {
        state->source_rev = source_rev;
        state->page = page;
    }
}

static void note_source(const bson_t *document, spill_response_t *response)
{
    bson_iter_t iter, source, first;
    if (bson_iter_init(&iter, document) &&
        bson_iter_find_descendant(&iter, SPILL_STORED_PAGE_SOURCE_REV, &source) &&
        bson_iter_init(&iter, document) &&
        bson_iter_find_descendant(&iter, SPILL_STORED_PAGE_FIRST, &first))
        note_highest(spill_iter_int64(&source), spill_iter_int64(&first), &response->state);
}

static bool gather(void *context, const bson_t *document)
{
    gathering_t *gathering = context;
    spill_run_t *run = &gathering->response->run;
    int64_t most = gathering->request->read.bytes_most;
    note_source(document, gathering->response);
    gathering->code =
        spill_mongo_add_element(gathering->request, document, run, &gathering->failure);
    gathering->response->stopped = most > 0 && (int64_t)run->arena.size >= most;
    return gathering->code == SPILL_OK && !gathering->response->stopped;
}

/* Read elements with numbers in [from, end), at most as many as are still missing. */
static spill_code_t read_between(spill_mongo_t *store, const spill_request_t *request, int64_t from,
                                 int64_t end, spill_response_t *response, spill_error_t *error)
{
    gathering_t gathering = {.request = request, .response = response};
    int order = request->read.want == SPILL_WANT_FORWARD ? 1 : -1;
    size_t had = response->run.count, used = response->run.arena.size;
    int64_t left = request->read.limit - (int64_t)had, limit = left < INT32_MAX ? left : INT32_MAX;
    bson_t pipeline = BSON_INITIALIZER, stage, match;
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    spill_mongo_append_page_owner(request, &match);
    BCON_APPEND(&match, SPILL_STORED_PAGE_FIRST, "{", "$gte", BCON_INT64(from), "$lt",
                BCON_INT64(end), "}", SPILL_STORED_PAGE_INCARNATION,
                BCON_INT64(request->incarnation));
    bson_append_document_end(&stage, &match);
    bson_append_document_end(&pipeline, &stage);
    BCON_APPEND(&pipeline, "1", "{", "$sort", "{", SPILL_STORED_PAGE_FIRST, BCON_INT32(order),
                "_id", BCON_INT32(order), "}", "}", "2", "{", "$limit", BCON_INT64(limit), "}");
    /*
     * Name the index. The index of ranks also has the numbers, but behind the values: a server may
     * choose it and read all of the owner's entries. If the right index was dropped, use any.
     */
    const char *collection = request->definition->page_collection;
    bool ranked = spill_schema_of(request->definition)->has_rank_index;
    spill_mongo_plan_t plan = {.index = "spillway_first", .batch = limit};
    spill_error_t no_index;
    spill_code_t code = SPILL_INVALID;
    if (ranked)
        code = spill_mongo_each_by(store, collection, &pipeline, &plan, request->read.may_be_old,
                                   gather, &gathering, &no_index);
    if (code != SPILL_OK && ranked && no_index.retryable) {
        if (error)
            *error = no_index;
    } else if (code != SPILL_OK) {
        spill_run_t *run = &response->run;
        run->count = had;
        run->arena.size = used;
        response->stopped = false;
        plan.index = NULL;
        code = spill_mongo_each_by(store, collection, &pipeline, &plan, request->read.may_be_old,
                                   gather, &gathering, error);
    }
    bson_destroy(&pipeline);
    if (code == SPILL_OK && gathering.code != SPILL_OK && error)
        *error = gathering.failure;
    return code == SPILL_OK ? gathering.code : code;
}

/* Add the element of a page to the run, if it is one of the request's. */
static spill_code_t add_ahead(const spill_mongo_document_t *page, const bson_t *projected,
                              spill_response_t *response, spill_error_t *error)
{
    SPILL_SCOPED(spill_state_release) spill_state_t state = {0};
    SPILL_SCOPED(spill_run_release) spill_run_t run = {0};
    SPILL_TRY(spill_mongo_decode_reply(page, projected, &state, &run, NULL, error));
    if (run.count > 0 && state.incarnation == page->request->incarnation) {
        spill_element_t element = spill_run_element(&run, 0);
        spill_run_add(&response->run, element.seq, &element.value);
        note_highest(state.source_rev, element.seq, &response->state);
    }
    return SPILL_OK;
}

/* Answer READs of the elements with numbers in [from, end) from read-ahead. *answered: done. */
static spill_code_t read_elements_ahead(spill_mongo_t *store, const spill_request_t *request,
                                        int64_t from, int64_t end, spill_response_t *response,
                                        bool *answered, spill_error_t *error)
{
    enum { NUMBERS_MOST = 64 };
    bson_t *pages[NUMBERS_MOST] = {NULL};
    spill_request_t read = *request;
    spill_mongo_document_t document;
    SPILL_SCOPED(bson_destroy) bson_t projection = BSON_INITIALIZER;
    spill_code_t code = SPILL_OK;
    *answered = false;
    if (!request->read.ahead || request->read.may_be_old || end <= from ||
        end - from > NUMBERS_MOST || request->read.limit < end - from ||
        request->read.want != SPILL_WANT_FORWARD)
        return SPILL_OK;
    read.page = from; /* the same projection as of a READ of one page */
    read.read.seq = 0;
    spill_mongo_document_init(&document, store, &read);
    spill_mongo_project_read(&document, true, &projection);
    *answered = spill_mongo_ahead_pages(store, &document, &projection, from, end, pages);
    for (int64_t i = 0; *answered && i < end - from; i++) {
        if (pages[i] && code == SPILL_OK)
            code = add_ahead(&document, pages[i], response, error);
        bson_destroy(pages[i]);
    }
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
    if (forward && request->read.seq > watermark)
        watermark = request->read.seq;
    if (!forward && request->read.seq < end - 1)
        end = request->read.seq + 1;
    int64_t width = request->read.limit < INT32_MAX ? 2 * request->read.limit : INT32_MAX;
    bool answered;
    response->outcome = SPILL_DONE;
    SPILL_TRY(read_elements_ahead(store, request, watermark, end, response, &answered, error));
    if (answered)
        return SPILL_OK;
    spill_mongo_ahead_changed(store->ahead, request->owner); /* a later head is no older */
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
