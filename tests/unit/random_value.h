/* Random BSON values for property tests: every type, nested, with frequent corner cases. */
#ifndef TESTS_UNIT_RANDOM_VALUE_H
#define TESTS_UNIT_RANDOM_VALUE_H

#include <spillway/value.h>

typedef struct random_source {
    uint64_t state;
} random_source_t;

uint64_t random_next(random_source_t *random);

/* 0 <= result < bound */
uint32_t random_below(random_source_t *random, uint32_t bound);

/* Append one random value of any type. */
void random_append(random_source_t *random, bson_t *document, const char *key);

/* Append a random number of any of the four types, from small sets, so that equal numbers occur. */
void random_append_number(random_source_t *random, bson_t *document, const char *key);

/* Return the first value of a document. */
spill_value_t first_value(const bson_t *document);

#endif
