/*
 * Appends while other programs write: a second client of the library, and programs that update the
 * documents without the library. A store must never rely on what it remembers of a document.
 */
#include "support/server.h"

#include "support/fault_store.h"

#include <spillway/spillway.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Two clients of the library and one of the driver on the same database. */
typedef struct fixture {
    char *uri;
    spill_store_t *stores[2];
    spill_array_t *arrays[2];
    mongoc_client_t *client;
    mongoc_collection_t *heads;
    bson_t storage;
    spill_value_t owner;
    bool edited;
} fixture_t;

enum { EDITED = 777777 };

static void fixture_open_ordered(fixture_t *fixture, int64_t head_bytes, spill_array_order_t order,
                                 spill_layout_t layout)
{
    spill_definition_t definition;
    spill_error_t error;
    mongoc_database_t *database;
    fixture->edited = false;
    fixture->uri = server_new_database(NULL);
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "feed", &error), SPILL_OK);
    definition.order = order;
    definition.bounds.threshold = 4;
    definition.bounds.page_capacity = 16;
    if (head_bytes > 0)
        definition.bounds.head_bytes_max = definition.bounds.page_bytes_max = head_bytes;
    spill_definition_set_layout(&definition, layout);
    definition.op_window = 1;
    for (int i = 0; i < 2; i++) {
        fixture->stores[i] = server_open(fixture->uri);
        if (i == 0)
            assert_int_equal(spill_store_define(fixture->stores[i], &definition, &error), SPILL_OK);
        assert_int_equal(spill_array_open(fixture->stores[i], "feed", &fixture->arrays[i], &error),
                         SPILL_OK);
    }
    fixture->client = server_client(fixture->uri, &database);
    fixture->heads = mongoc_database_get_collection(database, definition.collection);
    mongoc_database_destroy(database);
    bson_init(&fixture->storage);
    fixture->owner = spill_value_from_utf8(&fixture->storage, "ada");
}

static void fixture_open(fixture_t *fixture, int64_t head_bytes)
{
    fixture_open_ordered(fixture, head_bytes, SPILL_ARRAY_OLDEST_FIRST, SPILL_LAYOUT_OUTLIER);
}

static void fixture_close(fixture_t *fixture)
{
    for (int i = 0; i < 2; i++) {
        spill_array_close(fixture->arrays[i]);
        server_close(fixture->stores[i]);
    }
    mongoc_collection_destroy(fixture->heads);
    mongoc_client_destroy(fixture->client);
    bson_destroy(&fixture->storage);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
}

/* Append an element of about 200 bytes through one of the clients. Returns its number. */
static int64_t append(fixture_t *fixture, int client)
{
    spill_append_result_t result;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    char text[200] = {0};
    memset(text, 'x', sizeof text - 1);
    spill_value_t element = spill_value_from_utf8(&storage, text);
    assert_int_equal(spill_array_append(fixture->arrays[client], &fixture->owner, &element, 1, NULL,
                                        &result, &error),
                     SPILL_OK);
    assert_int_equal(result.count, 1);
    bson_destroy(&storage);
    return result.first;
}

static void update_head(fixture_t *fixture, bson_t *update)
{
    bson_t *filter = BCON_NEW("_id", "ada");
    bson_error_t error;
    assert_true(mongoc_collection_update_one(fixture->heads, filter, update, NULL, NULL, &error));
    bson_destroy(filter);
    bson_destroy(update);
}

static void assert_verifies(fixture_t *fixture)
{
    spill_verify_summary_t summary;
    spill_error_t error;
    assert_int_equal(
        spill_array_verify(fixture->arrays[0], &fixture->owner, NULL, NULL, &summary, &error),
        SPILL_OK);
    assert_int_equal(summary.findings, 0);
}

/* Size in bytes of the stored head. */
static uint32_t head_bytes(fixture_t *fixture)
{
    bson_t *filter = BCON_NEW("_id", "ada");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(fixture->heads, filter, NULL, NULL);
    const bson_t *head;
    assert_true(mongoc_cursor_next(cursor, &head));
    uint32_t bytes = head->len;
    mongoc_cursor_destroy(cursor);
    bson_destroy(filter);
    return bytes;
}

static void numbers_follow_another_client(void **state)
{
    (void)state;
    fixture_t fixture;
    fixture_open(&fixture, 0);
    int64_t next = 0;
    for (int i = 0; i < 60; i++) { /* turns of different lengths, over three spills */
        int client = i % 7 < 4 ? 0 : 1;
        assert_int_equal(append(&fixture, client), next);
        next++;
    }
    assert_verifies(&fixture);
    fixture_close(&fixture);
}

