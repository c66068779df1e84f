/* Appends to a set that the store refuses, though no element has the id. */
#include "bson/element_fields.h"
#include "core/array.h"
#include "support/model_store.h"
#include "support/tampered.h"

#include "store/request.h"
#include "util/error.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A server whose collection has a collation: "Bob" of the head equals "bob". */
static const spill_store_ops_t *model;
static spill_store_ops_t collated;
static int searches;

static spill_code_t refuse_searched(spill_store_t *store, const spill_request_t *request,
                                    spill_response_t *response, spill_error_t *error)
{
    spill_code_t code;
    const spill_value_t bob = {
        .data = (const uint8_t *)"\4\0\0\0bob", .size_bytes = 8, .type = BSON_TYPE_UTF8};
    bool refuses = request->kind == SPILL_REQUEST_APPEND && request->append.searched &&
                   spill_request_has_id_of(request, &bob);
    searches += request->kind == SPILL_REQUEST_READ;
    if (!refuses)
        return model->call(store, request, response, error);
    const spill_request_t read = spill_request_reading(request);
    code = model->call(store, &read, response, error);
    response->outcome = SPILL_REFUSED_GUARD;
    return code;
}

static void never_sleep(void *context, int64_t us)
{
    (void)context;
    (void)us;
}

static void collation_ends_in_a_conflict(void **state)
{
    (void)state;
    spill_store_t *store = model_store_open();
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    spill_append_result_t result;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "tom");
    bson_t names[2] = {BSON_INITIALIZER, BSON_INITIALIZER};
    spill_value_t ids[2] = {spill_value_from_utf8(&names[0], "Bob"),
                            spill_value_from_utf8(&names[1], "bob")};
    model = store->ops;
    collated = *model;
    collated.call = refuse_searched;
    collated.others_write = true;
    store->ops = &collated;
    store->options.clock.sleep_us = never_sleep;
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "feed", &error), SPILL_OK);
    strcpy(definition.id_field, ".");
    definition.unique = true;
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &array, &error), SPILL_OK);
    assert_int_equal(spill_array_append(array, &owner, &ids[0], 1, NULL, &result, &error),
                     SPILL_OK);
    searches = 0;
    assert_int_equal(spill_array_append(array, &owner, &ids[1], 1, NULL, &result, &error),
                     SPILL_CONFLICT);
    assert_non_null(strstr(error.message, "perhaps collection 'users' has a collation"));
    assert_in_range(searches, 100, 250); /* it is not a race: it gives up early */
    assert_int_equal(spill_array_append(array, &owner, &ids[0], 1, NULL, &result, &error),
                     SPILL_OK);
    assert_int_equal(result.duplicates, 1);
    spill_array_close(array);
    store->ops = model;
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    bson_destroy(&storage);
    bson_destroy(&names[0]);
    bson_destroy(&names[1]);
}

/* An embedded store whose index has an id that no element has. */
static void stale_index_ends_in_a_conflict(void **state)
{
    (void)state;
    tampered_t feed;
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    const int64_t number = 777;
    const spill_value_t id = {
        .data = (const uint8_t *)&number, .size_bytes = sizeof number, .type = BSON_TYPE_INT64};
    spill_value_t ada = spill_value_from_utf8(&storage, "ada");
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    tampered_open(&feed, SPILL_KEEP_NEWEST);
    feed.array->definition.unique = true;
    strcpy(feed.array->definition.id_field, ".");
    assert_int_equal(spill_owner_init(&owner, feed.array, &ada, &error), SPILL_OK);
    assert_int_equal(spill_owner_read_state(&owner, SPILL_HEAD, &head, &error), SPILL_OK);
    assert_int_equal(spill_element_id_key(&id, true, &key, &error), SPILL_OK);
    spill_record_key_id(&feed.key, head.state.incarnation, &key, 900);
    tampered_put(&feed, "", 0);
    feed.store->options.clock.sleep_us = never_sleep;
    assert_int_equal(spill_array_append(feed.array, &ada, &id, 1, NULL, NULL, &error),
                     SPILL_CONFLICT);
    assert_non_null(strstr(error.message, "the index of ids has an id that no element has"));
    spill_buffer_release(&key);
    spill_response_release(&head);
    bson_destroy(&storage);
    tampered_close(&feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collation_ends_in_a_conflict),
        cmocka_unit_test(stale_index_ends_in_a_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
