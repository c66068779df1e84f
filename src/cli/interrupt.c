#include "cli/interrupt.h"

#include "store/store.h"

#include <signal.h>
#include <stddef.h>

static atomic_bool interrupted;

static void on_interrupt(int signal_number)
{
    atomic_store(&interrupted, true);
    signal(signal_number, SIG_DFL);
}

atomic_bool *spill_cli_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}

bool spill_cli_interrupted(void)
{
    return atomic_load(&interrupted);
}

void spill_cli_stop_on_interrupt(spill_store_t *store)
{
    store->stop = spill_cli_catch_interrupts();
}
