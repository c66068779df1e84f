/*
 * With keep oldest, a count reads the head, the last page, and the head again. A change by another
 * handle between two of these calls must not lead to a count that was never true.
 */
#include "support/fault_store.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ELEMENTS = 7, CALLS = 3 }; /* 2 in the head, 3 in page 0, 2 in page 1 */

typedef struct race {
    spill_store_t *store; /* the inner store, which the other handle uses */
    spill_array_t *other;
    spill_store_t *faulty; /* the store that counts; its hook runs before each call */
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    int64_t at; /* run `act` before this call, counted from `began`; -1: before every read */
    int64_t began;
    int acts; /* how often it ran */
    void (*act)(struct race *race);
} race_t;

static void append_elsewhere(race_t *race)
{
    int64_t number = 1;
    spill_value_t element = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
    spill_append_result_t result;
    assert_int_equal(
        spill_array_append(race->other, &race->owner, &element, 1, NULL, &result, NULL), SPILL_OK);
}

static void before_call(void *context, int64_t index, const spill_request_t *request)
{
    race_t *race = context;
    if (race->act == NULL || request == NULL || (race->at >= 0 && index != race->began + race->at))
        return;
    race->acts++;
    race->act(race);
}

static void no_sleep(void *context, int64_t microseconds)
{
    (void)context;
    (void)microseconds;
}

static int64_t no_time(void *context)
{
    (void)context;
    return 1000;
}

static void open_race(race_t *race)
{
    *race = (race_t){.storage = BSON_INITIALIZER};
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.clock.now_us = no_time;
    options.clock.sleep_us = no_sleep;
    assert_int_equal(spill_store_open("memory:", &options, &race->store, NULL), SPILL_OK);
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    definition.keep = SPILL_KEEP_OLDEST;
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 3;
    assert_int_equal(spill_store_define(race->store, &definition, NULL), SPILL_OK);
    fault_hooks_t hooks = {.context = race, .before = before_call};
    fault_wrap(race->store, &hooks, &race->faulty);
    assert_int_equal(spill_array_open(race->store, "feed", &race->other, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(race->faulty, "feed", &race->array, NULL), SPILL_OK);
    race->owner = spill_value_from_utf8(&race->storage, "ada");
    for (int i = 0; i < ELEMENTS; i++)
        append_elsewhere(race);
}

static void close_race(race_t *race)
{
    race->act = NULL;
    spill_array_close(race->array);
    spill_array_close(race->other);
    assert_int_equal(spill_store_close(race->faulty, NULL), SPILL_OK);
    assert_int_equal(spill_store_close(race->store, NULL), SPILL_OK);
    bson_destroy(&race->storage);
}

static spill_count_t count_during(race_t *race, int64_t at, void (*act)(race_t *race))
{
    spill_count_t counted;
    race->at = at;
    race->act = act;
    race->began = fault_calls(race->faulty);
    assert_int_equal(spill_array_count(race->array, &race->owner, &counted, NULL), SPILL_OK);
    assert_int_equal(race->acts, 1);
    return counted;
}

static void remove_from_page(race_t *race)
{
    assert_int_equal(spill_array_remove(race->other, &race->owner, 3, NULL), SPILL_OK);
}

static void remove_from_head(race_t *race)
{
    assert_int_equal(spill_array_remove(race->other, &race->owner, 1, NULL), SPILL_OK);
}

static void trim_elsewhere(race_t *race)
{
    assert_int_equal(spill_array_trim(race->other, &race->owner, 1, NULL), SPILL_OK);
}

static void drop_elsewhere(race_t *race)
{
    assert_int_equal(spill_array_drop_owner(race->other, &race->owner, NULL), SPILL_OK);
}

static void remove_from_page_and_append(race_t *race)
{
    remove_from_page(race);
    append_elsewhere(race);
}

static void remove_from_head_and_append(race_t *race)
{
    remove_from_head(race);
    append_elsewhere(race);
}

static void trim_and_append(race_t *race)
{
    trim_elsewhere(race);
    append_elsewhere(race);
}

/* The old head with the new last page would count eight, which was never true. */
static void count_is_true_at_one_moment(void **state)
{
    (void)state;
    static void (*const acts[])(race_t *) = {remove_from_page_and_append,
                                             remove_from_head_and_append, trim_and_append};
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        for (int64_t at = 0; at < CALLS; at++) {
            race_t race;
            open_race(&race);
            spill_count_t counted = count_during(&race, at, acts[i]);
            assert_true(counted.exists);
            assert_int_equal(counted.count, ELEMENTS);
            assert_int_equal(counted.next, ELEMENTS + 1);
            assert_int_equal(counted.pages, 2);
            close_race(&race);
        }
}

/* Each removal is before all of the count's calls, or after all calls that see it. */
static void concurrent_removal_is_counted(void **state)
{
    (void)state;
    static void (*const acts[])(race_t *) = {remove_from_page, remove_from_head, trim_elsewhere};
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        for (int64_t at = 0; at < CALLS; at++) {
            race_t race;
            open_race(&race);
            assert_int_equal(count_during(&race, at, acts[i]).count, ELEMENTS - 1);
            close_race(&race);
        }
}

static void owner_dropped_meanwhile_counts_nothing(void **state)
{
    (void)state;
    for (int64_t at = 0; at < CALLS; at++) {
        race_t race;
        open_race(&race);
        spill_count_t counted = count_during(&race, at, drop_elsewhere);
        assert_false(counted.exists);
        assert_int_equal(counted.count, 0);
        assert_int_equal(counted.next, 0);
        assert_int_equal(counted.pages, 0);
        assert_int_equal(counted.head, 0);
        close_race(&race);
    }
}

static void append_and_remove_it(race_t *race)
{
    spill_count_t before;
    append_elsewhere(race);
    assert_int_equal(spill_array_count(race->other, &race->owner, &before, NULL), SPILL_OK);
    assert_int_equal(spill_array_remove(race->other, &race->owner, before.next - 1, NULL),
                     SPILL_OK);
}

static void count_conflicts_after_too_many_races(void **state)
{
    (void)state;
    race_t race;
    open_race(&race);
    race.at = -1;
    race.act = append_and_remove_it;
    spill_count_t counted;
    spill_error_t error;
    assert_int_equal(spill_array_count(race.array, &race.owner, &counted, &error), SPILL_CONFLICT);
    assert_true(error.retryable);
    race.act = NULL;
    assert_int_equal(spill_array_count(race.array, &race.owner, &counted, &error), SPILL_OK);
    assert_int_equal(counted.count, ELEMENTS);
    assert_int_equal(counted.next, ELEMENTS + race.acts);
    close_race(&race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(count_is_true_at_one_moment),
        cmocka_unit_test(concurrent_removal_is_counted),
        cmocka_unit_test(owner_dropped_meanwhile_counts_nothing),
        cmocka_unit_test(count_conflicts_after_too_many_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
