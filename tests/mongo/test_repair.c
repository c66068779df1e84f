/* On a server, repair completes what killed clients left unfinished. */
#include "support/corrupted.h"
#include "support/findings.h"
#include "support/half_done.h"
#include "support/miscounted.h"
#include "support/server.h"

#include <spillway/bucket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void server(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    half_done_repaired(store);
    corrupted_summaries_fixed(store);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

static void counts(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    miscounted_fixed(store);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

static void require_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static spill_array_t *open_reviews(spill_store_t *store, const char *preset,
                                   spill_definition_t *definition)
{
    spill_error_t error;
    spill_array_t *array;
    require_ok(spill_definition_preset(definition, preset, "reviews", &error), &error);
    require_ok(spill_store_define(store, definition, &error), &error);
    require_ok(spill_array_open(store, "reviews", &array, &error), &error);
    return array;
}

static void expect_findings(spill_array_t *array, int64_t expected)
{
    spill_verify_summary_t verified;
    spill_error_t error;
    require_ok(spill_array_verify(array, NULL, NULL, NULL, &verified, &error), &error);
    assert_int_equal(verified.findings, expected);
}

/* Remove the last element of a summary, as a program without Spillway might. */
static void change_summary(const char *uri)
{
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    mongoc_collection_t *products = mongoc_database_get_collection(database, "products");
    bson_error_t error;
    bson_t *filter = BCON_NEW("_id", "bike");
    bson_t *update = BCON_NEW("$pop", "{", "reviewSummary.topReviews", BCON_INT32(1), "}", "$set",
                              "{", "reviewSummary.averageRating", BCON_DOUBLE(99), "}");
    assert_true(mongoc_collection_update_one(products, filter, update, NULL, NULL, &error));
    bson_destroy(filter);
    bson_destroy(update);
    mongoc_collection_destroy(products);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}

static void summary_changed_by_other_programs(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array = open_reviews(store, "reviews-subset", &definition);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "bike");
    for (int rating = 1; rating <= 4; rating++) {
        spill_append_result_t result;
        bson_t *review = BCON_NEW("rating", BCON_INT32(rating));
        spill_value_t element = spill_value_from_document(review);
        require_ok(spill_array_append(array, &owner, &element, 1, NULL, &result, &error), &error);
        bson_destroy(review);
    }
    change_summary(uri);
    spill_repair_summary_t repaired;
    expect_findings(array, 1);
    require_ok(spill_array_repair(array, NULL, false, NULL, NULL, &repaired, &error), &error);
    assert_int_equal(repaired.findings, 1);
    expect_findings(array, 0);
    spill_slice_t *slice;
    require_ok(spill_array_top(array, &owner, 9, &slice, &error), &error);
    assert_int_equal(slice->count, definition.top_count);
    spill_slice_free(slice);
    spill_array_close(array);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
    bson_destroy(&storage);
}

/* Change the window statistics, as a program without Spillway might. */
static void change_statistics(const char *uri)
{
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    mongoc_collection_t *buckets = mongoc_database_get_collection(database, "reviewBuckets");
    bson_t all = BSON_INITIALIZER;
    bson_error_t error;
    bson_t *update = BCON_NEW("$set", "{", "spill.tally.values", BCON_INT64(99), "stats.count",
                              BCON_INT32(99), "}");
    assert_true(mongoc_collection_update_many(buckets, &all, update, NULL, NULL, &error));
    bson_destroy(update);
    mongoc_collection_destroy(buckets);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}

static int64_t count_in_statistics(const char *uri)
{
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    mongoc_collection_t *buckets = mongoc_database_get_collection(database, "reviewBuckets");
    bson_t all = BSON_INITIALIZER;
    const bson_t *bucket;
    bson_iter_t iter, count;
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(buckets, &all, NULL, NULL);
    assert_true(mongoc_cursor_next(cursor, &bucket));
    assert_true(bson_iter_init(&iter, bucket) &&
                bson_iter_find_descendant(&iter, "stats.count", &count));
    int64_t number = bson_iter_as_int64(&count);
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(buckets);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    return number;
}

