/* Definitions of the layout bucket. */
#include "support/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static spill_definition_t feed(void)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "feed", "feed", NULL), SPILL_OK);
    return definition;
}

static spill_definition_t bucket(void)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "reviews-bucket", "reviews", NULL),
                     SPILL_OK);
    return definition;
}

static void test_bucket_requires_fields(void **state)
{
    (void)state;
    spill_definition_t wrong = bucket();
    wrong.window = SPILL_WINDOW_NONE;
    definition_assert_invalid(&wrong, "(--window) is missing");
    wrong = bucket();
    wrong.keep = SPILL_KEEP_NEWEST;
    definition_assert_invalid(&wrong, "keep is 'oldest'");
    wrong = bucket();
    wrong.window_field[0] = '\0';
    definition_assert_invalid(&wrong, "(--window-field) is missing");
    wrong = bucket();
    wrong.time_field[0] = '\0';
    definition_assert_invalid(&wrong, "(--time-field) is missing");
    wrong = bucket();
    wrong.window = SPILL_WINDOW_FIELD;
    definition_assert_invalid(&wrong, "needs windowSource");
    strcpy(wrong.window_source, "season");
    wrong.time_field[0] = '\0';
    assert_int_equal(spill_definition_check(&wrong, NULL), SPILL_OK);
    wrong.window = SPILL_WINDOW_DAY;
    definition_assert_invalid(&wrong, "windowSource");
    wrong = bucket();
    strcpy(wrong.page_collection, "elsewhere");
    definition_assert_invalid(&wrong, "pageCollection");
    wrong = bucket();
    strcpy(wrong.count_field, "count");
    definition_assert_invalid(&wrong, "countField");
    wrong = bucket();
    strcpy(wrong.stats_field, "month");
    definition_assert_invalid(&wrong, "have the same name, 'month'");
    wrong = bucket();
    strcpy(wrong.stats_sum, "count");
    definition_assert_invalid(&wrong, "same name, 'count'");
    wrong = feed();
    strcpy(wrong.window_field, "month");
    definition_assert_invalid(&wrong, "layout 'bucket'");
}

static void test_buckets_are_saved_and_compared(void **state)
{
    (void)state;
    spill_definition_t definition = bucket(), back, other = bucket();
    bson_t document;
    spill_error_t error;
    spill_definition_to_bson(&definition, &document);
    assert_int_equal(spill_definition_from_bson(&back, &document, &error), SPILL_OK);
    assert_memory_equal(&back, &definition, sizeof back);
    bson_destroy(&document);
    other.window = SPILL_WINDOW_WEEK;
    assert_int_equal(spill_definition_compatible(&definition, &other, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "window cannot change from 'month' to 'week'"));
    other = bucket();
    strcpy(other.value_field, "stars");
    assert_int_equal(spill_definition_compatible(&definition, &other, &error), SPILL_REFUSED);
    /* Fields of another layout are not written. */
    definition = feed();
    spill_definition_to_bson(&definition, &document);
    assert_false(bson_has_field(&document, "window"));
    assert_false(bson_has_field(&document, "statsField"));
    bson_destroy(&document);
}

/* A collection of buckets belongs to one definition alone. */
static void test_buckets_share_no_collection(void **state)
{
    (void)state;
    spill_definition_t definition = bucket(), other = feed();
    spill_error_t error;
    assert_int_equal(spill_definition_beside(&definition, &other, &error), SPILL_OK);
    strcpy(other.collection, "reviewBuckets");
    assert_int_equal(spill_definition_beside(&definition, &other, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "its buckets would be in 'reviewBuckets', where the "
                                          "other has its heads; give it another --collection"));
    assert_int_equal(spill_definition_beside(&other, &definition, &error), SPILL_REFUSED);
    other = bucket();
    strcpy(other.name, "others");
    assert_int_equal(spill_definition_beside(&other, &definition, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "its buckets would be in 'reviewBuckets', where the "
                                          "other has its buckets; give it another --collection"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket_requires_fields),
        cmocka_unit_test(test_buckets_are_saved_and_compared),
        cmocka_unit_test(test_buckets_share_no_collection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
