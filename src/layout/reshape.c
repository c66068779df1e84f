#include "layout/reshape.h"
#include "layout/change_element.h"
#include "layout/drop.h"
#include "layout/newest.h"

#include "bson/value.h"
#include "layout/adoption.h"
#include "layout/layout.h"
#include "layout/unique.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- adoption -------------------------------------------------------------------------------- */

enum {
    SMALL_BYTES = 1 << 20, /* the server rewrites a document up to this size in little time */
    TIME_EXCEEDED = 50,    /* the server's code: an update took longer than its run_us */
    EXCEEDED_MAX = 3       /* so often ADOPT is sent to a server that is too slow for it */
};

/*
 * The number of elements to read at a time: all, or about SPILL_MOVE_BYTES of them, but at least a
 * page. The caller's limit may lower it.
 */
static int64_t run_limit(const spill_owner_t *owner, const spill_reshape_steps_t *steps,
                         int64_t elements, int64_t bytes)
{
    int64_t page = owner->array->definition.bounds.page_capacity;
    int64_t mean = elements > 0 && bytes > elements ? bytes / elements : 1;
    int64_t limit = bytes <= SPILL_MOVE_BYTES ? INT64_MAX : SPILL_MOVE_BYTES / mean;
    int64_t wanted = steps && steps->limit ? steps->limit(steps->context) : 0;
    if (wanted > 0 && wanted < limit)
        limit = wanted;
    return limit > page ? limit : page;
}

static spill_code_t fail_slow(const spill_owner_t *owner, int64_t run_us, spill_error_t *error)
{
    spill_fail_retryable(error, SPILL_CONFLICT,
                         "the server could not adopt the array within %" PRId64
                         " s; try again when it is less busy",
                         run_us / 1000000);
    return spill_owner_name(owner, SPILL_CONFLICT, error);
}

/* How often ADOPT was sent for one array. */
typedef struct sent {
    int tries, exceeded;
} sent_t;

/* The outcome is not known, or the request was late. Is ADOPT sent again? SPILL_OK: yes. */
static spill_code_t may_send_again(const spill_owner_t *owner, bool exceeded, sent_t *sent,
                                   spill_request_t *request, spill_error_t *error)
{
    const spill_store_t *store = owner->array->store;
    if (spill_store_stopped(store))
        return spill_fail(error, SPILL_CANCELLED, "stopped between two steps of one array");
    if (exceeded && ++sent->exceeded == EXCEEDED_MAX)
        return fail_slow(owner, request->adopt.run_us, error);
    if (exceeded)
        request->adopt.run_us = spill_adopt_run_us(store, true);
    return spill_owner_again(owner, &sent->tries, error);
}

/* Send ADOPT once. SPILL_UNKNOWN also if it was refused and may have come too late. */
static spill_code_t send_adopt(const spill_owner_t *owner, spill_request_t *request,
                               spill_response_t *head, spill_error_t *error)
{
    bool late = false;
    int64_t run_us = request->adopt.run_us;
    SPILL_TRY(spill_adoption_until(owner, run_us, false, &request->adopt.until, error));
    request->incarnation = spill_owner_now(owner);
    spill_code_t code = spill_owner_call(owner, request, head, error);
    if (code == SPILL_UNKNOWN)
        spill_adoption_unknown(owner->array);
    if (code == SPILL_OK && head->outcome != SPILL_DONE)
        code = spill_adoption_is_late(owner, request->adopt.until, &late, error);
    return late ? SPILL_UNKNOWN : code;
}

/*
 * ADOPT the array. If the answer is lost, send ADOPT again: the second one is refused.
 * SPILL_TOO_BIG: the document is full. `head` may show the array's oldest elements afterwards, at
 * most `shown`. The function does not ask for a large array: an answer has the size limit of a
 * document, and the server would refuse it together with the update.
 */
