/*
 * Notes of drops (store/store.h), in the collection of marks:
 *
 *     {_id: {drop: <definition>, owner: <owner>}, epoch: E, rev: R, ended: C}
 *     {_id: {dropAll: <definition>}, ended: C,
 *      announced: {<attempt>: {collection: <UUID>, epoch: E, refused: true}, ...}}
 *
 * `epoch` and `rev`, or `announced`, are about drops that may be refused; `ended` is certain. A
 * drop that is announced later never changes what is certain. A collection that is dropped never
 * comes back under its UUID. So what is announced is believed if no collection has the UUID. The
 * field `refused` stays for a day, because the announcement may arrive once more.
 */
#include "store/mongo/mongo.h"

#include "bson/value.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REFUSED_SECONDS = 24 * 60 * 60 };

/* A note of before this field counts as old: a missing field is lower than any time. */
static void match_old(bson_t *filter)
{
    BCON_APPEND(filter, "$expr", "{", "$lt", "[", "$" SPILL_STORED_NOTE_AT, "{", "$subtract", "[",
                "$$NOW", BCON_INT64(SPILL_DROP_NOTE_STAYS_MS), "]", "}", "]", "}");
}

static void make_filter(const spill_definition_t *definition, const spill_value_t *owner,
                        bson_t *filter)
{
    bson_t id;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &id);
    BSON_APPEND_UTF8(&id, SPILL_STORED_NOTE_DROP, definition->name);
    spill_value_append(owner, &id, SPILL_STORED_ID_OWNER);
    bson_append_document_end(filter, &id);
}

/* Two clients may insert the document at once: then one of them updates it. */
static spill_code_t write_note(spill_mongo_t *store, const bson_t *filter, const bson_t *update,
                               spill_error_t *error)
{
    bool done = false;
    while (!done)
        SPILL_TRY(
            spill_mongo_upsert(store, SPILL_MONGO_DROP_RECORDS, filter, update, &done, error));
    return SPILL_OK;
}

/*
 * The head is about to be deleted. A note that arrives late does not lower one: of one owner, later
 * heads have higher incarnations, and later notes of a head have higher revs.
 */
static spill_code_t announce(spill_mongo_t *store, const spill_drop_note_t *note,
                             const bson_t *filter, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    BCON_APPEND(&update, "$max", "{", SPILL_STORED_INCARNATION, BCON_INT64(note->incarnation),
                SPILL_STORED_REV, BCON_INT64(note->rev), "}", "$currentDate", "{",
                SPILL_STORED_NOTE_AT, BCON_BOOL(true), "}");
    return write_note(store, filter, &update, error);
}

/* All heads up to this incarnation are deleted. */
static spill_code_t complete(spill_mongo_t *store, int64_t incarnation, const bson_t *filter,
                             spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    BCON_APPEND(&update, "$max", "{", SPILL_STORED_NOTE_ENDED, BCON_INT64(incarnation), "}",
                "$currentDate", "{", SPILL_STORED_NOTE_AT, BCON_BOOL(true), "}");
    return write_note(store, filter, &update, error);
}

