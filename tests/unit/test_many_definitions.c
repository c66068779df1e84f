/*
 * Many definitions: saving one costs the same, however many the store has (engine calls are
 * counted). Names that another program saved or dropped before are compared too. A number that two
 * records have is damage.
 */
#include "store/embedded/embedded.h"
#include "store/embedded/embedded_codec.h"
#include "support/embedded.h"
#include "support/exercise.h"
#include "support/failing_kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void init_definition(spill_definition_t *definition, const char *name)
{
    spill_definition_init(definition, name);
    snprintf(definition->collection, sizeof definition->collection, "heads-%s", name);
    snprintf(definition->page_collection, sizeof definition->page_collection, "pages-%s", name);
}

/* Save the definitions `from` to `to` - 1, and get the numbers of each. Return the engine's calls.
 */
static int64_t calls_of(spill_store_t *store, failing_kv_plan_t *plan, int from, int to)
{
    spill_error_t error;
    plan->calls = 0;
    plan->armed = true;
    for (int i = from; i < to; i++) {
        char name[32];
        spill_definition_t definition;
        spill_binding_t binding;
        snprintf(name, sizeof name, "array-%04d", i);
        init_definition(&definition, name);
        assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
        assert_int_equal(store->ops->bind(store, &definition, &binding, &error), SPILL_OK);
        assert_int_equal(binding.array_id, 2 * i + 2);
    }
    return plan->calls;
}

static void definitions_cost_the_same(void **unused)
{
    (void)unused;
    enum { SMALL = 20, MANY = 1000 };
    failing_kv_plan_t plan = {.at = -1};
    disk_t *disk = disk_new();
    spill_store_options_t options;
    spill_store_t *store;
    spill_error_t error;
    spill_store_options_init(&options);
    assert_int_equal(spill_embedded_open_kv(failing_kv_open(disk_open(disk), &plan), "memory",
                                            &options, &store, &error),
                     SPILL_OK);
    calls_of(store, &plan, 0, 1); /* creates the counter */
    int64_t first = calls_of(store, &plan, 1, 1 + SMALL);
    calls_of(store, &plan, 1 + SMALL, MANY);
    int64_t last = calls_of(store, &plan, MANY, MANY + SMALL);
    print_message("%d definitions: %ld calls, with %d others %ld\n", SMALL, (long)first, MANY,
                  (long)last);
    assert_true(first > 0);
    assert_int_equal(last, first);
    embedded_close(store);
    disk_free(disk);
}

static spill_code_t define_in(spill_store_t *store, const char *name, const char *collection,
                              const char *pages)
{
    spill_definition_t definition;
    init_definition(&definition, name);
    strcpy(definition.collection, collection);
    strcpy(definition.page_collection, pages);
    return spill_store_define(store, &definition, NULL);
}

/* The store is opened again, so the index of collections is built from the records. */
static void clashes_are_found_after_many_changes(void **unused)
{
    (void)unused;
    enum { ARRAYS = 300 };
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    for (int i = 0; i < ARRAYS; i++) {
        char name[32], heads[32], pages[32];
        snprintf(name, sizeof name, "array-%d", i);
        snprintf(heads, sizeof heads, "heads-%d", i);
        snprintf(pages, sizeof pages, "pages-%d", i);
        if (i == ARRAYS / 2) {
            embedded_close(store);
            store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
        }
        assert_int_equal(define_in(store, name, heads, pages), SPILL_OK);
        if (i % 2 == 0) /* its collections are free again */
            assert_int_equal(
                store->ops->catalog_delete(store, SPILL_CATALOG_DEFINITION, name, NULL), SPILL_OK);
        spill_code_t expected = i % 2 == 0 ? SPILL_OK : SPILL_REFUSED;
        assert_int_equal(define_in(store, "probe", "probes", pages), expected);
        assert_int_equal(define_in(store, "probe", pages, "probePages"), expected);
        assert_int_equal(define_in(store, "probe", "probes", heads), expected);
    }
    embedded_close(store);
    disk_free(disk);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void define(spill_store_t *store, const char *name)
{
    spill_definition_t definition;
    init_definition(&definition, name);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
}

/* Make a store with arrays "one" and "two", then replace a record of the closed store. */
static disk_t *make_damaged(spill_system_record_t kind, const char *name, uint64_t number,
                            uint64_t collection)
{
    disk_t *disk = disk_new();
    spill_buffer_t key = SPILL_BUFFER_INIT, value = SPILL_BUFFER_INIT;
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    define(store, "one"); /* array 2 of collection 1 */
    define(store, "two"); /* array 4 of collection 3 */
    embedded_close(store);
    spill_system_key(&key, kind, name);
    spill_buffer_append_varint(&value, number);
    if (collection != 0)
        spill_buffer_append_varint(&value, collection);
    exercise_put(disk, key.data, key.size, value.data, value.size);
    spill_buffer_release(&key);
    spill_buffer_release(&value);
    return disk;
}

static spill_code_t open_array(spill_store_t *store, const char *name, spill_error_t *error)
{
    spill_array_t *array;
    spill_code_t code = spill_array_open(store, name, &array, error);
    if (code == SPILL_OK)
        spill_array_close(array);
    return code;
}

static void assert_refuses_two(disk_t *disk, spill_code_t code_of_one)
{
    spill_error_t error;
    spill_store_options_t options;
    spill_store_t *store;
    for (int read_only = 0; read_only < 2; read_only++) {
        spill_store_options_init(&options);
        options.read_only = read_only;
        assert_int_equal(
            spill_embedded_open_kv(disk_open(disk), "memory", &options, &store, &error), SPILL_OK);
        assert_int_equal(open_array(store, "two", &error), SPILL_CORRUPT);
        assert_non_null(strstr(error.message, "\"two\" has a number that another record has"));
        assert_int_equal(open_array(store, "one", &error), code_of_one);
        embedded_close(store);
    }
    disk_free(disk);
}

static void number_of_another_array_is_damage(void **unused)
{
    (void)unused;
    assert_refuses_two(make_damaged(SPILL_SYSTEM_ARRAY, "two", 2, 3), SPILL_CORRUPT);
}

static void number_of_a_collection_is_damage(void **unused)
{
    (void)unused;
    assert_refuses_two(make_damaged(SPILL_SYSTEM_ARRAY, "two", 1, 3), SPILL_OK);
}

static void number_is_given_once(void **unused)
{
    (void)unused;
    disk_t *disk = make_damaged(SPILL_SYSTEM_IDS, "", 3, 0);
    spill_definition_t definition;
    spill_error_t error;
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    init_definition(&definition, "three");
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_CORRUPT);
    assert_non_null(strstr(error.message, "the numbers given"));
    assert_int_equal(open_array(store, "two", &error), SPILL_OK);
    embedded_close(store);
    disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions_cost_the_same),
        cmocka_unit_test(clashes_are_found_after_many_changes),
        cmocka_unit_test(number_of_another_array_is_damage),
        cmocka_unit_test(number_of_a_collection_is_damage),
        cmocka_unit_test(number_is_given_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
