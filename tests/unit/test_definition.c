/* Presets, the check, the comparison and the codec of definitions. */
#include "bson/key.h"
#include "store/state.h"

#include <spillway/definition.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static spill_definition_t feed(void)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "feed", "feeds", NULL), SPILL_OK);
    return definition;
}

static void assert_same_definition(const spill_definition_t *left, const spill_definition_t *right)
{
    assert_string_equal(left->name, right->name);
    assert_int_equal(left->layout, right->layout);
    assert_int_equal(left->keep, right->keep);
    assert_int_equal(left->order, right->order);
    assert_memory_equal(&left->bounds, &right->bounds, sizeof left->bounds);
    assert_memory_equal(&left->largest, &right->largest, sizeof left->largest);
    assert_int_equal(left->op_window, right->op_window);
    assert_string_equal(left->collection, right->collection);
    assert_string_equal(left->array, right->array);
    assert_string_equal(left->count_field, right->count_field);
    assert_string_equal(left->overflow_field, right->overflow_field);
    assert_string_equal(left->pages_field, right->pages_field);
    assert_string_equal(left->page_collection, right->page_collection);
    assert_string_equal(left->page_owner, right->page_owner);
    assert_string_equal(left->page_number, right->page_number);
    assert_string_equal(left->page_array, right->page_array);
    assert_string_equal(left->page_count, right->page_count);
    assert_string_equal(left->id_field, right->id_field);
    assert_string_equal(left->time_field, right->time_field);
}

/* ---- presets --------------------------------------------------------------------------------- */

static void test_feed(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    assert_string_equal(definition.name, "feeds");
    assert_int_equal(definition.layout, SPILL_LAYOUT_OUTLIER);
    assert_int_equal(definition.keep, SPILL_KEEP_OLDEST);
    assert_int_equal(definition.bounds.threshold, 1000);
    assert_int_equal(definition.bounds.page_capacity, 1000);
    assert_int_equal(definition.bounds.head_bytes_max, 1024 * 1024);
    assert_int_equal(definition.bounds.page_bytes_max, 1024 * 1024);
    assert_int_equal(definition.op_window, 64);
    assert_string_equal(definition.collection, "users");
    assert_string_equal(definition.array, "activities");
    assert_string_equal(definition.count_field, "activityCount");
    assert_string_equal(definition.overflow_field, "hasOverflow");
    assert_string_equal(definition.pages_field, "overflowPages");
    assert_string_equal(definition.page_collection, "overflowActivities");
    assert_string_equal(definition.page_owner, "userId");
    assert_string_equal(definition.page_number, "page");
    assert_string_equal(definition.page_array, "activities");
    assert_string_equal(definition.page_count, "count");
    assert_memory_equal(&definition.largest, &definition.bounds, sizeof definition.bounds);
}

static void test_feed_recent_is_the_default(void **state)
{
    (void)state;
    spill_definition_t recent, initial;
    spill_definition_t expected = feed();
    expected.keep = SPILL_KEEP_NEWEST;
    assert_int_equal(spill_definition_preset(&recent, "feed-recent", "feeds", NULL), SPILL_OK);
    spill_definition_init(&initial, "feeds");
    assert_same_definition(&recent, &expected);
    assert_same_definition(&initial, &expected);
}

static void test_sales(void **state)
{
    (void)state;
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "sales", "sales", NULL), SPILL_OK);
    assert_int_equal(definition.keep, SPILL_KEEP_OLDEST);
    assert_int_equal(definition.bounds.threshold, 50);
    assert_int_equal(definition.bounds.page_capacity, 1000);
    assert_string_equal(definition.collection, "sales");
    assert_string_equal(definition.array, "customers_purchased");
    assert_string_equal(definition.count_field, "");
    assert_string_equal(definition.overflow_field, "has_extras");
    assert_string_equal(definition.pages_field, "");
    assert_string_equal(definition.page_collection, "extra_sales");
    assert_string_equal(definition.page_owner, "book_id");
    assert_string_equal(definition.page_number, "");
    assert_string_equal(definition.page_array, "customers_purchased_extra");
    assert_string_equal(definition.page_count, "");
}

