#include "model/resumed.h"

#include "core/array.h"
#include "support/fault_store.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/staged.h"
#include "tools/migrate/undoing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { REPEATED_MAX = 96 }; /* owners between two saves, and a batch of the search */

typedef struct world {
    spill_store_t *store;
    spill_store_t *faulty;
    spill_planned_t planned;
    spill_array_t *other; /* writes the documents */
    int owners;           /* at first */
    int stop_at;          /* nine tenths of them */
    int stop_after;       /* owners; then every call fails, as if the process had been killed */
    int visited;
    int64_t searched; /* documents behind the position where the first search began; -1: none */
} world_t;

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* ---- documents ------------------------------------------------------------------------------- */

static spill_value_t owner_of(int number, bson_t *storage)
{
    char name[16];
    snprintf(name, sizeof name, "o%04d", number);
    bson_init(storage);
    return spill_value_from_utf8(storage, name);
}

/* Write an array of `count` elements. Only documents can be stored in layout reference. */
static void write_array(const world_t *world, int number, int count, bool storable)
{
    bson_t storage, update = BSON_INITIALIZER, set, array;
    spill_value_t owner = owner_of(number, &storage);
    spill_error_t error;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (int i = 0; i < count; i++) {
        char key[16];
        bson_t element;
        snprintf(key, sizeof key, "%d", i);
        if (!storable) {
            BSON_APPEND_INT32(&array, key, i);
            continue;
        }
        BSON_APPEND_DOCUMENT_BEGIN(&array, key, &element);
        BSON_APPEND_INT32(&element, "i", i);
        bson_append_document_end(&array, &element);
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    must(spill_array_update(world->other, &owner, &update, &error), &error);
    bson_destroy(&update);
    bson_destroy(&storage);
}

/* ---- the store ------------------------------------------------------------------------------- */

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const world_t *world = context;
    (void)index;
    (void)request;
    return world->stop_after > 0 && world->visited >= world->stop_after ? FAULT_FAIL : FAULT_NONE;
}

static world_t *counting; /* of the list function */
static spill_list_fn *list_oversized;

/* All documents with an array behind the place where a search begins. */
static int64_t count_behind(spill_store_t *store, const spill_definition_t *definition,
                            const spill_binding_t *binding, const spill_list_query_t *query)
{
    int64_t count = 0;
    const spill_item_t *item;
    spill_error_t error;
    spill_cursor_t cursor = {.store = store,
                             .definition = definition,
                             .binding = binding,
                             .query = {.list = SPILL_LIST_OVERSIZED, .limit = 1000}};
    if (query->after_bytes > 0) {
        spill_buffer_append(&cursor.after, query->after, query->after_bytes);
        cursor.query.after = cursor.after.data;
        cursor.query.after_bytes = cursor.after.size;
    }
    do {
        must(spill_cursor_next(&cursor, &item, &error), &error);
        count += item != NULL;
    } while (item);
    spill_cursor_release(&cursor);
    return count;
}

static spill_code_t count_first_search(spill_store_t *store, const spill_definition_t *definition,
                                       const spill_binding_t *binding,
                                       const spill_list_query_t *query, spill_listing_t *listing,
                                       spill_error_t *error)
{
    world_t *world = counting;
    if (world && world->searched < 0) {
        world->searched = 0; /* the count lists too */
        world->searched = count_behind(world->store, definition, binding, query);
    }
    return list_oversized(store, definition, binding, query, listing, error);
}

static void note_visit(void *context, const spill_migrated_t *migrated)
{
    world_t *world = context;
    (void)migrated;
    world->visited++;
}

static void define_other(world_t *world)
{
    spill_definition_t definition;
    spill_error_t error;
    must(spill_definition_preset(&definition, "feed-recent", "other", &error), &error);
    strcpy(definition.collection, "users");
    strcpy(definition.array, "other");
    strcpy(definition.count_field, "otherCount");
    strcpy(definition.overflow_field, "otherOverflow");
    strcpy(definition.pages_field, "otherPages");
    strcpy(definition.page_collection, "otherPages");
    must(spill_store_define(world->store, &definition, &error), &error);
    must(spill_array_open(world->store, "other", &world->other, &error), &error);
}

