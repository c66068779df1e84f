/* Definitions of the layouts bucket, capped and subset. */
#include "definition/schema.h"
#include "support/definition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ---- bucket ---------------------------------------------------------------------------------- */

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

/* ---- capped ---------------------------------------------------------------------------------- */

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

/* ---- subset ---------------------------------------------------------------------------------- */

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
    definition_assert_invalid(&definition, "layout 'subset' has no --keep oldest");
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
                                      {"a.b", "contains '.'"}};
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

/* From every preset to every layout and back; only the time of a bucket cannot be guessed. */
static void every_preset_takes_every_layout(void **state)
{
    (void)state;
    for (const char *const *preset = spill_definition_presets(); *preset != NULL; preset++)
        for (int to = SPILL_LAYOUT_OUTLIER; to <= SPILL_LAYOUT_SUBSET; to++) {
            spill_definition_t definition;
            spill_error_t error;
            assert_int_equal(spill_definition_preset(&definition, *preset, "d", &error), SPILL_OK);
            spill_layout_t from = definition.layout;
            char collection[SPILL_NAME_SIZE];
            strcpy(collection, definition.collection);
            strcpy(definition.time_field, "at");
            spill_definition_set_layout(&definition, (spill_layout_t)to);
            assert_int_equal(definition.layout, to);
            assert_string_equal(definition.collection, collection);
            if (spill_definition_check(&definition, &error) != SPILL_OK)
                fail_msg("%s to layout %d: %s", *preset, to, error.message);
            spill_definition_set_layout(&definition, from);
            if (spill_definition_check(&definition, &error) != SPILL_OK)
                fail_msg("%s to layout %d and back: %s", *preset, to, error.message);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket_requires_fields),
        cmocka_unit_test(test_buckets_are_saved_and_compared),
        cmocka_unit_test(test_buckets_share_no_collection),
        cmocka_unit_test(capped_has_no_page_fields),
        cmocka_unit_test(capped_may_have_top_n),
        cmocka_unit_test(capped_round_trip),
        cmocka_unit_test(capped_to_another_layout),
        cmocka_unit_test(two_capped_in_one_store),
        cmocka_unit_test(preset_matches_published_schema),
        cmocka_unit_test(other_layouts_have_no_top_fields),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(top_count_cannot_change),
        cmocka_unit_test(layout_subset_may_change),
        cmocka_unit_test(element_id_field_is_stored),
        cmocka_unit_test(definition_without_element_id_field),
        cmocka_unit_test(element_id_field_cannot_be_added),
        cmocka_unit_test(element_id_field_by_layout),
        cmocka_unit_test(every_preset_takes_every_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
