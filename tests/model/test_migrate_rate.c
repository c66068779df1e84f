/*
 * A migration of long arrays moves no more elements than its rate allows, also while the last owner
 * moves, and progress shows every step. On a simulated clock.
 */
#include "support/definition.h"
#include "support/model_store.h"
#include "tools/migrate/migrate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LONG = 1000, THRESHOLD = 10, PAGE = 5, RATE = 100 };

typedef struct world {
    int64_t now_us, began_us;
    int64_t moved; /* reported last */
    int reports;
} world_t;

static int64_t now_us(void *context)
{
    world_t *world = context;
    return ++world->now_us;
}

static void sleep_us(void *context, int64_t duration_us)
{
    world_t *world = context;
    world->now_us += duration_us;
}

/* Write an unmanaged array into the owner's document. */
static void write_array(spill_array_t *other, const char *name, int length)
{
    bson_t update = BSON_INITIALIZER, storage = BSON_INITIALIZER, set, array;
    spill_error_t error;
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (int i = 0; i < length; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_INT64(&array, key, i);
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    assert_int_equal(spill_array_update(other, &owner, &update, &error), SPILL_OK);
    bson_destroy(&update);
    bson_destroy(&storage);
}

static void check_pace(void *context, const spill_migrate_result_t *result)
{
    world_t *world = context;
    double seconds = (double)(world->now_us - world->began_us) / 1e6;
    assert_true(result->moved >= world->moved && result->moved <= result->elements);
    assert_true((double)result->moved <= RATE * (seconds + 1) + PAGE);
    world->moved = result->moved;
    world->reports++;
}

/* `step_bytes` 1: steps of a second's elements. 0: these arrays move in one step. */
static spill_migrate_result_t migrate(world_t *world, int64_t rate, int64_t step_bytes)
{
    spill_error_t error;
    spill_throttle_t throttle;
    spill_migrate_result_t result = {0};
    spill_store_t *store = model_store_open();
    store->options.clock = (spill_clock_t){world, now_us, sleep_us};
    spill_array_t *array = definition_open_array(store, "feed-recent", "feed", THRESHOLD, PAGE);
    spill_array_t *other = definition_open_array(store, "feed-recent", "other", THRESHOLD, PAGE);
    const spill_throttle_options_t pace = {.rate_per_s = rate, .clock = store->options.clock};
    spill_throttle_init(&throttle, &pace);
    write_array(other, "ada", 5);
    write_array(other, "bob", LONG);
    write_array(other, "cid", LONG);
    world->began_us = world->now_us;
    spill_migrate_options_t options = {.throttle = &throttle,
                                       .step_bytes = step_bytes,
                                       .progress = rate > 0 && step_bytes > 0 ? check_pace : NULL,
                                       .context = world};
    assert_int_equal(spill_migrate(array, &options, &result, &error), SPILL_OK);
    assert_int_equal(result.elements, 5 + 2 * LONG);
    assert_in_range(result.moved, 2 * (LONG - THRESHOLD - PAGE), 2 * LONG);
    spill_array_close(array);
    spill_array_close(other);
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
    return result;
}

static void the_rate_holds_while_the_last_owner_moves(void **state)
{
    (void)state;
    world_t world = {.now_us = (int64_t)1700000000 * 1000000};
    spill_migrate_result_t result = migrate(&world, RATE, 1);
    assert_int_equal(world.moved, result.moved);
    assert_true(world.reports >= 2 * LONG / RATE);
    double seconds = (double)(world.now_us - world.began_us) / 1e6;
    assert_true(seconds >= (double)result.moved / RATE - 2);
}

/* The same elements move, whatever the steps. */
static void steps_change_no_result(void **state)
{
    (void)state;
    world_t world = {.now_us = (int64_t)1700000000 * 1000000};
    spill_migrate_result_t paced = migrate(&world, RATE, 1);
    spill_migrate_result_t free = migrate(&world, 0, 0);
    assert_int_equal(paced.moved, free.moved);
    assert_int_equal(paced.pages, free.pages);
    assert_int_equal(paced.unmanaged, free.unmanaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_holds_while_the_last_owner_moves),
        cmocka_unit_test(steps_change_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
