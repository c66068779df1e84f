/* Definitions of layout capped: they have no fields about pages, in their documents neither. */
#include "support/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static spill_definition_t capped(void)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "feed", "last", NULL), SPILL_OK);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    return definition;
}

static void capped_has_no_page_fields(void **state)
{
    (void)state;
    spill_definition_t definition = capped();
    spill_error_t error;
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_OK);
    assert_int_equal(definition.keep, SPILL_KEEP_NEWEST);
    definition.keep = SPILL_KEEP_OLDEST;
    definition_assert_invalid(&definition, "layout capped keeps the newest");
    definition = capped();
    strcpy(definition.page_count, "count");
    definition_assert_invalid(&definition, "pageCount 'count': layout capped has no pages");
    definition = capped();
    definition.bounds.page_capacity = 10;
    definition_assert_invalid(&definition, "pageCapacity is given: layout capped has no pages");
    definition = capped();
    definition.keep_elements = 10;
    definition_assert_invalid(&definition, "layout capped keeps as many as its threshold says");
}

static void capped_may_have_top_n(void **state)
{
    (void)state;
    spill_definition_t definition = capped(), again;
    spill_error_t error;
    bson_t document;
    strcpy(definition.sort_field, "game.score");
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_OK);
    spill_definition_to_bson(&definition, &document);
    assert_int_equal(spill_definition_from_bson(&again, &document, &error), SPILL_OK);
    assert_string_equal(again.sort_field, "game.score");
    bson_destroy(&document);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_OUTLIER);
    assert_string_equal(definition.sort_field, "");
    definition = again;
    definition.bounds.threshold = 1001;
    definition_assert_invalid(&definition, "threshold (--threshold) must be at most 1000");
    definition = again;
    strcpy(definition.top_field, "best");
    definition_assert_invalid(&definition, "topField and topCount belong to layout 'subset'");
    definition = again;
    strcpy(definition.sort_field, "games.0.score");
    definition_assert_invalid(&definition, "has a number as a name");
    definition = again;
    definition.bounds.threshold = 7;
    assert_int_equal(spill_definition_compatible(&again, &definition, &error), SPILL_OK);
    strcpy(definition.sort_field, "");
    assert_int_equal(spill_definition_compatible(&again, &definition, &error), SPILL_REFUSED);
}

static void capped_round_trip(void **state)
{
    (void)state;
    spill_definition_t definition = capped(), again;
    bson_t document, other;
    spill_error_t error;
    spill_definition_to_bson(&definition, &document);
    assert_false(bson_has_field(&document, "pageCollection"));
    assert_false(bson_has_field(&document, "overflowField"));
    assert_false(bson_has_field(&document, "bounds.pageCapacity"));
    assert_true(bson_has_field(&document, "bounds.headBytesMax"));
    assert_int_equal(spill_definition_from_bson(&again, &document, &error), SPILL_OK);
    assert_int_equal(again.layout, SPILL_LAYOUT_CAPPED);
    spill_definition_to_bson(&again, &other);
    assert_true(bson_equal(&document, &other));
    bson_destroy(&document);
    bson_destroy(&other);
}

static void capped_to_another_layout(void **state)
{
    (void)state;
    spill_definition_t definition = capped(), other = definition;
    spill_error_t error;
    spill_definition_set_layout(&other, SPILL_LAYOUT_OUTLIER);
    assert_int_equal(spill_definition_check(&other, &error), SPILL_OK);
    assert_string_equal(other.page_collection, "overflowActivities");
    assert_string_equal(other.page_array, "activities");
    assert_int_equal(other.bounds.page_capacity, 1000);
    assert_int_equal(spill_definition_compatible(&definition, &other, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "layout cannot change from 'capped' to 'outlier'"));
}

/* Neither definition has a page collection, so the two cannot clash there. */
static void two_capped_in_one_store(void **state)
{
    (void)state;
    spill_definition_t definition = capped(), other = capped();
    spill_error_t error;
    strcpy(other.name, "other");
    assert_int_equal(spill_definition_beside(&definition, &other, &error), SPILL_REFUSED);
    strcpy(other.collection, "others");
    assert_int_equal(spill_definition_beside(&definition, &other, &error), SPILL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capped_has_no_page_fields), cmocka_unit_test(capped_may_have_top_n),
        cmocka_unit_test(capped_round_trip),         cmocka_unit_test(capped_to_another_layout),
        cmocka_unit_test(two_capped_in_one_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
