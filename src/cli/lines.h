/* Lines of stdin as they arrive, for commands that must not wait for the end of a live pipe. */
#ifndef SPILL_CLI_LINES_H
#define SPILL_CLI_LINES_H

#include "util/buffer.h"

#include <spillway/error.h>

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
