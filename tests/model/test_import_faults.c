/*
 * An import whose k-th store call fails, for k = 0, 1, 2, ... until one passes without a failure.
 * The reported number of imported elements is correct, even if a batch was appended in parts. The
 * same import, started again, continues to the end; every record is there once and in order.
 */
#include "support/fault_store.h"
#include "support/model_store.h"
#include "tools/import/import.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NAME "events"

enum { RECORDS = 40, OWNERS = 3, TRIES = 4 };

static char path[] = "/tmp/spillway-import-XXXXXX";

static int write_input(void **state)
{
    (void)state;
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    for (int i = 0; i < RECORDS; i++)
        fprintf(file, "{\"by\": %d, \"n\": %d}\n", i % OWNERS, i);
    assert_int_equal(fclose(file), 0);
    return 0;
}

static int remove_input(void **state)
{
    (void)state;
    return unlink(path);
}

/* Count the elements, and check that each owner has its records in the file's order. */
static bool check_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int64_t *count = context;
    bson_t record;
    bson_iter_t iter;
    int32_t by;
    memcpy(&by, owner->data, sizeof by);
    assert_true(bson_init_static(&record, element->value.data, element->value.size_bytes));
    assert_true(bson_iter_init_find(&iter, &record, "n"));
    assert_int_equal(bson_iter_int32(&iter),
                     BSON_UINT32_FROM_LE((uint32_t)by) + element->seq * OWNERS);
    ++*count;
    return true;
}

static int64_t count_elements(spill_store_t *store)
{
    spill_array_t *array;
    spill_error_t error;
    int64_t count = 0;
    assert_int_equal(spill_array_open(store, NAME, &array, &error), SPILL_OK);
    assert_int_equal(spill_array_export(array, NULL, check_element, &count, &error), SPILL_OK);
    spill_array_close(array);
    return count;
}

static spill_code_t run_import(spill_store_t *store, spill_array_t *array,
                               spill_import_result_t *result, const char *id)
{
    spill_error_t error;
    spill_import_options_t options = {.path = path, .format = "ndjson", .owner = "by", .id = id};
    return spill_import(store, array, &options, result, &error);
}

/* Repeat the import until it succeeds. */
static void import_until_done(spill_store_t *faulty, spill_store_t *store, spill_array_t *array,
                              const char *id)
{
    bool lost = false; /* the answer to some step, maybe the very last one, was lost */
    for (int i = 0; i < TRIES; i++) {
        spill_import_result_t result;
        spill_code_t code = run_import(faulty, array, &result, id);
        int64_t there = count_elements(store);
        if (code == SPILL_REFUSED && lost && there == RECORDS)
            return; /* it was finished already */
        if (code == SPILL_UNKNOWN)
            assert_true(result.before + result.records <= there);
        else
            assert_int_equal(result.before + result.records, there);
        if (code == SPILL_OK)
            return;
        assert_true(code == SPILL_UNKNOWN || code == SPILL_IO);
        lost |= code == SPILL_UNKNOWN;
    }
    fail_msg("%d tries were not enough", TRIES);
}

/* Return false if the import made at most `at` calls, so that none failed. */
static bool run_with(spill_keep_t keep, const char *id, fault_t fault, int64_t at)
{
    fault_once_t once = {.at = at, .fault = fault};
    fault_hooks_t hooks = fault_once(&once);
    spill_store_t *store, *faulty;
    spill_array_t *array;
    spill_definition_t definition;
    spill_definition_init(&definition, NAME);
    definition.keep = keep;
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 3;
    store = model_store_open();
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    fault_wrap(store, &hooks, &faulty);
    assert_int_equal(spill_array_open(store, NAME, &array, NULL), SPILL_OK);
    spill_array_close(array);
    spill_code_t code = spill_array_open(faulty, NAME, &array, NULL);
    for (int i = 1; code != SPILL_OK && i < TRIES; i++)
        code = spill_array_open(faulty, NAME, &array, NULL);
    assert_int_equal(code, SPILL_OK);
    import_until_done(faulty, store, array, id);
    assert_int_equal(count_elements(store), RECORDS);
    bool reached = fault_calls(faulty) > at;
    spill_array_close(array);
    spill_store_close(faulty, NULL);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    return reached;
}

static void fail_each_call(const char *id)
{
    static const fault_t faults[] = {FAULT_FAIL, FAULT_LOST_APPLIED, FAULT_LOST_UNAPPLIED};
    for (int keep = 0; keep < 2; keep++)
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            int64_t at = 0;
            while (run_with(keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST, id, faults[i], at))
                at++;
            assert_true(at > 20);
        }
}

static void one_batch_per_owner(void **state)
{
    (void)state;
    fail_each_call(NULL);
}

static void one_operation_per_record(void **state)
{
    (void)state;
    fail_each_call("n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_batch_per_owner),
        cmocka_unit_test(one_operation_per_record),
    };
    return cmocka_run_group_tests(tests, write_input, remove_input);
}
