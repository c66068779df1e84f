/*
 * Every public function with arguments that it does not accept: NULL, numbers, versions and orders
 * out of range, malformed values. Each returns SPILL_INVALID with a message; functions without a
 * code return nothing, false or an empty value. The last test compares the headers with the
 * functions called here, so that no new function is forgotten.
 */
#include <spillway/mongoc.h>
#include <spillway/spillway.h>

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- arguments of the calls ------------------------------------------------------------------ */

static spill_store_t *store;
static spill_array_t *array;  /* keep newest; elements have ids and times */
static spill_array_t *bucket; /* windows of one month */
static bson_t storage = BSON_INITIALIZER;
static bson_t element_document = BSON_INITIALIZER;
static spill_value_t owner, element;
static spill_error_t error;

/* Malformed: a string longer than its bytes; NULL bytes; an unknown type. */
static const uint8_t short_string[] = {200, 0, 0, 0, 'a', 0};
static const spill_value_t malformed[] = {
    {short_string, sizeof short_string, BSON_TYPE_UTF8},
    {NULL, 8, BSON_TYPE_INT64},
    {short_string, sizeof short_string, 0x66},
    {NULL, 0, 0},
};
#define MALFORMED (sizeof malformed / sizeof malformed[0])

static void open_arrays(void)
{
    spill_definition_t definition;
    assert_int_equal(spill_store_open("memory:", NULL, &store, &error), SPILL_OK);
    spill_definition_init(&definition, "feed");
    strcpy(definition.id_field, "id");
    strcpy(definition.time_field, "at");
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &array, &error), SPILL_OK);
    assert_int_equal(spill_definition_preset(&definition, "reviews-bucket", "months", &error),
                     SPILL_OK);
    strcpy(definition.id_field, "id");
    strcpy(definition.time_field, "at");
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, "months", &bucket, &error), SPILL_OK);
}

