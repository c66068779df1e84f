/* Update operators on a head's other fields. */
#include "bson/update.h"
#include "bson/value.h"

#include "random_value.h"
#include "support/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

/* Compare documents as text, including types. */
static void assert_documents_equal(const bson_t *actual, const char *expected_json)
{
    bson_t *expected = document_from_json(expected_json);
    char *a = bson_as_canonical_extended_json(actual, NULL);
    char *b = bson_as_canonical_extended_json(expected, NULL);
    assert_string_equal(a, b);
    bson_free(a);
    bson_free(b);
    bson_destroy(expected);
}

static void assert_updates(const char *fields, const char *update, const char *expected)
{
    bson_t *before = document_from_json(fields);
    bson_t *change = document_from_json(update);
    bson_t after;
    spill_error_t error;
    if (spill_update_apply(before, change, &after, &error) != SPILL_OK)
        fail_msg("%s: %s", update, error.message);
    assert_documents_equal(&after, expected);
    assert_int_equal(spill_update_replace(&before, change, &error), SPILL_OK);
    assert_true(bson_equal(before, &after));
    bson_destroy(&after);
    bson_destroy(change);
    bson_destroy(before);
}

static void assert_fails(const char *fields, const char *update, const char *message)
{
    bson_t *before = document_from_json(fields);
    bson_t *change = document_from_json(update);
    bson_t after;
    spill_error_t error;
    assert_int_equal(spill_update_apply(before, change, &after, &error), SPILL_INVALID);
    assert_string_equal(error.message, message);
    assert_int_equal(spill_update_replace(&before, change, &error), SPILL_INVALID);
    assert_null(before);
    bson_destroy(&after);
    bson_destroy(change);
}

static void test_set(void **state)
{
    (void)state;
    assert_updates("{\"_id\":1,\"a\":1}", "{}", "{\"_id\":1,\"a\":1}");
    assert_updates("{\"_id\":1,\"a\":1}", "{\"$set\":{}}", "{\"_id\":1,\"a\":1}");
    assert_updates("{\"a\":1,\"b\":2}", "{\"$set\":{\"a\":\"x\"}}", "{\"a\":\"x\",\"b\":2}");
    assert_updates("{\"a\":1}", "{\"$set\":{\"c\":[1,2],\"b\":null}}",
                   "{\"a\":1,\"c\":[1,2],\"b\":null}");
    assert_updates("{\"a\":{\"b\":1,\"c\":2}}", "{\"$set\":{\"a.b\":3}}",
                   "{\"a\":{\"b\":3,\"c\":2}}");
    assert_updates("{}", "{\"$set\":{\"a.b.c\":1,\"a.b.d\":2}}",
                   "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}");
    assert_updates("{\"a\":{\"b\":1}}", "{\"$set\":{\"ab\":2}}", "{\"a\":{\"b\":1},\"ab\":2}");
}

static void test_unset(void **state)
{
    (void)state;
    assert_updates("{\"a\":1,\"b\":2}", "{\"$unset\":{\"a\":\"\"}}", "{\"b\":2}");
    assert_updates("{\"a\":1}", "{\"$unset\":{\"b\":1,\"c.d\":1}}", "{\"a\":1}");
    assert_updates("{\"a\":{\"b\":1,\"c\":2}}", "{\"$unset\":{\"a.b\":1}}", "{\"a\":{\"c\":2}}");
    assert_updates("{\"a\":{}}", "{\"$unset\":{\"a.b.c\":1}}", "{\"a\":{}}");
    assert_updates("{\"a\":5}", "{\"$unset\":{\"a.b\":1}}", "{\"a\":5}");
    assert_updates("{\"a\":[1]}", "{\"$unset\":{\"a.0\":1}}", "{\"a\":[1]}");
}

static void test_inc(void **state)
{
    (void)state;
    assert_updates("{}", "{\"$inc\":{\"n\":2}}", "{\"n\":2}");
    assert_updates("{\"n\":1}", "{\"$inc\":{\"n\":2}}", "{\"n\":3}");
    assert_updates("{\"n\":2147483647}", "{\"$inc\":{\"n\":1}}", "{\"n\":2147483648}");
    assert_updates("{\"n\":-2147483648}", "{\"$inc\":{\"n\":-1}}", "{\"n\":-2147483649}");
    assert_updates("{\"n\":{\"$numberLong\":\"1\"}}", "{\"$inc\":{\"n\":1}}",
                   "{\"n\":{\"$numberLong\":\"2\"}}");
    assert_updates("{\"n\":1}", "{\"$inc\":{\"n\":{\"$numberLong\":\"1\"}}}",
                   "{\"n\":{\"$numberLong\":\"2\"}}");
    assert_updates("{\"n\":1}", "{\"$inc\":{\"n\":0.5}}", "{\"n\":1.5}");
    assert_updates("{\"n\":0.5}", "{\"$inc\":{\"n\":{\"$numberLong\":\"2\"}}}", "{\"n\":2.5}");
    assert_updates("{\"s\":{\"n\":1}}", "{\"$inc\":{\"s.n\":1,\"s.m\":7}}",
                   "{\"s\":{\"n\":2,\"m\":7}}");
}

