/* Dropping a definition: its owners first, then its entry in the catalog. */
#include "core/array.h"
#include "util/error.h"

enum { TRIES_MAX = 20 };

typedef struct drop {
    spill_array_t *array;
    int64_t dropped;
} drop_t;

static spill_code_t drop_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    drop_t *drop = context;
    spill_code_t code = spill_array_drop_owner(drop->array, owner, error);
    drop->dropped++;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code; /* another client was faster */
}

static spill_code_t drop_owners(spill_array_t *array, spill_error_t *error)
{
    drop_t drop = {.array = array};
    do {
        drop.dropped = 0;
        SPILL_TRY(spill_each_owner(array, drop_owner, &drop, false, error));
    } while (drop.dropped > 0); /* again for owners made meanwhile */
    return SPILL_OK;
}

static void close_array(spill_array_t **array)
{
    spill_array_close(*array);
}

spill_code_t spill_store_drop(spill_store_t *store, const char *name, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, store, name);
    SPILL_SCOPED(close_array) spill_array_t *array = NULL;
    SPILL_TRY(spill_array_open(store, name, &array, error));
    array->building = false;
    bool done = false;
    for (int tries = 0; tries <= TRIES_MAX; tries++) {
        SPILL_TRY(drop_owners(array, error));
        SPILL_TRY(spill_store_retire(store, &array->definition, &array->binding, &done, error));
        if (done)
            return SPILL_OK;
    }
    return spill_fail_retryable(error, SPILL_CONFLICT,
                                "owners of '%s' keep being made, or cannot all be listed: "
                                "stop those who append, or run `spillway verify`",
                                name);
}
