/* Summaries that are wrong, and repair that makes them anew, on any store. */
#ifndef TESTS_SUPPORT_SPOILED_H
#define TESTS_SUPPORT_SPOILED_H

#include <spillway/spillway.h>

/* Fails the cmocka test where one is not found, or not mended. The store stays the caller's. */
void spoiled_summaries_fixed(spill_store_t *store);
/* Beside one who never ceases to append, repair gives up. Hundreds of appends. */
void spoiled_beside_appender(spill_store_t *store);

#endif
