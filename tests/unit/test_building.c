/* The checkpoint of a migration, as a store may return it: sound, damaged, or of other work. */
#include "core/array.h"
#include "core/building.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void put_checkpoint(spill_store_t *store, const char *name, const bson_t *checkpoint)
{
    bool done;
    spill_error_t error;
    assert_int_equal(
        store->ops->catalog_put(store, SPILL_CATALOG_JOB, name, NULL, checkpoint, &done, &error),
        SPILL_OK);
    assert_true(done);
}

static spill_store_t *open_with_checkpoint(const char *json)
{
    spill_store_t *store;
    bson_error_t cause;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    bson_t *checkpoint = bson_new_from_json((const uint8_t *)json, -1, &cause);
    assert_non_null(checkpoint);
    put_checkpoint(store, "feed:migrate", checkpoint);
    bson_destroy(checkpoint);
    return store;
}

static void damaged_checkpoint_is_corrupt(void **state)
{
    (void)state;
    char longest[SPILL_NAME_SIZE + 64];
    snprintf(longest, sizeof longest, "{\"original\": \"%0*d\", \"undoing\": false}",
             SPILL_NAME_SIZE, 7);
    const char *const marks[] = {"{}",
                                 "{\"original\": 7, \"undoing\": true}",
                                 "{\"original\": \"old\"}",
                                 "{\"original\": \"old\", \"undoing\": 1}",
                                 "{\"original\": \"\", \"undoing\": false}",
                                 longest};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        spill_store_t *store = open_with_checkpoint(marks[i]);
        spill_building_t building;
        spill_error_t error;
        char name[SPILL_NAME_SIZE];
        assert_int_equal(spill_building_load(store, "feed", &building, &error), SPILL_CORRUPT);
        assert_non_null(strstr(error.message, "'feed'"));
        spill_building_release(&building);
        assert_int_equal(spill_building_of_original(store, "old", name, &error), SPILL_CORRUPT);
        assert_string_equal(name, "");
        assert_int_equal(spill_store_close(store, &error), SPILL_OK);
    }
}

static void checkpoint_names_its_original(void **state)
{
    (void)state;
    spill_store_t *store = open_with_checkpoint("{\"original\": \"old\", \"undoing\": true}");
    bson_t other = BSON_INITIALIZER;
    spill_building_t building;
    spill_error_t error;
    char name[SPILL_NAME_SIZE];
    put_checkpoint(store, ":migrate", &other); /* entries of other jobs */
    put_checkpoint(store, "feed-0123456789abcdef", &other);
    assert_int_equal(spill_building_load(store, "feed", &building, &error), SPILL_OK);
    assert_string_equal(building.original, "old");
    assert_true(building.undoing);
    spill_building_release(&building);
    assert_int_equal(spill_building_of_original(store, "old", name, &error), SPILL_OK);
    assert_string_equal(name, "feed");
    assert_int_equal(spill_building_of_original(store, "new", name, &error), SPILL_OK);
    assert_string_equal(name, "");
    bson_destroy(&other);
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
}

/* Another client has changed the checkpoint since it was loaded. */
static void changed_checkpoint_is_conflict(void **state)
{
    (void)state;
    spill_store_t *store = open_with_checkpoint("{\"original\": \"old\", \"undoing\": false}");
    spill_building_t mine, other;
    spill_error_t error;
    assert_int_equal(spill_building_load(store, "feed", &mine, &error), SPILL_OK);
    assert_int_equal(spill_building_load(store, "feed", &other, &error), SPILL_OK);
    assert_int_equal(spill_building_save(store, "feed", "old", true, &other, &error), SPILL_OK);
    assert_int_equal(spill_building_save(store, "feed", "old", true, &mine, &error),
                     SPILL_CONFLICT);
    spill_building_release(&mine);
    spill_building_release(&other);
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_checkpoint_is_corrupt),
        cmocka_unit_test(checkpoint_names_its_original),
        cmocka_unit_test(changed_checkpoint_is_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