static void test_reviews_separate(void **state)
{
    (void)state;
    spill_definition_t definition, back;
    spill_error_t error;
    bson_t document;
    assert_int_equal(spill_definition_preset(&definition, "reviews-separate", "r", NULL), SPILL_OK);
    assert_int_equal(definition.layout, SPILL_LAYOUT_REFERENCE);
    assert_string_equal(definition.collection, "products");
    assert_string_equal(definition.array, "reviewSummary");
    assert_string_equal(definition.page_collection, "reviews");
    assert_string_equal(definition.page_owner, "productId");
    assert_string_equal(definition.stats_count, "totalCount");
    assert_string_equal(definition.stats_average, "averageRating");
    spill_definition_to_bson(&definition, &document);
    assert_int_equal(spill_definition_from_bson(&back, &document, NULL), SPILL_OK);
    assert_memory_equal(&definition, &back, sizeof back);
    bson_destroy(&document);
    strcpy(definition.page_array, "reviews");
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
    assert_string_equal(error.message,
                        "layout 'reference' does not use pageArray (--page-array): an element is a "
                        "document of its own; leave it out");
    definition.page_array[0] = '\0';
    definition.keep = SPILL_KEEP_OLDEST;
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
    spill_definition_init(&definition, "r");
    strcpy(definition.value_field, "rating");
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
    spill_definition_init(&definition, "r");
    definition.page_array[0] = '\0';
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
}

static void test_every_preset_is_good(void **state)
{
    (void)state;
    size_t count = 0;
    for (const char *const *preset = spill_definition_presets(); *preset != NULL; preset++) {
        spill_definition_t definition;
        spill_error_t error;
        assert_int_equal(spill_definition_preset(&definition, *preset, "x", &error), SPILL_OK);
        assert_int_equal(spill_definition_check(&definition, &error), SPILL_OK);
        count++;
    }
    assert_int_equal(count, 7);
}

static void test_an_unknown_preset_lists_the_others(void **state)
{
    (void)state;
    spill_definition_t definition;
    spill_error_t error;
    assert_int_equal(spill_definition_preset(&definition, "food", "x", &error), SPILL_NOT_FOUND);
    assert_string_equal(error.message,
                        "there is no preset 'food'; the presets are feed, feed-recent, sales, "
                        "reviews-separate, reviews-bucket, reviews-subset, gateway");
    assert_string_equal(definition.name, "");
}

static void test_names_that_do_not_fit(void **state)
{
    (void)state;
    char name[SPILL_NAME_SIZE + 1];
    memset(name, 'x', sizeof name);
    name[SPILL_NAME_SIZE] = '\0';
    spill_definition_t definition;
    spill_error_t error;
    assert_int_equal(spill_definition_preset(&definition, "feed", name, &error), SPILL_INVALID);
    assert_string_equal(error.message,
                        "the name of a definition must have 1 to 127 bytes, not 128");
    assert_int_equal(spill_definition_preset(&definition, "feed", "", &error), SPILL_INVALID);
    spill_definition_init(&definition, name);
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
    assert_string_equal(error.message, "name is missing");
    name[SPILL_NAME_SIZE - 1] = '\0';
    spill_definition_init(&definition, name);
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_OK);
}

/* ---- check ----------------------------------------------------------------------------------- */

static void assert_check(const spill_definition_t *definition, const char *message)
{
    spill_error_t error = {0};
    spill_code_t code = spill_definition_check(definition, &error);
    if (message == NULL) {
        assert_int_equal(code, SPILL_OK);
        return;
    }
    assert_int_equal(code, SPILL_INVALID);
    assert_int_equal(error.code, SPILL_INVALID);
    assert_string_equal(error.message, message);
}

static void test_numbers_out_of_range(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    definition.bounds.threshold = 0;
    assert_check(&definition, "threshold (--threshold) must be at least 1, not 0");
    definition.bounds.threshold = 1000001;
    assert_check(&definition, "threshold (--threshold) must be at most 1000000, not 1000001");
    definition = feed();
    definition.bounds.page_capacity = -3;
    assert_check(&definition, "pageCapacity (--page) must be at least 1, not -3");
    definition.bounds.page_capacity = INT64_MAX;
    assert_check(&definition,
                 "pageCapacity (--page) must be at most 1000000, not 9223372036854775807");
    definition = feed();
    definition.bounds.head_bytes_max = 16383;
    assert_check(&definition, "headBytesMax (--max-bytes) must be at least 16384, not 16383");
    definition.bounds.head_bytes_max = 15 * 1024 * 1024 + 1;
    assert_check(&definition, "headBytesMax (--max-bytes) must be at most 15728640, not 15728641");
    definition = feed();
    definition.bounds.page_bytes_max = 0;
    assert_check(&definition, "pageBytesMax (--page-bytes) must be at least 16384, not 0");
    definition = feed();
    definition.op_window = 0;
    assert_check(&definition, "opWindow (--op-window) must be at least 1, not 0");
    definition.op_window = 10001;
    assert_check(&definition, "opWindow (--op-window) must be at most 10000, not 10001");
}

