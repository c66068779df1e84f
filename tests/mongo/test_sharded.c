/*
 * On a sharded cluster, the filters of heads have _id and the filters of pages have the owner, so
 * that each command goes to one shard. The test's server has no shards: the test makes the store
 * believe that it has, and checks every command that the driver sends.
 */
#include "support/server.h"

#include "store/mongo/mongo.h"

#include <spillway/spillway.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    char *uri;
    spill_store_t *store;
    spill_definition_t definition;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    int64_t heads, pages; /* filters seen */
    char *wrong;          /* the first command that asks more than one shard */
} fixture_t;

/* Whether the filter has {field: {$eq: value}} or {field: value}. */
static bool has_equality(const bson_t *filter, const char *field, const char *value)
{
    bson_iter_t iter, condition;
    if (!bson_iter_init_find(&iter, filter, field))
        return false;
    if (BSON_ITER_HOLDS_DOCUMENT(&iter) && bson_iter_recurse(&iter, &condition) &&
        bson_iter_find(&condition, "$eq"))
        iter = condition;
    return BSON_ITER_HOLDS_UTF8(&iter) && strcmp(bson_iter_utf8(&iter, NULL), value) == 0;
}

static void check_filter(fixture_t *fixture, const bson_t *command, const char *collection,
                         const bson_t *filter)
{
    bool page = strcmp(collection, fixture->definition.page_collection) == 0;
    ++*(page ? &fixture->pages : &fixture->heads);
    if (!has_equality(filter, page ? fixture->definition.page_owner : "_id", "ada") &&
        !fixture->wrong)
        fixture->wrong = bson_as_relaxed_extended_json(command, NULL);
}

/* Check the filter `name` of each document of `list`. If `name` is empty, the document is the
 * filter. */
static void check_list(fixture_t *fixture, const bson_t *command, const char *collection,
                       const char *list, const char *name)
{
    bson_iter_t iter, entry, filter;
    bson_t document;
    assert_true(bson_iter_init_find(&iter, command, list) && bson_iter_recurse(&iter, &entry));
    while (bson_iter_next(&entry)) {
        filter = entry;
        if (name[0] != '\0')
            assert_true(bson_iter_recurse(&entry, &filter) && bson_iter_find(&filter, name));
        const uint8_t *data;
        uint32_t size;
        bson_iter_document(&filter, &size, &data);
        assert_true(bson_init_static(&document, data, size));
        check_filter(fixture, command, collection, &document);
        if (strcmp(list, "pipeline") == 0)
            return; /* later stages only read what the first stage selects */
    }
}

static void command_started(const mongoc_apm_command_started_t *event)
{
    static const struct {
        const char *command, *list, *name;
    } filters[] = {{"aggregate", "pipeline", "$match"},
                   {"update", "updates", "q"},
                   {"delete", "deletes", "q"},
                   {"insert", "documents", ""}};
    fixture_t *fixture = mongoc_apm_command_started_get_context(event);
    const bson_t *command = mongoc_apm_command_started_get_command(event);
    const char *name = mongoc_apm_command_started_get_command_name(event);
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, command, name) || !BSON_ITER_HOLDS_UTF8(&iter))
        return;
    const char *collection = bson_iter_utf8(&iter, NULL);
    if (strncmp(collection, "spillway.", 9) == 0)
        return; /* the store's own collections are not sharded */
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (strcmp(name, filters[i].command) == 0)
            check_list(fixture, command, collection, filters[i].list, filters[i].name);
    const char *only = strcmp(name, "find") == 0 ? "filter" : "query";
    if ((strcmp(name, "find") == 0 || strcasecmp(name, "findAndModify") == 0) &&
        bson_iter_init_find(&iter, command, only)) {
        const uint8_t *data;
        uint32_t size;
        bson_t query;
        bson_iter_document(&iter, &size, &data);
        assert_true(bson_init_static(&query, data, size));
        check_filter(fixture, command, collection, &query);
    }
}

static void fixture_open(fixture_t *fixture, spill_keep_t keep)
{
    spill_error_t error;
    *fixture = (fixture_t){.uri = server_new_database(NULL)};
    fixture->store = server_open(fixture->uri);
    spill_mongo_t *mongo = (spill_mongo_t *)fixture->store;
    mongo->sharded = true;
    /* The store already monitors its own pool, and a pool has one monitor: replace the pool. */
    mongoc_client_t *client = mongoc_client_pool_pop(mongo->pool);
    mongoc_uri_t *uri = mongoc_uri_copy(mongoc_client_get_uri(client));
    mongoc_client_pool_push(mongo->pool, client);
    mongoc_client_pool_destroy(mongo->pool);
    mongo->pool = mongoc_client_pool_new(uri);
    mongoc_uri_destroy(uri);
    assert_true(mongoc_client_pool_set_error_api(mongo->pool, MONGOC_ERROR_API_VERSION_2));
    mongoc_apm_callbacks_t *callbacks = mongoc_apm_callbacks_new();
    mongoc_apm_set_command_started_cb(callbacks, command_started);
    assert_true(mongoc_client_pool_set_apm_callbacks(mongo->pool, callbacks, fixture));
    mongoc_apm_callbacks_destroy(callbacks);
    spill_definition_init(&fixture->definition, "feed");
    strcpy(fixture->definition.id_field, "id");
    fixture->definition.keep = keep;
    fixture->definition.bounds.threshold = fixture->definition.bounds.page_capacity = 4;
    assert_int_equal(spill_store_define(fixture->store, &fixture->definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, &error), SPILL_OK);
    bson_init(&fixture->storage);
    fixture->owner = spill_value_from_utf8(&fixture->storage, "ada");
}

