/* The indexes of pages follow their definition, whatever indexes existed before. */
#include "support/server.h"
#include "tools/migrate/staged.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    char *uri;
    spill_store_t *store;
    mongoc_client_t *client;
    mongoc_database_t *database;
} fixture_t;

static void fixture_open(fixture_t *fixture)
{
    fixture->uri = server_new_database(NULL);
    fixture->store = server_open(fixture->uri);
    fixture->client = server_client(fixture->uri, &fixture->database);
}

static void fixture_close(fixture_t *fixture)
{
    mongoc_database_destroy(fixture->database);
    mongoc_client_destroy(fixture->client);
    server_close(fixture->store);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
}

/* Save "feed" with this field for the owner of a page. */
static void define(fixture_t *fixture, const char *page_owner)
{
    spill_definition_t definition;
    spill_error_t error;
    assert_int_equal(spill_definition_preset(&definition, "feed", "feed", &error), SPILL_OK);
    snprintf(definition.page_owner, SPILL_NAME_SIZE, "%s", page_owner);
    spill_code_t code = spill_store_define(fixture->store, &definition, &error);
    if (code != SPILL_OK)
        fail_msg("%s: %s", page_owner, error.message);
}

/* The collection has an index of this name and these keys, in relaxed JSON. */
static bool has_index_in(fixture_t *fixture, const char *collection, const char *name,
                         const char *keys)
{
    mongoc_collection_t *pages = mongoc_database_get_collection(fixture->database, collection);
    mongoc_cursor_t *cursor = mongoc_collection_find_indexes_with_opts(pages, NULL);
    const bson_t *index;
    bool found = false;
    while (mongoc_cursor_next(cursor, &index)) {
        char *json = bson_as_relaxed_extended_json(index, NULL);
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"name\" : \"%s\"", name);
        found = found || (strstr(json, quoted) && strstr(json, keys));
        bson_free(json);
    }
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(pages);
    return found;
}

static bool has_index(fixture_t *fixture, const char *name, const char *keys)
{
    return has_index_in(fixture, "overflowActivities", name, keys);
}

static void assert_indexes(fixture_t *fixture, const char *page_owner)
{
    char keys[128];
    snprintf(keys, sizeof keys, "{ \"%s\" : 1, \"page\" : 1 }", page_owner);
    assert_true(has_index(fixture, "spillway_page", keys));
    snprintf(keys, sizeof keys, "{ \"%s\" : 1, \"spill.first\" : 1, \"_id\" : 1 }", page_owner);
    assert_true(has_index(fixture, "spillway_first", keys));
}

static void append(fixture_t *fixture)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_array_t *array;
    spill_append_result_t result;
    spill_error_t error;
    assert_int_equal(spill_array_open(fixture->store, "feed", &array, &error), SPILL_OK);
    assert_int_equal(spill_array_append(array, &owner, &owner, 1, NULL, &result, &error), SPILL_OK);
    spill_array_close(array);
    bson_destroy(&storage);
}

static void indexes_follow_a_changed_owner_field(void **state)
{
    (void)state;
    fixture_t fixture;
    fixture_open(&fixture);
    define(&fixture, "userId");
    assert_indexes(&fixture, "userId");
    define(&fixture, "uid");
    assert_indexes(&fixture, "uid");
    fixture_close(&fixture);
}

static void indexes_follow_a_new_definition_after_a_drop(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    fixture_open(&fixture);
    define(&fixture, "userId");
    append(&fixture);
    assert_int_equal(spill_store_drop(fixture.store, "feed", &error), SPILL_OK);
    define(&fixture, "uid");
    assert_indexes(&fixture, "uid");
    append(&fixture);
    fixture_close(&fixture);
}

/* If the application already has an index with these keys, the store uses it and keeps it. */
static void application_indexes_are_kept(void **state)
{
    (void)state;
    fixture_t fixture;
    bson_error_t cause;
    fixture_open(&fixture);
    bson_t *command =
        BCON_NEW("createIndexes", "overflowActivities", "indexes", "[", "{", "key", "{", "userId",
                 BCON_INT32(1), "page", BCON_INT32(1), "}", "name", "mine", "}", "]");
    if (!mongoc_database_write_command_with_opts(fixture.database, command, NULL, NULL, &cause))
        fail_msg("%s", cause.message);
    bson_destroy(command);
    define(&fixture, "userId");
    assert_true(has_index(&fixture, "mine", "{ \"userId\" : 1, \"page\" : 1 }"));
    assert_true(has_index(&fixture, "spillway_first", "{ \"userId\" : 1, \"spill.first\" : 1"));
    append(&fixture);
    define(&fixture, "userId");
    fixture_close(&fixture);
}

