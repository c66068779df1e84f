#include "util/fork.h"

#include <pthread.h>
#include <unistd.h>

unsigned spill_fork_count;

static void count_fork(void)
{
    spill_fork_count++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

spill_maker_t spill_maker_now(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return (spill_maker_t){.forks = spill_fork_count, .pid = getpid()};
}