static void fixture_close(fixture_t *fixture)
{
    spill_array_close(fixture->array);
    server_close(fixture->store);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
    bson_free(fixture->wrong);
    bson_destroy(&fixture->storage);
}

static void expect_ok(fixture_t *fixture, spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s", error->message);
    if (fixture->wrong)
        fail_msg("a command goes to more than one shard: %s", fixture->wrong);
}

static void append(fixture_t *fixture, int64_t count, bool with_op)
{
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    for (int64_t i = 0; i < count; i++) {
        bson_t *document = BCON_NEW("id", BCON_INT64(i));
        spill_value_t element = spill_value_from_document(document);
        char id[16];
        spill_op_t op = {.id = id};
        op.id_bytes = (size_t)snprintf(id, sizeof id, "op %" PRId64, i);
        spill_append_options_init(&options);
        if (with_op) {
            expect_ok(fixture,
                      spill_array_op_base(fixture->array, &fixture->owner, &op.base, &error),
                      &error);
            options.op = &op;
        }
        expect_ok(fixture,
                  spill_array_append(fixture->array, &fixture->owner, &element, 1, &options,
                                     &result, &error),
                  &error);
        bson_destroy(document);
    }
}

static void read_all(fixture_t *fixture, int64_t end)
{
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    for (int64_t before = 1; before <= end; before += 3) {
        spill_read_options_init(&options);
        options.before = before;
        options.limit = 6;
        expect_ok(fixture,
                  spill_array_read(fixture->array, &fixture->owner, &options, &slice, &error),
                  &error);
        spill_slice_free(slice);
        spill_read_options_init(&options);
        options.after = before;
        options.order = SPILL_OLDEST_FIRST;
        options.limit = 6;
        expect_ok(fixture,
                  spill_array_read(fixture->array, &fixture->owner, &options, &slice, &error),
                  &error);
        spill_slice_free(slice);
    }
}

/* Removals that find elements by their contents. */
static void remove_some(fixture_t *fixture)
{
    bson_t storage = BSON_INITIALIZER;
    bson_t *filter = BCON_NEW("id", BCON_INT64(9));
    spill_value_t id = spill_value_from_int64(&storage, 7);
    int64_t seq, removed;
    spill_error_t error;
    expect_ok(fixture, spill_array_remove_id(fixture->array, &fixture->owner, &id, &seq, &error),
              &error);
    expect_ok(
        fixture,
        spill_array_remove_where(fixture->array, &fixture->owner, filter, 1, &removed, &error),
        &error);
    assert_int_equal(removed, 1);
    bson_destroy(filter);
    bson_destroy(&storage);
}

/* All operations on one owner, from the first append to the drop. */
static void run_all_operations(spill_keep_t keep)
{
    enum { APPENDS = 30 };
    fixture_t fixture;
    spill_error_t error;
    spill_count_t count;
    spill_verify_summary_t summary;
    int64_t below;
    fixture_open(&fixture, keep);
    append(&fixture, APPENDS, false);
    append(&fixture, APPENDS, true);
    read_all(&fixture, 2 * APPENDS);
    spill_array_t *array = fixture.array;
    const spill_value_t *owner = &fixture.owner;
    for (int64_t seq = 1; seq < 2 * APPENDS; seq += 19) {
        expect_ok(&fixture, spill_array_edit(array, owner, seq, owner, &error), &error);
        expect_ok(&fixture, spill_array_remove(array, owner, seq, &error), &error);
    }
    remove_some(&fixture);
    expect_ok(&fixture, spill_array_count(array, owner, &count, &error), &error);
    expect_ok(&fixture, spill_array_verify(array, owner, NULL, NULL, &summary, &error), &error);
    assert_int_equal(summary.findings, 0);
    expect_ok(&fixture, spill_array_trim(array, owner, APPENDS, &error), &error);
    expect_ok(&fixture, spill_array_trim_keep(array, owner, APPENDS / 2, &below, &error), &error);
    expect_ok(&fixture, spill_array_drop_owner(array, owner, &error), &error);
    append(&fixture, APPENDS, false); /* after the remaining pages */
    print_message("%" PRId64 " filters of heads, %" PRId64 " of pages\n", fixture.heads,
                  fixture.pages);
    assert_true(fixture.heads > 2 * APPENDS && fixture.pages > APPENDS);
    fixture_close(&fixture);
}

static void keep_newest(void **state)
{
    (void)state;
    run_all_operations(SPILL_KEEP_NEWEST);
}

static void keep_oldest(void **state)
{
    (void)state;
    run_all_operations(SPILL_KEEP_OLDEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_newest),
        cmocka_unit_test(keep_oldest),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
