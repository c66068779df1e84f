/* Two databases of the test server behind one proxy, which counts the requests to both. */
#ifndef SPILL_TEST_MONGO_COUNTED_PAIR_H
#define SPILL_TEST_MONGO_COUNTED_PAIR_H

#include "support/proxy.h"

#include <spillway/spillway.h>

typedef struct counted_pair {
    proxy_t *proxy;
    char *uris[2]; /* without the proxy */
    spill_store_t *stores[2];
} counted_pair_t;

/* Set-up and tear-down of a cmocka test: *state is the pair. */
int counted_pair_open(void **state);
int counted_pair_close(void **state);

/* Requests so far. */
int64_t counted_pair_requests(const counted_pair_t *pair);

/* Fail the test after an error. */
void counted_pair_must(spill_code_t code, const spill_error_t *error);

/* "o0007". Initializes `storage`, which the caller destroys. */
spill_value_t counted_pair_owner(int number, bson_t *storage);

/* The array has that many owners, and no finding. */
void counted_pair_check(spill_store_t *store, const char *name, int64_t owners);

#endif
