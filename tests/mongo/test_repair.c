/* Repair finishes what dead clients left, on a server. */
#include "support/half_done.h"
#include "support/server.h"
#include "support/spoiled.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void server(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    half_done_repaired(store);
    spoiled_summaries_mended(store);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* Take the last element out of a summary, as a program might that knows nothing of Spillway. */
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

static void summary_of_others(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "bike");
    must(spill_definition_preset(&definition, "reviews-subset", "reviews", &error), &error);
    must(spill_store_define(store, &definition, &error), &error);
    must(spill_array_open(store, "reviews", &array, &error), &error);
    for (int rating = 1; rating <= 4; rating++) {
        spill_append_result_t result;
        bson_t *review = BCON_NEW("rating", BCON_INT32(rating));
        spill_value_t element = spill_value_from_document(review);
        must(spill_array_append(array, &owner, &element, 1, NULL, &result, &error), &error);
        bson_destroy(review);
    }
    change_summary(uri);
    spill_verify_summary_t verified;
    spill_repair_summary_t repaired;
    must(spill_array_verify(array, NULL, NULL, NULL, &verified, &error), &error);
    assert_int_equal(verified.findings, 1);
    must(spill_array_repair(array, NULL, false, NULL, NULL, &repaired, &error), &error);
    assert_int_equal(repaired.findings, 1);
    must(spill_array_verify(array, NULL, NULL, NULL, &verified, &error), &error);
    assert_int_equal(verified.findings, 0);
    spill_slice_t *slice;
    must(spill_array_top(array, &owner, 9, &slice, &error), &error);
    assert_int_equal(slice->count, definition.top_count);
    spill_slice_free(slice);
    spill_array_close(array);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
    bson_destroy(&storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(server),
                                       cmocka_unit_test(summary_of_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
