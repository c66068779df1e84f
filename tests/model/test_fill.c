/*
 * Batches that may be split to fill documents. With keep oldest they leave the same documents as
 * single appends. A retry is exact whatever failed, even if the bounds have changed.
 */
#include "model/model.h"
#include "simulation/random.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NAME "sales"

enum { BATCH_MAX = 40, TRIES = 6 };

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static spill_definition_t make_definition(int64_t threshold, int64_t page, int64_t bytes_max)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "sales", NAME, NULL), SPILL_OK);
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = page;
    definition.bounds.head_bytes_max = bytes_max;
    definition.bounds.page_bytes_max = bytes_max;
    return definition;
}

static spill_array_t *open_array(spill_store_t *store, const spill_definition_t *definition)
{
    spill_array_t *array;
    spill_error_t error;
    expect_ok(spill_store_define(store, definition, &error), &error);
    expect_ok(spill_array_open(store, NAME, &array, &error), &error);
    return array;
}

static spill_value_t owner_two(void)
{
    static const int32_t two = 2;
    return (spill_value_t){(const uint8_t *)&two, sizeof two, BSON_TYPE_INT32};
}

/* ---- the example of MongoDB's manual --------------------------------------------------------- */

/* Write documents as the manual shows them, one per line. */
static bool add_document(void *context, const char *collection, const bson_t *document)
{
    char *json = bson_as_canonical_extended_json(document, NULL);
    bson_string_append_printf(context, "%s %s\n", collection, json);
    bson_free(json);
    return true;
}

static char *documents(spill_array_t *array)
{
    spill_value_t owner = owner_two();
    spill_error_t error;
    bson_string_t *text = bson_string_new(NULL);
    expect_ok(spill_array_documents(array, &owner, true, add_document, text, &error), &error);
    return bson_string_free(text, false);
}

/* Append users [first, end) to an array field. */
static void append_users(bson_t *document, const char *field, int first, int end)
{
    bson_t list;
    BSON_APPEND_ARRAY_BEGIN(document, field, &list);
    for (int i = first; i < end; i++) {
        char name[16], index[16];
        const char *key;
        snprintf(name, sizeof name, "u%d", i);
        bson_uint32_to_string((uint32_t)(i - first), &key, index, sizeof index);
        BSON_APPEND_UTF8(&list, key, name);
    }
    bson_append_array_end(document, &list);
}

static char *expected_sales(int count, int threshold, int page)
{
    bson_string_t *text = bson_string_new(NULL);
    bson_t *head = BCON_NEW("_id", BCON_INT32(2));
    append_users(head, "customers_purchased", 0, threshold);
    BSON_APPEND_BOOL(head, "has_extras", true);
    add_document(text, "sales", head);
    bson_destroy(head);
    for (int first = threshold; first < count; first += page) {
        bson_t *extra = BCON_NEW("book_id", BCON_INT32(2));
        int end = first + page < count ? first + page : count;
        append_users(extra, "customers_purchased_extra", first, end);
        add_document(text, "extra_sales", extra);
        bson_destroy(extra);
    }
    return bson_string_free(text, false);
}

static void sell(spill_store_t *store, int page)
{
    enum { CUSTOMERS = 350, THRESHOLD = 50 };
    spill_definition_t definition = make_definition(THRESHOLD, page, 1024 * 1024);
    spill_array_t *array = open_array(store, &definition);
    spill_value_t customers[CUSTOMERS], owner = owner_two();
    bson_t storage = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    append_users(&storage, "list", 0, CUSTOMERS);
    assert_true(bson_iter_init_find(&iter, &storage, "list") && bson_iter_recurse(&iter, &iter));
    for (int i = 0; i < CUSTOMERS && bson_iter_next(&iter); i++)
        customers[i] = spill_value_from_iter(&iter);
    spill_append_options_init(&options);
    options.fill = true;
    expect_ok(spill_array_append(array, &owner, customers, CUSTOMERS, &options, &result, &error),
              &error);
    assert_int_equal(result.first, 0);
    assert_int_equal(result.count, CUSTOMERS);
    char *found = documents(array), *expected = expected_sales(CUSTOMERS, THRESHOLD, page);
    assert_string_equal(found, expected);
    bson_free(found);
    bson_free(expected);
    bson_destroy(&storage);
    spill_array_close(array);
}

