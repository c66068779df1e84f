/*
 * The file of --log: a line of JSON for each event of a job, with its time. A reader of only
 * this file can find out what the job did, and why it ended.
 *
 * A log that cannot be written does not stop a job. The first line that is lost is reported on
 * stderr. If the file can be written again, a line of the event "gap" counts the lines that are
 * missing before it.
 *
 * Threads: any.
 */
#ifndef SPILL_CLI_JOB_LOG_H
#define SPILL_CLI_JOB_LOG_H

#include "service/lost_lines.h"

#include <spillway/error.h>

#include <bson/bson.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Open it before the first use. */
typedef struct spill_cli_job_log {
    spill_lost_lines_t losses; /* its path is borrowed; NULL: there is no log */
    int file;
    pthread_mutex_t lock; /* of the following */
    int64_t missing;      /* lines that were lost since the last one that was written */
    bool is_torn;         /* the file may end within a line */
} spill_cli_job_log_t;

/*
 * Append to the file `path`; NULL: write nothing. SPILL_REFUSED: the path lies in a store. SPILL_IO
 * and the like: the file cannot be opened. Close the log in every case.
 */
spill_code_t spill_cli_job_log_open(spill_cli_job_log_t *log, const char *path,
                                    spill_error_t *error);

/* Append a line with the time, the event, and the fields (may be NULL). One write. */
void spill_cli_job_log_write(spill_cli_job_log_t *log, const char *event, const bson_t *fields);

/* The error of the last line that was lost, or of closing. */
spill_code_t spill_cli_job_log_close(spill_cli_job_log_t *log, spill_error_t *error);

#endif
