/* Retention: which elements appends remove, by count and by age, and which they keep. */
#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { THRESHOLD = 10, PAGE = 8 };

typedef struct world {
    int64_t now_us;
    spill_store_t *store;
    spill_definition_t definition;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
} world_t;

static int64_t now_us(void *context)
{
    return ((world_t *)context)->now_us;
}

static void sleep_us(void *context, int64_t us)
{
    ((world_t *)context)->now_us += us;
}

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* Save the definition and open the array with it. */
static void save_and_open(world_t *world)
{
    spill_error_t error;
    expect_ok(spill_store_define(world->store, &world->definition, &error), &error);
    spill_array_close(world->array);
    expect_ok(spill_array_open(world->store, "feed", &world->array, &error), &error);
}

static void begin(world_t *world, spill_keep_t keep, int64_t elements, int64_t seconds)
{
    spill_store_options_t options;
    spill_error_t error;
    spill_store_options_init(&options);
    *world = (world_t){.now_us = INT64_C(1700000000000000)};
    options.clock.now_us = now_us;
    options.clock.sleep_us = sleep_us;
    options.clock.context = world;
    expect_ok(spill_store_open("memory:", &options, &world->store, &error), &error);
    spill_definition_init(&world->definition, "feed");
    world->definition.keep = keep;
    world->definition.bounds.threshold = THRESHOLD;
    world->definition.bounds.page_capacity = PAGE;
    world->definition.keep_elements = elements;
    world->definition.keep_seconds = seconds;
    strcpy(world->definition.time_field, "at");
    bson_init(&world->storage);
    world->owner = spill_value_from_utf8(&world->storage, "ada");
    save_and_open(world);
}

static int64_t count(world_t *world)
{
    spill_count_t counted;
    spill_error_t error;
    expect_ok(spill_array_count(world->array, &world->owner, &counted, &error), &error);
    return counted.count;
}

static void no_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    fail_msg("page %d: %s", (int)finding->page, finding->text);
}

static void close_world(world_t *world)
{
    spill_verify_summary_t summary;
    spill_error_t error;
    expect_ok(spill_array_verify(world->array, NULL, no_finding, NULL, &summary, &error), &error);
    spill_array_close(world->array);
    expect_ok(spill_store_close(world->store, &error), &error);
    bson_destroy(&world->storage);
}

static void end(world_t *world)
{
    spill_verify_summary_t summary;
    spill_error_t error;
    expect_ok(spill_array_verify(world->array, &world->owner, no_finding, NULL, &summary, &error),
              &error);
    assert_int_equal(summary.elements, count(world));
    close_world(world);
}

/* Append an element of the present time; then the clock advances by `seconds`. */
static void append_to_bucket(world_t *world, int64_t seconds)
{
    bson_t *element = BCON_NEW("at", BCON_DATE_TIME(world->now_us / 1000));
    spill_value_t value = spill_value_from_document(element);
    size_t windows;
    spill_error_t error;
    expect_ok(
        spill_bucket_append(world->array, &world->owner, &value, 1, NULL, NULL, &windows, &error),
        &error);
    bson_destroy(element);
    world->now_us += seconds * 1000000;
}

/* Append an element of the present second; then the clock advances by one. */
static void append(world_t *world)
{
    bson_t *element = BCON_NEW("at", BCON_DATE_TIME(world->now_us / 1000));
    spill_value_t value = spill_value_from_document(element);
    spill_append_result_t result;
    spill_error_t error;
    expect_ok(spill_array_append(world->array, &world->owner, &value, 1, NULL, &result, &error),
              &error);
    bson_destroy(element);
    world->now_us += 1000000;
}

static int64_t larger(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

static void retain_by_count(spill_keep_t keep, int64_t elements)
{
    world_t world;
    begin(&world, keep, elements, 0);
    int64_t most = 0;
    for (int64_t i = 1; i <= 300; i++) {
        append(&world);
        int64_t left = count(&world);
        assert_true(left >= (i < elements ? i : elements));
        most = larger(most, left);
    }
    assert_true(most <= larger(elements, THRESHOLD) + PAGE);
    end(&world);
}

static void newest_are_kept(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 5, THRESHOLD, 25, 100};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        retain_by_count(SPILL_KEEP_NEWEST, counts[i]);
        retain_by_count(SPILL_KEEP_OLDEST, counts[i]);
    }
}