static void test_numbers_at_the_edge(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    definition.bounds = (spill_bounds_t){1, 1, 16384, 16384};
    assert_check(&definition, NULL);
    definition.bounds = (spill_bounds_t){1000000, 1000000, 15 * 1024 * 1024, 15 * 1024 * 1024};
    definition.op_window = 10000;
    assert_check(&definition, NULL);
}

/* A larger operation window needs more room in a document. */
static void test_bytes_grow_with_the_window(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    definition.op_window = 78;
    definition.bounds.head_bytes_max = 16384;
    assert_check(&definition, NULL);
    definition.op_window = 79;
    assert_check(&definition, "headBytesMax (--max-bytes) must be at least 16414, not 16384");
}

/*
 * The smallest allowed byte bound holds everything except elements, with the longest names and
 * owner.
 */
static void test_bytes_leave_room_for_bookkeeping(void **state)
{
    (void)state;
    static const uint8_t bytes[SPILL_OWNER_KEY_MAX];
    const spill_value_t owner = {
        .data = bytes, .size_bytes = sizeof bytes, .type = BSON_TYPE_BINARY};
    spill_definition_t definition = feed();
    char *const names[] = {definition.array,          definition.count_field,
                           definition.overflow_field, definition.pages_field,
                           definition.page_owner,     definition.page_number,
                           definition.page_array,     definition.page_count};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        memset(names[i], (int)('a' + i), SPILL_NAME_SIZE - 1);
    definition.bounds.head_bytes_max = 15 * 1024 * 1024;
    for (int32_t window = 1; window <= 10000; window += window / 2 + 1) {
        spill_state_t document = {.present = true, .op_count = window};
        definition.op_window = window;
        int64_t needed = 0;
        for (int head = 0; head < 2; head++) {
            int64_t size =
                spill_state_document_bytes(&definition, &owner, head == 1, &document, 0, 0);
            needed = size > needed ? size : needed;
        }
        definition.bounds.page_bytes_max = needed;
        spill_error_t error;
        assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
        assert_non_null(strstr(error.message, "pageBytesMax (--page-bytes) must be at least"));
    }
}

static void test_names_that_are_missing(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        const char *message; /* NULL: the name may be missing */
    } names[] = {
        {offsetof(spill_definition_t, name), "name is missing"},
        {offsetof(spill_definition_t, collection), "collection is missing"},
        {offsetof(spill_definition_t, array), "array is missing"},
        {offsetof(spill_definition_t, page_collection), "pageCollection is missing"},
        {offsetof(spill_definition_t, page_owner), "pageOwner is missing"},
        {offsetof(spill_definition_t, page_array), "pageArray is missing"},
        {offsetof(spill_definition_t, count_field), NULL},
        {offsetof(spill_definition_t, overflow_field), NULL},
        {offsetof(spill_definition_t, pages_field), NULL},
        {offsetof(spill_definition_t, page_number), NULL},
        {offsetof(spill_definition_t, page_count), NULL},
        {offsetof(spill_definition_t, id_field), NULL},
        {offsetof(spill_definition_t, time_field), NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        spill_definition_t definition = feed();
        ((char *)&definition)[names[i].offset] = '\0';
        assert_check(&definition, names[i].message);
    }
}

static void set(char field[SPILL_NAME_SIZE], const char *name)
{
    memset(field, 0, SPILL_NAME_SIZE);
    memcpy(field, name, strlen(name));
}

