/*
 * How far the secondaries of a replica set are behind their primary. Jobs that write much wait for
 * them (tools/throttle.h).
 *
 * Threads: one thread at a time uses a replication.
 */
#ifndef SPILL_STORE_REPLICATION_H
#define SPILL_STORE_REPLICATION_H

#include <spillway/error.h>

#include <bson/bson.h>
#include <stdbool.h>

typedef struct spill_replication spill_replication_t;

/* Connect to the servers of a URI. Fails as the opening of a store. Close it in every case. */
spill_code_t spill_replication_open(const char *uri, spill_replication_t **replication,
                                    spill_error_t *error);
void spill_replication_close(spill_replication_t *replication); /* NULL is allowed */

/*
 * Measure the lag of the secondary that is furthest behind, in seconds. Secondaries that are down
 * or recovering do not count. 0: there are none. Errors: the server is no replica set, or the user
 * may not ask it (SPILL_DENIED). One command.
 */
spill_code_t spill_replication_lag(spill_replication_t *replication, double *lag_s,
                                   spill_error_t *error);

/*
 * The same from an answer to replSetGetStatus. False: it names no primary. A pure function, for
 * tests.
 */
bool spill_replication_lag_of(const bson_t *status, double *lag_s);

#endif