/* With one element a second, the number of kept elements equals the number of seconds. */
static void retain_by_age(spill_keep_t keep, int64_t elements, int64_t seconds)
{
    world_t world;
    begin(&world, keep, elements, seconds);
    int64_t least = larger(elements, seconds);
    int64_t most = 0;
    for (int64_t i = 1; i <= 300; i++) {
        append(&world);
        int64_t left = count(&world);
        assert_true(left >= (i < least ? i : least));
        most = larger(most, left);
    }
    assert_true(most <= larger(least + 1, THRESHOLD) + PAGE);
    end(&world);
}

static void young_are_kept(void **state)
{
    (void)state;
    retain_by_age(SPILL_KEEP_NEWEST, 0, 30);
    retain_by_age(SPILL_KEEP_OLDEST, 0, 30);
    retain_by_age(SPILL_KEEP_NEWEST, 0, 3);
}

static void both_limits_must_allow_removal(void **state)
{
    (void)state;
    retain_by_age(SPILL_KEEP_NEWEST, 60, 30);
    retain_by_age(SPILL_KEEP_OLDEST, 20, 50);
}

/* Referenced elements: the same numbers as in other layouts, and at most 100 more. */
static void retain_referenced(int64_t threshold, int64_t page, int64_t elements, int64_t seconds)
{
    world_t world;
    spill_error_t error;
    begin(&world, SPILL_KEEP_NEWEST, 0, 0);
    expect_ok(spill_definition_preset(&world.definition, "reviews-separate", "feed", &error),
              &error);
    world.definition.bounds.threshold = threshold;
    world.definition.bounds.page_capacity = page;
    world.definition.keep_elements = elements;
    world.definition.keep_seconds = seconds;
    strcpy(world.definition.time_field, "at");
    save_and_open(&world);
    int64_t least = larger(elements, seconds);
    int64_t most = 0;
    for (int64_t i = 1; i <= 300; i++) {
        append(&world);
        if (i % 7 == 0) /* missing numbers do not count */
            spill_array_remove(world.array, &world.owner, i - 3, &error);
        int64_t left = count(&world);
        assert_true(left >= (i < least ? i : least) - (least / 7 + 2));
        most = larger(most, left);
    }
    assert_true(most <= larger(least + 1, threshold) + (page < 100 ? page : 100));
    end(&world);
}

static void referenced_elements_are_removed_likewise(void **state)
{
    (void)state;
    retain_referenced(1, PAGE, 20, 0);
    retain_referenced(1, PAGE, 0, 30);
    retain_referenced(THRESHOLD, PAGE, 5, 0);
    retain_referenced(3, PAGE, 12, 30);
    retain_referenced(1, 1000, 20, 0);
    retain_referenced(1, 1000, 0, 30);
}

/* Capped: of the elements that the threshold keeps, the old ones are removed. */
static void retain_capped(int64_t threshold, int64_t seconds)
{
    world_t world;
    begin(&world, SPILL_KEEP_NEWEST, 0, 0);
    spill_definition_set_layout(&world.definition, SPILL_LAYOUT_CAPPED);
    world.definition.bounds.threshold = threshold;
    world.definition.keep_seconds = seconds;
    save_and_open(&world);
    int64_t least = threshold < seconds ? threshold : seconds;
    int64_t step = threshold < 16 ? 1 : threshold / 8;
    for (int64_t i = 1; i <= 300; i++) {
        append(&world);
        int64_t left = count(&world);
        assert_true(left >= (i < least ? i : least));
        assert_true(left <= least + step);
        assert_true(left <= threshold);
    }
    world.now_us += seconds * 1000000; /* no append happens: all elements stay, and grow old */
    int64_t before = count(&world);
    assert_true(before >= least);
    for (int64_t i = 0; i < step; i++)
        append(&world);
    assert_true(count(&world) <= step);
    end(&world);
}

static void capped_arrays_drop_old_elements(void **state)
{
    (void)state;
    retain_capped(10, 4);
    retain_capped(10, 30);
    retain_capped(100, 30);
    retain_capped(1, 1);
}