static void test_names_that_are_malformed(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    memset(definition.array, 'a', sizeof definition.array);
    assert_check(&definition, "array is longer than 127 bytes");

    definition = feed();
    set(definition.array, "$a");
    assert_check(&definition, "array '$a' contains '$', which field names here may not");
    set(definition.array, "_id");
    assert_check(&definition, "array '_id' is a name that Spillway uses itself");
    set(definition.array, "a\nb");
    assert_check(&definition, "array 'a\nb' contains a control character");
    set(definition.array, "a\xff");
    assert_check(&definition, "array 'a\xff' is not UTF-8");
    set(definition.array, "\xc3\xa9l\xc3\xa9ments");
    assert_check(&definition, NULL);

    definition = feed();
    set(definition.id_field, "_id");
    set(definition.time_field, "created.at");
    assert_check(&definition, NULL);
    set(definition.time_field, "_id");
    assert_check(&definition, NULL);
    set(definition.time_field, "created.$at");
    assert_check(&definition,
                 "timeField 'created.$at' contains '$', which field names here may not");
    static const char *const no_paths[] = {".", ".at", "created.", "created..at"};
    for (size_t i = 0; i < sizeof no_paths / sizeof no_paths[0]; i++) {
        char message[128];
        snprintf(message, sizeof message,
                 "timeField '%s' is not a path of names with a '.' between them", no_paths[i]);
        set(definition.time_field, no_paths[i]);
        assert_check(&definition, message);
    }

    definition = feed();
    set(definition.page_count, "spill");
    assert_check(&definition, "pageCount 'spill' is a name that Spillway uses itself");

    definition = feed();
    set(definition.collection, "app.users");
    assert_check(&definition, NULL);
    set(definition.collection, "us$ers");
    assert_check(&definition, "collection 'us$ers' contains '$', which no collection's name may");
    set(definition.collection, "system.users");
    assert_check(&definition, "collection 'system.users' is reserved for the database");

    definition = feed();
    set(definition.name, "my_feed-2.old");
    assert_check(&definition, NULL);
    static const char *const bad[] = {"a b", "-a", ".a", "a/b", "caf\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        set(definition.name, bad[i]);
        spill_error_t error;
        assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
        assert_non_null(strstr(error.message, "must start with a letter or a digit"));
    }
}

static void test_names_that_clash(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    set(definition.pages_field, "activities");
    assert_check(&definition, "array and pagesField have the same name, 'activities'");
    definition = feed();
    set(definition.page_count, "page");
    assert_check(&definition, "pageNumber and pageCount have the same name, 'page'");
    definition = feed();
    set(definition.page_collection, "users");
    assert_check(&definition, "collection and pageCollection have the same name, 'users'");
    /* Fields of different documents may have the same name. */
    definition = feed();
    set(definition.page_count, "activityCount");
    assert_check(&definition, NULL);
}

static void test_kinds_that_are_unknown(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    definition.layout = (spill_layout_t)7;
    assert_check(&definition, "layout 7 is not known");
    definition = feed();
    definition.keep = (spill_keep_t)7;
    assert_check(&definition, "keep 7 is not known");
    definition = feed();
    definition.order = (spill_array_order_t)7;
    assert_check(&definition, "order 7 is not known");
}

/* ---- comparison ------------------------------------------------------------------------------ */

static void test_changes_that_are_allowed(void **state)
{
    (void)state;
    spill_definition_t now = feed();
    spill_definition_t next = feed();
    next.bounds = (spill_bounds_t){1, 2, 20000, 30000};
    next.largest = next.bounds;
    next.op_window = 5;
    assert_int_equal(spill_definition_compatible(&now, &next, NULL), SPILL_OK);
}

static void assert_incompatible(const spill_definition_t *now, const spill_definition_t *next,
                                const char *change)
{
    spill_error_t error;
    assert_int_equal(spill_definition_compatible(now, next, &error), SPILL_REFUSED);
    assert_int_equal(error.code, SPILL_REFUSED);
    if (strstr(error.message, change) == NULL)
        fail_msg("expected '%s' in '%s'", change, error.message);
}