static spill_code_t adopt(const spill_owner_t *owner, const spill_oversized_t *oversized,
                          int64_t shown, spill_response_t *head, bool *adopted,
                          spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_ADOPT, SPILL_HEAD);
    bool large = oversized->document_bytes > SMALL_BYTES || oversized->full;
    sent_t sent = {0};
    request.create = true;
    request.limits.bytes_max = oversized->full ? 0 : SPILL_DOCUMENT_BYTES_MAX;
    if (oversized->bytes <= SPILL_MOVE_BYTES)
        request.adopt.shown = shown;
    request.adopt.run_us = spill_adopt_run_us(owner->array->store, large);
    spill_code_t code = SPILL_UNKNOWN;
    while (code == SPILL_UNKNOWN) {
        spill_error_t failure = {0};
        code = send_adopt(owner, &request, head, &failure);
        if (code == SPILL_UNKNOWN)
            SPILL_TRY(
                may_send_again(owner, failure.native == TIME_EXCEEDED, &sent, &request, error));
        else if (code != SPILL_OK && error)
            *error = failure;
    }
    *adopted = code == SPILL_OK && head->outcome == SPILL_DONE;
    return code;
}

/* The store refused ADOPT, and the array is still unmanaged: other fields are in the way. */
static spill_code_t refuse_fields(const spill_owner_t *owner, spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_fail(error, SPILL_REFUSED,
               "its document has a field '%s' or '%s', or a field 'spill' that is not a document: "
               "choose other names in the plan's definition, or unset these fields",
               definition->pages_field, definition->overflow_field);
    return spill_owner_name(owner, SPILL_REFUSED, error);
}

spill_code_t spill_reshape_check(const spill_oversized_t *oversized, spill_error_t *error)
{
    switch (oversized->obstacle) {
    case SPILL_OBSTACLE_ROOM:
        return spill_fail(error, SPILL_TOO_BIG,
                          "its document is full: even if only the newest element stayed in it, "
                          "there would be no room for the bookkeeping. Shorten that element or "
                          "other fields");
    case SPILL_OBSTACLE_ELEMENT:
        return spill_fail(error, SPILL_TOO_BIG,
                          "its document is full, and has an older element that no page can hold: a "
                          "page with it alone would pass %d bytes. Shorten that element",
                          SPILL_DOCUMENT_BYTES_MAX);
    case SPILL_OBSTACLE_NONE:
        break;
    }
    return SPILL_OK;
}

/* ---- several pages at a time ----------------------------------------------------------------- */

enum { PAGES_TOGETHER = 32 };

/* Requests for several pages, which are sent together. */
typedef struct together {
    spill_request_t requests[PAGES_TOGETHER];
    spill_response_t responses[PAGES_TOGETHER];
    size_t count;
} together_t;

static together_t *new_together(void)
{
    return bson_malloc0(sizeof(together_t));
}

static void free_together(together_t **together)
{
    for (size_t i = 0; i < PAGES_TOGETHER; i++)
        spill_response_release(&(*together)->responses[i]);
    bson_free(*together);
}

/*
 * Read the pages [from, from + PAGES_TOGETHER) that the head counts, with their elements if
 * `whole`. SPILL_CONFLICT: a lease runs.
 */
static spill_code_t read_together(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t from, bool whole, together_t *pages, spill_error_t *error)
{
    int64_t count = head->pages - from;
    pages->count = count < PAGES_TOGETHER ? (size_t)count : PAGES_TOGETHER;
    for (size_t i = 0; i < pages->count; i++) {
        int64_t page = from + (int64_t)i;
        pages->requests[i] = whole ? spill_owner_whole_request(owner, page)
                                   : spill_owner_request(owner, SPILL_REQUEST_READ, page);
        pages->requests[i].read.want_now = true;
    }
    SPILL_TRY(spill_owner_call_all(owner, pages->requests, pages->count, pages->responses, error));
    return from == 0 && spill_page_is_leased(&pages->responses[0])
               ? spill_owner_leased(owner, pages->responses[0].state.lease, error)
               : SPILL_OK;
}

/* Called for each page that the head counts, present or not. */
typedef void (*page_fn)(void *context, const spill_response_t *page);

/* Read these pages. SPILL_CONFLICT: a lease runs, also if the head counts none. */
static spill_code_t each_page(const spill_owner_t *owner, const spill_state_t *head, bool whole,
                              page_fn visit, void *context, spill_error_t *error)
{
    SPILL_SCOPED(free_together) together_t *pages = new_together();
    int64_t missing = 0;
    bool any = false;
    if (head->pages == 0)
        return spill_outlier_may_end(owner, head, error);
    for (int64_t number = 0; number < head->pages; number++) {
        size_t at = (size_t)(number % PAGES_TOGETHER);
        if (at == 0)
            SPILL_TRY(read_together(owner, head, number, whole, pages, error));
        const spill_response_t *page = &pages->responses[at];
        visit(context, page);
        any = any || page->state.present;
        /* Trims delete the first pages. Each had a number below the watermark, or more of them. */
        bool trimmed = !any && number < head->watermark;
        missing = page->state.present || trimmed ? 0 : missing + 1;
        SPILL_TRY(spill_owner_check_missing(owner, head, number, missing, error));
    }
    return SPILL_OK;
}