static void test_min_and_max(void **state)
{
    (void)state;
    assert_updates("{\"a\":5}", "{\"$min\":{\"a\":3,\"b\":9}}", "{\"a\":3,\"b\":9}");
    assert_updates("{\"a\":5}", "{\"$min\":{\"a\":7}}", "{\"a\":5}");
    assert_updates("{\"a\":5}", "{\"$max\":{\"a\":7.5}}", "{\"a\":7.5}");
    assert_updates("{\"a\":5}", "{\"$max\":{\"a\":3}}", "{\"a\":5}");
    /* Equal: the old value stays, with its type. */
    assert_updates("{\"a\":5}", "{\"$max\":{\"a\":5.0}}", "{\"a\":5}");
    assert_updates("{\"a\":5}", "{\"$min\":{\"a\":5.0}}", "{\"a\":5}");
    /* Across types. */
    assert_updates("{\"a\":5}", "{\"$max\":{\"a\":\"\"}}", "{\"a\":\"\"}");
    assert_updates("{\"a\":5}", "{\"$min\":{\"a\":null}}", "{\"a\":null}");
    assert_updates("{\"a\":{\"$date\":{\"$numberLong\":\"5\"}}}",
                   "{\"$max\":{\"a\":{\"$date\":{\"$numberLong\":\"9\"}}}}",
                   "{\"a\":{\"$date\":{\"$numberLong\":\"9\"}}}");
}

static void test_operators_together(void **state)
{
    (void)state;
    assert_updates("{\"_id\":\"u\",\"name\":\"x\",\"old\":1,\"n\":1}",
                   "{\"$set\":{\"name\":\"y\"},\"$inc\":{\"n\":1},\"$unset\":{\"old\":1},"
                   "\"$max\":{\"last\":7}}",
                   "{\"_id\":\"u\",\"name\":\"y\",\"n\":2,\"last\":7}");
}

static void test_values_that_do_not_fit(void **state)
{
    (void)state;
    assert_fails("{\"a\":\"x\"}", "{\"$inc\":{\"a\":1}}",
                 "update: $inc of 'a' meets a value that is not a number");
    assert_fails("{\"a\":{\"$numberDecimal\":\"1\"}}", "{\"$inc\":{\"a\":1}}",
                 "update: $inc of 'a' meets a decimal128, which cannot be added to; use $set");
    assert_fails("{\"a\":1}", "{\"$inc\":{\"a\":{\"$numberDecimal\":\"1\"}}}",
                 "update: $inc of 'a' meets a decimal128, which cannot be added to; use $set");
    assert_fails("{\"a\":9223372036854775807}", "{\"$inc\":{\"a\":1}}",
                 "update: $inc of 'a' would pass 64 bits");
    assert_fails("{\"a\":{\"b\":5}}", "{\"$set\":{\"a.b.c\":1}}",
                 "update: $set of 'a.b.c' goes through a value that is not a document");
    assert_fails("{\"a\":[1]}", "{\"$set\":{\"a.0\":2}}",
                 "update: $set of 'a.0' goes through a value that is not a document");
}

/* ---- check ----------------------------------------------------------------------------------- */

static void assert_check(const char *update, const char *message)
{
    static const char *const reserved[] = {"activities", "spill", NULL};
    bson_t *change = document_from_json(update);
    spill_error_t error;
    spill_code_t code = spill_update_check(change, reserved, &error);
    if (message == NULL) {
        assert_int_equal(code, SPILL_OK);
    } else {
        assert_int_equal(code, SPILL_INVALID);
        assert_int_equal(error.code, SPILL_INVALID);
        assert_string_equal(error.message, message);
    }
    bson_destroy(change);
}