static void test_changes_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        const char *change;
    } names[] = {
        {offsetof(spill_definition_t, name), "name cannot change from 'feeds' to 'x'"},
        {offsetof(spill_definition_t, collection), "collection cannot change from 'users' to 'x'"},
        {offsetof(spill_definition_t, array), "array cannot change from 'activities' to 'x'"},
        {offsetof(spill_definition_t, count_field), "countField cannot change from"},
        {offsetof(spill_definition_t, overflow_field), "overflowField cannot change from"},
        {offsetof(spill_definition_t, pages_field), "pagesField cannot change from"},
        {offsetof(spill_definition_t, page_collection), "pageCollection cannot change from"},
        {offsetof(spill_definition_t, page_owner), "pageOwner cannot change from 'userId' to 'x'"},
        {offsetof(spill_definition_t, page_number), "pageNumber cannot change from 'page' to 'x'"},
        {offsetof(spill_definition_t, page_array), "pageArray cannot change from"},
        {offsetof(spill_definition_t, page_count), "pageCount cannot change from 'count' to 'x'"},
    };
    const spill_definition_t now = feed();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        spill_definition_t next = now;
        set((char *)&next + names[i].offset, "x");
        assert_incompatible(&now, &next, names[i].change);
    }
    spill_definition_t next = now;
    next.keep = SPILL_KEEP_NEWEST;
    assert_incompatible(&now, &next, "keep cannot change from 'oldest' to 'newest'");
    next = now;
    next.order = SPILL_ARRAY_NEWEST_FIRST;
    assert_incompatible(&now, &next, "order cannot change from 'oldest-first' to 'newest-first'");
}

/* ---- two definitions in one store ------------------------------------------------------------ */

/*
 * Save a definition and a second one, made by `change`, in one store. `finding` NULL: both are
 * allowed.
 */
static void assert_clash(void (*change)(spill_definition_t *other), const char *message)
{
    spill_definition_t definition = feed(), other = feed();
    spill_error_t error = {.message = ""};
    strcpy(other.name, "other");
    change(&other);
    spill_code_t code = spill_definition_beside(&definition, &other, &error);
    assert_int_equal(code, message == NULL ? SPILL_OK : SPILL_REFUSED);
    assert_int_equal(spill_definition_beside(&other, &definition, NULL), code);
    if (message != NULL)
        assert_string_equal(error.message, message);
}

static void nothing_else(spill_definition_t *other)
{
    (void)other;
}

static void the_heads(spill_definition_t *other)
{
    strcpy(other->collection, "groups");
}

static void the_pages(spill_definition_t *other)
{
    strcpy(other->page_collection, "morePages");
}

static void both_collections(spill_definition_t *other)
{
    the_heads(other);
    the_pages(other);
}

static void the_array(spill_definition_t *other)
{
    the_pages(other);
    strcpy(other->array, "likes");
}

static void every_field_of_the_head(spill_definition_t *other)
{
    the_array(other);
    strcpy(other->count_field, "likeCount");
    strcpy(other->overflow_field, "");
    strcpy(other->pages_field, "likePages");
}

static void fields_crossed(spill_definition_t *other)
{
    every_field_of_the_head(other);
    strcpy(other->overflow_field, "activities");
}

static void heads_among_pages(spill_definition_t *other)
{
    both_collections(other);
    strcpy(other->collection, "overflowActivities");
}

static void pages_among_heads(spill_definition_t *other)
{
    both_collections(other);
    strcpy(other->page_collection, "users");
}

static void test_definitions_in_one_store(void **state)
{
    (void)state;
    assert_clash(both_collections, NULL);
    assert_clash(every_field_of_the_head, NULL);
    assert_clash(nothing_else,
                 "definition 'feeds' clashes with 'other': both have a field 'activities' in the "
                 "heads of 'users' (array, array); give it another --array or --collection");
    assert_clash(the_pages,
                 "definition 'feeds' clashes with 'other': both have a field 'activities' in the "
                 "heads of 'users' (array, array); give it another --array or --collection");
    assert_clash(the_array,
                 "definition 'feeds' clashes with 'other': both have a field 'activityCount' in "
                 "the heads of 'users' (countField, countField); give it another --count-field "
                 "or --collection");
    assert_clash(fields_crossed,
                 "definition 'feeds' clashes with 'other': both have a field 'activities' in the "
                 "heads of 'users' (array, overflowField); give it another --array or "
                 "--collection");
    assert_clash(the_heads, "definition 'feeds' clashes with 'other': both have their pages in "
                            "'overflowActivities'; give it another --page-collection");
    assert_clash(heads_among_pages,
                 "definition 'feeds' clashes with 'other': its pages would be in "
                 "'overflowActivities', where the other has its heads; give it another "
                 "--page-collection");
    assert_clash(pages_among_heads,
                 "definition 'feeds' clashes with 'other': its heads would be in 'users', where "
                 "the other has its pages; give it another --collection");
}

