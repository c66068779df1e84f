/* The embedded store needs one operation to find that an array has no element with an id. */
#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ELEMENTS = 95, DOCUMENT = 10 };

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void append_ids(spill_array_t *array, const spill_value_t *owner)
{
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_append_options_init(&options);
    for (int64_t id = 0; id < ELEMENTS; id++) {
        bson_t document = BSON_INITIALIZER;
        BSON_APPEND_INT64(&document, "id", id);
        spill_value_t element = spill_value_from_document(&document);
        expect_ok(spill_array_append(array, owner, &element, 1, &options, &result, &error), &error);
        bson_destroy(&document);
    }
}

/* Find an id, and return how many store operations that took. */
static int64_t find_id(spill_store_t *store, spill_array_t *array, const spill_value_t *owner,
                       int64_t id, spill_code_t expected)
{
    spill_counters_t before, after;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    int64_t seq;
    spill_value_t value = spill_value_from_int64(&storage, id);
    spill_store_counters(store, &before);
    spill_code_t code = spill_array_find_id(array, owner, &value, &seq, &error);
    spill_store_counters(store, &after);
    assert_int_equal(code, expected);
    assert_int_equal(seq, expected == SPILL_OK ? id : -1);
    bson_destroy(&storage);
    return after.calls - before.calls;
}

static void check_preset(const char *preset)
{
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t definition;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    expect_ok(spill_definition_preset(&definition, preset, "things", &error), &error);
    snprintf(definition.id_field, SPILL_NAME_SIZE, "id");
    definition.bounds.threshold = definition.bounds.page_capacity = DOCUMENT;
    expect_ok(spill_store_open("memory:", NULL, &store, &error), &error);
    expect_ok(spill_store_define(store, &definition, &error), &error);
    expect_ok(spill_array_open(store, "things", &array, &error), &error);
    append_ids(array, &owner);
    assert_true(find_id(store, array, &owner, 0, SPILL_OK) >= 1);
    assert_true(find_id(store, array, &owner, ELEMENTS - 1, SPILL_OK) >= 1);
    assert_int_equal(find_id(store, array, &owner, ELEMENTS, SPILL_NOT_FOUND), 1);
    spill_array_close(array);
    expect_ok(spill_store_close(store, &error), &error);
    bson_destroy(&storage);
}

static void absent_id_costs_one_operation(void **state)
{
    (void)state;
    check_preset("feed-recent");
    check_preset("feed");
    check_preset("reviews-separate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(absent_id_costs_one_operation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
