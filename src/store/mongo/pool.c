/* A store on a pool of libmongoc that belongs to the program. */
#include "store/mongo/mongo.h"

#include "util/error.h"

#include <spillway/mongoc.h>

/* What spill_mongo_fill_defaults sets in the URI of a pool of the store's own. */
static void fill_concerns(const mongoc_uri_t *uri, spill_mongo_concerns_t *concerns)
{
    const mongoc_write_concern_t *write = mongoc_uri_get_write_concern(uri);
    if (mongoc_write_concern_get_w(write) == MONGOC_WRITE_CONCERN_W_DEFAULT) {
        concerns->write = mongoc_write_concern_copy(write);
        mongoc_write_concern_set_w(concerns->write, MONGOC_WRITE_CONCERN_W_MAJORITY);
        concerns->write_opts = bson_new();
        mongoc_write_concern_append(concerns->write, concerns->write_opts);
    }
    if (mongoc_read_concern_is_default(mongoc_uri_get_read_concern(uri))) {
        concerns->read = mongoc_read_concern_new();
        mongoc_read_concern_set_level(concerns->read, MONGOC_READ_CONCERN_LEVEL_MAJORITY);
        concerns->read_opts = bson_new();
        mongoc_read_concern_append(concerns->read, concerns->read_opts);
    }
}

static spill_code_t check_uri(const mongoc_uri_t *uri, const char *database, spill_error_t *error)
{
    if (!database || database[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "the pool's connection string names no database: pass one");
    if (!mongoc_write_concern_is_acknowledged(mongoc_uri_get_write_concern(uri)))
        return spill_fail(error, SPILL_INVALID,
                          "the pool's connection string asks for w=0: a store needs writes that "
                          "are acknowledged");
    if (mongoc_uri_has_option(uri, MONGOC_URI_WAITQUEUETIMEOUTMS))
        return spill_fail(error, SPILL_INVALID,
                          "the pool's connection string has %s, which is not supported: threads "
                          "wait for a connection; raise maxPoolSize",
                          MONGOC_URI_WAITQUEUETIMEOUTMS);
    return SPILL_OK;
}

/*
 * Version 1 of the error API hides that an error is the server's. No function returns the version
 * of a client, so send a command that no server knows.
 */
static spill_code_t check_error_api(spill_mongo_t *store, spill_error_t *error)
{
    bson_error_t cause;
    bson_t reply;
    SPILL_SCOPED(bson_destroy) bson_t command = BSON_INITIALIZER;
    BSON_APPEND_INT32(&command, "spillwayErrorApi", 1);
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    bool good =
        mongoc_client_command_simple(client, store->database, &command, NULL, &reply, &cause);
    bool answered = bson_has_field(&reply, "ok");
    mongoc_client_pool_push(store->pool, client);
    bson_destroy(&reply);
    if (good || !answered || cause.domain == MONGOC_ERROR_SERVER)
        return SPILL_OK;
    return spill_fail(
        error, SPILL_INVALID,
        "the pool's errors have version 1: call mongoc_client_pool_set_error_api(pool, "
        "MONGOC_ERROR_API_VERSION_2) before its first client");
}

/* Make a store of the pool's settings. NULL: *code is the error. */
static spill_mongo_t *make_store(mongoc_client_pool_t *pool, const char *database,
                                 const spill_store_options_t *options, spill_code_t *code,
                                 spill_error_t *error)
{
    spill_mongo_t *store = NULL;
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    if (!client) { /* the time to wait for one has passed */
        *code = spill_fail(error, SPILL_INVALID, "the pool has no client to spare");
        return NULL;
    }
    const mongoc_uri_t *uri = mongoc_client_get_uri(client);
    const char *name = database ? database : mongoc_uri_get_database(uri);
    *code = check_uri(uri, name, error);
    if (*code == SPILL_OK) {
        store = spill_mongo_make_store(uri, name, options);
        store->pool = pool;
        store->is_borrowed = true;
        fill_concerns(uri, &store->concerns);
    }
    mongoc_client_pool_push(pool, client);
    return store;
}

spill_code_t spill_store_open_pool(mongoc_client_pool_t *pool, const char *database,
                                   const spill_store_options_t *options, spill_store_t **store,
                                   spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, store);
    *store = NULL;
    SPILL_CHECK_POINTERS(error, pool);
    spill_store_options_t defaults;
    spill_store_options_init(&defaults);
    options = options ? options : &defaults;
    SPILL_TRY(spill_store_options_check(options, error));
    if (options->count_bytes)
        return spill_fail(error, SPILL_INVALID,
                          "count_bytes needs a pool of the store's own: open the store by its URI");
    SPILL_TRY(spill_driver_load(error));
    spill_code_t code;
    spill_mongo_t *mongo = make_store(pool, database, options, &code, error);
    if (!mongo)
        return code;
    code = spill_mongo_check(mongo, error);
    if (code == SPILL_OK)
        code = check_error_api(mongo, error);
    if (code == SPILL_OK)
        *store = &mongo->base;
    else
        spill_store_close(&mongo->base, NULL);
    return code;
}
