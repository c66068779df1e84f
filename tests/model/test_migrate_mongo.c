/*
 * A migration of a small set on a server, and its undo: the k-th store call fails, for every k, and
 * the same command is repeated until it succeeds. Each time the arrays have their elements in
 * order, and after the undo each document equals the original byte for byte; so all runs use one
 * database. Calls fail, or succeed with their answer lost; with SPILLWAY_LONG the other faults
 * occur, too.
 */
#include "support/effort.h"
#include "support/fault_store.h"
#include "support/server.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/undoing.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 2, TRIES = 20, THRESHOLD = 3, PAGE = 2, PAGES = 3 };

/* One array with several pages, and a short one. */
static const int LENGTHS[OWNERS] = {THRESHOLD + 2 * PAGE + 1, 1};
static const char *const NAMES[OWNERS] = {"ada", "bob"};

typedef struct world {
    char *uri;
    spill_store_t *store;
    mongoc_client_t *client;
    mongoc_database_t *database;
    bson_t *documents[OWNERS]; /* as they were inserted */
    int64_t fail_at;
    fault_t fault;
} world_t;

static mongoc_collection_t *users_of(const world_t *world)
{
    return mongoc_database_get_collection(world->database, "users");
}

/* ---- the test's documents -------------------------------------------------------------------- */

static bson_t *make_document(int owner)
{
    bson_t *document = BCON_NEW("_id", NAMES[owner], "before", BCON_INT32(owner)), array;
    BSON_APPEND_ARRAY_BEGIN(document, "activities", &array);
    for (int i = 0; i < LENGTHS[owner]; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_INT32(&array, key, 100 * owner + i);
    }
    bson_append_array_end(document, &array);
    BSON_APPEND_UTF8(document, "behind", "it");
    return document;
}

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void open_world(world_t *world)
{
    spill_definition_t definition;
    spill_error_t error;
    bson_error_t cause;
    *world = (world_t){.uri = server_new_database(NULL)};
    world->store = server_open_indexed(world->uri);
    world->client = server_client(world->uri, &world->database);
    mongoc_collection_t *users = users_of(world);
    for (int i = 0; i < OWNERS; i++) {
        world->documents[i] = make_document(i);
        if (!mongoc_collection_insert_one(users, world->documents[i], NULL, NULL, &cause))
            fail_msg("%s", cause.message);
    }
    mongoc_collection_destroy(users);
    must(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    definition.bounds.threshold = THRESHOLD;
    definition.bounds.page_capacity = PAGE;
    must(spill_store_define(world->store, &definition, &error), &error);
}

static void close_world(world_t *world)
{
    for (int i = 0; i < OWNERS; i++)
        bson_destroy(world->documents[i]);
    mongoc_database_destroy(world->database);
    mongoc_client_destroy(world->client);
    server_close(world->store);
    server_drop(world->uri);
    bson_free(world->uri);
}

/* ---- expected results ------------------------------------------------------------------------ */

typedef struct reading {
    int owner, index;
} reading_t;

static bool compare_element(void *context, const spill_value_t *owner,
                            const spill_element_t *element)
{
    reading_t *reading = context;
    int32_t number;
    (void)owner;
    assert_int_equal(element->value.size_bytes, sizeof number);
    memcpy(&number, element->value.data, sizeof number);
    assert_int_equal(number, 100 * reading->owner + reading->index);
    reading->index++;
    return true;
}

static void print_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    print_error("page %lld, I%d: %s\n", (long long)finding->page, finding->invariant,
                finding->text);
}

static void check_reshaped(const world_t *world)
{
    spill_array_t *array;
    spill_verify_summary_t summary;
    spill_error_t error;
    must(spill_array_open(world->store, "feed", &array, &error), &error);
    for (int i = 0; i < OWNERS; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner = spill_value_from_utf8(&storage, NAMES[i]);
        reading_t reading = {.owner = i};
        must(spill_array_export(array, &owner, compare_element, &reading, &error), &error);
        assert_int_equal(reading.index, LENGTHS[i]);
        bson_destroy(&storage);
    }
    must(spill_array_verify(array, NULL, print_finding, NULL, &summary, &error), &error);
    assert_int_equal(summary.findings, 0);
    assert_int_equal(summary.owners, OWNERS);
    assert_int_equal(summary.pages, PAGES);
    spill_array_close(array);
}

