/*
 * Documents that are full: schedules in which the update that takes an array over and cuts it is
 * long under way, while the array is edited, copied anew, and edited back. In the end every element
 * is there once, as its writers left it. On the memory store, with a clock that the test moves.
 */
#include "store/fault.h"
#include "tools/migrate.h"

#include "core/array.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ELEMENTS = 20, THRESHOLD = 4, PAGE = 3 };

typedef struct world {
    spill_store_t *store, *faulty;
    spill_array_t *feed, *other, *array; /* the migration's, by `faulty` */
    bson_t storage;
    spill_value_t owner;
    int64_t elements[ELEMENTS];
    int64_t now_us;
    spill_fault_t fault; /* what becomes of the next TAKE_CUT, once */
} world_t;

static int64_t now_us(void *context)
{
    return ++((world_t *)context)->now_us;
}

static void sleep_us(void *context, int64_t duration_us)
{
    ((world_t *)context)->now_us += duration_us;
}

static spill_fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_TAKE_CUT)
        return SPILL_FAULT_NONE;
    spill_fault_t fault = world->fault;
    world->fault = fault == SPILL_FAULT_LOST_DELAYED ? SPILL_FAULT_FAIL : SPILL_FAULT_NONE;
    return fault;
}

static void define(world_t *world, const char *name, spill_array_t **array)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", name, NULL), SPILL_OK);
    definition.bounds.threshold = THRESHOLD;
    definition.bounds.page_capacity = PAGE;
    if (strcmp(name, "other") == 0) {
        strcpy(definition.array, "other");
        strcpy(definition.count_field, "otherCount");
        strcpy(definition.overflow_field, "otherOverflow");
        strcpy(definition.pages_field, "otherPages");
        strcpy(definition.page_collection, "otherPages");
    }
    assert_int_equal(spill_store_define(world->store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(world->store, name, array, NULL), SPILL_OK);
}

