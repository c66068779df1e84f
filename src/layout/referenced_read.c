/*
 * Reads of referenced elements (one, a run, a walk over all), and steps on the head that add
 * elements to its top.
 */
#include "layout/referenced.h"

#include "definition/schema.h"
#include "store/transition.h"
#include "util/error.h"

static spill_request_t read_request(const spill_owner_t *owner, const spill_state_t *head,
                                    int64_t watermark, int64_t end)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.incarnation = head->incarnation;
    read.read.watermark = watermark > head->watermark ? watermark : head->watermark;
    read.read.pages = end < head->pages ? end : head->pages;
    return read;
}

spill_code_t spill_referenced_read(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t watermark, int64_t end, int64_t seq, spill_want_t want,
                                   int64_t limit, spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = read_request(owner, head, watermark, end);
    read.read.seq = seq;
    read.read.want = want;
    read.read.limit = limit;
    return spill_owner_call(owner, &read, response, error);
}

spill_code_t spill_referenced_walk(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t end, spill_referenced_walk_t *walk,
                                   spill_response_t *response, spill_error_t *error)
{
    enum { FIRST_RUN = 128 };
    const spill_run_t *run = &response->run;
    if (walk->limit == 0)
        walk->limit = FIRST_RUN;
    spill_request_t read = read_request(owner, head, walk->next, end);
    read.read.seq = walk->next;
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = walk->limit;
    read.read.bytes_most = SPILL_REFERENCED_RUN_BYTES;
    SPILL_TRY(spill_owner_call(owner, &read, response, error));
    bool last = run->count == 0 || (!response->stopped && (int64_t)run->count < walk->limit);
    walk->next = last ? end : run->entries[run->count - 1].seq + 1;
    walk->limit =
        spill_run_next_limit(walk->limit, SPILL_REFERENCED_RUN, SPILL_REFERENCED_RUN_BYTES,
                             (int64_t)run->count, spill_run_bytes(run));
    return SPILL_OK;
}

spill_code_t spill_referenced_read_with(const spill_owner_t *owner, int64_t page, int64_t seq,
                                        spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.seq = seq;
    read.read.limit = 1;
    return spill_owner_call(owner, &read, response, error);
}

bool spill_referenced_has(const spill_response_t *response, int64_t seq)
{
    return response->run.count == 1 && response->run.entries[0].seq == seq;
}

spill_sum_t spill_referenced_value(const spill_owner_t *owner, const spill_response_t *response)
{
    spill_element_t element = spill_run_element(&response->run, 0);
    return spill_sum_of(&owner->array->definition, &element.value);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/*
 * Layout subset: if a step removes elements from the top, the same step adds the next ones by rank.
 * The client reads them after the head. They are the right ones as long as the head's rev is the
 * same.
 */

/* The number of elements that the step removes from the top. */
static int64_t count_leaving(const spill_request_t *request, const spill_top_t *top)
{
    int64_t count = 0;
    for (size_t i = 0; i < top->count; i++)
        count += spill_step_affects(request, top->at[i].seq);
    return count;
}

/* Read the elements that rank next below the top: as many as the step removes. */
static spill_code_t add_below(const spill_owner_t *owner, const spill_state_t *head,
                              const spill_request_t *request, int64_t missing,
                              spill_refill_t *refill, spill_error_t *error)
{
    bool trim = request->kind == SPILL_REQUEST_TRIM;
    const spill_top_t *top = &head->top;
    spill_response_t top_n = SPILL_RESPONSE_INIT;
    if ((int64_t)top->count < owner->array->definition.top_count)
        return SPILL_OK; /* the top has all elements */
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.incarnation = head->incarnation;
    read.read.watermark = trim && request->change.watermark > head->watermark
                              ? request->change.watermark
                              : head->watermark;
    read.read.pages = head->pages;
    read.read.seq = trim ? -1 : request->change.seq;
    read.read.want = SPILL_WANT_TOP_N;
    read.read.below = &top->at[top->count - 1];
    read.read.limit = missing;
    spill_code_t code = spill_owner_call(owner, &read, &top_n, error);
    spill_top_add_all(&refill->top, SIZE_MAX, &top_n.top_n);
    for (size_t i = 0; code == SPILL_OK && i < top_n.run.count; i++) {
        spill_element_t element = spill_run_element(&top_n.run, i);
        spill_run_add(&refill->run, element.seq, &element.value);
    }
    spill_response_release(&top_n);
    return code;
}

/*
 * Read the elements of the top that the head has had no room to show. It may have room for them
 * after the step. One operation for each.
 */
static spill_code_t add_not_shown(const spill_owner_t *owner, const spill_state_t *head,
                                  const spill_request_t *request, spill_refill_t *refill,
                                  spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    int64_t room = spill_top_room(&owner->array->definition);
    spill_code_t code = SPILL_OK;
    for (size_t i = head->top.shown; code == SPILL_OK && i < head->top.count; i++) {
        int64_t seq = head->top.at[i].seq;
        if (spill_step_affects(request, seq))
            continue;
        room -= head->top.at[i].size_bytes;
        if (room < 0)
            break;
        if (seq >= head->first)
            continue; /* the journal has it */
        code = spill_referenced_read(owner, head, seq, seq + 1, seq, SPILL_WANT_FORWARD, 1, &page,
                                     error);
        for (size_t k = 0; code == SPILL_OK && k < page.run.count; k++) {
            spill_element_t element = spill_run_element(&page.run, k);
            spill_run_add(&refill->run, element.seq, &element.value);
        }
    }
    spill_response_release(&page);
    return code;
}

/*
 * If the request removes an element from the top of `head`, fill *refill, and let the request
 * borrow from it.
 */
static spill_code_t add_refill(const spill_owner_t *owner, const spill_state_t *head,
                               spill_request_t *request, spill_refill_t *refill,
                               spill_error_t *error)
{
    if (count_leaving(request, &head->top) == 0) /* later appends remove only the lowest */
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t now = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_top = true;
    SPILL_TRY(spill_owner_call(owner, &read, &now, error));
    int64_t missing = count_leaving(request, &now.state.top);
    bool changed =
        !now.state.present || now.state.rev != request->rev; /* the store will refuse it */
    if (changed || missing == 0)
        return SPILL_OK;
    spill_top_copy(&now.state.top, &refill->top);
    spill_run_copy(&now.top_run, &refill->run);
    request->change.refill = &refill->top;
    request->change.refill_run = &refill->run;
    SPILL_TRY(add_not_shown(owner, &now.state, request, refill, error));
    return add_below(owner, &now.state, request, missing, refill, error);
}

void spill_refill_release(spill_refill_t *refill)
{
    spill_top_release(&refill->top);
    spill_run_release(&refill->run);
}

spill_code_t spill_referenced_step(const spill_owner_t *owner, const spill_state_t *head,
                                   spill_request_t *request, bool *done, spill_error_t *error)
{
    SPILL_SCOPED(spill_refill_release) spill_refill_t refill = {0};
    *done = false;
    SPILL_TRY(add_refill(owner, head, request, &refill, error));
    return spill_owner_step(owner, request, done, error);
}
