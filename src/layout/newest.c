/*
 * Keep newest: every append goes to the head; when the head has grown past threshold + one page,
 * its oldest run moves to page k = overflowPages.
 *
 *   1. read   the head: k, rev r, its oldest run   or the append's answer has shown it
 *   2. put    page k with src = r       refused: adopt what is there if its src is r, else again
 *   3. cut    the run off the head, if still pages == k and rev == r
 *
 * Appends do not raise rev, so they never disturb a spill; everything else does, so a copy that is
 * out of date is never cut by. A crash after 2 leaves page k at or above overflowPages: readers do
 * not look there, and the next spill replaces it (its src is lower) or adopts it (it is equal).
 */
#include "layout/outlier.h"
#include "util/error.h"

#include <inttypes.h>

/* How much room a spill has to make besides coming back to the threshold. */
typedef struct need {
    int64_t slots;
    int64_t bytes;
} need_t;

/* After a spill that bytes caused, the head is as full in bytes as it is meant to be in count. */
static int64_t bytes_target(const spill_bounds_t *bounds)
{
    return (int64_t)((double)bounds->head_bytes_max * (double)bounds->threshold /
                     (double)(bounds->threshold + bounds->page_capacity));
}

/* What a spill moves: the first `live` elements of the run, over `slots` slots. */
typedef struct plan {
    size_t live;
    int64_t slots;
    int64_t bytes;
} plan_t;

/* What a plan leaves in the head. */
typedef struct rest {
    int64_t slots;
    int64_t live;
    int64_t bytes;
} rest_t;

static rest_t rest_of(const spill_state_t *head, const plan_t *plan)
{
    return (rest_t){
        .slots = spill_state_slots(head) - plan->slots,
        .live = head->live - (int64_t)plan->live,
        .bytes = head->live_bytes - plan->bytes,
    };
}

/* Does what is needed fit a head that has this? */
static bool has_room(const spill_owner_t *owner, const spill_state_t *head, const rest_t *rest,
                     need_t need)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_head_limits(definition, &definition->bounds);
    int64_t live = rest->live + need.slots;
    int64_t rendered = spill_append_head_bytes(owner, head, live, rest->bytes + need.bytes);
    return spill_limits_allow(&limits, rest->slots + need.slots, live, rendered);
}

/* Would the head, left with what the plan does not take, be small enough? */
static bool enough(const spill_owner_t *owner, const spill_state_t *head, const plan_t *plan,
                   need_t need)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    rest_t rest = rest_of(head, plan);
    if (rest.live == 0)
        return true;
    if (rest.slots > bounds->threshold)
        return false;
    bool bytes_matter = plan->live > 0 || need.slots > 0;
    if (bytes_matter &&
        spill_append_head_bytes(owner, head, rest.live, rest.bytes) > bytes_target(bounds))
        return false;
    return has_room(owner, head, &rest, need);
}

/*
 * Is one page enough for now? A head that came past the point where it spills by a batch, or by
 * racers, is left with a little more than the threshold, not with another page of that little.
 */
static bool settles(const spill_owner_t *owner, const spill_state_t *head, const plan_t *plan,
                    need_t need)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    rest_t rest = rest_of(head, plan);
    return rest.live == 0 || (rest.slots < bounds->threshold + bounds->page_capacity &&
                              has_room(owner, head, &rest, need));
}

/* Take the oldest elements until it is enough or a page is full; at least one if not enough. */
static plan_t make_plan(const spill_owner_t *owner, const spill_state_t *head,
                        const spill_run_t *run, need_t need)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_page_limits(&definition->bounds);
    plan_t plan = {0};
    while (plan.live < run->count && !enough(owner, head, &plan, need)) {
        const spill_run_entry_t *entry = &run->entries[plan.live];
        plan_t next = {
            .live = plan.live + 1,
            .slots = entry->seq + 1 - head->first,
            .bytes = plan.bytes + entry->size_bytes,
        };
        spill_state_t page = {.first = head->first, .page = head->pages};
        page.gone.count = spill_seqs_count_below(&head->gone, head->first + next.slots);
        int64_t rendered = spill_state_document_bytes(definition, owner->value, false, &page,
                                                      (int64_t)next.live, next.bytes);
        if (plan.live > 0 && !spill_limits_allow(&limits, next.slots, next.slots, rendered))
            break;
        plan = next;
    }
    return plan;
}

spill_code_t spill_newest_read_run(const spill_owner_t *owner, spill_response_t *head,
                                   spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.want = SPILL_WANT_FORWARD;
    read.limit = owner->array->definition.bounds.page_capacity;
    return spill_owner_call(owner, &read, head, error);
}

/*
 * Put page k as planned. When a racer's copy of the same head (src equal) is there already, the
 * plan becomes that page's, which may be of another size. *ready: the page is there and may be cut.
 */