static void check_unmanaged(const world_t *world)
{
    bson_t all = BSON_INITIALIZER, *opts = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}");
    const bson_t *found;
    int count = 0;
    mongoc_collection_t *users = users_of(world);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(users, &all, opts, NULL);
    for (; mongoc_cursor_next(cursor, &found); count++)
        if (count >= OWNERS || !bson_equal(found, world->documents[count]))
            fail_msg("call %lld, fault %s: document %d differs", (long long)world->fail_at,
                     fault_name(world->fault), count);
    assert_int_equal(count, OWNERS);
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(users);
    mongoc_collection_t *pages =
        mongoc_database_get_collection(world->database, "overflowActivities");
    assert_int_equal(mongoc_collection_count_documents(pages, &all, NULL, NULL, NULL, NULL), 0);
    mongoc_collection_destroy(pages);
    bson_destroy(opts);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const world_t *world = context;
    (void)request;
    return index == world->fail_at ? world->fault : FAULT_NONE;
}

typedef spill_code_t (*pass_fn)(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error);

/* Repeat a pass as its user would, each time with a newly opened array. */
static void run_until_done(const world_t *world, spill_store_t *faulty, pass_fn pass)
{
    spill_error_t error;
    for (int i = 0; i < TRIES; i++) {
        spill_migrate_options_t options = {0};
        spill_migrate_result_t result = {0};
        spill_array_t *array = NULL;
        spill_code_t code = spill_array_open(faulty, "feed", &array, &error);
        if (code == SPILL_OK)
            code = pass(array, &options, &result, &error);
        spill_array_close(array);
        if (code == SPILL_OK && result.failed == 0)
            return;
        if (code != SPILL_OK && code != SPILL_IO && code != SPILL_UNKNOWN)
            fail_msg("call %lld, fault %s: %s: %s", (long long)world->fail_at,
                     fault_name(world->fault), spill_code_name(code), error.message);
    }
    fail_msg("call %lld: no end: %s", (long long)world->fail_at, error.message);
}

/* Deliver delayed requests late, before the check, without a repair. */
static void deliver(spill_store_t *faulty)
{
    while (fault_pending(faulty) > 0)
        fault_deliver(faulty, 0);
}

/* Return false if the whole run makes at most that number of calls. */
static bool survives(world_t *world, int64_t at, fault_t fault)
{
    fault_hooks_t hooks = {.context = world, .decide = decide};
    spill_store_t *faulty;
    world->fail_at = at;
    world->fault = fault;
    world->store->adopter_us = 1000000; /* the undo waits for ADOPTs without an answer */
    fault_wrap(world->store, &hooks, &faulty);
    run_until_done(world, faulty, spill_migrate);
    deliver(faulty);
    check_reshaped(world);
    run_until_done(world, faulty, spill_migrate_undo);
    deliver(faulty);
    check_unmanaged(world);
    assert_int_equal(spill_undoing_cancel(world->store, "feed", NULL, NULL), SPILL_OK);
    bool reached = fault_calls(faulty) > at;
    assert_int_equal(spill_store_close(faulty, NULL), SPILL_OK);
    return reached;
}

static void every_call_goes_wrong_once(void **state)
{
    (void)state;
    world_t world;
    fault_t last = (fault_t)effort(FAULT_COUNT - 1, FAULT_LOST_APPLIED, FAULT_LOST_APPLIED);
    int64_t step = effort(1, 3, 9);
    open_world(&world);
    for (fault_t fault = FAULT_FAIL; fault <= last; fault++) {
        int64_t at = (int64_t)fault % step;
        while (survives(&world, at, fault))
            at += step;
        assert_true(at > 20);
    }
    close_world(&world);
}

/* ---- the server's time ----------------------------------------------------------------------- */

/* An undo may have deleted the only definition. */
static void time_needs_no_definition(void **state)
{
    (void)state;
    world_t world;
    int64_t before, after;
    spill_error_t error;
    open_world(&world);
    spill_store_t *store = world.store;
    assert_int_equal(spill_store_now(store, &before, &error), SPILL_OK);
    assert_int_equal(store->ops->catalog_delete(store, SPILL_CATALOG_DEFINITION, "feed", &error),
                     SPILL_OK);
    assert_int_equal(spill_store_now(store, &after, &error), SPILL_OK);
    assert_true(after > before - 1000000 && after < before + 60000000);
    close_world(&world);
}

