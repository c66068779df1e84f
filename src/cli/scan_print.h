/* The result of a scan as text for people: findings first. */
#ifndef SPILL_CLI_SCAN_PRINT_H
#define SPILL_CLI_SCAN_PRINT_H

#include "cli/command.h"
#include "tools/scan/scan.h"

/* The source's name for output: as it was given, for a server without a password. */
const char *spill_cli_shown_source(const spill_invocation_t *invocation,
                                   const spill_scan_result_t *result);

/* For spill_scan_options_t: show the progress of a scan; the context is a spill_cli_progress_t. */
void spill_cli_show_scan(void *context, const spill_scan_progress_t *progress);

/* Print on stdout. */
void spill_cli_print_scan(const spill_scan_result_t *result);

/* Print on stderr, one per line. */
void spill_cli_print_problems(const spill_scan_result_t *result);

/* Print their number on stderr, if there are any; for commands that do not print them. */
void spill_cli_remark_problems(const spill_scan_result_t *result);

#endif
