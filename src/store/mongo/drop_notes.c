/*
 * Notes of drops (store/store.h), in the collection of marks:
 *
 *     {_id: {drop: <definition>, owner: <owner>}, epoch: E, rev: R}
 *     {_id: {dropAll: <definition>}, epoch: E, collection: <UUID>}
 *
 * When the drop is certain, `rev` or `collection` is removed. A collection that is dropped never
 * comes back under its UUID. So the second note is believed if no collection has the UUID.
 */
#include "store/mongo/mongo.h"

#include "bson/value.h"
#include "util/error.h"

#include <string.h>

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
 * The head is about to be deleted. A note that arrives late does not lower one: of one owner, later
 * heads have higher incarnations, and later notes of a head have higher revs. A note that is
 * certain becomes uncertain; then pages may stay, until they are dropped by hand.
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
            spill_mongo_upsert(store, SPILL_MONGO_DROP_RECORDS, filter, &update, &done, error));
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
    return spill_mongo_upsert(store, SPILL_MONGO_DROP_RECORDS, filter, &update, &done, error);
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

/* ---- of a whole collection ------------------------------------------------------------------- */

typedef struct collection_uuid {
    bool known;
    uint8_t bytes[16];
} collection_uuid_t;

static collection_uuid_t read_uuid(const bson_iter_t *field)
{
    collection_uuid_t uuid = {false};
    uint32_t size;
    const uint8_t *data;
    if (!BSON_ITER_HOLDS_BINARY(field))
        return uuid;
    bson_iter_binary(field, NULL, &size, &data);
    uuid.known = size == sizeof uuid.bytes;
    if (uuid.known)
        memcpy(uuid.bytes, data, size);
    return uuid;
}

/*
 * The UUID of the collection; not known if it is absent, or if the server says none. With a `name`
 * of NULL: of the collection that has the UUID `of`.
 */
static spill_code_t find_uuid(spill_mongo_t *store, const char *name, const collection_uuid_t *of,
                              collection_uuid_t *uuid, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t options = BSON_INITIALIZER;
    const bson_t *description = NULL;
    bson_iter_t iter, field;
    *uuid = (collection_uuid_t){false};
    if (name != NULL)
        BCON_APPEND(&options, "filter", "{", "name", BCON_UTF8(name), "}");
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    mongoc_database_t *database = mongoc_client_get_database(client, store->database);
    mongoc_database_set_read_prefs(database, store->primary);
    spill_mongo_cursor_t cursor = spill_mongo_cursor(
        store, NULL, mongoc_database_find_collections_with_opts(database, &options), true);
    spill_code_t code = spill_mongo_cursor_next(&cursor, &description, error);
    for (; description && !uuid->known;
         code = spill_mongo_cursor_next(&cursor, &description, error)) {
        if (!bson_iter_init(&iter, description) ||
            !bson_iter_find_descendant(&iter, "info.uuid", &field))
            continue;
        collection_uuid_t one = read_uuid(&field);
        if (of == NULL || memcmp(one.bytes, of->bytes, sizeof one.bytes) == 0)
            *uuid = one;
    }
    spill_mongo_cursor_end(&cursor);
    mongoc_database_destroy(database);
    mongoc_client_pool_push(store->pool, client);
    return code;
}

static void make_filter_all(const spill_definition_t *definition, bson_t *filter)
{
    BCON_APPEND(filter, "_id", "{", "dropAll", BCON_UTF8(definition->name), "}");
}

