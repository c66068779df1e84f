/*
 * Operations of sessions and matches through the public API, on the model store and the embedded
 * store. tests/simulation has their schedules, tests/contract their requests.
 */
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"

#include "core/array.h"
#include "util/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { THRESHOLD = 4, PAGE = 3 };

typedef struct world {
    spill_store_t *store;
    disk_t *disk; /* of an embedded store; or NULL */
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    spill_append_result_t result;
    spill_error_t error;
} world_t;

static void open_world(world_t *world, bool memory, const char *preset)
{
    spill_definition_t definition;
    *world = (world_t){.disk = memory ? NULL : disk_new()};
    world->store =
        memory ? model_store_open() : embedded_on_disk(world->disk, SPILL_DURABILITY_LOG);
    assert_int_equal(spill_definition_preset(&definition, preset, "feed", NULL), SPILL_OK);
    definition.bounds.threshold = THRESHOLD;
    definition.bounds.page_capacity = PAGE;
    assert_int_equal(spill_store_define(world->store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(world->store, "feed", &world->array, NULL), SPILL_OK);
    bson_init(&world->storage);
    world->owner = spill_value_from_utf8(&world->storage, "ada");
}

static void close_world(world_t *world)
{
    spill_array_close(world->array);
    assert_int_equal(spill_store_close(world->store, NULL), SPILL_OK);
    bson_destroy(&world->storage);
    if (world->disk)
        disk_free(world->disk);
}

static spill_session_op_t make_op(uint8_t session, int64_t txn, int32_t number)
{
    return (spill_session_op_t){.session = {session}, .txn = txn, .number = number};
}

/* Append the numbers 0, 1, ..., `count` of them. */
static spill_code_t append(world_t *world, size_t count, const spill_session_op_t *op,
                           const bson_t *match)
{
    static const int64_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    spill_value_t elements[8];
    spill_append_options_t options;
    for (size_t i = 0; i < count; i++)
        elements[i] = (spill_value_t){(const uint8_t *)&numbers[i], 8, BSON_TYPE_INT64};
    spill_append_options_init(&options);
    options.session = op;
    options.match = match;
    return spill_array_append(world->array, &world->owner, elements, count, &options,
                              &world->result, &world->error);
}

static int64_t count(world_t *world)
{
    spill_count_t counted;
    assert_int_equal(spill_array_count(world->array, &world->owner, &counted, NULL), SPILL_OK);
    return counted.count;
}

static void repeat(bool memory)
{
    world_t world;
    open_world(&world, memory, "feed-recent");
    spill_session_op_t op = make_op(1, 5, 0), next = make_op(1, 5, 8), later = make_op(1, 6, 0);
    assert_int_equal(append(&world, 8, &op, NULL), SPILL_OK); /* split: it is larger than a page */
    assert_int_equal(world.result.first, 0);
    assert_int_equal(world.result.count, 8);
    assert_false(world.result.repeated);
    assert_int_equal(append(&world, 8, &op, NULL), SPILL_OK);
    assert_int_equal(world.result.first, -1);
    assert_int_equal(world.result.count, 8);
    assert_true(world.result.repeated);
    assert_int_equal(append(&world, 1, &next, NULL), SPILL_OK);
    assert_int_equal(world.result.first, 8);
    assert_int_equal(append(&world, 8, &op, NULL), SPILL_OK);
    assert_true(world.result.repeated);
    assert_int_equal(count(&world), 9);
    assert_int_equal(append(&world, 1, &later, NULL), SPILL_OK);
    assert_int_equal(append(&world, 1, &next, NULL), SPILL_CONFLICT);
    assert_int_equal(world.error.reason, SPILL_REASON_TOO_OLD);
    assert_false(world.error.retryable);
    op = make_op(1, 6, 0);
    assert_int_equal(append(&world, 3, &op, NULL), SPILL_OK); /* its first number was applied */
    assert_false(world.result.repeated);
    assert_int_equal(world.result.count, 3);
    assert_int_equal(count(&world), 12);
    close_world(&world);
}

static void operation_is_repeated(void **state)
{
    (void)state;
    repeat(true);
    repeat(false);
}

/*
 * A drop between two parts of a batch: the new owner has the later part alone. A retry under other
 * bounds groups its numbers with earlier ones, so that a part's first number is missing.
 */
static void separate(bool memory)
{
    world_t world;
    open_world(&world, memory, "feed-recent");
    spill_session_op_t whole = make_op(1, 5, 0), later = make_op(1, 5, 4);
    assert_int_equal(append(&world, 4, &whole, NULL), SPILL_OK);
    assert_int_equal(spill_array_drop_owner(world.array, &world.owner, NULL), SPILL_OK);
    assert_int_equal(append(&world, 1, &later, NULL), SPILL_OK);
    assert_int_equal(append(&world, 5, &whole, NULL), SPILL_CONFLICT); /* 0 to 2, then 3 and 4 */
    assert_int_equal(world.error.reason, SPILL_REASON_NONE);
    assert_false(world.error.retryable);
    assert_non_null(strstr(world.error.message, "numbers"));
    assert_int_equal(world.result.first, 1);
    assert_int_equal(world.result.count, 3);
    assert_false(world.result.repeated);
    assert_int_equal(count(&world), 4);
    whole.number = 3;
    assert_int_equal(append(&world, 2, &whole, NULL), SPILL_CONFLICT);
    assert_int_equal(world.result.count, 0);
    assert_false(world.result.repeated);
    assert_int_equal(count(&world), 4);
    close_world(&world);
}

static void later_part_alone_is_a_conflict(void **state)
{
    (void)state;
    separate(true);
    separate(false);
}

static void crowd(bool memory)
{
    world_t world;
    open_world(&world, memory, "feed-recent");
    for (uint8_t i = 0; i < 2; i++) {
        spill_session_op_t op = make_op(i, 5, 0);
        op.entries_max = 2;
        assert_int_equal(append(&world, 1, &op, NULL), SPILL_OK);
    }
    spill_session_op_t third = make_op(2, 5, 0);
    third.entries_max = 2;
    assert_int_equal(append(&world, 1, &third, NULL), SPILL_CONFLICT);
    assert_int_equal(world.error.reason, SPILL_REASON_SESSIONS);
    assert_true(world.error.retryable);
    assert_int_equal(count(&world), 2);
    third.horizon_us = 1; /* the others are older */
    assert_int_equal(append(&world, 1, &third, NULL), SPILL_OK);
    close_world(&world);
}

static void too_many_sessions_are_refused(void **state)
{
    (void)state;
    crowd(true);
    crowd(false);
}

static void match(bool memory)
{
    world_t world;
    bool repeated;
    spill_update_options_t options;
    SPILL_SCOPED(bson_destroy) bson_t any = BSON_INITIALIZER;
    open_world(&world, memory, "feed-recent");
    bson_t *first = BCON_NEW("version", BCON_INT32(1));
    bson_t *raise = BCON_NEW("$inc", "{", "version", BCON_INT32(1), "}");
    bson_t *own = BCON_NEW("$and", "[", "{", "activities.0", BCON_INT32(1), "}", "]");
    spill_session_op_t op = make_op(1, 5, 0);
    assert_int_equal(append(&world, 1, NULL, &any), SPILL_NOT_FOUND);
    assert_int_equal(world.error.reason, SPILL_REASON_NO_MATCH);
    assert_int_equal(append(&world, 1, NULL, NULL), SPILL_OK);
    assert_int_equal(append(&world, 1, NULL, &any), SPILL_OK);
    assert_int_equal(append(&world, 1, NULL, first), SPILL_NOT_FOUND);
    assert_int_equal(world.error.reason, SPILL_REASON_NO_MATCH);
    assert_int_equal(append(&world, 1, NULL, own), SPILL_INVALID);
    spill_update_options_init(&options);
    options.session = &op;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(spill_array_update_with(world.array, &world.owner, raise, &options,
                                                 &repeated, &world.error),
                         SPILL_OK);
        assert_int_equal(repeated, i == 1);
    }
    options.match = first;
    op.txn = 6;
    for (int i = 0; i < 2; i++) { /* the retry does not match any longer */
        assert_int_equal(spill_array_update_with(world.array, &world.owner, raise, &options,
                                                 &repeated, &world.error),
                         SPILL_OK);
        assert_int_equal(repeated, i == 1);
    }
    op.txn = 7;
    assert_int_equal(
        spill_array_update_with(world.array, &world.owner, raise, &options, NULL, &world.error),
        SPILL_NOT_FOUND);
    assert_int_equal(world.error.reason, SPILL_REASON_NO_MATCH);
    assert_int_equal(count(&world), 2);
    bson_destroy(first);
    bson_destroy(raise);
    bson_destroy(own);
    close_world(&world);
}