static void test_round_trip(void **state)
{
    (void)state;
    for (const char *const *preset = spill_definition_presets(); *preset != NULL; preset++) {
        spill_definition_t definition, again;
        spill_error_t error;
        bson_t document;
        spill_definition_preset(&definition, *preset, "x", NULL);
        definition.bounds.threshold = 7;
        definition.largest.page_bytes_max = 5000000;
        definition.op_window = 3;
        strcpy(definition.time_field, "ts");
        spill_definition_to_bson(&definition, &document);
        assert_int_equal(spill_definition_from_bson(&again, &document, &error), SPILL_OK);
        assert_same_definition(&definition, &again);
        bson_destroy(&document);
    }
}

/*
 * Fields that a definition does not use are not in its document, so that earlier versions can read
 * it.
 */
static void test_added_names_in_documents(void **state)
{
    (void)state;
    spill_definition_t definition = feed(), again;
    bson_t document;
    spill_error_t error;
    spill_definition_to_bson(&definition, &document);
    assert_false(bson_has_field(&document, "idField"));
    assert_false(bson_has_field(&document, "timeField"));
    assert_false(bson_has_field(&document, "order"));
    bson_destroy(&document);

    set(definition.id_field, "author.id");
    spill_definition_to_bson(&definition, &document);
    assert_true(bson_has_field(&document, "idField"));
    assert_int_equal(spill_definition_from_bson(&again, &document, &error), SPILL_OK);
    assert_string_equal(again.id_field, "author.id");
    assert_string_equal(again.time_field, "");
    assert_int_equal(again.order, SPILL_ARRAY_OLDEST_FIRST);
    bson_destroy(&document);
}

static void test_order_in_documents(void **state)
{
    (void)state;
    spill_definition_t definition = feed(), again;
    bson_t document;
    bson_iter_t iter;
    spill_error_t error;
    definition.order = SPILL_ARRAY_NEWEST_FIRST;
    spill_definition_to_bson(&definition, &document);
    assert_true(bson_iter_init_find(&iter, &document, "order"));
    assert_string_equal(bson_iter_utf8(&iter, NULL), "newest-first");
    assert_int_equal(spill_definition_from_bson(&again, &document, &error), SPILL_OK);
    assert_int_equal(again.order, SPILL_ARRAY_NEWEST_FIRST);
    bson_destroy(&document);
}

static void assert_corrupt(const bson_t *document, const char *message)
{
    spill_definition_t definition;
    spill_error_t error;
    memset(&definition, 0xa5, sizeof definition);
    assert_int_equal(spill_definition_from_bson(&definition, document, &error), SPILL_CORRUPT);
    assert_int_equal(error.code, SPILL_CORRUPT);
    if (strstr(error.message, message) == NULL)
        fail_msg("expected '%s' in '%s'", message, error.message);
    assert_string_equal(definition.name, "");
}

/* If one of its fields is missing, a definition is refused, and the message names the field. */
static void test_every_field_is_needed(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    bson_t document;
    spill_definition_to_bson(&definition, &document);
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, &document));
    int count = 0;
    while (bson_iter_next(&iter)) {
        const char *field = bson_iter_key(&iter);
        bson_t without = BSON_INITIALIZER;
        bson_copy_to_excluding_noinit(&document, &without, field, NULL);
        assert_corrupt(&without, field);

        /* The field exists, but with another type. */
        BSON_APPEND_BOOL(&without, field, true);
        assert_corrupt(&without, field);
        bson_destroy(&without);
        count++;
    }
    assert_int_equal(count, 11 + 5);
    bson_destroy(&document);
}

static void test_every_bound_is_needed(void **state)
{
    (void)state;
    static const char *const parents[] = {"bounds", "largest"};
    static const char *const bounds[] = {"threshold", "pageCapacity", "headBytesMax",
                                         "pageBytesMax"};
    spill_definition_t definition = feed();
    bson_t document;
    spill_definition_to_bson(&definition, &document);
    for (int p = 0; p < 2; p++) {
        for (int b = 0; b < 4; b++) {
            bson_iter_t iter;
            bson_t child, less;
            const uint8_t *data;
            uint32_t size;
            assert_true(bson_iter_init_find(&iter, &document, parents[p]));
            bson_iter_document(&iter, &size, &data);
            assert_true(bson_init_static(&child, data, size));
            bson_init(&less);
            bson_copy_to_excluding_noinit(&child, &less, bounds[b], NULL);
            bson_t changed = BSON_INITIALIZER;
            bson_copy_to_excluding_noinit(&document, &changed, parents[p], NULL);
            BSON_APPEND_DOCUMENT(&changed, parents[p], &less);
            char message[64];
            snprintf(message, sizeof message, "'%s.%s'", parents[p], bounds[b]);
            assert_corrupt(&changed, message);
            bson_destroy(&changed);
            bson_destroy(&less);
        }
    }
    bson_destroy(&document);
}

