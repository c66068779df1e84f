/*
 * A queue in which threads wait for one of them, the leader of the moment, to do for several what
 * costs as much as for one: a sync, a command.
 *
 *      join -> wait -> done                               for most
 *      join -> wait -> gather, take, (work), hand over    for the leader
 *
 * What a thread wants done is a struct of its own on its own stack, which begins with a
 * spill_waiter_t. The lock is held between the leader's steps, but not while it works.
 */
#ifndef SPILL_UTIL_QUEUE_H
#define SPILL_UTIL_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum spill_waiter_state {
    SPILL_WAITER_WAITS,
    SPILL_WAITER_LEADS,
    SPILL_WAITER_DONE
} spill_waiter_state_t;

typedef struct spill_waiter {
    struct spill_waiter *next;
    _Atomic spill_waiter_state_t state;
    bool sleeps; /* has to be woken; changes under the lock */
    pthread_cond_t wake;
} spill_waiter_t;

typedef struct spill_queue {
    pthread_mutex_t lock;  /* guards what follows */
    spill_waiter_t *first; /* may be looked through by the leader */
    spill_waiter_t **last;
    size_t waiting;
    size_t served; /* by the last leader */
    bool led;      /* a thread is at work, or was told to be */
} spill_queue_t;

void spill_queue_init(spill_queue_t *queue);
void spill_queue_release(spill_queue_t *queue); /* nobody waits */

/*
 * Wait in the queue, behind those that are there. True: the waiter has to lead. It is the first,
 * and the lock is held. False: another thread has done what it wants.
 *
 * Before it sleeps it gives way `yields` times: 0 where the work takes long, more where it is done
 * sooner than a thread is woken.
 */
bool spill_queue_join(spill_queue_t *queue, spill_waiter_t *waiter, int yields);

/*
 * The threads that the last leader served are about to come again: let them, giving way at most
 * `yields` times. Without this pause they would miss this group, and every other one would be of
 * one thread.
 */
void spill_queue_gather(spill_queue_t *queue, int yields);

/* Take the first `count` of the queue, as a list: the group that is worked for. */
spill_waiter_t *spill_queue_take(spill_queue_t *queue, size_t count);

/* Put the end of a list back, to be the first again. */
void spill_queue_give_back(spill_queue_t *queue, spill_waiter_t *rest);

/* Tell the group, but for the leader itself, that it is done. The leader goes on with the next. */
void spill_queue_finish(spill_queue_t *queue, spill_waiter_t *group, const spill_waiter_t *leader);

/* The same, and tell the next leader; give the lock up. */
void spill_queue_hand_over(spill_queue_t *queue, spill_waiter_t *group,
                           const spill_waiter_t *leader);

#endif
