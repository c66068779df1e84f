/*
 * Edit and remove. A step changes the one document that holds the element, at the rev that was
 * read. A removal in a page is first counted in the head, as an intent, so the total is always
 * right:
 *
 *   PREPARE   head   removed + 1, once; stores which number in which page
 *   DELETE    page   deletes the element and adds its number to `deleted`; a second time has no
 *                    effect
 *   COMPLETE  head   clears the intent
 *
 * A client that finds an intent finishes it (intent.c) before it begins anything that needs the
 * head's rev.
 */
#include "definition/schema.h"
#include "layout/outlier.h"
#include "layout/referenced.h"
#include "store/transition.h"
#include "util/error.h"

#include <assert.h>
#include <inttypes.h>

static bool holds(const spill_state_t *state, int64_t seq)
{
    return state->present && seq >= state->first && seq < spill_state_end(state) &&
           !spill_seqs_contains(&state->deleted, seq);
}

/*
 * Find the document that holds the element, after a read of the head. *state is the head's or the
 * page's. Look up an id again in each try: by then another element may have it.
 */
static spill_code_t find_document(const spill_owner_t *owner, spill_which_t *which,
                                  const spill_response_t *head, spill_response_t *page,
                                  int64_t *where, const spill_state_t **state, spill_error_t *error)
{
    if (!head->state.present || (!which->id && which->seq < head->state.watermark))
        return spill_outlier_absent_element(owner, which, error);
    if (which->id)
        SPILL_TRY(spill_outlier_find_id(owner, head, which, page, where, error));
    else
        SPILL_TRY(spill_outlier_locate(owner, &head->state, which->seq, SPILL_WANT_NONE, 0, page,
                                       where, error));
    *state = *where == SPILL_HEAD ? &head->state : &page->state;
    if (*where == SPILL_NO_DOCUMENT || !holds(*state, which->seq))
        return spill_outlier_absent_element(owner, which, error);
    return SPILL_OK;
}

static spill_code_t check_fits(const spill_owner_t *owner, int64_t where,
                               const spill_limits_t *limits, const spill_state_t *state,
                               const spill_value_t *element, spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    bool head = where == SPILL_HEAD;
    int64_t size = element->size_bytes;
    int64_t alone = spill_state_document_bytes(definition, owner->value, head, state, 1, size);
    if (alone > SPILL_DOCUMENT_BYTES_MAX || (state->live > 1 && alone > limits->bytes_max))
        return spill_fail(error, SPILL_TOO_BIG,
                          "an element of %" PRId64 " bytes does not fit its document, which holds "
                          "%" PRId64 " elements within %" PRId64 " bytes",
                          size, state->live, limits->bytes_max);
    return SPILL_OK;
}

/*
 * The edit was refused. *full: there is no room beside the other elements of the document, as it is
 * now. Else it had changed: a trim may have emptied it, a late copy may have put it back.
 */
static spill_code_t find_full(const spill_owner_t *owner, const spill_request_t *edit, bool *full,
                              spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t now = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, edit->page);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.seq = edit->change.seq;
    read.read.limit = 1;
    SPILL_TRY(spill_owner_call(owner, &read, &now, error));
    bool same = now.state.rev == edit->rev && holds(&now.state, edit->change.seq) &&
                now.run.count == 1 && now.run.entries[0].seq == edit->change.seq;
    *full = same && !spill_edit_has_room(edit, &now.state, now.run.entries[0].size_bytes);
    return SPILL_OK;
}

/* One try at an edit. *done: it was made. */
static spill_code_t try_edit(const spill_owner_t *owner, spill_which_t *which,
                             const spill_value_t *element, bool *done, bool *full,
                             spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    int64_t where = SPILL_NO_DOCUMENT;
    const spill_state_t *state = NULL;
    SPILL_TRY(spill_outlier_read_head(owner, which->id, &head, error));
    SPILL_TRY(find_document(owner, which, &head, &page, &where, &state, error));
    assert(state != NULL);
    const spill_definition_t *definition = &owner->array->definition;
    spill_request_t edit = spill_owner_request(owner, SPILL_REQUEST_EDIT, where);
    edit.limits = spill_document_limits(definition, &definition->bounds, where == SPILL_HEAD);
    edit.incarnation = state->incarnation;
    edit.rev = state->rev;
    edit.change.seq = which->seq;
    edit.change.element = element;
    SPILL_TRY(check_fits(owner, where, &edit.limits, state, element, error));
    SPILL_TRY(spill_owner_step(owner, &edit, done, error));
    if (!*done)
        return find_full(owner, &edit, full, error);
    /* The page's rev does not show that a trim has deleted the page, and a late write restored it.
     */
    return where == SPILL_HEAD
               ? SPILL_OK
               : spill_owner_still_has(owner, &head.state, which->seq, &page, done, error);
}

spill_code_t spill_documents_edit(spill_owner_t *owner, spill_which_t *which,
                                  const spill_value_t *element, spill_error_t *error)
{
    int tries = 0;
    while (true) {
        bool done = false;
        bool full = false;
        SPILL_TRY(try_edit(owner, which, element, &done, &full, error));
        if (done)
            return SPILL_OK;
        if (full)
            return spill_fail(error, SPILL_TOO_BIG,
                              "the new element %" PRId64 " of %u bytes does not fit beside the "
                              "others in its document",
                              which->seq, element->size_bytes);
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}

static spill_code_t remove_in_head(const spill_owner_t *owner, int64_t seq,
                                   const spill_state_t *head, bool *done, spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    request.rev = head->rev;
    request.change.seq = seq;
    return spill_owner_step(owner, &request, done, error);
}

static spill_code_t remove_in_page(const spill_owner_t *owner, int64_t seq, int64_t page,
                                   const spill_state_t *head, bool *done, spill_error_t *error)
{
    spill_request_t prepare = spill_owner_request(owner, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = head->rev;
    prepare.change.seq = seq;
    prepare.change.intent_page = page;
    SPILL_TRY(spill_owner_step(owner, &prepare, done, error));
    if (!*done)
        return SPILL_OK;
    /* The removal is decided: if this client dies, the next one finishes it. */
    return spill_intent_finish_removal(owner, head->incarnation, seq, page, head->rev + 1, error);
}

spill_code_t spill_documents_remove(spill_owner_t *owner, spill_which_t *which,
                                    spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    bool done = false;
    int tries = 0;
    while (true) {
        int64_t where = SPILL_NO_DOCUMENT;
        const spill_state_t *state = NULL;
        SPILL_TRY(spill_outlier_settled_head(owner, which->id, &head, error));
        SPILL_TRY(find_document(owner, which, &head, &page, &where, &state, error));
        if (where == SPILL_HEAD)
            SPILL_TRY(remove_in_head(owner, which->seq, &head.state, &done, error));
        else
            SPILL_TRY(remove_in_page(owner, which->seq, where, &head.state, &done, error));
        if (done)
            return SPILL_OK;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}
