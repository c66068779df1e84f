/* Values: views, copies, well-formedness, order. */
#include "bson/value.h"

#include "random_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { RANDOM_ROUNDS = 20000 };

/* An iterator shows a value as BSON stores it, and appending it makes the same document again. */
static void test_append_copies_any_value_exactly(void **state)
{
    (void)state;
    random_source_t random = {1};
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        bson_t original = BSON_INITIALIZER;
        bson_t copy = BSON_INITIALIZER;
        random_append(&random, &original, "some key");
        spill_value_t value = first_value(&original);
        assert_true(spill_value_valid(&value));
        assert_int_equal(value.size_bytes, original.len - 4 - 1 - strlen("some key") - 1 - 1);
        assert_true(spill_value_append(&value, &copy, "some key"));
        assert_true(bson_equal(&original, &copy));
        spill_value_t again = first_value(&copy);
        assert_true(spill_value_equal(&value, &again));
        bson_destroy(&original);
        bson_destroy(&copy);
    }
}

static void test_append_of_large_values(void **state)
{
    (void)state;
    char *text = bson_malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    bson_t storage = BSON_INITIALIZER;
    bson_t copy = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_utf8(&storage, text);
    assert_int_equal(value.size_bytes, 100005);
    assert_true(spill_value_append(&value, &copy, ""));
    assert_true(bson_equal(&storage, &copy));
    bson_destroy(&storage);
    bson_destroy(&copy);
    bson_free(text);
}

static void test_append_refuses_two_gigabytes(void **state)
{
    (void)state;
    static const uint8_t bytes[1];
    const spill_value_t huge = {.data = bytes, .size_bytes = INT32_MAX, .type = BSON_TYPE_UTF8};
    bson_t document = BSON_INITIALIZER;
    assert_false(spill_value_append(&huge, &document, "a"));
    assert_int_equal(document.len, 5);
    bson_destroy(&document);
}

static void test_from_document_and_iter(void **state)
{
    (void)state;
    bson_t *document = BCON_NEW("a", "{", "b", BCON_INT32(5), "}");
    spill_value_t whole = spill_value_from_document(document);
    assert_int_equal(whole.type, BSON_TYPE_DOCUMENT);
    assert_int_equal(whole.size_bytes, document->len);
    assert_ptr_equal(whole.data, bson_get_data(document));
    spill_value_t inner = first_value(document);
    assert_int_equal(inner.type, BSON_TYPE_DOCUMENT);
    assert_int_equal(inner.size_bytes, 12);
    bson_destroy(document);
}

static void test_scalars_in_storage(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER;
    uint32_t length;
    spill_value_t value = spill_value_from_utf8(&storage, "caf\xc3\xa9");
    assert_int_equal(value.type, BSON_TYPE_UTF8);
    assert_string_equal(spill_value_text(&value, &length), "caf\xc3\xa9");
    assert_int_equal(length, 5);
    value = spill_value_from_int64(&storage, INT64_MIN);
    assert_int_equal(value.type, BSON_TYPE_INT64);
    assert_true(spill_value_int64(&value) == INT64_MIN);
    assert_true(spill_document_valid(&storage));
    assert_int_equal(bson_count_keys(&storage), 2);
    bson_destroy(&storage);
}

static void test_equal_is_of_bytes(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER;
    BSON_APPEND_INT32(&storage, "a", 1);
    BSON_APPEND_DOUBLE(&storage, "b", 1);
    BSON_APPEND_NULL(&storage, "c");
    BSON_APPEND_MINKEY(&storage, "d");
    bson_iter_t iter;
    spill_value_t values[4];
    bson_iter_init(&iter, &storage);
    for (int i = 0; bson_iter_next(&iter); i++)
        values[i] = spill_value_from_iter(&iter);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            assert_int_equal(spill_value_equal(&values[i], &values[j]), i == j);
    bson_destroy(&storage);
}

/* ---- malformed bytes ------------------------------------------------------------------------- */

