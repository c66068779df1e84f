/* Values from Extended JSON and back; malformed text. */
#include "bson/value.h"

#include "random_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A copy without a NUL, of exactly that size: a sanitizer detects reads beyond it. */
static char *exact_copy(const char *text, size_t size)
{
    char *copy = bson_malloc(size > 0 ? size : 1);
    memcpy(copy, text, size);
    return copy;
}

static spill_code_t parse(const char *text, bson_t *storage, spill_value_t *value,
                          spill_error_t *error)
{
    char *copy = exact_copy(text, strlen(text));
    spill_code_t code = spill_value_from_json(copy, strlen(text), storage, value, error);
    bson_free(copy);
    return code;
}

static void assert_reads_as(const char *text, uint8_t type, const char *canonical)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    spill_error_t error;
    if (parse(text, &storage, &value, &error) != SPILL_OK)
        fail_msg("%s: %s", text, error.message);
    assert_int_equal(value.type, type);
    assert_true(spill_value_valid(&value));
    char *json = spill_value_to_json(&value, true);
    assert_string_equal(json, canonical);
    bson_free(json);
    bson_destroy(&storage);
}

/* A text of these bytes, with a terminator behind it and nothing else. */
static void assert_text_is_written(const char *bytes, bool valid)
{
    const uint32_t length = (uint32_t)strlen(bytes) + 1;
    uint8_t *data = bson_malloc(4 + length);
    memcpy(data, &length, 4);
    memcpy(data + 4, bytes, length);
    const spill_value_t value = {data, 4 + length, BSON_TYPE_UTF8};
    char *json = spill_value_to_json(&value, false);
    assert_int_equal(json != NULL, valid);
    bson_free(json);
    bson_free(data);
}

/* libbson's escape function reads past a text that ends inside a character. */
static void test_texts_that_end_inside_a_character(void **state)
{
    (void)state;
    assert_text_is_written("\n\xC3\xA9", true);
    assert_text_is_written("\n\xC3", false);
    assert_text_is_written("\n\xE2\x82", false);
    assert_text_is_written("\xF0", false);
    assert_text_is_written("\xFC", false);
}

static void test_values_of_every_type(void **state)
{
    (void)state;
    assert_reads_as("5", BSON_TYPE_INT32, "{ \"$numberInt\" : \"5\" }");
    assert_reads_as("  -0 \n", BSON_TYPE_INT32, "{ \"$numberInt\" : \"0\" }");
    assert_reads_as("2147483648", BSON_TYPE_INT64, "{ \"$numberLong\" : \"2147483648\" }");
    assert_reads_as("9223372036854775807", BSON_TYPE_INT64,
                    "{ \"$numberLong\" : \"9223372036854775807\" }");
    assert_reads_as("-9223372036854775808", BSON_TYPE_INT64,
                    "{ \"$numberLong\" : \"-9223372036854775808\" }");
    assert_reads_as("1.5e3", BSON_TYPE_DOUBLE, "{ \"$numberDouble\" : \"1500.0\" }");
    assert_reads_as("\"x\"", BSON_TYPE_UTF8, "\"x\"");
    assert_reads_as("\"\\u00e9\\n\\ud83d\\ude00\"", BSON_TYPE_UTF8,
                    "\"\xc3\xa9\\n\xf0\x9f\x98\x80\"");
    assert_reads_as("\"a\\u0000b\"", BSON_TYPE_UTF8, "\"a\\u0000b\"");
    assert_reads_as("true", BSON_TYPE_BOOL, "true");
    assert_reads_as("false", BSON_TYPE_BOOL, "false");
    assert_reads_as("null", BSON_TYPE_NULL, "null");
    assert_reads_as("[]", BSON_TYPE_ARRAY, "[  ]");
    assert_reads_as("[1, [2], {}]", BSON_TYPE_ARRAY,
                    "[ { \"$numberInt\" : \"1\" }, [ { \"$numberInt\" : \"2\" } ], {  } ]");
    assert_reads_as("{}", BSON_TYPE_DOCUMENT, "{ }");
    assert_reads_as(" {\"a\" : \"b\"} ", BSON_TYPE_DOCUMENT, "{ \"a\" : \"b\" }");
    assert_reads_as("{\"\":1}", BSON_TYPE_DOCUMENT, "{ \"\" : { \"$numberInt\" : \"1\" } }");
    assert_reads_as("{\"$numberLong\":\"5\"}", BSON_TYPE_INT64, "{ \"$numberLong\" : \"5\" }");
    assert_reads_as("{\"\\u0024numberLong\":\"5\"}", BSON_TYPE_INT64,
                    "{ \"$numberLong\" : \"5\" }");
    assert_reads_as("{\"$oid\":\"0123456789abcdef01234567\"}", BSON_TYPE_OID,
                    "{ \"$oid\" : \"0123456789abcdef01234567\" }");
    assert_reads_as("{\"$foo\":1}", BSON_TYPE_DOCUMENT,
                    "{ \"$foo\" : { \"$numberInt\" : \"1\" } }");
    assert_reads_as("{\"$numberDouble\":\"NaN\"}", BSON_TYPE_DOUBLE,
                    "{ \"$numberDouble\" : \"NaN\" }");
}

