/*
 * Put or read several pages of one owner at once, for a CUT into many pages. One insert puts them
 * and one aggregation reads them. If a page already exists, a step of its own puts it.
 */
#include "store/mongo/mongo.h"

#include "store/render.h"
#include "util/error.h"

/* ---- PUT_PAGE -------------------------------------------------------------------------------- */

/* The document that the request inserts. To be destroyed. */
static bson_t *make_page(const spill_request_t *request)
{
    static const spill_facts_t nothing = {0};
    spill_state_t state = {0};
    spill_effect_t effect;
    bson_t *document = bson_malloc(sizeof *document);
    spill_transition(request, &nothing, &state, &effect);
    spill_render_page(request->definition, request->owner, &state, request->put_page.run, NULL,
                      false, document);
    spill_state_release(&state);
    return document;
}

spill_code_t spill_mongo_put_pages(spill_mongo_t *store, const spill_request_t *requests,
                                   size_t count, spill_response_t *responses, spill_error_t *error)
{
    bson_t **documents = bson_malloc0(count * sizeof(bson_t *));
    bool *refused = bson_malloc0(count * sizeof *refused);
    for (size_t i = 0; i < count; i++)
        documents[i] = make_page(&requests[i]);
    spill_code_t code =
        spill_mongo_insert_all(store, requests->definition->page_collection,
                               (const bson_t *const *)documents, count, refused, error);
    for (size_t i = 0; i < count; i++) {
        bson_destroy(documents[i]);
        bson_free(documents[i]);
        responses[i].outcome = SPILL_DONE;
        if (code == SPILL_OK && refused[i])
            code = spill_mongo_change(store, &requests[i], &responses[i], error);
    }
    bson_free(documents);
    bson_free(refused);
    return code;
}

/* ---- READ ------------------------------------------------------------------------------------ */

typedef struct reading {
    const spill_mongo_document_t *document;
    const int64_t *pages;
    size_t count;
    spill_response_t *responses;
    spill_code_t code;
    spill_error_t *error;
} reading_t;

static bool add_page(void *context, const bson_t *projected)
{
    reading_t *reading = context;
    bson_iter_t iter;
    int64_t page = bson_iter_init_find(&iter, projected, "page") ? spill_iter_int64(&iter) : -1;
    for (size_t i = 0; i < reading->count && reading->code == SPILL_OK; i++)
        if (reading->pages[i] == page)
            reading->code =
                spill_mongo_decode_reply(reading->document, projected, &reading->responses[i].state,
                                         &reading->responses[i].run, NULL, reading->error);
    return reading->code == SPILL_OK;
}

spill_code_t spill_mongo_read_pages(spill_mongo_t *store, const spill_request_t *requests,
                                    size_t count, spill_response_t *responses, spill_error_t *error)
{
    spill_mongo_document_t document;
    bson_t pipeline = BSON_INITIALIZER, stage, filter, projection;
    int64_t *pages = bson_malloc0(count * sizeof *pages);
    reading_t reading = {&document, pages, count, responses, SPILL_OK, error};
    for (size_t i = 0; i < count; i++)
        pages[i] = requests[i].page;
    spill_mongo_document_init(&document, store, requests);
    spill_mongo_select_pages(&document, pages, count, &filter);
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT(&stage, "$match", &filter);
    bson_append_document_end(&pipeline, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "1", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &projection);
    spill_mongo_project_read(&document, &projection);
    bson_append_document_end(&stage, &projection);
    bson_append_document_end(&pipeline, &stage);
    spill_code_t code = spill_mongo_each(store, document.collection, &pipeline,
                                         requests->read.may_be_old, add_page, &reading, error);
    for (size_t i = 0; i < count; i++)
        responses[i].outcome = SPILL_DONE;
    bson_destroy(&filter);
    bson_destroy(&pipeline);
    bson_free(pages);
    return code == SPILL_OK ? reading.code : code;
}