static void head_must_match(void **state)
{
    (void)state;
    match(true);
    match(false);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    world_t world;
    spill_append_options_t options;
    spill_session_op_t op = make_op(1, -1, 0);
    int64_t number = 7;
    spill_value_t element = {(const uint8_t *)&number, 8, BSON_TYPE_INT64};
    open_world(&world, true, "feed-recent");
    assert_int_equal(append(&world, 1, &op, NULL), SPILL_INVALID);
    op = make_op(1, 0, INT32_MAX);
    assert_int_equal(append(&world, 1, &op, NULL), SPILL_INVALID);
    spill_append_options_init(&options);
    options.session = &op;
    options.op = &(spill_op_t){.id = "a", .id_bytes = 1};
    assert_int_equal(
        spill_array_append(world.array, &world.owner, &element, 1, &options, NULL, &world.error),
        SPILL_INVALID);
    options.version = 1; /* of a caller that does not know sessions */
    options.op = NULL;
    assert_int_equal(
        spill_array_append(world.array, &world.owner, &element, 1, &options, NULL, &world.error),
        SPILL_OK);
    close_world(&world);
    open_world(&world, true, "feed"); /* keeps the oldest */
    op = make_op(1, 0, 0);
    assert_int_equal(append(&world, 1, &op, NULL), SPILL_INVALID);
    close_world(&world);
}

