/*
 * The gateway's log: one line of JSON on stderr for each event. It has no data of users: no
 * documents, filters or passwords. Any thread.
 */
#ifndef SPILL_GATEWAY_LOG_H
#define SPILL_GATEWAY_LOG_H

#include "service/lost_lines.h"

#include <bson/bson.h>

/*
 * Write {"t": time, "event": event, ...fields}. `fields` (may be NULL) is destroyed. If lines were
 * lost before this one, the event "gap" counts them.
 */
void spill_gateway_log(const char *event, bson_t *fields);

/* The lines that could not be written. A gateway without its log serves on. */
const spill_lost_lines_t *spill_gateway_lost_lines(void);

#endif
