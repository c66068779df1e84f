/* Are two stores one database? */
#include "store/mongo/mongo.h"
#include "util/error.h"

/*
 * Read from the primary as it is at the moment: a mark that was acknowledged is seen, whatever the
 * write concern of the one connection and the read concern of the other.
 */
static spill_code_t look_for_checkpoint(spill_mongo_t *store, const bson_t *checkpoint, bool *found,
                                        spill_error_t *error)
{
    bson_t *opts = BCON_NEW("readConcern", "{", "level", MONGOC_READ_CONCERN_LEVEL_LOCAL, "}");
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    mongoc_collection_t *marks =
        mongoc_client_get_collection(client, store->database, SPILL_MONGO_CHECKPOINTS);
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(marks, checkpoint, opts, store->primary);
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
 * Hosts have many names, and the copy of a database has all that it has: what is written now tells
 * them apart. A mark that a crash leaves behind is one small document that means nothing.
 */
spill_code_t spill_mongo_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error)
{
    spill_mongo_t *marked = (spill_mongo_t *)other;
    bson_oid_t id;
    bool done;
    *same = false;
    bson_oid_init(&id, NULL);
    bson_t *checkpoint = BCON_NEW("_id", BCON_OID(&id));
    spill_code_t code =
        spill_mongo_insert(marked, SPILL_MONGO_CHECKPOINTS, checkpoint, &done, error);
    if (code == SPILL_OK) {
        code = look_for_checkpoint((spill_mongo_t *)store, checkpoint, same, error);
        spill_mongo_delete(marked, SPILL_MONGO_CHECKPOINTS, checkpoint, &done, NULL);
    }
    bson_destroy(checkpoint);
    return code;
}
