/* A child of a process that has a store on a server open (tests/unit/test_fork.c has the others).
 */
#include "support/embedded.h"
#include "support/forked.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The child opens a store of its own, and appends ten numbers after the parent's. */
static int append_in_child(void *uri)
{
    spill_store_t *store;
    spill_array_t *feed;
    if (spill_store_open(uri, NULL, &store, NULL) != SPILL_OK ||
        spill_array_open(store, "feed", &feed, NULL) != SPILL_OK)
        return 1;
    spill_code_t code = embedded_append(feed, "ada", 20, 10, NULL);
    spill_array_close(feed);
    return code == SPILL_OK && spill_store_close(store, NULL) == SPILL_OK ? 0 : 2;
}

static void child_opens_its_own_store(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    spill_definition_t definition;
    spill_array_t *bucket, *feed = embedded_array(store, "feed", 10, 5);
    assert_int_equal(spill_definition_preset(&definition, "reviews-bucket", "months", NULL),
                     SPILL_OK);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "months", &bucket, NULL), SPILL_OK);
    assert_int_equal(embedded_append(feed, "ada", 0, 20, NULL), SPILL_OK);
    forked_calls_are_refused(store, feed, bucket);
    assert_int_equal(forked_exit(append_in_child, uri), 0);
    assert_int_equal(embedded_append(feed, "ada", 30, 20, NULL), SPILL_OK);
    assert_int_equal(embedded_holds(feed, "ada", 0, 50, NULL), SPILL_OK);
    spill_array_close(feed);
    spill_array_close(bucket);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

int main(void)
{
    server_uri();
    const struct CMUnitTest tests[] = {cmocka_unit_test(child_opens_its_own_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
