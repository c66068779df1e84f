/*
 * An array of others in a document that is full: there is no room for the bookkeeping that ADOPT
 * adds, so it is taken over and cut in one update. The pages come first, when there is no head yet:
 *
 *   1. put    pages 0 .. k-1: a copy of its oldest elements, with a lease   only where none are
 *   2. read   them: they are what the array is to begin with
 *   3. take   the array over, without those elements        until the lease less a margin
 *
 * While the lease runs nobody replaces or deletes these pages, by the store's own clock, and nobody
 * ends the incarnation that step 3 makes. So whenever that update is carried out the pages hold
 * what it takes off the array. It is sent once, by who has put the copy. Where it is refused there
 * never was a head of this copy, and there will be none: the pages are given up (SEAL with close),
 * and once the lease has run out they are deleted, and copied anew. Where the answer is lost, or
 * the client dies, that is not known: then they go only if the array still begins with them.
 * docs/internals/protocol.md has the argument.
 */
#include "layout/reshape.h"

#include "util/error.h"

/*
 * So far ahead a copy is dated, for an ADOPT_SPLIT is refused where a head that was made after it
 * was dropped, of whatever owner.
 */
#define AHEAD_US ((int64_t)10 * 1000000)

/* Pages that were put before there is a head. */
typedef struct copy {
    int64_t incarnation, lease;
    int64_t pages;
    spill_run_t run;
} copy_t;

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

/* The elements of the next page, from those of `run` behind the copy. */
static spill_run_t next_run(const spill_owner_t *owner, const spill_run_t *run, const copy_t *copy)
{
    spill_run_t own = *run;
    own.entries += copy->run.count;
    own.count = page_length(owner, run, copy->run.count, copy->pages, copy->lease);
    return own;
}

/* Page 0 makes the copy: the store dates it. */
static spill_code_t put_next(const spill_owner_t *owner, const spill_run_t *own, const copy_t *copy,
                             bool *done, spill_error_t *error)
{
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, copy->pages);
    put.create = copy->pages == 0;
    put.incarnation = copy->incarnation;
    put.lease = copy->lease;
    put.first = (int64_t)copy->run.count;
    put.slots = (int64_t)own->count;
    put.bytes = spill_run_bytes(own);
    put.run = own;
    return spill_owner_step(owner, &put, done, error);
}

/*
 * The page that was just put, to the copy. *done: it is there, and as it was put; what the array is
 * compared with is what the store has.
 */
static spill_code_t read_next(const spill_owner_t *owner, copy_t *copy, bool *done,
                              spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_read_whole(owner, copy->pages, &page, error);
    const spill_state_t *state = &page.state;
    *done = code == SPILL_OK && state->present && state->lease == copy->lease &&
            state->rev == state->source_rev && state->first == (int64_t)copy->run.count &&
            (copy->pages == 0 || state->incarnation == copy->incarnation);
    if (*done) {
        copy->incarnation = state->incarnation;
        copy->pages++;
        spill_run_add_from(&page.run, 0, &copy->run);
    }
    spill_response_release(&page);
    return code;
}

/* What becomes free without the first `count` of the array's elements, of so many bytes. */
static int64_t freed(int64_t elements, int64_t count, int64_t bytes)
{
    return bytes + spill_array_framing(elements) - spill_array_framing(elements - count);
}

/*
 * Copy the oldest elements of the array that `head` shows, until enough becomes free; mostly that
 * is one page. One element at least stays in the document. *done: the copy is there. Else, and
 * where an answer was lost, there are perhaps pages of it.
 */
static spill_code_t put_copy(const spill_owner_t *owner, const spill_response_t *head, copy_t *copy,
                             bool *done, spill_error_t *error)
{
    const spill_store_t *store = owner->array->store;
    int64_t elements = head->state.live, now_us = spill_owner_now(owner);
    spill_run_t run = head->run;
    if ((int64_t)run.count == elements)
        run.count--;
    copy->incarnation = (now_us > head->now_us ? now_us : head->now_us) + AHEAD_US;
    copy->lease = head->now_us + store->adopt_us + store->margin_us;
    spill_code_t code = SPILL_OK;
    *done = true;
    while (code == SPILL_OK && *done && copy->run.count < run.count &&
           freed(elements, (int64_t)copy->run.count, spill_run_bytes(&copy->run)) <
               store->adopt_room) {
        spill_run_t own = next_run(owner, &run, copy);
        code = put_next(owner, &own, copy, done, error);
        if (code == SPILL_OK && *done)
            code = read_next(owner, copy, done, error);
    }
    return code;
}

