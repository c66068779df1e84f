/*
 * Small owners are copied many at a time. Each call of the target goes wrong in each way; late
 * requests arrive a few calls later, or after the copy. Nothing is copied twice.
 */
#include "definition/schema.h"
#include "support/fault_store.h"
#include "support/model_store.h"
#include "tools/definition_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { OWNERS = 5, TRIES = 20, LATE = 3, ELEMENTS = 1 + 2 + 3 + 4 + 5 };

typedef struct world {
    spill_store_t *target; /* with faults */
    int64_t fail_at;
    fault_t fault;
    bool late; /* after the copy */
    int reads, appends;
} world_t;

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const world_t *world = context;
    (void)request;
    return index == world->fail_at ? world->fault : FAULT_NONE;
}

static void before_call(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    world->reads += request && request->kind == SPILL_REQUEST_READ;
    world->appends += request && request->kind == SPILL_REQUEST_APPEND;
    while (!world->late && index > world->fail_at + LATE && fault_pending(world->target) > 0)
        fault_deliver(world->target, 0);
}

/* Owner i has i + 1 elements. */
static void fill(spill_store_t *store)
{
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    must(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    must(spill_store_define(store, &definition, &error), &error);
    must(spill_array_open(store, "feed", &array, &error), &error);
    for (int32_t i = 0; i < OWNERS; i++)
        for (int32_t k = 0; k <= i; k++) {
            spill_value_t owner = {
                .data = (const uint8_t *)&i, .size_bytes = sizeof i, .type = BSON_TYPE_INT32};
            spill_value_t value = {
                .data = (const uint8_t *)&k, .size_bytes = sizeof k, .type = BSON_TYPE_INT32};
            must(spill_array_append(array, &owner, &value, 1, NULL, NULL, &error), &error);
        }
    spill_array_close(array);
}

/* As its user would, repeat the copy until it succeeds. */
static spill_copy_result_t copy_until_done(spill_store_t *source, const world_t *world)
{
    const spill_copy_options_t options = {0};
    spill_error_t error = {0};
    spill_copy_result_t result = {0};
    spill_code_t code = SPILL_IO;
    for (int i = 0; code != SPILL_OK && i < TRIES; i++) {
        result = (spill_copy_result_t){0};
        code = spill_copy(source, world->target, "feed", &options, &result, &error);
    }
    if (code != SPILL_OK)
        fail_msg("%s at call %lld: %s", fault_name(world->fault), (long long)world->fail_at,
                 error.message);
    return result;
}

/* False: the copy has fewer calls. */
static bool survives(int64_t at, fault_t fault, bool late)
{
    spill_store_t *source = model_store_open(), *inner = model_store_open();
    world_t world = {.fail_at = at, .fault = fault, .late = late};
    fault_hooks_t hooks = {.context = &world, .decide = decide, .before = before_call};
    fault_wrap(inner, &hooks, &world.target);
    fill(source);
    copy_until_done(source, &world);
    bool reached = fault_calls(world.target) > at;
    while (fault_pending(world.target) > 0)
        fault_deliver(world.target, 0);
    spill_copy_result_t result = copy_until_done(source, &world);
    assert_int_equal(result.owners, OWNERS);
    assert_int_equal(result.differences, 0);
    assert_int_equal(result.elements, 0);
    assert_int_equal(result.verified, ELEMENTS);
    spill_store_close(world.target, NULL);
    spill_store_close(inner, NULL);
    spill_store_close(source, NULL);
    return reached;
}

static void every_call(void **state)
{
    (void)state;
    for (int fault = FAULT_FAIL; fault < FAULT_COUNT; fault++)
        for (int late = 0; late < 2; late++) {
            int64_t at = 0;
            while (survives(at, (fault_t)fault, late))
                at++;
            assert_true(at > OWNERS);
        }
}

/* The requests of a group: a read of each head before, an append, a read after. */
static void no_owner_is_copied_alone(void **state)
{
    (void)state;
    spill_store_t *source = model_store_open(), *inner = model_store_open();
    world_t world = {.fail_at = -1};
    fault_hooks_t hooks = {.context = &world, .before = before_call};
    fault_wrap(inner, &hooks, &world.target);
    fill(source);
    spill_copy_result_t result = copy_until_done(source, &world);
    assert_int_equal(result.elements, ELEMENTS);
    assert_int_equal(world.reads, 2 * OWNERS);
    assert_int_equal(world.appends, OWNERS);
    result = copy_until_done(source, &world);
    assert_int_equal(result.before, ELEMENTS);
    assert_int_equal(world.reads, 3 * OWNERS);
    assert_int_equal(world.appends, OWNERS);
    spill_store_close(world.target, NULL);
    spill_store_close(inner, NULL);
    spill_store_close(source, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_owner_is_copied_alone),
        cmocka_unit_test(every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
