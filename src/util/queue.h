/*
 * A queue of threads that want the same kind of work, such as a sync or a command. One of them, the
 * leader, does the work of several threads at the cost of one.
 *
 *      join -> wait -> done                               most threads
 *      join -> wait -> gather, take, (work), hand over    the leader
 *
 * A thread's work is a struct on its own stack, whose first member is a spill_waiter_t. The leader
 * holds the lock between its steps, but not while it works. Each thread sleeps on a semaphore of
 * its own, so a thread that wakes needs no lock.
 */
#ifndef SPILL_UTIL_QUEUE_H
#define SPILL_UTIL_QUEUE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum spill_waiter_state {
    SPILL_WAITER_WAITS,
    SPILL_WAITER_SLEEPS, /* waits, and must be woken */
    SPILL_WAITER_LEADS,
    SPILL_WAITER_DONE
} spill_waiter_state_t;

typedef struct spill_waiter {
    struct spill_waiter *next;
    _Atomic spill_waiter_state_t state;
    sem_t wake; /* valid while it sleeps */
} spill_waiter_t;

typedef struct spill_queue {
    pthread_mutex_t lock;  /* guards the other fields */
    spill_waiter_t *first; /* the leader may walk the list */
    spill_waiter_t **last;
    size_t waiting;
    size_t served; /* by the last leader */
    bool led;      /* there is a leader, or the next one was notified */
} spill_queue_t;

void spill_queue_init(spill_queue_t *queue);
void spill_queue_release(spill_queue_t *queue); /* no thread may wait */

/*
 * Wait at the end of the queue. True: the waiter must lead; it is the first, and the lock is held.
 * False: another thread has done its work.
 *
 * Before it sleeps, the thread yields `yields` times: 0 if the work takes long, more if the work is
 * shorter than waking a thread.
 */
bool spill_queue_join(spill_queue_t *queue, spill_waiter_t *waiter, int yields);

/*
 * Wait for the threads that the last leader served, which will probably join again: yield at most
 * `yields` times. Without this pause they would miss this group, and every second group would have
 * only one thread.
 */
void spill_queue_gather(spill_queue_t *queue, int yields);

/* Remove the first `count` waiters from the queue and return them as a list, the group. */
spill_waiter_t *spill_queue_take(spill_queue_t *queue, size_t count);

/*
 * Remove every waiter that `wanted` accepts, and return them as a list, the group. `wanted` sees
 * the waiters in order. The others keep their order.
 */
typedef bool (*spill_wanted_fn)(void *context, spill_waiter_t *waiter);
spill_waiter_t *spill_queue_select(spill_queue_t *queue, spill_wanted_fn wanted, void *context);

/* Put the end of a list back to the front of the queue. */
void spill_queue_give_back(spill_queue_t *queue, spill_waiter_t *rest);

/* Notify the group, except the leader, that it is done. The leader continues with another group. */
void spill_queue_finish(spill_queue_t *queue, spill_waiter_t *group, const spill_waiter_t *leader);

/*
 * The same; also notify the next leader, and release the lock. The next leader is notified first,
 * and all without the lock: they may join again at once.
 */
void spill_queue_hand_over(spill_queue_t *queue, spill_waiter_t *group,
                           const spill_waiter_t *leader);

#endif