static void numbers_follow_a_plain_push(void **state)
{
    (void)state;
    fixture_t fixture;
    fixture_open(&fixture, 0);
    for (int64_t next = 0; next < 12;) {
        assert_int_equal(append(&fixture, 0), next);
        next++;
        assert_int_equal(append(&fixture, 0), next);
        next++;
        update_head(&fixture, BCON_NEW("$push", "{", "activities", BCON_INT64(next), "}"));
        next++;
    }
    assert_int_equal(append(&fixture, 0), 12);
    fixture_close(&fixture);
}

/* The same with arrays that grow at the front: a driver's push must be at position 0. */
static void numbers_follow_a_push_at_the_front(void **state)
{
    (void)state;
    fixture_t fixture;
    fixture_open_ordered(&fixture, 0, SPILL_ARRAY_NEWEST_FIRST, SPILL_LAYOUT_OUTLIER);
    for (int64_t next = 0; next < 12;) {
        assert_int_equal(append(&fixture, 0), next);
        next++;
        assert_int_equal(append(&fixture, 1), next);
        next++;
        update_head(&fixture,
                    BCON_NEW("$push", "{", "activities", "{", "$each", "[", BCON_INT64(next), "]",
                             "$position", BCON_INT32(0), "}", "}"));
        next++;
    }
    for (int64_t next = 12; next < 40; next++) /* spills move the pushed elements too */
        assert_int_equal(append(&fixture, (int)(next % 2)), next);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.limit = 100;
    assert_int_equal(spill_array_read(fixture.arrays[0], &fixture.owner, &options, &slice, &error),
                     SPILL_OK);
    assert_int_equal(slice->count, 40);
    for (size_t i = 0; i < slice->count; i++) {
        const spill_element_t *element = &slice->elements[i];
        assert_int_equal(element->seq, 39 - i);
        bool plain = element->seq < 12 && element->seq % 3 == 2;
        assert_int_equal(element->value.type, plain ? BSON_TYPE_INT64 : BSON_TYPE_UTF8);
        if (plain)
            assert_memory_equal(element->value.data, &element->seq, sizeof element->seq);
    }
    spill_slice_free(slice);
    assert_verifies(&fixture);
    fixture_close(&fixture);
}

static void numbers_follow_a_removal(void **state)
{
    (void)state;
    fixture_t fixture;
    fixture_open(&fixture, 0);
    spill_error_t error;
    for (int64_t next = 0; next < 40; next++) {
        assert_int_equal(append(&fixture, 0), next);
        if (next % 9 == 5)
            assert_int_equal(
                spill_array_remove(fixture.arrays[next % 2], &fixture.owner, next - 1, &error),
                SPILL_OK);
    }
    assert_verifies(&fixture);
    fixture_close(&fixture);
}

/* The bound in bytes also counts the other fields of the head, which other programs write. */
static void other_fields_count_toward_the_bound(void **state)
{
    (void)state;
    enum { HEAD_BYTES = 16384, FIELD_BYTES = 14000 };
    static char text[FIELD_BYTES];
    fixture_t fixture;
    fixture_open(&fixture, HEAD_BYTES);
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(append(&fixture, 0), i);
    update_head(&fixture, BCON_NEW("$set", "{", "story", BCON_UTF8(text), "}"));
    for (int i = 3; i < 40; i++) {
        assert_int_equal(append(&fixture, 0), i);
        assert_in_range(head_bytes(&fixture), FIELD_BYTES, HEAD_BYTES);
    }
    assert_verifies(&fixture);
    fixture_close(&fixture);
}

/* Edit an element with the driver, once: after a later page was copied, and before the cut. */
static void edit_before_cut(void *context, int64_t index, const spill_request_t *request)
{
    fixture_t *fixture = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_CUT || request->cut.pages == 0 ||
        fixture->edited)
        return;
    fixture->edited = true;
    update_head(fixture, BCON_NEW("$set", "{", "activities.1", BCON_INT32(EDITED), "}"));
}

static bool count_edited(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int *count = context;
    int32_t number = 0;
    (void)owner;
    if (element->value.type == BSON_TYPE_INT32)
        memcpy(&number, element->value.data, sizeof number);
    *count += number == EDITED;
    return true;
}

