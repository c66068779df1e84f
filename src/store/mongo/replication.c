#include "store/replication.h"

#include "store/mongo/mongo.h"
#include "util/error.h"

struct spill_replication {
    spill_mongo_t *store;
    mongoc_client_t *client;
};

spill_code_t spill_replication_open(const char *uri, spill_replication_t **replication,
                                    spill_error_t *error)
{
    spill_store_options_t options;
    spill_store_t *store = NULL;
    *replication = NULL;
    SPILL_TRY(spill_driver_load(error));
    spill_replication_t *made = bson_malloc0(sizeof *made);
    *replication = made;
    spill_store_options_init(&options);
    options.read_only = true;
    SPILL_TRY(spill_mongo_open(uri, &options, &store, error));
    made->store = (spill_mongo_t *)store;
    made->client = mongoc_client_pool_pop(made->store->pool);
    return SPILL_OK;
}

void spill_replication_close(spill_replication_t *replication)
{
    if (!replication)
        return;
    if (replication->client)
        mongoc_client_pool_push(replication->store->pool, replication->client);
    if (replication->store)
        spill_store_close(&replication->store->base, NULL);
    bson_free(replication);
}

/* ---- the answer ------------------------------------------------------------------------------ */

enum { STATE_PRIMARY = 1, STATE_SECONDARY = 2 };

/* Read a member's state, and the time of its last operation. False: it has none. */
static bool read_member(const bson_iter_t *member, int64_t *state, int64_t *time_ms)
{
    bson_iter_t iter;
    *state = 0;
    if (!BSON_ITER_HOLDS_DOCUMENT(member) || !bson_iter_recurse(member, &iter) ||
        !bson_iter_find(&iter, "state") || !BSON_ITER_HOLDS_NUMBER(&iter))
        return false;
    *state = bson_iter_as_int64(&iter);
    if (!bson_iter_recurse(member, &iter) || !bson_iter_find(&iter, "optimeDate") ||
        !BSON_ITER_HOLDS_DATE_TIME(&iter))
        return false;
    *time_ms = bson_iter_date_time(&iter);
    return true;
}

bool spill_replication_lag_of(const bson_t *status, double *lag_s)
{
    bson_iter_t members, member;
    bool has_primary = false, has_secondary = false;
    int64_t primary_ms = 0, oldest_ms = 0;
    *lag_s = 0;
    if (!bson_iter_init_find(&members, status, "members") || !BSON_ITER_HOLDS_ARRAY(&members) ||
        !bson_iter_recurse(&members, &member))
        return false;
    while (bson_iter_next(&member)) {
        int64_t state, time_ms;
        if (!read_member(&member, &state, &time_ms))
            continue;
        if (state == STATE_PRIMARY) {
            has_primary = true;
            primary_ms = time_ms;
        } else if (state == STATE_SECONDARY && (!has_secondary || time_ms < oldest_ms)) {
            has_secondary = true;
            oldest_ms = time_ms;
        }
    }
    if (has_primary && has_secondary && oldest_ms < primary_ms)
        *lag_s = (double)(primary_ms - oldest_ms) / 1e3;
    return has_primary;
}

spill_code_t spill_replication_lag(spill_replication_t *replication, double *lag_s,
                                   spill_error_t *error)
{
    const spill_mongo_t *store = replication->store;
    bson_error_t cause;
    bson_t reply, command = BSON_INITIALIZER;
    *lag_s = 0;
    BSON_APPEND_INT32(&command, "replSetGetStatus", 1);
    bool done =
        mongoc_client_command_simple(replication->client, "admin", &command, NULL, &reply, &cause);
    bson_destroy(&command);
    spill_code_t code = SPILL_OK;
    if (!done)
        code = spill_mongo_fail(store, NULL, false, &cause, &reply, error);
    else if (!spill_replication_lag_of(&reply, lag_s))
        code = spill_fail(error, SPILL_IO, "%s: the replica set has no primary now", store->place);
    bson_destroy(&reply);
    return code;
}
