/* The contract on the fault store around a model store; no fault is injected. */
#include "contract.h"

#include "support/fault_store.h"
#include "support/model_store.h"

#include <assert.h>

static spill_store_t *inner;

static spill_store_t *open_store(void)
{
    inner = model_store_open();
    fault_hooks_t hooks = {0};
    spill_store_t *store;
    fault_wrap(inner, &hooks, &store);
    return store;
}

/* The content outlives the wrapper. */
static spill_store_t *reopen_store(spill_store_t *store)
{
    spill_store_close(store, NULL);
    fault_hooks_t hooks = {0};
    fault_wrap(inner, &hooks, &store);
    return store;
}

static void close_store(spill_store_t *store)
{
    spill_store_close(store, NULL);
    spill_store_close(inner, NULL);
}

int main(void)
{
    static const contract_kind_t kind = {
        .name = "fault", .open = open_store, .reopen = reopen_store, .close = close_store};
    return contract_run(&kind);
}
