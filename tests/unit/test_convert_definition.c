/* The definition that a conversion makes: which fields of the old definition it keeps. */
#include "tools/definition_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const spill_layout_t LAYOUTS[] = {SPILL_LAYOUT_OUTLIER, SPILL_LAYOUT_CAPPED,
                                         SPILL_LAYOUT_REFERENCE, SPILL_LAYOUT_SUBSET,
                                         SPILL_LAYOUT_BUCKET};
enum { LAYOUT_COUNT = sizeof LAYOUTS / sizeof *LAYOUTS };

static spill_definition_t preset(const char *name)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, name, "from", NULL), SPILL_OK);
    strcpy(definition.id_field, "id");
    strcpy(definition.time_field, "at");
    definition.op_window = 7;
    return definition;
}

static spill_definition_t convert(const spill_definition_t *from, spill_layout_t layout)
{
    spill_definition_t definition;
    spill_error_t error = {.message = ""};
    spill_code_t code = spill_convert_definition(from, "new", layout, NULL, &definition, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(code, SPILL_OK);
    assert_int_equal(definition.layout, layout);
    assert_string_equal(definition.name, "new");
    assert_string_equal(definition.collection, "new");
    assert_int_equal(spill_definition_check(&definition, NULL), SPILL_OK);
    return definition;
}

static void ids_and_times(void **state)
{
    (void)state;
    spill_definition_t feed = preset("feed");
    for (int i = 0; i < LAYOUT_COUNT * LAYOUT_COUNT; i++) {
        spill_definition_t from = convert(&feed, LAYOUTS[i / LAYOUT_COUNT]);
        spill_definition_t to = convert(&from, LAYOUTS[i % LAYOUT_COUNT]);
        assert_string_equal(to.id_field, "id");
        assert_string_equal(to.time_field, "at");
        assert_int_equal(to.op_window, 7);
        /* Both may be in one store. */
        strcpy(from.name, "from");
        strcpy(from.collection, "from");
        if (from.page_collection[0] != '\0')
            strcpy(from.page_collection,
                   from.layout == SPILL_LAYOUT_BUCKET ? "from" : "from.pages");
        assert_int_equal(spill_definition_beside(&to, &from, NULL), SPILL_OK);
    }
}

static void statistics(void **state)
{
    (void)state;
    static const char *const presets[] = {"reviews-separate", "reviews-subset", "reviews-bucket"};
    static const spill_layout_t layouts[] = {SPILL_LAYOUT_REFERENCE, SPILL_LAYOUT_SUBSET,
                                             SPILL_LAYOUT_BUCKET};
    for (int i = 0; i < 9; i++) {
        spill_definition_t from = preset(presets[i / 3]);
        strcpy(from.stats_count, "n");
        strcpy(from.stats_average, "mean");
        spill_definition_t to = convert(&from, layouts[i % 3]);
        assert_string_equal(to.value_field, "rating");
        assert_string_equal(to.stats_count, "n");
        assert_string_equal(to.stats_average, "mean");
        assert_string_equal(to.stats_sum, layouts[i % 3] == SPILL_LAYOUT_BUCKET ? "sum" : "");
    }
    spill_definition_t feed = preset("feed-recent");
    spill_definition_t to = convert(&feed, SPILL_LAYOUT_BUCKET); /* nothing to sum */
    assert_string_equal(to.value_field, "");
    assert_string_equal(to.stats_count, "count");
    assert_string_equal(to.stats_average, "");
    assert_string_equal(to.stats_sum, "");
}

static void check_retention(const spill_definition_t *from, spill_layout_t layout, int64_t elements,
                            int64_t seconds)
{
    spill_definition_t to = convert(from, layout);
    assert_int_equal(to.keep_elements, elements);
    assert_int_equal(to.keep_seconds, seconds);
}

static void retention(void **state)
{
    (void)state;
    spill_definition_t from = preset("feed-recent");
    from.keep_seconds = 1000;
    for (int i = 0; i < LAYOUT_COUNT; i++)
        check_retention(&from, LAYOUTS[i], 0, 1000);
    from.keep_elements = 77;
    check_retention(&from, SPILL_LAYOUT_OUTLIER, 77, 1000);
    check_retention(&from, SPILL_LAYOUT_REFERENCE, 77, 1000);
    check_retention(&from, SPILL_LAYOUT_SUBSET, 77, 1000);
    check_retention(&from, SPILL_LAYOUT_BUCKET, 0, 0); /* the age alone would keep fewer elements */
    check_retention(&from, SPILL_LAYOUT_CAPPED, 0, 0);
    assert_int_equal(convert(&from, SPILL_LAYOUT_CAPPED).bounds.threshold, 77);
    from = preset("reviews-bucket");
    from.keep_seconds = 1000;
    for (int i = 0; i < LAYOUT_COUNT; i++)
        check_retention(&from, LAYOUTS[i], 0, 1000);
    spill_definition_t capped = convert(&from, SPILL_LAYOUT_CAPPED);
    check_retention(&capped, SPILL_LAYOUT_OUTLIER, 0, 1000);
}

static void top_and_order_follow(void **state)
{
    (void)state;
    spill_definition_t from = preset("feed"), to;
    const spill_keep_t newest = SPILL_KEEP_NEWEST, oldest = SPILL_KEEP_OLDEST;
    assert_int_equal(convert(&from, SPILL_LAYOUT_OUTLIER).keep, SPILL_KEEP_OLDEST);
    assert_int_equal(convert(&from, SPILL_LAYOUT_CAPPED).keep, SPILL_KEEP_NEWEST);
    assert_int_equal(
        spill_convert_definition(&from, "new", SPILL_LAYOUT_OUTLIER, &newest, &to, NULL), SPILL_OK);
    assert_int_equal(to.keep, SPILL_KEEP_NEWEST);
    assert_int_equal(
        spill_convert_definition(&from, "new", SPILL_LAYOUT_CAPPED, &oldest, &to, NULL),
        SPILL_INVALID);
    from.order = SPILL_ARRAY_NEWEST_FIRST;
    assert_int_equal(convert(&from, SPILL_LAYOUT_BUCKET).order, SPILL_ARRAY_NEWEST_FIRST);
    assert_int_equal(convert(&from, SPILL_LAYOUT_SUBSET).order, SPILL_ARRAY_OLDEST_FIRST);
    from.time_field[0] = '\0';
    assert_int_equal(spill_convert_definition(&from, "new", SPILL_LAYOUT_BUCKET, NULL, &to, NULL),
                     SPILL_INVALID);
}

/* A set becomes another set, or is refused: no layout drops `unique` silently. */
static void unique_is_never_dropped(void **state)
{
    (void)state;
    static const spill_layout_t sets[] = {SPILL_LAYOUT_OUTLIER, SPILL_LAYOUT_REFERENCE,
                                          SPILL_LAYOUT_SUBSET};
    const spill_keep_t newest = SPILL_KEEP_NEWEST, oldest = SPILL_KEEP_OLDEST;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        spill_definition_t set = preset("feed-recent"), from, to;
        spill_error_t error;
        set.unique = true;
        const spill_keep_t *keep = sets[i] == SPILL_LAYOUT_OUTLIER ? &newest : NULL;
        assert_int_equal(spill_convert_definition(&set, "made", sets[i], keep, &from, &error),
                         SPILL_OK);
        assert_true(from.unique);
        for (int j = 0; j < LAYOUT_COUNT; j++) {
            bool can = LAYOUTS[j] != SPILL_LAYOUT_CAPPED && LAYOUTS[j] != SPILL_LAYOUT_BUCKET;
            error.message[0] = '\0';
            assert_int_equal(spill_convert_definition(&from, "new", LAYOUTS[j], NULL, &to, &error),
                             can ? SPILL_OK : SPILL_INVALID);
            if (can)
                assert_true(to.unique);
            else
                assert_non_null(strstr(error.message, "'made' keeps each id once"));
        }
        assert_int_equal(
            spill_convert_definition(&from, "new", SPILL_LAYOUT_OUTLIER, &oldest, &to, &error),
            SPILL_INVALID);
        assert_non_null(strstr(error.message, "keeps the oldest cannot"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_times),
        cmocka_unit_test(statistics),
        cmocka_unit_test(retention),
        cmocka_unit_test(top_and_order_follow),
        cmocka_unit_test(unique_is_never_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
