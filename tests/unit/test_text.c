/* Sizes, dates and names as text for people, and times in text. */
#include "util/clock.h"
#include "util/text.h"

#include <bson/bson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- text for people ------------------------------------------------------------------------- */

static void sizes_have_three_digits(void **context)
{
    (void)context;
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},           {999, "999 B"},       {1000, "1 KiB"},
                 {1024, "1 KiB"},      {10598, "10.3 KiB"},  {102348, "99.9 KiB"},
                 {102400, "100 KiB"},  {1023487, "999 KiB"}, {1023488, "1 MiB"},
                 {16777216, "16 MiB"}, {16800000, "16 MiB"}, {INT64_MAX, "8 EiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(spill_size_text(cases[i].bytes).text, cases[i].text);
}

static void numbers_have_three_digits_and_no_exponent(void **context)
{
    (void)context;
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {1.5, "1.5"},
                 {17.84, "17.8"},
                 {99.94, "99.9"},
                 {99.96, "100"},
                 {144.4, "144"},
                 {1437.3, "1437"},
                 {999.7, "1000"},
                 {2e9, "2000000000"},
                 {0.0144, "0.0144"},
                 {-3.25, "-3.25"},
                 {0.00001, "0.00001"},
                 {1e-9, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(spill_number_text(cases[i].number).text, cases[i].text);
}

static void a_count_of_one_has_a_singular(void **context)
{
    (void)context;
    assert_string_equal(spill_counted_text(1, "element", "elements").text, "1 element");
    assert_string_equal(spill_counted_text(0, "element", "elements").text, "0 elements");
    assert_string_equal(spill_counted_text(INT64_MIN, "index", "indexes").text,
                        "-9223372036854775808 indexes");
    assert_string_equal(spill_plural(2, "key", "keys"), "keys");
}

static void arguments_of_a_shell_are_quoted(void **context)
{
    (void)context;
    static const char *const cases[][2] = {{"dump/users.bson.gz", "dump/users.bson.gz"},
                                           {"", "''"},
                                           {"a b", "'a b'"},
                                           {"it's", "'it'\\''s'"},
                                           {"mongodb://h/d?a=1&b=2", "'mongodb://h/d?a=1&b=2'"},
                                           {"$(touch x)", "'$(touch x)'"},
                                           {"~", "'~'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = spill_shell_word(cases[i][0]);
        assert_string_equal(text, cases[i][1]);
        bson_free(text);
    }
}

static void ends_of_names(void **context)
{
    (void)context;
    assert_true(spill_text_ends_with("users.bson", ".bson"));
    assert_false(spill_text_ends_with("users.bson.gz", ".bson"));
    assert_false(spill_text_ends_with(".bson", ".bson"));
    assert_false(spill_text_ends_with("", ".bson"));
}

static void days_are_in_utc(void **context)
{
    (void)context;
    assert_string_equal(spill_day_text(0).text, "1970-01-01");
    assert_string_equal(spill_day_text(1795305599999).text, "2026-11-21");
    assert_string_equal(spill_day_text(-1).text, "1969-12-31");
    assert_string_equal(spill_time_text(-1).text, "1969-12-31T23:59:59Z");
    assert_string_equal(spill_time_text(-1000).text, "1969-12-31T23:59:59Z");
}

static void names_show_every_character(void **context)
{
    (void)context;
    static const char *const cases[][2] = {{"", ""},
                                           {"plain \xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80",
                                            "plain \xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80"},
                                           {"a\nb\x1B[31m\x7F", "a\\u000Ab\\u001B[31m\\u007F"},
                                           {"\xC2\x9B"
                                            "x",
                                            "\\u009Bx"},
                                           {"\xE2\x80\xAE"
                                            "gpj",
                                            "\\u202Egpj"},
                                           {"\xE2\x81\xA6", "\\u2066"},
                                           {"\x80\xC0\xAF\xFF", "\\x80\\xC0\\xAF\\xFF"},
                                           {"cut \xE4\xB8", "cut \\xE4\\xB8"},
                                           {"\xED\xA0\x80", "\\xED\\xA0\\x80"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *visible = spill_visible_text(cases[i][0]);
        assert_string_equal(visible, cases[i][1]);
        bson_free(visible);
    }
}

/* ---- times in text --------------------------------------------------------------------------- */

static void valid_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t time_ms;
    } cases[] = {{"1970-01-01", 0},
                 {"1969-12-31", -86400000},
                 {"2026-08-21", 1787270400000},
                 {"2026-08-21T10:30", 1787308200000},
                 {"2026-08-21 10:30:15", 1787308215000},
                 {"2026-08-21T10:30:15Z", 1787308215000},
                 {"2026-08-21T10:30:15.5Z", 1787308215500},
                 {"2026-08-21T10:30:15,123456789z", 1787308215123},
                 {"2026-08-21T10:30:15.007+02:00", 1787301015007},
                 {"2026-08-21T10:30:15-0130", 1787313615000},
                 {"2026-08-21T10:30+02", 1787301000000},
                 {"2026-08-21T10", 1787306400000},
                 {"2026-08-21T10Z", 1787306400000},
                 {"2026-08-21T10-02", 1787313600000},
                 {"2026-08-21t1030", 1787308200000},
                 {"2026-08", 1785542400000},
                 {"1900-01", -2208988800000},
                 {"2099-12", 4099766400000},
                 {"20260821", 1787270400000},
                 {"20260821T10", 1787306400000},
                 {"20260821T103015Z", 1787308215000},
                 {"20260821T103015.5+0200", 1787301015500},
                 {"20260821T10:30:15Z", 1787308215000},
                 {"20240229", 1709164800000},
                 {"2024-02-29", 1709164800000},
                 {"2000-02-29", 951782400000},
                 {"2016-12-31T23:59:60Z", 1483228800000},
                 {"0000-01-01", -62167219200000},
                 {"9999-12-31", 253402214400000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t time_ms;
        print_message("%s\n", cases[i].text);
        assert_true(spill_iso_time(cases[i].text, strlen(cases[i].text), &time_ms));
        assert_int_equal(time_ms, cases[i].time_ms);
    }
}

static void invalid_times(void **state)
{
    (void)state;
    static const char *const cases[] = {"",
                                        "2026",
                                        "2026-8",
                                        "2026-00",
                                        "2026-13",
                                        "2026-08-",
                                        "2026-08T10",
                                        "2026-0821",
                                        "202608-21",
                                        "1899-12",
                                        "2100-01",
                                        "0800-12",
                                        "202608",
                                        "2026082",
                                        "202608210",
                                        "20261321",
                                        "20260230",
                                        "18991231",
                                        "21000101",
                                        "2026-W34",
                                        "2026-W34-5",
                                        "2026-233",
                                        "20260821T",
                                        "20260821T1",
                                        "20260821T103",
                                        "20260821T10301",
                                        "20260821T103015Zx",
                                        "20260821 1030",
                                        "2026-08-21 10",
                                        "2026-08-21 1030",
                                        "2026-08-21T10:",
                                        "2026-08-21T10:3",
                                        "2026-08-21T10:3015",
                                        "2026-08-21T1030:15",
                                        "2026-8-21",
                                        "21.08.2026",
                                        "2026/08/21",
                                        "2026-13-01",
                                        "2026-00-10",
                                        "2026-04-31",
                                        "2026-01-00",
                                        "2023-02-29",
                                        "1900-02-29",
                                        "2026-08-21 ",
                                        " 2026-08-21",
                                        "2026-08-21x",
                                        "2026-08-21T",
                                        "2026-08-21T24:00",
                                        "2026-08-21T10:60",
                                        "2026-08-21T10:30:61",
                                        "2026-08-21T10:30:15.",
                                        "2026-08-21T10:30:15.Z",
                                        "2026-08-21T10:30:15+",
                                        "2026-08-21T10:30:15+2",
                                        "2026-08-21T10:30:15+02:",
                                        "2026-08-21T10:30:15+02:60",
                                        "2026-08-21T10:30:15Zx",
                                        "-026-08-21",
                                        "+2026-08-21",
                                        "release 2026-08-21"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t time_ms = 1;
        print_message("'%s'\n", cases[i]);
        assert_false(spill_iso_time(cases[i], strlen(cases[i]), &time_ms));
        assert_int_equal(time_ms, 0);
    }
    int64_t time_ms;
    /* the remaining bytes are not part of the text */
    assert_false(spill_iso_time("2026-08-21", 9, &time_ms));
    assert_false(spill_iso_time("20260821", 7, &time_ms));
}

/* Each day of 800 years follows the day before, by the system's calendar. */
static void days_are_counted(void **state)
{
    (void)state;
    for (int64_t day = -200 * 365; day < 600 * 365; day++) {
        char text[32];
        int64_t time_ms;
        time_t seconds = (time_t)(day * 86400);
        struct tm parts;
        assert_non_null(gmtime_r(&seconds, &parts));
        size_t size = strftime(text, sizeof text, "%Y-%m-%d", &parts);
        assert_true(spill_iso_time(text, size, &time_ms));
        assert_int_equal(time_ms, day * 86400000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_three_digits),
        cmocka_unit_test(numbers_have_three_digits_and_no_exponent),
        cmocka_unit_test(a_count_of_one_has_a_singular),
        cmocka_unit_test(arguments_of_a_shell_are_quoted),
        cmocka_unit_test(ends_of_names),
        cmocka_unit_test(days_are_in_utc),
        cmocka_unit_test(names_show_every_character),
        cmocka_unit_test(valid_times),
        cmocka_unit_test(invalid_times),
        cmocka_unit_test(days_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
