/* A store on the engine in memory, whose records a test changes behind the store's back. */
#ifndef TESTS_SUPPORT_TAMPERED_H
#define TESTS_SUPPORT_TAMPERED_H

#include "support/embedded.h"

/*
 * Owner "ada" has the numbers 0..29 in "feed": at most 5 + 4 in the head, and 4 in a page.
 * Documents would have an id, "id".
 */
typedef struct tampered {
    disk_t *disk;
    spill_store_t *store;
    spill_array_t *array;
    spill_kv_t *kv;         /* the engine, beside the store */
    spill_record_key_t key; /* of ada's records */
} tampered_t;

void tampered_open(tampered_t *tampered, spill_keep_t keep);
void tampered_close(tampered_t *tampered);

/* The store remembers heads that it has written: begin without. */
void tampered_reopen(tampered_t *tampered);

/* Write or delete the record at `key`. */
void tampered_put(tampered_t *tampered, const void *value, size_t size_bytes);
void tampered_delete(tampered_t *tampered);

#endif
