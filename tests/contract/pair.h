/* Two stores that are asked the same, and have to answer the same: a model store and another. */
#ifndef TESTS_CONTRACT_PAIR_H
#define TESTS_CONTRACT_PAIR_H

#include "fixture.h"

/* Two that keep the newest, one that keeps the oldest, one of buckets, and two capped ones. */
#define PAIR_ARRAYS 6
#define PAIR_BUCKETS 3
#define PAIR_CAPPED 4
#define PAIR_TOP_N 5 /* of which one keeps the best */
/* And two whose elements are apart, for random_referenced.c. */
#define PAIR_REFERENCE 6
#define PAIR_SUBSET 7
#define PAIR_ALL 8
#define PAIR_OWNERS 2
#define PAIR_PAGES 12 /* no test goes beyond */

/* Is it a capped one? */
static inline bool pair_is_capped(size_t array)
{
    return array == PAIR_CAPPED || array == PAIR_TOP_N;
}

typedef struct pair {
    const contract_kind_t *kind;
    spill_store_t *stores[2]; /* memory first */
    spill_definition_t definitions[PAIR_ALL];
    spill_binding_t bindings[2][PAIR_ALL];
    /* Numbers, and behind them as many windows, the owners of the buckets. */
    bson_t owner_storage[2 * PAIR_OWNERS];
    spill_value_t owners[2 * PAIR_OWNERS];
    spill_buffer_t keys[2 * PAIR_OWNERS];
    spill_response_t responses[2];
    int64_t done[SPILL_REQUEST_KIND_COUNT];
    int64_t refused[SPILL_REQUEST_KIND_COUNT];
} pair_t;

void pair_open(pair_t *pair, const contract_kind_t *kind);
void pair_reopen(pair_t *pair);
void pair_close(pair_t *pair);

/* A request of that array and owner; `limits` allow all. */
spill_request_t pair_request(const pair_t *pair, size_t array, size_t owner,
                             spill_request_kind_t kind, int64_t page);

/* Ask both. The answers, which are equal, are in pair->responses. */
spill_code_t pair_call(pair_t *pair, size_t array, const spill_request_t *request);

/*
 * Compare all of an owner's documents. What lies outside the array (pages not committed, below
 * `low`, or of another incarnation) is compared but for its elements: a store need not keep them.
 */
void pair_compare(pair_t *pair, size_t array, size_t owner);

#endif
