/*
 * spill_array_adopt: one owner's unmanaged array, on the model store and the embedded store.
 * test_migrate.c has the adoption beside other programs and clients.
 */
#include "support/definition.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"

#include "core/array.h"
#include "layout/reshape.h"

#include <spillway/verify.h>

#include <stdatomic.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { THRESHOLD = 4, PAGE = 3, ELEMENTS = 23 };

typedef struct world {
    spill_store_t *store;
    disk_t *disk; /* of an embedded store; or NULL */
    spill_array_t *feed;
    spill_array_t *other; /* another array in the same heads, which writes other fields */
    bson_t storage;
    spill_value_t owner;
    int64_t head_max; /* elements that a head has at most after a spill */
} world_t;

static void open_sized(world_t *world, bool memory, const char *preset, int64_t threshold,
                       int64_t page)
{
    *world = (world_t){.disk = memory ? NULL : disk_new(), .head_max = threshold + page - 1};
    world->store =
        memory ? model_store_open() : embedded_on_disk(world->disk, SPILL_DURABILITY_LOG);
    world->feed = definition_open_array(world->store, preset, "feed", threshold, page);
    world->other = definition_open_array(world->store, "feed-recent", "other", threshold, page);
    bson_init(&world->storage);
    world->owner = spill_value_from_utf8(&world->storage, "ada");
}

static void open_world(world_t *world, bool memory, const char *preset)
{
    open_sized(world, memory, preset, THRESHOLD, PAGE);
}

static void close_world(world_t *world)
{
    spill_array_close(world->feed);
    spill_array_close(world->other);
    assert_int_equal(spill_store_close(world->store, NULL), SPILL_OK);
    bson_destroy(&world->storage);
    if (world->disk)
        disk_free(world->disk);
}

/* Write the numbers 0, 1, ... as a program that knows nothing of Spillway. */
static void write_field(const world_t *world, int count)
{
    bson_t update = BSON_INITIALIZER, set, array;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_INT64(&array, key, i);
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    assert_int_equal(spill_array_update(world->other, &world->owner, &update, NULL), SPILL_OK);
    bson_destroy(&update);
}

static spill_code_t append_number(const world_t *world, int64_t number, spill_error_t *error)
{
    spill_value_t value = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
    return spill_array_append(world->feed, &world->owner, &value, 1, NULL, NULL, error);
}

static bool compare(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int64_t *next = context;
    int64_t number;
    (void)owner;
    memcpy(&number, element->value.data, sizeof number);
    assert_int_equal(number, *next);
    assert_int_equal(element->seq, *next);
    ++*next;
    return true;
}

