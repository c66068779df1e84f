#include "cli/process.h"

#include "cli/command.h"
#include "store/store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- preparation ----------------------------------------------------------------------------- */

/* Opened in the wrong direction, so that using a stdin or stdout that was closed fails. */
static void open_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(SPILL_EXIT_FAILED);
    }
}

/* A reader keeps all files of a store open, and the usual limit is 1024. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void spill_cli_prepare_process(void)
{
    open_standard_descriptors();
    raise_open_files();
}

/*
 * Runs before the libraries are initialized: the server's driver then creates a file, which a small
 * limit (ulimit -f) would forbid.
 */
static void ignore_file_size_signal(void)
{
    signal(SIGXFSZ, SIG_IGN);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(void) = ignore_file_size_signal;

/* ---- interrupts ------------------------------------------------------------------------------ */

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
