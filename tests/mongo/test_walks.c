/*
 * Work on all owners reads the heads of several owners with one command, and shows each owner in a
 * state that is no older than what this store has acknowledged.
 */
#include "core/half_done.h"
#include "support/proxy.h"
#include "support/server.h"

#include <spillway/spillway.h>
#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 300, TRIPS_MAX = 60 };

typedef struct walked {
    proxy_t *proxy;
    char *uri; /* of the server itself */
    spill_store_t *store;
    spill_array_t *array;
    int visited;
    int added;   /* elements that the walk itself has appended */
    int changed; /* the owner that it appends to next */
} walked_t;

static void append_to(const walked_t *walked, int number)
{
    char name[16];
    bson_t storage = BSON_INITIALIZER;
    spill_append_result_t result;
    spill_error_t error;
    snprintf(name, sizeof name, "o%04d", number);
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    assert_int_equal(spill_array_append(walked->array, &owner, &owner, 1, NULL, &result, &error),
                     SPILL_OK);
    bson_destroy(&storage);
}

static int set_up(void **state)
{
    walked_t *walked = bson_malloc0(sizeof *walked);
    spill_definition_t definition;
    spill_error_t error;
    walked->proxy = proxy_start(server_uri());
    walked->uri = server_new_database(NULL);
    char *through = proxy_uri(walked->proxy, walked->uri);
    walked->store = server_open(through);
    bson_free(through);
    spill_definition_init(&definition, "feed");
    snprintf(definition.collection, SPILL_NAME_SIZE, "heads");
    assert_int_equal(spill_store_define(walked->store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(walked->store, "feed", &walked->array, &error), SPILL_OK);
    for (int i = 0; i < OWNERS; i++)
        append_to(walked, i);
    *state = walked;
    return 0;
}

static int tear_down(void **state)
{
    walked_t *walked = *state;
    spill_array_close(walked->array);
    server_close(walked->store);
    proxy_stop(walked->proxy);
    server_drop(walked->uri);
    bson_free(walked->uri);
    bson_free(walked);
    return 0;
}

static bool count_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    walked_t *walked = context;
    (void)owner;
    (void)element;
    walked->visited++;
    return true;
}

static void test_heads_are_read_together(void **state)
{
    walked_t *walked = *state;
    spill_error_t error;
    int64_t before = proxy_counts(walked->proxy).requests;
    assert_int_equal(spill_array_export(walked->array, NULL, count_element, walked, &error),
                     SPILL_OK);
    assert_int_equal(walked->visited, OWNERS);
    assert_in_range(proxy_counts(walked->proxy).requests - before, 1, TRIPS_MAX);
}

/* The pages behind the ones that a head counts are read together, too. */
static void test_verify_reads_heads_together(void **state)
{
    walked_t *walked = *state;
    spill_verify_summary_t summary;
    spill_error_t error;
    int64_t before = proxy_counts(walked->proxy).requests;
    assert_int_equal(spill_array_verify(walked->array, NULL, NULL, NULL, &summary, &error),
                     SPILL_OK);
    assert_int_equal(summary.owners, OWNERS);
    assert_int_equal(summary.findings, 0);
    assert_in_range(proxy_counts(walked->proxy).requests - before, 1, TRIPS_MAX);
}

static void note_half_done(void *context, const spill_finding_t *finding)
{
    (void)finding;
    ++*(int *)context;
}

/*
 * `status --owners` reads the heads' states together, and no element. A repair that only looks
 * reads all elements.
 */
static void test_half_done_steps_are_found_without_elements(void **state)
{
    walked_t *walked = *state;
    char text[4000];
    bson_t storage = BSON_INITIALIZER;
    spill_error_t error;
    int found = 0;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    spill_value_t element = spill_value_from_utf8(&storage, text);
    for (int i = 0; i < OWNERS; i++) {
        char name[16];
        bson_t named = BSON_INITIALIZER;
        spill_append_result_t result;
        snprintf(name, sizeof name, "o%04d", i);
        spill_value_t owner = spill_value_from_utf8(&named, name);
        assert_int_equal(
            spill_array_append(walked->array, &owner, &element, 1, NULL, &result, &error),
            SPILL_OK);
        bson_destroy(&named);
    }
    int64_t requests = proxy_counts(walked->proxy).requests,
            bytes = proxy_counts(walked->proxy).reply_bytes;
    assert_int_equal(spill_find_half_done(walked->array, note_half_done, &found, &error), SPILL_OK);
    assert_int_equal(found, 0);
    assert_in_range(proxy_counts(walked->proxy).requests - requests, 1, TRIPS_MAX / 2);
    assert_in_range(proxy_counts(walked->proxy).reply_bytes - bytes, 1, OWNERS * 1000);
    bytes = proxy_counts(walked->proxy).reply_bytes;
    assert_int_equal(
        spill_array_repair(walked->array, NULL, true, note_half_done, &found, NULL, &error),
        SPILL_OK);
    assert_true(proxy_counts(walked->proxy).reply_bytes - bytes > OWNERS * (int64_t)sizeof text);
    bson_destroy(&storage);
}

