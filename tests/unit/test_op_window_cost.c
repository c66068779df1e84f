/* How many reads of the engine an append with an operation id needs, for small and large windows.
 */
#include "support/embedded.h"
#include "support/failing_kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { SMALL_WINDOW = 64, LARGE_WINDOW = 10000, TOGETHER = SPILL_OPS_TOGETHER };

/* The reads of the engine by one append. */
typedef struct cost {
    int64_t look_ups;
    int64_t steps;
} cost_t;

typedef struct fixture {
    int window;
    disk_t *disk;
    failing_kv_plan_t reads; /* it counts, and fails nothing */
    spill_store_t *store;
    spill_array_t *array;
} fixture_t;

static void open_store(fixture_t *fixture)
{
    spill_store_options_t options;
    spill_definition_t definition;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    spill_kv_t *kv = failing_kv_open(disk_open(fixture->disk), &fixture->reads);
    assert_int_equal(spill_embedded_open_kv(kv, "memory", &options, &fixture->store, NULL),
                     SPILL_OK);
    spill_definition_init(&definition, "feed");
    definition.op_window = fixture->window;
    definition.bounds.head_bytes_max *= 4; /* room for the large window */
    definition.bounds.page_bytes_max *= 4;
    assert_int_equal(spill_store_define(fixture->store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, NULL), SPILL_OK);
}

static void close_store(fixture_t *fixture)
{
    spill_array_close(fixture->array);
    embedded_close(fixture->store);
}

/* Append operation `id`, of one element. */
static cost_t append(fixture_t *fixture, int id, int64_t base)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_op_t op = {.id = &id, .id_bytes = sizeof id, .base = base};
    spill_append_options_t options;
    spill_append_result_t result;
    spill_append_options_init(&options);
    options.op = &op;
    fixture->reads.look_ups = fixture->reads.steps = 0;
    assert_int_equal(spill_array_append(fixture->array, &owner, &owner, 1, &options, &result, NULL),
                     SPILL_OK);
    assert_false(result.repeated);
    bson_destroy(&storage);
    return (cost_t){fixture->reads.look_ups, fixture->reads.steps};
}

/* Make a store with one owner, fill the window, and open the store again. */
static void open_fixture(fixture_t *fixture, int window)
{
    *fixture = (fixture_t){.window = window, .disk = disk_new()};
    open_store(fixture);
    for (int id = 0; id < window; id++)
        append(fixture, id, id);
    close_store(fixture);
    open_store(fixture);
}

static void close_fixture(fixture_t *fixture)
{
    close_store(fixture);
    disk_free(fixture->disk);
}

/* The base of a first try is the end of the window, so there is nothing to search. */
static cost_t cost_of_first_try(int window)
{
    fixture_t fixture;
    open_fixture(&fixture, window);
    cost_t cost = append(&fixture, window, window);
    close_fixture(&fixture);
    return cost;
}

static void first_try_reads_no_window(void **state)
{
    (void)state;
    cost_t small = cost_of_first_try(SMALL_WINDOW), large = cost_of_first_try(LARGE_WINDOW);
    assert_true(large.look_ups > 0);
    assert_int_equal(large.look_ups, small.look_ups);
    assert_int_equal(large.steps, small.steps);
}

/* A search of the whole window reads its records in order; later searches use the cache. */
static void window_is_read_in_order_once(void **state)
{
    (void)state;
    static const int windows[] = {SMALL_WINDOW, LARGE_WINDOW};
    int64_t without_search = cost_of_first_try(SMALL_WINDOW).look_ups;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        fixture_t fixture;
        open_fixture(&fixture, windows[i]);
        cost_t first = append(&fixture, windows[i], 1);
        assert_int_equal(first.look_ups, without_search + 2);
        assert_true(first.steps <= windows[i] / TOGETHER);
        cost_t second = append(&fixture, windows[i] + 1, 2);
        assert_int_equal(second.look_ups, 0);
        assert_int_equal(second.steps, 0);
        close_fixture(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_try_reads_no_window),
        cmocka_unit_test(window_is_read_in_order_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
