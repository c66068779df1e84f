/*
 * An array of others in a document that is full: there is no room for the bookkeeping that TAKE
 * adds, so it is taken over and cut in one update. The pages come first, when there is no head yet:
 *
 *   1. put    pages 0 .. k-1: a copy of its oldest elements, with a lease   only where none are
 *   2. read   them: whoever put them, they are what the array is to begin with
 *   3. take   the array over, without those elements        until the lease less a margin
 *
 * While the lease runs nobody replaces or deletes these pages, by the store's own clock, and nobody
 * ends the incarnation that step 3 makes. So whenever that update is carried out, by whomever it
 * was sent, the pages hold what it takes off the array. Where it is refused the array does not
 * begin with these elements any more: the pages are given up (SEAL with close), and once the lease
 * has run out they are deleted, and copied anew. docs/protocol.md has the argument.
 */
#include "layout/lay_out.h"

#include "bson/value_hash.h"
#include "util/error.h"

/* Pages that were copied before there is a head. */
typedef struct copy {
    spill_state_t first; /* page 0; without `gone`, which it has not */
    int64_t now_us;
    int64_t pages; /* 0: there is none */
    spill_run_t run;
} copy_t;

/* ---- reading what somebody has copied -------------------------------------------------------- */

static void add_elements(const spill_response_t *page, spill_run_t *run)
{
    for (size_t i = 0; i < page->run.count; i++) {
        spill_element_t element = spill_run_element(&page->run, i);
        spill_run_add(run, element.seq, &element.value);
    }
}

/* Page 0, and those that follow it without a hole. */
static spill_code_t read_copy(const spill_owner_t *owner, copy_t *copy, spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    bool more = true;
    copy->pages = 0;
    spill_run_clear(&copy->run);
    while (code == SPILL_OK && more) {
        spill_request_t read = spill_owner_whole_request(owner, copy->pages);
        read.want_now = true;
        code = spill_owner_call(owner, &read, &page, error);
        more =
            code == SPILL_OK && page.state.present &&
            (copy->pages == 0 ||
             (page.state.epoch == copy->first.epoch && page.state.rev == page.state.src &&
              page.state.src == copy->first.src && page.state.first == (int64_t)copy->run.count));
        if (!more)
            break;
        if (copy->pages++ == 0) {
            copy->first = page.state;
            copy->first.gone = (spill_seqs_t){0};
            copy->first.top = (spill_top_t){0};
            copy->now_us = page.now_us;
        }
        add_elements(&page, &copy->run);
    }
    spill_response_release(&page);
    return code;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* How many elements from place `at` on go to page `number`: at least one. */
static size_t page_length(const spill_owner_t *owner, const spill_run_t *run, size_t at,
                          int64_t number, int64_t lease)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_page_limits(&definition->bounds);
    spill_state_t page = {.first = (int64_t)at, .page = number, .lease = lease};
    size_t length = 0;
    int64_t bytes = 0;
    while (at + length < run->count) {
        int64_t next = (int64_t)length + 1;
        bytes += run->entries[at + length].size_bytes;
        int64_t rendered =
            spill_state_document_bytes(definition, owner->value, false, &page, next, bytes);
        if (length > 0 && !spill_limits_allow(&limits, next, next, rendered))
            break;
        length++;
    }
    return length;
}

/* The next page of the copy, from the elements of `run`. Page 0 makes it: the store dates it. */
static spill_code_t put_next(const spill_owner_t *owner, const spill_run_t *run, copy_t *copy,
                             size_t *at, bool *done, spill_error_t *error)
{
    spill_run_t own = *run;
    own.entries += *at;
    own.count = page_length(owner, run, *at, copy->pages, copy->first.lease);
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, copy->pages);
    put.create = copy->pages == 0;
    put.epoch = copy->first.epoch;
    put.lease = copy->first.lease;
    put.first = (int64_t)*at;
    put.slots = (int64_t)own.count;
    put.bytes = spill_run_bytes(&own);
    put.run = &own;
    *at += own.count;
    copy->pages++;
    return spill_owner_step(owner, &put, done, error);
}

/* Enough becomes free without its elements? Mostly with one page. */
static bool is_enough(const spill_owner_t *owner, const copy_t *copy)
{
    return copy->pages > 0 && spill_run_bytes(&copy->run) >= owner->array->store->take_room;
}

/*
 * Begin a copy of the array that `head` shows, or make it longer. One element at least stays in the
 * document. *more: something was put, or may have been.
 */
static spill_code_t put_copy(const spill_owner_t *owner, const spill_response_t *head, copy_t *copy,
                             bool *more, spill_error_t *error)
{
    const spill_store_t *store = owner->array->store;
    spill_run_t run = head->run;
    size_t at = copy->run.count, first = at;
    int64_t free = spill_run_bytes(&copy->run);
    if ((int64_t)run.count == head->state.live && run.count > 0)
        run.count--;
    *more = at < run.count;
    if (copy->pages == 0)
        copy->first = (spill_state_t){
            .epoch = spill_owner_now(owner),
            .lease = head->now_us + store->take_us + store->margin_us,
        };
    spill_code_t code = SPILL_OK;
    bool done = true, begins = copy->pages == 0;
    while (code == SPILL_OK && done && at < run.count && free < store->take_room) {
        code = put_next(owner, &run, copy, &at, &done, error);
        for (; first < at; first++)
            free += run.entries[first].size_bytes;
        if (begins)
            break; /* the others get the epoch that the store has given it */
    }
    return code == SPILL_UNKNOWN ? SPILL_OK : code; /* what is there is read next */
}