/* At each owner's first element, append to an owner that the walk visits later. */
static bool append_behind(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    walked_t *walked = context;
    (void)owner;
    walked->visited++;
    if (element->seq == 0 && walked->changed < OWNERS) {
        append_to(walked, walked->changed++);
        walked->added++;
    }
    return true;
}

/* The heads of these owners have been fetched before. */
static void test_own_changes_are_seen(void **state)
{
    walked_t *walked = *state;
    spill_error_t error;
    walked->changed = 1;
    assert_int_equal(spill_array_export(walked->array, NULL, append_behind, walked, &error),
                     SPILL_OK);
    assert_int_equal(walked->added, OWNERS - 1);
    assert_int_equal(walked->visited, OWNERS + walked->added);
}

/* Another client deletes a head that was listed, before it is fetched: the walk skips the owner. */
static bool delete_behind(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    walked_t *walked = context;
    (void)owner;
    (void)element;
    if (walked->visited++ > 0)
        return true;
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(walked->uri, &database);
    mongoc_collection_t *heads = mongoc_database_get_collection(database, "heads");
    bson_t *last = BCON_NEW("_id", "o0250");
    bson_error_t error;
    assert_true(mongoc_collection_delete_one(heads, last, NULL, NULL, &error));
    bson_destroy(last);
    mongoc_collection_destroy(heads);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    return true;
}

static void test_deleted_heads_are_skipped(void **state)
{
    walked_t *walked = *state;
    spill_error_t error;
    assert_int_equal(spill_array_export(walked->array, NULL, delete_behind, walked, &error),
                     SPILL_OK);
    assert_int_equal(walked->visited, OWNERS - 1);
}

/* ---- runs of referenced elements ------------------------------------------------------------- */

/* More than one answer of 16 MB holds. */
enum { LARGE = 18, LARGE_BYTES = 1000000 };

static void append_large(spill_array_t *array, const spill_value_t *owner)
{
    char *text = bson_malloc(LARGE_BYTES + 1);
    memset(text, 'x', LARGE_BYTES);
    text[LARGE_BYTES] = '\0';
    for (int i = 0; i < LARGE; i++) {
        bson_t *document = BCON_NEW("i", BCON_INT32(i), "text", BCON_UTF8(text));
        spill_value_t element = spill_value_from_document(document);
        spill_append_result_t result;
        spill_error_t error;
        assert_int_equal(spill_array_append(array, owner, &element, 1, NULL, &result, &error),
                         SPILL_OK);
        bson_destroy(document);
    }
    bson_free(text);
}

/* The elements are numbered without a gap. */
static bool expect_next(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int64_t *next = context;
    (void)owner;
    assert_int_equal(element->seq, *next);
    assert_true(element->value.size_bytes > LARGE_BYTES);
    ++*next;
    return true;
}

static void test_run_is_larger_than_an_answer(void **state)
{
    walked_t *walked = *state;
    spill_definition_t definition;
    spill_array_t *array;
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    int64_t next = 0;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    assert_int_equal(spill_definition_preset(&definition, "reviews-separate", "large", &error),
                     SPILL_OK);
    snprintf(definition.collection, SPILL_NAME_SIZE, "largeHeads");
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "largeElements");
    assert_int_equal(spill_store_define(walked->store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(walked->store, "large", &array, &error), SPILL_OK);
    append_large(array, &owner);
    assert_int_equal(spill_array_export(array, &owner, expect_next, &next, &error), SPILL_OK);
    assert_int_equal(next, LARGE);
    spill_read_options_init(&options);
    options.limit = LARGE + 2;
    assert_int_equal(spill_array_read(array, &owner, &options, &slice, &error), SPILL_OK);
    assert_int_equal(slice->count, LARGE);
    for (int i = 0; i < LARGE; i++)
        assert_int_equal(slice->elements[i].seq, LARGE - 1 - i);
    spill_slice_free(slice);
    spill_array_close(array);
    bson_destroy(&storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heads_are_read_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_verify_reads_heads_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_half_done_steps_are_found_without_elements, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_run_is_larger_than_an_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_own_changes_are_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_deleted_heads_are_skipped, set_up, tear_down),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
