/*
 * Notes of drops (store/store.h): {_id: {drop: <definition>, owner: <owner>}, epoch: E} in the
 * collection of marks.
 */
#include "store/mongo/mongo.h"

#include "bson/value.h"
#include "util/error.h"

static void make_filter(const spill_definition_t *definition, const spill_value_t *owner,
                        bson_t *filter)
{
    bson_t id;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &id);
    BSON_APPEND_UTF8(&id, "drop", definition->name);
    spill_value_append(owner, &id, "owner");
    bson_append_document_end(filter, &id);
}

spill_code_t spill_mongo_note_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, int64_t incarnation,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bool done = false;
    make_filter(definition, owner, &filter);
    BCON_APPEND(&update, "$max", "{", "epoch", BCON_INT64(incarnation), "}");
    while (!done) /* two clients may insert the document at once */
        SPILL_TRY(spill_mongo_upsert((spill_mongo_t *)base, SPILL_MONGO_CHECKPOINTS, &filter,
                                     &update, &done, error));
    return SPILL_OK;
}

spill_code_t spill_mongo_find_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, int64_t *incarnation,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t note = BSON_INITIALIZER;
    bson_iter_t epoch;
    bool found;
    *incarnation = 0;
    make_filter(definition, owner, &filter);
    BCON_APPEND(&pipeline, "0", "{", "$match", BCON_DOCUMENT(&filter), "}");
    SPILL_TRY(spill_mongo_first((spill_mongo_t *)base, SPILL_MONGO_CHECKPOINTS, &pipeline, &note,
                                &found, error));
    if (found && bson_iter_init_find(&epoch, &note, "epoch"))
        *incarnation = spill_iter_int64(&epoch);
    return SPILL_OK;
}

spill_code_t spill_mongo_forget_drop(spill_store_t *base, const spill_definition_t *definition,
                                     const spill_value_t *owner, int64_t incarnation,
                                     spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    bool found;
    make_filter(definition, owner, &filter);
    BCON_APPEND(&filter, "epoch", "{", "$lte", BCON_INT64(incarnation), "}");
    return spill_mongo_delete((spill_mongo_t *)base, SPILL_MONGO_CHECKPOINTS, &filter, &found,
                              error);
}
