#include "mongo/counted_pair.h"

#include "support/server.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

int counted_pair_open(void **state)
{
    counted_pair_t *pair = bson_malloc0(sizeof *pair);
    pair->proxy = proxy_start(server_uri());
    for (int i = 0; i < 2; i++) {
        pair->uris[i] = server_new_database(NULL);
        char *through = proxy_uri(pair->proxy, pair->uris[i]);
        pair->stores[i] = server_open(through);
        bson_free(through);
    }
    *state = pair;
    return 0;
}

int counted_pair_close(void **state)
{
    counted_pair_t *pair = *state;
    for (int i = 0; i < 2; i++) {
        server_close(pair->stores[i]);
        server_drop(pair->uris[i]);
        bson_free(pair->uris[i]);
    }
    proxy_stop(pair->proxy);
    bson_free(pair);
    return 0;
}

int64_t counted_pair_requests(const counted_pair_t *pair)
{
    return proxy_counts(pair->proxy).requests;
}

void counted_pair_must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

spill_value_t counted_pair_owner(int number, bson_t *storage)
{
    char name[16];
    snprintf(name, sizeof name, "o%04d", number);
    bson_init(storage);
    return spill_value_from_utf8(storage, name);
}

void counted_pair_check(spill_store_t *store, const char *name, int64_t owners)
{
    spill_verify_summary_t summary;
    spill_array_t *array;
    spill_error_t error;
    counted_pair_must(spill_array_open(store, name, &array, &error), &error);
    counted_pair_must(spill_array_verify(array, NULL, NULL, NULL, &summary, &error), &error);
    assert_int_equal(summary.owners, owners);
    assert_int_equal(summary.findings, 0);
    spill_array_close(array);
}