static void test_malformed_values_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint8_t type;
        const char *data;
        uint32_t size_bytes;
    } cases[] = {
        {"no such type", 0x20, "", 0},
        {"end of document", BSON_TYPE_EOD, "", 0},
        {"int32 of 3 bytes", BSON_TYPE_INT32, "\1\0\0", 3},
        {"int32 of 5 bytes", BSON_TYPE_INT32, "\1\0\0\0\0", 5},
        {"null with a byte", BSON_TYPE_NULL, "\0", 1},
        {"bool without a byte", BSON_TYPE_BOOL, "", 0},
        {"bool 2", BSON_TYPE_BOOL, "\2", 1},
        {"double of 7 bytes", BSON_TYPE_DOUBLE, "\0\0\0\0\0\0\0", 7},
        {"oid of 11 bytes", BSON_TYPE_OID, "\0\0\0\0\0\0\0\0\0\0\0", 11},
        {"decimal of 15 bytes", BSON_TYPE_DECIMAL128, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15},
        {"string without a length", BSON_TYPE_UTF8, "\1\0\0", 3},
        {"string of length 0", BSON_TYPE_UTF8, "\0\0\0\0\0", 5},
        {"string too long", BSON_TYPE_UTF8, "\3\0\0\0a\0", 6},
        {"string of negative length", BSON_TYPE_UTF8, "\377\377\377\377a\0", 6},
        {"string without its NUL", BSON_TYPE_UTF8, "\2\0\0\0ab", 6},
        {"string and more", BSON_TYPE_UTF8, "\2\0\0\0a\0z", 7},
        {"document of 4 bytes", BSON_TYPE_DOCUMENT, "\4\0\0\0", 4},
        {"document that says 4", BSON_TYPE_DOCUMENT, "\4\0\0\0\0", 5},
        {"document too long", BSON_TYPE_DOCUMENT, "\6\0\0\0\0", 5},
        {"document without its NUL", BSON_TYPE_DOCUMENT, "\5\0\0\0\1", 5},
        {"document with an unfinished name", BSON_TYPE_DOCUMENT, "\7\0\0\0\12a\0", 7},
        {"document with a bad field", BSON_TYPE_DOCUMENT, "\11\0\0\0\20a\0\1\0", 9},
        {"array with a bad document", BSON_TYPE_ARRAY, "\15\0\0\0\3a\0\6\0\0\0\0\0", 13},
        {"binary without a subtype", BSON_TYPE_BINARY, "\0\0\0\0", 4},
        {"binary too long", BSON_TYPE_BINARY, "\2\0\0\0\0x", 6},
        {"old binary without its length", BSON_TYPE_BINARY, "\1\0\0\0\2x", 6},
        {"old binary of another length", BSON_TYPE_BINARY, "\5\0\0\0\2\2\0\0\0x", 10},
        {"regex of nothing", BSON_TYPE_REGEX, "", 0},
        {"regex without options", BSON_TYPE_REGEX, "a\0", 2},
        {"regex with open options", BSON_TYPE_REGEX, "a\0x", 3},
        {"pointer without its oid", BSON_TYPE_DBPOINTER, "\2\0\0\0c\0", 6},
        {"pointer without its string", BSON_TYPE_DBPOINTER, "\2\0\0", 3},
        {"code with scope, short", BSON_TYPE_CODEWSCOPE, "\11\0\0\0", 4},
        {"code with scope, no scope", BSON_TYPE_CODEWSCOPE, "\16\0\0\0\6\0\0\0abcde\0", 14},
        {"code with scope, bad scope", BSON_TYPE_CODEWSCOPE, "\21\0\0\0\1\0\0\0\0\10\0\0\0\12a\0\1",
         17},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const spill_value_t value = {.data = (const uint8_t *)cases[i].data,
                                     .size_bytes = cases[i].size_bytes,
                                     .type = cases[i].type};
        if (spill_value_valid(&value))
            fail_msg("accepted: %s", cases[i].what);
        assert_null(spill_value_to_json(&value, true));
    }
}

