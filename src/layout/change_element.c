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
 * The client that prepared the change finishes its intent. If that client died, the next one that
 * needs the head's rev does so. referenced_change.c explains the changes of referenced elements.
 */
#include "layout/change_element.h"
#include "definition/schema.h"
#include "layout/document_limits.h"
#include "layout/locate.h"
#include "layout/referenced.h"
#include "store/transition.h"
#include "util/error.h"

#include <assert.h>
#include <inttypes.h>

/* ---- finishing a removal --------------------------------------------------------------------- */

static spill_request_t complete_request(const spill_owner_t *owner, int64_t seq, int64_t page,
                                        int64_t rev)
{
    spill_request_t completion = spill_owner_request(owner, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    completion.rev = rev;
    completion.change.seq = seq;
    completion.change.intent_page = page;
    return completion;
}

spill_code_t spill_intent_finish_removal(const spill_owner_t *owner, int64_t incarnation,
                                         int64_t seq, int64_t page, int64_t rev,
                                         spill_error_t *error)
{
    spill_request_t deletion = spill_owner_request(owner, SPILL_REQUEST_DELETE, page);
    deletion.incarnation = incarnation;
    deletion.change.seq = seq;
    SPILL_TRY(spill_owner_step(owner, &deletion, NULL, error));
    spill_request_t completion = complete_request(owner, seq, page, rev);
    return spill_owner_step(owner, &completion, NULL, error);
}

/* ---- finishing an edit of a referenced element ----------------------------------------------- */

/* Complete an edit. `there` holds what the document holds. */
static spill_code_t complete_edit(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t seq, int64_t rev, const spill_response_t *there,
                                  spill_error_t *error)
{
    bool done;
    spill_element_t element = spill_run_element(&there->run, 0);
    spill_request_t completion = complete_request(owner, seq, seq, rev);
    completion.change.sum_added = spill_referenced_value(owner, there);
    completion.change.element = &element.value;
    return spill_referenced_step(owner, head, &completion, &done, error);
}

/* Put an element with the source_rev of an intent. `there` becomes what the document holds. */
static spill_code_t put_edit(const spill_owner_t *owner, int64_t incarnation, int64_t seq,
                             int64_t source_rev, const spill_value_t *element,
                             spill_response_t *there, spill_error_t *error)
{
    SPILL_SCOPED(spill_run_release) spill_run_t run = {0};
    spill_run_add(&run, seq, element);
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, seq);
    put.incarnation = incarnation;
    put.put_page.source_rev = source_rev;
    put.put_page.first = seq;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    put.put_page.replaces = true;
    SPILL_TRY(spill_owner_step(owner, &put, NULL, error));
    return spill_referenced_read_with(owner, seq, seq, there, error);
}

spill_code_t spill_intent_finish_edit(const spill_owner_t *owner, const spill_state_t *head,
                                      int64_t seq, int64_t source_rev, int64_t rev,
                                      const spill_value_t *element, spill_response_t *there,
                                      spill_error_t *error)
{
    SPILL_TRY(put_edit(owner, head->incarnation, seq, source_rev, element, there, error));
    if (!spill_referenced_has(there, seq) || there->state.source_rev < source_rev)
        return SPILL_OK;
    return complete_edit(owner, head, seq, rev, there, error);
}

/* Make the edit of another client, or undo it: its new element is known only if it was put. */
static spill_code_t finish_abandoned_edit(const spill_owner_t *owner, const spill_state_t *head,
                                          spill_error_t *error)
{
    int64_t seq = head->intent_seq;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t there = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_referenced_read_with(owner, seq, seq, &page, error));
    if (!spill_referenced_has(&page, seq) || page.state.incarnation != head->incarnation)
        return SPILL_OK;
    if (page.state.source_rev >= head->intent_source_rev)
        return complete_edit(owner, head, seq, head->rev, &page, error);
    spill_element_t old = spill_run_element(&page.run, 0);
    return spill_intent_finish_edit(owner, head, seq, head->intent_source_rev, head->rev,
                                    &old.value, &there, error);
}

/* ---- finishing an intent --------------------------------------------------------------------- */

static spill_code_t finish(const spill_owner_t *owner, const spill_state_t *head,
                           spill_error_t *error)
{
    return head->intent_edit
               ? finish_abandoned_edit(owner, head, error)
               : spill_intent_finish_removal(owner, head->incarnation, head->intent_seq,
                                             head->intent_page, head->rev, error);
}

spill_code_t spill_read_head_without_intent(const spill_owner_t *owner, const spill_value_t *id,
                                            spill_response_t *head, spill_error_t *error)
{
    int tries = 0;
    while (true) {
        SPILL_TRY(spill_outlier_read_head(owner, id, head, error));
        if (!head->state.present || !head->state.intent)
            return SPILL_OK;
        /* Each step is guarded: whether a lost one was applied shows when the head is read again.
         */
        spill_code_t code = finish(owner, &head->state, error);
        if (code != SPILL_OK && code != SPILL_UNKNOWN)
            return code;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}

/* ---- edit and remove ------------------------------------------------------------------------- */

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
        SPILL_TRY(spill_read_head_without_intent(owner, which->id, &head, error));
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
