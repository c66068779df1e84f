#include "bson/element_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct element {
    bson_t storage;
    spill_value_t value;
} element_t;

static spill_value_t *parse(element_t *element, const char *json)
{
    bson_init(&element->storage);
    assert_int_equal(
        spill_value_from_json(json, strlen(json), &element->storage, &element->value, NULL),
        SPILL_OK);
    return &element->value;
}

/* Have an element's id and a value that is searched for the same key? */
static bool has_id(const char *json, const char *path, const char *id_json)
{
    element_t element, id;
    spill_buffer_t left = SPILL_BUFFER_INIT, right = SPILL_BUFFER_INIT;
    assert_int_equal(spill_element_id_key(parse(&id, id_json), false, &right, NULL), SPILL_OK);
    bool same = spill_element_key(parse(&element, json), path, false, &left) &&
                spill_buffer_equal(&left, &right);
    spill_buffer_release(&left);
    spill_buffer_release(&right);
    bson_destroy(&element.storage);
    bson_destroy(&id.storage);
    return same;
}

static void id_is_value_at_path(void **state)
{
    (void)state;
    assert_true(has_id("{\"id\": 1}", "id", "{\"$numberDouble\": \"1.0\"}"));
    assert_true(has_id("{\"x\": 0, \"a\": {\"b\": {\"c\": \"v\"}}}", "a.b.c", "\"v\""));
    assert_false(has_id("{\"a\": {\"b\": {\"c\": \"v\"}}}", "a.b", "\"v\""));
    assert_false(has_id("{\"ab\": 1}", "a", "1"));
    assert_false(has_id("{\"a\": 1}", "ab", "1"));
    assert_false(has_id("{\"a\": [{\"b\": 1}]}", "a.b", "1"));
    assert_false(has_id("{\"a\": [1]}", "a.0", "1"));
    assert_false(has_id("{\"a\": 1}", "a.b", "1"));
    assert_false(has_id("\"text\"", "a", "\"text\""));
}

static void some_values_cannot_be_ids(void **state)
{
    (void)state;
    static const char regex[] = "{\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}";
    static const char *const none[] = {"null", "[1]", "{\"$undefined\": true}", regex};
    spill_buffer_t key = SPILL_BUFFER_INIT;
    spill_error_t error;
    element_t id;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(spill_element_id_key(parse(&id, none[i]), false, &key, &error),
                         SPILL_INVALID);
        bson_destroy(&id.storage);
    }
    char text[SPILL_ELEMENT_ID_MAX + 3];
    memset(text, 'x', sizeof text);
    text[0] = text[SPILL_ELEMENT_ID_MAX - 2] = '"';
    text[SPILL_ELEMENT_ID_MAX - 1] = '\0'; /* type, characters, and two bytes at the end */
    assert_int_equal(spill_element_id_key(parse(&id, text), false, &key, &error), SPILL_OK);
    assert_int_equal(key.size, SPILL_ELEMENT_ID_MAX);
    bson_destroy(&id.storage);
    text[SPILL_ELEMENT_ID_MAX - 2] = 'x';
    text[SPILL_ELEMENT_ID_MAX - 1] = '"';
    text[SPILL_ELEMENT_ID_MAX] = '\0';
    assert_int_equal(spill_element_id_key(parse(&id, text), false, &key, &error), SPILL_INVALID);
    assert_int_equal(key.size, SPILL_ELEMENT_ID_MAX); /* unchanged */
    bson_destroy(&id.storage);
    spill_buffer_release(&key);
}

static size_t any_key(const char *json, spill_buffer_t *key)
{
    element_t id;
    spill_error_t error;
    spill_buffer_clear(key);
    assert_int_equal(spill_element_id_key(parse(&id, json), true, key, &error), SPILL_OK);
    bson_destroy(&id.storage);
    return key->size;
}

/* In an array that keeps each id once, every value but undefined is an id, of any length. */
static void any_value_is_an_id_of_a_set(void **state)
{
    (void)state;
    enum { LONG = 3000 };
    static const char *const ids[] = {
        "null",
        "[]",
        "[1]",
        "[1, 2]",
        "[[1, 2]]",
        "\"a\"",
        "{\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}",
        "{\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"i\"}}",
        "{\"$minKey\": 1}"};
    enum { COUNT = sizeof ids / sizeof *ids };
    spill_buffer_t keys[COUNT] = {0};
    spill_buffer_t key = SPILL_BUFFER_INIT, other = SPILL_BUFFER_INIT;
    spill_error_t error;
    element_t id;
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = any_key(ids[i], &keys[i]);
        assert_int_equal(spill_element_id_key_length(keys[i].data, size), size);
        for (size_t j = 0; j < i; j++)
            assert_false(spill_buffer_equal(&keys[i], &keys[j]));
    }
    assert_int_equal(spill_element_id_key(parse(&id, "{\"$undefined\": true}"), true, &key, &error),
                     SPILL_INVALID);
    assert_non_null(strstr(error.message, "undefined"));
    bson_destroy(&id.storage);
    char text[LONG + 3];
    memset(text, 'x', sizeof text);
    text[0] = text[LONG + 1] = '"';
    text[LONG + 2] = '\0';
    assert_int_equal(any_key(text, &key), 33);
    assert_int_equal(spill_element_id_key_length(key.data, key.size), 33);
    assert_int_equal(spill_element_id_key_length(key.data, 32), 0);
    any_key(text, &other);
    assert_true(spill_buffer_equal(&key, &other));
    text[LONG] = 'y';
    assert_int_equal(any_key(text, &other), 33);
    assert_false(spill_buffer_equal(&key, &other));
    for (size_t i = 0; i < COUNT; i++)
        spill_buffer_release(&keys[i]);
    spill_buffer_release(&key);
    spill_buffer_release(&other);
}

static void assert_time(const char *json, const char *path, int64_t expected)
{
    element_t element;
    int64_t time_ms;
    assert_true(spill_element_time_ms(parse(&element, json), path, &time_ms));
    assert_int_equal(time_ms, expected);
    bson_destroy(&element.storage);
}

static void times_have_three_types(void **state)
{
    (void)state;
    element_t element;
    int64_t time_ms;
    assert_time("{\"at\": {\"$date\": {\"$numberLong\": \"-5\"}}}", "at", -5);
    assert_time("{\"a\": {\"t\": {\"$timestamp\": {\"t\": 3000000000, \"i\": 7}}}}", "a.t",
                INT64_C(3000000000000));
    assert_time("{\"_id\": {\"$oid\": \"ffffffff0000000000000000\"}}", "_id",
                INT64_C(4294967295000));
    assert_false(spill_element_time_ms(parse(&element, "{\"at\": 5}"), "at", &time_ms));
    bson_destroy(&element.storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_is_value_at_path),
        cmocka_unit_test(some_values_cannot_be_ids),
        cmocka_unit_test(any_value_is_an_id_of_a_set),
        cmocka_unit_test(times_have_three_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
