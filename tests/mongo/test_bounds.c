/* Bounds that change while threads append and read, on a server. */
#include "support/bounds.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { APPENDS = 15 };

static void change_bounds_while_threads_append(spill_keep_t keep)
{
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    bounds_play(store, keep, APPENDS);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

static void newest(void **state)
{
    (void)state;
    change_bounds_while_threads_append(SPILL_KEEP_NEWEST);
}

static void oldest(void **state)
{
    (void)state;
    change_bounds_while_threads_append(SPILL_KEEP_OLDEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(newest), cmocka_unit_test(oldest)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
