/*
 * Drop an owner. DROP_HEAD deletes the array; then the client deletes its pages. Pages have the
 * incarnation of their head. So a page that was left over, or is put late, never becomes a page of
 * a later owner of the same name.
 *
 * If appends go to the tail, a client appends to a page without a look at the head. So the drop
 * first closes the tail: it is sealed, and no page follows it. Each deleted page leaves a
 * tombstone, because a late CREATE_PAGE of this incarnation must be refused. A client that reads a
 * closed tail finishes the drop.
 *
 * A client that dies after DROP_HEAD leaves pages, and so does a page that is put late. The next
 * drop of that name deletes the pages of all ended incarnations, even if there is no head.
 */
#include "definition/fields.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/outlier.h"
#include "util/error.h"

/* This many absent pages in a row end the walk by page numbers. */
enum { MISSING_MAX = 1000 };

static spill_code_t drop_head(const spill_owner_t *owner, int64_t incarnation, int64_t pages,
                              bool *done, spill_error_t *error)
{
    spill_request_t drop = spill_owner_request(owner, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    drop.incarnation = incarnation;
    drop.drop_head.pages = pages;
    drop.drop_head.document_stays = owner->array->documents_stay;
    return spill_owner_step(owner, &drop, done, error);
}

static spill_code_t drop_page(const spill_owner_t *owner, int64_t incarnation, int64_t page,
                              bool *done, spill_error_t *error)
{
    spill_request_t drop = spill_owner_request(owner, SPILL_REQUEST_DROP_PAGE, page);
    drop.incarnation = incarnation;
    return spill_owner_step(owner, &drop, done, error);
}

spill_code_t spill_outlier_find_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          spill_response_t *page, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_PAGE_LEFT_OVER);
    read.incarnation = incarnation;
    read.read.want_now = true;
    return spill_owner_call(owner, &read, page, error);
}

bool spill_page_is_leased(const spill_response_t *page)
{
    return page->state.present && page->state.lease > page->now_us;
}

spill_code_t spill_outlier_read_leased(const spill_owner_t *owner, int64_t number,
                                       spill_response_t *page, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, number);
    read.read.want_now = true;
    return spill_owner_call(owner, &read, page, error);
}

/* Without other writers, no copy (full.c) exists beside a head without pages. */
spill_code_t spill_outlier_may_end(const spill_owner_t *owner, const spill_state_t *head,
                                   spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    const spill_definition_t *definition = &owner->array->definition;
    if ((head->pages == 0 && !owner->array->store->ops->others_write) ||
        !spill_schema_of(definition)->appends_to_head || !spill_schema_of(definition)->has_pages ||
        spill_schema_of(definition)->has_referenced_elements)
        return SPILL_OK;
    spill_code_t code = spill_outlier_read_leased(owner, 0, &page, error);
    if (code == SPILL_OK && spill_page_is_leased(&page))
        code = spill_owner_leased(owner, page.state.lease, error);
    spill_response_release(&page);
    return code;
}

/*
 * Delete the pages of the ended incarnations up to `incarnation`. *any: there was a page. A drop
 * deletes from the highest number down, so usually the page that is found is the highest one left;
 * one search is enough then. SPILL_CONFLICT: a lease runs.
 */
spill_code_t spill_outlier_drop_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          bool *any, spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    int tries = 0;
    int64_t before = -1;
    if (!spill_schema_of(&owner->array->definition)->has_pages)
        return SPILL_OK;
    spill_code_t code = spill_outlier_find_left_over(owner, incarnation, &page, error);
    while (code == SPILL_OK && page.state.present) {
        bool done = true, dropped = false, again = page.state.page == before;
        before = page.state.page;
        for (int64_t number = page.state.page; code == SPILL_OK && done && number >= 0; number--) {
            code = drop_page(owner, incarnation, number, &done, error);
            dropped = dropped || done;
        }
        *any = *any || dropped;
        /* Another client was faster, or put the page again. */
        if (code == SPILL_OK && (!dropped || again))
            code = spill_owner_again(owner, &tries, error);
        if (code == SPILL_OK)
            code = spill_outlier_find_left_over(owner, incarnation, &page, error);
        if (code == SPILL_OK && spill_page_is_leased(&page))
            code = spill_owner_leased(owner, page.state.lease, error);
    }
    spill_response_release(&page);
    return code;
}

