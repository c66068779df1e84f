/* Finding documents by sequence number, and counting. */
#include "layout/outlier.h"

#include "definition/schema.h"
#include "util/error.h"

int64_t spill_state_live_within(const spill_state_t *state, int64_t from, int64_t end)
{
    int64_t low = from > state->first ? from : state->first;
    int64_t high = end < spill_state_end(state) ? end : spill_state_end(state);
    if (low >= high)
        return 0;
    int64_t deleted = (int64_t)spill_seqs_count_below(&state->deleted, high) -
                      (int64_t)spill_seqs_count_below(&state->deleted, low);
    return high - low - deleted;
}

/* Does the head hold this number, or would it, if any document did? */
static bool in_head(const spill_schema_t *schema, const spill_state_t *head, int64_t seq)
{
    if (seq < head->first)
        return !schema->appends_to_head; /* trimmed: the head is as good a place as any */
    return schema->appends_to_head || seq < spill_state_end(head) || head->pages == 0;
}

spill_code_t spill_outlier_locate(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t seq, spill_want_t want, int64_t limit,
                                  spill_response_t *page, int64_t *where, spill_error_t *error)
{
    *where = SPILL_NO_DOCUMENT;
    if (!head->present)
        return SPILL_OK;
    if (in_head(spill_schema_of(&owner->array->definition), head, seq)) {
        *where = SPILL_HEAD;
        return SPILL_OK;
    }
    bool referenced = spill_schema_of(&owner->array->definition)->has_referenced_elements;
    spill_request_t read =
        spill_owner_request(owner, SPILL_REQUEST_READ, referenced ? seq : SPILL_PAGE_HOLDING);
    read.incarnation = head->incarnation;
    read.read.pages = head->pages;
    read.read.seq = seq;
    read.read.want = want;
    read.read.limit = limit;
    SPILL_TRY(spill_owner_call(owner, &read, page, error));
    if (page->state.present && page->state.incarnation == head->incarnation)
        *where = page->state.page;
    return SPILL_OK;
}

void spill_head_count(const spill_state_t *head, spill_count_t *count)
{
    count->count = head->first - head->watermark - head->removed + head->live;
    count->next = spill_state_end(head);
}

/* A document for each element that is not in the journal. */
spill_code_t spill_count_referenced(spill_owner_t *owner, spill_response_t *response,
                                    spill_count_t *count, spill_error_t *error)
{
    (void)owner;
    (void)error;
    const spill_state_t *head = &response->state;
    spill_head_count(head, count);
    count->pages = count->count - count->head;
    count->values = head->sum.values;
    count->sum = spill_sum_total(&head->sum);
    count->average = spill_sum_average(&head->sum);
    return SPILL_OK;
}

spill_code_t spill_count_newest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error)
{
    (void)owner;
    (void)error;
    spill_head_count(&head->state, count);
    return SPILL_OK;
}

/*
 * Numbers given so far, by the last page there is. One page that the head speaks of may not be made
 * yet: then its predecessor's end, which the head knows, is the total.
 */
static spill_code_t oldest_end(const spill_owner_t *owner, const spill_state_t *head, int64_t *end,
                               spill_error_t *error)
{
    *end = head->pages == 0 ? spill_state_end(head) : head->total;
    if (head->pages == 0)
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t tail = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, head->pages - 1, &tail, error));
    if (tail.state.present && tail.state.incarnation == head->incarnation)
        *end = spill_state_end(&tail.state);
    return SPILL_OK;
}

/* The head and the tail are read apart: again until no removal came between. */
spill_code_t spill_count_oldest(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                                spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    int tries = 0;
    while (code == SPILL_OK) {
        int64_t rev = head->state.rev;
        count->pages = head->state.pages;
        count->head = head->state.live;
        int64_t dead = head->state.watermark + head->state.removed;
        code = oldest_end(owner, &head->state, &count->next, error);
        count->count = count->next - dead;
        if (code != SPILL_OK || count->pages == 0)
            break;
        code = spill_owner_read_state(owner, SPILL_HEAD, head, error);
        if (code != SPILL_OK || (head->state.present && head->state.rev == rev))
            break;
        if (!head->state.present) {
            *count = (spill_count_t){0};
            break;
        }
        code = spill_owner_again(owner, &tries, error);
    }
    return code;
}
