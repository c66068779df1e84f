/* Sizes, dates and names as text for people. */
#include "util/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>
#include <cmocka.h>

static void sizes_have_three_digits(void **context)
{
    (void)context;
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},           {999, "999 B"},     {1000, "1 KB"},
                 {10349, "10.3 KB"},   {99949, "99.9 KB"}, {99950, "100 KB"},
                 {999499, "999 KB"},   {999500, "1 MB"},   {16777216, "16.8 MB"},
                 {INT64_MAX, "9.2 EB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(spill_size_text(cases[i].bytes).text, cases[i].text);
}

static void days_are_in_utc(void **context)
{
    (void)context;
    assert_string_equal(spill_day_text(0).text, "1970-01-01");
    assert_string_equal(spill_day_text(1795305599999).text, "2026-11-21");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_three_digits),
        cmocka_unit_test(days_are_in_utc),
        cmocka_unit_test(names_show_every_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
