/* Repair finishes what dead clients left, on a server. */
#include "support/half_done.h"
#include "support/server.h"
#include "support/spoiled.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void server(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    half_done_repaired(store);
    spoiled_summaries_mended(store);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
