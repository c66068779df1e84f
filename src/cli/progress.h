/* Progress on stderr: on a terminal a line that is rewritten, else a line every few seconds. */
#ifndef SPILL_CLI_PROGRESS_H
#define SPILL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct spill_cli_progress {
    bool quiet;
    bool terminal;
    int64_t started_us;
    int64_t printed_us;
    bool line_open; /* a line on the terminal has no line end yet */
} spill_cli_progress_t;

void spill_cli_progress_start(spill_cli_progress_t *progress, bool quiet);

/* Print, if it is time: `done` records, and part / whole as progress (whole < 0: unknown). */
void spill_cli_progress_show(spill_cli_progress_t *progress, int64_t done, int64_t part,
                             int64_t whole);

/* The same with a text of the caller's own. */
void spill_cli_progress_print(spill_cli_progress_t *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* End the line on the terminal, before something else is printed. */
void spill_cli_progress_break(spill_cli_progress_t *progress);

/* Seconds since the start. */
double spill_cli_progress_seconds(const spill_cli_progress_t *progress);

#endif
