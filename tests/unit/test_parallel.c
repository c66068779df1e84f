/* Work that several threads share. */
#include "tools/parallel.h"
#include "util/error.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { ITEMS = 1000 };

typedef struct work {
    atomic_int calls[ITEMS];
    atomic_int running;
    size_t fails_at; /* ITEMS: none */
    bool meets;      /* the first two items wait for each other */
    pthread_barrier_t meeting;
} work_t;

static spill_code_t work_on(void *context, size_t index, spill_error_t *error)
{
    work_t *work = context;
    atomic_fetch_add(&work->running, 1);
    if (work->meets && index < 2)
        pthread_barrier_wait(&work->meeting);
    atomic_fetch_add(&work->calls[index], 1);
    atomic_fetch_sub(&work->running, 1);
    return index == work->fails_at ? spill_fail(error, SPILL_IO, "item %zu", index) : SPILL_OK;
}

static void each_item_is_worked_on_once(void **state)
{
    (void)state;
    static const size_t threads[] = {0, 1, 2, 7, 1000};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        work_t work = {.fails_at = ITEMS};
        spill_error_t error;
        assert_int_equal(spill_parallel(threads[i], ITEMS, work_on, &work, &error), SPILL_OK);
        for (size_t item = 0; item < ITEMS; item++)
            assert_int_equal(work.calls[item], 1);
        assert_int_equal(work.running, 0);
        assert_int_equal(spill_parallel(threads[i], 0, work_on, &work, &error), SPILL_OK);
    }
}

static void two_items_are_worked_on_at_a_time(void **state)
{
    (void)state;
    work_t work = {.fails_at = ITEMS, .meets = true};
    spill_error_t error;
    pthread_barrier_init(&work.meeting, NULL, 2);
    assert_int_equal(spill_parallel(2, ITEMS, work_on, &work, &error), SPILL_OK);
    pthread_barrier_destroy(&work.meeting);
    for (size_t item = 0; item < ITEMS; item++)
        assert_int_equal(work.calls[item], 1);
}

static void an_error_ends_the_work(void **state)
{
    (void)state;
    static const size_t threads[] = {1, 3};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        work_t work = {.fails_at = 10};
        spill_error_t error;
        assert_int_equal(spill_parallel(threads[i], ITEMS, work_on, &work, &error), SPILL_IO);
        assert_string_equal(error.message, "item 10");
        assert_int_equal(work.running, 0);
        for (size_t item = 0; item <= 10; item++)
            assert_int_equal(work.calls[item], 1);
        if (threads[i] == 1)
            assert_int_equal(work.calls[11], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_worked_on_once),
        cmocka_unit_test(two_items_are_worked_on_at_a_time),
        cmocka_unit_test(an_error_ends_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