static int set_up(void **state)
{
    (void)state;
    open_arrays();
    owner = spill_value_from_utf8(&storage, "ada");
    BSON_APPEND_INT32(&element_document, "id", 7);
    BSON_APPEND_DATE_TIME(&element_document, "at", INT64_C(1700000000000));
    element = spill_value_from_document(&element_document);
    assert_int_equal(spill_array_append(array, &owner, &element, 1, NULL, NULL, &error), SPILL_OK);
    assert_int_equal(spill_bucket_append(bucket, &owner, &element, 1, NULL, NULL, NULL, &error),
                     SPILL_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    spill_array_close(array);
    spill_array_close(bucket);
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
    bson_destroy(&storage);
    bson_destroy(&element_document);
    return 0;
}

static void check_refused(spill_code_t code, const char *call)
{
    if (code != SPILL_INVALID || error.code != SPILL_INVALID || error.message[0] == '\0')
        fail_msg("%s: %s, not INVALID: %s", call, spill_code_name(code), error.message);
    error = (spill_error_t){0};
}

/* Expect the call to return SPILL_INVALID and to fill the error. */
#define REFUSED(...) check_refused(__VA_ARGS__, #__VA_ARGS__)

static bool visit_owner(void *context, const spill_value_t *value)
{
    (void)context, (void)value;
    return true;
}

static bool visit_element(void *context, const spill_value_t *of, const spill_element_t *value)
{
    (void)context, (void)of, (void)value;
    return true;
}

static bool visit_document(void *context, const char *collection, const bson_t *document)
{
    (void)context, (void)collection, (void)document;
    return true;
}

static bool visit_window(void *context, const spill_bucket_window_t *window)
{
    (void)context, (void)window;
    return true;
}

/* ---- stores and definitions ------------------------------------------------------------------ */

static void stores(void **state)
{
    (void)state;
    spill_store_t *opened = (spill_store_t *)&error;
    spill_store_options_t options;
    REFUSED(spill_store_open(NULL, NULL, &opened, &error));
    assert_null(opened);
    REFUSED(spill_store_open("memory:", NULL, NULL, &error));
    REFUSED(spill_store_open_pool(NULL, "x", NULL, &opened, &error));
    REFUSED(spill_store_open_pool((mongoc_client_pool_t *)&error, "x", NULL, NULL, &error));
    REFUSED(spill_store_open("", NULL, &opened, &error));
    REFUSED(spill_store_open("nothing:x", NULL, &opened, &error));
    for (int i = 0; i < 3; i++) {
        spill_store_options_init(&options);
        options.version = i == 0 ? 9 : options.version;
        options.durability = i == 1 ? (spill_durability_t)77 : options.durability;
        options.cache_bytes = i == 2 ? -1 : options.cache_bytes;
        REFUSED(spill_store_open("memory:", &options, &opened, &error));
    }
    REFUSED(spill_store_backup(NULL, "x", &error));
    REFUSED(spill_store_backup(store, NULL, &error));
    spill_counters_t counters = {.calls = 7};
    spill_store_counters(NULL, &counters);
    assert_int_equal(counters.calls, 0);
    spill_store_counters(store, NULL);
    spill_store_options_init(NULL);
    assert_int_equal(spill_store_close(NULL, &error), SPILL_OK);
}

static void saved_definitions(void **state)
{
    (void)state;
    spill_definition_t definition = {.name = "x"}, *all = &definition;
    spill_array_t *opened = array;
    size_t count = 7;
    spill_log_cut_t cut = {.needed = true};
    assert_null(spill_store_damage(NULL));
    assert_null(spill_store_damage(store));
    REFUSED(spill_store_cut_log(NULL, true, NULL, NULL, &cut, &error));
    assert_false(cut.needed);
    REFUSED(spill_store_cut_log("nowhere", true, NULL, NULL, NULL, &error));
    REFUSED(spill_store_define(NULL, &definition, &error));
    REFUSED(spill_store_define(store, NULL, &error));
    /* no name is terminated, and no number is in range */
    memset(&definition, 'x', sizeof definition);
    definition.unique = true; /* other bytes are no value of a bool */
    REFUSED(spill_store_define(store, &definition, &error));
    REFUSED(spill_store_definition(NULL, "feed", &definition, &error));
    REFUSED(spill_store_definition(store, NULL, &definition, &error));
    REFUSED(spill_store_definition(store, "feed", NULL, &error));
    REFUSED(spill_store_definitions(NULL, &all, &count, &error));
    assert_null(all);
    assert_int_equal(count, 0);
    REFUSED(spill_store_definitions(store, NULL, &count, &error));
    REFUSED(spill_store_definitions(store, &all, NULL, &error));
    REFUSED(spill_store_drop(NULL, "feed", &error));
    REFUSED(spill_store_drop(store, NULL, &error));
    REFUSED(spill_array_open(NULL, "feed", &opened, &error));
    assert_null(opened);
    REFUSED(spill_array_open(store, NULL, &opened, &error));
    REFUSED(spill_array_open(store, "feed", NULL, &error));
    spill_array_close(NULL);
    assert_null(spill_array_get_definition(NULL));
}

static void definitions(void **state)
{
    (void)state;
    spill_definition_t good, bad;
    bson_t document = BSON_INITIALIZER;
    spill_definition_init(&good, "x");
    memset(&bad, 0xff, sizeof bad);
    REFUSED(spill_definition_preset(NULL, "feed", "x", &error));
    REFUSED(spill_definition_preset(&good, NULL, "x", &error));
    REFUSED(spill_definition_preset(&good, "feed", NULL, &error));
    REFUSED(spill_definition_preset(&good, "feed", "", &error));
    spill_definition_init(&good, "x");
    REFUSED(spill_definition_check(NULL, &error));
    REFUSED(spill_definition_check(&bad, &error));
    bad = good;
    bad.layout = (spill_layout_t)77;
    REFUSED(spill_definition_check(&bad, &error));
    bad = good;
    bad.bounds.threshold = -1;
    REFUSED(spill_definition_check(&bad, &error));
    memset(&bad, 0xff, sizeof bad);
    REFUSED(spill_definition_compatible(NULL, &good, &error));
    REFUSED(spill_definition_compatible(&good, NULL, &error));
    REFUSED(spill_definition_compatible(&good, &bad, &error));
    REFUSED(spill_definition_compatible(&bad, &good, &error));
    REFUSED(spill_definition_beside(NULL, &good, &error));
    REFUSED(spill_definition_beside(&good, NULL, &error));
    REFUSED(spill_definition_beside(&good, &bad, &error));
    REFUSED(spill_definition_from_bson(NULL, &document, &error));
    REFUSED(spill_definition_from_bson(&good, NULL, &error));
    bson_destroy(&document);
    assert_non_null(spill_definition_presets());
}

static void definitions_without_a_code(void **state)
{
    (void)state;
    spill_definition_t definition;
    bson_t document;
    spill_definition_init(NULL, "x");
    spill_definition_init(&definition, NULL);
    assert_string_equal(definition.name, "");
    spill_definition_set_layout(NULL, SPILL_LAYOUT_CAPPED);
    spill_definition_set_layout(&definition, (spill_layout_t)77);
    spill_definition_to_bson(&definition, NULL);
    spill_definition_to_bson(NULL, &document);
    assert_true(bson_empty(&document));
    bson_destroy(&document);
    memset(&definition, 'x', sizeof definition);
    definition.unique = true; /* other bytes are no value of a bool */
    spill_definition_to_bson(&definition, &document);
    bson_destroy(&document);
    assert_int_equal(spill_threshold(-1, -1), 1);
    assert_int_equal(spill_threshold(INT64_MIN, INT64_MIN), 1);
    assert_true(spill_threshold(INT64_MAX, 0) > 0);
}

/* ---- values and texts ------------------------------------------------------------------------ */

static void values(void **state)
{
    (void)state;
    spill_value_t value = element;
    bson_t document = BSON_INITIALIZER;
    assert_int_equal(spill_value_from_iter(NULL).size_bytes, 0);
    assert_int_equal(spill_value_from_document(NULL).size_bytes, 0);
    assert_int_equal(spill_value_from_utf8(NULL, "x").size_bytes, 0);
    assert_int_equal(spill_value_from_utf8(&document, NULL).size_bytes, 0);
    assert_int_equal(spill_value_from_int64(NULL, 1).size_bytes, 0);
    bson_oid_t id;
    bson_value_t copy = {.value_type = BSON_TYPE_NULL};
    int64_t number;
    assert_int_equal(spill_value_from_oid(NULL).size_bytes, 0);
    assert_int_equal(spill_value_from_bson(NULL, &copy).size_bytes, 0);
    assert_int_equal(spill_value_from_bson(&document, NULL).size_bytes, 0);
    for (size_t i = 0; i <= MALFORMED; i++) {
        const spill_value_t *bad = i < MALFORMED ? &malformed[i] : NULL;
        assert_false(spill_value_to_oid(bad, &id));
        assert_false(spill_value_to_int64(bad, &number));
        assert_null(spill_value_to_utf8(bad, NULL));
        assert_false(spill_value_to_bson(bad, &copy));
    }
    assert_false(spill_value_to_document(NULL, &document));
    assert_false(spill_value_to_document(&element, NULL));
    assert_false(spill_value_append(NULL, &document, "x"));
    assert_false(spill_value_append(&element, NULL, "x"));
    assert_false(spill_value_append(&element, &document, NULL));
    for (size_t i = 0; i < MALFORMED; i++) {
        assert_false(spill_value_append(&malformed[i], &document, "x"));
        assert_null(spill_value_to_json(&malformed[i], true));
        assert_false(spill_value_same_owner(&malformed[i], &owner));
    }
    assert_false(spill_value_equal(NULL, &element));
    assert_false(spill_value_equal(&element, NULL));
    assert_false(spill_value_same_owner(NULL, &element));
    assert_false(spill_value_same_owner(&element, NULL));
    assert_null(spill_value_to_json(NULL, false));
    REFUSED(spill_value_from_json(NULL, 3, &document, &value, &error));
    assert_int_equal(value.size_bytes, 0);
    REFUSED(spill_value_from_json("1", 1, NULL, &value, &error));
    REFUSED(spill_value_from_json("1", 1, &document, NULL, &error));
    assert_int_equal(spill_value_from_json(NULL, 0, &document, &value, &error), SPILL_PARSE);
    assert_true(bson_empty(&document));
    bson_destroy(&document);
}

static void texts(void **state)
{
    (void)state;
    const int codes[] = {-1, 77, INT_MAX};
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(spill_code_name((spill_code_t)codes[i]));
        assert_non_null(spill_code_text((spill_code_t)codes[i]));
    }
    assert_non_null(spill_version());
}

