/*
 * Full documents: in these schedules the update that adopts and splits an array is delayed for a
 * long time, while the array is edited, copied again, and edited back. In the end every element
 * exists once, as its writers left it. On the model store, with a clock that the test advances.
 */
#include "support/definition.h"
#include "support/fault_store.h"
#include "tools/migrate/migrate.h"

#include "core/array.h"
#include "support/model_store.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ELEMENTS = 20, THRESHOLD = 4, PAGE = 3 };

typedef struct world {
    spill_store_t *store, *faulty;
    spill_array_t *feed, *other, *array; /* opened through `faulty` by the migration */
    bson_t storage;
    spill_value_t owner;
    int64_t elements[ELEMENTS];
    int64_t now_us;
    int count;     /* the number of elements */
    fault_t fault; /* the fault of the next ADOPT_SPLIT, once */
    bool edits;    /* edit an element just before the next ADOPT_SPLIT */
    bool dies;     /* fail at the next CUT, which follows the ADOPT_SPLIT */
} world_t;

static int64_t now_us(void *context)
{
    return ++((world_t *)context)->now_us;
}

static void sleep_us(void *context, int64_t duration_us)
{
    ((world_t *)context)->now_us += duration_us;
}

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    (void)index;
    if (request && request->kind == SPILL_REQUEST_CUT && world->dies)
        return FAULT_FAIL;
    if (!request || request->kind != SPILL_REQUEST_ADOPT_SPLIT)
        return FAULT_NONE;
    fault_t fault = world->fault;
    world->fault = FAULT_NONE;
    return fault;
}

