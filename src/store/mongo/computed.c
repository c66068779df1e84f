/*
 * Appends that no update operator can make, because statistics have averages, and sums in the order
 * of the elements. transition.c computes the new state from the one that was read; the write
 * requires that the document has not changed since.
 */
#include "store/mongo/mongo.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "store/render.h"

void spill_mongo_append_as_read(const spill_mongo_document_t *document, const spill_state_t *state,
                                bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_append_int64(filter, spill_mongo_path(document, "epoch", path), -1, state->incarnation);
    bson_append_int64(filter, spill_mongo_path(document, "rev", path), -1, state->rev);
    BCON_APPEND(filter, document->array, "{", "$size", BCON_INT64(state->live), "}");
}

void spill_mongo_append_as_numbered(const spill_mongo_document_t *document,
                                    const spill_state_t *state, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_path(document, spill_mongo_deleted_name(state), path);
    BCON_APPEND(filter, document->array, "{", "$size", BCON_INT64(state->live), "}");
    if (state->deleted.count > 0)
        spill_render_deleted(filter, path, &state->deleted, state->gaps);
    else
        BCON_APPEND(filter, path, "{", "$exists", BCON_BOOL(false), "}");
}

void spill_mongo_set_document(const char *path, const bson_t *holder, bool literal, bson_t *set)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, holder) || !bson_iter_next(&iter))
        return;
    if (!literal) {
        bson_append_iter(set, path, -1, &iter);
        return;
    }
    bson_t expression;
    BSON_APPEND_DOCUMENT_BEGIN(set, path, &expression);
    bson_append_iter(&expression, "$literal", -1, &iter);
    bson_append_document_end(set, &expression);
}

spill_code_t spill_mongo_append_computed(spill_mongo_t *store,
                                         const spill_mongo_document_t *document,
                                         const spill_response_t *before, spill_state_t *after,
                                         bool *done, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t filter, update, set = BSON_INITIALIZER, push = BSON_INITIALIZER;
    bool bucket = spill_mongo_is_bucket(document);
    spill_mongo_select(document, &filter);
    spill_mongo_append_as_read(document, &before->state, &filter);
    if (bucket)
        BCON_APPEND(&filter, spill_mongo_path(document, "sealed", path), "{", "$ne",
                    BCON_BOOL(true), "}");
    if (spill_request_ops(document->request) > 0)
        spill_mongo_append_op_guard(document, &filter);
    if (bucket) {
        spill_mongo_set_statistics(document, after, false, &set);
    } else if (spill_schema_of(document->request->definition)->has_top) {
        spill_mongo_set_sum(document, after, false, &set);
        spill_mongo_append_to_summary(document, before, after, &set, &push);
    } else {
        spill_mongo_set_summary(document, after, NULL, false, &set);
    }
    spill_mongo_update_of_append(document, &set, &push, NULL, &update);
    spill_code_t code =
        spill_mongo_modify(store, document->collection, &filter, &update, NULL, NULL, done, error);
    bson_destroy(&filter);
    bson_destroy(&update);
    bson_destroy(&set);
    bson_destroy(&push);
    return code;
}