/* ---- arrays: append, change, remove ---------------------------------------------------------- */

static void appends(void **state)
{
    (void)state;
    spill_append_options_t options;
    REFUSED(spill_array_append(NULL, &owner, &element, 1, NULL, NULL, &error));
    REFUSED(spill_array_append(array, NULL, &element, 1, NULL, NULL, &error));
    REFUSED(spill_array_append(array, &owner, NULL, 1, NULL, NULL, &error));
    REFUSED(spill_array_append(array, &owner, &element, 0, NULL, NULL, &error));
    REFUSED(spill_array_append(array, &owner, &element, SIZE_MAX, NULL, NULL, &error));
    for (size_t i = 0; i < MALFORMED; i++) {
        REFUSED(spill_array_append(array, &owner, &malformed[i], 1, NULL, NULL, &error));
        REFUSED(spill_array_append(array, &malformed[i], &element, 1, NULL, NULL, &error));
    }
    static const struct {
        const char *id;
        size_t bytes;
        int64_t base;
    } operations[] = {{NULL, 3, 0}, {"x", 0, 0}, {"x", 65, 0}, {"x", 1, -1}, {"x", 1, INT64_MAX}};
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        spill_append_options_init(&options);
        spill_op_t op = {operations[i].id, operations[i].bytes, operations[i].base};
        options.op = &op;
        REFUSED(spill_array_append(array, &owner, &element, 1, &options, NULL, &error));
    }
    spill_op_t nameless = {.id_bytes = 3};
    spill_append_options_init(&options);
    options.op = &nameless;
    assert_int_equal(spill_array_append(array, &owner, &element, 1, &options, NULL, &error),
                     SPILL_INVALID);
    assert_non_null(strstr(error.message, "id is NULL"));
    spill_append_options_init(&options);
    options.version = 9;
    assert_int_equal(spill_array_append(array, &owner, &element, 1, &options, NULL, &error),
                     SPILL_INVALID);
    assert_non_null(strstr(error.message, "spill_append_options_init"));
    spill_append_options_init(NULL);
}

