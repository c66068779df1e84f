/*
 * Owner keys: equal for equal owners and only for these, self-delimiting, never a prefix of another
 * key.
 */
#include "bson/key.h"
#include "bson/value.h"

#include "random_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static bool can_be_owner(const spill_value_t *value)
{
    return value->type != BSON_TYPE_ARRAY && value->type != BSON_TYPE_REGEX &&
           value->type != BSON_TYPE_UNDEFINED;
}

/* Parse JSON into a value that lives in `storage`. */
static spill_value_t parse_value(bson_t *storage, const char *text)
{
    spill_value_t value;
    spill_error_t error;
    if (spill_value_from_json(text, strlen(text), storage, &value, &error) != SPILL_OK)
        fail_msg("%s: %s", text, error.message);
    return value;
}

/*
 * Two owners that BSON order treats as equal have one key. Other keys differ, and neither is a
 * prefix.
 */
static void test_keys_are_equal_as_owners_are(void **state)
{
    (void)state;
    random_source_t random = {1};
    int same = 0;
    for (int i = 0; i < 60000; i++) {
        bson_t documents[2];
        spill_value_t values[2];
        spill_buffer_t keys[2] = {SPILL_BUFFER_INIT, SPILL_BUFFER_INIT};
        bool owners = true;
        for (int k = 0; k < 2; k++) {
            bson_init(&documents[k]);
            random_append(&random, &documents[k], "");
            values[k] = first_value(&documents[k]);
            spill_code_t code = spill_owner_key(&values[k], &keys[k], NULL);
            assert_int_equal(code, can_be_owner(&values[k]) ? SPILL_OK : SPILL_INVALID);
            owners = owners && code == SPILL_OK;
        }
        if (owners) {
            bool equal = spill_value_compare(&values[0], &values[1]) == 0;
            size_t common = keys[0].size < keys[1].size ? keys[0].size : keys[1].size;
            bool common_equal = memcmp(keys[0].data, keys[1].data, common) == 0;
            assert_int_equal(common_equal, equal);
            assert_int_equal(keys[0].size == keys[1].size && common_equal, equal);
            assert_int_equal(spill_value_same_owner(&values[0], &values[1]), equal);
            same += equal;
        }
        for (int k = 0; k < 2; k++) {
            spill_buffer_release(&keys[k]);
            bson_destroy(&documents[k]);
        }
    }
    assert_true(same > 500);
}

/* The length of a key is found whatever follows it; a cut key has none. */
static void test_length_finds_the_end(void **state)
{
    (void)state;
    random_source_t random = {2};
    for (int i = 0; i < 20000; i++) {
        bson_t document = BSON_INITIALIZER;
        spill_buffer_t key = SPILL_BUFFER_INIT;
        random_append(&random, &document, "");
        spill_value_t value = first_value(&document);
        if (spill_owner_key(&value, &key, NULL) == SPILL_OK) {
            size_t size = key.size;
            for (size_t cut = 0; cut < size; cut++)
                assert_int_equal(spill_owner_key_length(key.data, cut), 0);
            assert_int_equal(spill_owner_key_length(key.data, size), size);
            for (int k = 0; k < 20; k++)
                spill_buffer_append_byte(&key, (uint8_t)random_next(&random));
            assert_int_equal(spill_owner_key_length(key.data, key.size), size);
        }
        spill_buffer_release(&key);
        bson_destroy(&document);
    }
}

/* A key is decoded to an owner with that key; a cut key is refused. */
static void test_keys_are_read(void **state)
{
    (void)state;
    random_source_t random = {7};
    for (int i = 0; i < 40000; i++) {
        bson_t document = BSON_INITIALIZER, storage = BSON_INITIALIZER;
        spill_buffer_t key = SPILL_BUFFER_INIT;
        spill_value_t value, owner;
        if (i % 2)
            random_append(&random, &document, "");
        else
            random_append_number(&random, &document, "");
        value = first_value(&document);
        if (spill_owner_key(&value, &key, NULL) == SPILL_OK) {
            bool read = spill_owner_from_key(key.data, key.size, &storage, &owner);
            if (!read) {
                char *text = bson_as_canonical_extended_json(&document, NULL);
                fail_msg("the key of %s is not read", text);
            }
            assert_true(spill_value_same_owner(&owner, &value));
            bson_reinit(&storage);
            assert_false(spill_owner_from_key(key.data, key.size - 1, &storage, &owner));
        }
        spill_buffer_release(&key);
        bson_destroy(&storage);
        bson_destroy(&document);
    }
}

/* Any bytes decode to an owner with that key, or to none. */
static void test_any_bytes_are_read(void **state)
{
    (void)state;
    static const uint8_t types[] = {0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38, 0x40, 0x48,
                                    0x50, 0x58, 0x60, 0x68, 0x70, 0x78, 0x80, 0xf0};
    random_source_t random = {8};
    for (int i = 0; i < 100000; i++) {
        uint8_t *bytes = bson_malloc(24);
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner;
        size_t size = 1 + random_below(&random, 24);
        for (size_t k = 0; k < size; k++)
            bytes[k] = random_below(&random, 2) == 0 ? types[random_below(&random, sizeof types)]
                                                     : (uint8_t)random_below(&random, 4);
        if (spill_owner_from_key(bytes, size, &storage, &owner))
            assert_int_equal(spill_owner_key_length(bytes, size), size);
        bson_destroy(&storage);
        bson_free(bytes);
    }
}