/* The collection is about to be dropped. */
static spill_code_t announce_all(spill_mongo_t *store, const spill_definition_t *definition,
                                 int64_t incarnation, const bson_t *filter, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    collection_uuid_t uuid;
    bool done = false;
    SPILL_TRY(find_uuid(store, definition->collection, NULL, &uuid, error));
    BCON_APPEND(&update, "$max", "{", "epoch", BCON_INT64(incarnation), "}");
    if (uuid.known)
        BCON_APPEND(&update, "$set", "{", "collection",
                    BCON_BIN(BSON_SUBTYPE_UUID, uuid.bytes, sizeof uuid.bytes), "}");
    else /* such a note is not believed */
        BCON_APPEND(&update, "$set", "{", "collection", BCON_NULL, "}");
    while (!done) /* two clients may insert the document at once */
        SPILL_TRY(
            spill_mongo_upsert(store, SPILL_MONGO_DROP_RECORDS, filter, &update, &done, error));
    return SPILL_OK;
}

/* The collection is dropped. A note of a later drop stays unchanged. */
static spill_code_t complete_all(spill_mongo_t *store, int64_t incarnation, bson_t *filter,
                                 spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bool done;
    BSON_APPEND_INT64(filter, "epoch", incarnation);
    BCON_APPEND(&update, "$unset", "{", "collection", BCON_BOOL(true), "}");
    return spill_mongo_upsert(store, SPILL_MONGO_DROP_RECORDS, filter, &update, &done, error);
}

spill_code_t spill_mongo_note_drop_all(spill_store_t *base, const spill_definition_t *definition,
                                       int64_t incarnation, bool certain, spill_error_t *error)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    make_filter_all(definition, &filter);
    return certain ? complete_all(store, incarnation, &filter, error)
                   : announce_all(store, definition, incarnation, &filter, error);
}

/* Is the note of a whole collection believed? */
static spill_code_t is_believed(spill_mongo_t *store, const bson_t *document, bool *believed,
                                spill_error_t *error)
{
    bson_iter_t iter;
    collection_uuid_t uuid, found;
    *believed = !bson_iter_init_find(&iter, document, "collection");
    if (*believed)
        return SPILL_OK;
    uuid = read_uuid(&iter);
    if (!uuid.known)
        return SPILL_OK;
    SPILL_TRY(find_uuid(store, NULL, &uuid, &found, error));
    *believed = !found.known;
    return SPILL_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static spill_code_t find_document(spill_mongo_t *store, const bson_t *filter, bson_t *document,
                                  int64_t *incarnation, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    bson_iter_t iter;
    bool found;
    *incarnation = 0;
    BCON_APPEND(&pipeline, "0", "{", "$match", BCON_DOCUMENT(filter), "}");
    SPILL_TRY(
        spill_mongo_first(store, SPILL_MONGO_DROP_RECORDS, &pipeline, document, &found, error));
    if (found && bson_iter_init_find(&iter, document, "epoch"))
        *incarnation = spill_iter_int64(&iter);
    return SPILL_OK;
}

/* A note of the whole collection that is believed replaces an older one of the owner. */
static spill_code_t find_drop_all(spill_mongo_t *store, const spill_definition_t *definition,
                                  spill_drop_note_t *note, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    int64_t incarnation;
    bool believed = false;
    make_filter_all(definition, &filter);
    SPILL_TRY(find_document(store, &filter, &document, &incarnation, error));
    if (incarnation >= note->incarnation && incarnation > 0)
        SPILL_TRY(is_believed(store, &document, &believed, error));
    if (believed)
        *note = (spill_drop_note_t){incarnation, SPILL_DROP_IS_CERTAIN};
    return SPILL_OK;
}

spill_code_t spill_mongo_find_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_mongo_t *store = (spill_mongo_t *)base;
    *note = (spill_drop_note_t){.rev = SPILL_DROP_IS_CERTAIN};
    make_filter(definition, owner, &filter);
    SPILL_TRY(find_document(store, &filter, &document, &note->incarnation, error));
    if (note->incarnation > 0 && bson_iter_init_find(&iter, &document, "rev"))
        note->rev = spill_iter_int64(&iter);
    return find_drop_all(store, definition, note, error);
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
    return spill_mongo_delete((spill_mongo_t *)base, SPILL_MONGO_DROP_RECORDS, &filter, &found,
                              error);
}