static void test_what_is_accepted(void **state)
{
    (void)state;
    assert_check("{}", NULL);
    assert_check("{\"$set\":{\"name\":1,\"spillage\":2,\"activities2\":3,\"a.spill\":4},"
                 "\"$inc\":{\"n.a\":1,\"n.b\":2.5},\"$min\":{\"na\":1},\"$max\":{\"nb\":[]},"
                 "\"$unset\":{\"x\":null}}",
                 NULL);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    assert_check("{\"$push\":{\"a\":1}}",
                 "update: '$push' is not an operator here; these are: $set, $unset, $inc, $min, "
                 "$max");
    assert_check("{\"name\":1}", "update: 'name' is not an operator here; these are: $set, $unset, "
                                 "$inc, $min, $max");
    assert_check("{\"$set\":5}", "update: $set needs a document of fields");
    assert_check("{\"$set\":[5]}", "update: $set needs a document of fields");
    assert_check("{\"$set\":{\"_id\":1}}", "update: $set of '_id' would change the owner's _id");
    assert_check("{\"$set\":{\"_id.a\":1}}",
                 "update: $set of '_id.a' would change the owner's _id");
    assert_check("{\"$set\":{\"a\":1},\"$unset\":{\"spill.x\":1}}",
                 "update: $unset of 'spill.x' would change a field that belongs to the array");
    assert_check("{\"$max\":{\"activities\":1}}",
                 "update: $max of 'activities' would change a field that belongs to the array");
    assert_check("{\"$inc\":{\"a\":\"1\"}}", "update: $inc of 'a' needs a number");
    assert_check("{\"$set\":{\"\":1}}", "update: $set of '' has an empty part in its path");
    assert_check("{\"$set\":{\"a..b\":1}}", "update: $set of 'a..b' has an empty part in its path");
    assert_check("{\"$set\":{\"a.\":1}}", "update: $set of 'a.' has an empty part in its path");
    assert_check("{\"$set\":{\"a.$\":1}}",
                 "update: $set of 'a.$' has a part that starts with '$' in its path");
}

static void test_conflicts(void **state)
{
    (void)state;
    assert_check("{\"$set\":{\"a\":1},\"$inc\":{\"a\":1}}",
                 "update: $inc of 'a' conflicts with $set of 'a'");
    assert_check("{\"$set\":{\"a.b\":1,\"a\":1}}",
                 "update: $set of 'a' conflicts with $set of 'a.b'");
    assert_check("{\"$set\":{\"a\":1},\"$unset\":{\"b\":1,\"a.b.c\":1}}",
                 "update: $unset of 'a.b.c' conflicts with $set of 'a'");
    assert_check("{\"$set\":{\"a.b\":1,\"a.c\":1,\"a.bc\":1}}", NULL);
}

static void test_long_paths(void **state)
{
    (void)state;
    char path[2 * (SPILL_NESTING_MAX + 1)];
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 2 == 0 ? 'a' : '.';
    path[sizeof path - 1] = '\0'; /* one part too many */
    bson_t *update = BCON_NEW("$set", "{", path, BCON_INT32(1), "}");
    bson_t fields = BSON_INITIALIZER;
    bson_t result;
    spill_error_t error;
    assert_int_equal(spill_update_apply(&fields, update, &result, &error), SPILL_INVALID);
    assert_non_null(strstr(error.message, "too many parts"));
    bson_destroy(&result);
    bson_destroy(update);

    path[sizeof path - 3] = '\0';
    update = BCON_NEW("$set", "{", path, BCON_INT32(1), "}");
    assert_int_equal(spill_update_apply(&fields, update, &result, &error), SPILL_OK);
    assert_true(spill_document_valid(&result));
    bson_destroy(&result);
    bson_destroy(update);

    update = BCON_NEW("$set", "{", path, "{", "}", "}");
    assert_int_equal(spill_update_apply(&fields, update, &result, &error), SPILL_INVALID);
    assert_non_null(strstr(error.message, "nested too deeply"));
    bson_destroy(&result);
    bson_destroy(update);
}

static void test_malformed_documents(void **state)
{
    (void)state;
    static const uint8_t bad[] = {9, 0, 0, 0, 0x10, 'a', 0, 1, 0};
    bson_t malformed;
    bson_t good = BSON_INITIALIZER;
    bson_t result;
    spill_error_t error;
    assert_true(bson_init_static(&malformed, bad, sizeof bad));
    assert_int_equal(spill_update_check(&malformed, NULL, &error), SPILL_INVALID);
    assert_int_equal(spill_update_apply(&malformed, &good, &result, &error), SPILL_CORRUPT);
    assert_non_null(strstr(error.message, "malformed"));
    bson_destroy(&result);
}

/* ---- properties of random values ------------------------------------------------------------- */