/*
 * Damaged bytes may hold any exponent with a zero: that is not a number, and is detected at once.
 */
static void test_exponents_without_bound_are_no_number(void **state)
{
    (void)state;
    static const int64_t exponents[] = {INT64_MIN, -10000, 10000, INT64_MAX};
    for (size_t i = 0; i < 32; i++) {
        spill_buffer_t key = SPILL_BUFFER_INIT;
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner;
        spill_buffer_append(&key, "\x20\x30\x01", 3);
        spill_buffer_append_zigzag(&key, exponents[i % 4]);
        spill_buffer_append_zigzag(&key, exponents[i / 4 % 4]);
        spill_buffer_append_varint(&key, 0);
        spill_buffer_append_varint(&key, i / 16);
        assert_false(spill_owner_from_key(key.data, key.size, &storage, &owner));
        bson_destroy(&storage);
        spill_buffer_release(&key);
    }
}

static void test_length_of_any_bytes(void **state)
{
    (void)state;
    static const uint8_t types[] = {0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38, 0x40, 0x48,
                                    0x50, 0x58, 0x60, 0x68, 0x70, 0x78, 0x80, 0xf0};
    random_source_t random = {3};
    for (int i = 0; i < 100000; i++) {
        uint8_t *bytes = bson_malloc(24);
        for (int k = 0; k < 24; k++)
            bytes[k] = random_below(&random, 2) == 0 ? types[random_below(&random, sizeof types)]
                                                     : (uint8_t)random_below(&random, 4);
        assert_true(spill_owner_key_length(bytes, 24) <= 24);
        bson_free(bytes);
    }
}

static void test_deep_bytes_end(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0x38; /* an array in an array in an array ... */
    assert_int_equal(spill_owner_key_length(bytes, sizeof bytes), 0);
}

static void test_keys_are_appended(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    spill_value_t value = spill_value_from_utf8(&storage, "p0001");
    spill_buffer_append(&key, "before", 6);
    assert_int_equal(spill_owner_key(&value, &key, NULL), SPILL_OK);
    assert_int_equal(key.size, 6 + 1 + 5 + 2);
    assert_memory_equal(key.data, "before\x28p0001\0\0", 14);
    spill_buffer_release(&key);
    bson_destroy(&storage);
}

/* Order: by type, and integers, strings and dates by value. */
static void test_keys_are_ordered(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"$minKey\":1}",
        "null",
        "{\"$numberLong\":\"-9223372036854775808\"}",
        "-2",
        "-1.0",
        "0",
        "1",
        "{\"$numberDecimal\":\"255\"}",
        "256",
        "9223372036854775807",
        "\"\"",
        "\"\\u0000\"",
        "\"\\u0000a\"",
        "\"a\"",
        "\"a\\u0000\"",
        "\"aa\"",
        "\"b\"",
        "{}",
        "{\"a\":1}",
        "{\"$oid\":\"0123456789abcdef01234567\"}",
        "false",
        "true",
        "{\"$date\":{\"$numberLong\":\"-1\"}}",
        "{\"$date\":{\"$numberLong\":\"1\"}}",
        "{\"$timestamp\":{\"t\":1,\"i\":2}}",
        "{\"$maxKey\":1}",
    };
    spill_buffer_t previous = SPILL_BUFFER_INIT;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_buffer_t key = SPILL_BUFFER_INIT;
        spill_value_t value = parse_value(&storage, texts[i]);
        assert_int_equal(spill_owner_key(&value, &key, NULL), SPILL_OK);
        size_t common = key.size < previous.size ? key.size : previous.size;
        if (common > 0 && memcmp(previous.data, key.data, common) >= 0)
            fail_msg("%s does not come after %s", texts[i], texts[i - 1]);
        spill_buffer_release(&previous);
        previous = key;
        bson_destroy(&storage);
    }
    spill_buffer_release(&previous);
}