static void bases_and_updates(void **state)
{
    (void)state;
    int64_t base;
    bson_t update = BSON_INITIALIZER;
    REFUSED(spill_array_op_base(NULL, &owner, &base, &error));
    REFUSED(spill_array_op_base(array, NULL, &base, &error));
    REFUSED(spill_array_op_base(array, &owner, NULL, &error));
    spill_update_options_t update_options;
    spill_update_options_init(NULL);
    spill_update_options_init(&update_options);
    REFUSED(spill_array_update_with(NULL, &owner, &update, &update_options, NULL, &error));
    REFUSED(spill_array_update_with(array, NULL, &update, &update_options, NULL, &error));
    REFUSED(spill_array_update_with(array, &owner, NULL, &update_options, NULL, &error));
    update_options.version = 0;
    REFUSED(spill_array_update_with(array, &owner, &update, &update_options, NULL, &error));
    REFUSED(spill_array_adopt(NULL, &owner, NULL, &error));
    REFUSED(spill_array_adopt(array, NULL, NULL, &error));
    REFUSED(spill_array_adopt(array, &malformed[0], NULL, &error));
    REFUSED(spill_array_update(NULL, &owner, &update, &error));
    REFUSED(spill_array_update(array, NULL, &update, &error));
    REFUSED(spill_array_update(array, &owner, NULL, &error));
    BSON_APPEND_INT32(&update, "$nothing", 1);
    REFUSED(spill_array_update(array, &owner, &update, &error));
    bson_destroy(&update);
}

static void edits(void **state)
{
    (void)state;
    int64_t seq = 7;
    REFUSED(spill_array_edit(NULL, &owner, 0, &element, &error));
    REFUSED(spill_array_edit(array, NULL, 0, &element, &error));
    REFUSED(spill_array_edit(array, &owner, 0, NULL, &error));
    REFUSED(spill_array_edit(array, &owner, -1, &element, &error));
    REFUSED(spill_array_edit_id(NULL, &owner, &owner, &element, &seq, &error));
    assert_int_equal(seq, -1);
    REFUSED(spill_array_edit_id(array, NULL, &owner, &element, NULL, &error));
    REFUSED(spill_array_edit_id(array, &owner, NULL, &element, NULL, &error));
    REFUSED(spill_array_edit_id(array, &owner, &owner, NULL, NULL, &error));
    REFUSED(spill_array_find_id(NULL, &owner, &owner, &seq, &error));
    REFUSED(spill_array_find_id(array, NULL, &owner, &seq, &error));
    REFUSED(spill_array_find_id(array, &owner, NULL, &seq, &error));
    REFUSED(spill_array_find_id(array, &owner, &owner, NULL, &error));
    for (size_t i = 0; i < MALFORMED; i++) {
        REFUSED(spill_array_edit(array, &owner, 0, &malformed[i], &error));
        REFUSED(spill_array_edit(array, &malformed[i], 0, &element, &error));
        REFUSED(spill_array_find_id(array, &owner, &malformed[i], &seq, &error));
        REFUSED(spill_array_edit_id(array, &owner, &malformed[i], &element, &seq, &error));
    }
}

