/*
 * Group commit under many threads. Each job reads a counter, through the batch if the batch changed
 * it, and writes it raised by one. No acknowledged write is lost, no refused one is visible, and a
 * failed write fails its whole group.
 */
#include "store/embedded/group_commit.h"
#include "support/deadline.h"
#include "support/disk.h"
#include "util/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 8, JOBS = 400, COUNTERS = 3 };

typedef struct world {
    disk_t *disk;
    spill_kv_t *kv;
    spill_group_commit_t writer;
    atomic_llong commits, syncs;
    atomic_llong acknowledged[COUNTERS];
    atomic_llong failed;
    atomic_llong unknown;
    atomic_int asked; /* threads that are about to wait for the group commit */
} world_t;

typedef struct worker {
    world_t *world;
    int number;
} worker_t;

typedef struct addition {
    world_t *world;
    uint8_t counter;
    bool fail; /* after it has added its change */
} addition_t;

static uint64_t read_counter(spill_kv_t *kv, const spill_batch_t *batch, uint8_t counter)
{
    uint64_t count = 0;
    const spill_change_t *change = batch ? spill_batch_find(batch, &counter, 1) : NULL;
    if (change) {
        memcpy(&count, spill_batch_value(batch, change), sizeof count);
        return count;
    }
    spill_buffer_t value = SPILL_BUFFER_INIT;
    bool found;
    assert_int_equal(kv->ops->get(kv, &counter, 1, &value, &found, NULL), SPILL_OK);
    if (found)
        memcpy(&count, value.data, sizeof count);
    spill_buffer_release(&value);
    return count;
}

static spill_code_t add_one(void *context, spill_batch_t *batch, spill_error_t *error)
{
    const addition_t *addition = context;
    uint64_t count = read_counter(addition->world->kv, batch, addition->counter) + 1;
    spill_batch_put(batch, &addition->counter, 1, &count, sizeof count);
    return addition->fail ? spill_fail(error, SPILL_INVALID, "as the test wants") : SPILL_OK;
}

/* A job that reads a range, which only a job alone in its group may do: the batch is empty. */
static spill_code_t read_range(void *context, spill_batch_t *batch, spill_error_t *error)
{
    spill_kv_t *kv = ((addition_t *)context)->world->kv;
    (void)error;
    assert_int_equal(batch->count, 0);
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    iter->ops->seek(iter, (const uint8_t *)"", 0);
    int keys = 0;
    for (; iter->valid; iter->ops->next(iter))
        keys++;
    iter->ops->free(iter);
    return keys <= COUNTERS ? SPILL_OK : SPILL_CORRUPT;
}

static void *add_many(void *argument)
{
    const worker_t *worker = argument;
    world_t *world = worker->world;
    for (int i = 0; i < JOBS; i++) {
        bool alone = i % 37 == worker->number;
        addition_t addition = {.world = world,
                               .counter = (uint8_t)((i * 7 + worker->number) % COUNTERS),
                               .fail = i % 11 == 0};
        spill_error_t error = {.message = ""};
        spill_code_t code = spill_group_commit_run(&world->writer, alone ? read_range : add_one,
                                                   &addition, alone, &error);
        if (code != SPILL_OK && error.message[0] == '\0')
            return argument;
        if (alone && code != SPILL_OK)
            return argument;
        if (!alone && addition.fail && code == SPILL_OK)
            return argument;
        if (!alone && code == SPILL_OK)
            atomic_fetch_add(&world->acknowledged[addition.counter], 1);
        if (code == SPILL_NO_SPACE)
            atomic_fetch_add(&world->failed, 1);
        if (code == SPILL_UNKNOWN)
            atomic_fetch_add(&world->unknown, 1);
    }
    return NULL;
}

static void run_workers(world_t *world, void *(*work)(void *))
{
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){world, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
}

static void run_threads(world_t *world)
{
    run_workers(world, add_many);
}

static void open_world(world_t *world, bool sync)
{
    memset(world, 0, sizeof *world);
    world->disk = disk_new();
    world->kv = disk_open(world->disk);
    spill_group_commit_init(&world->writer, world->kv, sync, &world->commits, &world->syncs);
}

static void close_world(world_t *world)
{
    spill_group_commit_release(&world->writer);
    world->kv->ops->close(world->kv, NULL);
    disk_free(world->disk);
}

