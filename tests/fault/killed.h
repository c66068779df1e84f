/*
 * A worker process that appends to an embedded store from four threads until it is killed, and the
 * ledger of the acknowledged appends.
 *
 * Each thread appends its own counter 0, 1, 2, ... with operation ids. Before it first tries a
 * counter, it reports the operation's base to the test. After the answer, it reports the element's
 * sequence number. So the test knows which appends were acknowledged. After a restart, a thread
 * retries its unacknowledged counter with the same id and base. At the end the store must have
 * each acknowledged counter exactly once, in order, under the reported number, and the verifier
 * must find nothing.
 */
#ifndef SPILL_TESTS_FAULT_KILLED_H
#define SPILL_TESTS_FAULT_KILLED_H

#include <spillway/spillway.h>

#include <stdbool.h>

enum { KILLED_THREADS = 4 };

/* Where a thread continues. `base` belongs to the first try of `counter`; -1: not tried yet. */
typedef struct killed_start {
    int64_t counter;
    int64_t base;
} killed_start_t;

typedef struct killed_ledger {
    killed_start_t next[KILLED_THREADS]; /* where each thread continues */
    int64_t kept[KILLED_THREADS];        /* acknowledged before the store was last closed */
    int64_t *seqs[KILLED_THREADS];       /* number given to each acknowledged counter */
    size_t capacity[KILLED_THREADS];
    int64_t answers;
    int64_t closes;
    int64_t lost; /* acknowledged appends that a power loss removed */
} killed_ledger_t;

/* What a worker does, and when the test kills it. */
typedef struct killed_plan {
    spill_durability_t durability;
    bool at_once;     /* count `longest_us` from the start, not from the first append or close */
    int before_close; /* each thread's appends before the store is closed and reopened; 0: never */
    int padding;      /* bytes of text in each element */
    int longest_us;   /* the longest random delay before the kill */
} killed_plan_t;

/*
 * A third of the seeds have the head's fields in a sub-document, with paths for names. Returns
 * whether this seed does; the workers of the next rounds follow it.
 */
bool killed_use_paths(unsigned seed);

void killed_ledger_init(killed_ledger_t *ledger);
void killed_ledger_release(killed_ledger_t *ledger);

/*
 * If this process is a worker, do the worker's appends and never return. Call this first in main:
 * the test program starts itself again as its worker.
 */
void killed_run_if_worker(int count, char **arguments);

/* Run a worker on the store, kill it after a random delay, and record its messages. */
void killed_round(killed_ledger_t *ledger, const char *path, const killed_plan_t *plan,
                  unsigned *random);

/*
 * In a child process, open the store, verify it, compare it with the ledger, and close it. Every
 * acknowledged element must exist.
 */
void killed_check(const killed_ledger_t *ledger, const char *path);

/*
 * The same after a power loss with durability log. Every element acknowledged before the last close
 * must exist. The other elements must be the appends that followed, in order. The ledger continues
 * from the last element found.
 */
void killed_check_prefix(killed_ledger_t *ledger, const char *path);

/* The first seed of random numbers: SPILLWAY_SEED if it is set. */
unsigned killed_seed(void);

#endif
