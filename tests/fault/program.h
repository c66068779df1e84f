/* The program itself (SPILLWAY names it), run as a user runs it. */
#ifndef SPILL_TESTS_FAULT_PROGRAM_H
#define SPILL_TESTS_FAULT_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

/* How it ended. */
typedef struct program_end {
    bool killed; /* by SIGKILL */
    int status;  /* its exit code otherwise */
    char *out;   /* its output; free both with program_end_release */
    char *err;
} program_end_t;

/* Skip the test (exit code 77) if SPILLWAY is not set. */
void program_needed(void);

/*
 * Start it in `folder`, with stdin from `input` (NULL: nothing) and its output in files there. The
 * list of arguments ends with NULL.
 */
pid_t program_start(const char *folder, const char *input, const char *const *arguments);

/* Wait for it. */
program_end_t program_wait(const char *folder, pid_t pid);
void program_end_release(program_end_t *end);

/* Run it and check that it succeeds. Returns its stdout; free it. */
char *program_run(const char *folder, const char *const *arguments);

#endif
