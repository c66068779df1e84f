/* Corrupted summaries, and their repair from the elements, on any store. */
#ifndef TESTS_SUPPORT_CORRUPTED_H
#define TESTS_SUPPORT_CORRUPTED_H

#include <spillway/spillway.h>

/* Fails the cmocka test if repair misses a corrupted summary or does not correct it. Borrows the
 * store. */
void corrupted_summaries_fixed(spill_store_t *store);
/* Beside a client that never stops appending, repair gives up. Makes hundreds of appends. */
void corrupted_beside_appender(spill_store_t *store);

#endif