/* The index of element ids has the path of the elements in each layout's documents. */
static void element_ids_have_an_index(void **state)
{
    (void)state;
    static const struct {
        const char *preset, *collection, *keys;
    } cases[] = {
        {"feed", "overflowActivities", "{ \"userId\" : 1, \"activities.by.id\" : 1 }"},
        {"reviews-separate", "reviews", "{ \"productId\" : 1, \"by.id\" : 1 }"},
        {"reviews-bucket", "reviewBuckets", "{ \"productId\" : 1, \"reviews.by.id\" : 1 }"},
    };
    fixture_t fixture;
    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spill_definition_t definition;
        spill_error_t error;
        assert_int_equal(
            spill_definition_preset(&definition, cases[i].preset, cases[i].preset, &error),
            SPILL_OK);
        snprintf(definition.id_field, SPILL_NAME_SIZE, "by.id");
        assert_int_equal(spill_store_define(fixture.store, &definition, &error), SPILL_OK);
        assert_true(has_index_in(&fixture, cases[i].collection, "spillway_id", cases[i].keys));
    }
    fixture_close(&fixture);
}

/* ---- a migration in two stages --------------------------------------------------------------- */

/* Plan layout subset with ranks for an array that one document has. */
static spill_planned_t plan_subset(fixture_t *fixture)
{
    spill_definition_t definition;
    spill_planned_t planned;
    spill_error_t error;
    mongoc_collection_t *goods = mongoc_database_get_collection(fixture->database, "goods");
    bson_t *document = BCON_NEW("_id", "lamp", "reviews", "[", "{", "rating", BCON_INT32(4), "}",
                                "{", "rating", BCON_INT32(5), "}", "]");
    assert_true(mongoc_collection_insert_one(goods, document, NULL, NULL, NULL));
    bson_destroy(document);
    mongoc_collection_destroy(goods);
    assert_int_equal(spill_definition_preset(&definition, "reviews-subset", "planned", &error),
                     SPILL_OK);
    snprintf(definition.collection, SPILL_NAME_SIZE, "goodsHeads");
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "goodsReviews");
    snprintf(definition.sort_field, SPILL_NAME_SIZE, "rating");
    spill_planned_init(&planned, &definition, "goods", "reviews");
    return planned;
}

/* The command's steps before --finish; the second stage with a throttle that may be NULL. */
static spill_code_t run_pass(const spill_staged_t *staged, spill_throttle_t *throttle)
{
    const char *original = staged->planned->original.name;
    const spill_migrate_options_t options = {0}, paced = {.throttle = throttle};
    spill_migrate_result_t reshaped = {0};
    spill_catch_up_result_t result = {0};
    spill_array_t *array;
    spill_error_t error;
    assert_int_equal(spill_staged_begin(staged, &error), SPILL_OK);
    assert_int_equal(spill_array_open(staged->store, original, &array, &error), SPILL_OK);
    assert_int_equal(spill_migrate(array, &options, &reshaped, &error), SPILL_OK);
    spill_array_close(array);
    return spill_catch_up(staged->store, original, staged->planned->definition.name,
                          throttle ? &paced : &options, &result, &error);
}

static bool has_late_indexes(fixture_t *fixture)
{
    bool page = has_index_in(fixture, "goodsReviews", "spillway_page", "\"createdAt\" : -1");
    bool rank = has_index_in(fixture, "goodsReviews", "spillway_rank", "\"rating\" : -1");
    assert_true(has_index_in(fixture, "goodsReviews", "spillway_first", "\"spill.first\" : 1"));
    assert_int_equal(page, rank);
    return page;
}

static bool is_cancelled(void *context)
{
    (void)context;
    return true;
}

static void drop_late_indexes(fixture_t *fixture)
{
    mongoc_collection_t *reviews =
        mongoc_database_get_collection(fixture->database, "goodsReviews");
    assert_true(mongoc_collection_drop_index(reviews, "spillway_page", NULL));
    assert_true(mongoc_collection_drop_index(reviews, "spillway_rank", NULL));
    mongoc_collection_destroy(reviews);
}

/*
 * The copy needs only spillway_first. A pass that is cancelled leaves the other indexes to the next
 * one. A finished migration has all, even if no pass has made them.
 */
static void a_migration_makes_indexes_after_the_copy(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_copy_result_t finished = {0};
    spill_error_t error;
    fixture_open(&fixture);
    const spill_planned_t planned = plan_subset(&fixture);
    const spill_staged_t staged = {.store = fixture.store, .uri = fixture.uri, .planned = &planned};
    const spill_migrate_options_t options = {0};
    const spill_throttle_options_t stops = {.stop = is_cancelled};
    spill_throttle_t throttle;
    spill_throttle_init(&throttle, &stops);
    assert_int_equal(run_pass(&staged, &throttle), SPILL_CANCELLED);
    assert_false(has_late_indexes(&fixture));
    assert_int_equal(run_pass(&staged, NULL), SPILL_OK);
    assert_true(has_late_indexes(&fixture));
    drop_late_indexes(&fixture);
    assert_int_equal(spill_staged_finish(&staged, &options, &finished, &error), SPILL_OK);
    assert_true(has_late_indexes(&fixture));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_follow_a_changed_owner_field),
        cmocka_unit_test(indexes_follow_a_new_definition_after_a_drop),
        cmocka_unit_test(application_indexes_are_kept),
        cmocka_unit_test(element_ids_have_an_index),
        cmocka_unit_test(a_migration_makes_indexes_after_the_copy),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