/* Cutting a well-formed value, or changing its declared size, is always detected. */
static void test_cut_values_are_found(void **state)
{
    (void)state;
    random_source_t random = {2};
    for (int i = 0; i < RANDOM_ROUNDS / 10; i++) {
        bson_t document = BSON_INITIALIZER;
        random_append(&random, &document, "");
        spill_value_t value = first_value(&document);
        for (uint32_t size = 0; size < value.size_bytes; size++) {
            /* A copy of exactly that size, so that a sanitizer detects reads beyond it. */
            uint8_t *bytes = bson_malloc(size + 1);
            memcpy(bytes, value.data, size);
            bytes = bson_realloc(bytes, size == 0 ? 1 : size);
            const spill_value_t cut = {.data = bytes, .size_bytes = size, .type = value.type};
            assert_false(spill_value_valid(&cut));
            bson_free(bytes);
        }
        bson_destroy(&document);
    }
}

/* Changed bytes never cause a read outside; accepted values can be walked and printed. */
static void test_changed_bytes_are_safe(void **state)
{
    (void)state;
    random_source_t random = {3};
    int accepted = 0;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        bson_t document = BSON_INITIALIZER;
        random_append(&random, &document, "");
        spill_value_t value = first_value(&document);
        if (value.size_bytes > 0) {
            uint8_t *bytes = bson_malloc(value.size_bytes);
            memcpy(bytes, value.data, value.size_bytes);
            bytes[random_below(&random, value.size_bytes)] ^=
                (uint8_t)(1u << random_below(&random, 8));
            spill_value_t changed = {
                .data = bytes, .size_bytes = value.size_bytes, .type = value.type};
            if (spill_value_valid(&changed)) {
                accepted++;
                assert_int_equal(spill_value_compare(&changed, &changed), 0);
                bson_free(spill_value_to_json(&changed, true));
            }
            bson_free(bytes);
        }
        bson_destroy(&document);
    }
    assert_true(accepted > 0);
}

/* The cursor stops at malformed input: an open name, an open value, an unknown type. */
static void test_fields_of_malformed_documents(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "\10\0\0\0\12ab\0",
        "\11\0\0\0\20a\0\1\0",
        "\10\0\0\0\40a\0\0",
        "\10\0\0\0\2a\0\0",
    };
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        spill_fields_t fields = spill_fields_of((const uint8_t *)documents[i]);
        const char *name;
        spill_value_t value;
        assert_false(spill_fields_next(&fields, &name, &value));
    }
}

static void nest(bson_t *document, int depth)
{
    bson_init(document);
    for (int i = 1; i < depth; i++) {
        bson_t outer = BSON_INITIALIZER;
        BSON_APPEND_DOCUMENT(&outer, "a", document);
        bson_destroy(document);
        bson_steal(document, &outer);
    }
}

