/*
 * store/raw_admin.h on a server: reads of documents in the order of _id (of any types), changes
 * with and without conflicts with unique indexes, and creating, renaming and dropping collections.
 */
#include "store/raw_admin.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    char *uri;
    spill_raw_admin_t *admin;
    spill_error_t error;
} fixture_t;

static int open_fixture(void **state)
{
    fixture_t *fixture = bson_malloc0(sizeof *fixture);
    fixture->uri = server_new_database(NULL);
    assert_int_equal(spill_raw_admin_open(fixture->uri, &fixture->admin, &fixture->error),
                     SPILL_OK);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    fixture_t *fixture = *state;
    spill_raw_admin_close(fixture->admin);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
    bson_free(fixture);
    return 0;
}

static void assert_done(const fixture_t *fixture, spill_code_t code)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), fixture->error.message);
}

static void put(fixture_t *fixture, const char *collection, const char *json)
{
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, NULL);
    assert_non_null(document);
    spill_raw_admin_write_t write = {.kind = SPILL_RAW_ADMIN_INSERT, .document = document};
    assert_done(fixture,
                fixture->admin->ops->write(fixture->admin, collection, &write, 1, &fixture->error));
    assert_false(write.duplicate);
    bson_destroy(document);
}

/* The _ids of documents as JSON, read in batches. */
static char *read_all(fixture_t *fixture, const char *collection, const bson_t *filter,
                      int64_t limit)
{
    bson_string_t *text = bson_string_new("");
    bson_t after = BSON_INITIALIZER;
    bool end = false;
    for (int round = 0; !end && round < 100; round++) {
        bson_iter_t iter;
        spill_value_t id;
        spill_raw_admin_batch_t batch;
        spill_raw_admin_read_t what = {
            .collection = collection, .filter = filter, .ids_only = true, .limit = limit};
        if (bson_iter_init(&iter, &after) && bson_iter_next(&iter)) {
            id = spill_value_from_iter(&iter);
            what.after = &id;
        }
        assert_done(fixture,
                    fixture->admin->ops->read(fixture->admin, &what, &batch, &fixture->error));
        end = batch.end;
        for (size_t i = 0; i < batch.count; i++) {
            assert_true(bson_iter_init_find(&iter, batch.documents[i], "_id"));
            id = spill_value_from_iter(&iter);
            char *json = spill_value_to_json(&id, false);
            bson_string_append_printf(text, "%s;", json);
            bson_free(json);
            bson_reinit(&after);
            spill_value_append(&id, &after, "");
        }
        spill_raw_admin_batch_release(&batch);
    }
    assert_true(end);
    bson_destroy(&after);
    return bson_string_free(text, false);
}

/* Whatever the chunks are, each document comes once, in one order. */
static void test_reads_in_order(void **state)
{
    fixture_t *fixture = *state;
    static const char *const ids[] = {"5",
                                      "{\"$numberDouble\": \"NaN\"}",
                                      "{\"$numberDouble\": \"-Infinity\"}",
                                      "-1.5",
                                      "{\"$numberLong\": \"9007199254740993\"}",
                                      "\"word\"",
                                      "\"\"",
                                      "{\"a\": 1}",
                                      "{\"a\": \"x\", \"id\": 3}",
                                      "{\"$oid\": \"507f1f77bcf86cd799439011\"}",
                                      "true",
                                      "false",
                                      "{\"$date\": \"2025-01-01T00:00:00Z\"}",
                                      "{\"$binary\": {\"base64\": \"AAEC\", \"subType\": \"00\"}}",
                                      "null",
                                      "{\"$minKey\": 1}",
                                      "{\"$maxKey\": 1}"};
    size_t count = sizeof ids / sizeof ids[0];
    for (size_t i = 0; i < count; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"_id\": %s, \"room\": \"%s\"}", ids[i], i % 2 ? "a" : "b");
        put(fixture, "many types", text);
    }
    char *all = read_all(fixture, "many types", NULL, 100);
    size_t found = 0;
    for (const char *at = all; *at; at++)
        found += *at == ';';
    assert_int_equal(found, count);
    for (int64_t limit = 1; limit <= 5; limit++) {
        char *same = read_all(fixture, "many types", NULL, limit);
        assert_string_equal(same, all);
        bson_free(same);
    }
    bson_free(all);
    bson_t *filter = BCON_NEW("room", "a");
    char *whole = read_all(fixture, "many types", filter, 100);
    char *pieces = read_all(fixture, "many types", filter, 1);
    assert_string_equal(whole, pieces);
    bson_free(whole);
    bson_free(pieces);
    bson_destroy(filter);
}

