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

/*
 * A line of stderr that the log did not write, as the event "message": a library such as libbson
 * prints its texts there, which are constant. NULL: it is a line of the log. Free it with
 * bson_free. It is a spill_cli_wrap_fn.
 */
char *spill_gateway_log_message(const char *text);

/* The lines that could not be written. A gateway without its log serves on. */
const spill_lost_lines_t *spill_gateway_lost_lines(void);

#endif
