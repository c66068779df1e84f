#include "definition/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void assert_window(spill_window_t window, int64_t time_ms, const char *expected)
{
    char text[SPILL_WINDOW_SIZE];
    assert_int_equal(spill_window_of_time(window, time_ms, text, NULL), SPILL_OK);
    assert_string_equal(text, expected);
}

static void test_windows_of_a_time(void **state)
{
    (void)state;
    int64_t time_ms = INT64_C(1772720445678); /* 2026-03-05T14:20:45.678Z, a Thursday */
    assert_window(SPILL_WINDOW_HOUR, time_ms, "2026-03-05T14");
    assert_window(SPILL_WINDOW_DAY, time_ms, "2026-03-05");
    assert_window(SPILL_WINDOW_WEEK, time_ms, "2026-W10");
    assert_window(SPILL_WINDOW_MONTH, time_ms, "2026-03");
    assert_window(SPILL_WINDOW_YEAR, time_ms, "2026");
    assert_window(SPILL_WINDOW_HOUR, 0, "1970-01-01T00");
    assert_window(SPILL_WINDOW_HOUR, -1, "1969-12-31T23");
    assert_window(SPILL_WINDOW_YEAR, INT64_C(-62135596800000), "0001");
    assert_window(SPILL_WINDOW_DAY, INT64_C(951782400000), "2000-02-29");
    assert_window(SPILL_WINDOW_DAY, INT64_C(4107542400000), "2100-03-01");
}

/* Weeks at the turns of years, as in ISO 8601. */
static void test_weeks(void **state)
{
    (void)state;
    static const struct {
        int64_t day; /* since 1970 */
        const char *week;
    } weeks[] = {{12784, "2004-W53"}, {12785, "2004-W53"}, {12786, "2005-W01"},
                 {13148, "2005-W52"}, {13149, "2005-W52"}, {13150, "2006-W01"},
                 {14241, "2008-W52"}, {14242, "2009-W01"}, {14612, "2009-W53"},
                 {14613, "2010-W01"}, {20450, "2025-W52"}, {20451, "2026-W01"}};
    for (size_t i = 0; i < sizeof weeks / sizeof *weeks; i++)
        assert_window(SPILL_WINDOW_WEEK, weeks[i].day * 86400000, weeks[i].week);
}

/*
 * Compare each day of some centuries with the C library's calendar; texts are in the order of
 * times.
 */
static void test_days_agree_with_the_library(void **state)
{
    (void)state;
    char before[3][SPILL_WINDOW_SIZE] = {"", "", ""};
    static const spill_window_t kinds[] = {SPILL_WINDOW_DAY, SPILL_WINDOW_WEEK, SPILL_WINDOW_MONTH};
    static const char *const formats[] = {"%Y-%m-%d", "%G-W%V", "%Y-%m"};
    for (int64_t day = -160000; day < 160000; day += 3) {
        time_t seconds = (time_t)(day * 86400 + 80000);
        struct tm date;
        gmtime_r(&seconds, &date);
        for (int i = 0; i < 3; i++) {
            char expected[80];
            strftime(expected, sizeof expected, formats[i], &date);
            assert_window(kinds[i], (int64_t)seconds * 1000, expected);
            assert_true(strcmp(before[i], expected) <= 0);
            memcpy(before[i], expected, sizeof before[i]);
        }
    }
}

static void test_times_without_a_window(void **state)
{
    (void)state;
    static const int64_t times[] = {INT64_MIN, INT64_C(-62167219200001), INT64_C(253402300800000),
                                    INT64_MAX};
    char text[SPILL_WINDOW_SIZE];
    spill_error_t error;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        assert_int_equal(spill_window_of_time(SPILL_WINDOW_YEAR, times[i], text, &error),
                         SPILL_INVALID);
        assert_string_equal(text, "");
    }
}

static void assert_lies(const spill_definition_t *definition, const char *json, const char *window)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t element;
    spill_error_t error = {.message = ""};
    char text[SPILL_WINDOW_SIZE];
    assert_int_equal(spill_value_from_json(json, strlen(json), &storage, &element, &error),
                     SPILL_OK);
    spill_code_t code = spill_bucket_window_of(definition, &element, text, &error);
    assert_int_equal(code, window ? SPILL_OK : SPILL_INVALID);
    assert_string_equal(text, window ? window : "");
    bson_destroy(&storage);
}

static void test_windows_of_elements(void **state)
{
    (void)state;
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "reviews-bucket", "x", NULL), SPILL_OK);
    assert_lies(&definition, "{\"createdAt\": {\"$date\": \"2026-03-05T14:20:00Z\"}}", "2026-03");
    assert_lies(&definition, "{\"createdAt\": {\"$oid\": \"65e5d9000000000000000000\"}}",
                "2024-03");
    assert_lies(&definition, "{\"createdAt\": {\"$timestamp\": {\"t\": 1709562112, \"i\": 1}}}",
                "2024-03");
    assert_lies(&definition, "{\"createdAt\": \"2026-03-05\"}", NULL);
    assert_lies(&definition, "{\"at\": 5}", NULL);
    assert_lies(&definition, "5", NULL);
    strcpy(definition.time_field, "meta.at");
    assert_lies(&definition, "{\"meta\": {\"at\": {\"$date\": \"1999-12-31T23:59:59Z\"}}}",
                "1999-12");
    definition.window = SPILL_WINDOW_FIELD;
    strcpy(definition.window_source, "season");
    assert_lies(&definition, "{\"season\": \"2026 spring\"}", "2026 spring");
    assert_lies(&definition, "{\"season\": \"\"}", NULL);
    assert_lies(&definition, "{\"season\": 2026}", NULL);
    assert_lies(&definition, "{\"season\": \"a\\nb\"}", NULL);
    assert_lies(&definition,
                "{\"season\": \""
                "0123456789012345678901234567890123456789"
                "01234567890123456789012\"}",
                "012345678901234567890123456789012345678901234567890123456789012");
    assert_lies(&definition,
                "{\"season\": \""
                "0123456789012345678901234567890123456789"
                "012345678901234567890123\"}",
                NULL);
    assert_int_equal(spill_definition_preset(&definition, "feed", "x", NULL), SPILL_OK);
    assert_lies(&definition, "{\"createdAt\": {\"$date\": \"2026-03-05T14:20:00Z\"}}", NULL);
}

static void test_names_of_windows(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER, number = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&number, 7), back;
    char window[SPILL_WINDOW_SIZE];
    spill_value_t name = spill_bucket_name(&storage, &owner, "2026-03");
    assert_true(spill_bucket_split(&name, &back, window));
    assert_true(spill_value_equal(&owner, &back));
    assert_string_equal(window, "2026-03");
    static const char *const others[] = {"7",
                                         "{}",
                                         "{\"owner\": 7}",
                                         "{\"window\": \"a\", \"owner\": 7}",
                                         "{\"owner\": 7, \"window\": 3}",
                                         "{\"owner\": 7, \"window\": \"\"}",
                                         "{\"owner\": 7, \"window\": \"a\", \"part\": 0}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bson_reinit(&storage);
        assert_int_equal(spill_value_from_json(others[i], strlen(others[i]), &storage, &name, NULL),
                         SPILL_OK);
        assert_false(spill_bucket_split(&name, &back, window));
    }
    bson_destroy(&storage);
    bson_destroy(&number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_of_a_time),
        cmocka_unit_test(test_weeks),
        cmocka_unit_test(test_days_agree_with_the_library),
        cmocka_unit_test(test_times_without_a_window),
        cmocka_unit_test(test_windows_of_elements),
        cmocka_unit_test(test_names_of_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
