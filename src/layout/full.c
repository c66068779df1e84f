/*
 * An unmanaged array in a full document. The document has no room for the bookkeeping that ADOPT
 * adds, so one update adopts the array and cuts it. The pages are written first, before there is a
 * head:
 *
 *   1. PUT_PAGE      pages 0 .. k-1: a copy of the oldest elements, with a lease, if none exist
 *   2. READ          the pages: the array must begin with their elements
 *   3. ADOPT_SPLIT   the array without those elements, before the lease ends
 *
 * While the lease runs, by the store's clock, no client replaces or deletes these pages, and none
 * ends the incarnation that step 3 creates. So, whenever the update arrives, the pages have the
 * elements that it cuts.
 *
 * The client that wrote the copy sends the update once. If the store refuses it, this copy never
 * had a head and never gets one: the client closes the pages (SEAL with close). After the lease,
 * they are deleted and copied again. If the answer is lost or the client dies, no client knows the
 * outcome. The pages are then deleted only if the array still begins with their elements.
 * docs/internals/protocol.md has the argument.
 */
#include "layout/document_limits.h"
#include "layout/reshape.h"

#include "layout/adoption.h"
#include "util/error.h"

/*
 * The incarnation of a copy lies this far in the future. The store refuses an ADOPT_SPLIT if a
 * later head, of any owner, was dropped.
 */
#define AHEAD_US ((int64_t)10 * 1000000)

/* Pages that were written before there is a head. */
typedef struct copy {
    int64_t incarnation, lease;
    int64_t pages;
    spill_run_t run;
} copy_t;

/* ---- copying --------------------------------------------------------------------------------- */

/* The number of elements, from index `at` on, that go to page `number`: at least one. */
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
        if (length > 0 && !spill_limits_fit(&limits, next, next, rendered))
            break;
        length++;
    }
    return length;
}

/* The elements of the next page. In `run` they come after the elements of the copy. */
static spill_run_t next_run(const spill_owner_t *owner, const spill_run_t *run, const copy_t *copy)
{
    spill_run_t own = *run;
    own.entries += copy->run.count;
    own.count = page_length(owner, run, copy->run.count, copy->pages, copy->lease);
    return own;
}

/* Page 0 begins the copy: the store chooses its incarnation. */
static spill_code_t put_next(const spill_owner_t *owner, const spill_run_t *own, const copy_t *copy,
                             bool *done, spill_error_t *error)
{
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, copy->pages);
    put.create = copy->pages == 0;
    put.incarnation = copy->incarnation;
    put.put_page.lease = copy->lease;
    put.put_page.first = (int64_t)copy->run.count;
    put.put_page.slots = (int64_t)own->count;
    put.put_page.run = own;
    return spill_owner_step(owner, &put, done, error);
}

/*
 * Read the page that was just written, and add its elements to the copy. The array is compared with
 * what the store has. *done: the page is as it was written.
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

/* The bytes that the document loses with the first `count` elements, which have `bytes` bytes. */
static int64_t freed(int64_t elements, int64_t count, int64_t bytes)
{
    return bytes + spill_array_framing(elements) - spill_array_framing(elements - count);
}

/*
 * Copy the oldest elements of the array in `head`, until the document would lose enough bytes.
 * Usually one page is enough. At least one element stays in the document. *done: the copy is
 * complete. If not, or after a lost answer, some of its pages may exist.
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

/* ---- adoption -------------------------------------------------------------------------------- */

/* `until`: of spill_adoption_until. */
static spill_code_t adopt_split(const spill_owner_t *owner, const copy_t *copy, int64_t until,
                                bool *done, spill_error_t *error)
{
    spill_request_t adopt = spill_owner_request(owner, SPILL_REQUEST_ADOPT_SPLIT, SPILL_HEAD);
    adopt.adopt.run_us = spill_adopt_run_us(owner->array->store, true);
    adopt.incarnation = copy->incarnation;
    adopt.adopt.until = copy->lease - owner->array->store->margin_us;
    if (until > 0 && until < adopt.adopt.until)
        adopt.adopt.until = until;
    adopt.adopt.run = &copy->run;
    adopt.adopt.slots = (int64_t)copy->run.count;
    adopt.adopt.more_pages = copy->pages - 1;
    spill_code_t code = spill_owner_step(owner, &adopt, done, error);
    if (code == SPILL_UNKNOWN)
        spill_adoption_unknown(owner->array);
    return code;
}