static void counters_are_exact(void **state)
{
    (void)state;
    world_t world;
    for (int sync = 0; sync < 2; sync++) {
        open_world(&world, sync);
        run_threads(&world);
        for (uint8_t i = 0; i < COUNTERS; i++)
            assert_int_equal(read_counter(world.kv, NULL, i), atomic_load(&world.acknowledged[i]));
        assert_true(atomic_load(&world.commits) > 0);
        assert_int_equal(atomic_load(&world.syncs), sync ? atomic_load(&world.commits) : 0);
        assert_true(!sync || disk_unsynced(world.disk) == 0);
        close_world(&world);
    }
}

/* Lasts until all threads have submitted, so that most of them are asleep by then. */
static spill_code_t add_slowly(void *context, spill_batch_t *batch, spill_error_t *error)
{
    const world_t *world = ((addition_t *)context)->world;
    deadline_t deadline = deadline_begin();
    while (atomic_load(&world->asked) < THREADS)
        deadline_pause(&deadline, "every thread asks");
    return add_one(context, batch, error);
}

static void *add_one_slowly(void *argument)
{
    const worker_t *worker = argument;
    addition_t addition = {.world = worker->world};
    bool alone = worker->number % 2 == 0;
    atomic_fetch_add(&worker->world->asked, 1);
    return spill_group_commit_run(&worker->world->writer, add_slowly, &addition, alone, NULL) ==
                   SPILL_OK
               ? NULL
               : argument;
}

/* Half of the jobs form groups of their own, so that threads often compete for the lead. */
static void waiting_threads_are_served(void **state)
{
    (void)state;
    world_t world;
    for (int sync = 0; sync < 2; sync++) {
        open_world(&world, sync);
        run_workers(&world, add_one_slowly);
        assert_int_equal(read_counter(world.kv, NULL, 0), THREADS);
        close_world(&world);
    }
}

static void failed_write_fails_only_its_group(void **state)
{
    (void)state;
    world_t world;
    open_world(&world, false);
    for (size_t after = 0; after < 20; after++) {
        disk_fail_writes(world.disk, after * 7, 3, SPILL_NO_SPACE);
        run_threads(&world);
        for (uint8_t i = 0; i < COUNTERS; i++)
            assert_int_equal(read_counter(world.kv, NULL, i), atomic_load(&world.acknowledged[i]));
    }
    assert_true(atomic_load(&world.failed) > 0);
    assert_int_equal(atomic_load(&world.syncs), 0);
    close_world(&world);
}

/* A write with an unknown outcome may have happened; here it did. */
static void unknown_write_returns_unknown(void **state)
{
    (void)state;
    world_t world;
    open_world(&world, true);
    disk_fail_writes(world.disk, 5, 10, SPILL_UNKNOWN);
    run_threads(&world);
    int64_t count = 0;
    int64_t acknowledged = 0;
    for (uint8_t i = 0; i < COUNTERS; i++) {
        count += (int64_t)read_counter(world.kv, NULL, i);
        acknowledged += atomic_load(&world.acknowledged[i]);
    }
    assert_true(atomic_load(&world.unknown) > 0);
    assert_int_equal(count, acknowledged + atomic_load(&world.unknown));
    close_world(&world);
}

/* A full batch leaves the rest of its group to the next batch. */
static spill_code_t add_much(void *context, spill_batch_t *batch, spill_error_t *error)
{
    uint8_t counter = ((addition_t *)context)->counter;
    spill_code_t code = add_one(context, batch, error);
    uint8_t key[2] = {0xff, counter};
    memset(spill_batch_put_place(batch, key, sizeof key, 700 * 1024), 'x', 700 * 1024);
    return code;
}

static void *add_much_often(void *argument)
{
    const worker_t *worker = argument;
    for (int i = 0; i < 20; i++) {
        addition_t addition = {.world = worker->world, .counter = 0};
        if (spill_group_commit_run(&worker->world->writer, add_much, &addition, false, NULL) !=
            SPILL_OK)
            return argument;
    }
    return NULL;
}

static void large_jobs_take_turns(void **state)
{
    (void)state;
    world_t world;
    for (int sync = 0; sync < 2; sync++) {
        open_world(&world, sync);
        run_workers(&world, add_much_often);
        assert_int_equal(read_counter(world.kv, NULL, 0), THREADS * 20);
        assert_true(atomic_load(&world.commits) >= THREADS * 20 / 2);
        close_world(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_exact),
        cmocka_unit_test(waiting_threads_are_served),
        cmocka_unit_test(failed_write_fails_only_its_group),
        cmocka_unit_test(unknown_write_returns_unknown),
        cmocka_unit_test(large_jobs_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
