/*
 * Keep newest: every append goes to the head; when the head has grown past threshold + one page,
 * its oldest run moves to page k = overflowPages.
 *
 *   1. read   the head: k, rev r, its oldest run   or the append's answer has shown it
 *   2. put    page k with src = r       refused: adopt what is there if its src is r, else again
 *   3. cut    the run off the head, if still pages == k and rev == r
 *
 * Appends do not raise rev, so they never disturb a spill. Each change of an existing element
 * raises it, so a client never cuts by an outdated copy. A crash after 2 leaves page k at or above
 * overflowPages: readers do not look there, and the next spill replaces it (its src is lower) or
 * adopts it (it is equal).
 */
#include "layout/newest.h"
#include "layout/append.h"
#include "layout/change_element.h"
#include "layout/document_limits.h"
#include "layout/drop.h"
#include "layout/layout.h"
#include "layout/locate.h"
#include "layout/spiller.h"
#include "layout/trim.h"
#include "util/error.h"

#include <inttypes.h>

/* The room that a spill must make, besides a return to the threshold. */
typedef struct need {
    int64_t slots;
    int64_t bytes;
} need_t;

int64_t spill_newest_bytes_target(const spill_bounds_t *bounds)
{
    return (int64_t)((double)bounds->head_bytes_max * (double)bounds->threshold /
                     (double)(bounds->threshold + bounds->page_capacity));
}

/* What a spill moves: the first `live` elements of the run, over `slots` slots, to `pages` pages.
 */
typedef struct plan {
    size_t live;
    int64_t slots;
    int64_t bytes;
    int64_t pages;
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

/* Does the need fit into a head with this rest? */
static bool has_room(const spill_owner_t *owner, const spill_state_t *head, const rest_t *rest,
                     need_t need)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_head_limits(definition, &definition->bounds);
    int64_t live = rest->live + need.slots;
    int64_t rendered = spill_append_head_bytes(owner, head, live, rest->bytes + need.bytes);
    return spill_limits_fit(&limits, rest->slots + need.slots, live, rendered);
}

/* Would the rest of the plan be small enough for the head? */
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
    if (bytes_matter && spill_append_head_bytes(owner, head, rest.live, rest.bytes) >
                            spill_newest_bytes_target(bounds))
        return false;
    return has_room(owner, head, &rest, need);
}

/*
 * Is one page enough for now? A batch or a race may push the head a little past the point where it
 * spills. The head then keeps a few elements more than the threshold, instead of another small
 * page.
 */
static bool moved_enough(const spill_owner_t *owner, const spill_state_t *head, const plan_t *plan,
                         need_t need)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    rest_t rest = rest_of(head, plan);
    return rest.live == 0 || (rest.slots < bounds->threshold + bounds->page_capacity &&
                              has_room(owner, head, &rest, need));
}

bool spill_newest_is_due(const spill_owner_t *owner, const spill_state_t *head)
{
    static const plan_t nothing = {0};
    rest_t all = rest_of(head, &nothing);
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    return all.live > 1 && (all.slots >= bounds->threshold + bounds->page_capacity ||
                            !has_room(owner, head, &all, (need_t){0}));
}

/* May the elements that `next` takes beyond `plan` be one page? A single one may be any size. */
static bool fits_page(const spill_owner_t *owner, const spill_state_t *head, const plan_t *plan,
                      const plan_t *next)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_page_limits(&definition->bounds);
    spill_state_t page = {.first = head->first + plan->slots, .page = head->pages + plan->pages};
    page.deleted.count = spill_seqs_count_below(&head->deleted, head->first + next->slots) -
                         spill_seqs_count_below(&head->deleted, page.first);
    int64_t slots = next->slots - plan->slots, live = (int64_t)(next->live - plan->live);
    int64_t rendered = spill_state_document_bytes(definition, owner->value, false, &page, live,
                                                  next->bytes - plan->bytes);
    return slots == 1 || spill_limits_fit(&limits, slots, slots, rendered);
}

/*
 * Add one page to the plan: the oldest elements of its rest, until the head is small enough or the
 * page is full. At least one element, unless the head is small enough or the rest is empty.
 */