/*
 * Mark the copy: it never had a head and never gets one. If this step fails, other clients only
 * learn that later.
 */
static void give_up(const spill_owner_t *owner, const copy_t *copy)
{
    spill_request_t seal = spill_owner_request(owner, SPILL_REQUEST_SEAL, 0);
    seal.incarnation = copy->incarnation;
    seal.seal.close = true;
    spill_owner_step(owner, &seal, NULL, NULL);
}

/*
 * Read the unmanaged array, with `limit` elements. *there: it exists and is not empty. Otherwise it
 * was adopted or deleted.
 */
static spill_code_t read_unmanaged(const spill_owner_t *owner, int64_t limit,
                                   spill_response_t *head, bool *there, spill_error_t *error)
{
    spill_request_t read = spill_owner_unmanaged_request(owner, limit);
    read.read.want_now = true;
    spill_code_t code = spill_owner_call(owner, &read, head, error);
    *there = code == SPILL_OK && !head->state.present && head->state.live > 0;
    return code;
}

/* Each element frees at least three bytes, so these free enough for the bookkeeping. */
static int64_t elements_to_read(const spill_owner_t *owner)
{
    int64_t page = owner->array->definition.bounds.page_capacity;
    int64_t room = owner->array->store->adopt_room / 3 + 2;
    return page > room ? page : room;
}

static spill_code_t refuse_room(const spill_owner_t *owner, spill_error_t *error)
{
    spill_fail(error, SPILL_TOO_BIG,
               "its document is full: there is no room for the bookkeeping even if only the newest "
               "element stayed in it, or an older element is too large for a page");
    return spill_owner_name(owner, SPILL_TOO_BIG, error);
}

/*
 * The adoption failed, or its outcome is unknown. If the array is still unmanaged, the copy is in
 * the way until its lease ends: SPILL_CONFLICT.
 */
static spill_code_t find_adoption_outcome(const spill_owner_t *owner, const copy_t *copy,
                                          spill_response_t *head, bool *adopted,
                                          spill_error_t *error)
{
    bool there;
    spill_code_t code = read_unmanaged(owner, 0, head, &there, error);
    *adopted = code == SPILL_OK && head->state.present && copy->pages > 0 &&
               head->state.incarnation == copy->incarnation;
    return there ? spill_owner_leased(owner, copy->lease, error) : code;
}

/* Copy, then adopt. *adopted is false if the store refused, or if the outcome is unknown. */
static spill_code_t attempt(const spill_owner_t *owner, spill_response_t *head, copy_t *copy,
                            bool *adopted, spill_error_t *error)
{
    bool copied;
    int64_t until = 0;
    SPILL_TRY(spill_adoption_check(owner, error));
    spill_code_t code = put_copy(owner, head, copy, &copied, error);
    if (code == SPILL_OK && copied)
        code = spill_adoption_until(owner, spill_adopt_run_us(owner->array->store, true), true,
                                    &until, error);
    bool sent = code == SPILL_OK && copied;
    if (sent)
        code = adopt_split(owner, copy, until, adopted, error);
    bool refused = !*adopted && (code == SPILL_OK || code == SPILL_TOO_BIG);
    if ((refused || !sent) && copy->pages > 0)
        give_up(owner, copy);
    if (code == SPILL_TOO_BIG)
        return refuse_room(owner, error);
    return refused || code == SPILL_UNKNOWN
               ? find_adoption_outcome(owner, copy, head, adopted, error)
               : code;
}

spill_code_t spill_adopt_full(const spill_owner_t *owner, spill_reshaped_t *reshaped,
                              spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    copy_t copy = {0};
    bool there, adopted = false;
    spill_code_t code = read_unmanaged(owner, elements_to_read(owner), &head, &there, error);
    if (there && head.state.live == 1)
        code = refuse_room(owner, error);
    else if (there)
        code = attempt(owner, &head, &copy, &adopted, error);
    if (adopted) {
        reshaped->adopted = reshaped->at_once = true;
        spill_reshaped_add(&copy.run, copy.run.count, copy.pages, spill_run_bytes(&copy.run),
                           reshaped);
    }
    spill_response_release(&head);
    spill_run_release(&copy.run);
    return code;
}
