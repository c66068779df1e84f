/*
 * The k-th store call fails, for k = 0, 1, 2, ... until a run makes no k-th call; in each way in
 * which a call can fail. The client retries as it should. In the end the array has the expected
 * elements, and the verifier finds nothing.
 */
#include "model/model.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NAME "feed"

enum { TRIES = 4 };

typedef enum shape { SHAPE_OLDEST, SHAPE_NEWEST, SHAPE_REFERENCED, SHAPE_SUBSET, SHAPES } shape_t;

typedef struct run {
    spill_array_t *array;
    spill_value_t owner;
    int64_t base;
    int ops;
    model_t model;
} run_t;

/* May the same call be made again? After SPILL_IO nothing was done, after SPILL_UNKNOWN perhaps. */
static bool may_retry(spill_code_t code)
{
    return code == SPILL_IO || code == SPILL_UNKNOWN;
}

static void append_with_retry(run_t *run, int count)
{
    spill_value_t elements[8];
    char id[8];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_code_t code = SPILL_UNKNOWN;
    snprintf(id, sizeof id, "op%d", run->ops++);
    spill_op_t op = {.id = id, .id_bytes = strlen(id), .base = run->base};
    model_next(&run->model, elements, count);
    spill_append_options_init(&options);
    options.op = &op;
    for (int i = 0; i < TRIES && may_retry(code); i++)
        code = spill_array_append(run->array, &run->owner, elements, (size_t)count, &options,
                                  &result, &error);
    if (code != SPILL_OK)
        fail_msg("append: %s: %s", spill_code_name(code), error.message);
    model_appended(&run->model, count, &result);
    run->base = result.op_base;
}

static void edit(run_t *run, int64_t seq, int kind)
{
    spill_value_t element = model_element(&run->model, kind);
    spill_error_t error;
    spill_code_t code = SPILL_UNKNOWN;
    for (int i = 0; i < TRIES && may_retry(code); i++)
        code = spill_array_edit(run->array, &run->owner, seq, &element, &error);
    assert_int_equal(code, SPILL_OK);
    model_set(&run->model, seq, kind);
}

/* Retry a removal. If the answer to the first try was lost, the element may already be removed. */
static void remove_one(run_t *run, int64_t seq)
{
    spill_error_t error;
    spill_code_t code = SPILL_UNKNOWN;
    int tries = 0;
    while (tries++ < TRIES && may_retry(code))
        code = spill_array_remove(run->array, &run->owner, seq, &error);
    assert_true(code == SPILL_OK || (tries > 2 && code == SPILL_NOT_FOUND));
    model_remove(&run->model, seq);
}

static void trim_with_retry(run_t *run, int64_t below)
{
    spill_error_t error;
    spill_code_t code = SPILL_UNKNOWN;
    for (int i = 0; i < TRIES && may_retry(code); i++)
        code = spill_array_trim(run->array, &run->owner, below, &error);
    assert_int_equal(code, SPILL_OK);
    model_trim(&run->model, below);
}

/* Appends, spills, batches of one and of several parts, changes in the head and in pages. */
static void run_operations(run_t *run)
{
    for (int i = 0; i < 7; i++)
        append_with_retry(run, 1);
    append_with_retry(run, 2);
    append_with_retry(run, 5);
    edit(run, 0, 11);
    edit(run, run->model.count - 1, 12);
    remove_one(run, 3);
    remove_one(run, run->model.count - 1);
    append_with_retry(run, 1);
    trim_with_retry(run, 2);
    append_with_retry(run, 3);
    remove_one(run, 4);
    append_with_retry(run, 1);
}

static void check_array(run_t *run, spill_store_t *store)
{
    spill_array_t *array;
    spill_error_t error;
    assert_int_equal(spill_array_open(store, NAME, &array, &error), SPILL_OK);
    model_check_count(&run->model, array, &run->owner);
    if (run->model.top > 0)
        model_check_top(&run->model, array, &run->owner);
    model_check_export(&run->model, array, &run->owner);
    model_check_verify(array, &run->owner);
    spill_array_close(array);
}

/* Return false if the run made at most `at` calls, so that none failed. */
static bool run_with(spill_store_t *store, int64_t owner, fault_t fault, int64_t at, shape_t shape)
{
    bool subset = shape == SHAPE_SUBSET;
    fault_once_t once = {.at = at, .fault = fault};
    fault_hooks_t hooks = fault_once(&once);
    spill_store_t *faulty;
    spill_error_t error;
    run_t run = {.owner = {.data = (const uint8_t *)&owner,
                           .size_bytes = sizeof owner,
                           .type = BSON_TYPE_INT64},
                 .model = {.documents = subset || shape == SHAPE_REFERENCED,
                           .top = subset ? 2 : 0,
                           .by = "rating"}};
    fault_wrap(store, &hooks, &faulty);
    spill_code_t code = SPILL_UNKNOWN;
    for (int i = 0; i < TRIES && may_retry(code); i++)
        code = spill_array_open(faulty, NAME, &run.array, &error);
    assert_int_equal(code, SPILL_OK);
    run_operations(&run);
    bool reached = fault_calls(faulty) > at;
    check_array(&run, store);
    while (fault_pending(faulty) > 0) {
        fault_deliver(faulty, 0);
        check_array(&run, store);
    }
    spill_array_close(run.array);
    spill_store_close(faulty, &error);
    model_clear(&run.model);
    return reached;
}

static void fail_each_call(spill_store_t *store, shape_t shape)
{
    static int64_t owner;
    spill_definition_t definition;
    spill_error_t error;
    if (shape == SHAPE_REFERENCED || shape == SHAPE_SUBSET)
        spill_definition_preset(&definition,
                                shape == SHAPE_REFERENCED ? "reviews-separate" : "reviews-subset",
                                NAME, NULL);
    else
        spill_definition_init(&definition, NAME);
    definition.top_count = shape == SHAPE_SUBSET ? 2 : 0;
    definition.keep = shape == SHAPE_OLDEST ? SPILL_KEEP_OLDEST : SPILL_KEEP_NEWEST;
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 2;
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    const int64_t step = effort(1, 1, 7);
    for (fault_t fault = FAULT_NONE; fault < FAULT_COUNT; fault++) {
        int64_t at = (int64_t)fault % step;
        while (run_with(store, ++owner, fault, at, shape))
            at += step;
        assert_true(at > 50);
    }
}

static void model_store(void **state)
{
    (void)state;
    for (shape_t shape = 0; shape < SHAPES; shape++) {
        spill_store_t *store = model_store_open();
        spill_error_t error;
        fail_each_call(store, shape);
        assert_int_equal(spill_store_close(store, &error), SPILL_OK);
    }
}

static void embedded_store(void **state)
{
    (void)state;
    for (shape_t shape = 0; shape < SHAPES; shape++) {
        spill_store_options_t options;
        spill_store_options_init(&options);
        options.durability = SPILL_DURABILITY_LOG;
        spill_store_t *store = embedded_in_folder(embedded_new_folder(), &options);
        fail_each_call(store, shape);
        embedded_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_store),
        cmocka_unit_test(embedded_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
