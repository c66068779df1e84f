/*
 * Layout subset: a removal finds the next-ranked element with few requests, however many elements
 * have ranks close together, and in whatever order the server returns them. A proxy counts.
 */
#include "support/proxy.h"
#include "support/server.h"

#include <spillway/spillway.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ELEMENTS = 3000, TOP = 3, REMOVALS = 6, REQUESTS_MOST = 35 };

typedef struct stage {
    proxy_t *proxy;
    char *uri; /* of the server itself */
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
} stage_t;

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void append_all(stage_t *stage, bson_t *(*element_of)(int64_t number))
{
    static bson_t *documents[ELEMENTS];
    static spill_value_t elements[ELEMENTS];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    for (int i = 0; i < ELEMENTS; i++) {
        documents[i] = element_of(i);
        elements[i] = spill_value_from_document(documents[i]);
    }
    spill_append_options_init(&options);
    options.fill = true;
    expect_ok(spill_array_append(stage->array, &stage->owner, elements, ELEMENTS, &options, &result,
                                 &error),
              &error);
    for (int i = 0; i < ELEMENTS; i++)
        bson_destroy(documents[i]);
}

static void open_stage(stage_t *stage, bson_t *(*element_of)(int64_t number))
{
    spill_definition_t definition;
    spill_error_t error;
    *stage = (stage_t){.proxy = proxy_start(server_uri()), .uri = server_new_database(NULL)};
    char *through = proxy_uri(stage->proxy, stage->uri);
    stage->store = server_open(through);
    bson_free(through);
    expect_ok(spill_definition_preset(&definition, "reviews-subset", "reviews", &error), &error);
    strcpy(definition.sort_field, "by");
    definition.top_count = TOP;
    definition.bounds.page_capacity = 1000;
    expect_ok(spill_store_define(stage->store, &definition, &error), &error);
    expect_ok(spill_array_open(stage->store, "reviews", &stage->array, &error), &error);
    bson_init(&stage->storage);
    stage->owner = spill_value_from_utf8(&stage->storage, "ada");
    append_all(stage, element_of);
}

static void close_stage(stage_t *stage)
{
    spill_array_close(stage->array);
    server_close(stage->store);
    proxy_stop(stage->proxy);
    server_drop(stage->uri);
    bson_free(stage->uri);
    bson_destroy(&stage->storage);
}

/* Remove the highest-ranked element repeatedly. `seq_of` maps a rank to a sequence number. */
static void check_removals(bson_t *(*element_of)(int64_t number), int64_t (*seq_of)(int64_t rank))
{
    stage_t stage;
    spill_error_t error;
    int64_t most = 0;
    open_stage(&stage, element_of);
    for (int i = 0; i < REMOVALS; i++) {
        proxy_counts_t before = proxy_counts(stage.proxy);
        expect_ok(spill_array_remove(stage.array, &stage.owner, seq_of(i), &error), &error);
        int64_t requests = proxy_counts(stage.proxy).requests - before.requests;
        most = requests > most ? requests : most;
        spill_slice_t *slice;
        expect_ok(spill_array_top(stage.array, &stage.owner, TOP, &slice, &error), &error);
        assert_int_equal(slice->count, TOP);
        for (int k = 0; k < TOP; k++)
            assert_int_equal(slice->elements[k].seq, seq_of(i + 1 + k));
        spill_slice_free(slice);
    }
    print_message("%" PRId64 " requests for a removal at most\n", most);
    assert_true(most <= REQUESTS_MOST);
    close_stage(&stage);
}

static int64_t newest(int64_t rank)
{
    return ELEMENTS - 1 - rank;
}

static int64_t oldest(int64_t rank)
{
    return rank;
}

/* Dates as in a bulk load: a millisecond apart. */
static bson_t *rising_date(int64_t number)
{
    return BCON_NEW("by", BCON_DATE_TIME(1700000000000 + number));
}

static bson_t *falling_date(int64_t number)
{
    return BCON_NEW("by", BCON_DATE_TIME(1700000000000 - number));
}

static bson_t *rising_number(int64_t number)
{
    return BCON_NEW("by", BCON_DOUBLE(1e-3 * (double)number));
}

/* The four oldest ratings are high; very many later ones are from 1 to 5. */
static bson_t *rating(int64_t number)
{
    return BCON_NEW("by", BCON_INT32(number < 4 ? 9 - (int32_t)number : (int32_t)number % 5 + 1));
}

static int64_t rated(int64_t rank)
{
    return rank < 4 ? rank : ELEMENTS - 1 - 5 * (rank - 4);
}

/* Many different numbers, below the same number of equal ones. */
static bson_t *ceiling_number(int64_t number)
{
    double by = 1 + 0x1p-9 * (double)(number % 1500);
    if (by > 3)
        by = 3;
    return BCON_NEW("by", BCON_DOUBLE(number < 4 ? 9 - (double)number : by));
}

static int64_t ceiling(int64_t rank)
{
    return rank < 4 ? rank : ELEMENTS - 1 - (rank - 4);
}

/* Elements are read by number through an index that may have been dropped. */
static void without_the_index(void **state)
{
    (void)state;
    stage_t stage;
    spill_error_t error;
    bson_error_t cause;
    spill_slice_t *slice;
    spill_read_options_t options;
    mongoc_database_t *database;
    open_stage(&stage, falling_date);
    mongoc_client_t *client = server_client(stage.uri, &database);
    mongoc_collection_t *elements = mongoc_database_get_collection(database, "reviews");
    spill_read_options_init(&options);
    options.limit = 9;
    for (int i = 0; i < 2; i++) {
        expect_ok(spill_array_read(stage.array, &stage.owner, &options, &slice, &error), &error);
        assert_int_equal(slice->count, 9);
        for (size_t k = 0; k < slice->count; k++)
            assert_int_equal(slice->elements[k].seq, newest((int64_t)k));
        spill_slice_free(slice);
        if (i == 0)
            assert_true(mongoc_collection_drop_index(elements, "spillway_first", &cause));
    }
    mongoc_collection_destroy(elements);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    close_stage(&stage);
}

static void rising_dates(void **state)
{
    (void)state;
    check_removals(rising_date, newest);
}

static void falling_dates(void **state)
{
    (void)state;
    check_removals(falling_date, oldest);
}

static void rising_numbers(void **state)
{
    (void)state;
    check_removals(rising_number, newest);
}

static void ratings(void **state)
{
    (void)state;
    check_removals(rating, rated);
}

static void numbers_below_a_ceiling(void **state)
{
    (void)state;
    check_removals(ceiling_number, ceiling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rising_dates),
        cmocka_unit_test(falling_dates),
        cmocka_unit_test(rising_numbers),
        cmocka_unit_test(ratings),
        cmocka_unit_test(numbers_below_a_ceiling),
        cmocka_unit_test(without_the_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