static void removals(void **state)
{
    (void)state;
    bson_t filter = BSON_INITIALIZER;
    int64_t number = 7;
    REFUSED(spill_array_remove(NULL, &owner, 0, &error));
    REFUSED(spill_array_remove(array, NULL, 0, &error));
    REFUSED(spill_array_remove(array, &owner, -1, &error));
    REFUSED(spill_array_remove(array, &owner, INT64_MIN, &error));
    REFUSED(spill_array_remove_id(NULL, &owner, &owner, &number, &error));
    REFUSED(spill_array_remove_id(array, NULL, &owner, &number, &error));
    REFUSED(spill_array_remove_id(array, &owner, NULL, NULL, &error));
    /* matches every element */
    REFUSED(spill_array_remove_where(array, &owner, &filter, 0, NULL, &error));
    BSON_APPEND_INT32(&filter, "id", 99);
    REFUSED(spill_array_remove_where(NULL, &owner, &filter, 0, &number, &error));
    REFUSED(spill_array_remove_where(array, NULL, &filter, 0, &number, &error));
    REFUSED(spill_array_remove_where(array, &owner, NULL, 0, &number, &error));
    REFUSED(spill_array_remove_where(array, &owner, &filter, -1, &number, &error));
    assert_int_equal(number, 0);
    bson_destroy(&filter);
    REFUSED(spill_array_drop_owner(NULL, &owner, &error));
    REFUSED(spill_array_drop_owner(array, NULL, &error));
    REFUSED(spill_array_drop_owner(array, &malformed[0], &error));
}

static void trims(void **state)
{
    (void)state;
    int64_t below = 7;
    REFUSED(spill_array_trim(NULL, &owner, 0, &error));
    REFUSED(spill_array_trim(array, NULL, 0, &error));
    REFUSED(spill_array_trim(array, &owner, -1, &error));
    REFUSED(spill_array_trim(array, &owner, INT64_MIN, &error));
    REFUSED(spill_array_trim_keep(NULL, &owner, 1, &below, &error));
    assert_int_equal(below, 0);
    REFUSED(spill_array_trim_keep(array, NULL, 1, NULL, &error));
    REFUSED(spill_array_trim_keep(array, &owner, -1, &below, &error));
    REFUSED(spill_array_trim_older(NULL, &owner, 0, &below, &error));
    REFUSED(spill_array_trim_older(array, NULL, 0, NULL, &error));
}

/* ---- arrays: read and walk ------------------------------------------------------------------- */

static void reads(void **state)
{
    (void)state;
    spill_read_options_t options;
    spill_slice_t *slice = NULL;
    spill_count_t count;
    REFUSED(spill_array_read(NULL, &owner, NULL, &slice, &error));
    REFUSED(spill_array_read(array, NULL, NULL, &slice, &error));
    REFUSED(spill_array_read(array, &owner, NULL, NULL, &error));
    REFUSED(spill_array_read(array, &malformed[0], NULL, &slice, &error));
    for (int i = 0; i < 5; i++) {
        spill_read_options_init(&options);
        options.version = i == 0 ? 9 : options.version;
        options.order = i == 1 ? (spill_order_t)77 : options.order;
        options.limit = i == 2 ? 0 : i == 3 ? INT64_MIN : options.limit;
        options.skip = i == 4 ? -1 : options.skip;
        REFUSED(spill_array_read(array, &owner, &options, &slice, &error));
        assert_null(slice);
    }
    REFUSED(spill_array_read_newest(NULL, &owner, 0, 1, &slice, &error));
    REFUSED(spill_array_read_newest(array, NULL, 0, 1, &slice, &error));
    REFUSED(spill_array_read_newest(array, &owner, 0, 1, NULL, &error));
    REFUSED(spill_array_read_newest(array, &owner, -1, 1, &slice, &error));
    REFUSED(spill_array_read_newest(array, &owner, 0, 0, &slice, &error));
    REFUSED(spill_array_top(NULL, &owner, 1, &slice, &error));
    REFUSED(spill_array_top(array, NULL, 1, &slice, &error));
    REFUSED(spill_array_top(array, &owner, 1, NULL, &error));
    REFUSED(spill_array_top(array, &owner, -1, &slice, &error));
    REFUSED(spill_array_count(NULL, &owner, &count, &error));
    REFUSED(spill_array_count(array, NULL, &count, &error));
    REFUSED(spill_array_count(array, &owner, NULL, &error));
    spill_read_options_init(NULL);
    spill_slice_free(NULL);
    spill_deadline_t none = spill_deadline_begin(INT64_MIN);
    assert_int_equal(none.at_us, 0);
    assert_int_equal(spill_array_read(array, &owner, NULL, &slice, &error), SPILL_OK);
    spill_slice_free(slice);
    spill_deadline_end(none);
}

