/*
 * REWRITE: the whole document is read, and written on condition that its bookkeeping and the
 * array's length are the same (store/renumber.h). The gateway makes this step with the client's own
 * update in place of the array that is set here.
 */
#include "store/mongo/guarded.h"

#include "definition/stored_names.h"
#include "store/render.h"
#include "store/renumber.h"
#include "util/error.h"

#include <stdio.h>

/* Do the request's guards hold for the head that was read? */
static bool allows(const spill_request_t *request, const spill_renumbering_t *head)
{
    bson_iter_t iter;
    int64_t applied;
    return bson_iter_init_find(&iter, &head->own, SPILL_STORED_INCARNATION) &&
           spill_iter_int64(&iter) == request->incarnation && head->rev == request->rev &&
           head->pages == 0 && head->next == request->rewrite.end && head->length >= 0 &&
           !bson_has_field(&head->own, SPILL_STORED_INTENT) &&
           (!head->session || spill_session_judge(head->session, head->session_count,
                                                  head->has_entry ? &head->entry : NULL,
                                                  head->entries, &applied) == SPILL_SESSION_NEW);
}

static void make_pipeline(const spill_mongo_document_t *document, const spill_renumbering_t *head,
                          bson_t *pipeline)
{
    static const spill_run_t none = {0};
    const spill_request_t *request = document->request;
    bson_t stage, set, literal = BSON_INITIALIZER;
    spill_unmanaged_append(request->definition, "$literal", request->rewrite.run, &none, &literal);
    bson_init(pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$set", &set);
    bson_append_document(&set, document->array, -1, &literal);
    if (document->count[0] != '\0')
        spill_append_count(&set, document->count, (int64_t)request->rewrite.run->count);
    spill_renumber_expression(head, &set);
    bson_append_document_end(&stage, &set);
    bson_append_document_end(pipeline, &stage);
    bson_destroy(&literal);
}

spill_code_t spill_mongo_renumber(spill_mongo_t *store, const spill_request_t *request,
                                  spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    bool found, done = false;
    SPILL_SCOPED(bson_destroy) bson_t match = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t head = BSON_INITIALIZER;
    spill_renumbering_t before = {.array = request->definition->array,
                                  .op_window = request->definition->op_window,
                                  .session = request->rewrite.session,
                                  .session_count = request->rewrite.session_count};
    spill_mongo_document_init(&document, store, request);
    spill_mongo_select(&document, &filter);
    BCON_APPEND(&match, "0", "{", "$match", BCON_DOCUMENT(&filter), "}");
    SPILL_TRY(spill_mongo_first(store, document.collection, &match, &head, &found, error));
    if (!found || !spill_renumber_read(&head, &before) || !allows(request, &before))
        return SPILL_OK;
    spill_renumber_guard(&before, &filter);
    make_pipeline(&document, &before, &pipeline);
    SPILL_TRY(spill_mongo_modify(store, document.collection, &filter, &pipeline, NULL, NULL, &done,
                                 error));
    response->outcome = done ? SPILL_DONE : SPILL_REFUSED_GUARD;
    return SPILL_OK;
}