/* The array has the numbers 0, 1, ..., in short documents, and the verifier finds nothing. */
static void check(const world_t *world, int64_t count)
{
    int64_t next = 0;
    spill_count_t counted;
    spill_verify_summary_t summary;
    assert_int_equal(spill_array_export(world->feed, &world->owner, compare, &next, NULL),
                     SPILL_OK);
    assert_int_equal(next, count);
    assert_int_equal(spill_array_count(world->feed, &world->owner, &counted, NULL), SPILL_OK);
    assert_true(counted.head <= world->head_max);
    assert_int_equal(spill_array_verify(world->feed, NULL, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, 0);
}

static void adopts_and_spills(bool memory)
{
    world_t world;
    spill_error_t error;
    bool adopted = true;
    open_world(&world, memory, "feed-recent");
    assert_int_equal(spill_array_adopt(world.feed, &world.owner, &adopted, &error),
                     SPILL_NOT_FOUND);
    assert_false(adopted);
    write_field(&world, 0);
    assert_int_equal(spill_array_adopt(world.feed, &world.owner, NULL, &error), SPILL_NOT_FOUND);
    write_field(&world, ELEMENTS);
    assert_int_equal(append_number(&world, ELEMENTS, &error), SPILL_REFUSED);
    assert_int_equal(error.reason, SPILL_REASON_UNMANAGED);
    assert_int_equal(spill_array_adopt(world.feed, &world.owner, &adopted, &error), SPILL_OK);
    assert_true(adopted);
    check(&world, ELEMENTS);
    assert_int_equal(append_number(&world, ELEMENTS, &error), SPILL_OK);
    assert_int_equal(spill_array_adopt(world.feed, &world.owner, &adopted, &error), SPILL_OK);
    assert_false(adopted);
    check(&world, ELEMENTS + 1);
    close_world(&world);
}

static void array_is_adopted_and_spilled(void **state)
{
    (void)state;
    adopts_and_spills(true);
    adopts_and_spills(false);
}

static void other_layouts_are_refused(void **state)
{
    (void)state;
    world_t world;
    spill_error_t error;
    open_world(&world, true, "feed"); /* keeps the oldest */
    assert_int_equal(spill_array_adopt(world.feed, &world.owner, NULL, &error), SPILL_INVALID);
    assert_int_equal(spill_array_adopt(world.feed, NULL, NULL, &error), SPILL_INVALID);
    assert_int_equal(error.reason, SPILL_REASON_NONE);
    close_world(&world);
}

/* Adopt through a store in which call `at` fails. Return whether it was reached. */
static void write_duplicates(const world_t *world, int last)
{
    bson_t *update = BCON_NEW("$set", "{", "activities", "[", BCON_INT32(1), BCON_INT32(2),
                              BCON_INT32(3), BCON_INT32(4), BCON_INT32(last), "]", "}");
    assert_int_equal(spill_array_update(world->other, &world->owner, update, NULL), SPILL_OK);
    bson_destroy(update);
}

/* An array that keeps each id once adopts no array that has an id twice, and names it. */
static void duplicates_are_not_adopted(void **state)
{
    (void)state;
    world_t world;
    spill_error_t error;
    open_world(&world, true, "feed-recent");
    spill_definition_t definition = *spill_array_get_definition(world.feed);
    spill_array_close(world.feed);
    strcpy(definition.id_field, ".");
    definition.unique = true;
    assert_int_equal(spill_store_define(world.store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(world.store, "feed", &world.feed, &error), SPILL_OK);
    write_duplicates(&world, 2);
    assert_int_equal(spill_array_adopt(world.feed, &world.owner, NULL, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "owner \"ada\""));
    assert_non_null(strstr(error.message, "element 4, 2, has the id of an earlier element"));
    write_duplicates(&world, 5);
    assert_int_equal(spill_array_adopt(world.feed, &world.owner, NULL, &error), SPILL_OK);
    close_world(&world);
}

static bool adopt_with_fault(const world_t *world, int64_t at, fault_t fault)
{
    fault_once_t once = {.at = at, .fault = fault};
    fault_hooks_t hooks = fault_once(&once);
    spill_store_t *faulty;
    spill_array_t *array;
    spill_error_t error;
    fault_wrap(world->store, &hooks, &faulty);
    if (spill_array_open(faulty, "feed", &array, &error) == SPILL_OK) {
        spill_array_adopt(array, &world->owner, NULL, &error);
        spill_array_close(array);
    }
    while (fault_pending(faulty) > 0)
        fault_deliver(faulty, 0);
    bool reached = fault_calls(faulty) > at;
    spill_store_close(faulty, NULL);
    return reached;
}

/* Whatever a failed adoption leaves, another one and the next appends complete it. */
static void every_call_of_an_adoption_fails_once(void **state)
{
    (void)state;
    for (fault_t fault = FAULT_FAIL; fault < FAULT_COUNT; fault++) {
        bool reached = true;
        for (int64_t at = 0; reached; at++) {
            world_t world;
            open_world(&world, at % 2 == 0, "feed-recent");
            write_field(&world, ELEMENTS);
            reached = adopt_with_fault(&world, at, fault);
            assert_int_equal(spill_array_adopt(world.feed, &world.owner, NULL, NULL), SPILL_OK);
            assert_int_equal(append_number(&world, ELEMENTS, NULL), SPILL_OK);
            assert_int_equal(append_number(&world, ELEMENTS + 1, NULL), SPILL_OK);
            assert_int_equal(append_number(&world, ELEMENTS + 2, NULL), SPILL_OK);
            check(&world, ELEMENTS + 3);
            close_world(&world);
        }
    }
}

/* ---- several clients ------------------------------------------------------------------------- */

/* A client that moves the elements of a managed array. */
typedef struct mover {
    int cuts;          /* that it sent */
    bool dies;         /* at its first one */
    bool dies_early;   /* before it has put a page */
    world_t *other;    /* NULL; or: before its first page, the array grows, and another one moves */
    atomic_bool *stop; /* or NULL: is set by its first one */
} mover_t;

static void grow_and_move(world_t *world);

static void count_cut(void *context, int64_t index, const spill_request_t *request)
{
    mover_t *mover = context;
    (void)index;
    if (mover->other && request && request->kind == SPILL_REQUEST_PUT_PAGE) {
        world_t *world = mover->other;
        mover->other = NULL;
        grow_and_move(world);
    }
    if (!request || request->kind != SPILL_REQUEST_CUT)
        return;
    mover->cuts++;
    if (mover->stop)
        atomic_store(mover->stop, true);
}

static fault_t die_at_cut(void *context, int64_t index, const spill_request_t *request)
{
    const mover_t *mover = context;
    (void)index;
    bool cuts = request && request->kind == SPILL_REQUEST_CUT;
    bool puts = request && request->kind == SPILL_REQUEST_PUT_PAGE;
    return (mover->dies && cuts) || (mover->dies_early && puts) ? FAULT_FAIL : FAULT_NONE;
}

static spill_code_t move_elements(const world_t *world, int64_t bytes, mover_t *mover,
                                  spill_error_t *error)
{
    const fault_hooks_t hooks = {.context = mover, .decide = die_at_cut, .before = count_cut};
    const spill_oversized_t oversized = {
        .owner = world->owner, .managed = true, .elements = ELEMENTS, .bytes = bytes};
    spill_reshaped_t reshaped = {0};
    spill_owner_t owner;
    spill_store_t *store;
    spill_array_t *array;
    fault_wrap(world->store, &hooks, &store);
    store->stop = mover->stop;
    ((spill_store_ops_t *)store->ops)->others_write = true;
    assert_int_equal(spill_array_open(store, "feed", &array, error), SPILL_OK);
    assert_int_equal(spill_owner_init(&owner, array, &world->owner, error), SPILL_OK);
    spill_code_t code = spill_reshape(&owner, &oversized, NULL, &reshaped, error);
    spill_owner_release(&owner);
    spill_array_close(array);
    spill_store_close(store, NULL);
    return code;
}

/* A managed array with all its elements in the head. */
static void open_unspilled(world_t *world, int64_t threshold, int64_t page)
{
    spill_error_t error;
    mover_t dying = {.dies = true, .dies_early = true};
    const fault_hooks_t hooks = {.context = &dying, .decide = die_at_cut};
    spill_store_t *store;
    spill_array_t *array;
    open_sized(world, true, "feed-recent", threshold, page);
    write_field(world, ELEMENTS);
    fault_wrap(world->store, &hooks, &store);
    assert_int_equal(spill_array_open(store, "feed", &array, &error), SPILL_OK);
    assert_int_equal(spill_array_adopt(array, &world->owner, NULL, &error), SPILL_IO);
    spill_array_close(array);
    spill_store_close(store, NULL);
}

/*
 * The first client has copied all elements, and dies before it cuts them. One cut takes all copies.
 * If it took one page, two clients on one array would rewrite the document for each page.
 */
static void one_cut_takes_all_copies_of_another_client(void **state)
{
    enum { SMALL = 1000 };
    spill_error_t error;
    world_t world;
    mover_t mover = {0};
    (void)state;
    open_unspilled(&world, THRESHOLD, PAGE);
    assert_int_equal(move_elements(&world, SMALL, &mover, &error), SPILL_OK);
    assert_int_equal(mover.cuts, 1);
    check(&world, ELEMENTS);
    close_world(&world);
}

/* Another program pushes GROWTH elements; a client copies the longer array, and dies. */
enum { GROWTH = 6 };

static void grow_and_move(world_t *world)
{
    spill_error_t error;
    spill_owner_t owner;
    mover_t dying = {.dies = true};
    assert_int_equal(spill_owner_init(&owner, world->feed, &world->owner, &error), SPILL_OK);
    spill_request_t head = spill_owner_request(&owner, SPILL_REQUEST_READ, SPILL_HEAD);
    model_document_t *document = model_document(world->store, &head, false);
    assert_non_null(document);
    for (int64_t i = ELEMENTS; i < ELEMENTS + GROWTH; i++) {
        spill_value_t value = {(const uint8_t *)&i, sizeof i, BSON_TYPE_INT64};
        model_document_insert(document, document->count, &value);
    }
    spill_owner_release(&owner);
    assert_int_equal(move_elements(world, 1000, &dying, &error), SPILL_IO);
}

/* The other client's last page has elements that this one did not read. */
static void longer_copy_of_another_client(void **state)
{
    spill_error_t error;
    world_t world;
    mover_t mover = {.other = &world};
    (void)state;
    open_unspilled(&world, 1, 10);
    assert_int_equal(move_elements(&world, 1000, &mover, &error), SPILL_OK);
    assert_null(mover.other);
    check(&world, ELEMENTS + GROWTH);
    close_world(&world);
}

/* A large array is moved in several steps. A stop takes effect between two of them. */
static void stop_between_two_steps(void **state)
{
    enum { LARGE = 1 << 28 };
    spill_error_t error;
    world_t world;
    atomic_bool stop = false;
    mover_t stopped = {.stop = &stop}, mover = {0};
    (void)state;
    open_unspilled(&world, THRESHOLD, PAGE);
    assert_int_equal(move_elements(&world, LARGE, &stopped, &error), SPILL_CANCELLED);
    assert_int_equal(stopped.cuts, 1);
    assert_int_equal(move_elements(&world, LARGE, &mover, &error), SPILL_OK);
    assert_true(mover.cuts > 0);
    check(&world, ELEMENTS);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(array_is_adopted_and_spilled),
        cmocka_unit_test(other_layouts_are_refused),
        cmocka_unit_test(duplicates_are_not_adopted),
        cmocka_unit_test(every_call_of_an_adoption_fails_once),
        cmocka_unit_test(one_cut_takes_all_copies_of_another_client),
        cmocka_unit_test(longer_copy_of_another_client),
        cmocka_unit_test(stop_between_two_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
