/*
 * The requests that copy and convert make for small owners: many owners share one. An owner with
 * pages is copied alone, between the others.
 */
#include "support/proxy.h"
#include "support/server.h"
#include "tools/definition_jobs.h"

#include <spillway/spillway.h>
#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 300, LONG = 150, LONG_ELEMENTS = 30, ELEMENTS = 2 * (OWNERS - 1) + LONG_ELEMENTS };

/* For 300 owners; without groups it is about 18 for each. */
enum { TRIPS_MAX = 200 };

typedef struct world {
    proxy_t *proxy;
    char *uris[2];
    spill_store_t *stores[2];
} world_t;

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static spill_value_t owner_of(int number, bson_t *storage)
{
    char name[16];
    snprintf(name, sizeof name, "o%04d", number);
    bson_init(storage);
    return spill_value_from_utf8(storage, name);
}

/* Two elements each, and another field in the head; one owner has pages. */
static void fill(spill_store_t *store)
{
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    must(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    definition.bounds.threshold = definition.bounds.page_capacity = 5;
    definition.largest = definition.bounds;
    must(spill_store_define(store, &definition, &error), &error);
    must(spill_array_open(store, "feed", &array, &error), &error);
    for (int i = 0; i < OWNERS; i++) {
        bson_t storage, *update = BCON_NEW("$set", "{", "number", BCON_INT32(i), "}");
        spill_value_t owner = owner_of(i, &storage);
        spill_value_t two[] = {owner, owner};
        spill_append_options_t options;
        spill_append_options_init(&options);
        options.update = update;
        must(spill_array_append(array, &owner, two, 2, &options, NULL, &error), &error);
        for (int k = 2; i == LONG && k < LONG_ELEMENTS; k++)
            must(spill_array_append(array, &owner, &owner, 1, NULL, NULL, &error), &error);
        bson_destroy(update);
        bson_destroy(&storage);
    }
    spill_array_close(array);
}

static int set_up(void **state)
{
    world_t *world = bson_malloc0(sizeof *world);
    world->proxy = proxy_start(server_uri());
    for (int i = 0; i < 2; i++) {
        world->uris[i] = server_new_database(NULL);
        char *through = proxy_uri(world->proxy, world->uris[i]);
        world->stores[i] = server_open(through);
        bson_free(through);
    }
    fill(world->stores[0]);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    world_t *world = *state;
    for (int i = 0; i < 2; i++) {
        server_close(world->stores[i]);
        server_drop(world->uris[i]);
        bson_free(world->uris[i]);
    }
    proxy_stop(world->proxy);
    bson_free(world);
    return 0;
}

static int64_t requests(const world_t *world)
{
    return proxy_counts(world->proxy).requests;
}

static void check_sound(spill_store_t *store, const char *name)
{
    spill_verify_summary_t summary;
    spill_array_t *array;
    spill_error_t error;
    must(spill_array_open(store, name, &array, &error), &error);
    must(spill_array_verify(array, NULL, NULL, NULL, &summary, &error), &error);
    assert_int_equal(summary.owners, OWNERS);
    assert_int_equal(summary.findings, 0);
    spill_array_close(array);
}

/* The heads' other fields are copied too, and are compared by a second copy. */
static void test_copy(void **state)
{
    const world_t *world = *state;
    const spill_copy_options_t options = {0};
    spill_error_t error;
    for (int run = 0; run < 2; run++) {
        spill_copy_result_t result = {0};
        int64_t before = requests(world);
        must(spill_copy(world->stores[0], world->stores[1], "feed", &options, &result, &error),
             &error);
        int64_t trips = requests(world) - before;
        assert_int_equal(result.owners, OWNERS);
        assert_int_equal(result.elements, run == 0 ? ELEMENTS : 0);
        assert_int_equal(result.before, run == 0 ? 0 : ELEMENTS);
        assert_int_equal(result.verified, ELEMENTS);
        assert_int_equal(result.differences, 0);
        print_message("copy, run %d: %lld requests\n", run, (long long)trips);
        assert_in_range(trips, 1, TRIPS_MAX);
    }
    check_sound(world->stores[1], "feed");
}

/* A difference is found, and nothing is changed. */
static void test_differences(void **state)
{
    const world_t *world = *state;
    const spill_copy_options_t options = {0};
    spill_copy_result_t result = {0};
    spill_array_t *array;
    spill_error_t error;
    bson_t storage;
    must(spill_copy(world->stores[0], world->stores[1], "feed", &options, &result, &error), &error);
    must(spill_array_open(world->stores[1], "feed", &array, &error), &error);
    spill_value_t owner = owner_of(7, &storage), value = spill_value_from_utf8(&storage, "other");
    must(spill_array_edit(array, &owner, 1, &value, &error), &error);
    bson_destroy(&storage);
    owner = owner_of(8, &storage);
    bson_t *update = BCON_NEW("$set", "{", "number", BCON_INT32(-1), "}");
    must(spill_array_update(array, &owner, update, &error), &error);
    bson_destroy(update);
    bson_destroy(&storage);
    owner = owner_of(9, &storage);
    must(spill_array_append(array, &owner, &owner, 1, NULL, NULL, &error), &error);
    bson_destroy(&storage);
    spill_array_close(array);
    result = (spill_copy_result_t){0};
    must(spill_copy(world->stores[0], world->stores[1], "feed", &options, &result, &error), &error);
    assert_int_equal(result.differences, 2); /* the field is set again */
    assert_int_equal(result.ahead, 1);
    assert_int_equal(result.elements, 0);
}

static void test_convert(void **state)
{
    const world_t *world = *state;
    spill_store_t *store = world->stores[0];
    const spill_keep_t keep = SPILL_KEEP_OLDEST;
    spill_definition_t from, to;
    spill_copy_result_t result = {0};
    spill_error_t error;
    must(spill_store_definition(store, "feed", &from, &error), &error);
    must(spill_convert_definition(&from, "log", SPILL_LAYOUT_OUTLIER, &keep, &to, &error), &error);
    const spill_copy_options_t options = {.as = "log", .definition = &to};
    int64_t before = requests(world);
    must(spill_convert(store, "feed", &options, &result, &error), &error);
    int64_t trips = requests(world) - before;
    assert_int_equal(result.elements, ELEMENTS);
    assert_int_equal(result.verified, ELEMENTS);
    print_message("convert: %lld requests\n", (long long)trips);
    assert_in_range(trips, 1, TRIPS_MAX);
    check_sound(store, "log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_differences, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_convert, set_up, tear_down),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