static plan_t plan_page(const spill_owner_t *owner, const spill_response_t *head,
                        const plan_t *plan, need_t need)
{
    const spill_run_t *run = &head->run;
    plan_t longer = *plan;
    while (longer.live < run->count && !enough(owner, &head->state, &longer, need)) {
        const spill_run_entry_t *entry = &run->entries[longer.live];
        plan_t next = {
            .live = longer.live + 1,
            .slots = entry->seq + 1 - head->state.first,
            .bytes = longer.bytes + entry->size_bytes,
            .pages = plan->pages + 1,
        };
        if (!fits_page(owner, &head->state, plan, &next))
            break;
        longer = next;
    }
    return longer;
}

spill_code_t spill_newest_read_run(const spill_owner_t *owner, spill_response_t *head,
                                   spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = owner->array->definition.bounds.page_capacity;
    return spill_owner_call(owner, &read, head, error);
}

/* The elements that the plan takes beyond `from`, as a view of what was read. */
static spill_run_t planned_run(const spill_response_t *head, const plan_t *from, const plan_t *plan)
{
    spill_run_t run = head->run;
    run.entries += from->live;
    run.count = plan->live - from->live;
    return run;
}

/* The page is another client's copy of this head: the plan now ends with this page. */
static void adopt(const spill_response_t *head, const spill_response_t *page, plan_t *plan)
{
    plan->slots += spill_state_slots(&page->state);
    plan->bytes += page->state.live_bytes;
    plan->pages++;
    while (plan->live < head->run.count &&
           head->run.entries[plan->live].seq < head->state.first + plan->slots)
        plan->live++;
}

/* The pages that are put together, and then cut off together. */
typedef struct puts {
    size_t count, capacity;
    plan_t *plans; /* what all pages up to this one take */
    spill_run_t *runs;
    spill_seqs_t *deleted;
    spill_request_t *requests;
    spill_response_t *responses;
} puts_t;

static void release_puts(puts_t *puts)
{
    for (size_t i = 0; puts->requests && i < puts->count; i++) {
        spill_seqs_release(&puts->deleted[i]);
        spill_response_release(&puts->responses[i]);
    }
    bson_free(puts->plans);
    bson_free(puts->runs);
    bson_free(puts->deleted);
    bson_free(puts->requests);
    bson_free(puts->responses);
}

static void add_plan(puts_t *puts, const plan_t *plan)
{
    if (puts->count == puts->capacity) {
        puts->capacity = puts->capacity < 4 ? 4 : puts->capacity * 2;
        puts->plans = bson_realloc(puts->plans, puts->capacity * sizeof *puts->plans);
    }
    puts->plans[puts->count++] = *plan;
}

/* Is the next page short only because the read ended? Then leave it to the next spill. */
static bool is_short(const spill_response_t *head, const plan_t *plan)
{
    return plan->live == head->run.count && (int64_t)plan->live < head->state.live;
}

/* Plan pages to the end of the run; none if the first would be empty. */
static void plan_pages(const spill_owner_t *owner, const spill_response_t *head, need_t need,
                       puts_t *puts)
{
    plan_t plan = {0};
    while (true) {
        plan_t next = plan_page(owner, head, &plan, need);
        if (next.live == plan.live)
            return;
        if (puts->count > 0 && (is_short(head, &next) || next.bytes > SPILL_MOVE_BYTES))
            return;
        add_plan(puts, &next);
        plan = next;
    }
}

static spill_request_t put_request(const spill_owner_t *owner, const spill_response_t *head,
                                   const puts_t *puts, size_t index)
{
    static const plan_t nothing = {0};
    const plan_t *from = index > 0 ? &puts->plans[index - 1] : &nothing;
    const plan_t *plan = &puts->plans[index];
    const spill_state_t *state = &head->state;
    spill_request_t put =
        spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, state->pages + from->pages);
    spill_seqs_t *deleted = &puts->deleted[index];
    put.put_page.first = state->first + from->slots;
    puts->runs[index] = planned_run(head, from, plan);
    spill_seqs_copy(&state->deleted, deleted);
    spill_seqs_keep_below(deleted, state->first + plan->slots);
    spill_seqs_drop_below(deleted, put.put_page.first);
    put.incarnation = state->incarnation;
    put.put_page.source_rev = state->rev;
    put.put_page.slots = plan->slots - from->slots;
    put.put_page.run = &puts->runs[index];
    put.put_page.deleted = deleted;
    return put;
}

