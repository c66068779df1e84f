/* The contract on a MongoDB-compatible server. */
#include "contract.h"

#include "support/server.h"

static char *uri;

static spill_store_t *open_new_database(void)
{
    uri = server_new_database(NULL);
    return server_open_indexed(uri);
}

static spill_store_t *reopen(spill_store_t *store)
{
    server_close(store);
    return server_open_indexed(uri);
}

static void close_and_drop(spill_store_t *store)
{
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

int main(void)
{
    static const contract_kind_t kind = {.name = "mongodb",
                                         .slow = true,
                                         .shows_other_arrays = true,
                                         .combines = true,
                                         .open = open_new_database,
                                         .reopen = reopen,
                                         .close = close_and_drop};
    server_uri();
    return contract_run(&kind);
}
