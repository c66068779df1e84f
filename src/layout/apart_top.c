/*
 * Layout subset: what a step brings along that takes an element out of the top. The documents that
 * rank highest are read after the head, and hold as long as its rev does.
 */
#include "layout/apart.h"

static bool is_below(const spill_top_t *top, int64_t low)
{
    for (size_t i = 0; i < top->count; i++)
        if (top->at[i].seq < low)
            return true;
    return false;
}

spill_code_t spill_apart_read_best(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t low, int64_t without, int64_t limit,
                                   spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.epoch = head->epoch;
    read.low = low > head->low ? low : head->low;
    read.pages = head->pages;
    read.seq = without;
    read.want = SPILL_WANT_BEST;
    read.limit = limit;
    return spill_owner_call(owner, &read, response, error);
}

spill_code_t spill_apart_refill(const spill_owner_t *owner, const spill_state_t *head,
                                spill_request_t *request, spill_response_t *best,
                                spill_error_t *error)
{
    bool trim = request->kind == SPILL_REQUEST_TRIM;
    bool needed =
        trim ? is_below(&head->top, request->low) : spill_top_contains(&head->top, request->seq);
    if (!needed)
        return SPILL_OK;
    int64_t limit = owner->array->definition.top_count;
    request->refill = &best->best;
    request->refill_run = &best->run;
    return spill_apart_read_best(owner, head, trim ? request->low : 0, trim ? -1 : request->seq,
                                 limit, best, error);
}
