#include "store/embedded/engine_fork.h"

#include "util/error.h"
#include "util/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static spill_maker_t started; /* the process in which the engine ran first; set before has_run */
static atomic_bool has_run;

/* Did the engine run in an ancestor of this process? */
static bool ran_before_fork(void)
{
    return atomic_load(&has_run) && !spill_maker_is_current(&started);
}

/* exit() calls the handlers in the reverse order of their registration. */
static void end_child(int status, void *context)
{
    (void)context;
    if (!ran_before_fork())
        return;
    fflush(NULL);
    _exit(status);
}

static void watch_exit(void)
{
    on_exit(end_child, NULL);
}

static void note_start(void)
{
    started = spill_maker_now();
    atomic_store(&has_run, true);
}

spill_code_t spill_engine_check_fork(const char *folder, bool read_only, spill_error_t *error)
{
    if (read_only || !ran_before_fork())
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "%s: process %ld has opened an embedded store, and this process is a fork of "
                      "it, without the engine's threads: fork first, or start this process with "
                      "exec (spawn), or open the store with read_only",
                      folder, (long)started.pid);
}

void spill_engine_has_run(bool read_only)
{
    static pthread_once_t start = PTHREAD_ONCE_INIT;
    static pthread_once_t read = PTHREAD_ONCE_INIT, written = PTHREAD_ONCE_INIT;
    pthread_once(&start, note_start);
    /* Only a writer makes some of the objects that have such destructors. */
    pthread_once(read_only ? &read : &written, watch_exit);
}