/* After DROP_HEAD: delete the pages count - 1 .. from, then all others that are left. */
static spill_code_t drop_pages(const spill_owner_t *owner, int64_t incarnation, int64_t from,
                               int64_t count, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    bool any = false, done = false;
    /* The search below finds pages behind a long gap. */
    for (int missing = 0; code == SPILL_OK && count > from && missing < MISSING_MAX; count--) {
        code = drop_page(owner, incarnation, count - 1, &done, error);
        missing = done ? 0 : missing + 1;
    }
    return code == SPILL_OK ? spill_outlier_drop_left_over(owner, incarnation, &any, error) : code;
}

/* An unmanaged array (SPILL_REFUSED) counts as an absent head. */
static spill_code_t read_head(const spill_owner_t *owner, spill_response_t *head,
                              spill_error_t *error)
{
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, head, error);
    if (code == SPILL_REFUSED)
        spill_response_clear(head);
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

/*
 * There was no head: finish the drop of a dead client. Clients put pages only after they have read
 * the head. So if a read finds a page, and a later read finds no head of its incarnation, then this
 * incarnation and all earlier ones have ended.
 */
spill_code_t spill_outlier_finish_drop(const spill_owner_t *owner, bool *any, spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT, head = SPILL_RESPONSE_INIT;
    *any = false;
    if (!spill_schema_of(&owner->array->definition)->has_pages)
        return SPILL_OK;
    spill_code_t code = spill_outlier_find_left_over(owner, INT64_MAX, &page, error);
    while (code == SPILL_OK && page.state.present && !head.state.present) {
        code = read_head(owner, &head, error);
        int64_t over = head.state.present ? head.state.incarnation - 1 : page.state.incarnation;
        if (code == SPILL_OK)
            code = spill_outlier_drop_left_over(owner, over, any, error);
        if (code == SPILL_OK) /* of a later incarnation */
            code = spill_outlier_find_left_over(owner, INT64_MAX, &page, error);
    }
    spill_response_release(&page);
    spill_response_release(&head);
    return code;
}

static spill_code_t finish_drop(const spill_owner_t *owner, spill_error_t *error)
{
    bool any;
    spill_code_t code = spill_outlier_finish_drop(owner, &any, error);
    return code == SPILL_OK && !any ? spill_owner_absent(owner, error) : code;
}

spill_code_t spill_outlier_drop_closed(spill_owner_t *owner, int64_t incarnation, int64_t pages,
                                       spill_error_t *error)
{
    bool done;
    spill_tail_forget(owner);
    spill_code_t code = drop_head(owner, incarnation, pages, &done, error);
    return code == SPILL_OK ? drop_pages(owner, incarnation, 0, pages, error) : code;
}

static spill_code_t close_page(const spill_owner_t *owner, int64_t page, int64_t incarnation,
                               spill_error_t *error)
{
    spill_request_t seal = spill_owner_request(owner, SPILL_REQUEST_SEAL, page);
    seal.incarnation = incarnation;
    seal.seal.close = true;
    return spill_owner_step(owner, &seal, NULL, error);
}

/*
 * The head counts a last page that does not exist. Read the page before it, and create the last
 * page for the next try. That page is sealed, unless the head's count is damaged.
 */
static spill_code_t make_tail(spill_owner_t *owner, const spill_state_t *head,
                              spill_response_t *before, spill_error_t *error)
{
    int64_t page = head->pages - 2;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want_ops = !owner->array->store->ops->shared_window;
    spill_code_t code = spill_owner_call(owner, &read, before, error);
    if (code != SPILL_OK)
        return code;
    if (!before->state.present || before->state.incarnation != head->incarnation)
        return page >= 0 ? spill_oldest_check_tail(owner, head->incarnation, head->pages, error)
                         : SPILL_OK;
    if (before->state.sealed)
        return spill_oldest_grow(owner, page, before, error);
    spill_request_t seal = spill_owner_request(owner, SPILL_REQUEST_SEAL, page);
    seal.incarnation = head->incarnation;
    seal.rev = before->state.rev;
    return spill_owner_step(owner, &seal, NULL, error);
}

