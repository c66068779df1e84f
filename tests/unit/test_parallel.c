/* Work that several threads share. */
#include "tools/parallel.h"
#include "util/error.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ITEMS = 1000 };

typedef struct work {
    size_t items[ITEMS];
    size_t count, next;
    atomic_int calls[ITEMS];
    atomic_int running, getting;
    size_t fails_at; /* ITEMS: none */
    size_t ends_at;  /* the source fails there; SIZE_MAX: it does not fail */
    bool meets;      /* the first two items wait for each other */
    pthread_barrier_t meeting;
    size_t finished;        /* items; they are finished in order */
    size_t finish_fails_at; /* ITEMS: nowhere */
} work_t;

/* Make work of `count` items. */
static work_t make_work(size_t count)
{
    work_t work = {
        .count = count, .fails_at = ITEMS, .ends_at = SIZE_MAX, .finish_fails_at = ITEMS};
    for (size_t i = 0; i < count; i++)
        work.items[i] = i;
    return work;
}

static spill_code_t next_item(void *context, void **item, spill_error_t *error)
{
    work_t *work = context;
    assert_int_equal(atomic_fetch_add(&work->getting, 1), 0);
    *item = NULL;
    spill_code_t code = SPILL_OK;
    if (work->next == work->ends_at)
        code = spill_fail(error, SPILL_IO, "no item %zu", work->next);
    else if (work->next < work->count)
        *item = &work->items[work->next++];
    atomic_fetch_sub(&work->getting, 1);
    return code;
}

static spill_code_t do_item(void *context, void *item, spill_error_t *error)
{
    work_t *work = context;
    size_t index = *(size_t *)item;
    atomic_fetch_add(&work->running, 1);
    if (work->meets && index < 2)
        pthread_barrier_wait(&work->meeting);
    atomic_fetch_add(&work->calls[index], 1);
    atomic_fetch_sub(&work->running, 1);
    return index == work->fails_at ? spill_fail(error, SPILL_IO, "item %zu", index) : SPILL_OK;
}

static spill_code_t finish_item(void *context, void *item, spill_error_t *error)
{
    work_t *work = context;
    size_t index = *(size_t *)item;
    assert_int_equal(atomic_fetch_add(&work->getting, 1), 0);
    assert_int_equal(index, work->finished);
    assert_int_equal(work->calls[index], 1);
    work->finished++;
    atomic_fetch_sub(&work->getting, 1);
    return index == work->finish_fails_at ? spill_fail(error, SPILL_CONFLICT, "finish %zu", index)
                                          : SPILL_OK;
}

static void keep_item(void *item)
{
    (void)item;
}

static spill_code_t do_all(work_t *work, size_t threads, spill_error_t *error)
{
    const spill_parallel_t job = {.threads = threads,
                                  .next = next_item,
                                  .work = do_item,
                                  .finish = finish_item,
                                  .free = keep_item,
                                  .context = work};
    return spill_parallel(&job, error);
}

static void each_item_is_done_once(void **state)
{
    (void)state;
    static const size_t threads[] = {0, 1, 2, 7, 1000};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        work_t work = make_work(ITEMS), none = make_work(0);
        spill_error_t error;
        assert_int_equal(do_all(&work, threads[i], &error), SPILL_OK);
        for (size_t item = 0; item < ITEMS; item++)
            assert_int_equal(work.calls[item], 1);
        assert_int_equal(work.running, 0);
        assert_int_equal(work.finished, ITEMS);
        assert_int_equal(do_all(&none, threads[i], &error), SPILL_OK);
    }
}

/* While one thread is allowed, items never overlap. The second item allows more: two then meet. */
typedef struct allowed_work {
    atomic_int allowed;
    atomic_int running, most, next;
    pthread_barrier_t meeting;
} allowed_work_t;

enum { ALONE = 40, MEETING = ALONE + 4 };

