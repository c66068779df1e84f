/*
 * The gateway's log: one line of JSON on stderr for each event. It has no data of users: no
 * documents, filters or passwords. Any thread.
 */
#ifndef SPILL_GATEWAY_LOG_H
#define SPILL_GATEWAY_LOG_H

#include <bson/bson.h>

#include <stdint.h>

/* Write {"t": time, "event": event, ...fields}. `fields` (may be NULL) is destroyed. */
void spill_gateway_log(const char *event, bson_t *fields);

/* How many lines could not be written. A gateway whose log is lost serves on. */
int64_t spill_gateway_log_lost(void);

#endif