static void replace_text(const bson_t *document, const char *field, const char *text, int length,
                         const char *message)
{
    bson_t changed = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(document, &changed, field, NULL);
    bson_append_utf8(&changed, field, -1, text, length);
    assert_corrupt(&changed, message);
    bson_destroy(&changed);
}

static void test_values_that_make_no_sense(void **state)
{
    (void)state;
    char longest[SPILL_NAME_SIZE + 1];
    memset(longest, 'x', sizeof longest);
    spill_definition_t definition = feed();
    bson_t document;
    spill_definition_to_bson(&definition, &document);
    replace_text(&document, "array", longest, SPILL_NAME_SIZE, "'array' is too long");
    replace_text(&document, "array", "a\0b", 3, "'array' contains a NUL");
    replace_text(&document, "layout", "spiral", -1,
                 "'layout' is not one of: outlier, reference, bucket, capped, "
                 "subset");
    replace_text(&document, "layout", "bucket", -1, "'window' is missing");
    replace_text(&document, "keep", "both", -1, "'keep' is not one of: oldest, newest");
    replace_text(&document, "order", "sorted", -1,
                 "'order' is not one of: oldest-first, newest-first");
    replace_text(&document, "keep", "newest\0", 7, "'keep' contains a NUL");
    replace_text(&document, "array", "_id", -1, "definition: array '_id' is a name");
    bson_destroy(&document);

    definition.bounds.threshold = 0;
    spill_definition_to_bson(&definition, &document);
    assert_corrupt(&document, "definition: threshold (--threshold) must be at least 1, not 0");
    bson_destroy(&document);
}

/* A field that this version does not know may mean anything, so it is refused. */
static void test_unknown_fields(void **state)
{
    (void)state;
    spill_definition_t definition = feed();
    bson_t document;
    spill_error_t error;
    spill_definition_to_bson(&definition, &document);
    BSON_APPEND_UTF8(&document, "colour", "blue");
    assert_int_equal(spill_definition_from_bson(&definition, &document, &error), SPILL_FORMAT);
    assert_string_equal(error.message, "definition: field 'colour' is not known to this version");
    bson_destroy(&document);
    /* A later version may have other values as well: the unknown field is still the reason. */
    bson_t later = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&later, "layout", "spiral");
    BSON_APPEND_UTF8(&later, "colour", "blue");
    assert_int_equal(spill_definition_from_bson(&definition, &later, &error), SPILL_FORMAT);
    assert_string_equal(error.message, "definition: field 'colour' is not known to this version");
    bson_destroy(&later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feed),
        cmocka_unit_test(test_feed_recent_is_the_default),
        cmocka_unit_test(test_sales),
        cmocka_unit_test(test_reviews_separate),
        cmocka_unit_test(test_every_preset_is_good),
        cmocka_unit_test(test_an_unknown_preset_lists_the_others),
        cmocka_unit_test(test_names_that_do_not_fit),
        cmocka_unit_test(test_numbers_out_of_range),
        cmocka_unit_test(test_numbers_at_the_edge),
        cmocka_unit_test(test_bytes_grow_with_the_window),
        cmocka_unit_test(test_bytes_leave_room_for_bookkeeping),
        cmocka_unit_test(test_names_that_are_missing),
        cmocka_unit_test(test_names_that_are_malformed),
        cmocka_unit_test(test_names_that_clash),
        cmocka_unit_test(test_kinds_that_are_unknown),
        cmocka_unit_test(test_changes_that_are_allowed),
        cmocka_unit_test(test_changes_that_are_refused),
        cmocka_unit_test(test_definitions_in_one_store),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_added_names_in_documents),
        cmocka_unit_test(test_order_in_documents),
        cmocka_unit_test(test_every_field_is_needed),
        cmocka_unit_test(test_every_bound_is_needed),
        cmocka_unit_test(test_values_that_make_no_sense),
        cmocka_unit_test(test_unknown_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
