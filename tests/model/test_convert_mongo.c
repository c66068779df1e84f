/* Conversions on a MongoDB-compatible server, to and from capped and bucket layouts. */
#include "model/convert.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void to_and_from(void **state)
{
    (void)state;
    static const convert_kind_t others[] = {CONVERT_OUTLIER, CONVERT_SUBSET, CONVERT_BUCKET};
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open_indexed(uri);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        convert_and_grow(store, others[i], CONVERT_CAPPED);
        convert_and_grow(store, others[i], CONVERT_TOP_N);
        convert_and_grow(store, others[i], CONVERT_BUCKET);
        convert_and_grow(store, CONVERT_BUCKET, others[i]);
    }
    convert_and_grow(store, CONVERT_CAPPED, CONVERT_BUCKET);
    convert_and_grow(store, CONVERT_TOP_N, CONVERT_TOP_N);
    convert_and_grow(store, CONVERT_TOP_N, CONVERT_OUTLIER);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(to_and_from)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
