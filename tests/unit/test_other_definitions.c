/* An update leaves the fields of the collection's other definitions alone, whenever they were
 * saved. */
#include "core/array.h"
#include "support/embedded.h"
#include "util/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const spill_store_ops_t *counted;
static int catalog_reads;
static bool fails; /* catalog reads */

static spill_code_t count_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                              bson_t **document, spill_error_t *error)
{
    catalog_reads++;
    if (fails)
        return spill_fail(error, SPILL_IO, "the disk has gone");
    return counted->catalog_get(store, kind, name, document, error);
}

typedef struct fixture {
    spill_store_t *store;
    spill_store_ops_t ops;
    spill_array_t *feed;
} fixture_t;

/* A definition of the collection "users", for the array `name`. */
static spill_array_t *define_array(spill_store_t *store, const char *name)
{
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array;
    spill_definition_init(&definition, name);
    strcpy(definition.collection, "users");
    snprintf(definition.array, sizeof definition.array, "%s", name);
    snprintf(definition.page_collection, sizeof definition.page_collection, "%sPages", name);
    snprintf(definition.count_field, sizeof definition.count_field, "%sCount", name);
    snprintf(definition.overflow_field, sizeof definition.overflow_field, "%sMore", name);
    snprintf(definition.pages_field, sizeof definition.pages_field, "%sPageCount", name);
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, name, &array, &error), SPILL_OK);
    return array;
}

static void setup(fixture_t *fixture, spill_store_t *store)
{
    fixture->store = store;
    fixture->feed = define_array(store, "feed");
    counted = store->ops;
    fixture->ops = *counted;
    fixture->ops.catalog_get = count_get;
    store->ops = &fixture->ops;
    catalog_reads = 0;
    assert_int_equal(embedded_append(fixture->feed, "ada", 0, 1, NULL), SPILL_OK);
}

static void end(fixture_t *fixture)
{
    spill_array_close(fixture->feed);
    fixture->store->ops = counted;
    embedded_close(fixture->store);
}

/* Set a field of the owner by an update, or by an append with an update. */
static spill_code_t set_field(const fixture_t *fixture, const char *owner, const char *field,
                              bool append, spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    const int32_t number = 1;
    const spill_value_t element = {
        .data = (const uint8_t *)&number, .size_bytes = sizeof number, .type = BSON_TYPE_INT32};
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    bson_t *update = BCON_NEW("$set", "{", field, BCON_INT32(1), "}");
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.update = update;
    spill_code_t code =
        append ? spill_array_append(fixture->feed, &name, &element, 1, &options, NULL, error)
               : spill_array_update(fixture->feed, &name, update, error);
    bson_destroy(update);
    bson_destroy(&storage);
    return code;
}

static void assert_set(const fixture_t *fixture, const char *owner, const char *field)
{
    assert_int_equal(set_field(fixture, owner, field, false, NULL), SPILL_OK);
    assert_int_equal(set_field(fixture, owner, field, true, NULL), SPILL_OK);
}

static void assert_refused(const fixture_t *fixture, const char *owner, const char *field,
                           const char *definition)
{
    for (int append = 0; append < 2; append++) {
        spill_error_t error;
        assert_int_equal(set_field(fixture, owner, field, append, &error), SPILL_REFUSED);
        assert_non_null(strstr(error.message, definition));
    }
}

static void definition_saved_while_array_is_open_is_respected(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    setup(&fixture, store);
    assert_set(&fixture, "eve", "likes");
    spill_array_t *likes = define_array(store, "likes");
    assert_set(&fixture, "bob", "likes"); /* he has no array of likes */
    assert_int_equal(embedded_append(likes, "ada", 0, 1, NULL), SPILL_OK);
    assert_refused(&fixture, "ada", "likes", "'likes'");
    assert_refused(&fixture, "ada", "likesCount", "'likes'");
    assert_set(&fixture, "ada", "name");
    spill_array_t *views = define_array(store, "views");
    assert_int_equal(embedded_append(views, "ada", 0, 1, NULL), SPILL_OK);
    assert_refused(&fixture, "ada", "views.0", "'views'");
    assert_refused(&fixture, "ada", "likes", "'likes'");
    assert_set(&fixture, "bob", "views");
    spill_array_close(views);
    spill_array_close(likes);
    end(&fixture);
}

static void dropped_definition_is_forgotten(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    setup(&fixture, store);
    spill_array_t *likes = define_array(store, "likes");
    assert_int_equal(embedded_append(likes, "ada", 0, 1, NULL), SPILL_OK);
    assert_refused(&fixture, "ada", "likes", "'likes'");
    spill_array_close(likes);
    assert_int_equal(spill_store_drop(store, "likes", NULL), SPILL_OK);
    assert_set(&fixture, "ada", "likes");
    end(&fixture);
}

static void definitions_are_read_only_after_a_change(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    setup(&fixture, store);
    spill_array_t *likes = define_array(store, "likes");
    spill_array_t *views = define_array(store, "views");
    assert_set(&fixture, "ada", "name");
    catalog_reads = 0;
    for (int i = 0; i < 100; i++)
        assert_set(&fixture, "ada", "name");
    assert_int_equal(catalog_reads, 0);
    spill_array_close(define_array(store, "marks"));
    catalog_reads = 0;
    assert_set(&fixture, "ada", "name");
    assert_int_equal(catalog_reads, 3);
    spill_array_close(views);
    spill_array_close(likes);
    end(&fixture);
}

/* While a change is written, its end may be near: definitions are read for each update. */
static void change_that_is_being_written_is_seen(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    setup(&fixture, store);
    assert_set(&fixture, "bob", "likes");
    spill_definition_index_t *index = &((spill_embedded_t *)store)->definitions;
    spill_definition_index_begin(index);
    assert_set(&fixture, "bob", "likes");
    spill_array_t *likes = define_array(store, "likes");
    assert_int_equal(embedded_append(likes, "ada", 0, 1, NULL), SPILL_OK);
    assert_refused(&fixture, "ada", "likes", "'likes'");
    catalog_reads = 0;
    assert_set(&fixture, "ada", "name");
    assert_int_equal(catalog_reads, 2);
    spill_definition_index_end(index, "none", NULL);
    assert_refused(&fixture, "ada", "likes", "'likes'");
    spill_array_close(likes);
    end(&fixture);
}

static void failed_read_is_repeated(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    setup(&fixture, store);
    spill_array_t *likes = define_array(store, "likes");
    assert_int_equal(embedded_append(likes, "ada", 0, 1, NULL), SPILL_OK);
    fails = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(set_field(&fixture, "ada", "name", false, NULL), SPILL_IO);
    fails = false;
    assert_refused(&fixture, "ada", "likes", "'likes'");
    assert_set(&fixture, "ada", "name");
    spill_array_close(likes);
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_saved_while_array_is_open_is_respected),
        cmocka_unit_test(dropped_definition_is_forgotten),
        cmocka_unit_test(definitions_are_read_only_after_a_change),
        cmocka_unit_test(change_that_is_being_written_is_seen),
        cmocka_unit_test(failed_read_is_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