/* ---- taking over ----------------------------------------------------------------------------- */

static spill_code_t adopt_split(const spill_owner_t *owner, const copy_t *copy, bool *done,
                                spill_error_t *error)
{
    spill_request_t take = spill_owner_request(owner, SPILL_REQUEST_ADOPT_SPLIT, SPILL_HEAD);
    take.incarnation = copy->incarnation;
    take.until = copy->lease - owner->array->store->margin_us;
    take.run = &copy->run;
    take.slots = (int64_t)copy->run.count;
    take.more_pages = copy->pages - 1;
    return spill_owner_step(owner, &take, done, error);
}

/*
 * There never was a head of this copy, and nobody will make one. Where this fails, it only takes
 * longer until that is known.
 */
static void give_up(const spill_owner_t *owner, const copy_t *copy)
{
    spill_request_t seal = spill_owner_request(owner, SPILL_REQUEST_SEAL, 0);
    seal.incarnation = copy->incarnation;
    seal.close = true;
    spill_owner_step(owner, &seal, NULL, NULL);
}

/*
 * The array of others, with `limit` elements; *there: there is one that is not empty. Else it is a
 * head by now, or nothing.
 */
static spill_code_t read_unmanaged(const spill_owner_t *owner, int64_t limit,
                                   spill_response_t *head, bool *there, spill_error_t *error)
{
    spill_request_t read = spill_owner_unmanaged_request(owner, limit);
    read.want_now = true;
    spill_code_t code = spill_owner_call(owner, &read, head, error);
    *there = code == SPILL_OK && !head->state.present && head->state.live > 0;
    return code;
}

/* So many elements make enough room, however small they are: each frees three bytes at least. */
static int64_t elements_to_read(const spill_owner_t *owner)
{
    int64_t page = owner->array->definition.bounds.page_capacity;
    int64_t room = owner->array->store->adopt_room / 3 + 2;
    return page > room ? page : room;
}

static spill_code_t refuse_room(const spill_owner_t *owner, spill_error_t *error)
{
    spill_fail(error, SPILL_TOO_BIG,
               "its document is full: there is no room for the bookkeeping even if all of its "
               "elements but the newest were in pages, or an older element is too large for one");
    return spill_owner_name(owner, SPILL_TOO_BIG, error);
}

/*
 * Nothing was done, or perhaps nothing: is the array still of others? Then what was put of the copy
 * is in the way until its lease is over.
 */
static spill_code_t settle(const spill_owner_t *owner, const copy_t *copy, spill_response_t *head,
                           bool *taken, spill_error_t *error)
{
    bool there;
    spill_code_t code = read_unmanaged(owner, 0, head, &there, error);
    *taken = code == SPILL_OK && head->state.present && copy->pages > 0 &&
             head->state.incarnation == copy->incarnation;
    return there ? spill_owner_leased(owner, copy->lease, error) : code;
}

/* Copy, and take over. *taken is false where that was refused, or is not known. */
static spill_code_t attempt(const spill_owner_t *owner, spill_response_t *head, copy_t *copy,
                            bool *taken, spill_error_t *error)
{
    bool copied;
    spill_code_t code = put_copy(owner, head, copy, &copied, error);
    if (code == SPILL_OK && copied)
        code = adopt_split(owner, copy, taken, error);
    bool refused = !*taken && (code == SPILL_OK || code == SPILL_TOO_BIG);
    if (refused && copy->pages > 0)
        give_up(owner, copy);
    if (code == SPILL_TOO_BIG)
        return refuse_room(owner, error);
    return refused || code == SPILL_UNKNOWN ? settle(owner, copy, head, taken, error) : code;
}

spill_code_t spill_adopt_full(const spill_owner_t *owner, spill_reshaped_t *reshaped,
                              spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    copy_t copy = {0};
    bool there, taken = false;
    spill_code_t code = read_unmanaged(owner, elements_to_read(owner), &head, &there, error);
    if (there && head.state.live == 1)
        code = refuse_room(owner, error);
    else if (there)
        code = attempt(owner, &head, &copy, &taken, error);
    if (taken) {
        reshaped->taken = reshaped->at_once = true;
        spill_reshaped_add(&copy.run, copy.run.count, copy.pages, spill_run_bytes(&copy.run),
                           reshaped);
    }
    spill_response_release(&head);
    spill_run_release(&copy.run);
    return code;
}
