/* The process of the program: its descriptors, limits, memory and signals. */
#ifndef SPILL_CLI_PROCESS_H
#define SPILL_CLI_PROCESS_H

#include <spillway/store.h>

#include <stdbool.h>

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
#include <stdatomic.h>

/* ---- interrupts ------------------------------------------------------------------------------ */

/*
 * Ctrl-C and SIGTERM: the first one asks the work to end properly, a second one ends it at once.
 * Catch both from now on. The result is true once the program was asked to end.
 */
atomic_bool *spill_cli_catch_interrupts(void);

bool spill_cli_interrupted(void);

/* Catch both, and end long work on the store when one arrives. */
void spill_cli_stop_on_interrupt(spill_store_t *store);
#endif

#endif
