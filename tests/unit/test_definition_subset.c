/* Definitions of layout subset: what their summaries show. */
#include "definition/fields.h"
#include "definition/schema.h"
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

static void preset_matches_published_schema(void **state)
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

static void other_layouts_have_no_top_fields(void **state)
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

static void numbers_out_of_range(void **state)
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

static void top_count_cannot_change(void **state)
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

static void layout_subset_may_change(void **state)
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

/* ---- where layouts reference and subset store the elements' _id ------------------------------ */

static void element_id_field_is_stored(void **state)
{
    (void)state;
    spill_definition_t definition = subset(), back;
    bson_t document;
    assert_string_equal(definition.element_id_field, SPILL_ELEMENT_ID_FIELD);
    strcpy(definition.id_field, "_id");
    strcpy(definition.sort_field, "_id.n");
    strcpy(definition.time_field, "_id");
    assert_int_equal(spill_definition_check(&definition, NULL), SPILL_OK);
    strcpy(definition.id_field, "elementId");
    definition_assert_invalid(&definition, "idField 'elementId'");
    definition = subset();
    strcpy(definition.sort_field, "elementId.n");
    definition_assert_invalid(&definition, "sortField 'elementId.n' is of the document");
    spill_definition_init(&definition, "r");
    strcpy(definition.element_id_field, "elementId");
    definition_assert_invalid(&definition, "belongs to layouts 'reference' and 'subset'");
    const char *const clashes[][2] = {{"productId", "same name, 'productId'"},
                                      {"_id", "uses itself"},
                                      {"spill", "uses itself"},
                                      {"a.b", "contains '$' or '.'"}};
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++) {
        definition = subset();
        strcpy(definition.element_id_field, clashes[i][0]);
        definition_assert_invalid(&definition, clashes[i][1]);
    }
    definition = subset();
    memset(definition.element_id_field, 0, sizeof definition.element_id_field);
    strcpy(definition.element_id_field, "myId");
    spill_definition_to_bson(&definition, &document);
    assert_true(bson_has_field(&document, "elementIdField"));
    assert_int_equal(spill_definition_from_bson(&back, &document, NULL), SPILL_OK);
    assert_memory_equal(&definition, &back, sizeof back);
    bson_destroy(&document);
}

static void definition_without_element_id_field(void **state)
{
    (void)state;
    spill_definition_t definition = subset(), back;
    bson_t document;
    memset(definition.element_id_field, 0, sizeof definition.element_id_field);
    spill_definition_to_bson(&definition, &document);
    assert_false(bson_has_field(&document, "elementIdField")); /* an older program can read it */
    assert_int_equal(spill_definition_from_bson(&back, &document, NULL), SPILL_OK);
    assert_memory_equal(&definition, &back, sizeof back);
    bson_destroy(&document);
    strcpy(definition.id_field, "_id");
    definition_assert_invalid(&definition, "idField '_id'");
}

static void element_id_field_cannot_be_added(void **state)
{
    (void)state;
    spill_definition_t now = subset(), next = subset();
    spill_error_t error;
    assert_false(spill_definition_keep_without_id(&now, &next));
    now.element_id_field[0] = '\0';
    assert_int_equal(spill_definition_compatible(&now, &next, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "elementIdField cannot change from '' to 'elementId'"));
    assert_true(spill_definition_keep_without_id(&now, &next));
    assert_int_equal(spill_definition_compatible(&now, &next, &error), SPILL_OK);
    strcpy(next.element_id_field, "chosen");
    assert_false(spill_definition_keep_without_id(&now, &next));
}

static void element_id_field_by_layout(void **state)
{
    (void)state;
    const spill_layout_t layouts[] = {SPILL_LAYOUT_REFERENCE, SPILL_LAYOUT_OUTLIER,
                                      SPILL_LAYOUT_SUBSET,    SPILL_LAYOUT_CAPPED,
                                      SPILL_LAYOUT_REFERENCE, SPILL_LAYOUT_BUCKET};
    spill_definition_t definition = subset();
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        spill_definition_set_layout(&definition, layouts[i]);
        assert_string_equal(
            definition.element_id_field,
            spill_schema_of(&definition)->has_referenced_elements ? SPILL_ELEMENT_ID_FIELD : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preset_matches_published_schema),
        cmocka_unit_test(other_layouts_have_no_top_fields),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(top_count_cannot_change),
        cmocka_unit_test(layout_subset_may_change),
        cmocka_unit_test(element_id_field_is_stored),
        cmocka_unit_test(definition_without_element_id_field),
        cmocka_unit_test(element_id_field_cannot_be_added),
        cmocka_unit_test(element_id_field_by_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