static void test_nesting_is_bounded(void **state)
{
    (void)state;
    bson_t document;
    nest(&document, SPILL_NESTING_MAX);
    assert_true(spill_document_valid(&document));
    spill_value_t value = spill_value_from_document(&document);
    assert_true(spill_value_valid(&value));
    char *json = spill_value_to_json(&value, true);
    assert_non_null(json);
    assert_null(strstr(json, "..."));
    bson_free(json);
    bson_destroy(&document);

    nest(&document, SPILL_NESTING_MAX + 1);
    assert_false(spill_document_valid(&document));
    value = spill_value_from_document(&document);
    assert_false(spill_value_valid(&value));
    bson_destroy(&document);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Append values in BSON order; the values of one group are equal. */
static void append_ordered(bson_t *values)
{
    bson_oid_t low = {{1}}, high = {{2}};
    bson_t *scope = BCON_NEW("a", BCON_INT32(1));
    bson_t *scope_equal = BCON_NEW("a", BCON_DOUBLE(1));
    bson_t *scope_more = BCON_NEW("a", BCON_INT32(2));
    BSON_APPEND_MINKEY(values, "0");
    BSON_APPEND_UNDEFINED(values, "1");
    BSON_APPEND_NULL(values, "2");
    BSON_APPEND_INT32(values, "3", -1);
    BSON_APPEND_INT64(values, "4", 7);
    BSON_APPEND_DOUBLE(values, "4", 7);
    BSON_APPEND_DOUBLE(values, "5", 7.5);
    BSON_APPEND_UTF8(values, "6", "a");
    BSON_APPEND_SYMBOL(values, "6", "a");
    BSON_APPEND_UTF8(values, "7", "ab");
    BSON_APPEND_UTF8(values, "8", "b");
    bson_t *document = BCON_NEW("", "{", "}");
    bson_concat(values, document);
    bson_destroy(document);
    BSON_APPEND_DOCUMENT(values, "10", scope);
    BSON_APPEND_DOCUMENT(values, "10", scope_equal);
    BSON_APPEND_DOCUMENT(values, "11", scope_more);
    bson_t *names = BCON_NEW("11b", "{", "b", BCON_INT32(0), "}", "12", "{", "b", BCON_INT32(0),
                             "c", BCON_NULL, "}", "13", "{", "a", BCON_UTF8(""), "}");
    bson_concat(values, names);
    bson_destroy(names);
    bson_t *arrays =
        BCON_NEW("14", "[", "]", "15", "[", BCON_INT32(9), "]", "16", "[", BCON_UTF8(""), "]");
    bson_concat(values, arrays);
    bson_destroy(arrays);
    BSON_APPEND_BINARY(values, "17", BSON_SUBTYPE_USER, (const uint8_t *)"z", 1);
    BSON_APPEND_BINARY(values, "18", BSON_SUBTYPE_BINARY, (const uint8_t *)"aa", 2);
    BSON_APPEND_BINARY(values, "19", BSON_SUBTYPE_BINARY, (const uint8_t *)"ab", 2);
    BSON_APPEND_OID(values, "20", &low);
    BSON_APPEND_OID(values, "21", &high);
    BSON_APPEND_BOOL(values, "22", false);
    BSON_APPEND_BOOL(values, "23", true);
    BSON_APPEND_DATE_TIME(values, "24", -5);
    BSON_APPEND_DATE_TIME(values, "25", 5);
    BSON_APPEND_TIMESTAMP(values, "26", 1, 2);
    BSON_APPEND_TIMESTAMP(values, "27", UINT32_MAX, 1);
    BSON_APPEND_REGEX(values, "28", "a", "");
    BSON_APPEND_REGEX(values, "29", "a", "i");
    bson_append_dbpointer(values, "30", -1, "c", &low);
    BSON_APPEND_CODE(values, "31", "f");
    BSON_APPEND_CODE(values, "32", "g");
    BSON_APPEND_CODE_WITH_SCOPE(values, "33", "f", scope);
    BSON_APPEND_CODE_WITH_SCOPE(values, "33", "f", scope_equal);
    BSON_APPEND_CODE_WITH_SCOPE(values, "34", "f", scope_more);
    BSON_APPEND_CODE_WITH_SCOPE(values, "35", "g", scope);
    BSON_APPEND_MAXKEY(values, "36");
    bson_destroy(scope);
    bson_destroy(scope_equal);
    bson_destroy(scope_more);
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

static void test_order_across_types(void **state)
{
    (void)state;
    bson_t values = BSON_INITIALIZER;
    append_ordered(&values);
    spill_fields_t left = spill_fields_of(bson_get_data(&values));
    const char *left_name, *right_name;
    spill_value_t a, b;
    for (int i = 0; spill_fields_next(&left, &left_name, &a); i++) {
        spill_fields_t right = spill_fields_of(bson_get_data(&values));
        for (int j = 0; spill_fields_next(&right, &right_name, &b); j++) {
            int expected = strcmp(left_name, right_name) == 0 ? 0 : i < j ? -1 : 1;
            if (sign(spill_value_compare(&a, &b)) != expected)
                fail_msg("values %s (%d) and %s (%d)", left_name, i, right_name, j);
        }
    }
    bson_destroy(&values);
}

/* Any three values: the order is antisymmetric and transitive. */
static void test_order_is_an_order(void **state)
{
    (void)state;
    random_source_t random = {4};
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        bson_t documents[3];
        spill_value_t values[3];
        for (int k = 0; k < 3; k++) {
            bson_init(&documents[k]);
            random_append(&random, &documents[k], "");
            values[k] = first_value(&documents[k]);
        }
        int ab = sign(spill_value_compare(&values[0], &values[1]));
        int bc = sign(spill_value_compare(&values[1], &values[2]));
        int ac = sign(spill_value_compare(&values[0], &values[2]));
        assert_int_equal(ab, -sign(spill_value_compare(&values[1], &values[0])));
        assert_int_equal(spill_value_compare(&values[0], &values[0]), 0);
        if (ab == bc)
            assert_int_equal(ac, ab);
        else if (ab == 0 || bc == 0)
            assert_int_equal(ac, ab + bc);
        for (int k = 0; k < 3; k++)
            bson_destroy(&documents[k]);
    }
}

static void test_values_at_paths(void **state)
{
    (void)state;
    static const struct {
        const char *path, *json; /* NULL: no value at this path */
    } paths[] = {
        {"a", "1"},
        {"b", "{ \"c\" : { \"d\" : \"deep\" }, \"cc\" : 2 }"},
        {"b.c.d", "\"deep\""},
        {"b.cc", "2"},
        {"list.1", "20"},
        {"list.1.x", NULL},
        {"list.2", NULL},
        {"b.c.e", NULL},
        {"a.c", NULL},
        {"bb", NULL},
    };
    bson_t *document = bson_new_from_json(
        (const uint8_t *)"{\"a\": 1, \"b\": {\"c\": {\"d\": \"deep\"}, \"cc\": 2}, "
                         "\"list\": [10, 20]}",
        -1, NULL);
    spill_value_t value = spill_value_from_document(document);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        spill_value_t found;
        bool there = spill_value_at(&value, paths[i].path, &found);
        assert_int_equal(there, paths[i].json != NULL);
        if (!there)
            continue;
        char *json = spill_value_to_json(&found, false);
        assert_string_equal(json, paths[i].json);
        bson_free(json);
    }
    bson_destroy(document);
}

