/*
 * The documents of an array: their order, which one has an element (by its number or by its id),
 * and how many elements they have.
 */
#include "layout/locate.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>

int64_t spill_document_after(const spill_schema_t *schema, int64_t page, int64_t pages)
{
    if (!schema->appends_to_head)
        return page + 1 < pages ? page + 1 : SPILL_NO_DOCUMENT; /* the head is -1 */
    if (page == SPILL_HEAD)
        return SPILL_NO_DOCUMENT;
    return page + 1 < pages ? page + 1 : SPILL_HEAD;
}

int64_t spill_document_before(const spill_schema_t *schema, int64_t page, int64_t pages)
{
    if (!schema->appends_to_head)
        return page == SPILL_HEAD ? SPILL_NO_DOCUMENT : page - 1; /* before page 0: the head */
    if (page == SPILL_HEAD)
        return pages > 0 ? pages - 1 : SPILL_NO_DOCUMENT;
    return page > 0 ? page - 1 : SPILL_NO_DOCUMENT;
}

/* ---- by number, and counts ------------------------------------------------------------------- */

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

int64_t spill_page_length(const spill_definition_t *definition, const spill_state_t *head)
{
    bool newest = spill_schema_of(definition)->appends_to_head;
    int64_t numbers = newest ? head->first : head->total - spill_state_end(head);
    int64_t pages = newest ? head->pages : head->pages - 1; /* without the tail */
    if (pages <= 0 || numbers <= 0)
        return 0;
    int64_t length = numbers > pages ? numbers / pages : 1;
    return length < definition->bounds.page_capacity / 3 ? length : 0;
}

spill_request_t spill_outlier_request_holding(const spill_owner_t *owner, const spill_state_t *head,
                                              int64_t seq)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_PAGE_HOLDING);
    read.incarnation = head->incarnation;
    read.read.pages = head->pages;
    read.read.seq = seq;
    read.read.page_length = spill_page_length(&owner->array->definition, head);
    return read;
}

/* Does the head have this number, if any document has it? */
static bool in_head(const spill_schema_t *schema, const spill_state_t *head, int64_t seq)
{
    if (seq < head->first)
        return !schema->appends_to_head; /* with keep oldest it was trimmed: no document has it */
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
    spill_request_t read = spill_outlier_request_holding(owner, head, seq);
    if (referenced)
        read.page = seq;
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

/* Each element that is not in the journal has a document. */
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
 * Set *end to the number after the last element. The last page that the head counts may not exist
 * yet. Then *end is the end of the page before it, which is head->total.
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

/* Two reads, of the head and of the tail: repeat them until no removal came between. */
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

/* ---- by id ----------------------------------------------------------------------------------- */

/*
 * Find an element by its id. If several elements have the id, find the one with the lowest number:
 * with keep oldest search the head first, with keep newest the pages.
 *
 * The client reads the head before the pages. So it does not miss an element that moves to a page
 * meanwhile: the head, as it was read, still has it. An element keeps its number when it moves.
 */

spill_code_t spill_outlier_absent_element(const spill_owner_t *owner, const spill_which_t *which,
                                          spill_error_t *error)
{
    if (which->id && error) {
        char *json = spill_value_to_json(which->id, false);
        spill_fail(error, SPILL_NOT_FOUND, "there is no element with the id %.100s",
                   json ? json : "?");
        bson_free(json);
    } else {
        spill_fail(error, SPILL_NOT_FOUND, "there is no element %" PRId64, which->seq);
    }
    return spill_owner_name(owner, SPILL_NOT_FOUND, error);
}

spill_code_t spill_outlier_read_head(const spill_owner_t *owner, const spill_value_t *id,
                                     spill_response_t *head, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = id ? SPILL_WANT_ID : SPILL_WANT_NONE;
    read.read.id = id;
    read.read.limit = id ? 1 : 0;
    return spill_owner_call(owner, &read, head, error);
}

/* If no page has the id, leave *where unchanged. */
static spill_code_t find_in_pages(const spill_owner_t *owner, const spill_state_t *head,
                                  spill_which_t *which, int64_t from, spill_response_t *page,
                                  int64_t *where, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_PAGE_WITH_ID);
    read.incarnation = head->incarnation;
    read.read.pages = head->pages;
    read.read.want = SPILL_WANT_ID;
    read.read.id = which->id;
    read.read.seq = from;
    read.read.limit = 1;
    SPILL_TRY(spill_owner_call(owner, &read, page, error));
    if (page->state.present && page->run.count > 0) {
        *where = page->state.page;
        which->seq = page->run.entries[0].seq;
    }
    return SPILL_OK;
}

spill_code_t spill_outlier_find_in_pages(const spill_owner_t *owner, const spill_state_t *head,
                                         spill_which_t *which, spill_response_t *page,
                                         int64_t *where, spill_error_t *error)
{
    *where = SPILL_NO_DOCUMENT;
    /* With keep newest the head knows how many elements are in pages. */
    if (head->pages == 0 || head->first - head->watermark - head->removed <= 0)
        return SPILL_OK;
    return find_in_pages(owner, head, which, head->watermark, page, where, error);
}

spill_code_t spill_outlier_find_id(const spill_owner_t *owner, const spill_response_t *head,
                                   spill_which_t *which, spill_response_t *page, int64_t *where,
                                   spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    *where = SPILL_NO_DOCUMENT;
    if (head->id_absent)
        return spill_outlier_absent_element(owner, which, error);
    bool oldest = !spill_schema_of(&owner->array->definition)->appends_to_head;
    bool in_head = head->run.count > 0;
    /* With keep newest the head knows how many elements are in pages; with keep oldest it does not.
     */
    bool in_pages = oldest ? !in_head : state->first - state->watermark - state->removed > 0;
    int64_t from = oldest ? spill_state_end(state) : 0;
    if (state->pages > 0 && in_pages)
        SPILL_TRY(find_in_pages(owner, state, which,
                                from > state->watermark ? from : state->watermark, page, where,
                                error));
    if (*where != SPILL_NO_DOCUMENT)
        return SPILL_OK;
    if (!in_head)
        return spill_outlier_absent_element(owner, which, error);
    *where = SPILL_HEAD;
    which->seq = head->run.entries[0].seq;
    return SPILL_OK;
}
