/*
 * A process that appends from four threads to an embedded store until it is killed, and the ledger
 * of what it was promised.
 *
 * Each thread appends its own counter 0, 1, 2, ... with operation ids. Before the first try of a
 * counter it tells the test its operation's base, and after the answer the number it was given. So
 * the test knows what was acknowledged, and a thread that is started again repeats the counter
 * that was under way with the same id and base. In the end each counter that was acknowledged is
 * there exactly once, in order, under the number that was told, and the verifier is content.
 */
#ifndef SPILL_TESTS_FAULT_KILLED_H
#define SPILL_TESTS_FAULT_KILLED_H

#include <spillway/spillway.h>

#include <stdbool.h>

enum { KILLED_THREADS = 4 };

/* Where a thread goes on: `base` is of the counter's first try, -1 when there was none. */
typedef struct killed_start {
    int64_t counter;
    int64_t base;
} killed_start_t;

typedef struct killed_ledger {
    killed_start_t next[KILLED_THREADS]; /* where each thread goes on */
    int64_t kept[KILLED_THREADS];        /* acknowledged before the store was last closed */
    int64_t *seqs[KILLED_THREADS];       /* number given to each acknowledged counter */
    size_t capacity[KILLED_THREADS];
    int64_t answers;
    int64_t closes;
    int64_t lost; /* of the answers, with the machine */
} killed_ledger_t;

/* How a worker works, and when it is killed. */
typedef struct killed_plan {
    spill_durability_t durability;
    bool at_once;     /* a random while after its start, else after it closed or first appended */
    int before_close; /* appends of each thread, then the store is closed and opened; 0: neither */
    int padding;      /* bytes of text in each element */
    int longest_us;   /* of the random while */
} killed_plan_t;

void killed_ledger_init(killed_ledger_t *ledger);
void killed_ledger_release(killed_ledger_t *ledger);

/*
 * Is this process a worker? To be asked first thing in main: a test program starts itself again as
 * its worker. If so it does the work, and does not return.
 */
void killed_run_if_worker(int count, char **arguments);

/* Run a worker on the store, kill it after a random while, and book what it said. */
void killed_round(killed_ledger_t *ledger, const char *path, const killed_plan_t *plan,
                  unsigned *random);

/*
 * Open the store, verify it, and hold it against the ledger; in a process of its own, which closes
 * it. Everything acknowledged is there.
 */
void killed_check(const killed_ledger_t *ledger, const char *path);

/*
 * The same after the machine died while log durability was in use: what was acknowledged before the
 * last close is there, and what there is besides are the appends that came next, in order. The
 * ledger goes on from there.
 */
void killed_check_prefix(killed_ledger_t *ledger, const char *path);

/* The first seed of random numbers: SPILLWAY_SEED where it is set. */
unsigned killed_seed(void);

#endif
