/* What a scan found, for a person: findings first. */
#ifndef SPILL_CLI_SCAN_PRINT_H
#define SPILL_CLI_SCAN_PRINT_H

#include "tools/scan/scan.h"

/* On stdout. */
void spill_cli_print_scan(const spill_scan_result_t *result);

/* On stderr, one a line. */
void spill_cli_print_problems(const spill_scan_result_t *result);

#endif