/* ---- pages without a head -------------------------------------------------------------------- */

/* Pages without a head, with numbers up to a highest one. */
typedef struct headless {
    spill_run_t run; /* their elements */
    bool sole;       /* all have one incarnation, and their states match their elements */
    bool given_up;   /* all were copied for an ADOPT_SPLIT that was never made */
} headless_t;

/* Each page has an element, so the number of a page is at most that of its first element. */
static bool may_have_number(const spill_state_t *page)
{
    return page->page <= page->first;
}

/* The first pages may be missing, because a trim deleted them. */
static spill_code_t read_incarnation(const spill_owner_t *owner, int64_t incarnation,
                                     int64_t highest, headless_t *headless, spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    headless->sole = true;
    for (int64_t number = 0; code == SPILL_OK && headless->sole && number <= highest; number++) {
        code = spill_owner_read_whole(owner, number, &page, error);
        const spill_state_t *state = &page.state;
        if (number == 0)
            headless->given_up = code == SPILL_OK && state->present && state->closed;
        headless->given_up = headless->given_up && state->present && state->lease > 0;
        if (code != SPILL_OK || !state->present)
            continue;
        headless->sole =
            state->incarnation == incarnation && (int64_t)page.run.count == state->live;
        spill_run_add_from(&page.run, 0, &headless->run);
    }
    spill_response_release(&page);
    headless->given_up = headless->given_up && headless->sole;
    return code;
}

/*
 * Delete the pages of one incarnation with numbers up to `highest`, the highest first. If the
 * client dies, the remaining pages still hold the array's first elements.
 */
static spill_code_t delete_incarnation(const spill_owner_t *owner, int64_t incarnation,
                                       int64_t highest, spill_error_t *error)
{
    SPILL_SCOPED(free_together) together_t *pages = new_together();
    for (int64_t end = highest + 1; end > 0; end -= (int64_t)pages->count) {
        pages->count = end < PAGES_TOGETHER ? (size_t)end : PAGES_TOGETHER;
        for (size_t i = 0; i < pages->count; i++) {
            pages->requests[i] =
                spill_owner_request(owner, SPILL_REQUEST_EMPTY_PAGE, end - 1 - (int64_t)i);
            pages->requests[i].incarnation = incarnation;
        }
        SPILL_TRY(
            spill_owner_call_all(owner, pages->requests, pages->count, pages->responses, error));
    }
    return SPILL_OK;
}

static spill_code_t refuse_pages(const spill_owner_t *owner, spill_error_t *error)
{
    spill_fail(
        error, SPILL_REFUSED,
        "it has pages, but its document has no bookkeeping and does not begin with their "
        "elements. Perhaps another program replaced the document, or edited it after an "
        "unfinished migration, or the owner was dropped and created again. Read the pages first; "
        "`spillway drop' of this owner deletes them");
    return spill_owner_name(owner, SPILL_REFUSED, error);
}

/*
 * Another program may have replaced the head, and the pages may hold the only copy of their
 * elements. Delete them only if the unmanaged array holds all their elements, as after an undo.
 * `page` has the highest number. Only pages that were compared are deleted.
 */
static spill_code_t free_compared(const spill_owner_t *owner, const spill_state_t *page,
                                  spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    headless_t headless = {0};
    spill_request_t read = spill_owner_unmanaged_request(owner, INT64_MAX);
    if (!may_have_number(page))
        return refuse_pages(owner, error);
    spill_code_t code = read_incarnation(owner, page->incarnation, page->page, &headless, error);
    read.read.limit = (int64_t)headless.run.count;
    read.read.want = read.read.limit > 0 ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    if (code == SPILL_OK)
        code = spill_owner_call(owner, &read, &head, error);
    if (code == SPILL_OK && !head.state.present)
        code =
            headless.given_up || (headless.sole && spill_run_begins_with(&head.run, &headless.run))
                ? delete_incarnation(owner, page->incarnation, page->page, error)
                : refuse_pages(owner, error);
    spill_run_release(&headless.run);
    spill_response_release(&head);
    return code;
}

