/* The contract on the model store. */
#include "contract.h"
#include "support/model_store.h"

static void close_store(spill_store_t *store)
{
    spill_store_close(store, NULL);
}

int main(void)
{
    static const contract_kind_t kind = {
        .name = "model", .open = model_store_open, .close = close_store};
    return contract_run(&kind);
}
