#include "support/forked.h"

#include "support/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHILD_SECONDS = 60 };

static spill_error_t error;
static int wrong; /* calls of the child that were not refused */

static void check_refused(spill_code_t code, const char *call)
{
    char parent[32];
    snprintf(parent, sizeof parent, "process %ld ", (long)getppid());
    if (code != SPILL_INVALID || strstr(error.message, parent) == NULL) {
        fprintf(stderr, "%s: %s %s\n", call, spill_code_name(code), error.message);
        wrong++;
    }
    error = (spill_error_t){0};
}

#define REFUSED(...) check_refused(__VA_ARGS__, #__VA_ARGS__)

static void call_store(spill_store_t *store)
{
    spill_definition_t definition, *all;
    spill_array_t *opened;
    size_t count;
    spill_definition_init(&definition, "another");
    REFUSED(spill_store_define(store, &definition, &error));
    REFUSED(spill_store_definition(store, "feed", &definition, &error));
    REFUSED(spill_store_definitions(store, &all, &count, &error));
    REFUSED(spill_store_drop(store, "feed", &error));
    REFUSED(spill_store_backup(store, "/nowhere", &error));
    REFUSED(spill_array_open(store, "feed", &opened, &error));
}

static void change_array(spill_array_t *array, const spill_value_t *owner, const bson_t *filter)
{
    int64_t number;
    REFUSED(spill_array_append(array, owner, owner, 1, NULL, NULL, &error));
    REFUSED(spill_array_update(array, owner, filter, &error));
    REFUSED(spill_array_update_with(array, owner, filter, NULL, NULL, &error));
    REFUSED(spill_array_adopt(array, owner, NULL, &error));
    REFUSED(spill_array_edit(array, owner, 0, owner, &error));
    REFUSED(spill_array_edit_id(array, owner, owner, owner, NULL, &error));
    REFUSED(spill_array_remove(array, owner, 0, &error));
    REFUSED(spill_array_remove_id(array, owner, owner, NULL, &error));
    REFUSED(spill_array_remove_where(array, owner, filter, 0, &number, &error));
    REFUSED(spill_array_trim(array, owner, 1, &error));
    REFUSED(spill_array_trim_keep(array, owner, 1, &number, &error));
    REFUSED(spill_array_trim_older(array, owner, 1, &number, &error));
    REFUSED(spill_array_drop_owner(array, owner, &error));
    REFUSED(spill_array_repair(array, NULL, false, NULL, NULL, NULL, &error));
}

static bool visit_owner(void *context, const spill_value_t *value)
{
    (void)context, (void)value;
    return true;
}

static bool visit_element(void *context, const spill_value_t *of, const spill_element_t *value)
{
    (void)context, (void)of, (void)value;
    return true;
}

static bool visit_document(void *context, const char *collection, const bson_t *document)
{
    (void)context, (void)collection, (void)document;
    return true;
}

static void read_array(spill_array_t *array, const spill_value_t *owner)
{
    spill_slice_t *slice;
    spill_count_t count;
    int64_t number;
    REFUSED(spill_array_op_base(array, owner, &number, &error));
    REFUSED(spill_array_count(array, owner, &count, &error));
    REFUSED(spill_array_find_id(array, owner, owner, &number, &error));
    REFUSED(spill_array_read(array, owner, NULL, &slice, &error));
    REFUSED(spill_array_read_newest(array, owner, 0, 1, &slice, &error));
    REFUSED(spill_array_top(array, owner, 1, &slice, &error));
    REFUSED(spill_array_owners(array, visit_owner, NULL, &error));
    REFUSED(spill_array_export(array, owner, visit_element, NULL, &error));
    REFUSED(spill_array_documents(array, owner, false, visit_document, NULL, &error));
    REFUSED(spill_array_verify(array, NULL, NULL, NULL, NULL, &error));
}

static bool visit_window(void *context, const spill_bucket_window_t *window)
{
    (void)context, (void)window;
    return true;
}

static void call_bucket(spill_array_t *bucket, const spill_value_t *owner, const bson_t *filter)
{
    char window[SPILL_WINDOW_SIZE];
    spill_bucket_slice_t *slice;
    spill_bucket_base_t *bases;
    spill_statistics_t statistics;
    size_t count;
    int64_t number;
    REFUSED(spill_bucket_append(bucket, owner, owner, 1, NULL, NULL, NULL, &error));
    REFUSED(spill_bucket_op_bases(bucket, owner, owner, 1, &bases, &count, &error));
    REFUSED(spill_bucket_windows(bucket, owner, NULL, NULL, SPILL_OLDEST_FIRST, visit_window, NULL,
                                 &error));
    REFUSED(spill_bucket_statistics(bucket, owner, NULL, NULL, &statistics, NULL, &error));
    REFUSED(spill_bucket_read(bucket, owner, NULL, &slice, &error));
    REFUSED(spill_bucket_find_id(bucket, owner, owner, window, &number, &error));
    REFUSED(spill_bucket_edit_id(bucket, owner, owner, owner, window, &number, &error));
    REFUSED(spill_bucket_remove_id(bucket, owner, owner, window, &number, &error));
    REFUSED(spill_bucket_remove_where(bucket, owner, filter, 0, &number, &error));
    REFUSED(spill_bucket_trim_older(bucket, owner, 1, &error));
    REFUSED(spill_bucket_trim_keep(bucket, owner, 1, &error));
    REFUSED(spill_bucket_owners(bucket, visit_owner, NULL, &error));
    REFUSED(spill_bucket_drop_before(bucket, owner, "2023-11", &number, &error));
    REFUSED(spill_bucket_drop_older(bucket, owner, 1, &number, &error));
}

/* Use and close the handles; return the number of wrong answers. */
static int call_all(spill_store_t *store, spill_array_t *array, spill_array_t *bucket)
{
    bson_t storage = BSON_INITIALIZER, filter = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    BSON_APPEND_INT32(&filter, "id", 99);
    call_store(store);
    change_array(array, &owner, &filter);
    read_array(array, &owner);
    call_bucket(bucket, &owner, &filter);
    bson_destroy(&storage);
    bson_destroy(&filter);
    wrong += spill_store_close(store, &error) != SPILL_REFUSED; /* arrays are open */
    spill_array_close(array);
    spill_array_close(bucket);
    wrong += spill_store_close(store, &error) != SPILL_OK;
    return wrong;
}

/* Wait for a child, and return its exit status. */
static int status_of(pid_t child)
{
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("the child ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

void forked_calls_are_refused(spill_store_t *store, spill_array_t *array, spill_array_t *bucket)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        child_end(call_all(store, array, bucket));
    }
    assert_int_equal(status_of(child), 0);
}

int forked_exit(int (*run)(void *context), void *context)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        exit(run(context));
    }
    return status_of(child);
}
