/*
 * Intents: finish the removal or the edit that the head's intent names. The client that prepared it
 * does so, or, if that client died, the next one that needs the head's rev. change.c and
 * referenced_change.c explain the steps.
 */
#include "layout/referenced.h"

#include "util/error.h"

/* ---- a removal ------------------------------------------------------------------------------- */

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

/* ---- an edit of a referenced element --------------------------------------------------------- */

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

/* ---- both ------------------------------------------------------------------------------------ */

static spill_code_t finish(const spill_owner_t *owner, const spill_state_t *head,
                           spill_error_t *error)
{
    return head->intent_edit
               ? finish_abandoned_edit(owner, head, error)
               : spill_intent_finish_removal(owner, head->incarnation, head->intent_seq,
                                             head->intent_page, head->rev, error);
}

spill_code_t spill_outlier_settled_head(const spill_owner_t *owner, const spill_value_t *id,
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
