/* A migration begins again where an interrupted run ended (resumed.h), on a server. */
#include "model/resumed.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { OWNERS = 300 }; /* more than two groups of a transfer */

static void run_with(void (*run)(spill_store_t *store, int owners))
{
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open_indexed(uri);
    run(store, OWNERS);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

static void in_place(void **state)
{
    (void)state;
    run_with(resumed_in_place);
}

static void second_stage(void **state)
{
    (void)state;
    run_with(resumed_second_stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_place),
        cmocka_unit_test(second_stage),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