static void statistics_changed_by_other_programs(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array = open_reviews(store, "reviews-bucket", &definition);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "bike");
    for (int rating = 1; rating <= 4; rating++) {
        size_t windows;
        bson_t *review = BCON_NEW("rating", BCON_INT32(rating), definition.time_field,
                                  BCON_DATE_TIME(INT64_C(1700000000000)));
        spill_value_t element = spill_value_from_document(review);
        require_ok(spill_bucket_append(array, &owner, &element, 1, NULL, NULL, &windows, &error),
                   &error);
        bson_destroy(review);
    }
    change_statistics(uri);
    spill_repair_summary_t repaired;
    expect_findings(array, 1);
    require_ok(spill_array_repair(array, NULL, true, NULL, NULL, &repaired, &error), &error);
    assert_int_equal(repaired.findings, 1);
    assert_int_equal(count_in_statistics(uri), 99);
    require_ok(spill_array_repair(array, NULL, false, NULL, NULL, &repaired, &error), &error);
    assert_int_equal(repaired.findings, 1);
    assert_int_equal(repaired.left, 0);
    assert_int_equal(count_in_statistics(uri), 4);
    expect_findings(array, 0);
    spill_array_close(array);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
    bson_destroy(&storage);
}

/* ---- documents that other programs delete ---------------------------------------------------- */

static int64_t pages_of(mongoc_database_t *database)
{
    mongoc_collection_t *pages = mongoc_database_get_collection(database, "overflowActivities");
    bson_t all = BSON_INITIALIZER;
    bson_error_t error;
    int64_t count = mongoc_collection_count_documents(pages, &all, NULL, NULL, NULL, &error);
    bson_destroy(&all);
    mongoc_collection_destroy(pages);
    return count;
}

/* Make an owner of 9 elements. Some of them are in pages. */
static void make_owner(spill_array_t *array, const char *owner)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    for (int i = 0; i < 9; i++) {
        bson_t number = BSON_INITIALIZER;
        spill_value_t element = spill_value_from_int64(&number, i);
        spill_append_result_t result;
        spill_error_t error;
        require_ok(spill_array_append(array, &name, &element, 1, NULL, &result, &error), &error);
        bson_destroy(&number);
    }
    bson_destroy(&storage);
}

/* Replace the owner's document by `with`, or delete it if `with` is NULL. */
static void replace_or_delete_document(mongoc_database_t *database, const char *owner,
                                       const bson_t *with)
{
    mongoc_collection_t *users = mongoc_database_get_collection(database, "users");
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(owner));
    bson_error_t error;
    if (with)
        assert_true(mongoc_collection_replace_one(users, filter, with, NULL, NULL, &error));
    else
        assert_true(mongoc_collection_delete_one(users, filter, NULL, NULL, &error));
    bson_destroy(filter);
    mongoc_collection_destroy(users);
}

typedef struct reported {
    int count;
    bool unknown; /* every finding says that another program deleted or replaced the head */
} reported_t;

static void count_finding(void *context, const spill_finding_t *finding)
{
    reported_t *reported = context;
    reported->count++;
    reported->unknown = reported->unknown && finding->invariant == 7 &&
                        (strstr(finding->text, "no document has the owner's _id") ||
                         strstr(finding->text, "another program replaced the document"));
}

/* Verify and repair each report `count` findings that repair cannot fix, and delete nothing. */
static void assert_left(spill_array_t *array, const spill_value_t *owner, int count)
{
    spill_verify_summary_t verified;
    spill_repair_summary_t repaired;
    spill_error_t error;
    reported_t reported = {.unknown = true};
    require_ok(spill_array_verify(array, owner, count_finding, &reported, &verified, &error),
               &error);
    assert_int_equal(verified.findings, count);
    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        require_ok(
            spill_array_repair(array, owner, dry_run, count_finding, &reported, &repaired, &error),
            &error);
        assert_int_equal(repaired.findings, 0);
        assert_int_equal(repaired.left, count);
    }
    assert_int_equal(reported.count, 3 * count);
    assert_true(reported.unknown);
}

/* A feed with small pages, and a driver's client that writes to its documents. */
typedef struct stage {
    char *uri;
    spill_store_t *store;
    spill_array_t *array;
    mongoc_client_t *client;
    mongoc_database_t *database;
} stage_t;