spill_code_t spill_mongo_note_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, const spill_drop_note_t *note,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    make_filter(definition, owner, &filter);
    return (note->rev == SPILL_DROP_IS_CERTAIN
                ? complete((spill_mongo_t *)base, note->incarnation, &filter, error)
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

static spill_code_t find_document(spill_mongo_t *store, const bson_t *filter, bson_t *document,
                                  spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    bool found;
    BCON_APPEND(&pipeline, "0", "{", "$match", BCON_DOCUMENT(filter), "}");
    return spill_mongo_first(store, SPILL_MONGO_DROP_RECORDS, &pipeline, document, &found, error);
}

static void make_filter_all(const spill_definition_t *definition, bson_t *filter)
{
    BCON_APPEND(filter, "_id", "{", SPILL_STORED_NOTE_DROP_ALL, BCON_UTF8(definition->name), "}");
}

/* The path of a field of what the attempt announces; "" is the whole. */
static void make_path(const spill_drop_all_t *drop, const char *field, char path[SPILL_NAME_SIZE])
{
    snprintf(path, SPILL_NAME_SIZE, SPILL_STORED_NOTE_ANNOUNCED ".%s%s", drop->attempt, field);
}

/* The collection is about to be dropped. Without a UUID nothing could be believed. */
static spill_code_t announce_all(spill_mongo_t *store, const spill_definition_t *definition,
                                 const spill_drop_all_t *drop, const bson_t *filter,
                                 spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    char collection[SPILL_NAME_SIZE], epoch[SPILL_NAME_SIZE];
    collection_uuid_t uuid;
    SPILL_TRY(find_uuid(store, definition->collection, NULL, &uuid, error));
    if (!uuid.known)
        return SPILL_OK;
    make_path(drop, "." SPILL_STORED_NOTE_COLLECTION, collection);
    make_path(drop, "." SPILL_STORED_INCARNATION, epoch);
    BCON_APPEND(&update, "$set", "{", collection,
                BCON_BIN(BSON_SUBTYPE_UUID, uuid.bytes, sizeof uuid.bytes), epoch,
                BCON_INT64(drop->incarnation), "}");
    return write_note(store, filter, &update, error);
}

static spill_code_t complete_all(spill_mongo_t *store, const spill_drop_all_t *drop,
                                 const bson_t *filter, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    char whole[SPILL_NAME_SIZE];
    make_path(drop, "", whole);
    BCON_APPEND(&update, "$max", "{", SPILL_STORED_NOTE_ENDED, BCON_INT64(drop->incarnation), "}",
                "$unset", "{", whole, BCON_BOOL(true), "}");
    return write_note(store, filter, &update, error);
}

/* Add the refused attempts that are old: their announcements cannot arrive once more. */
static void add_old_refused(const bson_t *document, bson_t *paths)
{
    bson_iter_t iter, attempt, refused;
    char path[SPILL_NAME_SIZE];
    int64_t now = (int64_t)time(NULL);
    if (!bson_iter_init_find(&iter, document, SPILL_STORED_NOTE_ANNOUNCED) ||
        !bson_iter_recurse(&iter, &attempt))
        return;
    while (bson_iter_next(&attempt)) {
        bson_oid_t id;
        const char *key = bson_iter_key(&attempt);
        if (!bson_oid_is_valid(key, strlen(key)) || !bson_iter_recurse(&attempt, &refused) ||
            !bson_iter_find(&refused, SPILL_STORED_NOTE_REFUSED))
            continue;
        bson_oid_init_from_string(&id, key);
        if (now - (int64_t)bson_oid_get_time_t(&id) < REFUSED_SECONDS)
            continue;
        snprintf(path, sizeof path, SPILL_STORED_NOTE_ANNOUNCED ".%s", key);
        BSON_APPEND_BOOL(paths, path, true);
    }
}

static spill_code_t withdraw_all(spill_mongo_t *store, const spill_drop_all_t *drop,
                                 const bson_t *filter, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t old = BSON_INITIALIZER;
    char whole[SPILL_NAME_SIZE];
    bool found;
    SPILL_TRY(find_document(store, filter, &document, error));
    add_old_refused(&document, &old);
    make_path(drop, "", whole);
    BCON_APPEND(&update, "$set", "{", whole, "{", SPILL_STORED_NOTE_REFUSED, BCON_BOOL(true), "}",
                "}");
    if (!bson_empty(&old))
        BSON_APPEND_DOCUMENT(&update, "$unset", &old);
    return spill_mongo_modify(store, SPILL_MONGO_DROP_RECORDS, filter, &update, NULL, NULL, &found,
                              error);
}

spill_code_t spill_mongo_note_drop_all(spill_store_t *base, const spill_definition_t *definition,
                                       const spill_drop_all_t *drop, spill_drop_stage_t stage,
                                       spill_error_t *error)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    make_filter_all(definition, &filter);
    if (stage == SPILL_DROP_BEGINS)
        return announce_all(store, definition, drop, &filter, error);
    return stage == SPILL_DROP_ENDED ? complete_all(store, drop, &filter, error)
                                     : withdraw_all(store, drop, &filter, error);
}

/* Raise *ended to what an attempt has announced, if its collection is gone. */
static spill_code_t judge_announced(spill_mongo_t *store, const bson_iter_t *attempt,
                                    int64_t *ended, spill_error_t *error)
{
    bson_iter_t epoch, collection, refused;
    collection_uuid_t uuid, found;
    if (!bson_iter_recurse(attempt, &refused) ||
        bson_iter_find(&refused, SPILL_STORED_NOTE_REFUSED) ||
        !bson_iter_recurse(attempt, &epoch) || !bson_iter_find(&epoch, SPILL_STORED_INCARNATION) ||
        spill_iter_int64(&epoch) <= *ended || !bson_iter_recurse(attempt, &collection) ||
        !bson_iter_find(&collection, SPILL_STORED_NOTE_COLLECTION))
        return SPILL_OK;
    uuid = read_uuid(&collection);
    if (!uuid.known)
        return SPILL_OK;
    SPILL_TRY(find_uuid(store, NULL, &uuid, &found, error));
    if (!found.known)
        *ended = spill_iter_int64(&epoch);
    return SPILL_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The number in the field, 0 if there is none. */
static int64_t number_of(const bson_t *document, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, field) ? spill_iter_int64(&iter) : 0;
}