/* An element of the maximum depth is nested even deeper in documents and answers of a server. */
static void test_answers_may_be_deeper_than_elements(void **state)
{
    (void)state;
    static const struct {
        int levels;
        bool element, answer;
    } cases[] = {{SPILL_NESTING_MAX, true, true},
                 {SPILL_NESTING_MAX + 1, false, true},
                 {SPILL_ANSWER_NESTING_MAX, false, true},
                 {SPILL_ANSWER_NESTING_MAX + 1, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t document;
        nest(&document, cases[i].levels);
        assert_int_equal(spill_document_valid(&document), cases[i].element);
        assert_int_equal(spill_answer_valid(&document), cases[i].answer);
        bson_destroy(&document);
    }
}

static void test_text_of_a_field(void **state)
{
    (void)state;
    bson_t *document = BCON_NEW("name", BCON_UTF8("ada"), "empty", BCON_UTF8(""), "number",
                                BCON_INT32(1), "inner", "{", "name", BCON_UTF8("eve"), "}");
    assert_string_equal(spill_document_text(document, "name", "none"), "ada");
    assert_string_equal(spill_document_text(document, "empty", "none"), "");
    assert_string_equal(spill_document_text(document, "number", "none"), "none");
    assert_string_equal(spill_document_text(document, "inner", "none"), "none");
    assert_null(spill_document_text(document, "inner.name", NULL));
    assert_true(spill_document_is_true(document, "number"));
    assert_false(spill_document_is_true(document, "no such field"));
    bson_destroy(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_copies_any_value_exactly),
        cmocka_unit_test(test_append_of_large_values),
        cmocka_unit_test(test_append_refuses_two_gigabytes),
        cmocka_unit_test(test_from_document_and_iter),
        cmocka_unit_test(test_scalars_in_storage),
        cmocka_unit_test(test_equal_is_of_bytes),
        cmocka_unit_test(test_malformed_values_are_found),
        cmocka_unit_test(test_cut_values_are_found),
        cmocka_unit_test(test_changed_bytes_are_safe),
        cmocka_unit_test(test_fields_of_malformed_documents),
        cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_order_across_types),
        cmocka_unit_test(test_order_is_an_order),
        cmocka_unit_test(test_values_at_paths),
        cmocka_unit_test(test_answers_may_be_deeper_than_elements),
        cmocka_unit_test(test_text_of_a_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