/*
 * One try with keep oldest and pages. If the tail is open, close it. If it is closed, drop the
 * rest. If it is sealed, or does not exist, create its successor or itself for the next try.
 */
static spill_code_t drop_tail_first(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                    spill_error_t *error)
{
    spill_response_t tail = SPILL_RESPONSE_INIT;
    int64_t page = head->pages - 1;
    spill_code_t code = close_page(owner, page, head->incarnation, error);
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want_ops = !owner->array->store->ops->shared_window;
    if (code == SPILL_OK)
        code = spill_owner_call(owner, &read, &tail, error);
    bool made = tail.state.present && tail.state.incarnation == head->incarnation;
    if (code == SPILL_OK && !made) {
        code = make_tail(owner, head, &tail, error);
    } else if (code == SPILL_OK && tail.state.closed) {
        code = spill_outlier_drop_closed(owner, head->incarnation, head->pages, error);
        *done = code == SPILL_OK;
    } else if (code == SPILL_OK && tail.state.sealed) {
        code = spill_oldest_grow(owner, page, &tail, error);
    }
    spill_response_release(&tail);
    return code;
}

spill_code_t spill_outlier_drop_has_begun(const spill_owner_t *owner, bool *begun,
                                          spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT, page = SPILL_RESPONSE_INIT;
    *begun = false;
    if (spill_schema_of(&owner->array->definition)->appends_to_head)
        return SPILL_OK;
    spill_code_t code = read_head(owner, &head, error);
    if (code == SPILL_OK && head.state.present && head.state.pages > 0) {
        code = spill_owner_read_state(owner, head.state.pages - 1, &page, error);
        *begun = code == SPILL_OK && page.state.present && page.state.closed &&
                 page.state.incarnation == head.state.incarnation;
    }
    spill_response_release(&head);
    spill_response_release(&page);
    return code;
}

/* An earlier incarnation, or a head that was sealed before it was read, may have left pages. */
spill_code_t spill_oldest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error)
{
    if (head->pages > 0)
        return drop_tail_first(owner, head, done, error);
    spill_code_t code = drop_head(owner, head->incarnation, head->pages, done, error);
    return code == SPILL_OK && *done ? drop_pages(owner, head->incarnation, 0, 0, error) : code;
}

spill_code_t spill_capped_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error)
{
    return drop_head(owner, head->incarnation, head->pages, done, error);
}

/* Page number `pages` may have been put and not yet cut. */
spill_code_t spill_newest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error)
{
    spill_code_t code = spill_outlier_may_end(owner, head, error);
    if (code == SPILL_OK)
        code = drop_head(owner, head->incarnation, head->pages, done, error);
    return code == SPILL_OK && *done
               ? drop_pages(owner, head->incarnation, 0, head->pages + 1, error)
               : code;
}

/* Pages of all that the journal holds may have been put. Trimmed ones are gone. */
spill_code_t spill_referenced_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                   spill_error_t *error)
{
    spill_code_t code = drop_head(owner, head->incarnation, head->pages, done, error);
    return code == SPILL_OK && *done
               ? drop_pages(owner, head->incarnation, head->watermark, spill_state_end(head), error)
               : code;
}

/* Drop the incarnation whose head was read. Another client may have begun, and died since. */
static spill_code_t drop_incarnation(spill_owner_t *owner, spill_response_t *head,
                                     spill_error_t *error)
{
    int64_t incarnation = head->state.incarnation;
    bool done = false, any = false;
    int tries = 0;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !done && head->state.present &&
           head->state.incarnation == incarnation) {
        code = spill_layout_try_drop(owner, &head->state, &done, error);
        if (code == SPILL_OK && !done)
            code = spill_owner_again(owner, &tries, error);
        if (code == SPILL_OK && !done)
            code = spill_owner_read_state(owner, SPILL_HEAD, head, error);
    }
    return code == SPILL_OK && !done ? spill_outlier_drop_left_over(owner, incarnation, &any, error)
                                     : code;
}

spill_code_t spill_layout_drop(spill_owner_t *owner, spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = read_head(owner, &head, error);
    if (code == SPILL_OK)
        code =
            head.state.present ? drop_incarnation(owner, &head, error) : finish_drop(owner, error);
    spill_response_release(&head);
    return code;
}
