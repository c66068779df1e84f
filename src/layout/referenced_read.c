/* Reads of referenced elements: one element, a run of them, and a walk over all. */
#include "layout/referenced.h"

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