static void test_documents_compare_by_content(void **state)
{
    (void)state;
    static const struct {
        const char *left, *right;
        bool same;
    } cases[] = {
        {"{\"a\":1,\"b\":[1,2.0]}", "{\"a\":1.0,\"b\":[1.0,2]}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":{}}", "{\"a\":[]}", false},
        {"{\"a\":{\"$symbol\":\"x\"}}", "{\"a\":\"x\"}", true},
        {"{\"a\":{\"$undefined\":true}}", "{\"a\":null}", false},
        {"{\"a\":{\"b\":{}},\"c\":{}}", "{\"a\":{\"b\":{},\"c\":{}}}", false},
        {"{\"$binary\":{\"base64\":\"AAAA\",\"subType\":\"00\"}}",
         "{\"$binary\":{\"base64\":\"AAAA\",\"subType\":\"80\"}}", false},
        {"{\"a\":{\"$regularExpression\":{\"pattern\":\"x\",\"options\":\"i\"}}}",
         "{\"a\":{\"$regularExpression\":{\"pattern\":\"x\",\"options\":\"\"}}}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t left = BSON_INITIALIZER;
        bson_t right = BSON_INITIALIZER;
        spill_value_t a = parse_value(&left, cases[i].left);
        spill_value_t b = parse_value(&right, cases[i].right);
        if (spill_value_same_owner(&a, &b) != cases[i].same)
            fail_msg("%s and %s", cases[i].left, cases[i].right);
        bson_destroy(&left);
        bson_destroy(&right);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void assert_refused(const spill_value_t *value, const char *problem)
{
    spill_buffer_t key = SPILL_BUFFER_INIT;
    spill_error_t error;
    spill_buffer_append(&key, "kept", 4);
    assert_int_equal(spill_owner_key(value, &key, &error), SPILL_INVALID);
    assert_int_equal(error.code, SPILL_INVALID);
    if (strstr(error.message, problem) == NULL)
        fail_msg("expected '%s' in '%s'", problem, error.message);
    assert_int_equal(key.size, 4);
    spill_buffer_release(&key);
}

static void test_types_that_cannot_be_owners(void **state)
{
    (void)state;
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"[1]", "an array"},
        {"{\"$regularExpression\":{\"pattern\":\"x\",\"options\":\"\"}}", "a regular expression"},
        {"{\"$undefined\":true}", "undefined"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t value = parse_value(&storage, cases[i].text);
        assert_refused(&value, cases[i].problem);
        bson_destroy(&storage);
    }
}

static void test_malformed_owners(void **state)
{
    (void)state;
    const spill_value_t cut = {
        .data = (const uint8_t *)"\1\0\0", .size_bytes = 3, .type = BSON_TYPE_INT32};
    const spill_value_t none = {0};
    assert_refused(&cut, "not a well-formed BSON value");
    assert_refused(&none, "not a well-formed BSON value");
    assert_false(spill_value_same_owner(&cut, &none));
}

static void fill(char *text, size_t length, char c)
{
    memset(text, c, length);
    text[length] = '\0';
}

static void test_the_longest_owner(void **state)
{
    (void)state;
    char text[3 * SPILL_OWNER_KEY_MAX];
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    fill(text, SPILL_OWNER_KEY_MAX - 5, 'x');
    spill_value_t value = spill_value_from_utf8(&storage, text);
    assert_int_equal(value.size_bytes, SPILL_OWNER_KEY_MAX);
    assert_int_equal(spill_owner_key(&value, &key, NULL), SPILL_OK);
    assert_int_equal(spill_owner_key_length(key.data, key.size), key.size);
    spill_buffer_release(&key);

    fill(text, SPILL_OWNER_KEY_MAX - 4, 'x');
    value = spill_value_from_utf8(&storage, text);
    assert_refused(&value, "too long: 2049 bytes of 2048");
    fill(text, 3 * SPILL_OWNER_KEY_MAX - 1, 'x');
    value = spill_value_from_utf8(&storage, text);
    assert_refused(&value, "too long");
    bson_destroy(&storage);
}

/* A key may be longer than its value: each NUL takes two bytes. */
static void test_the_longest_key(void **state)
{
    (void)state;
    static const char nuls[SPILL_OWNER_KEY_MAX];
    bson_t document = BSON_INITIALIZER;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    bson_append_utf8(&document, "", 0, nuls, (SPILL_OWNER_KEY_MAX - 3) / 2);
    spill_value_t value = first_value(&document);
    assert_int_equal(spill_owner_key(&value, &key, NULL), SPILL_OK);
    assert_int_equal(key.size, SPILL_OWNER_KEY_MAX - 1);
    spill_buffer_release(&key);

    bson_reinit(&document);
    bson_append_utf8(&document, "", 0, nuls, (SPILL_OWNER_KEY_MAX - 3) / 2 + 1);
    value = first_value(&document);
    assert_refused(&value, "too long: its key has 2049 bytes of 2048");
    bson_destroy(&document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_equal_as_owners_are),
        cmocka_unit_test(test_length_finds_the_end),
        cmocka_unit_test(test_keys_are_read),
        cmocka_unit_test(test_any_bytes_are_read),
        cmocka_unit_test(test_exponents_without_bound_are_no_number),
        cmocka_unit_test(test_length_of_any_bytes),
        cmocka_unit_test(test_deep_bytes_end),
        cmocka_unit_test(test_keys_are_appended),
        cmocka_unit_test(test_keys_are_ordered),
        cmocka_unit_test(test_documents_compare_by_content),
        cmocka_unit_test(test_types_that_cannot_be_owners),
        cmocka_unit_test(test_malformed_owners),
        cmocka_unit_test(test_the_longest_owner),
        cmocka_unit_test(test_the_longest_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