/* ---- taking over ----------------------------------------------------------------------------- */

static spill_code_t take_cut(const spill_owner_t *owner, const copy_t *copy, bool *done,
                             spill_error_t *error)
{
    spill_request_t take = spill_owner_request(owner, SPILL_REQUEST_TAKE_CUT, SPILL_HEAD);
    take.epoch = copy->first.epoch;
    take.until = copy->first.lease - owner->array->store->margin_us;
    take.run = &copy->run;
    take.slots = (int64_t)copy->run.count;
    take.more_pages = copy->pages - 1;
    return spill_owner_step(owner, &take, done, error);
}

/* It was refused, and there is no head: unless it was sent before, none will be made of this copy.
 */
static spill_code_t give_up(const spill_owner_t *owner, const copy_t *copy, spill_error_t *error)
{
    spill_request_t seal = spill_owner_request(owner, SPILL_REQUEST_SEAL, 0);
    seal.epoch = copy->first.epoch;
    seal.close = true;
    spill_code_t code = spill_owner_step(owner, &seal, NULL, error);
    return code == SPILL_OK || code == SPILL_UNKNOWN
               ? spill_owner_leased(owner, &copy->first, error)
               : code;
}

static void note(const copy_t *copy, spill_laid_out_t *laid_out)
{
    for (size_t i = 0; i < copy->run.count; i++) {
        spill_element_t element = spill_run_element(&copy->run, i);
        spill_value_add_hash(&element.value, &laid_out->hash);
    }
    laid_out->taken = true;
    laid_out->at_once = true;
    laid_out->elements += (int64_t)copy->run.count;
    laid_out->pages += copy->pages;
    laid_out->bytes += spill_run_bytes(&copy->run);
}

/*
 * The array of others, with `limit` elements; *there: there is one that is not empty. Else it is a
 * head by now, or nothing.
 */
static spill_code_t read_plain(const spill_owner_t *owner, int64_t limit, spill_response_t *head,
                               bool *there, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.plain = true;
    read.want = limit > 0 ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    read.limit = limit;
    read.want_now = true;
    spill_code_t code = spill_owner_call(owner, &read, head, error);
    *there = code == SPILL_OK && !head->state.present && head->state.live > 0;
    return code;
}

/* Is it as it was put, and for an update that may be sent now? */
static bool is_usable(const spill_owner_t *owner, const copy_t *copy)
{
    return copy->first.lease > 0 && copy->first.rev == copy->first.src && copy->first.first == 0 &&
           copy->now_us < copy->first.lease - owner->array->store->margin_us;
}

/*
 * One try, by the copy that was read. *settled: the array was taken over, by us (*taken) or by
 * another, or there is none.
 */
static spill_code_t try_take(const spill_owner_t *owner, copy_t *copy, spill_response_t *head,
                             bool *settled, bool *taken, spill_error_t *error)
{
    bool usable = is_usable(owner, copy), enough = is_enough(owner, copy), more = false, there;
    /* An element and what frames it have four bytes at least. */
    int64_t page = owner->array->definition.bounds.page_capacity;
    int64_t room = owner->array->store->take_room / 4;
    spill_code_t code = SPILL_OK;
    if (usable && enough)
        code = take_cut(owner, copy, taken, error);
    *settled = *taken;
    if (code != SPILL_OK || *taken)
        return code;
    code = read_plain(owner, enough ? 0 : page > room ? page : room, head, &there, error);
    *settled = code == SPILL_OK && !there;
    if (code != SPILL_OK || !there)
        return code;
    if (copy->pages > 0 && !usable)
        return spill_owner_leased(owner, &copy->first, error);
    if (enough)
        return give_up(owner, copy, error);
    code = put_copy(owner, head, copy, &more, error);
    if (code == SPILL_OK && !more && copy->pages == 0)
        return spill_owner_name(
            owner,
            spill_fail(error, SPILL_TOO_BIG,
                       "its document has no room for the bookkeeping, and one element"),
            error);
    return code == SPILL_OK && !more ? give_up(owner, copy, error) : code;
}

spill_code_t spill_take_full(const spill_owner_t *owner, spill_laid_out_t *laid_out,
                             spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    copy_t copy = {0};
    bool settled = false, taken = false;
    int tries = 0;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !settled) {
        code = read_copy(owner, &copy, error);
        if (code == SPILL_OK)
            code = try_take(owner, &copy, &head, &settled, &taken, error);
        if (code == SPILL_UNKNOWN) /* what was done is seen next */
            code = SPILL_OK;
        if (code == SPILL_OK && !settled)
            code = spill_owner_again(owner, &tries, error);
    }
    if (taken)
        note(&copy, laid_out);
    spill_response_release(&head);
    spill_run_release(&copy.run);
    return code;
}
