/*
 * Appends to referenced elements. An append that makes the journal too long writes it out: it puts
 * a document for each element of the journal, then cuts them off the head.
 */
#include "layout/referenced.h"
#include "layout/layout.h"

#include "bson/value.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- writing out ----------------------------------------------------------------------------- */

/*
 * The document of number `seq`: the element at *at of the run, if it has this number, else what is
 * left of a removed one. *ready: it is there as copied from the head at this rev, by us or another.
 */
static spill_code_t put(const spill_owner_t *owner, const spill_response_t *head, int64_t seq,
                        size_t *at, bool *ready, spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    spill_run_t one = {0};
    spill_seqs_t deleted = {0};
    if (*at < head->run.count && head->run.entries[*at].seq == seq) {
        spill_element_t element = spill_run_element(&head->run, (*at)++);
        spill_run_add(&one, seq, &element.value);
    } else {
        spill_seqs_insert(&deleted, seq);
    }
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, seq);
    put.incarnation = state->incarnation;
    put.put_page.source_rev = state->rev;
    put.put_page.first = seq;
    put.put_page.slots = 1;
    put.put_page.run = &one;
    put.put_page.deleted = &deleted;
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_call(owner, &put, &page, error);
    *ready = code == SPILL_OK && page.outcome == SPILL_DONE;
    if (code == SPILL_OK && !*ready) {
        code = spill_owner_read_state(owner, seq, &page, error);
        *ready = code == SPILL_OK && page.state.present &&
                 page.state.incarnation == state->incarnation &&
                 page.state.source_rev == state->rev;
    }
    spill_run_release(&one);
    spill_seqs_release(&deleted);
    spill_response_release(&page);
    return code;
}

/*
 * One try, from what `head` shows where it was looked at. *settled: the journal is as short as it
 * is meant to be.
 */
static spill_code_t try_write_out(const spill_owner_t *owner, spill_response_t *head,
                                  int64_t threshold, bool *settled, spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    spill_code_t code = head->shows_read ? SPILL_OK : spill_newest_read_run(owner, head, error);
    head->shows_read = false; /* the next try looks again */
    int64_t slots = spill_state_slots(state);
    int64_t most = owner->array->definition.bounds.page_capacity;
    *settled = code == SPILL_OK && (!state->present || slots == 0 || slots < threshold);
    if (*settled || code != SPILL_OK)
        return code;
    if (slots > most)
        slots = most;
    size_t at = 0;
    bool ready = true;
    for (int64_t i = 0; code == SPILL_OK && ready && i < slots; i++)
        code = put(owner, head, state->first + i, &at, &ready, error);
    int64_t bytes = 0;
    for (size_t i = 0; i < at; i++)
        bytes += head->run.entries[i].size_bytes;
    bool done = false;
    spill_request_t cut = spill_newest_cut_request(owner, state, slots, bytes);
    if (code == SPILL_OK && ready)
        code = spill_owner_step(owner, &cut, &done, error);
    *settled = done && spill_state_slots(state) - slots < threshold;
    /* Each step is guarded: whether a lost one was applied shows when the head is read again. */
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/* Until fewer than `threshold` are left. */
static spill_code_t write_out(const spill_owner_t *owner, spill_response_t *head, int64_t threshold,
                              spill_error_t *error)
{
    int tries = 0;
    bool settled = false;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !settled) {
        code = try_write_out(owner, head, threshold, &settled, error);
        if (code == SPILL_OK && !settled)
            code = spill_owner_again(owner, &tries, error);
    }
    return code;
}

/* The append is acknowledged already: what fails is the next append's to finish. */
static void write_out_after(const spill_owner_t *owner, spill_response_t *head)
{
    spill_error_t error;
    if (write_out(owner, head, owner->array->definition.bounds.threshold, &error) != SPILL_OK)
        spill_store_log(owner->array->store, SPILL_LOG_WARNING, "writing out put off: %s",
                        error.message);
}

/* ---- append ---------------------------------------------------------------------------------- */

/* It asks for what writing out begins with. */
static spill_request_t append_request(const spill_owner_t *owner, const spill_part_t *part)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    spill_request_t append = spill_append_request(owner, SPILL_HEAD, part);
    append.append.due = bounds->threshold;
    append.append.due_limit = bounds->page_capacity;
    return append;
}

static void after_append(spill_owner_t *owner, const spill_request_t *append,
                         spill_response_t *head)
{
    int64_t first = head->seq;
    if (spill_state_slots(&head->state) >= append->append.due)
        write_out_after(owner, head);
    owner->retain_is_due =
        spill_retain_is_due(first, (int64_t)append->append.element_count, append->append.due_limit);
}

static spill_code_t make_room(spill_owner_t *owner, const spill_part_t *part,
                              spill_response_t *head, spill_error_t *error)
{
    spill_code_t code = spill_append_check_head(owner, part, &head->state, error);
    return code == SPILL_OK ? write_out(owner, head, 1, error) : code;
}

static spill_code_t append_part(spill_owner_t *owner, const spill_part_t *part,
                                spill_append_result_t *result, spill_error_t *error)
{
    static const spill_head_append_t steps = {
        .request = append_request, .done = after_append, .full = make_room};
    return spill_append_to_head(owner, part, &steps, result, error);
}

const spill_layout_ops_t spill_referenced_ops = {
    .append = append_part,
    .count = spill_count_referenced,
    .edit = spill_referenced_edit,
    .remove = spill_referenced_remove,
    .trim = spill_referenced_trim,
    .drop = spill_referenced_drop,
};