/*
 * A copy of another incarnation (full.c) occupies the place of the next page. While its lease runs
 * it stays. When the lease has ended, no head of its incarnation can be made. If our head still
 * exists, the copy is useless: the store replaces one of an earlier incarnation, and this function
 * deletes one of a later incarnation.
 */
static spill_code_t make_way(const spill_owner_t *owner, const spill_state_t *state,
                             spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT, head = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_outlier_read_leased(owner, state->pages, &page, error);
    if (code == SPILL_OK && spill_page_is_leased(&page))
        code = spill_owner_leased(owner, page.state.lease, error);
    bool later = code == SPILL_OK && page.state.present && page.state.lease > 0 &&
                 page.state.incarnation > state->incarnation;
    if (later)
        code = spill_owner_read_state(owner, SPILL_HEAD, &head, error);
    if (later && code == SPILL_OK && head.state.present &&
        head.state.incarnation == state->incarnation)
        code = spill_outlier_empty_pages(owner, page.state.incarnation, state->pages,
                                         state->pages + 1, error);
    spill_response_release(&page);
    spill_response_release(&head);
    return code;
}

/* Is the page a copy of this head's elements from number `first` on? */
static bool is_copy(const spill_state_t *head, const spill_state_t *page, int64_t first)
{
    return page->present && page->incarnation == head->incarnation &&
           page->source_rev == head->rev && page->first == first;
}

/* The number after the last element that was read of the head. */
static int64_t end_of_run(const spill_response_t *head)
{
    const spill_run_t *run = &head->run;
    return run->count > 0 ? run->entries[run->count - 1].seq + 1 : head->state.first;
}

/*
 * The store refused the pages from index `from` on, or some of them. Add those that are copies of
 * the same head (their source_rev is equal) to the plan: two clients that move one array share
 * their work, and one cut takes all pages of both. A copy may be of another size than planned. The
 * plan then ends with it; or before it, if it has elements that this client did not read, unless it
 * is the first page. *taken: the plan's elements as the pages have them.
 */
static spill_code_t adopt_copies(const spill_owner_t *owner, const spill_response_t *head,
                                 puts_t *puts, size_t from, plan_t *plan, spill_run_t *taken,
                                 spill_error_t *error)
{
    static const plan_t nothing = {0};
    const spill_state_t *state = &head->state;
    spill_run_t own = planned_run(head, &nothing, plan);
    for (size_t i = from; i < puts->count; i++)
        puts->requests[i] = spill_owner_whole_request(owner, state->pages + (int64_t)i);
    SPILL_TRY(spill_owner_call_all(owner, &puts->requests[from], puts->count - from,
                                   &puts->responses[from], error));
    spill_run_add_from(&own, 0, taken);
    for (size_t i = from; i < puts->count; i++) {
        const spill_response_t *page = &puts->responses[i];
        int64_t first = state->first + plan->slots;
        int64_t end = first + spill_state_slots(&page->state);
        if (!is_copy(state, &page->state, first) || (i > 0 && end > end_of_run(head)))
            return SPILL_OK;
        adopt(head, page, plan);
        spill_run_add_from(&page->run, 0, taken);
        if (plan->slots != puts->plans[i].slots)
            return SPILL_OK;
    }
    return SPILL_OK;
}

/*
 * Put the planned pages. *plan: those that exist now and may be cut, put by this client or another
 * one; *ready: there are any. `taken` has their elements if the store refused to put some of them.
 */