/* $set writes the value and keeps the rest; $unset removes it again. */
static void test_set_and_unset_any_value(void **state)
{
    (void)state;
    random_source_t random = {1};
    for (int i = 0; i < 5000; i++) {
        bson_t fields = BSON_INITIALIZER;
        bson_t set = BSON_INITIALIZER;
        bson_t argument = BSON_INITIALIZER;
        bson_t with, without;
        BSON_APPEND_INT32(&fields, "_id", 1);
        random_append(&random, &fields, "first");
        random_append(&random, &fields, "second");
        random_append(&random, &argument, "new");
        BSON_APPEND_DOCUMENT(&set, "$set", &argument);
        assert_int_equal(spill_update_apply(&fields, &set, &with, NULL), SPILL_OK);
        bson_iter_t iter;
        assert_true(bson_iter_init_find(&iter, &with, "new"));
        spill_value_t got = spill_value_from_iter(&iter);
        spill_value_t wanted = first_value(&argument);
        assert_true(spill_value_equal(&got, &wanted));

        bson_t *unset = BCON_NEW("$unset", "{", "new", BCON_INT32(1), "}");
        assert_int_equal(spill_update_apply(&with, unset, &without, NULL), SPILL_OK);
        assert_true(bson_equal(&without, &fields));
        bson_destroy(unset);
        bson_destroy(&without);
        bson_destroy(&with);
        bson_destroy(&argument);
        bson_destroy(&set);
        bson_destroy(&fields);
    }
}

/* After $min and then $max with two values, the field lies between them in BSON order. */
static void test_min_and_max_of_any_values(void **state)
{
    (void)state;
    random_source_t random = {2};
    for (int i = 0; i < 5000; i++) {
        bson_t fields = BSON_INITIALIZER;
        bson_t argument = BSON_INITIALIZER;
        bson_t update = BSON_INITIALIZER;
        bson_t result;
        bool maximum = random_below(&random, 2) == 0;
        random_append(&random, &fields, "a");
        random_append(&random, &argument, "a");
        BSON_APPEND_DOCUMENT(&update, maximum ? "$max" : "$min", &argument);
        assert_int_equal(spill_update_apply(&fields, &update, &result, NULL), SPILL_OK);
        spill_value_t old = first_value(&fields);
        spill_value_t other = first_value(&argument);
        spill_value_t got = first_value(&result);
        int order = spill_value_compare(&other, &old);
        assert_true(spill_value_equal(&got, (maximum ? order > 0 : order < 0) ? &other : &old));
        bson_destroy(&result);
        bson_destroy(&update);
        bson_destroy(&argument);
        bson_destroy(&fields);
    }
}

static void assert_names(const char *update, spill_code_t expected)
{
    static const char *const reserved[] = {"activities", "spill", NULL};
    bson_t *change = document_from_json(update);
    spill_error_t error;
    if (spill_update_check_names(change, reserved, &error) != expected)
        fail_msg("%s: not %s", update, spill_code_name(expected));
    bson_destroy(change);
}

/* A server knows more operators, but its updates, too, leave the array alone. */
static void only_names_are_checked_for_a_server(void **state)
{
    (void)state;
    assert_names("{\"$mul\": {\"a\": 2}, \"$push\": {\"b\": {\"$each\": [1]}}}", SPILL_OK);
    assert_names("{\"$rename\": {\"a\": \"activitiesOld\"}}", SPILL_OK);
    assert_names("{\"$rename\": {\"a\": \"activities\"}}", SPILL_INVALID);
    assert_names("{\"$rename\": {\"a\": \"_id.b\"}}", SPILL_INVALID);
    assert_names("{\"$rename\": {\"spill.x\": \"a\"}}", SPILL_INVALID);
    assert_names("{\"$push\": {\"activities\": 1}}", SPILL_INVALID);
    assert_names("{\"$pull\": {\"activities.0.x\": 1}}", SPILL_INVALID);
    assert_names("{\"$mul\": {\"_id\": 2}}", SPILL_INVALID);
    assert_names("{\"$mul\": 2}", SPILL_INVALID);
    assert_names("{\"a\": {\"b\": 1}}", SPILL_INVALID);
    assert_names("{\"$inc\": {\"a\": \"x\"}}",
                 SPILL_INVALID); /* a known operator is checked as usual */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_names_are_checked_for_a_server),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_unset),
        cmocka_unit_test(test_inc),
        cmocka_unit_test(test_min_and_max),
        cmocka_unit_test(test_operators_together),
        cmocka_unit_test(test_values_that_do_not_fit),
        cmocka_unit_test(test_what_is_accepted),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_malformed_documents),
        cmocka_unit_test(test_set_and_unset_any_value),
        cmocka_unit_test(test_min_and_max_of_any_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
