/* Ctrl-C, and SIGTERM: the first one asks the work to end in good order, a second one ends it. */
#ifndef SPILL_CLI_INTERRUPT_H
#define SPILL_CLI_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

/* From now on. What is returned is true once the program was asked to end. */
atomic_bool *spill_cli_catch_interrupts(void);

bool spill_cli_interrupted(void);

#endif