static void the_head_has_the_first_customers(void **state)
{
    (void)state;
    for (int page = 100; page <= 1000; page += 900) {
        spill_store_options_t options;
        spill_error_t error;
        spill_store_t *store = model_store_open();
        sell(store, page);
        expect_ok(spill_store_close(store, &error), &error);
        spill_store_options_init(&options);
        options.durability = SPILL_DURABILITY_LOG;
        store = embedded_in_folder(embedded_new_folder(), &options);
        sell(store, page);
        embedded_close(store);
    }
}

/* ---- same documents as single appends -------------------------------------------------------- */

/* Make a string of some length, to fill documents by bytes; it lives in `bytes`. */
static spill_value_t make_string(uint8_t *bytes, uint32_t length)
{
    uint32_t size = BSON_UINT32_TO_LE(length + 1);
    memcpy(bytes, &size, sizeof size);
    memset(bytes + 4, 'x', length);
    bytes[4 + length] = '\0';
    return (spill_value_t){bytes, 4 + length + 1, BSON_TYPE_UTF8};
}

typedef struct pair {
    sim_random_t random;
    spill_array_t *filled; /* by batches */
    spill_array_t *one_by_one;
    uint32_t length_max;
    int64_t count;
} pair_t;

static void append_to_both(pair_t *pair)
{
    static uint8_t bytes[BATCH_MAX][4096];
    spill_value_t elements[BATCH_MAX], owner = owner_two();
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    int count = sim_random_between(&pair->random, 1, BATCH_MAX);
    for (int i = 0; i < count; i++)
        elements[i] = make_string(
            bytes[i], (uint32_t)sim_random_between(&pair->random, 0, (int)pair->length_max));
    spill_append_options_init(&options);
    options.fill = true;
    expect_ok(spill_array_append(pair->filled, &owner, elements, (size_t)count, &options, &result,
                                 &error),
              &error);
    assert_int_equal(result.first, pair->count);
    assert_int_equal(result.count, count);
    for (int i = 0; i < count; i++)
        expect_ok(spill_array_append(pair->one_by_one, &owner, &elements[i], 1, NULL, NULL, &error),
                  &error);
    pair->count += count;
}

static void compare_documents(int64_t threshold, int64_t page, int64_t bytes_max,
                              uint32_t length_max)
{
    spill_definition_t definition = make_definition(threshold, page, bytes_max);
    spill_store_t *left = model_store_open(), *right = model_store_open();
    spill_error_t error;
    pair_t pair = {
        .random = {(uint64_t)(threshold * 1009 + page)},
        .filled = open_array(left, &definition),
        .one_by_one = open_array(right, &definition),
        .length_max = length_max,
    };
    for (int i = 0; i < 20; i++)
        append_to_both(&pair);
    char *found = documents(pair.filled), *expected = documents(pair.one_by_one);
    assert_string_equal(found, expected);
    bson_free(found);
    bson_free(expected);
    model_check_verify(pair.filled, NULL);
    spill_array_close(pair.filled);
    spill_array_close(pair.one_by_one);
    expect_ok(spill_store_close(left, &error), &error);
    expect_ok(spill_store_close(right, &error), &error);
}

static void batches_fill_documents(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 33, 100, 1000};
    enum { SIZES = sizeof sizes / sizeof *sizes, BYTES_LOWEST = 16 * 1024 };
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++) {
            compare_documents(sizes[i], sizes[j], 1024 * 1024, 10);
            compare_documents(sizes[i], sizes[j], BYTES_LOWEST, 4000);
        }
}

/* ---- store calls ----------------------------------------------------------------------------- */

static int64_t count_calls(spill_store_t *store, spill_array_t *array, int count, bool fill)
{
    spill_value_t elements[BATCH_MAX], owner = owner_two();
    spill_append_options_t options;
    spill_error_t error;
    int64_t before = fault_calls(store);
    for (int i = 0; i < count; i++)
        elements[i] = model_value(i);
    spill_append_options_init(&options);
    options.fill = fill;
    expect_ok(spill_array_append(array, &owner, elements, (size_t)count, &options, NULL, &error),
              &error);
    return fault_calls(store) - before;
}

/*
 * An append of one element costs the same as without the option; each document that a batch fills
 * costs three more calls.
 */