static void an_edit_is_not_lost_by_a_later_cut(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *faulty;
    spill_array_t *first;
    int found = 0;
    fixture_open(&fixture, 0);
    fault_hooks_t hooks = {.context = &fixture, .before = edit_before_cut};
    fault_wrap(fixture.stores[0], &hooks, &faulty);
    ((spill_store_ops_t *)faulty->ops)->others_write = true;
    first = fixture.arrays[0];
    assert_int_equal(spill_array_open(faulty, "feed", &fixture.arrays[0], NULL), SPILL_OK);
    for (int i = 0; i < 60; i++)
        assert_int_equal(append(&fixture, 0), i);
    assert_true(fixture.edited);
    assert_int_equal(spill_array_export(first, &fixture.owner, count_edited, &found, NULL),
                     SPILL_OK);
    assert_int_equal(found, 1);
    spill_array_close(fixture.arrays[0]);
    fixture.arrays[0] = first;
    assert_int_equal(spill_store_close(faulty, NULL), SPILL_OK);
    assert_verifies(&fixture);
    fixture_close(&fixture);
}

/* ---- a read of all documents, while the head changes after each read of it --------------------
 */

enum { EDITS = 15, LENGTH = 60, NEWEST = LENGTH - 1 };

typedef struct edits {
    fixture_t *fixture;
    int made;
} edits_t;

static void edit_after_head(void *context, int64_t index, const spill_request_t *request)
{
    edits_t *edits = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_READ || request->page != SPILL_HEAD ||
        !request->read.spare || edits->made == EDITS)
        return;
    edits->made++;
    assert_int_equal(spill_array_edit(edits->fixture->arrays[1], &edits->fixture->owner, NEWEST,
                                      &edits->fixture->owner, NULL),
                     SPILL_OK);
}