/* Buckets of an hour, in parts of six: an element every ten minutes; one day is kept. */
static void old_windows_are_dropped(void **state)
{
    (void)state;
    enum { PART = 6, TEN_MINUTES = 600, DAY = 86400, KEPT = DAY / TEN_MINUTES };
    world_t world;
    spill_error_t error;
    begin(&world, SPILL_KEEP_NEWEST, 0, 0);
    expect_ok(spill_definition_preset(&world.definition, "reviews-bucket", "feed", &error), &error);
    world.definition.bounds.threshold = world.definition.bounds.page_capacity = PART;
    world.definition.window = SPILL_WINDOW_HOUR;
    world.definition.keep_seconds = DAY;
    strcpy(world.definition.time_field, "at");
    save_and_open(&world);
    spill_statistics_t all;
    int64_t windows;
    for (int64_t i = 1; i <= 1000; i++) {
        append_to_bucket(&world, TEN_MINUTES);
        expect_ok(
            spill_bucket_statistics(world.array, &world.owner, NULL, NULL, &all, &windows, &error),
            &error);
        assert_true(all.count >= (i < KEPT ? i : KEPT));
        assert_true(all.count <= KEPT + 2 * PART);
        assert_true(windows <= 26);
    }
    world.now_us += INT64_C(30) * DAY * 1000000; /* one append drops a limited number of windows */
    append_to_bucket(&world, TEN_MINUTES);
    expect_ok(
        spill_bucket_statistics(world.array, &world.owner, NULL, NULL, &all, &windows, &error),
        &error);
    assert_in_range(windows, 26 - SPILL_BUCKET_RETAINED, 27 - SPILL_BUCKET_RETAINED);
    for (int i = 0; i < 2 * PART; i++)
        append_to_bucket(&world, TEN_MINUTES);
    expect_ok(
        spill_bucket_statistics(world.array, &world.owner, NULL, NULL, &all, &windows, &error),
        &error);
    assert_int_equal(all.count, 2 * PART + 1);
    close_world(&world);
}

static void retention_may_change_with_data(void **state)
{
    (void)state;
    world_t world;
    begin(&world, SPILL_KEEP_NEWEST, 0, 0);
    for (int i = 0; i < 200; i++)
        append(&world);
    assert_int_equal(count(&world), 200);
    world.definition.keep_elements = 50;
    save_and_open(&world);
    for (int i = 0; i < PAGE; i++)
        append(&world);
    int64_t left = count(&world);
    assert_true(left >= 50 && left < 50 + PAGE);
    world.definition.keep_elements = 0;
    save_and_open(&world);
    for (int i = 0; i < 100; i++)
        append(&world);
    assert_int_equal(count(&world), left + 100);
    end(&world);
}

static void retention_by_age_needs_time_field(void **state)
{
    (void)state;
    spill_definition_t definition;
    spill_error_t error;
    spill_definition_init(&definition, "feed");
    definition.keep_seconds = 5;
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
    assert_non_null(strstr(error.message, "timeField"));
    definition.keep_seconds = 0;
    definition.keep_elements = -1;
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
}

static void definitions_store_retention(void **state)
{
    (void)state;
    spill_definition_t definition, back;
    spill_error_t error;
    bson_t document;
    spill_definition_init(&definition, "feed");
    spill_definition_to_bson(&definition, &document);
    assert_false(bson_has_field(&document, "keepElements"));
    assert_false(bson_has_field(&document, "keepSeconds"));
    bson_destroy(&document);
    strcpy(definition.time_field, "at");
    definition.keep_elements = 7;
    definition.keep_seconds = 8;
    spill_definition_to_bson(&definition, &document);
    expect_ok(spill_definition_from_bson(&back, &document, &error), &error);
    assert_int_equal(back.keep_elements, 7);
    assert_int_equal(back.keep_seconds, 8);
    bson_destroy(&document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_are_kept),
        cmocka_unit_test(young_are_kept),
        cmocka_unit_test(both_limits_must_allow_removal),
        cmocka_unit_test(referenced_elements_are_removed_likewise),
        cmocka_unit_test(old_windows_are_dropped),
        cmocka_unit_test(capped_arrays_drop_old_elements),
        cmocka_unit_test(retention_may_change_with_data),
        cmocka_unit_test(retention_by_age_needs_time_field),
        cmocka_unit_test(definitions_store_retention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