static void filling_costs_three_calls_per_document(void **state)
{
    enum { PAGE = 25, BATCHES = 100 };
    (void)state;
    spill_definition_t definition = make_definition(PAGE, PAGE, 1024 * 1024);
    for (int count = 1; count <= 10; count += 9) {
        int64_t calls[2] = {0};
        for (int fill = 0; fill < 2; fill++) {
            fault_hooks_t hooks = {0};
            spill_store_t *store = model_store_open(), *counting;
            spill_error_t error;
            fault_wrap(store, &hooks, &counting);
            spill_array_t *array = open_array(counting, &definition);
            for (int i = 0; i < BATCHES; i++)
                calls[fill] += count_calls(counting, array, count, fill);
            spill_array_close(array);
            spill_store_close(counting, &error);
            spill_store_close(store, &error);
        }
        int64_t more = count == 1 ? 0 : 3 * (BATCHES * count / PAGE);
        assert_true(calls[1] <= calls[0] + more);
        assert_true(count > 1 || calls[1] == calls[0]);
    }
}

/* ---- retries --------------------------------------------------------------------------------- */

typedef struct run {
    sim_random_t random;
    spill_store_t *faulty;
    spill_array_t *array;
    bool troubled; /* calls fail */
    int64_t base;
    int ops;
    model_t model;
} run_t;

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    run_t *run = context;
    (void)index;
    if (!run->troubled || request == NULL || !sim_random_chance(&run->random, 100))
        return FAULT_NONE;
    return (fault_t)sim_random_between(&run->random, 1, FAULT_COUNT - 1);
}

static void open_with_other_bounds(run_t *run)
{
    spill_definition_t definition =
        make_definition(sim_random_between(&run->random, 1, 30),
                        sim_random_between(&run->random, 4, 30), 1024 * 1024);
    run->troubled = false;
    spill_array_close(run->array);
    run->array = open_array(run->faulty, &definition);
    run->troubled = true;
}

/* Late requests arrive now or never. */
static void deliver_late(run_t *run)
{
    while (fault_pending(run->faulty) > 0 && sim_random_chance(&run->random, 800))
        fault_deliver(run->faulty,
                      (size_t)sim_random_below(&run->random, (int)fault_pending(run->faulty)));
}

static void append_until_done(run_t *run)
{
    spill_value_t elements[BATCH_MAX], owner = owner_two();
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    char id[SPILL_OP_ID_MAX];
    int count = sim_random_between(&run->random, 1, BATCH_MAX);
    snprintf(id, sizeof id, "op%d", run->ops++);
    spill_op_t op = {.id = id, .id_bytes = strlen(id), .base = run->base};
    model_next(&run->model, elements, count);
    spill_append_options_init(&options);
    options.op = &op;
    spill_code_t code = SPILL_UNKNOWN;
    for (int i = 0; code == SPILL_UNKNOWN || code == SPILL_IO; i++) {
        run->troubled = i < TRIES;
        options.fill = sim_random_chance(&run->random, 800);
        code = spill_array_append(run->array, &owner, elements, (size_t)count, &options, &result,
                                  &error);
        if (sim_random_chance(&run->random, 300))
            open_with_other_bounds(run);
        deliver_late(run);
    }
    expect_ok(code, &error);
    model_appended(&run->model, count, &result);
    run->base = result.op_base;
}

static void run_retries(spill_store_t *store, uint64_t seed)
{
    run_t run = {.random = {seed}};
    fault_hooks_t hooks = {.context = &run, .decide = decide};
    spill_value_t owner = owner_two();
    spill_error_t error;
    fault_wrap(store, &hooks, &run.faulty);
    open_with_other_bounds(&run);
    for (int i = 0; i < 25; i++)
        append_until_done(&run);
    run.troubled = false;
    while (fault_pending(run.faulty) > 0)
        fault_deliver(run.faulty, 0);
    model_check_count(&run.model, run.array, &owner);
    model_check_export(&run.model, run.array, &owner);
    model_check_verify(run.array, &owner);
    expect_ok(spill_array_drop_owner(run.array, &owner, &error), &error);
    spill_array_close(run.array);
    spill_store_close(run.faulty, &error);
    model_clear(&run.model);
}

static void retries_are_exact(void **state)
{
    (void)state;
    spill_error_t error;
    for (uint64_t seed = 1; seed <= (uint64_t)effort(400, 100, 20); seed++) {
        spill_store_t *store = model_store_open();
        run_retries(store, seed);
        expect_ok(spill_store_close(store, &error), &error);
    }
    for (uint64_t seed = 1; seed <= (uint64_t)effort(40, 20, 5); seed++) {
        disk_t *disk = disk_new();
        spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
        run_retries(store, seed);
        embedded_close(store);
        disk_free(disk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_has_the_first_customers),
        cmocka_unit_test(batches_fill_documents),
        cmocka_unit_test(filling_costs_three_calls_per_document),
        cmocka_unit_test(retries_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
