/*
 * Progress on stderr: on a terminal one line that is rewritten and fits the width, else a line
 * every few seconds.
 */
#ifndef SPILL_CLI_PROGRESS_H
#define SPILL_CLI_PROGRESS_H

#include "util/estimate.h"

#include <stdbool.h>
#include <stdint.h>

#define SPILL_CLI_PROGRESS_TEXT 256

/* Only work that took this long has a speed worth printing at its end. */
#define SPILL_CLI_LONG_S 1.0

typedef struct spill_cli_progress {
    char text[SPILL_CLI_PROGRESS_TEXT]; /* the latest, printed or not */
    bool quiet;
    bool terminal;
    int64_t started_us;
    int64_t printed_us;
    int columns; /* of the terminal that the open line has filled; 0: no line is open */
    spill_estimate_t estimate;
    double waited_s;  /* no work was done in that time */
    int64_t waits_us; /* since then; 0: the job works */
    double left_least_s;
} spill_cli_progress_t;

void spill_cli_progress_start(spill_cli_progress_t *progress, bool quiet);

/* Is it time for a line? Then printing one has an effect. */
bool spill_cli_progress_due(const spill_cli_progress_t *progress);

/* Print, if it is time: `done` records, and part / whole as progress (whole < 0: unknown). */
void spill_cli_progress_show(spill_cli_progress_t *progress, int64_t done, int64_t part,
                             int64_t whole);

/* The same with a text of the caller's own. */
void spill_cli_progress_print(spill_cli_progress_t *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The same, followed by the percentage part / whole and the time that is left. If the line is too
 * long for the terminal, what stands last in the text is left out. whole <= 0 or part > whole:
 * unknown.
 */
void spill_cli_progress_part(spill_cli_progress_t *progress, int64_t part, int64_t whole,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The next part / whole counts other work, of which `part` is done: forget the speed so far. */
void spill_cli_progress_restart(spill_cli_progress_t *progress, int64_t part);

/*
 * The job waits for something else than its work, or (waits: false) works again. The time between
 * does not count for the speed. A call without a change has no effect.
 */
void spill_cli_progress_wait(spill_cli_progress_t *progress, bool waits);

/* From now on, print no time left below this; 0: any. */
void spill_cli_progress_at_least(spill_cli_progress_t *progress, double left_s);

/*
 * Between these calls no other thread prints on stderr, or changes the progress by a call of these
 * functions. A thread may nest them; other functions here that print call them.
 */
void spill_cli_progress_lock(void);
void spill_cli_progress_unlock(void);

/* Copy the latest text, "" before the first. Any thread. */
void spill_cli_progress_text(const spill_cli_progress_t *progress,
                             char text[SPILL_CLI_PROGRESS_TEXT]);

/* Erase the line on the terminal, before something else is printed. */
void spill_cli_progress_break(spill_cli_progress_t *progress);

/* The same for whatever line is open: messages may come from anywhere. */
void spill_cli_progress_erase(void);

/* Seconds since the start. */
double spill_cli_progress_seconds(const spill_cli_progress_t *progress);

/* The columns of the terminal of stderr, or of stdout; 80 if there is none, or it does not know. */
int spill_cli_terminal_columns(void);

/* The columns of a character by its first byte. A character of three bytes or more may be wide. */
int spill_cli_byte_columns(unsigned char byte);

#endif