/* The head is read again after the pages, because a removed number leaves room for its elements. */
static void a_read_is_not_misled_by_edits(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *slow;
    spill_array_t *reader;
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    fixture_open(&fixture, 0);
    for (int i = 0; i < LENGTH; i++)
        assert_int_equal(append(&fixture, 0), i);
    assert_int_equal(spill_array_remove(fixture.arrays[0], &fixture.owner, 3, NULL), SPILL_OK);
    edits_t edits = {.fixture = &fixture};
    fault_hooks_t hooks = {.context = &edits, .after = edit_after_head};
    fault_wrap(fixture.stores[0], &hooks, &slow);
    assert_int_equal(spill_array_open(slow, "feed", &reader, NULL), SPILL_OK);
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = LENGTH;
    if (spill_array_read(reader, &fixture.owner, &options, &slice, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(edits.made, EDITS);
    assert_int_equal(slice->count, LENGTH - 1);
    spill_slice_free(slice);
    spill_array_close(reader);
    assert_int_equal(spill_store_close(slow, NULL), SPILL_OK);
    fixture_close(&fixture);
}

/* An append must report a base of the current incarnation, if the owner was dropped meanwhile. */
static void bases_follow_a_drop(void **state)
{
    (void)state;
    enum { APPENDS = 5 };
    fixture_t fixture;
    fixture_open(&fixture, 0);
    spill_append_result_t result = {0};
    spill_append_options_t options;
    spill_error_t error;
    for (int i = 0; i < APPENDS; i++) {
        spill_op_t op = {.id = &"abcdefgh"[i], .id_bytes = 1, .base = result.op_base};
        spill_append_options_init(&options);
        options.op = &op;
        assert_int_equal(spill_array_append(fixture.arrays[0], &fixture.owner, &fixture.owner, 1,
                                            &options, &result, &error),
                         SPILL_OK);
    }
    assert_int_equal(result.op_base, APPENDS);
    assert_int_equal(spill_array_drop_owner(fixture.arrays[1], &fixture.owner, &error), SPILL_OK);
    for (int i = 0; i < APPENDS; i++) /* the array has its old length again */
        assert_int_equal(append(&fixture, 1), i);
    assert_int_equal(spill_array_append(fixture.arrays[0], &fixture.owner, &fixture.owner, 1, NULL,
                                        &result, &error),
                     SPILL_OK);
    assert_int_equal(result.first, APPENDS);
    assert_int_equal(result.op_base, 0);
    fixture_close(&fixture);
}

/* Two threads that use a new owner at the same moment: one creates the head, the other pushes. */
typedef struct meeting {
    fixture_t *fixture;
    pthread_barrier_t barrier;
} meeting_t;

enum { MEETINGS = 200 };

static void *push_each(void *argument)
{
    meeting_t *meeting = argument;
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(meeting->fixture->uri, &database);
    mongoc_collection_t *heads = mongoc_database_get_collection(database, "users");
    bson_t *upsert = BCON_NEW("upsert", BCON_BOOL(true));
    bson_t *push = BCON_NEW("$push", "{", "activities", "pushed", "}");
    for (int64_t i = 0; i < MEETINGS; i++) {
        bson_t *filter = BCON_NEW("_id", BCON_INT64(i));
        bson_error_t error;
        pthread_barrier_wait(&meeting->barrier);
        /* If the other thread inserts the document at that moment, the upsert may be refused. */
        if (!mongoc_collection_update_one(heads, filter, push, upsert, NULL, &error))
            mongoc_collection_update_one(heads, filter, push, NULL, NULL, &error);
        bson_destroy(filter);
    }
    bson_destroy(push);
    bson_destroy(upsert);
    mongoc_collection_destroy(heads);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    return NULL;
}

/* Creating a head does not overwrite a document that another program pushed to. */
static void creating_a_head_keeps_a_concurrent_push(void **state)
{
    (void)state;
    fixture_t fixture;
    fixture_open(&fixture, 0);
    meeting_t meeting = {.fixture = &fixture};
    pthread_t pusher;
    bson_t *fields = BCON_NEW("$set", "{", "name", "n", "}");
    pthread_barrier_init(&meeting.barrier, NULL, 2);
    assert_int_equal(pthread_create(&pusher, NULL, push_each, &meeting), 0);
    for (int64_t i = 0; i < MEETINGS; i++) {
        spill_value_t owner = spill_value_from_int64(&fixture.storage, i);
        spill_error_t error;
        pthread_barrier_wait(&meeting.barrier);
        spill_code_t code = spill_array_update(fixture.arrays[0], &owner, fields, &error);
        assert_true(code == SPILL_OK || code == SPILL_REFUSED);
    }
    pthread_join(pusher, NULL);
    pthread_barrier_destroy(&meeting.barrier);
    bson_t *whole = BCON_NEW("activities", "{", "$eq", "[", "pushed", "]", "}");
    bson_error_t error;
    assert_int_equal(
        mongoc_collection_count_documents(fixture.heads, whole, NULL, NULL, NULL, &error),
        MEETINGS);
    bson_destroy(whole);
    bson_destroy(fields);
    fixture_close(&fixture);
}

/* Two clients and a program without Spillway append to a capped head of 4 elements. */
static void check_capped(spill_array_order_t order)
{
    fixture_t fixture;
    fixture_open_ordered(&fixture, 0, order, SPILL_LAYOUT_CAPPED);
    bool front = order == SPILL_ARRAY_NEWEST_FIRST;
    int64_t next = 0;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(append(&fixture, i % 3 < 2), next++);
        if (i % 7 != 3)
            continue;
        update_head(&fixture,
                    front ? BCON_NEW("$push", "{", "activities", "{", "$each", "[",
                                     BCON_INT64(next), "]", "$position", BCON_INT32(0), "}", "}")
                          : BCON_NEW("$push", "{", "activities", BCON_INT64(next), "}"));
        next++;
        if (i % 2 == 1)
            assert_int_equal(
                spill_array_remove(fixture.arrays[i % 2], &fixture.owner, next - 2, NULL),
                SPILL_OK);
    }
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    assert_int_equal(spill_array_read(fixture.arrays[0], &fixture.owner, &options, &slice, &error),
                     SPILL_OK);
    assert_int_equal(slice->count, 4);
    for (size_t i = 0; i < slice->count; i++)
        assert_int_equal(slice->elements[i].seq, next - 1 - (int64_t)i);
    spill_slice_free(slice);
    assert_verifies(&fixture);
    fixture_close(&fixture);
}

static void numbers_of_a_capped_head(void **state)
{
    (void)state;
    check_capped(SPILL_ARRAY_OLDEST_FIRST);
    check_capped(SPILL_ARRAY_NEWEST_FIRST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_follow_another_client),
        cmocka_unit_test(numbers_follow_a_plain_push),
        cmocka_unit_test(numbers_follow_a_push_at_the_front),
        cmocka_unit_test(numbers_follow_a_removal),
        cmocka_unit_test(bases_follow_a_drop),
        cmocka_unit_test(creating_a_head_keeps_a_concurrent_push),
        cmocka_unit_test(other_fields_count_toward_the_bound),
        cmocka_unit_test(an_edit_is_not_lost_by_a_later_cut),
        cmocka_unit_test(a_read_is_not_misled_by_edits),
        cmocka_unit_test(numbers_of_a_capped_head),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
