/*
 * Log lines of slow commands (--slow-ms). A line has the command's name, its namespace, its class
 * and its milliseconds, and no data of users. A command that clients can name as they like, because
 * the gateway does not know it, is "other".
 */
#ifndef SPILL_GATEWAY_SLOW_H
#define SPILL_GATEWAY_SLOW_H

#include "gateway/metrics.h"

/* The command in progress on a connection. */
typedef struct spill_slow {
    char command[32];
    char ns[256]; /* <database>.<collection>, or the database */
    int64_t began_us;
} spill_slow_t;

/*
 * Note that a command begins. *slow is made if it is NULL; the caller frees it with bson_free.
 * `collection` may be NULL. Nothing happens if slow_ms is 0.
 */
void spill_slow_begin(spill_slow_t **slow, int64_t slow_ms, const char *name, const char *database,
                      const char *collection);

/* The command has ended: log it if it took slow_ms or longer. `slow` may be NULL. */
void spill_slow_end(spill_slow_t *slow, int64_t slow_ms, spill_metrics_class_t class);

#endif
