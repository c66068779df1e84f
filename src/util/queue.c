#include "util/queue.h"

#include <assert.h>
#include <sched.h>

void spill_queue_init(spill_queue_t *queue)
{
    *queue = (spill_queue_t){.last = &queue->first};
    pthread_mutex_init(&queue->lock, NULL);
}

void spill_queue_release(spill_queue_t *queue)
{
    assert(!queue->first);
    pthread_mutex_destroy(&queue->lock);
}

/* A waiter that does not sleep may leave as soon as the state is set. */
static void notify(spill_waiter_t *waiter, spill_waiter_state_t state)
{
    spill_waiter_state_t before =
        atomic_exchange_explicit(&waiter->state, state, memory_order_acq_rel);
    if (before == SPILL_WAITER_SLEEPS)
        sem_post(&waiter->wake);
}

static bool is_waiting(const spill_waiter_t *waiter)
{
    return atomic_load_explicit(&waiter->state, memory_order_acquire) == SPILL_WAITER_WAITS;
}

/* Return at once if the waiter was notified before it could sleep. */
static void sleep_until_notified(spill_waiter_t *waiter)
{
    spill_waiter_state_t waits = SPILL_WAITER_WAITS;
    sem_init(&waiter->wake, 0, 0);
    if (atomic_compare_exchange_strong(&waiter->state, &waits, SPILL_WAITER_SLEEPS))
        while (sem_wait(&waiter->wake) != 0) {
        } /* interrupted by a signal */
    sem_destroy(&waiter->wake);
}

bool spill_queue_join(spill_queue_t *queue, spill_waiter_t *waiter, int yields)
{
    waiter->next = NULL;
    pthread_mutex_lock(&queue->lock);
    *queue->last = waiter;
    queue->last = &waiter->next;
    queue->waiting++;
    atomic_init(&waiter->state, queue->led ? SPILL_WAITER_WAITS : SPILL_WAITER_LEADS);
    queue->led = true;
    if (!is_waiting(waiter))
        return true;
    pthread_mutex_unlock(&queue->lock);
    for (int i = 0; i < yields && is_waiting(waiter); i++)
        sched_yield();
    if (is_waiting(waiter))
        sleep_until_notified(waiter);
    if (atomic_load_explicit(&waiter->state, memory_order_acquire) == SPILL_WAITER_DONE)
        return false;
    pthread_mutex_lock(&queue->lock);
    return true;
}

void spill_queue_gather(spill_queue_t *queue, int yields)
{
    for (int i = 0; i < yields && queue->waiting < queue->served; i++) {
        pthread_mutex_unlock(&queue->lock);
        sched_yield();
        pthread_mutex_lock(&queue->lock);
    }
}

spill_waiter_t *spill_queue_take(spill_queue_t *queue, size_t count)
{
    assert(count > 0 && count <= queue->waiting);
    spill_waiter_t *group = queue->first;
    spill_waiter_t *last = group;
    for (size_t i = 1; i < count; i++)
        last = last->next;
    queue->waiting -= count;
    queue->first = last->next;
    if (!queue->first)
        queue->last = &queue->first;
    last->next = NULL;
    return group;
}

spill_waiter_t *spill_queue_select(spill_queue_t *queue, spill_wanted_fn wanted, void *context)
{
    spill_waiter_t *group = NULL, **group_end = &group, **rest_end = &queue->first;
    for (spill_waiter_t *waiter = queue->first; waiter; waiter = waiter->next) {
        if (wanted(context, waiter)) {
            *group_end = waiter;
            group_end = &waiter->next;
            queue->waiting--;
        } else {
            *rest_end = waiter;
            rest_end = &waiter->next;
        }
    }
    *group_end = *rest_end = NULL;
    queue->last = rest_end;
    return group;
}

void spill_queue_give_back(spill_queue_t *queue, spill_waiter_t *rest)
{
    spill_waiter_t *last = rest;
    for (queue->waiting++; last->next; last = last->next)
        queue->waiting++;
    if (!queue->first)
        queue->last = &last->next;
    last->next = queue->first;
    queue->first = rest;
}

/* Notify the group, except the leader. */
static void notify_group(spill_waiter_t *group, const spill_waiter_t *leader)
{
    while (group) {
        spill_waiter_t *waiter = group;
        group = waiter->next;
        if (waiter != leader)
            notify(waiter, SPILL_WAITER_DONE);
    }
}

static size_t count_waiters(const spill_waiter_t *group)
{
    size_t count = 0;
    for (; group; group = group->next)
        count++;
    return count;
}

void spill_queue_finish(spill_queue_t *queue, spill_waiter_t *group, const spill_waiter_t *leader)
{
    queue->served = count_waiters(group);
    notify_group(group, leader);
}

void spill_queue_hand_over(spill_queue_t *queue, spill_waiter_t *group,
                           const spill_waiter_t *leader)
{
    spill_waiter_t *next = queue->first;
    queue->served = count_waiters(group);
    queue->led = next != NULL;
    pthread_mutex_unlock(&queue->lock);
    if (next)
        notify(next, SPILL_WAITER_LEADS);
    notify_group(group, leader);
}
