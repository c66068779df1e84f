/*
 * The process of the program: its descriptors, limits, memory and signals, and lines of stdin.
 */
#ifndef SPILL_CLI_PROCESS_H
#define SPILL_CLI_PROCESS_H

#include "util/buffer.h"

#include <spillway/error.h>
#include <spillway/store.h>

#include <stdbool.h>
#include <stdint.h>

SPILL_BEGIN_DECLS

/*
 * Call it first in main. Afterwards descriptors 0 to 2 are open, so no file of a store gets one of
 * them; a write to one that was closed fails. The limit of open files is as high as the system
 * permits. (A write beyond the file size limit, ulimit -f, fails without ending the process: that
 * is set up before main.)
 */
void spill_cli_prepare_process(void);

/* When memory runs out, print that and exit with SPILL_EXIT_FAILED instead of aborting. */
void spill_cli_report_lost_memory(void);

SPILL_END_DECLS

#ifndef __cplusplus
#include "cli/progress.h"

#include <stdatomic.h>

/* ---- interrupts ------------------------------------------------------------------------------ */

/*
 * Ctrl-C and SIGTERM: the first one asks the work to end properly, a second one ends it at once.
 * Catch both from now on. The result is true once the program was asked to end.
 */
atomic_bool *spill_cli_catch_interrupts(void);

bool spill_cli_interrupted(void);

/* Wait until the first of them is caught. For one thread. */
void spill_cli_await_interrupt(void);

/* Catch both, and end long work on the store when one arrives. */
void spill_cli_stop_on_interrupt(spill_store_t *store);

/* ---- the reader of stdout ----------------------------------------------------------------- */

/*
 * For a command that only reads, and may print nothing for long: from now on, if stdout is a pipe
 * and its reader closes it, end the program at once, as a write to the pipe would (SIGPIPE). If
 * that signal is ignored, the program counts as interrupted. If no thread can be started, the next
 * write ends the program.
 */
void spill_cli_stop_without_reader(void);

/* All results are known. A reader that leaves before the program's end is no reason to stop. */
void spill_cli_reader_may_leave(void);

/* ---- lines of stdin -------------------------------------------------------------------------- */

/* Lines of stdin as they arrive, for commands that must not wait for the end of a live pipe. */

typedef enum spill_cli_lines_state {
    SPILL_CLI_LINES_ONE,  /* a line was read */
    SPILL_CLI_LINES_NONE, /* no complete line arrived in time */
    SPILL_CLI_LINES_END   /* no more lines: end of the input, or Ctrl-C */
} spill_cli_lines_state_t;

/* A zeroed one is ready for use. Release it in every case. */
typedef struct spill_cli_lines {
    spill_buffer_t bytes;
    size_t start;   /* of the next line */
    size_t scanned; /* no line end before this offset */
    bool ended;
} spill_cli_lines_t;

/*
 * Wait at most `wait_ms` milliseconds for the next line. *line is borrowed until the next call, and
 * has no line end. A last line without a line end counts. SPILL_IO: stdin cannot be read.
 */
spill_code_t spill_cli_lines_next(spill_cli_lines_t *lines, int wait_ms,
                                  spill_cli_lines_state_t *state, const char **line, size_t *size,
                                  spill_error_t *error);
void spill_cli_lines_release(spill_cli_lines_t *lines);

#endif

#endif