static void test_relaxed_writing(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_int64(&storage, 5);
    char *json = spill_value_to_json(&value, false);
    assert_string_equal(json, "5");
    bson_free(json);
    bson_destroy(&storage);
}

/*
 * The value is equal, but the bytes may differ: options of regular expressions are sorted, symbols
 * may become strings.
 */
static void test_any_value_survives_json(void **state)
{
    (void)state;
    random_source_t random = {1};
    for (int i = 0; i < 20000; i++) {
        bson_t original = BSON_INITIALIZER;
        bson_t storage = BSON_INITIALIZER;
        random_append(&random, &original, "");
        spill_value_t value = first_value(&original);
        char *json = spill_value_to_json(&value, true);
        if (json == NULL) {
            /* One of the random texts is not UTF-8, which JSON requires. */
            assert_non_null(memmem(bson_get_data(&original), original.len, "a\0\xff", 3));
        } else {
            spill_value_t again;
            spill_error_t error;
            if (parse(json, &storage, &again, &error) == SPILL_OK)
                assert_int_equal(spill_value_compare(&value, &again), 0);
            else if (strstr(error.message, " inside a") == NULL)
                fail_msg("%s: %s", json, error.message);
        }
        bson_free(json);
        bson_destroy(&storage);
        bson_destroy(&original);
    }
}

static void test_storage_keeps_what_it_holds(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    BSON_APPEND_INT32(&storage, "before", 1);
    assert_int_equal(parse("{\"a\":1}", &storage, &value, NULL), SPILL_OK);
    assert_int_equal(parse("[1,2", &storage, &value, NULL), SPILL_PARSE);
    assert_null(value.data);
    assert_int_equal(parse("\"last\"", &storage, &value, NULL), SPILL_OK);
    assert_true(spill_document_valid(&storage));
    assert_int_equal(bson_count_keys(&storage), 3);
    uint32_t length;
    assert_string_equal(spill_value_text(&value, &length), "last");
    bson_destroy(&storage);
}

/* ---- malformed text -------------------------------------------------------------------------- */

static void assert_refused(const char *text, size_t size, size_t offset, const char *problem)
{
    char expected[32];
    snprintf(expected, sizeof expected, "at offset %zu: ", offset);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    spill_error_t error = {0};
    char *copy = exact_copy(text, size);
    if (spill_value_from_json(copy, size, &storage, &value, &error) != SPILL_PARSE)
        fail_msg("accepted: %s", text);
    if (strstr(error.message, expected) == NULL || strstr(error.message, problem) == NULL)
        fail_msg("%s: expected '%s%s', got '%s'", text, expected, problem, error.message);
    assert_int_equal(error.code, SPILL_PARSE);
    assert_int_equal(storage.len, 5);
    bson_free(copy);
    bson_destroy(&storage);
}

