/* Definitions of layout subset: what their summaries show. */
#include "support/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static spill_definition_t subset(void)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "reviews-subset", "r", NULL), SPILL_OK);
    return definition;
}

static void the_preset_is_that_of_the_source(void **state)
{
    (void)state;
    spill_definition_t definition = subset(), back;
    bson_t document;
    assert_int_equal(definition.layout, SPILL_LAYOUT_SUBSET);
    assert_string_equal(definition.collection, "products");
    assert_string_equal(definition.array, "reviewSummary");
    assert_string_equal(definition.top_field, "topReviews");
    assert_string_equal(definition.sort_field, "rating");
    assert_int_equal(definition.top_count, 3);
    spill_definition_to_bson(&definition, &document);
    assert_int_equal(spill_definition_from_bson(&back, &document, NULL), SPILL_OK);
    assert_memory_equal(&definition, &back, sizeof back);
    bson_destroy(&document);
}

static void other_layouts_have_none_of_it(void **state)
{
    (void)state;
    spill_definition_t definition;
    bson_t document;
    spill_definition_preset(&definition, "reviews-separate", "r", NULL);
    spill_definition_to_bson(&definition, &document);
    assert_false(bson_has_field(&document, "topField"));
    assert_false(bson_has_field(&document, "sortField"));
    assert_false(bson_has_field(&document, "topCount"));
    bson_destroy(&document);
    definition.top_count = 3;
    definition_assert_invalid(&definition, "belong to layout 'subset'");
    spill_definition_init(&definition, "r");
    strcpy(definition.sort_field, "rating");
    definition_assert_invalid(&definition, "belong to layout 'subset'");
}

static void what_is_out_of_range(void **state)
{
    (void)state;
    spill_definition_t definition = subset();
    definition.top_field[0] = '\0';
    definition_assert_invalid(&definition, "topField (--top-field) is missing");
    definition = subset();
    strcpy(definition.top_field, "totalCount");
    definition_assert_invalid(&definition, "have the same name, 'totalCount'");
    definition = subset();
    strcpy(definition.sort_field, "ratings.0");
    definition_assert_invalid(&definition, "sortField 'ratings.0' has a number as a name");
    definition = subset();
    definition.top_count = 0;
    definition_assert_invalid(&definition, "topCount (--top) must be at least 1");
    definition.top_count = INT64_MAX;
    definition_assert_invalid(&definition, "topCount (--top) must be at most 1000");
    definition = subset();
    definition.bounds.head_bytes_max = 20000;
    definition_assert_invalid(&definition, "headBytesMax (--max-bytes) must be at least");
    definition = subset();
    definition.keep = SPILL_KEEP_OLDEST;
    definition_assert_invalid(&definition, "layout 'subset': keep is 'newest'");
    definition = subset();
    strcpy(definition.sort_field, "spill.first");
    definition_assert_invalid(&definition,
                              "sortField 'spill.first' is of the document that an element");
}

static void their_number_does_not_change(void **state)
{
    (void)state;
    spill_definition_t definition = subset(), other = subset();
    spill_error_t error;
    assert_int_equal(spill_definition_compatible(&definition, &other, &error), SPILL_OK);
    other.top_count = 4;
    assert_int_equal(spill_definition_compatible(&definition, &other, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "topCount cannot change from 3 to 4"));
    other = subset();
    strcpy(other.sort_field, "");
    assert_int_equal(spill_definition_compatible(&definition, &other, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "sortField cannot change from 'rating' to ''"));
}

static void a_layout_is_changed(void **state)
{
    (void)state;
    spill_definition_t definition = subset();
    spill_definition_set_layout(&definition, SPILL_LAYOUT_REFERENCE);
    assert_int_equal(spill_definition_check(&definition, NULL), SPILL_OK);
    assert_int_equal(definition.top_count, 0);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_SUBSET);
    assert_int_equal(spill_definition_check(&definition, NULL), SPILL_OK);
    assert_string_equal(definition.top_field, "topReviews");
    assert_string_equal(definition.sort_field, "");
    assert_int_equal(definition.top_count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_preset_is_that_of_the_source),
        cmocka_unit_test(other_layouts_have_none_of_it),
        cmocka_unit_test(what_is_out_of_range),
        cmocka_unit_test(their_number_does_not_change),
        cmocka_unit_test(a_layout_is_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