/* Raise *ended to what is known of the whole collection. */
static spill_code_t find_drop_all(spill_mongo_t *store, const spill_definition_t *definition,
                                  int64_t *ended, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    bson_iter_t iter, attempt;
    make_filter_all(definition, &filter);
    SPILL_TRY(find_document(store, &filter, &document, error));
    int64_t certain = number_of(&document, SPILL_STORED_NOTE_ENDED);
    *ended = certain > *ended ? certain : *ended;
    if (bson_iter_init_find(&iter, &document, SPILL_STORED_NOTE_ANNOUNCED) &&
        bson_iter_recurse(&iter, &attempt))
        while (bson_iter_next(&attempt))
            SPILL_TRY(judge_announced(store, &attempt, ended, error));
    return SPILL_OK;
}

spill_code_t spill_mongo_find_drop(spill_store_t *base, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    spill_mongo_t *store = (spill_mongo_t *)base;
    *note = (spill_drop_note_t){0};
    make_filter(definition, owner, &filter);
    SPILL_TRY(find_document(store, &filter, &document, error));
    note->incarnation = number_of(&document, SPILL_STORED_INCARNATION);
    note->rev = number_of(&document, SPILL_STORED_REV);
    note->ended = number_of(&document, SPILL_STORED_NOTE_ENDED);
    return find_drop_all(store, definition, &note->ended, error);
}

/*
 * The pages up to the incarnation are deleted. If a later end is announced, the note stays as it
 * is, for that one. A young note stays, unless no page can be put late.
 */
static spill_code_t forget_certain(spill_mongo_t *store, const spill_drop_note_t *note,
                                   bson_t *filter, spill_error_t *error)
{
    bool found;
    for (int i = 0; i < 2; i++)
        BCON_APPEND(filter, i == 0 ? SPILL_STORED_INCARNATION : SPILL_STORED_NOTE_ENDED, "{",
                    "$not", "{", "$gt", BCON_INT64(note->incarnation), "}", "}");
    if (!note->at_once)
        match_old(filter);
    return spill_mongo_delete(store, SPILL_MONGO_DROP_RECORDS, filter, &found, error);
}

/* Forget what is announced. What is certain stays. */
static spill_code_t forget_announced(spill_mongo_t *store, const spill_drop_note_t *note,
                                     bson_t *filter, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t alone = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bool found;
    BCON_APPEND(filter, SPILL_STORED_INCARNATION, "{", "$lte", BCON_INT64(note->incarnation), "}",
                SPILL_STORED_REV, "{", "$lte", BCON_INT64(note->rev), "}");
    if (note->old)
        match_old(filter);
    bson_concat(&alone, filter);
    BCON_APPEND(&alone, SPILL_STORED_NOTE_ENDED, "{", "$exists", BCON_BOOL(false), "}");
    SPILL_TRY(spill_mongo_delete(store, SPILL_MONGO_DROP_RECORDS, &alone, &found, error));
    if (found)
        return SPILL_OK;
    BCON_APPEND(&update, "$unset", "{", SPILL_STORED_INCARNATION, BCON_BOOL(true), SPILL_STORED_REV,
                BCON_BOOL(true), "}");
    return spill_mongo_modify(store, SPILL_MONGO_DROP_RECORDS, filter, &update, NULL, NULL, &found,
                              error);
}

spill_code_t spill_mongo_forget_drop(spill_store_t *base, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    make_filter(definition, owner, &filter);
    return note->rev == SPILL_DROP_IS_CERTAIN ? forget_certain(store, note, &filter, error)
                                              : forget_announced(store, note, &filter, error);
}

/* ---- of all owners --------------------------------------------------------------------------- */

spill_code_t spill_mongo_forget_drops(spill_store_t *base, const spill_definition_t *definition,
                                      spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id." SPILL_STORED_NOTE_DROP, definition->name);
    return spill_mongo_delete_each((spill_mongo_t *)base, SPILL_MONGO_DROP_RECORDS, &filter, error);
}

static bool add_old(void *context, const bson_t *document)
{
    bson_iter_t iter, owner;
    if (bson_iter_init(&iter, document) &&
        bson_iter_find_descendant(&iter, "_id." SPILL_STORED_ID_OWNER, &owner)) {
        const spill_value_t value = spill_value_from_iter(&owner);
        spill_listing_add_owner(context, &value);
    }
    return true;
}

spill_code_t spill_mongo_old_drops(spill_store_t *base, const spill_definition_t *definition,
                                   spill_listing_t *owners, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    bson_t stage, match;
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    BSON_APPEND_UTF8(&match, "_id." SPILL_STORED_NOTE_DROP, definition->name);
    match_old(&match);
    bson_append_document_end(&stage, &match);
    bson_append_document_end(&pipeline, &stage);
    BCON_APPEND(&pipeline, "1", "{", "$limit", BCON_INT32(SPILL_DROP_NOTES_LISTED), "}", "2", "{",
                "$project", "{", "_id", BCON_INT32(1), "}", "}");
    return spill_mongo_each((spill_mongo_t *)base, SPILL_MONGO_DROP_RECORDS, &pipeline, false,
                            add_old, owners, error);
}
