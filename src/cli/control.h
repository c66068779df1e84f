/*
 * Control of a running job: `spillway control PATH COMMAND` sends a line to the socket of a job
 * that was started with --control PATH, and the job answers with a line of JSON.
 */
#ifndef SPILL_CLI_CONTROL_H
#define SPILL_CLI_CONTROL_H

#include "cli/process.h"
#include "service/job_metrics.h"
#include "tools/throttle.h"

#include <pthread.h>

/* A job's socket. Zero it; it may be stopped in every case. */
typedef struct spill_cli_control {
    const char *path; /* borrowed; NULL: there is none */
    const char *job;  /* "migrate"; borrowed */
    spill_job_pace_t *pace;
    const char *pause_file; /* of --pause-file; borrowed; NULL: there is none */
    const spill_cli_progress_t *progress;
    spill_job_metrics_t *metrics;
    /* Called in the socket's thread after a command; `value` is NULL if the command has none. */
    void (*changed)(void *context, const char *command, const int64_t *value);
    void *context; /* of `changed` */
    int listener;
    int wake[2]; /* a pipe: a byte ends the thread */
    pthread_t thread;
    bool started;
} spill_cli_control_t;

/*
 * Listen at control->path, with mode 0600, in a thread of its own. SPILL_BUSY: a job answers there
 * already; a socket that a killed job left is replaced. SPILL_REFUSED: a file of another kind, or a
 * path inside a store. SPILL_INVALID: the path is too long for a socket.
 */
spill_code_t spill_cli_control_start(spill_cli_control_t *control, spill_error_t *error);
void spill_cli_control_stop(spill_cli_control_t *control);

#endif
