/* Appends of several threads to one owner: combined into few commands, or one command each. */
#include "support/proxy.h"
#include "support/server.h"

#include <spillway/spillway.h>

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 8, EACH = 20, APPENDS = THREADS * EACH };

typedef struct worker {
    pthread_t thread;
    spill_array_t *array;
    int number;
    spill_code_t code;
    spill_error_t error;
} worker_t;

static void *append_some(void *argument)
{
    worker_t *worker = argument;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "hot");
    for (int i = 0; i < EACH && worker->code == SPILL_OK; i++) {
        bson_t own = BSON_INITIALIZER;
        spill_value_t element = spill_value_from_int64(&own, worker->number * EACH + i);
        spill_append_result_t result;
        worker->code =
            spill_array_append(worker->array, &owner, &element, 1, NULL, &result, &worker->error);
        bson_destroy(&own);
    }
    bson_destroy(&storage);
    return NULL;
}

/* Every element exists once. */
static void assert_has_all_elements(spill_array_t *array)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "hot");
    bool seen[APPENDS] = {false};
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.limit = 2 * APPENDS;
    assert_int_equal(spill_array_read(array, &owner, &options, &slice, &error), SPILL_OK);
    assert_int_equal(slice->count, APPENDS);
    for (size_t i = 0; i < slice->count; i++) {
        int64_t element;
        memcpy(&element, slice->elements[i].value.data, sizeof element);
        element = (int64_t)BSON_UINT64_FROM_LE((uint64_t)element);
        assert_in_range(element, 0, APPENDS - 1);
        assert_false(seen[element]);
        seen[element] = true;
    }
    spill_slice_free(slice);
    bson_destroy(&storage);
}

/* Do APPENDS appends and return how many commands they took. */
static int64_t count_commands(bool separate)
{
    proxy_t *proxy = proxy_start(server_uri());
    char *uri = server_new_database(NULL), *through = proxy_uri(proxy, uri);
    spill_definition_t definition;
    spill_store_options_t options;
    spill_store_t *store;
    spill_array_t *array;
    spill_error_t error;
    spill_store_options_init(&options);
    options.separate_appends = separate;
    assert_int_equal(spill_store_open(through, &options, &store, &error), SPILL_OK);
    spill_definition_init(&definition, "feed");
    definition.bounds.threshold = definition.bounds.page_capacity = 4 * APPENDS; /* no spills */
    assert_int_equal(spill_store_define(store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &array, &error), SPILL_OK);
    int64_t before = proxy_counts(proxy).requests;
    worker_t workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.array = array, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, append_some, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].code != SPILL_OK)
            fail_msg("%s", workers[i].error.message);
    }
    int64_t count = proxy_counts(proxy).requests - before;
    assert_has_all_elements(array);
    spill_array_close(array);
    server_close(store);
    proxy_stop(proxy);
    server_drop(uri);
    bson_free(through);
    bson_free(uri);
    print_message("%s: %d appends, %" PRId64 " commands\n", separate ? "separate" : "combined",
                  APPENDS, count);
    return count;
}

static void waiting_appends_are_combined(void **state)
{
    (void)state;
    assert_true(count_commands(false) < APPENDS / 2);
}

static void separate_appends_are_not(void **state)
{
    (void)state;
    assert_true(count_commands(true) >= APPENDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_appends_are_combined),
        cmocka_unit_test(separate_appends_are_not),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
