/*
 * Operations of sessions through the public API on a server: threads that combine their appends,
 * each of them sent twice; and update operators that only a server knows.
 */
#include "support/document.h"
#include "support/server.h"

#include <spillway/spillway.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 8, APPENDS = 20 };

typedef struct fixture {
    char *uri;
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
} fixture_t;

static int open_fixture(void **state)
{
    fixture_t *fixture = bson_malloc0(sizeof *fixture);
    spill_definition_t definition;
    fixture->uri = server_new_database(NULL);
    fixture->store = server_open(fixture->uri);
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "feed", NULL), SPILL_OK);
    definition.bounds.threshold = 20;
    definition.bounds.page_capacity = 10;
    assert_int_equal(spill_store_define(fixture->store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, NULL), SPILL_OK);
    bson_init(&fixture->storage);
    fixture->owner = spill_value_from_utf8(&fixture->storage, "ada");
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    fixture_t *fixture = *state;
    spill_array_close(fixture->array);
    server_close(fixture->store);
    server_drop(fixture->uri);
    bson_destroy(&fixture->storage);
    bson_free(fixture->uri);
    bson_free(fixture);
    return 0;
}

typedef struct writer {
    fixture_t *fixture;
    pthread_t thread;
    uint8_t number;
    int failed, repeated;
} writer_t;

/* Append each number twice, as a driver that did not get the answer. */
static void *write_twice(void *context)
{
    writer_t *writer = context;
    fixture_t *fixture = writer->fixture;
    bson_t any = BSON_INITIALIZER;
    for (int i = 0; i < 2 * APPENDS; i++) {
        int64_t number = 1000 * writer->number + i / 2;
        spill_value_t value = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
        spill_session_op_t op = {.session = {writer->number}, .txn = i / 4, .number = i / 2 % 2};
        spill_append_options_t options;
        spill_append_result_t result;
        spill_append_options_init(&options);
        options.session = &op;
        options.match = &any;
        spill_code_t code =
            spill_array_append(fixture->array, &fixture->owner, &value, 1, &options, &result, NULL);
        writer->failed += code != SPILL_OK;
        writer->repeated += result.repeated;
    }
    bson_destroy(&any);
    return NULL;
}

static bool note_number(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int *seen = context;
    int64_t number;
    (void)owner;
    memcpy(&number, element->value.data, sizeof number);
    if (number >= 0)
        seen[number / 1000 * APPENDS + number % 1000]++;
    return true;
}

static void appends_of_threads_are_applied_once(void **state)
{
    fixture_t *fixture = *state;
    writer_t writers[THREADS];
    int seen[THREADS * APPENDS] = {0};
    int64_t first = -1;
    spill_value_t value = {(const uint8_t *)&first, sizeof first, BSON_TYPE_INT64};
    assert_int_equal(
        spill_array_append(fixture->array, &fixture->owner, &value, 1, NULL, NULL, NULL), SPILL_OK);
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (writer_t){.fixture = fixture, .number = (uint8_t)i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_twice, &writers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(writers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(writers[i].failed, 0);
        assert_int_equal(writers[i].repeated, APPENDS);
    }
    assert_int_equal(spill_array_export(fixture->array, &fixture->owner, note_number, seen, NULL),
                     SPILL_OK);
    for (int i = 0; i < THREADS * APPENDS; i++)
        assert_int_equal(seen[i], 1);
}

static void server_has_more_operators(void **state)
{
    fixture_t *fixture = *state;
    int64_t number = 7;
    spill_value_t value = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
    spill_session_op_t op = {.session = {1}, .txn = 1};
    spill_append_options_t options;
    spill_error_t error;
    bson_t *first =
        document_from_json("{\"$set\": {\"a\": 3, \"b\": 1}, \"$push\": {\"tags\": \"x\"}}");
    bson_t *second = document_from_json("{\"$mul\": {\"a\": 2}, \"$rename\": {\"b\": \"c\"}, "
                                        "\"$push\": {\"tags\": {\"$each\": [\"y\", \"z\"]}}, "
                                        "\"$currentDate\": {\"at\": true}}");
    bson_t *own = document_from_json("{\"$rename\": {\"a\": \"activities\"}}");
    bson_t *match =
        document_from_json("{\"$or\": [{\"a\": 6, \"c\": 1, \"tags\": {\"$size\": 3}}], "
                           "\"at\": {\"$exists\": true}, \"$expr\": {\"$lt\": [\"$a\", 7]}}");
    spill_append_options_init(&options);
    options.update = first;
    assert_int_equal(
        spill_array_append(fixture->array, &fixture->owner, &value, 1, &options, NULL, &error),
        SPILL_OK);
    options.update = second;
    options.session = &op;
    assert_int_equal(
        spill_array_append(fixture->array, &fixture->owner, &value, 1, &options, NULL, &error),
        SPILL_OK);
    options.update = own;
    assert_int_equal(
        spill_array_append(fixture->array, &fixture->owner, &value, 1, &options, NULL, &error),
        SPILL_INVALID);
    options.update = NULL;
    options.match = match;
    op.txn = 2;
    assert_int_equal(
        spill_array_append(fixture->array, &fixture->owner, &value, 1, &options, NULL, &error),
        SPILL_OK);
    bson_destroy(first);
    bson_destroy(second);
    bson_destroy(own);
    bson_destroy(match);
}

int main(void)
{
    server_uri();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appends_of_threads_are_applied_once, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(server_has_more_operators, open_fixture, close_fixture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
