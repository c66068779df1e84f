/*
 * Documents that other programs write. If the array's field is not an array, every call reports
 * that clearly and changes nothing. Other fields may have any name.
 */
#include "support/server.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    char *uri;
    spill_store_t *store;
    spill_array_t *array;
    mongoc_client_t *client;
    mongoc_collection_t *heads;
    bson_t storage;
    spill_value_t owner;
} fixture_t;

static void fixture_open(fixture_t *fixture)
{
    spill_definition_t definition;
    spill_error_t error;
    mongoc_database_t *database;
    fixture->uri = server_new_database(NULL);
    fixture->store = server_open(fixture->uri);
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "feed", &error), SPILL_OK);
    definition.bounds.threshold = definition.bounds.page_capacity = 4;
    assert_int_equal(spill_store_define(fixture->store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, &error), SPILL_OK);
    fixture->client = server_client(fixture->uri, &database);
    fixture->heads = mongoc_database_get_collection(database, definition.collection);
    mongoc_database_destroy(database);
    bson_init(&fixture->storage);
    fixture->owner = spill_value_from_utf8(&fixture->storage, "ada");
}

static void fixture_close(fixture_t *fixture)
{
    spill_array_close(fixture->array);
    server_close(fixture->store);
    mongoc_collection_destroy(fixture->heads);
    mongoc_client_destroy(fixture->client);
    bson_destroy(&fixture->storage);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
}

/* Replace ada's document. */
static void put_head(fixture_t *fixture, const bson_t *head)
{
    bson_t *filter = BCON_NEW("_id", "ada");
    bson_error_t error;
    assert_true(mongoc_collection_delete_one(fixture->heads, filter, NULL, NULL, &error));
    assert_true(mongoc_collection_insert_one(fixture->heads, head, NULL, NULL, &error));
    bson_destroy(filter);
}

static spill_code_t append(fixture_t *fixture, spill_error_t *error)
{
    spill_append_result_t result;
    return spill_array_append(fixture->array, &fixture->owner, &fixture->owner, 1, NULL, &result,
                              error);
}

static spill_code_t read_newest(fixture_t *fixture, spill_error_t *error)
{
    spill_slice_t *slice = NULL;
    spill_code_t code = spill_array_read(fixture->array, &fixture->owner, NULL, &slice, error);
    spill_slice_free(slice);
    return code;
}

/* Every call fails with this code. Its message names the document and the type that it has. */
static void assert_fails(fixture_t *fixture, spill_code_t expected, const char *type)
{
    spill_error_t errors[4] = {0};
    spill_count_t count;
    assert_int_equal(spill_array_count(fixture->array, &fixture->owner, &count, &errors[0]),
                     expected);
    assert_int_equal(read_newest(fixture, &errors[1]), expected);
    assert_int_equal(append(fixture, &errors[2]), expected);
    assert_int_equal(spill_array_remove(fixture->array, &fixture->owner, 0, &errors[3]), expected);
    for (int i = 0; i < 4; i++) {
        if (!strstr(errors[i].message, "\"ada\"") || !strstr(errors[i].message, "'activities'") ||
            !strstr(errors[i].message, type))
            fail_msg("%d: %s", i, errors[i].message);
    }
}

static void a_field_that_is_no_array(void **state)
{
    (void)state;
    fixture_t fixture;
    fixture_open(&fixture);
    bson_t *heads[] = {BCON_NEW("_id", "ada", "activities", "none yet"),
                       BCON_NEW("_id", "ada", "activities", BCON_NULL),
                       BCON_NEW("_id", "ada", "activities", "{", "0", BCON_INT32(1), "}")};
    const char *const types[] = {"string", "null", "object"};
    for (int i = 0; i < 3; i++) {
        put_head(&fixture, heads[i]);
        assert_fails(&fixture, SPILL_REFUSED, types[i]);
        bson_destroy(heads[i]);
    }
    fixture_close(&fixture);
}

/* A document without the field is an ordinary unmanaged document. */
static void a_document_without_the_field(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_count_t count;
    spill_error_t error;
    fixture_open(&fixture);
    bson_t *head = BCON_NEW("_id", "ada", "name", "Ada");
    put_head(&fixture, head);
    bson_destroy(head);
    assert_int_equal(spill_array_count(fixture.array, &fixture.owner, &count, &error), SPILL_OK);
    assert_false(count.exists);
    assert_int_equal(append(&fixture, &error), SPILL_OK);
    fixture_close(&fixture);
}

/* In a managed head the same is damage, and the verifier reports it. */
static void an_array_that_was_overwritten(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    spill_verify_summary_t summary;
    bson_error_t cause;
    fixture_open(&fixture);
    assert_int_equal(append(&fixture, &error), SPILL_OK);
    bson_t *filter = BCON_NEW("_id", "ada");
    bson_t *update = BCON_NEW("$set", "{", "activities", BCON_NULL, "}");
    assert_true(mongoc_collection_update_one(fixture.heads, filter, update, NULL, NULL, &cause));
    bson_destroy(filter);
    bson_destroy(update);
    assert_fails(&fixture, SPILL_CORRUPT, "null");
    spill_code_t code = spill_array_verify(fixture.array, NULL, NULL, NULL, &summary, &error);
    assert_int_equal(code, SPILL_OK);
    assert_true(summary.findings > 0);
    fixture_close(&fixture);
}

/* The document's other fields have the names that answers of the store use. */
static void other_fields_of_any_name(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    bson_error_t cause;
    static const char *const names[] = {"state", "live", "page", "from", "run", "now", "ops"};
    fixture_open(&fixture);
    assert_int_equal(append(&fixture, &error), SPILL_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bson_t *filter = BCON_NEW("_id", "ada");
        bson_t *update = BCON_NEW("$set", "{", names[i], "[", "a", "{", "b", "c", "}", "]", "}");
        assert_true(
            mongoc_collection_update_one(fixture.heads, filter, update, NULL, NULL, &cause));
        bson_destroy(filter);
        bson_destroy(update);
        spill_count_t count;
        assert_int_equal(append(&fixture, &error), SPILL_OK);
        assert_int_equal(read_newest(&fixture, &error), SPILL_OK);
        assert_int_equal(spill_array_count(fixture.array, &fixture.owner, &count, &error),
                         SPILL_OK);
        assert_int_equal(count.count, i + 2);
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_fields_of_any_name),
        cmocka_unit_test(a_field_that_is_no_array),
        cmocka_unit_test(a_document_without_the_field),
        cmocka_unit_test(an_array_that_was_overwritten),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
