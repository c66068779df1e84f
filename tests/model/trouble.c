#include "model/trouble.h"

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const trouble_t *trouble = context;
    (void)request;
    return index == trouble->at ? trouble->fault : FAULT_NONE;
}

static void arrive(void *context, int64_t index, const spill_request_t *request)
{
    const trouble_t *trouble = context;
    (void)request;
    if (index >= trouble->at + trouble->delay && fault_pending(trouble->store) > 0)
        fault_deliver(trouble->store, 0);
}

fault_hooks_t trouble_hooks(trouble_t *trouble)
{
    return (fault_hooks_t){.context = trouble, .decide = decide, .before = arrive};
}
