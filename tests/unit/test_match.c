#include "bson/element_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool matches_filter(const char *filter_json, const char *element_json)
{
    bson_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    bson_t *filter = bson_new_from_json((const uint8_t *)filter_json, -1, &error);
    assert_non_null(filter);
    assert_int_equal(spill_match_check(filter, NULL), SPILL_OK);
    assert_int_equal(
        spill_value_from_json(element_json, strlen(element_json), &storage, &element, NULL),
        SPILL_OK);
    bool matches = spill_match(filter, &element);
    bson_destroy(filter);
    bson_destroy(&storage);
    return matches;
}

static void assert_refused(const char *filter_json, const char *says)
{
    spill_error_t error;
    bson_t *filter = bson_new_from_json((const uint8_t *)filter_json, -1, NULL);
    assert_non_null(filter);
    assert_int_equal(spill_match_check(filter, &error), SPILL_INVALID);
    assert_non_null(strstr(error.message, says));
    bson_destroy(filter);
}

#define YES(filter, element) assert_true(matches_filter(filter, element))
#define NO(filter, element) assert_false(matches_filter(filter, element))

static void equality(void **state)
{
    (void)state;
    YES("{\"a\": 1}", "{\"a\": 1}");
    YES("{\"a\": 1}", "{\"a\": {\"$numberDouble\": \"1.0\"}}");
    NO("{\"a\": 1}", "{\"a\": \"1\"}");
    NO("{\"a\": 1}", "{\"b\": 1}");
    YES("{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}");
    NO("{\"a\": 1, \"b\": 2}", "{\"b\": 3, \"a\": 1}");
    YES("{\"a.b.c\": \"x\"}", "{\"a\": {\"b\": {\"c\": \"x\"}}}");
    YES("{\"a\": {\"b\": 1}}", "{\"a\": {\"b\": 1}}");
    NO("{\"a\": {\"b\": 1}}", "{\"a\": {\"b\": 1, \"c\": 2}}");
    YES("{\"a\": {\"$eq\": 5}}", "{\"a\": 5}");
    NO("{\"a\": {\"$ne\": 5}}", "{\"a\": 5}");
    YES("{\"a\": {\"$ne\": 5}}", "{}");
}

static void nothing_equals_null(void **state)
{
    (void)state;
    YES("{\"a\": null}", "{}");
    YES("{\"a\": null}", "{\"a\": null}");
    NO("{\"a\": null}", "{\"a\": 0}");
    YES("{\"a.b\": null}", "{\"a\": 1}");
    YES("{\"a.b\": null}", "{\"a\": [{\"b\": 1}, {\"c\": 1}]}");
    NO("{\"a.b\": null}", "{\"a\": [1]}");
    NO("{\"a\": {\"$ne\": null}}", "{}");
    YES("{\"a\": {\"$in\": [1, null]}}", "{}");
    YES("{\"a\": {\"$gte\": null}}", "{}");
    NO("{\"a\": {\"$gt\": null}}", "{\"a\": 1}");
    YES("{\"a\": {\"$exists\": false}}", "{}");
    NO("{\"a\": {\"$exists\": false}}", "{\"a\": null}");
    YES("{\"a\": {\"$exists\": true}}", "{\"a\": null}");
    YES("{\"a\": {\"$exists\": 1}}", "{\"a\": []}");
    YES("{\"a\": {\"$exists\": 0}}", "{}");
    NO("{\"a.b\": {\"$exists\": true}}", "{\"a\": [{\"c\": 1}]}");
}

static void comparisons_need_the_same_type_class(void **state)
{
    (void)state;
    YES("{\"a\": {\"$gt\": 1, \"$lt\": 3}}", "{\"a\": {\"$numberLong\": \"2\"}}");
    NO("{\"a\": {\"$gt\": 1, \"$lt\": 3}}", "{\"a\": 3}");
    YES("{\"a\": {\"$gte\": 3, \"$lte\": 3}}", "{\"a\": 3}");
    NO("{\"a\": {\"$gt\": 1}}", "{\"a\": \"text\"}");
    NO("{\"a\": {\"$lt\": \"b\"}}", "{\"a\": 1}");
    YES("{\"a\": {\"$lt\": \"b\"}}", "{\"a\": \"a\"}");
    NO("{\"a\": {\"$lt\": 1}}", "{}");
    YES("{\"t\": {\"$lt\": {\"$date\": \"2024-01-02T00:00:00Z\"}}}",
        "{\"t\": {\"$date\": \"2024-01-01T00:00:00Z\"}}");
    NO("{\"a\": {\"$lt\": 1}}", "{\"a\": {\"$numberDouble\": \"NaN\"}}");
    NO("{\"a\": {\"$gte\": 1}}", "{\"a\": {\"$numberDouble\": \"NaN\"}}");
    YES("{\"a\": {\"$gte\": {\"$numberDouble\": \"NaN\"}}}",
        "{\"a\": {\"$numberDouble\": \"NaN\"}}");
    YES("{\"a\": {\"$gt\": false}}", "{\"a\": true}");
}

