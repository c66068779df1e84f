/* What a scan found, for a person: findings first. */
#ifndef SPILL_CLI_SCAN_PRINT_H
#define SPILL_CLI_SCAN_PRINT_H

#include "cli/command.h"
#include "tools/scan/scan.h"

/* How the source is named in what is printed: as it was given, of a server without a password. */
const char *spill_cli_shown_source(const spill_invocation_t *invocation,
                                   const spill_scan_result_t *result);

/* Of spill_scan_options_t: tells a spill_cli_progress_t, the context, how far a scan is. */
void spill_cli_show_scan(void *context, const spill_scan_progress_t *progress);

/* On stdout. */
void spill_cli_print_scan(const spill_scan_result_t *result);

/* On stderr, one a line. */
void spill_cli_print_problems(const spill_scan_result_t *result);

/* On stderr: how many there are, where there are any; for commands that do not print them. */
void spill_cli_remark_problems(const spill_scan_result_t *result);

#endif
