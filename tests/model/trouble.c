#include "model/trouble.h"

static spill_fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const trouble_t *trouble = context;
    (void)request;
    return index == trouble->at ? trouble->fault : SPILL_FAULT_NONE;
}

static void arrive(void *context, int64_t index, const spill_request_t *request)
{
    const trouble_t *trouble = context;
    (void)request;
    if (index >= trouble->at + trouble->delay && spill_fault_pending(trouble->store) > 0)
        spill_fault_deliver(trouble->store, 0);
}

spill_fault_hooks_t trouble_hooks(trouble_t *trouble)
{
    return (spill_fault_hooks_t){.context = trouble, .decide = decide, .before = arrive};
}