static void test_reads_by_id(void **state)
{
    fixture_t *fixture = *state;
    put(fixture, "by id", "{\"_id\": {\"room\": \"a\", \"id\": 1}, \"room\": \"a\"}");
    put(fixture, "by id", "{\"_id\": {\"room\": \"b\", \"id\": 1}, \"room\": \"b\"}");
    put(fixture, "by id", "{\"_id\": 7, \"room\": \"b\"}");
    bson_t *ids = bson_new_from_json(
        (const uint8_t *)"[{\"room\": \"a\", \"id\": 1}, 7, 8, {\"id\": 1, \"room\": \"b\"}]", -1,
        NULL);
    bson_t *filter = BCON_NEW("room", "b");
    spill_raw_admin_batch_t batch;
    spill_raw_admin_read_t what = {.collection = "by id", .ids = ids};
    assert_done(fixture, fixture->admin->ops->read(fixture->admin, &what, &batch, &fixture->error));
    assert_int_equal(batch.count, 2);
    spill_raw_admin_batch_release(&batch);
    what.filter = filter;
    assert_done(fixture, fixture->admin->ops->read(fixture->admin, &what, &batch, &fixture->error));
    assert_int_equal(batch.count, 1);
    assert_true(bson_has_field(batch.documents[0], "room"));
    spill_raw_admin_batch_release(&batch);
    bson_destroy(ids);
    bson_destroy(filter);
}

static void test_writes(void **state)
{
    fixture_t *fixture = *state;
    spill_raw_admin_t *admin = fixture->admin;
    bson_t *indexes = bson_new_from_json(
        (const uint8_t *)"[{\"key\": {\"x\": 1}, \"name\": \"x_1\", \"unique\": true}]", -1, NULL);
    assert_done(fixture, admin->ops->create(admin, "written", indexes, &fixture->error));
    assert_done(fixture, admin->ops->create(admin, "written", indexes, &fixture->error));
    put(fixture, "written", "{\"_id\": 1, \"x\": 1, \"room\": \"a\"}");
    put(fixture, "written", "{\"_id\": 2, \"x\": 2, \"room\": \"a\"}");
    put(fixture, "written", "{\"_id\": 3, \"x\": 3, \"room\": \"b\"}");
    bson_t *same_id = BCON_NEW("_id", BCON_INT32(1), "x", BCON_INT32(10));
    bson_t *same_x = BCON_NEW("_id", BCON_INT32(4), "x", BCON_INT32(2));
    bson_t *fresh = BCON_NEW("_id", BCON_INT32(5), "x", BCON_INT32(5));
    bson_t *taken = BCON_NEW("_id", BCON_INT32(1), "x", BCON_INT32(2));
    bson_t *room = BCON_NEW("room", "a"),
           *ids = BCON_NEW("0", BCON_INT32(1), "1", BCON_INT32(2), "2", BCON_INT32(3));
    bson_iter_t one, two, three;
    bson_iter_init_find(&one, ids, "0");
    bson_iter_init_find(&two, ids, "1");
    bson_iter_init_find(&three, ids, "2");
    spill_raw_admin_write_t writes[] = {
        {.kind = SPILL_RAW_ADMIN_INSERT, .document = same_id},
        {.kind = SPILL_RAW_ADMIN_DELETE, .id = spill_value_from_iter(&three), .filter = room},
        {.kind = SPILL_RAW_ADMIN_INSERT, .document = same_x},
        {.kind = SPILL_RAW_ADMIN_REPLACE, .id = spill_value_from_iter(&one), .document = taken},
        {.kind = SPILL_RAW_ADMIN_INSERT, .document = fresh},
    };
    static const bool refused[] = {true, false, true, true, false};
    assert_done(fixture, admin->ops->write(admin, "written", writes, 5, &fixture->error));
    for (int i = 0; i < 5; i++)
        assert_int_equal(writes[i].duplicate, refused[i]);
    char *left = read_all(fixture, "written", NULL, 10);
    assert_string_equal(left, "1;2;3;5;");
    bson_free(left);
    spill_raw_admin_write_t removal = {
        .kind = SPILL_RAW_ADMIN_DELETE, .id = spill_value_from_iter(&two), .filter = room};
    assert_done(fixture, admin->ops->write(admin, "written", &removal, 1, &fixture->error));
    left = read_all(fixture, "written", NULL, 10);
    assert_string_equal(left, "1;3;5;");
    bson_free(left);
    bson_t *all[] = {indexes, same_id, same_x, fresh, taken, room, ids};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        bson_destroy(all[i]);
}