/*
 * While the lease runs, an update that creates the head may still arrive, or has just arrived. On
 * stores without other writers, pages lose their head only by a drop or an undo.
 */
static spill_code_t free_headless(const spill_owner_t *owner, const spill_state_t *page,
                                  const spill_response_t *first, spill_error_t *error)
{
    bool leased = spill_page_is_leased(first), any;
    if (!leased && owner->array->store->ops->others_write)
        return free_compared(owner, page, error);
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_unmanaged_request(owner, 0);
    spill_code_t code = spill_owner_call(owner, &read, &head, error);
    if (code == SPILL_OK && !head.state.present)
        code = leased ? spill_owner_leased(owner, first->state.lease, error)
                      : spill_outlier_finish_drop(owner, &any, error);
    spill_response_release(&head);
    return code;
}

spill_code_t spill_free_pages(const spill_owner_t *owner, spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT, first = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_outlier_find_left_over(owner, INT64_MAX, &page, error);
    if (code == SPILL_OK && page.state.present && owner->array->store->ops->find_drop) {
        code = spill_outlier_finish_noted(owner, error);
        if (code == SPILL_OK)
            code = spill_outlier_find_left_over(owner, INT64_MAX, &page, error);
    }
    bool any = code == SPILL_OK && page.state.present;
    if (any)
        code = spill_outlier_read_leased(owner, 0, &first, error);
    if (any && code == SPILL_OK)
        code = free_headless(owner, &page.state, &first, error);
    spill_response_release(&page);
    spill_response_release(&first);
    return code;
}

/* No element had to move. Correct the counts that other readers see. */
static spill_code_t recount(const spill_owner_t *owner, const spill_state_t *head,
                            spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    request.rev = head->rev;
    return head->present && !head->intent ? spill_owner_step(owner, &request, NULL, error)
                                          : SPILL_OK;
}

/* ---- verification ---------------------------------------------------------------------------- */

/*
 * Does `run`, from index `at` to `end`, begin with the page's elements? A page that another client
 * put may have more elements than were read of the head. These are not compared.
 */
static bool same_elements(const spill_run_t *page, const spill_run_t *run, size_t at, size_t end)
{
    bool same = at + page->count <= end || end == run->count;
    for (size_t i = 0; same && i < page->count && at + i < end; i++) {
        spill_element_t moved = spill_run_element(run, at + i), there = spill_run_element(page, i);
        same = moved.seq == there.seq && spill_value_equal(&moved.value, &there.value);
    }
    return same;
}

static spill_code_t refuse_page(const spill_owner_t *owner, int64_t page, spill_error_t *error)
{
    spill_fail(error, SPILL_CORRUPT,
               "page %" PRId64
               " differs from the elements that were moved to it, though no client has "
               "changed it",
               page);
    return spill_owner_name(owner, SPILL_CORRUPT, error);
}

/*
 * Is the page still as it was put? An edit by a client of the library would have raised its rev.
 */
static bool is_untouched(const spill_state_t *head, const spill_state_t *page)
{
    return page->present && page->incarnation == head->incarnation &&
           page->source_rev == head->rev && page->rev == page->source_rev;
}

/*
 * The page to which element `seq` was moved is absent. SPILL_CORRUPT, unless the head shows a trim
 * or a drop.
 */
static spill_code_t judge_missing(const spill_owner_t *owner, int64_t incarnation, int64_t seq,
                                  int64_t page, spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, &head, error);
    if (code == SPILL_OK && head.state.present && head.state.incarnation == incarnation &&
        head.state.watermark <= seq)
        code = refuse_page(owner, page, error);
    spill_response_release(&head);
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

/* Compare the elements that left the head with those in the pages from `page` on. */
static spill_code_t compare_pages(const spill_owner_t *owner, const spill_response_t *head,
                                  const spill_moved_t *moved, const spill_response_t *pages,
                                  spill_reshaped_t *reshaped, spill_error_t *error)
{
    size_t at = 0;
    for (int64_t i = 0; i < moved->pages; i++) {
        if (!is_untouched(&head->state, &pages[i].state)) {
            reshaped->changed++; /* the first number of the next page is not known */
            return pages[i].state.present || at >= moved->live
                       ? SPILL_OK
                       : judge_missing(owner, head->state.incarnation,
                                       spill_run_element(&head->run, at).seq, moved->page + i,
                                       error);
        }
        if (!same_elements(&pages[i].run, &head->run, at, moved->live))
            return refuse_page(owner, moved->page + i, error);
        at += pages[i].run.count;
    }
    return SPILL_OK;
}