static spill_code_t put_pages(const spill_owner_t *owner, const spill_response_t *head,
                              puts_t *puts, plan_t *plan, spill_run_t *taken, bool *ready,
                              spill_error_t *error)
{
    size_t done = 0;
    puts->runs = bson_malloc0(puts->count * sizeof *puts->runs);
    puts->deleted = bson_malloc0(puts->count * sizeof *puts->deleted);
    puts->requests = bson_malloc0(puts->count * sizeof *puts->requests);
    puts->responses = bson_malloc0(puts->count * sizeof *puts->responses);
    for (size_t i = 0; i < puts->count; i++)
        puts->requests[i] = put_request(owner, head, puts, i);
    *plan = (plan_t){0};
    *ready = false;
    SPILL_TRY(spill_owner_call_all(owner, puts->requests, puts->count, puts->responses, error));
    while (done < puts->count && puts->responses[done].outcome == SPILL_DONE)
        done++;
    if (done > 0)
        *plan = puts->plans[done - 1];
    if (done < puts->count)
        SPILL_TRY(adopt_copies(owner, head, puts, done, plan, taken, error));
    *ready = plan->pages > 0;
    const spill_state_t *first = &puts->responses[0].state;
    return !*ready && first->present && first->lease > 0 ? make_way(owner, &head->state, error)
                                                         : SPILL_OK;
}