/* Allowed extremes: ranges without elements. */
static void extreme_ranges(void **state)
{
    (void)state;
    spill_read_options_t options;
    const int64_t bounds[] = {INT64_MIN, -1, 0, INT64_MAX};
    for (int i = 0; i < 4 * 4 * 2; i++) {
        spill_slice_t *slice;
        spill_read_options_init(&options);
        options.before = bounds[i % 4];
        options.after = bounds[i / 4 % 4];
        options.order = i < 16 ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
        options.limit = options.skip = INT64_MAX;
        assert_int_equal(spill_array_read(array, &owner, &options, &slice, &error), SPILL_OK);
        assert_int_equal(slice->count, 0);
        spill_slice_free(slice);
    }
    assert_int_equal(spill_array_edit(array, &owner, INT64_MAX, &element, &error), SPILL_NOT_FOUND);
    assert_int_equal(spill_array_remove(array, &owner, INT64_MAX, &error), SPILL_NOT_FOUND);
}

static void walks(void **state)
{
    (void)state;
    REFUSED(spill_array_owners(NULL, visit_owner, NULL, &error));
    REFUSED(spill_array_owners(array, NULL, NULL, &error));
    REFUSED(spill_array_export(NULL, NULL, visit_element, NULL, &error));
    REFUSED(spill_array_export(array, NULL, NULL, NULL, &error));
    REFUSED(spill_array_export(array, &malformed[0], visit_element, NULL, &error));
    REFUSED(spill_array_documents(NULL, NULL, false, visit_document, NULL, &error));
    REFUSED(spill_array_documents(array, NULL, false, NULL, NULL, &error));
    REFUSED(spill_array_verify(NULL, NULL, NULL, NULL, NULL, &error));
    REFUSED(spill_array_verify(array, &malformed[0], NULL, NULL, NULL, &error));
    REFUSED(spill_array_repair(NULL, NULL, true, NULL, NULL, NULL, &error));
    REFUSED(spill_array_repair(array, &malformed[0], true, NULL, NULL, NULL, &error));
}

/* ---- buckets --------------------------------------------------------------------------------- */

static void windows(void **state)
{
    (void)state;
    char window[SPILL_WINDOW_SIZE] = "x";
    bson_t document = BSON_INITIALIZER;
    const spill_definition_t *definition = spill_array_get_definition(bucket);
    spill_definition_t bad;
    memset(&bad, 0xff, sizeof bad);
    spill_value_t of;
    REFUSED(spill_bucket_window_of(NULL, &element, window, &error));
    assert_string_equal(window, "");
    REFUSED(spill_bucket_window_of(definition, NULL, window, &error));
    REFUSED(spill_bucket_window_of(definition, &element, NULL, &error));
    REFUSED(spill_bucket_window_of(&bad, &element, window, &error));
    REFUSED(spill_bucket_window_of(definition, &malformed[0], window, &error));
    assert_int_equal(spill_bucket_name(NULL, &owner, "x").size_bytes, 0);
    assert_int_equal(spill_bucket_name(&document, NULL, "x").size_bytes, 0);
    assert_int_equal(spill_bucket_name(&document, &owner, NULL).size_bytes, 0);
    bson_destroy(&document);
    assert_false(spill_bucket_split(NULL, &of, window));
    assert_false(spill_bucket_split(&owner, NULL, window));
    assert_false(spill_bucket_split(&owner, &of, NULL));
    for (size_t i = 0; i < MALFORMED; i++)
        assert_false(spill_bucket_split(&malformed[i], &of, window));
}