static spill_code_t next_allowed(void *context, void **item, spill_error_t *error)
{
    (void)error;
    allowed_work_t *work = context;
    static size_t items[MEETING];
    int next = atomic_load(&work->next);
    *item = next < MEETING ? &items[next] : NULL;
    if (*item) {
        items[next] = (size_t)next;
        atomic_store(&work->next, next + 1);
    }
    return SPILL_OK;
}

static spill_code_t do_allowed(void *context, void *item, spill_error_t *error)
{
    (void)error;
    allowed_work_t *work = context;
    size_t index = *(size_t *)item;
    int running = atomic_fetch_add(&work->running, 1) + 1;
    if (index < ALONE && running > atomic_load(&work->most))
        atomic_store(&work->most, running);
    if (index == ALONE - 1)
        atomic_store(&work->allowed, 2);
    if (index >= ALONE)
        pthread_barrier_wait(&work->meeting); /* ends only if two threads work */
    atomic_fetch_sub(&work->running, 1);
    return SPILL_OK;
}

static void the_number_of_threads_may_change(void **state)
{
    (void)state;
    allowed_work_t work = {.allowed = 1};
    const spill_parallel_t job = {.threads = 1,
                                  .allowed = &work.allowed,
                                  .next = next_allowed,
                                  .work = do_allowed,
                                  .free = keep_item,
                                  .context = &work};
    spill_error_t error;
    pthread_barrier_init(&work.meeting, NULL, 2);
    assert_int_equal(spill_parallel(&job, &error), SPILL_OK);
    pthread_barrier_destroy(&work.meeting);
    assert_int_equal(work.next, MEETING);
    assert_int_equal(work.most, 1);
}

static void two_items_are_done_at_a_time(void **state)
{
    (void)state;
    work_t work = make_work(ITEMS);
    spill_error_t error;
    work.meets = true;
    pthread_barrier_init(&work.meeting, NULL, 2);
    assert_int_equal(do_all(&work, 2, &error), SPILL_OK);
    pthread_barrier_destroy(&work.meeting);
    for (size_t item = 0; item < ITEMS; item++)
        assert_int_equal(work.calls[item], 1);
}

static void an_error_ends_the_work(void **state)
{
    (void)state;
    static const size_t threads[] = {1, 3};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        work_t work = make_work(ITEMS);
        spill_error_t error;
        work.fails_at = 10;
        assert_int_equal(do_all(&work, threads[i], &error), SPILL_IO);
        assert_string_equal(error.message, "item 10");
        assert_int_equal(work.finished, 10); /* not item 11, which may be done */
        assert_int_equal(work.running, 0);
        for (size_t item = 0; item <= 10; item++)
            assert_int_equal(work.calls[item], 1);
        if (threads[i] == 1)
            assert_int_equal(work.calls[11], 0);
    }
}

static void failing_source_ends_work_after_running_items(void **state)
{
    (void)state;
    static const size_t threads[] = {1, 3};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        work_t work = make_work(ITEMS);
        spill_error_t error;
        work.ends_at = 10;
        assert_int_equal(do_all(&work, threads[i], &error), SPILL_IO);
        assert_string_equal(error.message, "no item 10");
        for (size_t item = 0; item < ITEMS; item++)
            assert_int_equal(work.calls[item], item < 10 ? 1 : 0);
    }
}

static void nothing_is_finished_after_a_failed_finish(void **state)
{
    (void)state;
    static const size_t threads[] = {1, 3};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        work_t work = make_work(ITEMS);
        spill_error_t error;
        work.finish_fails_at = 10;
        assert_int_equal(do_all(&work, threads[i], &error), SPILL_CONFLICT);
        assert_string_equal(error.message, "finish 10");
        assert_int_equal(work.finished, 11);
        assert_int_equal(work.running, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_done_once),
        cmocka_unit_test(two_items_are_done_at_a_time),
        cmocka_unit_test(the_number_of_threads_may_change),
        cmocka_unit_test(an_error_ends_the_work),
        cmocka_unit_test(failing_source_ends_work_after_running_items),
        cmocka_unit_test(nothing_is_finished_after_a_failed_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