static void lists(void **state)
{
    (void)state;
    YES("{\"a\": {\"$in\": [1, \"x\"]}}", "{\"a\": \"x\"}");
    NO("{\"a\": {\"$in\": []}}", "{\"a\": \"x\"}");
    NO("{\"a\": {\"$nin\": [1, \"x\"]}}", "{\"a\": \"x\"}");
    YES("{\"a\": {\"$nin\": [1, \"x\"]}}", "{\"a\": 2}");
    YES("{\"a\": {\"$nin\": [1]}}", "{}");
}

static void arrays(void **state)
{
    (void)state;
    YES("{\"a\": 2}", "{\"a\": [1, 2]}");
    YES("{\"a\": [1, 2]}", "{\"a\": [1, 2]}");
    YES("{\"a\": [1, 2]}", "{\"a\": [[1, 2], 3]}");
    NO("{\"a\": [1]}", "{\"a\": [1, 2]}");
    NO("{\"a\": {\"$ne\": 2}}", "{\"a\": [1, 2]}");
    YES("{\"a.b\": 2}", "{\"a\": [{\"b\": 1}, {\"b\": 2}]}");
    YES("{\"a.1.b\": 2}", "{\"a\": [{\"b\": 1}, {\"b\": 2}]}");
    NO("{\"a.0.b\": 2}", "{\"a\": [{\"b\": 1}, {\"b\": 2}]}");
    YES("{\"a.0\": 1}", "{\"a\": [1, 2]}");
    /* different elements satisfy the two conditions */
    YES("{\"a\": {\"$gt\": 1, \"$lt\": 0}}", "{\"a\": [-1, 2]}");
    NO("{\"a.b\": 1}", "{\"a\": [[{\"b\": 1}]]}");
}

static void the_element_itself(void **state)
{
    (void)state;
    YES("{\"$eq\": \"x\"}", "\"x\"");
    YES("{\"$gte\": 2, \"$lt\": 5}", "4");
    NO("{\"$gte\": 2, \"$lt\": 5}", "5");
    YES("{\"$in\": [1, {\"a\": 1}]}", "{\"a\": 1}");
    NO("{\"a\": 1}", "1");
    YES("{\"a\": null}", "1");
}

static void unsupported_filters_are_refused(void **state)
{
    (void)state;
    assert_refused("{}", "empty");
    assert_refused("{\"a\": {\"$size\": 1}}", "$size");
    assert_refused("{\"a\": {\"$regularExpression\": {\"pattern\": \"x\", \"options\": \"\"}}}",
                   "regular expressions");
    assert_refused("{\"$or\": [{\"a\": 1}]}", "$or");
    assert_refused("{\"a\": 1, \"$and\": []}", "$and");
    assert_refused("{\"a\": {\"$gt\": 1, \"b\": 2}}", "'b'");
    assert_refused("{\"a\": {\"$gt\": [1]}}", "$gt");
    assert_refused("{\"a\": {\"$lt\": {\"$minKey\": 1}}}", "$lt");
    assert_refused("{\"a\": {\"$in\": 1}}", "$in needs an array");
    assert_refused("{\"a..b\": 1}", "path");
    assert_refused("{\"a.\": 1}", "path");
    assert_refused("{\"\": 1}", "path");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality),
        cmocka_unit_test(nothing_equals_null),
        cmocka_unit_test(comparisons_need_the_same_type_class),
        cmocka_unit_test(lists),
        cmocka_unit_test(arrays),
        cmocka_unit_test(the_element_itself),
        cmocka_unit_test(unsupported_filters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
