/*
 * A pair of stores that get the same requests and must give the same answers: a model store and
 * another one.
 */
#ifndef TESTS_CONTRACT_PAIR_H
#define TESTS_CONTRACT_PAIR_H

#include "fixture.h"

/*
 * Two arrays that keep the newest, one that keeps the oldest, one of buckets, and two capped ones.
 */
#define PAIR_ARRAYS 6
#define PAIR_BUCKETS 3
#define PAIR_CAPPED 4
#define PAIR_TOP_N 5 /* the capped array with a top-N */
/* And two arrays with referenced elements, for random_referenced.c. */
#define PAIR_REFERENCE 6
#define PAIR_SUBSET 7
#define PAIR_ALL 8
#define PAIR_OWNERS 2
#define PAIR_PAGES 12 /* no test uses more */

/* Is the array capped? */
static inline bool pair_is_capped(size_t array)
{
    return array == PAIR_CAPPED || array == PAIR_TOP_N;
}

typedef struct pair {
    const contract_kind_t *kind;
    spill_store_t *stores[2]; /* the model store first */
    spill_definition_t definitions[PAIR_ALL];
    spill_binding_t bindings[2][PAIR_ALL];
    /*
     * The names of owners: numbers, and the same number of windows, which are the owners of
     * buckets.
     */
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

/* Make a request for that array and owner; its `limits` allow everything. */
spill_request_t pair_request(const pair_t *pair, size_t array, size_t owner,
                             spill_request_kind_t kind, int64_t page);

/* Send it to both stores. Their answers must be equal; they are in pair->responses. */
spill_code_t pair_call(pair_t *pair, size_t array, const spill_request_t *request);

/*
 * Compare all documents of an owner. For documents outside the array (uncommitted pages, pages
 * below the trim watermark or of another incarnation) the elements are not compared: a store need
 * not keep them.
 */
void pair_compare(pair_t *pair, size_t array, size_t owner);

#endif