static bool is_listed(fixture_t *fixture, const char *name)
{
    bson_t list;
    assert_done(fixture, fixture->admin->ops->list(fixture->admin, NULL, &list, &fixture->error));
    char *json = bson_as_relaxed_extended_json(&list, NULL);
    char *wanted = bson_strdup_printf("\"name\" : \"%s\"", name);
    bool found = strstr(json, wanted) != NULL;
    bson_free(json);
    bson_free(wanted);
    bson_destroy(&list);
    return found;
}

static void test_collections(void **state)
{
    fixture_t *fixture = *state;
    spill_raw_admin_t *admin = fixture->admin;
    bson_t indexes;
    put(fixture, "first", "{\"_id\": 1}");
    put(fixture, "second", "{\"_id\": 2}");
    assert_int_equal(admin->ops->rename(admin, "first", "second", &fixture->error), SPILL_IO);
    assert_int_equal(admin->ops->rename(admin, "none", "third", &fixture->error), SPILL_IO);
    assert_done(fixture, admin->ops->rename(admin, "first", "third", &fixture->error));
    assert_false(is_listed(fixture, "first"));
    assert_true(is_listed(fixture, "third"));
    char *ids = read_all(fixture, "third", NULL, 10);
    assert_string_equal(ids, "1;");
    bson_free(ids);
    assert_done(fixture, admin->ops->drop(admin, "third", &fixture->error));
    assert_done(fixture, admin->ops->drop(admin, "third", &fixture->error));
    assert_false(is_listed(fixture, "third"));
    assert_done(fixture, admin->ops->indexes(admin, "third", &indexes, &fixture->error));
    assert_true(bson_empty(&indexes));
    bson_destroy(&indexes);
    assert_int_equal(admin->ops->count(admin, "third"), 0);
}

/* Documents that an application may have stored, and that the driver would refuse. */
static void test_odd_documents(void **state)
{
    fixture_t *fixture = *state;
    spill_raw_admin_t *admin = fixture->admin;
    static const char text[] = "{\"_id\": {\"\": 1}, \"\": 1, \"a.b\": {\"$c\": [{\"\": 2}]}}";
    bson_t *document = bson_new_from_json((const uint8_t *)text, -1, NULL);
    bson_t *other = BCON_NEW("_id", "{", "", BCON_INT32(1), "}", "", BCON_INT32(2), "x.y", "z");
    bson_iter_t id;
    assert_true(bson_iter_init_find(&id, document, "_id"));
    put(fixture, "odd", text);
    spill_raw_admin_write_t write = {
        .kind = SPILL_RAW_ADMIN_REPLACE, .id = spill_value_from_iter(&id), .document = other};
    assert_done(fixture, admin->ops->write(admin, "odd", &write, 1, &fixture->error));
    spill_raw_admin_batch_t batch;
    spill_raw_admin_read_t what = {.collection = "odd", .limit = 10};
    assert_done(fixture, admin->ops->read(admin, &what, &batch, &fixture->error));
    assert_int_equal(batch.count, 1);
    assert_true(bson_equal(batch.documents[0], other));
    spill_raw_admin_batch_release(&batch);
    bson_destroy(document);
    bson_destroy(other);
}

static void test_marks(void **state)
{
    fixture_t *fixture = *state;
    spill_raw_admin_t *admin = fixture->admin;
    bson_t *one = BCON_NEW("at", BCON_INT32(1)), *two = BCON_NEW("at", BCON_INT32(2)), *got;
    bool done;
    assert_done(fixture, admin->ops->checkpoint_get(admin, "m", &got, &fixture->error));
    assert_null(got);
    assert_done(fixture, admin->ops->checkpoint_put(admin, "m", NULL, one, &done, &fixture->error));
    assert_true(done);
    assert_done(fixture, admin->ops->checkpoint_put(admin, "m", two, one, &done, &fixture->error));
    assert_false(done);
    assert_done(fixture, admin->ops->checkpoint_put(admin, "m", one, two, &done, &fixture->error));
    assert_true(done);
    assert_done(fixture, admin->ops->checkpoint_get(admin, "m", &got, &fixture->error));
    assert_true(bson_equal(got, two));
    bson_destroy(got);
    assert_done(fixture, admin->ops->checkpoint_delete(admin, "m", &fixture->error));
    assert_done(fixture, admin->ops->checkpoint_get(admin, "m", &got, &fixture->error));
    assert_null(got);
    bson_destroy(one);
    bson_destroy(two);
}

int main(void)
{
    server_uri();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_in_order, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_reads_by_id, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_writes, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_collections, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_odd_documents, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_marks, open_fixture, close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