static void open_stage(stage_t *stage)
{
    spill_definition_t definition;
    spill_error_t error;
    stage->uri = server_new_database(NULL);
    stage->store = server_open(stage->uri);
    stage->client = server_client(stage->uri, &stage->database);
    require_ok(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 2;
    require_ok(spill_store_define(stage->store, &definition, &error), &error);
    require_ok(spill_array_open(stage->store, "feed", &stage->array, &error), &error);
}

static void close_stage(stage_t *stage)
{
    mongoc_database_destroy(stage->database);
    mongoc_client_destroy(stage->client);
    spill_array_close(stage->array);
    server_close(stage->store);
    server_drop(stage->uri);
    bson_free(stage->uri);
}

static void pages_of_replaced_documents_stay(void **state)
{
    (void)state;
    stage_t stage;
    spill_error_t error;
    open_stage(&stage);
    spill_array_t *array = stage.array;
    mongoc_database_t *database = stage.database;
    static const char *const owners[] = {"deleted", "replaced", "with an array", "sound"};
    for (int i = 0; i < 4; i++)
        make_owner(array, owners[i]);
    bson_t *plain = BCON_NEW("name", "Ada"),
           *list = BCON_NEW("activities", "[", BCON_INT32(7), BCON_INT32(8), "]");
    replace_or_delete_document(database, owners[0], NULL);
    replace_or_delete_document(database, owners[1], plain);
    replace_or_delete_document(database, owners[2], list);
    int64_t pages = pages_of(database);
    assert_left(array, NULL, 3);
    for (int i = 0; i < 4; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner = spill_value_from_utf8(&storage, owners[i]);
        assert_left(array, &owner, i < 3);
        bson_destroy(&storage);
    }
    make_owner(array, "replaced"); /* created again; its pages have the places of the old pages */
    assert_left(array, NULL, 2);
    assert_int_equal(pages_of(database), pages);
    for (int i = 0; i < 4; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner = spill_value_from_utf8(&storage, owners[i]);
        require_ok(spill_array_drop_owner(array, &owner, &error), &error);
        bson_destroy(&storage);
    }
    assert_left(array, NULL, 0);
    assert_int_equal(pages_of(database), 0);
    bson_destroy(plain);
    bson_destroy(list);
    close_stage(&stage);
}

/* ---- pages that other programs change -------------------------------------------------------- */

static void change_page(mongoc_database_t *database, const char *owner, int page,
                        const bson_t *update)
{
    mongoc_collection_t *pages = mongoc_database_get_collection(database, "overflowActivities");
    bson_t *filter = BCON_NEW("_id.owner", BCON_UTF8(owner), "_id.page", BCON_INT64(page));
    bson_error_t error;
    bson_t reply;
    bson_iter_t iter;
    assert_true(mongoc_collection_update_one(pages, filter, update, NULL, &reply, &error));
    assert_true(bson_iter_init_find(&iter, &reply, "modifiedCount"));
    assert_int_equal(bson_iter_as_int64(&iter), 1);
    bson_destroy(&reply);
    bson_destroy(filter);
    mongoc_collection_destroy(pages);
}

/* Repair drops numbers outside a page's range, but cannot know which element is extra or missing.
 */
static void pages_changed_by_other_programs(void **state)
{
    (void)state;
    stage_t stage;
    spill_repair_summary_t repaired;
    spill_error_t error;
    open_stage(&stage);
    spill_array_t *array = stage.array;
    mongoc_database_t *database = stage.database;
    make_owner(array, "ada");
    bson_t *deleted =
               BCON_NEW("$set", "{", "spill.gone", "[", BCON_INT64(4), BCON_INT64(90), "]", "}"),
           *push = BCON_NEW("$push", "{", "activities", BCON_INT64(77), "}"),
           *pop = BCON_NEW("$pop", "{", "activities", BCON_INT32(1), "}");
    change_page(database, "ada", 1, deleted);
    const char *found = "I4@1: counts 2 elements, in [2, 6), where its elements are in [2, 4)\n";
    assert_repaired(array, found, found, 1);
    change_page(database, "ada", 1, push);
    require_ok(spill_array_repair(array, NULL, false, NULL, NULL, &repaired, &error), &error);
    assert_int_equal(repaired.findings, 0);
    assert_true(repaired.left > 0);
    findings_t findings;
    findings_of_repair(array, false, &findings);
    assert_non_null(strstr(findings.text, "I4@2: starts at 4, before the end 5 of the one before"));
    change_page(database, "ada", 1, pop);
    assert_verified(array, "");
    bson_destroy(deleted);
    bson_destroy(push);
    bson_destroy(pop);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(server),
                                       cmocka_unit_test(counts),
                                       cmocka_unit_test(statistics_changed_by_other_programs),
                                       cmocka_unit_test(summary_changed_by_other_programs),
                                       cmocka_unit_test(pages_of_replaced_documents_stay),
                                       cmocka_unit_test(pages_changed_by_other_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