static spill_code_t put_page(const spill_owner_t *owner, spill_response_t *head, plan_t *plan,
                             bool *ready, spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, state->pages);
    spill_seqs_t gone = {0};
    spill_seqs_copy(&state->gone, &gone);
    spill_seqs_keep_below(&gone, state->first + plan->slots);
    size_t all = head->run.count;
    head->run.count = plan->live;
    put.epoch = state->epoch;
    put.src = state->rev;
    put.first = state->first;
    put.slots = plan->slots;
    put.bytes = plan->bytes;
    put.run = &head->run;
    put.gone = &gone;
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_call(owner, &put, &page, error);
    head->run.count = all;
    *ready = code == SPILL_OK && page.outcome == SPILL_DONE;
    if (code == SPILL_OK && !*ready) {
        code = spill_owner_read_state(owner, state->pages, &page, error);
        if (code == SPILL_OK && page.state.present && page.state.epoch == state->epoch &&
            page.state.src == state->rev && page.state.first == state->first) {
            plan->slots = spill_state_slots(&page.state);
            plan->bytes = page.state.live_bytes;
            *ready = true;
        }
    }
    spill_seqs_release(&gone);
    spill_response_release(&page);
    return code;
}

spill_code_t spill_newest_cut(const spill_owner_t *owner, const spill_state_t *head, int64_t slots,
                              int64_t bytes, bool *done, spill_error_t *error)
{
    spill_request_t cut = spill_owner_request(owner, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.pages = head->pages;
    cut.epoch = head->epoch;
    cut.rev = head->rev;
    cut.first = head->first;
    cut.slots = slots;
    cut.bytes = bytes;
    return spill_owner_step(owner, &cut, done, error);
}

/*
 * One try at a spill, from what `head` shows where it was looked at, else from a READ into it.
 * *settled: there is nothing left to do, by us or by another.
 */
static spill_code_t try_spill(spill_owner_t *owner, need_t need, spill_response_t *head,
                              bool *settled, spill_error_t *error)
{
    *settled = false;
    spill_code_t code = head->looked ? SPILL_OK : spill_newest_read_run(owner, head, error);
    head->looked = false; /* the next try looks again */
    if (code == SPILL_OK) {
        plan_t plan = {0};
        if (head->state.present)
            plan = make_plan(owner, &head->state, &head->run, need);
        *settled = plan.live == 0;
        bool ready = false;
        bool done = false;
        if (!*settled)
            code = put_page(owner, head, &plan, &ready, error);
        if (code == SPILL_OK && ready)
            code = spill_newest_cut(owner, &head->state, plan.slots, plan.bytes, &done, error);
        if (done)
            *settled = settles(owner, &head->state, &plan, need);
    }
    /* Each step is guarded: whether a lost one was applied shows when the head is read again. */
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/* Spill until the head is within its bounds and has the room that is needed. */
static spill_code_t spill(spill_owner_t *owner, need_t need, spill_response_t *head,
                          spill_error_t *error)
{
    int tries = 0;
    bool settled = false;
    while (true) {
        spill_code_t code = try_spill(owner, need, head, &settled, error);
        if (code == SPILL_OK && !settled)
            code = spill_owner_again(owner, &tries, error);
        if (code == SPILL_OK && settled)
            spill_outlier_retain(owner);
        if (code != SPILL_OK || settled)
            return code;
    }
}

/*
 * It is for the append that took the head past threshold + page to spill; the others leave it alone
 * until the head is near its bound, so that spilling is a race only when it has to. The request
 * asks for what the spill will begin with.
 */
static spill_request_t append_request(const spill_owner_t *owner, const spill_part_t *part)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    spill_request_t append = spill_append_request(owner, SPILL_HEAD, part);
    append.due = bounds->threshold + bounds->page_capacity;
    append.want = SPILL_WANT_FORWARD;
    append.limit = bounds->page_capacity;
    return append;
}

/* The append is acknowledged already: a spill that fails is the next append's to finish. */
static void after_append(spill_owner_t *owner, const spill_request_t *append,
                         spill_response_t *head)
{
    spill_error_t error;
    if (spill_request_is_due(append, spill_state_slots(&head->state)) &&
        spill(owner, (need_t){0}, head, &error) != SPILL_OK)
        spill_store_log(owner->array->store, SPILL_LOG_WARNING, "spill put off: %s", error.message);
}

/* The head is full: make room, unless no room can be made. */
static spill_code_t make_room(spill_owner_t *owner, const spill_part_t *part,
                              spill_response_t *head, spill_error_t *error)
{
    need_t need = {.slots = (int64_t)part->count,
                   .bytes = part->bytes + spill_update_growth(part->update)};
    spill_code_t code = spill_append_check_head(owner, part, &head->state, error);
    return code == SPILL_OK ? spill(owner, need, head, error) : code;
}

spill_code_t spill_newest_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error)
{
    static const spill_head_append_t steps = {
        .request = append_request, .done = after_append, .full = make_room};
    return spill_append_to_head(owner, part, &steps, result, error);
}
