/* What copy and convert print while they run, and how they end. */
#ifndef SPILL_CLI_COPY_REPORT_H
#define SPILL_CLI_COPY_REPORT_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "tools/copy.h"

/* One run of a command that copies. Zero it first. */
typedef struct spill_cli_copy {
    const spill_invocation_t *invocation;
    spill_copy_result_t result; /* for spill_copy to add to */
    spill_cli_progress_t progress;
} spill_cli_copy_t;

void spill_cli_copy_start(spill_cli_copy_t *copy, const spill_invocation_t *invocation);

/* Have a copy with these options print its progress and its differences. */
void spill_cli_copy_hook(spill_cli_copy_t *copy, spill_copy_options_t *options);

/* The summary: one line of JSON on stdout, and the speed on stderr. */
void spill_cli_copy_print_result(const spill_cli_copy_t *copy);

/*
 * The exit code, where `code` is how the work ended and `closed` how the stores were closed. After
 * an error, says on stderr that what was copied stays.
 */
spill_exit_t spill_cli_copy_exit(const spill_cli_copy_t *copy, spill_code_t code,
                                 spill_exit_t closed);

#endif