static spill_code_t verify(const spill_owner_t *owner, const spill_response_t *head,
                           const spill_moved_t *moved, spill_reshaped_t *reshaped,
                           spill_error_t *error)
{
    size_t count = (size_t)moved->pages;
    spill_request_t *requests = bson_malloc0(count * sizeof *requests);
    spill_response_t *pages = bson_malloc0(count * sizeof *pages);
    for (size_t i = 0; i < count; i++)
        requests[i] = spill_owner_whole_request(owner, moved->page + (int64_t)i);
    spill_code_t code = spill_owner_call_all(owner, requests, count, pages, error);
    if (code == SPILL_OK)
        code = compare_pages(owner, head, moved, pages, reshaped, error);
    for (size_t i = 0; i < count; i++)
        spill_response_release(&pages[i]);
    bson_free(requests);
    bson_free(pages);
    return code;
}

/* ---- moving ---------------------------------------------------------------------------------- */

void spill_reshaped_add(const spill_run_t *run, size_t count, int64_t pages, int64_t bytes,
                        spill_reshaped_t *reshaped)
{
    for (size_t i = 0; i < count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_value_add_hash(&element.value, &reshaped->hash);
    }
    reshaped->elements += (int64_t)count;
    reshaped->pages += pages;
    reshaped->bytes += bytes;
}

/*
 * Make one try to move up to `limit` elements. If `head` shows a read, begin with that. *finished:
 * nothing is left to do.
 */
static spill_code_t move(spill_owner_t *owner, int64_t limit, spill_response_t *head,
                         spill_reshaped_t *reshaped, bool *finished, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = limit;
    spill_code_t code = head->shows_read ? SPILL_OK : spill_owner_call(owner, &read, head, error);
    head->shows_read = false; /* the next try looks again */
    *finished = !head->state.present || !spill_newest_is_due(owner, &head->state);
    if (code != SPILL_OK || *finished)
        return code;
    spill_moved_t moved;
    code = spill_newest_move(owner, head, &moved, finished, error);
    if (code == SPILL_OK && moved.pages > 0) {
        spill_reshaped_add(&head->run, moved.live, moved.pages, moved.bytes, reshaped);
        code = verify(owner, head, &moved, reshaped, error);
    }
    return code;
}

static spill_code_t adopt_array(const spill_owner_t *owner, const spill_oversized_t *oversized,
                                int64_t shown, spill_response_t *head, spill_reshaped_t *reshaped,
                                spill_error_t *error)
{
    spill_code_t code = spill_reshape_check(oversized, error);
    if (code != SPILL_OK)
        return spill_owner_name(owner, code, error);
    code = spill_free_pages(owner, error);
    if (code == SPILL_OK)
        code = adopt(owner, oversized, shown, head, &reshaped->adopted, error);
    return code == SPILL_TOO_BIG ? spill_adopt_full(owner, reshaped, error) : code;
}

/* The tries at moving an array's elements. */
typedef struct tries {
    int lost;          /* since the last one that moved elements, of this client or another */
    int64_t next_page; /* that the head counts if only this client moves; -1: not known */
    int64_t limit;     /* elements to read for the next try */
} tries_t;

/*
 * After a try that moved elements, or found that another client did, the next one reads many. After
 * another lost one, it reads a page only, so that other programs change less of it meanwhile.
 */
static spill_code_t count_try(const spill_owner_t *owner, const spill_reshape_steps_t *steps,
                              const spill_state_t *head, int64_t pages, tries_t *tries,
                              spill_error_t *error)
{
    bool others_moved = tries->next_page >= 0 && head->pages > tries->next_page;
    tries->next_page = head->pages + pages;
    if (pages > 0 || others_moved)
        tries->lost = 0;
    if (pages == 0)
        SPILL_TRY(spill_owner_again(owner, &tries->lost, error));
    tries->limit = tries->lost > 1 ? owner->array->definition.bounds.page_capacity
                                   : run_limit(owner, steps, head->live, head->live_bytes);
    return SPILL_OK;
}

