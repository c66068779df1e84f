/* Appends, and writing the journal out. */
#include "layout/apart.h"

#include "bson/value.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- elements -------------------------------------------------------------------------------- */

spill_code_t spill_apart_check_element(const spill_definition_t *definition,
                                       const spill_value_t *element, spill_error_t *error)
{
    if (element->type != BSON_TYPE_DOCUMENT)
        return spill_fail(error, SPILL_INVALID,
                          "an element of '%s' has to be a document: it is kept as one of its own",
                          definition->name);
    spill_fields_t fields = spill_fields_of(element->data);
    const char *name;
    spill_value_t value;
    while (spill_fields_next(&fields, &name, &value)) {
        if (strcmp(name, "_id") == 0 || strcmp(name, "spill") == 0 ||
            strcmp(name, definition->page_owner) == 0)
            return spill_fail(error, SPILL_INVALID,
                              "an element of '%s' cannot have a field '%s': the document that it "
                              "is kept as has one of that name",
                              definition->name, name);
        if (name[0] == '$' || name[0] == '\0')
            return spill_fail(error, SPILL_INVALID,
                              "an element of '%s' cannot have a field '%s': no document may",
                              definition->name, name);
    }
    return SPILL_OK;
}

spill_code_t spill_apart_read(const spill_owner_t *owner, const spill_state_t *head, int64_t low,
                              int64_t end, int64_t seq, spill_want_t want, int64_t limit,
                              spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.epoch = head->epoch;
    read.low = low > head->low ? low : head->low;
    read.pages = end < head->pages ? end : head->pages;
    read.seq = seq;
    read.want = want;
    read.limit = limit;
    return spill_owner_call(owner, &read, response, error);
}

/* ---- writing out ----------------------------------------------------------------------------- */

static spill_code_t read_journal(const spill_owner_t *owner, spill_response_t *head,
                                 spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.want = SPILL_WANT_FORWARD;
    read.limit = owner->array->definition.bounds.page_capacity;
    return spill_owner_call(owner, &read, head, error);
}

/*
 * The document of number `seq`: the element at *at of the run, if it has this number, else what is
 * left of a removed one. *ready: it is there as copied from the head at this rev, by us or another.
 */
static spill_code_t put(const spill_owner_t *owner, const spill_response_t *head, int64_t seq,
                        size_t *at, bool *ready, spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    spill_run_t one = {0};
    spill_seqs_t gone = {0};
    if (*at < head->run.count && head->run.entries[*at].seq == seq) {
        spill_element_t element = spill_run_element(&head->run, (*at)++);
        spill_run_add(&one, seq, &element.value);
    } else {
        spill_seqs_insert(&gone, seq);
    }
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, seq);
    put.epoch = state->epoch;
    put.src = state->rev;
    put.first = seq;
    put.slots = 1;
    put.bytes = spill_run_bytes(&one);
    put.run = &one;
    put.gone = &gone;
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_call(owner, &put, &page, error);
    *ready = code == SPILL_OK && page.outcome == SPILL_DONE;
    if (code == SPILL_OK && !*ready) {
        code = spill_owner_read_state(owner, seq, &page, error);
        *ready = code == SPILL_OK && page.state.present && page.state.epoch == state->epoch &&
                 page.state.src == state->rev;
    }
    spill_run_release(&one);
    spill_seqs_release(&gone);
    spill_response_release(&page);
    return code;
}

static spill_code_t cut(const spill_owner_t *owner, const spill_response_t *head, int64_t slots,
                        int64_t bytes, bool *done, spill_error_t *error)
{
    spill_request_t cut = spill_owner_request(owner, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.pages = head->state.pages;
    cut.epoch = head->state.epoch;
    cut.rev = head->state.rev;
    cut.first = head->state.first;
    cut.slots = slots;
    cut.bytes = bytes;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_call(owner, &cut, &response, error);
    *done = code == SPILL_OK && response.outcome == SPILL_DONE;
    spill_response_release(&response);
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
    spill_code_t code = head->looked ? SPILL_OK : read_journal(owner, head, error);
    head->looked = false; /* the next try looks again */
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
    if (code == SPILL_OK && ready)
        code = cut(owner, head, slots, bytes, &done, error);
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

static spill_code_t make_room(const spill_owner_t *owner, const spill_part_t *part,
                              spill_limits_t limits, spill_response_t *head, spill_error_t *error)
{
    int64_t count = (int64_t)part->count;
    int64_t bytes = part->bytes + spill_update_growth(part->update);
    spill_state_t after = head->state;
    after.n++;
    int64_t alone = spill_state_document_bytes(&owner->array->definition, owner->value, true,
                                               &after, count, bytes);
    if (!spill_limits_allow(&limits, count, count, alone))
        return spill_fail(error, SPILL_TOO_BIG,
                          "%zu elements of %" PRId64 " bytes do not fit a head whose other fields "
                          "take %" PRId64 " of %" PRId64 " bytes: append fewer at a time, or raise "
                          "headBytesMax (--max-bytes)",
                          part->count, bytes, head->state.fields_bytes,
                          count == 1 ? (int64_t)SPILL_DOCUMENT_BYTES_MAX : limits.bytes_max);
    return write_out(owner, head, 1, error);
}

/* It asks for what writing out begins with. */
static spill_request_t append_request(const spill_owner_t *owner, const spill_part_t *part,
                                      spill_limits_t limits)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    spill_request_t append = spill_append_request(owner, SPILL_HEAD, part, limits);
    append.due = bounds->threshold;
    append.want = SPILL_WANT_FORWARD;
    append.limit = bounds->page_capacity;
    return append;
}

spill_code_t spill_apart_append(spill_owner_t *owner, const spill_part_t *part,
                                spill_append_result_t *result, spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_head_limits(definition, &definition->bounds);
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    int tries = 0;
    while (code == SPILL_OK) {
        spill_request_t append = append_request(owner, part, limits);
        code = spill_owner_call(owner, &append, &head, error);
        if (code != SPILL_OK)
            break;
        if (head.outcome == SPILL_DONE) {
            spill_append_done(part, &head, result);
            if (spill_state_slots(&head.state) >= definition->bounds.threshold)
                write_out_after(owner, &head);
            break;
        }
        spill_refusal_t refusal = SPILL_REFUSAL_NONE;
        code = spill_append_judge(owner, &append, &head, &refusal, result, error);
        if (refusal == SPILL_REFUSAL_REPEATED || refusal == SPILL_REFUSAL_STALE)
            break;
        if (code == SPILL_OK && refusal == SPILL_REFUSAL_NONE && part->member_count > 0)
            break; /* one of its operations may be the reason */
        if (code == SPILL_OK && refusal == SPILL_REFUSAL_FULL)
            code = make_room(owner, part, limits, &head, error);
        if (code == SPILL_OK || code == SPILL_UNKNOWN) /* refused: nothing was appended */
            code = spill_owner_again(owner, &tries, error);
    }
    spill_response_release(&head);
    return code;
}
