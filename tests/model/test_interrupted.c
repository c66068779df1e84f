/*
 * Every operation on the embedded store while one call of its engine fails. (support/interrupted.h)
 */
#include "support/effort.h"
#include "support/embedded.h"
#include "support/failing_kv.h"
#include "support/interrupted.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The engine in memory, and a copy of its content at the beginning of each run. */
typedef struct bench {
    failing_kv_plan_t plan;
    disk_t *kept; /* NULL: no copy yet */
    disk_t *disk;
    spill_store_t *store;
    int64_t now_us;
} bench_t;

static int64_t now_us(void *context)
{
    bench_t *bench = context;
    return bench->now_us += 1000;
}

static void sleep_us(void *context, int64_t duration_us)
{
    bench_t *bench = context;
    bench->now_us += duration_us;
}

static spill_code_t open_store(bench_t *bench, spill_error_t *error)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.clock = (spill_clock_t){.context = bench, .now_us = now_us, .sleep_us = sleep_us};
    return spill_embedded_open_kv(failing_kv_open(disk_open(bench->disk), &bench->plan), "memory",
                                  &options, &bench->store, error);
}

static void must_open(bench_t *bench)
{
    spill_error_t error;
    if (open_store(bench, &error) != SPILL_OK)
        fail_msg("%s", error.message);
}

static disk_t *copy_disk(disk_t *disk)
{
    disk_t *copy = disk_new();
    spill_kv_t *from = disk_open(disk), *to = disk_open(copy);
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_kv_iter_t *iter = from->ops->iterate(from);
    for (iter->ops->seek(iter, (const uint8_t *)"", 0); iter->valid; iter->ops->next(iter))
        spill_batch_put(&batch, iter->key, iter->key_bytes, iter->value, iter->value_bytes);
    iter->ops->free(iter);
    assert_int_equal(to->ops->write(to, &batch, true, NULL), SPILL_OK);
    spill_batch_release(&batch);
    from->ops->close(from, NULL);
    to->ops->close(to, NULL);
    return copy;
}

static void keep(void *context)
{
    bench_t *bench = context;
    disk_free(bench->kept);
    bench->kept = copy_disk(bench->disk);
}

static void close_store(bench_t *bench)
{
    embedded_close(bench->store);
    disk_free(bench->disk);
}

static spill_store_t *renew(void *context)
{
    bench_t *bench = context;
    close_store(bench);
    bench->disk = copy_disk(bench->kept);
    must_open(bench);
    return bench->store;
}

static void arm(void *context, int way, int64_t at)
{
    bench_t *bench = context;
    bench->plan = (failing_kv_plan_t){.armed = true, .way = (failing_kv_way_t)way, .at = at};
}

static bool disarm(void *context)
{
    bench_t *bench = context;
    bool struck = bench->plan.struck;
    bench->plan = (failing_kv_plan_t){0};
    return struck;
}

static void every_engine_call_fails(void **state)
{
    (void)state;
    static const char *const ways[] = {"error", "lost", "corrupt", NULL};
    bench_t bench = {.disk = disk_new()};
    must_open(&bench);
    interrupted_t interrupted = {.context = &bench,
                                 .store = bench.store,
                                 .ways = ways,
                                 .way_of_writes = FAILING_KV_LOST,
                                 .arm = arm,
                                 .disarm = disarm,
                                 .keep = keep,
                                 .renew = renew};
    int64_t failures = interrupted_play(&interrupted);
    print_message("%lld failures\n", (long long)failures);
    assert_true(failures > effort(5000, 1500, 400));
    close_store(&bench);
    disk_free(bench.kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_engine_call_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