/* Move elements of the managed array until its head is small, or the work is asked to stop. */
static spill_code_t move_all(spill_owner_t *owner, const spill_reshape_steps_t *steps,
                             int64_t limit, spill_response_t *head, spill_reshaped_t *reshaped,
                             spill_error_t *error)
{
    const spill_store_t *store = owner->array->store;
    tries_t tries = {.next_page = -1, .limit = limit};
    bool finished = false;
    while (true) {
        int64_t pages = reshaped->pages;
        SPILL_TRY(move(owner, tries.limit, head, reshaped, &finished, error));
        if (finished)
            return SPILL_OK;
        if (spill_store_stopped(store))
            return spill_fail(error, SPILL_CANCELLED, "stopped between two steps of one array");
        if (steps && steps->moved && reshaped->pages > pages)
            SPILL_TRY(steps->moved(steps->context, reshaped, error));
        SPILL_TRY(count_try(owner, steps, &head->state, reshaped->pages - pages, &tries, error));
    }
}

spill_code_t spill_reshape(spill_owner_t *owner, const spill_oversized_t *oversized,
                           const spill_reshape_steps_t *steps, spill_reshaped_t *reshaped,
                           spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    bool unmanaged = !oversized->managed;
    int64_t limit = run_limit(owner, steps, oversized->elements, oversized->bytes);
    if (unmanaged) {
        SPILL_TRY(spill_unique_check_unmanaged(owner, error));
        SPILL_TRY(adopt_array(owner, oversized, limit, &head, reshaped, error));
    }
    spill_code_t code = move_all(owner, steps, limit, &head, reshaped, error);
    if (code == SPILL_REFUSED && unmanaged && !reshaped->adopted)
        return refuse_fields(owner, error);
    SPILL_TRY(code);
    if (!unmanaged && reshaped->elements == 0)
        SPILL_TRY(recount(owner, &head.state, error));
    spill_layout_retain(owner);
    return SPILL_OK;
}

/* ---- undo ------------------------------------------------------------------------------------ */

typedef struct gathering {
    const spill_state_t *head;
    spill_run_t *run;
} gathering_t;

/* Add the page's elements from the watermark on, if it is of the head's incarnation. */
static void gather_page(void *context, const spill_response_t *page)
{
    const gathering_t *gathering = context;
    if (page->state.present && page->state.incarnation == gathering->head->incarnation)
        spill_run_add_from(&page->run, gathering->head->watermark, gathering->run);
}

static int64_t document_bytes(const spill_owner_t *owner, const spill_state_t *head,
                              int64_t elements, int64_t bytes)
{
    int64_t name = (int64_t)strlen(owner->array->definition.array);
    return head->fields_bytes + 1 + name + 1 + 5 + spill_array_framing(elements) + bytes;
}

static spill_code_t refuse_size(const spill_owner_t *owner, int64_t bytes, spill_error_t *error)
{
    spill_fail(error, SPILL_TOO_BIG,
               "with its whole array, the document would have %" PRId64 " bytes; the limit is %d",
               bytes, SPILL_DOCUMENT_BYTES_MAX);
    return spill_owner_name(owner, SPILL_TOO_BIG, error);
}

/* A head that counts other elements than its documents have. */
typedef struct miscount {
    int64_t incarnation, rev;
    int seen; /* in as many reads of this revision */
} miscount_t;

/*
 * Every client that removes an element raises the head's `rev`. So if the numbers still differ at
 * the same `rev`, the owner is damaged. SPILL_OK: another client may have removed an element.
 */
static spill_code_t count_miscount(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t elements, miscount_t *miscount, spill_error_t *error)
{
    enum { SEEN_MAX = 3 };
    if (miscount->incarnation != head->incarnation || miscount->rev != head->rev)
        *miscount = (miscount_t){.incarnation = head->incarnation, .rev = head->rev};
    if (++miscount->seen < SEEN_MAX)
        return SPILL_OK;
    spill_fail(error, SPILL_CORRUPT,
               "the head counts %" PRId64 " elements, but its documents have %" PRId64
               "; run `spillway verify`",
               spill_state_count(&owner->array->definition, head), elements);
    return spill_owner_name(owner, SPILL_CORRUPT, error);
}

