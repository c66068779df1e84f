/*
 * Notes of drops (store/store.h): {_id: {drop: <definition>, owner: <owner>}, epoch: E, rev: R} in
 * the collection of marks. When the drop is certain, rev is removed.
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

/*
 * The head is about to be deleted. A note that arrives late changes nothing: of one owner, later
 * heads have higher incarnations, and later notes of a head have higher revs.
 */
static spill_code_t announce(spill_mongo_t *store, const spill_drop_note_t *note,
                             const bson_t *filter, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bool done = false;
    BCON_APPEND(&update, "$max", "{", "epoch", BCON_INT64(note->incarnation), "rev",
                BCON_INT64(note->rev), "}");
    while (!done) /* two clients may insert the document at once */
        SPILL_TRY(
            spill_mongo_upsert(store, SPILL_MONGO_CHECKPOINTS, filter, &update, &done, error));
    return SPILL_OK;
}

/* The head is deleted. If there is a note of another incarnation, it stays as it is. */
static spill_code_t complete(spill_mongo_t *store, const spill_drop_note_t *note, bson_t *filter,
                             spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bool done;
    BSON_APPEND_INT64(filter, "epoch", note->incarnation);
    BCON_APPEND(&update, "$unset", "{", "rev", BCON_BOOL(true), "}");
    return spill_mongo_upsert(store, SPILL_MONGO_CHECKPOINTS, filter, &update, &done, error);
}

spill_code_t spill_mongo_note_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, const spill_drop_note_t *note,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    make_filter(definition, owner, &filter);
    return (note->rev == SPILL_DROP_IS_CERTAIN
                ? complete((spill_mongo_t *)base, note, &filter, error)
                : announce((spill_mongo_t *)base, note, &filter, error));
}

spill_code_t spill_mongo_find_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    bson_iter_t iter;
    bool found;
    *note = (spill_drop_note_t){.rev = SPILL_DROP_IS_CERTAIN};
    make_filter(definition, owner, &filter);
    BCON_APPEND(&pipeline, "0", "{", "$match", BCON_DOCUMENT(&filter), "}");
    SPILL_TRY(spill_mongo_first((spill_mongo_t *)base, SPILL_MONGO_CHECKPOINTS, &pipeline,
                                &document, &found, error));
    if (found && bson_iter_init_find(&iter, &document, "epoch"))
        note->incarnation = spill_iter_int64(&iter);
    if (found && bson_iter_init_find(&iter, &document, "rev"))
        note->rev = spill_iter_int64(&iter);
    return SPILL_OK;
}

spill_code_t spill_mongo_forget_drop(spill_store_t *base, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    bool found;
    make_filter(definition, owner, &filter);
    BCON_APPEND(&filter, "epoch", "{", "$lte", BCON_INT64(note->incarnation), "}");
    if (note->rev != SPILL_DROP_IS_CERTAIN)
        BCON_APPEND(&filter, "rev", "{", "$lte", BCON_INT64(note->rev), "}");
    return spill_mongo_delete((spill_mongo_t *)base, SPILL_MONGO_CHECKPOINTS, &filter, &found,
                              error);
}