/* Drops the owner after the first append, as another client. */
static void drop_after_append(void *context, int64_t index, const spill_request_t *request)
{
    world_t *other = context;
    (void)index;
    if (request == NULL || request->kind != SPILL_REQUEST_APPEND || other->result.count > 0)
        return;
    other->result.count = 1;
    assert_int_equal(spill_array_drop_owner(other->array, &other->owner, NULL), SPILL_OK);
}

/* With a match, no part of a batch creates the head, not even if it was there before. */
static void a_later_part_creates_no_head(void **state)
{
    (void)state;
    world_t other, world = {0};
    bson_t exists = BSON_INITIALIZER;
    open_world(&other, true, "feed-recent");
    assert_int_equal(append(&other, 1, NULL, NULL), SPILL_OK);
    other.result.count = 0;
    const fault_hooks_t hooks = {.context = &other, .after = drop_after_append};
    fault_wrap(other.store, &hooks, &world.store);
    assert_int_equal(spill_array_open(world.store, "feed", &world.array, NULL), SPILL_OK);
    bson_init(&world.storage);
    world.owner = spill_value_from_utf8(&world.storage, "ada");
    assert_int_equal(append(&world, 8, NULL, &exists), SPILL_NOT_FOUND);
    assert_int_equal(world.error.reason, SPILL_REASON_NO_MATCH);
    assert_int_equal(count(&other), 0);
    close_world(&world);
    close_world(&other);
    bson_destroy(&exists);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operation_is_repeated),
                                       cmocka_unit_test(later_part_alone_is_a_conflict),
                                       cmocka_unit_test(too_many_sessions_are_refused),
                                       cmocka_unit_test(head_must_match),
                                       cmocka_unit_test(misuse_is_refused),
                                       cmocka_unit_test(a_later_part_creates_no_head)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
