/*
 * Forks: a child has none of its parent's threads, but its files, its sockets and a copy of its
 * locks.
 */
#ifndef SPILL_UTIL_FORK_H
#define SPILL_UTIL_FORK_H

#include <stdbool.h>
#include <sys/types.h>

/* The process that made an object. */
typedef struct spill_maker {
    unsigned forks; /* spill_fork_count, when it was made */
    pid_t pid;
} spill_maker_t;

/* The forks between the first process and this one. Only a new child changes it, before it runs. */
extern unsigned spill_fork_count;

/* Return this process. The first call starts to count forks. */
spill_maker_t spill_maker_now(void);

/* Was the object made in this process? Cost: one comparison. */
static inline bool spill_maker_is_current(const spill_maker_t *maker)
{
    return maker->forks == spill_fork_count;
}

#endif
