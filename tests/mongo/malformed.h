/* Draw documents with arbitrary values from sound ones. The same seed draws the same documents. */
#ifndef SPILL_TESTS_MALFORMED_H
#define SPILL_TESTS_MALFORMED_H

#include <bson/bson.h>

void malformed_seed(uint64_t seed);

/* Draw a number from 0 to limit - 1. */
int malformed_below(int limit);

/*
 * The document with one change: a field is removed, gets another value, is shifted, or gets a
 * neighbour. Most changes are made in the bookkeeping. Destroy the result with bson_destroy.
 */
bson_t *malformed_document(const bson_t *content);

/* The document under another _id. Destroy the result with bson_destroy. */
bson_t *malformed_copy(const bson_t *content);

#endif
