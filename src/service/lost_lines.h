/*
 * The lines that a process could not write to its log, because the disk is full or the like. The
 * work continues without them; operators see the losses in /metrics, /healthz, `spillway control'
 * and on the gateway's status page.
 */
#ifndef SPILL_SERVICE_LOST_LINES_H
#define SPILL_SERVICE_LOST_LINES_H

#include "service/http_server.h"
#include "util/buffer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A log's losses. Zero it, and set `path`. Any thread. */
typedef struct spill_lost_lines {
    const char *path;          /* of the log, or what it is; borrowed; NULL: there is no log */
    atomic_int_fast64_t lines; /* that were lost */
    atomic_int problem;        /* the error number of the last one; 0: none was lost */
    atomic_bool failing;       /* the last line was lost */
} spill_lost_lines_t;

/* Count a line. `problem` is the error number of writing it; 0: it was written. */
void spill_lost_lines_count(spill_lost_lines_t *losses, int problem);

/*
 * Put a sentence for people into `text`: the log, the error, and how many lines it lacks. If no
 * line was lost, return false, and `text` is "". `losses` may be NULL.
 */
enum { SPILL_LOST_LINES_TEXT = 512 };
bool spill_lost_lines_text(const spill_lost_lines_t *losses, char text[SPILL_LOST_LINES_TEXT]);

/* Append that sentence as a line to an answer of /healthz. The status stays. */
void spill_lost_lines_say(const spill_lost_lines_t *losses, spill_http_answer_t *answer);

/* Append the metrics of the log of `command` in Prometheus' text format. */
void spill_lost_lines_print(const spill_lost_lines_t *losses, const char *command,
                            spill_buffer_t *out);

#endif