static void test_errors_name_the_offset(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
        const char *problem;
    } cases[] = {
        {"", 0, "a value is missing"},
        {"  ", 2, "a value is missing"},
        {"x", 0, "a value is missing"},
        {"nul", 0, "not a JSON value"},
        {"trve", 0, "not a JSON value"},
        {"fals", 0, "not a JSON value"},
        {"NaN", 0, "a value is missing"},
        {"1, \"b\": 2", 1, "more text after the value"},
        {"1}", 1, "more text after the value"},
        {"1}, {\"a\":2", 1, "more text after the value"},
        {"{\"a\":1} {\"b\":2}", 8, "more text after the value"},
        {"{\"a\":1}x", 7, "more text after the value"},
        {"\"a\" \"b\"", 4, "more text after the value"},
        {"truefalse", 4, "more text after the value"},
        {"{", 1, "a name in double quotes is missing"},
        {"{\"a\":1,}", 7, "a name in double quotes is missing"},
        {"{a:1}", 1, "a name in double quotes is missing"},
        {"{'a':1}", 1, "a name in double quotes is missing"},
        {"{\"a\" 1}", 5, "a colon is missing"},
        {"{\"a\":}", 5, "a value is missing"},
        {"{\"a\":1", 6, "a comma or a closing brace is missing"},
        {"{\"a\":1]", 6, "a comma or a closing brace is missing"},
        {"{\"a\":1 \"b\":2}", 7, "a comma or a closing brace is missing"},
        {"[1,]", 3, "a value is missing"},
        {"[1 2]", 3, "a comma or a closing bracket is missing"},
        {"[1", 2, "a comma or a closing bracket is missing"},
        {"-", 1, "a digit is missing"},
        {"[1.]", 3, "a digit is missing"},
        {"[.5]", 1, "a value is missing"},
        {"[+5]", 1, "a value is missing"},
        {"[1e]", 3, "a digit is missing"},
        {"[1e+]", 4, "a digit is missing"},
        {"[01]", 1, "leading zero"},
        {"[-01]", 1, "leading zero"},
        {"[9223372036854775808]", 1, "beyond 64 bits"},
        {"[-9223372036854775809]", 1, "beyond 64 bits"},
        {"[99999999999999999999]", 1, "beyond 64 bits"},
        {"\"a", 0, "a string without its end"},
        {"[\"a\nb\"]", 3, "a control character"},
        {"\"\\q\"", 1, "not an escape sequence"},
        {"\"\\", 1, "not an escape sequence"},
        {"\"\\u12", 1, "four hexadecimal digits"},
        {"\"\\u12x4\"", 1, "four hexadecimal digits"},
        {"\"\\ud800\"", 1, "half of a surrogate pair"},
        {"\"\\udc00\"", 1, "half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", 1, "half of a surrogate pair"},
        {"\"\\ud800\\uzzzz\"", 1, "half of a surrogate pair"},
        {"{\"a\\u0000\":1}", 3, "a name cannot contain"},
        {"[\"\xff\"]", 1, "not UTF-8"},
        {"\"\xed\xa0\x80\"", 0, "not UTF-8"},
        {"\xef\xbb\xbf{}", 0, "a value is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].offset, cases[i].problem);
    assert_refused("{}\0{}", 5, 2, "more text after the value");
    assert_refused("[\0]", 3, 1, "a value is missing");
    assert_refused("\"a\\\0\"", 5, 2, "not an escape sequence");
}

/* Well-formed JSON with an invalid $-notation: the message names the innermost one. */
static void test_bad_notations(void **state)
{
    (void)state;
    assert_refused("{\"$oid\":\"xx\"}", 13, 0, "{\"$oid\":\"xx\"} is not");
    assert_refused("[{\"$numberLong\":\"5\",\"x\":1}]", 27, 1, "that $numberLong names");
    assert_refused("{\"a\":{\"$numberInt\":\"99999999999\"}}", 34, 5,
                   "{\"$numberInt\":\"99999999999\"} is not");
    assert_refused("1e400", 5, 0, "out of range");
}

/* Code, pointers and numbers that libbson would misread. */
static void test_what_libbson_misreads(void **state)
{
    (void)state;
    assert_reads_as("{\"$code\":\"f\"}", BSON_TYPE_CODE, "{ \"$code\" : \"f\" }");
    assert_reads_as("{\"$code\":\"f\",\"$scope\":{\"a\":true}}", BSON_TYPE_CODEWSCOPE,
                    "{ \"$code\" : \"f\", \"$scope\" : { \"a\" : true } }");
    assert_reads_as("[{\"a\":{\"$code\":\"f\"}}]", BSON_TYPE_ARRAY,
                    "[ { \"a\" : { \"$code\" : \"f\" } } ]");
    assert_reads_as("{\"$code\":\"\\\\u0000\"}", BSON_TYPE_CODE, "{ \"$code\" : \"\\\\u0000\" }");
    assert_reads_as("{\"$numberDouble\":\"-1.5E+3\"}", BSON_TYPE_DOUBLE,
                    "{ \"$numberDouble\" : \"-1500.0\" }");
    assert_reads_as("{\"$numberDouble\":\".5\"}", BSON_TYPE_DOUBLE,
                    "{ \"$numberDouble\" : \"0.5\" }");
    assert_reads_as("{\"$numberDouble\":\"-Infinity\"}", BSON_TYPE_DOUBLE,
                    "{ \"$numberDouble\" : \"-Infinity\" }");
    assert_reads_as("{\"$timestamp\":{\"t\":4294967295,\"i\":4294967295}}", BSON_TYPE_TIMESTAMP,
                    "{ \"$timestamp\" : { \"t\" : 4294967295, \"i\" : 4294967295 } }");
    static const struct {
        const char *text;
        size_t offset;
        const char *problem;
    } cases[] = {
        {"[{\"$code\":\"f\"}]", 2, "code inside"},
        {"[{\"\\u0024c\\u006fde\":\"f\"}]", 2, "code inside"},
        {"{\"$code\":\"f\",\"$scope\":{\"a\":{\"$code\":\"g\"}}}", 28, "code inside"},
        {"[1,{\"$dbPointer\":{}}]", 4, "a pointer inside"},
        {"{\"$scope\":{},\"$code\":\"f\"}", 1, "must come right after"},
        {"{\"$code\":\"f\",\"a\":1,\"$scope\":{}}", 19, "must come right after"},
        {"{\"$code\":\"f\\u0000g\"}", 9, "code with \\u0000"},
        {"{\"$numberDouble\":\"\"}", 17, "the text is not a number"},
        {"{\"$numberDouble\": \"1.5x\"}", 18, "the text is not a number"},
        {"{\"$numberDouble\":\"1.5e\"}", 17, "the text is not a number"},
        {"{\"$numberDouble\":\".\"}", 17, "the text is not a number"},
        {"{\"$numberDouble\":\"0x10\"}", 17, "the text is not a number"},
        {"{\"$numberDouble\":\"1\\u00002\"}", 17, "the text is not a number"},
        {"{\"$timestamp\":{\"t\":4294967296,\"i\":0}}", 19, "more than 32 bits"},
        {"{\"$timestamp\":{\"t\":1,\"i\":99999999999}}", 25, "more than 32 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].offset, cases[i].problem);
}

/* Every beginning of a text is refused, except for numbers, at or before its end. */
static void test_beginnings_are_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1.5e-3,{\"$date\":{\"$numberLong\":\"12\"}},\"\\u00e9\\ud83d\\ude00"
        "\\t\",true,false,null,-7],\"caf\xc3\xa9\":{}}";
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    for (size_t size = 0; size < sizeof text - 1; size++) {
        char *copy = exact_copy(text, size);
        assert_int_equal(spill_value_from_json(copy, size, &storage, &value, NULL), SPILL_PARSE);
        bson_free(copy);
    }
    assert_int_equal(parse(text, &storage, &value, NULL), SPILL_OK);
    bson_destroy(&storage);
}

static void nest(char *text, int depth, const char *open, const char *core, const char *close)
{
    *text = '\0';
    for (int i = 0; i < depth; i++)
        text = stpcpy(text, open);
    text = stpcpy(text, core);
    for (int i = 0; i < depth; i++)
        text = stpcpy(text, close);
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    char text[SPILL_JSON_NESTING_MAX * 16];
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    spill_error_t error;
    nest(text, SPILL_JSON_NESTING_MAX, "[", "", "]");
    assert_int_equal(parse(text, &storage, &value, &error), SPILL_OK);
    nest(text, SPILL_JSON_NESTING_MAX, "{\"a\":", "1", "}");
    assert_int_equal(parse(text, &storage, &value, &error), SPILL_OK);
    nest(text, SPILL_JSON_NESTING_MAX, "{\"$a\":", "1", "}");
    assert_int_equal(parse(text, &storage, &value, &error), SPILL_OK);
    nest(text, SPILL_JSON_NESTING_MAX + 1, "[", "", "]");
    assert_int_equal(parse(text, &storage, &value, &error), SPILL_PARSE);
    assert_non_null(strstr(error.message, "offset 97: nested too deeply"));
    bson_destroy(&storage);
}

/* If the check accepts a text, libbson finds no syntax error in it. */
static void test_changed_texts(void **state)
{
    (void)state;
    static const char letters[] = "{}[]\",:\\u0019ae.-+ \n\x01\xc3";
    random_source_t random = {2};
    int accepted = 0;
    for (int i = 0; i < 100000; i++) {
        char text[] = "{\"a\":[1.5,\"x\\n\",{\"b\":true}],\"c\":-3e1}";
        for (uint32_t k = random_below(&random, 3) + 1; k > 0; k--)
            text[random_below(&random, sizeof text - 1)] =
                letters[random_below(&random, sizeof letters - 1)];
        bson_t storage = BSON_INITIALIZER;
        spill_value_t value;
        spill_error_t error;
        if (parse(text, &storage, &value, &error) == SPILL_OK) {
            accepted++;
            assert_true(spill_value_valid(&value));
        } else if (strstr(error.message, "malformed JSON at offset") == NULL &&
                   strstr(error.message, "out of range") == NULL) {
            fail_msg("%s: %s", text, error.message);
        }
        bson_destroy(&storage);
    }
    assert_true(accepted > 1000);
}

/* The writer of usual types and libbson's writer agree. */
static void documents_are_written_as_libbson_writes_them(void **state)
{
    (void)state;
    enum { DOCUMENTS = 20000, NAMES = 3, MEMBERS = 4 };
    static const char *const names[NAMES] = {"", "name", "a\"\x01\xc3\xa9"};
    random_source_t random = {7};
    int written = 0;
    for (int i = 0; i < DOCUMENTS; i++) {
        bson_t document = BSON_INITIALIZER;
        for (uint32_t members = random_below(&random, MEMBERS); members > 0; members--)
            random_append(&random, &document, names[random_below(&random, NAMES)]);
        spill_value_t value = spill_value_from_document(&document);
        for (int canonical = 0; canonical < 2; canonical++) {
            char *ours = spill_json_write(&value, canonical != 0);
            char *other = canonical ? bson_as_canonical_extended_json(&document, NULL)
                                    : bson_as_relaxed_extended_json(&document, NULL);
            if (ours != NULL)
                assert_string_equal(ours, other);
            written += ours != NULL ? 1 : 0;
            bson_free(ours);
            bson_free(other);
        }
        bson_destroy(&document);
    }
    assert_true(written > DOCUMENTS / 10);
}

/* Dates and doubles at the limits of each form. */
static void dates_and_doubles_are_written_as_libbson_writes_them(void **state)
{
    (void)state;
    static const int64_t dates[] = {
        INT64_MIN,       -1,       0, 1, 999, 1000, 951782400000, 1700000000120, 253402300799999,
        253402300800000, INT64_MAX};
    static const double doubles[] = {0,    -0.0,  1,     -1,     0.1,     1e15,     1e20,
                                     1e21, -1e22, 1e300, 5e-324, 1.0 / 3, INFINITY, (double)NAN};
    int written = 0;
    for (size_t i = 0; i < 2 * (sizeof dates / sizeof *dates + sizeof doubles / sizeof *doubles);
         i++) {
        bson_t document = BSON_INITIALIZER;
        const bool canonical = i % 2 == 0;
        const size_t at = i / 2, date_count = sizeof dates / sizeof *dates;
        if (at < date_count)
            BSON_APPEND_DATE_TIME(&document, "a", dates[at]);
        else
            BSON_APPEND_DOUBLE(&document, "a", doubles[at - date_count]);
        spill_value_t value = spill_value_from_document(&document);
        char *ours = spill_json_write(&value, canonical);
        char *other = canonical ? bson_as_canonical_extended_json(&document, NULL)
                                : bson_as_relaxed_extended_json(&document, NULL);
        if (ours != NULL)
            assert_string_equal(ours, other);
        written += ours != NULL ? 1 : 0;
        bson_free(ours);
        bson_free(other);
        bson_destroy(&document);
    }
    assert_int_equal(written, 42); /* not: 4 relaxed dates, 4 doubles that are not finite */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_written_as_libbson_writes_them),
        cmocka_unit_test(dates_and_doubles_are_written_as_libbson_writes_them),
        cmocka_unit_test(test_values_of_every_type),
        cmocka_unit_test(test_texts_that_end_inside_a_character),
        cmocka_unit_test(test_relaxed_writing),
        cmocka_unit_test(test_any_value_survives_json),
        cmocka_unit_test(test_storage_keeps_what_it_holds),
        cmocka_unit_test(test_errors_name_the_offset),
        cmocka_unit_test(test_bad_notations),
        cmocka_unit_test(test_what_libbson_misreads),
        cmocka_unit_test(test_beginnings_are_refused),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_changed_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
