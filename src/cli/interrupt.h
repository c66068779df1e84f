/* Ctrl-C, and SIGTERM: the first one asks the work to end in good order, a second one ends it. */
#ifndef SPILL_CLI_INTERRUPT_H
#define SPILL_CLI_INTERRUPT_H

#include <spillway/store.h>

#include <stdatomic.h>
#include <stdbool.h>

/* From now on. What is returned is true once the program was asked to end. */
atomic_bool *spill_cli_catch_interrupts(void);

bool spill_cli_interrupted(void);

/* The same, for a store: catch both signals, and end long work on the store once one came. */
void spill_cli_stop_on_interrupt(spill_store_t *store);

#endif