static void open_world(world_t *world, spill_store_t *store, int owners)
{
    spill_definition_t definition;
    spill_error_t error;
    *world = (world_t){.store = store, .owners = owners, .stop_at = owners * 9 / 10};
    fault_hooks_t hooks = {.context = world, .decide = decide};
    fault_wrap(store, &hooks, &world->faulty);
    define_other(world);
    must(spill_definition_preset(&definition, "reviews-separate", "planned", &error), &error);
    spill_planned_init(&world->planned, &definition, "users", "activities");
    world->planned.original.bounds.threshold = 3;
    world->planned.original.bounds.page_capacity = 2;
    world->planned.original.largest = world->planned.original.bounds;
    for (int i = 0; i < owners; i++)
        write_array(world, i, 1 + i % 3, true);
}

static void close_world(world_t *world)
{
    spill_error_t error;
    spill_array_close(world->other);
    must(spill_store_close(world->faulty, &error), &error);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* One run in place, which is interrupted after `stop_after` owners (0: never). */
static spill_migrate_result_t run_in_place(world_t *world, int stop_after,
                                           const spill_definition_t *planned)
{
    static spill_store_ops_t ops;
    spill_migrate_options_t options = {
        .resumes = true, .planned = planned, .migrated = note_visit, .context = world};
    spill_migrate_result_t result = {0};
    spill_array_t *array;
    spill_error_t error;
    must(spill_store_define(world->store, &world->planned.original, &error), &error);
    must(spill_array_open(world->faulty, world->planned.original.name, &array, &error), &error);
    const spill_store_ops_t *before = world->store->ops;
    ops = *before;
    list_oversized = before->list[SPILL_LIST_OVERSIZED];
    ops.list[SPILL_LIST_OVERSIZED] = count_first_search;
    world->store->ops = &ops;
    world->stop_after = stop_after;
    world->visited = 0;
    world->searched = -1;
    counting = world;
    spill_code_t code = spill_migrate(array, &options, &result, &error);
    counting = NULL;
    world->store->ops = before;
    assert_int_equal(code, stop_after > 0 ? SPILL_IO : SPILL_OK);
    world->stop_after = 0;
    spill_array_close(array);
    return result;
}

static int64_t count_managed(const world_t *world, const char *name)
{
    int64_t count;
    spill_error_t error;
    must(spill_migrate_count_managed(world->store, name, &count, &error), &error);
    return count;
}

void resumed_in_place(spill_store_t *store, int owners)
{
    world_t world;
    open_world(&world, store, owners);
    spill_migrate_result_t result = run_in_place(&world, world.stop_at, NULL);
    assert_false(result.resumed);
    assert_int_equal(world.searched, owners);
    write_array(&world, owners, 2, true); /* behind the place */
    result = run_in_place(&world, 3, NULL);
    assert_true(result.resumed);
    assert_in_range(world.searched, 1, owners - world.stop_at + REPEATED_MAX);
    result = run_in_place(&world, 0, NULL); /* the second interruption has lost nothing */
    assert_true(result.resumed);
    assert_in_range(world.searched, 1, owners - world.stop_at + REPEATED_MAX);
    assert_int_equal(count_managed(&world, world.planned.original.name), owners + 1);
    result = run_in_place(&world, 0, NULL); /* after a pass that ended: from the start */
    assert_false(result.resumed);
    assert_int_equal(world.searched, owners + 1);
    assert_int_equal(result.owners, 0);
    close_world(&world);
}

void resumed_with_other_bounds(spill_store_t *store, int owners)
{
    world_t world;
    open_world(&world, store, owners);
    run_in_place(&world, world.stop_at, NULL);
    world.planned.original.bounds.threshold = 2;
    spill_migrate_result_t result = run_in_place(&world, 0, NULL);
    assert_false(result.resumed);
    assert_int_equal(world.searched, owners);
    close_world(&world);
}

void resumed_before_a_skipped_owner(spill_store_t *store, int owners)
{
    world_t world;
    open_world(&world, store, owners);
    write_array(&world, owners / 2, 2, false);
    spill_migrate_result_t result = run_in_place(&world, world.stop_at, &world.planned.definition);
    assert_int_equal(result.failed, 1);
    result = run_in_place(&world, 0, &world.planned.definition);
    assert_true(result.resumed);
    assert_int_equal(result.failed, 1);
    assert_in_range(world.searched, owners / 2, owners / 2 + REPEATED_MAX);
    close_world(&world);
}

void resumed_after_an_undo(spill_store_t *store, int owners)
{
    world_t world;
    spill_migrate_options_t options = {0};
    spill_migrate_result_t undone = {0};
    spill_array_t *array;
    spill_error_t error;
    open_world(&world, store, owners);
    run_in_place(&world, world.stop_at, NULL);
    must(spill_array_open(store, world.planned.original.name, &array, &error), &error);
    must(spill_migrate_undo(array, &options, &undone, &error), &error);
    spill_array_close(array);
    assert_in_range(undone.owners, world.stop_at, owners);
    must(spill_undoing_cancel(store, world.planned.original.name, NULL, &error), &error);
    spill_migrate_result_t result = run_in_place(&world, 0, NULL);
    assert_false(result.resumed);
    assert_int_equal(result.owners, owners);
    close_world(&world);
}

/* ---- the second stage ------------------------------------------------------------------------ */

/* Catch up; return the calls that it made. */
static int64_t catch_up(world_t *world, int stop_after, bool resumes,
                        spill_catch_up_result_t *result)
{
    spill_migrate_options_t options = {
        .resumes = resumes, .migrated = note_visit, .context = world};
    spill_error_t error;
    int64_t calls = fault_calls(world->faulty);
    *result = (spill_catch_up_result_t){0};
    world->stop_after = stop_after;
    world->visited = 0;
    spill_code_t code = spill_catch_up(world->faulty, world->planned.original.name,
                                       world->planned.definition.name, &options, result, &error);
    world->stop_after = 0;
    if (stop_after == 0)
        must(code, &error);
    assert_int_equal(code, stop_after > 0 ? SPILL_IO : SPILL_OK);
    return fault_calls(world->faulty) - calls;
}

static void append_to_original(const world_t *world, int number)
{
    static const uint8_t document[] = "\x0c\0\0\0\x10i\0\x7f\0\0\0";
    spill_value_t element = {.data = document, .size_bytes = 12, .type = BSON_TYPE_DOCUMENT};
    bson_t storage;
    spill_array_t *array;
    spill_error_t error;
    spill_value_t owner = owner_of(number, &storage);
    must(spill_array_open(world->store, world->planned.original.name, &array, &error), &error);
    must(spill_array_append(array, &owner, &element, 1, NULL, NULL, &error), &error);
    spill_array_close(array);
    bson_destroy(&storage);
}

static void drop_from_original(const world_t *world, int number)
{
    bson_t storage;
    spill_array_t *array;
    spill_error_t error;
    spill_value_t owner = owner_of(number, &storage);
    must(spill_array_open(world->store, world->planned.original.name, &array, &error), &error);
    must(spill_array_drop_owner(array, &owner, &error), &error);
    spill_array_close(array);
    bson_destroy(&storage);
}

void resumed_second_stage(spill_store_t *store, int owners)
{
    world_t world;
    spill_catch_up_result_t result;
    spill_copy_result_t finished = {0};
    spill_migrate_options_t options = {0};
    spill_error_t error;
    open_world(&world, store, owners);
    spill_staged_t staged = {.store = world.faulty, .planned = &world.planned};
    must(spill_staged_begin(&staged, &error), &error);
    run_in_place(&world, 0, NULL);
    int64_t calls = catch_up(&world, world.stop_at, true, &result);
    assert_false(result.resumed);
    append_to_original(&world, 0);
    drop_from_original(&world, 1);
    int64_t resumed = catch_up(&world, 0, true, &result);
    assert_true(result.resumed);
    assert_in_range(result.copied.owners, owners - world.stop_at, owners - world.stop_at + 128);
    assert_true(result.copied.owners < owners);
    assert_int_equal(result.deleted, 1);
    assert_int_equal(count_managed(&world, world.planned.definition.name), owners - 1);
    assert_true(resumed < calls);

    catch_up(&world, 0, false, &result); /* as --finish does */
    assert_false(result.resumed);
    assert_int_equal(result.copied.owners, owners - 1);
    assert_int_equal(result.copied.elements, 1);
    must(spill_staged_finish(&staged, &options, &finished, &error), &error);
    assert_int_equal(finished.owners, owners - 1);
    close_world(&world);
}
