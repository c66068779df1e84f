/* Ctrl-C and SIGTERM: the first one asks the work to end properly, a second one ends it at once. */
#ifndef SPILL_CLI_INTERRUPT_H
#define SPILL_CLI_INTERRUPT_H

#include <spillway/store.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Catch both from now on. The result is true once the program was asked to end. */
atomic_bool *spill_cli_catch_interrupts(void);

bool spill_cli_interrupted(void);

/* Catch both, and end long work on the store when one arrives. */
void spill_cli_stop_on_interrupt(spill_store_t *store);

#endif
