/*
 * A child of a process that has stores open: its calls are refused, closing works, it can leave
 * with exit(), and the parent's stores are unharmed. tests/mongo/test_fork.c has the stores on
 * servers.
 */
#include "support/embedded.h"
#include "support/forked.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct opened {
    spill_store_t *store;
    spill_array_t *feed, *bucket;
} opened_t;

static opened_t open_arrays(const char *uri)
{
    opened_t opened = {.store = embedded_in_folder(uri, NULL)};
    spill_definition_t definition;
    opened.feed = embedded_array(opened.store, "feed", 10, 5);
    assert_int_equal(spill_definition_preset(&definition, "reviews-bucket", "months", NULL),
                     SPILL_OK);
    assert_int_equal(spill_store_define(opened.store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(opened.store, "months", &opened.bucket, NULL), SPILL_OK);
    return opened;
}

static void close_arrays(const opened_t *opened)
{
    spill_array_close(opened->feed);
    spill_array_close(opened->bucket);
    embedded_close(opened->store);
}

static void parent_is_unharmed(const char *uri)
{
    opened_t opened = open_arrays(uri);
    assert_int_equal(embedded_append(opened.feed, "ada", 0, 20, NULL), SPILL_OK);
    forked_calls_are_refused(opened.store, opened.feed, opened.bucket);
    assert_int_equal(embedded_append(opened.feed, "ada", 20, 20, NULL), SPILL_OK);
    assert_int_equal(embedded_holds(opened.feed, "ada", 0, 40, NULL), SPILL_OK);
    close_arrays(&opened);
}

static void calls_are_refused_on_disk(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    parent_is_unharmed(folder);
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *feed;
    assert_int_equal(spill_array_open(store, "feed", &feed, NULL), SPILL_OK);
    assert_int_equal(embedded_holds(feed, "ada", 0, 40, NULL), SPILL_OK);
    spill_array_close(feed);
    embedded_close(store);
    embedded_remove_folder(folder);
}

static void calls_are_refused_in_memory(void **state)
{
    (void)state;
    parent_is_unharmed("memory:");
}

/* ---- a parent with threads that hold locks --------------------------------------------------- */

static atomic_bool ends;

static void *append_all_the_time(void *feed)
{
    for (int64_t at = 0; !atomic_load(&ends); at++)
        embedded_append(feed, "ada", at, 1, NULL);
    return NULL;
}

static void locks_of_the_parent_do_not_matter(void **state)
{
    (void)state;
    opened_t opened = open_arrays("memory:");
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, append_all_the_time, opened.feed), 0);
    for (int i = 0; i < 20; i++)
        forked_calls_are_refused(opened.store, opened.feed, opened.bucket);
    atomic_store(&ends, true);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    close_arrays(&opened);
}

/* ---- what a child can do --------------------------------------------------------------------- */

static int do_nothing(void *context)
{
    (void)context;
    return 7;
}

static void child_can_leave_with_exit(void **state)
{
    (void)state;
    opened_t opened = open_arrays(embedded_new_folder());
    assert_int_equal(forked_exit(do_nothing, NULL), 7);
    close_arrays(&opened);
    assert_int_equal(forked_exit(do_nothing, NULL), 7);
}

static int open_writer(void *folder)
{
    spill_store_t *store;
    spill_error_t error = {0};
    spill_code_t code = spill_store_open(folder, NULL, &store, &error);
    return code == SPILL_INVALID && store == NULL && strstr(error.message, "fork first") ? 0 : 1;
}

static void child_opens_no_writer(void **state)
{
    (void)state;
    opened_t opened = open_arrays(embedded_new_folder());
    char folder[64];
    snprintf(folder, sizeof folder, "%s", embedded_new_folder());
    assert_int_equal(forked_exit(open_writer, folder), 0);
    close_arrays(&opened);
    assert_int_equal(forked_exit(open_writer, folder), 0);
}

static int read_parent(void *folder)
{
    spill_store_options_t options;
    spill_store_t *store;
    spill_array_t *feed;
    spill_store_options_init(&options);
    options.read_only = true;
    if (spill_store_open(folder, &options, &store, NULL) != SPILL_OK ||
        spill_array_open(store, "feed", &feed, NULL) != SPILL_OK)
        return 1;
    spill_code_t code = embedded_holds(feed, "ada", 0, 20, NULL);
    spill_array_close(feed);
    return code == SPILL_OK && spill_store_close(store, NULL) == SPILL_OK ? 0 : 2;
}

static void child_reads_beside_parent(void **state)
{
    (void)state;
    char folder[64];
    snprintf(folder, sizeof folder, "%s", embedded_new_folder());
    opened_t opened = open_arrays(folder);
    assert_int_equal(embedded_append(opened.feed, "ada", 0, 20, NULL), SPILL_OK);
    assert_int_equal(forked_exit(read_parent, folder), 0);
    close_arrays(&opened);
}

/* ---- open arrays ----------------------------------------------------------------------------- */

static void close_with_open_arrays_is_refused(void **state)
{
    (void)state;
    opened_t opened = open_arrays("memory:");
    spill_array_t *none;
    spill_error_t error;
    assert_int_equal(spill_array_open(opened.store, "missing", &none, &error), SPILL_NOT_FOUND);
    assert_int_equal(spill_store_close(opened.store, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "2 arrays are open"));
    assert_int_equal(embedded_append(opened.feed, "ada", 0, 1, &error), SPILL_OK);
    spill_array_close(opened.bucket);
    assert_int_equal(spill_store_close(opened.store, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "1 array is open"));
    assert_int_equal(embedded_holds(opened.feed, "ada", 0, 1, &error), SPILL_OK);
    spill_array_close(opened.feed);
    assert_int_equal(spill_store_close(opened.store, &error), SPILL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_with_open_arrays_is_refused),
        cmocka_unit_test(calls_are_refused_in_memory),
        cmocka_unit_test(locks_of_the_parent_do_not_matter),
        cmocka_unit_test(calls_are_refused_on_disk),
        cmocka_unit_test(child_can_leave_with_exit),
        cmocka_unit_test(child_opens_no_writer),
        cmocka_unit_test(child_reads_beside_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
