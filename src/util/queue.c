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

bool spill_queue_join(spill_queue_t *queue, spill_waiter_t *waiter)
{
    waiter->next = NULL;
    pthread_cond_init(&waiter->wake, NULL);
    pthread_mutex_lock(&queue->lock);
    *queue->last = waiter;
    queue->last = &waiter->next;
    queue->waiting++;
    waiter->state = queue->led ? SPILL_WAITER_WAITS : SPILL_WAITER_LEADS;
    queue->led = true;
    while (waiter->state == SPILL_WAITER_WAITS)
        pthread_cond_wait(&waiter->wake, &queue->lock);
    if (waiter->state == SPILL_WAITER_LEADS)
        return true;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_destroy(&waiter->wake);
    return false;
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

void spill_queue_hand_over(spill_queue_t *queue, spill_waiter_t *group, spill_waiter_t *leader)
{
    queue->served = 0;
    while (group) {
        spill_waiter_t *waiter = group;
        group = waiter->next; /* once it is told, a waiter may be gone */
        queue->served++;
        waiter->state = SPILL_WAITER_DONE;
        if (waiter != leader)
            pthread_cond_signal(&waiter->wake);
    }
    queue->led = queue->first != NULL;
    if (queue->led) {
        queue->first->state = SPILL_WAITER_LEADS;
        pthread_cond_signal(&queue->first->wake);
    }
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_destroy(&leader->wake);
}