static void bucket_appends(void **state)
{
    (void)state;
    spill_bucket_append_options_t options;
    spill_bucket_appended_t *appended;
    spill_bucket_base_t base, *bases = &base;
    size_t count;
    memset(&base, 'x', sizeof base);
    REFUSED(spill_bucket_append(NULL, &owner, &element, 1, NULL, NULL, NULL, &error));
    REFUSED(spill_bucket_append(bucket, NULL, &element, 1, NULL, NULL, NULL, &error));
    REFUSED(spill_bucket_append(bucket, &owner, NULL, 1, NULL, NULL, NULL, &error));
    REFUSED(spill_bucket_append(bucket, &owner, &element, 0, NULL, NULL, NULL, &error));
    REFUSED(spill_bucket_append(bucket, &owner, &element, 1, NULL, &appended, NULL, &error));
    REFUSED(spill_bucket_append(array, &owner, &element, 1, NULL, &appended, &count, &error));
    for (int i = 0; i < 4; i++) {
        spill_bucket_append_options_init(&options);
        options.version = i == 0 ? 9 : options.version;
        options.op_id = i > 0 ? "x" : NULL;
        options.op_id_bytes = 1;
        options.base_count = i > 1 ? 1 : 0;
        options.bases = i == 3 ? &base : NULL;
        REFUSED(spill_bucket_append(bucket, &owner, &element, 1, &options, NULL, NULL, &error));
    }
    REFUSED(spill_bucket_op_bases(NULL, &owner, &element, 1, &bases, &count, &error));
    assert_null(bases);
    assert_int_equal(count, 0);
    REFUSED(spill_bucket_op_bases(bucket, NULL, &element, 1, &bases, &count, &error));
    REFUSED(spill_bucket_op_bases(bucket, &owner, NULL, 1, &bases, &count, &error));
    REFUSED(spill_bucket_op_bases(bucket, &owner, &element, 1, NULL, &count, &error));
    REFUSED(spill_bucket_op_bases(bucket, &owner, &element, 1, &bases, NULL, &error));
    spill_bucket_append_options_init(NULL);
}

static void bucket_reads(void **state)
{
    (void)state;
    spill_bucket_read_options_t options;
    spill_bucket_slice_t *slice;
    spill_statistics_t statistics;
    const spill_order_t no_order = (spill_order_t)77;
    REFUSED(spill_bucket_read(NULL, &owner, NULL, &slice, &error));
    REFUSED(spill_bucket_read(bucket, NULL, NULL, &slice, &error));
    REFUSED(spill_bucket_read(bucket, &owner, NULL, NULL, &error));
    REFUSED(spill_bucket_read(array, &owner, NULL, &slice, &error));
    for (int i = 0; i < 3; i++) {
        spill_bucket_read_options_init(&options);
        options.version = i == 0 ? 9 : options.version;
        options.order = i == 1 ? no_order : options.order;
        options.limit = i == 2 ? -1 : options.limit;
        REFUSED(spill_bucket_read(bucket, &owner, &options, &slice, &error));
        assert_null(slice);
    }
    REFUSED(spill_bucket_windows(NULL, &owner, NULL, NULL, SPILL_NEWEST_FIRST, visit_window, NULL,
                                 &error));
    REFUSED(spill_bucket_windows(bucket, NULL, NULL, NULL, SPILL_NEWEST_FIRST, visit_window, NULL,
                                 &error));
    REFUSED(spill_bucket_windows(bucket, &owner, NULL, NULL, no_order, visit_window, NULL, &error));
    REFUSED(
        spill_bucket_windows(bucket, &owner, NULL, NULL, SPILL_NEWEST_FIRST, NULL, NULL, &error));
    REFUSED(spill_bucket_statistics(NULL, &owner, NULL, NULL, &statistics, NULL, &error));
    REFUSED(spill_bucket_statistics(bucket, NULL, NULL, NULL, &statistics, NULL, &error));
    REFUSED(spill_bucket_statistics(bucket, &owner, NULL, NULL, NULL, NULL, &error));
    REFUSED(spill_bucket_owners(NULL, visit_owner, NULL, &error));
    REFUSED(spill_bucket_owners(bucket, NULL, NULL, &error));
    spill_bucket_read_options_init(NULL);
    spill_bucket_slice_free(NULL);
}