/* ---- copying a full document ----------------------------------------------------------------- */

static void change_ada(const world_t *world, bool delete)
{
    mongoc_collection_t *users = users_of(world);
    bson_t *ada = BCON_NEW("_id", "ada"), *update = BCON_NEW("$set", "{", "activities.0", "b", "}");
    bool done = delete ? mongoc_collection_delete_one(users, ada, NULL, NULL, NULL)
                       : mongoc_collection_update_one(users, ada, update, NULL, NULL, NULL);
    assert_true(done);
    bson_destroy(update);
    bson_destroy(ada);
    mongoc_collection_destroy(users);
}

/* Ada's document has the array's elements as texts, and the maximum size. */
static void fill_ada(const world_t *world)
{
    enum { LIMIT = 16 * 1024 * 1024, TEXT = 300, FILLER_FRAMING = 13 };
    char text[TEXT + 1];
    memset(text, 'a', TEXT);
    text[TEXT] = '\0';
    bson_t *ada = BCON_NEW("_id", "ada"), *filled = BCON_NEW("_id", "ada"), array;
    BSON_APPEND_ARRAY_BEGIN(filled, "activities", &array);
    for (int i = 0; i < LENGTHS[0]; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_UTF8(&array, key, text);
    }
    bson_append_array_end(filled, &array);
    uint32_t rest = LIMIT - FILLER_FRAMING - filled->len;
    uint8_t *filler = bson_malloc0(rest);
    bson_append_binary(filled, "filler", -1, BSON_SUBTYPE_BINARY, filler, rest);
    assert_int_equal(filled->len, LIMIT);
    mongoc_collection_t *users = users_of(world);
    assert_true(mongoc_collection_replace_one(users, ada, filled, NULL, NULL, NULL));
    mongoc_collection_destroy(users);
    bson_free(filler);
    bson_destroy(filled);
    bson_destroy(ada);
}

static void edit_before_adopting(void *context, int64_t index, const spill_request_t *request)
{
    (void)index;
    if (request && request->kind == SPILL_REQUEST_ADOPT_SPLIT)
        change_ada(context, false);
}

static int64_t count_pages(const world_t *world)
{
    bson_t all = BSON_INITIALIZER;
    mongoc_collection_t *pages =
        mongoc_database_get_collection(world->database, "overflowActivities");
    int64_t count = mongoc_collection_count_documents(pages, &all, NULL, NULL, NULL, NULL);
    mongoc_collection_destroy(pages);
    return count;
}

/* Return the number of owners that failed. */
static int64_t migrate_full(spill_store_t *store)
{
    spill_migrate_options_t options = {0};
    spill_migrate_result_t result = {0};
    spill_array_t *array;
    spill_error_t error;
    must(spill_array_open(store, "feed", &array, &error), &error);
    must(spill_migrate(array, &options, &result, &error), &error);
    spill_array_close(array);
    return result.failed;
}

/* A refused attempt leaves pages; then the document is deleted. No user has to check that. */
static void refused_copy_is_deleted_with_its_document(void **state)
{
    (void)state;
    world_t world;
    fault_hooks_t hooks = {.context = &world, .decide = decide, .before = edit_before_adopting};
    spill_store_t *faulty;
    open_world(&world);
    fill_ada(&world);
    world.fail_at = -1;
    world.store->adopt_us = world.store->margin_us = 300000;
    fault_wrap(world.store, &hooks, &faulty);
    assert_int_equal(migrate_full(faulty), 1);
    assert_true(count_pages(&world) > 0);
    change_ada(&world, true);
    for (int i = 0; i < 1000 && count_pages(&world) > 0; i++)
        migrate_full(faulty); /* until the lease ends */
    assert_int_equal(count_pages(&world), 0);
    assert_int_equal(migrate_full(faulty), 0);
    assert_int_equal(spill_store_close(faulty, NULL), SPILL_OK);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_goes_wrong_once),
        cmocka_unit_test(time_needs_no_definition),
        cmocka_unit_test(refused_copy_is_deleted_with_its_document),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