/* Make one try with the head as it was read. */
static spill_code_t unmanage(const spill_owner_t *owner, const spill_state_t *head,
                             spill_run_t *run, miscount_t *miscount, bool *done,
                             spill_error_t *error)
{
    gathering_t gathering = {.head = head, .run = run};
    spill_run_clear(run);
    SPILL_TRY(each_page(owner, head, true, gather_page, &gathering, error));
    int64_t elements = (int64_t)run->count + head->live;
    int64_t bytes = document_bytes(owner, head, elements, spill_run_bytes(run) + head->live_bytes);
    if (elements != spill_state_count(&owner->array->definition, head))
        return count_miscount(owner, head, elements, miscount, error);
    if (bytes > SPILL_DOCUMENT_BYTES_MAX)
        return refuse_size(owner, bytes, error);
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_UNMANAGE, SPILL_HEAD);
    request.incarnation = head->incarnation;
    request.rev = head->rev;
    request.unmanage.pages = head->pages;
    request.unmanage.run = run;
    return spill_owner_step(owner, &request, done, error);
}

/* Read the head without an intent. An unmanaged array counts as absent. */
static spill_code_t read_head(const spill_owner_t *owner, spill_response_t *head,
                              spill_error_t *error)
{
    spill_code_t code = spill_read_head_without_intent(owner, NULL, head, error);
    if (code == SPILL_REFUSED)
        spill_response_clear(head);
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

/*
 * Delete the pages of the incarnation that was just undone. If other programs write to the store,
 * keep the pages of other incarnations: they may have the only copy of a replaced array.
 */
static spill_code_t free_undone(const spill_owner_t *owner, int64_t incarnation,
                                spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    bool any = false;
    if (!owner->array->store->ops->others_write)
        return spill_outlier_drop_left_over(owner, incarnation, &any, error);
    spill_code_t code = spill_outlier_find_left_over(owner, INT64_MAX, &page, error);
    if (code == SPILL_OK && page.state.present && !may_have_number(&page.state))
        code = refuse_pages(owner, error);
    else if (code == SPILL_OK && page.state.present)
        code = delete_incarnation(owner, incarnation, page.state.page, error);
    spill_response_release(&page);
    return code;
}

spill_code_t spill_unmanage(spill_owner_t *owner, int64_t *elements, spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_run_t run = {0};
    miscount_t miscount = {0};
    int tries = 0;
    bool done = false;
    *elements = 0;
    spill_code_t code = read_head(owner, &head, error);
    int64_t incarnation = head.state.incarnation;
    while (code == SPILL_OK && head.state.present && !done) {
        code = unmanage(owner, &head.state, &run, &miscount, &done, error);
        if (done)
            *elements = (int64_t)run.count + head.state.live;
        if (code == SPILL_UNKNOWN) /* the head shows whether it succeeded */
            code = SPILL_OK;
        if (code == SPILL_OK && !done)
            code = spill_owner_again(owner, &tries, error);
        if (code == SPILL_OK && !done)
            code = read_head(owner, &head, error);
    }
    if (code == SPILL_OK && done)
        code = free_undone(owner, incarnation, error);
    else if (code == SPILL_OK)
        code = spill_free_pages(owner, error);
    spill_run_release(&run);
    spill_response_release(&head);
    return code;
}

typedef struct measuring {
    int64_t elements, bytes;
} measuring_t;

static void measure_page(void *context, const spill_response_t *page)
{
    measuring_t *measuring = context;
    measuring->elements += page->state.live;
    measuring->bytes += page->state.live_bytes;
}

spill_code_t spill_unmanage_size(spill_owner_t *owner, int64_t *elements, int64_t *bytes,
                                 spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = &response.state;
    measuring_t measuring;
    miscount_t miscount = {0};
    *elements = 0;
    *bytes = 0;
    while (true) {
        SPILL_TRY(read_head(owner, &response, error));
        measuring = (measuring_t){.elements = head->live, .bytes = head->live_bytes};
        SPILL_TRY(each_page(owner, head, false, measure_page, &measuring, error));
        if (!head->present)
            return SPILL_OK;
        /* Pages also have elements below the watermark, so more than the count is no damage. */
        if (measuring.elements >= spill_state_count(&owner->array->definition, head))
            break;
        SPILL_TRY(count_miscount(owner, head, measuring.elements, &miscount, error));
    }
    *elements = spill_state_count(&owner->array->definition, head);
    *bytes = document_bytes(owner, head, measuring.elements, measuring.bytes);
    return *bytes > SPILL_DOCUMENT_BYTES_MAX ? refuse_size(owner, *bytes, error) : SPILL_OK;
}
