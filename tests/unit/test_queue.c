/* Queues behind a leader: the leader takes the waiters that it wants, in order. */
#include "util/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WAITERS = 6 };

/* A queue whose waiters need no threads: nobody sleeps. */
static void make_queue(spill_queue_t *queue, spill_waiter_t waiters[WAITERS])
{
    spill_queue_init(queue);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (spill_waiter_t){0};
        *queue->last = &waiters[i];
        queue->last = &waiters[i].next;
        queue->waiting++;
    }
}

typedef struct choice {
    const spill_waiter_t *waiters;
    unsigned wanted; /* a bit for each waiter */
    int seen;
} choice_t;

static bool choose(void *context, spill_waiter_t *waiter)
{
    choice_t *choice = context;
    assert_ptr_equal(waiter, &choice->waiters[choice->seen]); /* in order */
    return (choice->wanted >> choice->seen++ & 1) != 0;
}

static size_t check_list(const spill_waiter_t *list, const spill_waiter_t *waiters, unsigned set)
{
    size_t count = 0;
    for (int i = 0; i < WAITERS; i++) {
        if ((set >> i & 1) == 0)
            continue;
        assert_ptr_equal(list, &waiters[i]);
        list = list->next;
        count++;
    }
    assert_null(list);
    return count;
}

static void leader_takes_any_waiters(void **state)
{
    (void)state;
    const unsigned all = (1U << WAITERS) - 1;
    for (unsigned wanted = 0; wanted <= all; wanted++) {
        spill_queue_t queue;
        spill_waiter_t waiters[WAITERS], late = {0};
        choice_t choice = {.waiters = waiters, .wanted = wanted};
        make_queue(&queue, waiters);
        check_list(spill_queue_select(&queue, choose, &choice), waiters, wanted);
        assert_int_equal(choice.seen, WAITERS);
        assert_int_equal(queue.waiting, check_list(queue.first, waiters, all & ~wanted));
        *queue.last = &late; /* a later thread queues behind the others */
        spill_waiter_t *last = queue.first;
        while (last->next)
            last = last->next;
        assert_ptr_equal(last, &late);
        queue.first = NULL;
        spill_queue_release(&queue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(leader_takes_any_waiters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