spill_request_t spill_newest_cut_request(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t slots, int64_t bytes)
{
    spill_request_t cut = spill_owner_request(owner, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.cut.pages = head->pages;
    cut.incarnation = head->incarnation;
    cut.rev = head->rev;
    cut.cut.first = head->first;
    cut.cut.slots = slots;
    cut.cut.bytes = bytes;
    return cut;
}

static spill_code_t cut(const spill_owner_t *owner, const spill_state_t *head, const plan_t *plan,
                        const spill_run_t *run, bool *done, spill_error_t *error)
{
    spill_request_t request = spill_newest_cut_request(owner, head, plan->slots, plan->bytes);
    request.cut.more_pages = plan->pages - 1;
    request.cut.run = run;
    return spill_owner_step(owner, &request, done, error);
}

/*
 * Programs that do not keep to the protocols may change elements of a head, and do not raise rev.
 * Until the first cut that is allowed. Later it is not, but the server acknowledges the change, and
 * a cut by an older copy would lose it without a word. So the cut names the elements. If they have
 * changed since they were copied, the server refuses the cut. Then the head gets a new rev, by
 * which the next try replaces the pages with a newer copy.
 */
static spill_code_t cut_if_same(const spill_owner_t *owner, const spill_response_t *head,
                                const plan_t *plan, const spill_run_t *taken, bool *done,
                                spill_error_t *error)
{
    static const plan_t nothing = {0};
    spill_run_t own = planned_run(head, &nothing, plan);
    spill_code_t code =
        cut(owner, &head->state, plan, taken->count > 0 ? taken : &own, done, error);
    if (code != SPILL_OK || *done)
        return code;
    spill_request_t raise = spill_owner_request(owner, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    raise.rev = head->state.rev;
    return spill_owner_step(owner, &raise, NULL, error);
}

/*
 * `head` holds the head with its oldest run. Put pages to the end of the run, and cut them off in
 * one step. *plan: what was moved, if *done. *finished: nothing is left to do.
 */
static spill_code_t move(const spill_owner_t *owner, need_t need, spill_response_t *head,
                         plan_t *plan, bool *done, bool *finished, spill_error_t *error)
{
    spill_run_t taken = {0};
    puts_t puts = {0};
    bool ready = false;
    spill_code_t code = SPILL_OK;
    if (head->state.present)
        plan_pages(owner, head, need, &puts);
    *finished = puts.count == 0;
    if (!*finished)
        code = put_pages(owner, head, &puts, plan, &taken, &ready, error);
    if (ready)
        code = head->state.pages == 0 || owner->array->store->ops->others_write
                   ? cut_if_same(owner, head, plan, &taken, done, error)
                   : cut(owner, &head->state, plan, NULL, done, error);
    if (*done)
        *finished = moved_enough(owner, &head->state, plan, need);
    release_puts(&puts);
    spill_run_release(&taken);
    /* Each step is guarded: whether a lost one was applied shows when the head is read again. */
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

spill_code_t spill_newest_move(const spill_owner_t *owner, spill_response_t *head,
                               spill_moved_t *moved, bool *finished, spill_error_t *error)
{
    static const need_t nothing_more = {0};
    plan_t plan;
    bool done = false;
    spill_code_t code = move(owner, nothing_more, head, &plan, &done, finished, error);
    *moved = (spill_moved_t){0};
    if (done)
        *moved = (spill_moved_t){
            .page = head->state.pages, .pages = plan.pages, .live = plan.live, .bytes = plan.bytes};
    return code;
}

/*
 * Make one try at a spill. If `head` shows a read, begin with that, else read the head. *finished:
 * no client has anything left to do.
 */
static spill_code_t try_spill(const spill_owner_t *owner, need_t need, spill_response_t *head,
                              bool *finished, spill_error_t *error)
{
    plan_t plan;
    bool done = false;
    *finished = false;
    spill_code_t code = head->shows_read ? SPILL_OK : spill_newest_read_run(owner, head, error);
    head->shows_read = false; /* the next try looks again */
    if (code == SPILL_OK)
        code = move(owner, need, head, &plan, &done, finished, error);
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/* Spill until the head is within its bounds and has the needed room. */
static spill_code_t spill_until_finished(spill_owner_t *owner, need_t need, spill_response_t *head,
                                         spill_error_t *error)
{
    int tries = 0;
    bool finished = false;
    while (true) {
        spill_code_t code = try_spill(owner, need, head, &finished, error);
        if (code == SPILL_OK && !finished)
            code = spill_owner_again(owner, &tries, error);
        owner->retain_is_due = owner->retain_is_due || (code == SPILL_OK && finished);
        if (code != SPILL_OK || finished)
            return code;
    }
}

spill_code_t spill_newest_spill_due(spill_owner_t *owner, spill_response_t *head,
                                    spill_error_t *error)
{
    int tries = 0;
    while (true) {
        bool finished = false;
        if (!head->shows_read)
            SPILL_TRY(spill_newest_read_run(owner, head, error));
        if (!head->state.present || !spill_newest_is_due(owner, &head->state))
            return SPILL_OK;
        head->shows_read = true;
        SPILL_TRY(try_spill(owner, (need_t){0}, head, &finished, error));
        owner->retain_is_due = owner->retain_is_due || finished;
        if (finished)
            return SPILL_OK;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}

/*
 * The append that took the head past threshold + page spills, or leaves the spill to the store's
 * thread (spiller.c). Other appends spill only if the head is near its bound, so that few spills
 * race. The request asks for the elements that the spill needs.
 */
static spill_request_t append_request(const spill_owner_t *owner, const spill_part_t *part)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    spill_request_t append = spill_append_request(owner, SPILL_HEAD, part);
    append.append.due = bounds->threshold + bounds->page_capacity;
    append.append.due_limit = bounds->page_capacity;
    return append;
}

/*
 * The append is acknowledged already. If the spill fails, an append to the full head finishes it.
 */
static void after_append(spill_owner_t *owner, const spill_request_t *append,
                         spill_response_t *head)
{
    spill_store_t *store = owner->array->store;
    spill_error_t error;
    if (!spill_request_is_due(append, spill_state_slots(&head->state)) ||
        (spill_store_defers(store, append) && store->defer_spill(owner, head)))
        return;
    if (spill_until_finished(owner, (need_t){0}, head, &error) != SPILL_OK)
        spill_store_log(store, SPILL_LOG_WARNING, "spill put off: %s", error.message);
}

/* The head is full: spill, unless no spill can make enough room, or another thread is spilling. */
static spill_code_t make_room(spill_owner_t *owner, const spill_part_t *part,
                              spill_response_t *head, spill_error_t *error)
{
    need_t need = {.slots = (int64_t)part->count, .bytes = part->bytes + spill_part_growth(part)};
    SPILL_TRY(spill_append_check_head(owner, part, &head->state, error));
    return spill_spiller_await(owner) ? SPILL_OK : spill_until_finished(owner, need, head, error);
}

static const spill_head_append_t head_append = {
    .request = append_request, .done = after_append, .full = make_room};

static spill_code_t append_part(spill_owner_t *owner, const spill_part_t *part,
                                spill_append_result_t *result, spill_error_t *error)
{
    return spill_append_to_head(owner, part, &head_append, result, error);
}

const spill_layout_ops_t spill_newest_ops = {
    .append = append_part,
    .head_append = &head_append,
    .count = spill_count_newest,
    .edit = spill_documents_edit,
    .remove = spill_documents_remove,
    .trim = spill_documents_trim,
    .drop = spill_newest_drop,
};
