/* Are two connections to the same database? */
#include "store/mongo/mongo.h"
#include "util/error.h"

/*
 * Read from the primary with read concern local: it finds an acknowledged marker, whatever the
 * write concern of one connection and the read concern of the other.
 */
static spill_code_t find_marker(spill_mongo_t *store, const bson_t *marker, bool *found,
                                spill_error_t *error)
{
    bson_t *opts = BCON_NEW("readConcern", "{", "level", MONGOC_READ_CONCERN_LEVEL_LOCAL, "}");
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    mongoc_collection_t *marks =
        mongoc_client_get_collection(client, store->database, SPILL_MONGO_CHECKPOINTS);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(marks, marker, opts, store->primary);
    spill_mongo_cursor_t documents =
        spill_mongo_cursor(store, SPILL_MONGO_CHECKPOINTS, cursor, true);
    const bson_t *document;
    spill_code_t code = spill_mongo_cursor_next(&documents, &document, error);
    *found = document != NULL;
    spill_mongo_cursor_end(&documents);
    mongoc_collection_destroy(marks);
    mongoc_client_pool_push(store->pool, client);
    bson_destroy(opts);
    return code;
}

/*
 * A host may have several names, and a copy of a database has the same documents. Only a new write
 * distinguishes them. A marker that a crash leaves behind is a small document without effect.
 */
spill_code_t spill_mongo_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error)
{
    spill_mongo_t *marked = (spill_mongo_t *)other;
    bson_oid_t id;
    bool done;
    *same = false;
    bson_oid_init(&id, NULL);
    bson_t *marker = BCON_NEW("_id", BCON_OID(&id));
    spill_code_t code = spill_mongo_insert(marked, SPILL_MONGO_CHECKPOINTS, marker, &done, error);
    if (code == SPILL_OK) {
        code = find_marker((spill_mongo_t *)store, marker, same, error);
        spill_mongo_delete(marked, SPILL_MONGO_CHECKPOINTS, marker, &done, NULL);
    }
    bson_destroy(marker);
    return code;
}