/* The array as a field of the document, which is nobody's but its writers'. */
static void write_field(world_t *world)
{
    bson_t update = BSON_INITIALIZER, set, array;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (int i = 0; i < ELEMENTS; i++) {
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

static void open_world(world_t *world)
{
    *world = (world_t){.now_us = (int64_t)1700000000 * 1000000};
    spill_fault_hooks_t hooks = {.context = world, .decide = decide};
    assert_int_equal(spill_store_open("memory:", NULL, &world->store, NULL), SPILL_OK);
    world->store->options.clock = (spill_clock_t){world, now_us, sleep_us};
    world->store->take_room = 8;
    define(world, "feed", &world->feed);
    define(world, "other", &world->other);
    bson_init(&world->storage);
    world->owner = spill_value_from_utf8(&world->storage, "ada");
    for (int i = 0; i < ELEMENTS; i++)
        world->elements[i] = 100 + i;
    write_field(world);
    spill_fault_wrap(world->store, &hooks, &world->faulty);
    assert_int_equal(spill_array_open(world->faulty, "feed", &world->array, NULL), SPILL_OK);
}

/* How many owners failed; -1: the pass has ended early. */
static int64_t migrate(world_t *world)
{
    spill_migrate_options_t options = {.full_bytes = 1};
    spill_migrate_result_t result = {0};
    return spill_migrate(world->array, &options, &result, NULL) == SPILL_OK ? result.failed : -1;
}

static bool compare(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    const int64_t **next = context;
    int64_t number;
    (void)owner;
    memcpy(&number, element->value.data, sizeof number);
    assert_int_equal(number, **next);
    ++*next;
    return true;
}

static void close_world(world_t *world)
{
    spill_verify_summary_t summary;
    const int64_t *next = world->elements;
    while (spill_fault_pending(world->faulty) > 0)
        spill_fault_deliver(world->faulty, 0);
    world->now_us += SPILL_TAKE_US + SPILL_MARGIN_US;
    while (migrate(world) != 0)
        world->now_us += SPILL_TAKE_US + SPILL_MARGIN_US;
    assert_int_equal(spill_array_export(world->feed, &world->owner, compare, &next, NULL),
                     SPILL_OK);
    assert_ptr_equal(next, world->elements + ELEMENTS);
    assert_int_equal(spill_array_verify(world->feed, NULL, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, 0);
    spill_array_close(world->array);
    spill_array_close(world->feed);
    spill_array_close(world->other);
    assert_int_equal(spill_store_close(world->faulty, NULL), SPILL_OK);
    assert_int_equal(spill_store_close(world->store, NULL), SPILL_OK);
    bson_destroy(&world->storage);
}

/* The first update is on its way; its copy is given up, for an element was edited. */
static void open_given_up(world_t *world)
{
    open_world(world);
    world->fault = SPILL_FAULT_LOST_DELAYED;
    assert_int_equal(migrate(world), -1);
    assert_int_equal(spill_fault_pending(world->faulty), 1);
    edit(world, 7);
    assert_int_equal(migrate(world), 1);
}

/* Edited, and edited back, and the update comes in time: it cuts by its own copy. */
static void a_late_update_finds_its_copy(void **state)
{
    static world_t world;
    (void)state;
    open_given_up(&world);
    world.fault = SPILL_FAULT_FAIL;
    assert_int_equal(migrate(&world), 1); /* it does not copy anew */
    edit(&world, 101);
    assert_int_equal(spill_fault_deliver(world.faulty, 0), SPILL_DONE);
    close_world(&world);
}

/* The same when the copy has given way to another: it comes too late. */
static void a_late_update_is_refused_once_its_copy_is_gone(void **state)
{
    static world_t world;
    (void)state;
    open_given_up(&world);
    world.now_us += SPILL_TAKE_US + SPILL_MARGIN_US;
    world.fault = SPILL_FAULT_FAIL;
    assert_int_equal(migrate(&world), -1); /* copied anew, and not taken */
    edit(&world, 101);
    assert_int_equal(spill_fault_deliver(world.faulty, 0), SPILL_REFUSED_GUARD);
    close_world(&world);
}

/* In between nobody may send such an update any more, and the copy is there still. */
static void a_late_update_is_refused_while_its_copy_is_kept(void **state)
{
    static world_t world;
    (void)state;
    open_given_up(&world);
    world.now_us += SPILL_TAKE_US;
    assert_int_equal(migrate(&world), 1);
    edit(&world, 101);
    assert_int_equal(spill_fault_deliver(world.faulty, 0), SPILL_REFUSED_GUARD);
    close_world(&world);
}

/* What was taken over is neither given back nor dropped while the update may come again. */
static void an_owner_does_not_end_while_the_update_may_come(void **state)
{
    static world_t world;
    spill_migrate_options_t options = {0};
    spill_migrate_result_t result = {0};
    spill_error_t error;
    (void)state;
    open_world(&world);
    world.fault = SPILL_FAULT_DUPLICATE;
    assert_int_equal(migrate(&world), 0);
    assert_int_equal(spill_fault_pending(world.faulty), 1);
    assert_int_equal(spill_migrate_undo(world.feed, &options, &result, &error), SPILL_TOO_BIG);
    assert_int_equal(result.failed, 1);
    assert_int_equal(spill_array_drop_owner(world.feed, &world.owner, &error), SPILL_CONFLICT);
    assert_non_null(strstr(error.message, "before 2023-11-14T22:17:2"));
    world.now_us += SPILL_TAKE_US + SPILL_MARGIN_US;
    assert_int_equal(spill_migrate_undo(world.feed, &options, &result, &error), SPILL_OK);
    assert_int_equal(spill_fault_deliver(world.faulty, 0), SPILL_REFUSED_GUARD);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_update_finds_its_copy),
        cmocka_unit_test(a_late_update_is_refused_once_its_copy_is_gone),
        cmocka_unit_test(a_late_update_is_refused_while_its_copy_is_kept),
        cmocka_unit_test(an_owner_does_not_end_while_the_update_may_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