/* Write the array as a field of the document, which only its writers know. */
static void write_field(world_t *world)
{
    bson_t update = BSON_INITIALIZER, set, array;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (int i = 0; i < world->count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_INT64(&array, key, world->elements[i]);
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    assert_int_equal(spill_array_update(world->other, &world->owner, &update, NULL), SPILL_OK);
    bson_destroy(&update);
}

static void edit(world_t *world, int64_t element)
{
    world->elements[1] = element;
    write_field(world);
}

static void before_call(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    (void)index;
    if (!world->edits || !request || request->kind != SPILL_REQUEST_ADOPT_SPLIT)
        return;
    world->edits = false;
    edit(world, 7);
}

static void open_world(world_t *world)
{
    *world = (world_t){.now_us = (int64_t)1700000000 * 1000000, .count = ELEMENTS};
    fault_hooks_t hooks = {.context = world, .decide = decide, .before = before_call};
    world->store = model_store_open();
    world->store->options.clock = (spill_clock_t){world, now_us, sleep_us};
    world->store->adopt_room = 8;
    world->feed = definition_open_array(world->store, "feed-recent", "feed", THRESHOLD, PAGE);
    world->other = definition_open_array(world->store, "feed-recent", "other", THRESHOLD, PAGE);
    bson_init(&world->storage);
    world->owner = spill_value_from_utf8(&world->storage, "ada");
    for (int i = 0; i < ELEMENTS; i++)
        world->elements[i] = 100 + i;
    write_field(world);
    fault_wrap(world->store, &hooks, &world->faulty);
    assert_int_equal(spill_array_open(world->faulty, "feed", &world->array, NULL), SPILL_OK);
    /* As on a server, an array may consist only of pages without a head. */
    ((spill_store_ops_t *)world->faulty->ops)->others_write = true;
}

/* Return the number of owners that failed; -1: the pass ended early. */
static int64_t migrate(world_t *world)
{
    spill_migrate_options_t options = {.full_bytes = 1};
    spill_migrate_result_t result = {0};
    return spill_migrate(world->array, &options, &result, NULL) == SPILL_OK ? result.failed : -1;
}

static bool compare_element(void *context, const spill_value_t *owner,
                            const spill_element_t *element)
{
    const int64_t **next = context;
    int64_t number;
    (void)owner;
    memcpy(&number, element->value.data, sizeof number);
    assert_int_equal(number, **next);
    ++*next;
    return true;
}

static void release_world(world_t *world)
{
    spill_array_close(world->array);
    spill_array_close(world->feed);
    spill_array_close(world->other);
    assert_int_equal(spill_store_close(world->faulty, NULL), SPILL_OK);
    assert_int_equal(spill_store_close(world->store, NULL), SPILL_OK);
    bson_destroy(&world->storage);
}

static void let_leases_run_out(world_t *world)
{
    world->now_us += SPILL_ADOPT_US + SPILL_MARGIN_US;
}

/*
 * Close the world. Pages of a copy stay until the owner is dropped, if it is unknown whether their
 * update was refused.
 */
static void close_world(world_t *world)
{
    spill_verify_summary_t summary;
    const int64_t *next = world->elements;
    while (fault_pending(world->faulty) > 0)
        fault_deliver(world->faulty, 0);
    for (int pass = 0; migrate(world) != 0; pass++) {
        assert_in_range(pass, 0, 2);
        let_leases_run_out(world);
    }
    assert_int_equal(spill_array_export(world->feed, &world->owner, compare_element, &next, NULL),
                     SPILL_OK);
    assert_ptr_equal(next, world->elements + world->count);
    assert_int_equal(spill_array_verify(world->feed, NULL, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, 0);
    release_world(world);
}

/* The first update is delayed, and its outcome is unknown; then an element is edited. */
static void open_with_update_in_flight(world_t *world)
{
    open_world(world);
    world->fault = FAULT_LOST_DELAYED;
    assert_int_equal(migrate(world), 1);
    assert_int_equal(fault_pending(world->faulty), 1);
    edit(world, 7);
    assert_int_equal(migrate(world), 1);
}

/* The element is edited back, and the update arrives in time: it cuts by its own copy. */
static void late_update_uses_its_copy(void **state)
{
    static world_t world;
    (void)state;
    open_with_update_in_flight(&world);
    assert_int_equal(migrate(&world), 1); /* it does not copy again */
    edit(&world, 101);
    assert_int_equal(fault_deliver(world.faulty, 0), SPILL_DONE);
    close_world(&world);
}

/* The same, but another copy has replaced the first one: the update is too late. */
static void late_update_is_refused_after_its_copy_was_replaced(void **state)
{
    static world_t world;
    (void)state;
    open_with_update_in_flight(&world);
    let_leases_run_out(&world);
    /* the update may have been applied, and the document replaced since */
    assert_int_equal(migrate(&world), 1);
    edit(&world, 101);
    world.fault = FAULT_FAIL;
    assert_int_equal(migrate(&world), -1); /* copied again, not adopted */
    assert_int_equal(fault_deliver(world.faulty, 0), SPILL_REFUSED_GUARD);
    close_world(&world);
}

/* In between no client may send such an update any longer, but the copy still exists. */
static void late_update_is_refused_after_its_time(void **state)
{
    static world_t world;
    (void)state;
    open_with_update_in_flight(&world);
    world.now_us += SPILL_ADOPT_US;
    assert_int_equal(migrate(&world), 1);
    edit(&world, 101);
    assert_int_equal(fault_deliver(world.faulty, 0), SPILL_REFUSED_GUARD);
    close_world(&world);
}

/* An adopted array is neither unmanaged nor dropped while its update may arrive again. */
static void owner_cannot_end_while_update_may_arrive(void **state)
{
    static world_t world;
    spill_migrate_options_t options = {0};
    spill_migrate_result_t result = {0};
    spill_error_t error;
    (void)state;
    open_world(&world);
    world.fault = FAULT_DUPLICATE;
    assert_int_equal(migrate(&world), 0);
    assert_int_equal(fault_pending(world.faulty), 1);
    assert_int_equal(spill_migrate_undo(world.feed, &options, &result, &error), SPILL_TOO_BIG);
    assert_int_equal(result.failed, 1);
    assert_int_equal(spill_array_drop_owner(world.feed, &world.owner, &error), SPILL_CONFLICT);
    assert_non_null(strstr(error.message, "before 2023-11-14T22:17:2"));
    let_leases_run_out(&world);
    assert_int_equal(spill_migrate_undo(world.feed, &options, &result, &error), SPILL_OK);
    assert_int_equal(fault_deliver(world.faulty, 0), SPILL_REFUSED_GUARD);
    close_world(&world);
}

/* An element is edited between copy and update. No user has to check the left-over copy. */
static void refused_copy_is_deleted(void **state)
{
    static world_t world;
    (void)state;
    open_world(&world);
    world.edits = true;
    assert_int_equal(migrate(&world), 1);
    assert_int_equal(migrate(&world), 1);
    let_leases_run_out(&world);
    assert_int_equal(migrate(&world), 0);
    close_world(&world);
}

static bool has_page(world_t *world, int64_t number)
{
    spill_owner_t owner;
    spill_response_t page = SPILL_RESPONSE_INIT;
    assert_int_equal(spill_owner_init(&owner, world->feed, &world->owner, NULL), SPILL_OK);
    assert_int_equal(spill_owner_read_state(&owner, number, &page, NULL), SPILL_OK);
    bool present = page.state.present;
    spill_response_release(&page);
    spill_owner_release(&owner);
    return present;
}

/* Another program saves the document as it read it: with the rest of the array only. */
static void replace_document(world_t *world)
{
    spill_owner_t owner;
    spill_response_t head = SPILL_RESPONSE_INIT;
    bool done;
    assert_int_equal(spill_owner_init(&owner, world->feed, &world->owner, NULL), SPILL_OK);
    assert_int_equal(spill_owner_read_state(&owner, SPILL_HEAD, &head, NULL), SPILL_OK);
    spill_request_t drop = spill_owner_request(&owner, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    drop.incarnation = head.state.incarnation;
    drop.drop_head.pages = head.state.pages;
    assert_int_equal(spill_owner_step(&owner, &drop, &done, NULL), SPILL_OK);
    assert_true(done);
    world->count = (int)head.state.live;
    memmove(world->elements, world->elements + head.state.first,
            (size_t)world->count * sizeof *world->elements);
    write_field(world);
    spill_response_release(&head);
    spill_owner_release(&owner);
}

/* The pages hold the only copy of their elements: no pass deletes them. */
static void pages_of_replaced_document_stay(void **state)
{
    static world_t world;
    (void)state;
    open_world(&world);
    world.dies = true;
    assert_int_equal(migrate(&world), -1);
    world.dies = false;
    replace_document(&world);
    assert_in_range(world.count, THRESHOLD + PAGE, ELEMENTS - 1);
    for (int pass = 0; pass < 4; pass++) {
        assert_int_equal(migrate(&world), 1);
        assert_true(has_page(&world, 0));
        let_leases_run_out(&world);
    }
    release_world(&world);
}

/* A trim cannot delete a page during its lease; the next trim deletes it. */
static void next_trim_deletes_page_after_lease(void **state)
{
    static world_t world;
    (void)state;
    open_world(&world);
    assert_int_equal(migrate(&world), 0);
    assert_int_equal(spill_array_trim_keep(world.feed, &world.owner, 6, NULL, NULL), SPILL_OK);
    assert_true(has_page(&world, 0));
    let_leases_run_out(&world);
    assert_int_equal(spill_array_trim_keep(world.feed, &world.owner, 5, NULL, NULL), SPILL_OK);
    for (int64_t number = 0; number < 3; number++)
        assert_false(has_page(&world, number));
    world.count = 5;
    memmove(world.elements, world.elements + ELEMENTS - 5, 5 * sizeof *world.elements);
    close_world(&world);
}

static void append(world_t *world)
{
    spill_error_t error;
    int64_t number = world->count;
    spill_value_t element = {
        .type = BSON_TYPE_INT64, .data = (const uint8_t *)&number, .size_bytes = sizeof number};
    spill_code_t code =
        spill_array_append(world->feed, &world->owner, &element, 1, NULL, NULL, &error);
    if (code == SPILL_CONFLICT) { /* the head is full, and the page cannot be replaced yet */
        assert_non_null(strstr(error.message, "the copy is neither"));
        let_leases_run_out(world);
        append(world);
        return;
    }
    assert_int_equal(code, SPILL_OK);
    world->elements[world->count++] = number;
}

/* The application starts its array again: its head is older than the copy, yet it spills. */
static void copy_of_later_incarnation_is_replaced(void **state)
{
    static world_t world;
    (void)state;
    open_world(&world);
    world.fault = FAULT_FAIL;
    assert_int_equal(migrate(&world), -1);
    assert_true(has_page(&world, 0));
    world.count = 0;
    write_field(&world);
    while (world.count < ELEMENTS)
        append(&world);
    close_world(&world);
}

/* The copy takes all elements but one, if necessary. An array of one element cannot be migrated. */
static void copy_takes_all_elements_but_one(void **state)
{
    static world_t world;
    (void)state;
    open_world(&world);
    world.store->adopt_room = world.faulty->adopt_room = 1000000;
    assert_int_equal(migrate(&world), 0);
    close_world(&world);
    open_world(&world);
    world.count = 1;
    write_field(&world);
    const spill_migrate_options_t all_are_full = {.full_bytes = 1};
    spill_migrate_result_t predicted = {0};
    assert_int_equal(spill_migrate_survey(world.faulty, &world.array->definition, &all_are_full,
                                          &predicted, NULL),
                     SPILL_OK);
    assert_int_equal(predicted.failed, 1);
    assert_int_equal(migrate(&world), 1);
    assert_false(has_page(&world, 0));
    release_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_update_uses_its_copy),
        cmocka_unit_test(late_update_is_refused_after_its_copy_was_replaced),
        cmocka_unit_test(late_update_is_refused_after_its_time),
        cmocka_unit_test(owner_cannot_end_while_update_may_arrive),
        cmocka_unit_test(refused_copy_is_deleted),
        cmocka_unit_test(pages_of_replaced_document_stay),
        cmocka_unit_test(next_trim_deletes_page_after_lease),
        cmocka_unit_test(copy_of_later_incarnation_is_replaced),
        cmocka_unit_test(copy_takes_all_elements_but_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
