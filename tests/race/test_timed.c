/*
 * Threads with deadlines that pass at any moment: the store carries out steps that were given up
 * while other threads work, and while it is closed. Each acknowledged element is there once, and an
 * element that timed out is not.
 */
#include "support/effort.h"

#include <spillway/spillway.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, NUMBERS_MAX = 400 };

typedef struct writer {
    spill_array_t *array;
    pthread_t thread;
    int number, count;
    spill_code_t codes[NUMBERS_MAX];
} writer_t;

static void *append_in_time(void *context)
{
    writer_t *writer = context;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    for (int i = 0; i < writer->count; i++) {
        int64_t number = writer->number * NUMBERS_MAX + i;
        spill_value_t value = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
        spill_deadline_t outer = spill_deadline_begin(i % 4 == 3 ? 60000 : i % 2);
        writer->codes[i] = spill_array_append(writer->array, &owner, &value, 1, NULL, NULL, NULL);
        spill_deadline_end(outer);
    }
    bson_destroy(&storage);
    return NULL;
}

static bool note_number(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int *seen = context;
    int64_t number = 0;
    (void)owner;
    assert_true(spill_value_to_int64(&element->value, &number));
    seen[number]++;
    return true;
}

static void codes_say_what_was_written(void **state)
{
    (void)state;
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t definition;
    writer_t *writers = bson_malloc0(THREADS * sizeof *writers);
    int *seen = bson_malloc0(THREADS * NUMBERS_MAX * sizeof *seen);
    int unknown = 0, done = 0;
    spill_definition_init(&definition, "feed");
    definition.bounds.threshold = 20;
    definition.bounds.page_capacity = 10;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &array, NULL), SPILL_OK);
    for (int i = 0; i < THREADS; i++) {
        writers[i].array = array;
        writers[i].number = i;
        writers[i].count = (int)effort(NUMBERS_MAX, NUMBERS_MAX / 2, NUMBERS_MAX / 4);
        assert_int_equal(pthread_create(&writers[i].thread, NULL, append_in_time, &writers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(writers[i].thread, NULL);
    assert_int_equal(spill_array_export(array, NULL, note_number, seen, NULL), SPILL_OK);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < writers[i].count; k++) {
            int times = seen[i * NUMBERS_MAX + k];
            spill_code_t code = writers[i].codes[k];
            unknown += code == SPILL_UNKNOWN;
            done += code == SPILL_OK;
            if (code == SPILL_OK)
                assert_int_equal(times, 1);
            else if (code == SPILL_TIMED_OUT)
                assert_int_equal(times, 0);
            else
                assert_true(code == SPILL_UNKNOWN && times <= 1);
        }
    assert_true(done > 0);
    print_message("%d appended, %d unknown\n", done, unknown);
    spill_array_close(array);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    bson_free(writers);
    bson_free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(codes_say_what_was_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