static void bucket_changes(void **state)
{
    (void)state;
    char window[SPILL_WINDOW_SIZE] = "x";
    int64_t number = 7;
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_INT32(&filter, "id", 99);
    REFUSED(spill_bucket_find_id(NULL, &owner, &owner, window, &number, &error));
    assert_string_equal(window, "");
    assert_int_equal(number, -1);
    REFUSED(spill_bucket_find_id(bucket, NULL, &owner, window, &number, &error));
    REFUSED(spill_bucket_find_id(bucket, &owner, NULL, window, &number, &error));
    REFUSED(spill_bucket_find_id(bucket, &owner, &owner, NULL, &number, &error));
    REFUSED(spill_bucket_find_id(bucket, &owner, &owner, window, NULL, &error));
    REFUSED(spill_bucket_edit_id(NULL, &owner, &owner, &element, window, &number, &error));
    REFUSED(spill_bucket_edit_id(bucket, &owner, &owner, NULL, window, &number, &error));
    REFUSED(spill_bucket_edit_id(bucket, &owner, NULL, &element, window, &number, &error));
    REFUSED(spill_bucket_remove_id(NULL, &owner, &owner, window, &number, &error));
    REFUSED(spill_bucket_remove_id(bucket, &owner, NULL, window, &number, &error));
    REFUSED(spill_bucket_remove_where(NULL, &owner, &filter, 0, &number, &error));
    REFUSED(spill_bucket_remove_where(bucket, NULL, &filter, 0, &number, &error));
    REFUSED(spill_bucket_remove_where(bucket, &owner, NULL, 0, &number, &error));
    REFUSED(spill_bucket_remove_where(bucket, &owner, &filter, -1, &number, &error));
    bson_destroy(&filter);
    REFUSED(spill_bucket_trim_older(NULL, &owner, 0, &error));
    REFUSED(spill_bucket_trim_older(bucket, NULL, 0, &error));
    REFUSED(spill_bucket_trim_older(bucket, &owner, INT64_MAX, &error));
    REFUSED(spill_bucket_trim_keep(NULL, &owner, 1, &error));
    REFUSED(spill_bucket_trim_keep(bucket, NULL, 1, &error));
    REFUSED(spill_bucket_trim_keep(bucket, &owner, 0, &error));
    REFUSED(spill_bucket_drop_before(NULL, &owner, "2023-11", &number, &error));
    REFUSED(spill_bucket_drop_before(bucket, NULL, "2023-11", &number, &error));
    REFUSED(spill_bucket_drop_before(bucket, &owner, "no month", &number, &error));
    REFUSED(spill_bucket_drop_older(NULL, &owner, 0, &number, &error));
    REFUSED(spill_bucket_drop_older(bucket, NULL, 0, &number, &error));
    REFUSED(spill_bucket_drop_older(bucket, &owner, INT64_MIN, &number, &error));
}

/* ---- completeness ---------------------------------------------------------------------------- */

static char *read_text(const char *path)
{
    const char *top = getenv("SPILLWAY_SOURCE");
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", top ? top : ".", path);
    FILE *file = fopen(full, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 17);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 17) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Each function that a header declares is called in this file. */
static void every_function_is_called(void **state)
{
    (void)state;
    static const char *const headers[] = {"array",  "bucket", "deadline", "definition", "error",
                                          "mongoc", "store",  "value",    "verify",     "version"};
    char *calls = read_text("tests/unit/test_misuse.c");
    int count = 0;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "include/spillway/%s.h", headers[i]);
        char *text = read_text(path);
        for (char *at = text; (at = strstr(at, "SPILL_API ")) != NULL; at++) {
            char name[80];
            size_t end = strcspn(at, "("), start = end;
            while (start > 0 && at[start - 1] != ' ' && at[start - 1] != '*')
                start--;
            snprintf(name, sizeof name, "%.*s(", (int)(end - start), at + start);
            if (strstr(calls, name) == NULL)
                fail_msg("%s: %s is not called in this test", path, name);
            count++;
        }
        free(text);
    }
    assert_true(count > 60);
    free(calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores),
        cmocka_unit_test(saved_definitions),
        cmocka_unit_test(definitions),
        cmocka_unit_test(definitions_without_a_code),
        cmocka_unit_test(values),
        cmocka_unit_test(texts),
        cmocka_unit_test(appends),
        cmocka_unit_test(bases_and_updates),
        cmocka_unit_test(edits),
        cmocka_unit_test(removals),
        cmocka_unit_test(trims),
        cmocka_unit_test(reads),
        cmocka_unit_test(extreme_ranges),
        cmocka_unit_test(walks),
        cmocka_unit_test(windows),
        cmocka_unit_test(bucket_appends),
        cmocka_unit_test(bucket_reads),
        cmocka_unit_test(bucket_changes),
        cmocka_unit_test(every_function_is_called),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
