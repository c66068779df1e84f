/* The contract on the memory store. */
#include "contract.h"

#include <assert.h>

static spill_store_t *open_store(void)
{
    spill_store_t *store;
    spill_code_t code = spill_store_open("memory:", NULL, &store, NULL);
    assert(code == SPILL_OK);
    (void)code;
    return store;
}

static void close_store(spill_store_t *store)
{
    spill_store_close(store, NULL);
}

int main(void)
{
    static const contract_kind_t kind = {
        .name = "memory", .open = open_store, .close = close_store};
    return contract_run(&kind);
}
