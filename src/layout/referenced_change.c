/*
 * Edit and remove of referenced elements. The update of the head also changes the head's sum.
 * The client reads the values after the head. They stay right as long as the head's rev does,
 * because every change of an element raises it.
 *
 * A removal in a document works as in change_element.c. DELETE leaves a document without the
 * element. An edit in a document:
 *
 *   PREPARE   head      adds the new element to the sum; the intent has a source_rev
 *   PUT_PAGE  document  writes the new element with that source_rev
 *   COMPLETE  head      corrects the sum by what the document now holds
 *
 * A client that finds the intent of another client does not know the new element. It writes the old
 * one with the same source_rev. The store accepts the first of the two and refuses the other.
 */
#include "layout/change_element.h"
#include "layout/document_limits.h"
#include "layout/locate.h"
#include "layout/referenced.h"

#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>

static spill_code_t fail_deleted(const spill_owner_t *owner, int64_t seq, spill_error_t *error)
{
    spill_fail(error, SPILL_NOT_FOUND, "there is no element %" PRId64, seq);
    return spill_owner_name(owner, SPILL_NOT_FOUND, error);
}

/* Where an element was found: the head without an intent, and the document, which may be the head.
 */
typedef struct place {
    spill_response_t head;
    spill_response_t page;
    const spill_response_t *document;
    int64_t number; /* SPILL_HEAD, or seq */
} place_t;

static void release_place(place_t *place)
{
    spill_response_release(&place->head);
    spill_response_release(&place->page);
}

/* Find the element with an id, and its number. */
static spill_code_t find_by_id(const spill_owner_t *owner, spill_which_t *which, place_t *place,
                               spill_error_t *error)
{
    SPILL_TRY(spill_read_head_without_intent(owner, which->id, &place->head, error));
    if (!place->head.state.present)
        return spill_outlier_absent_element(owner, which, error);
    SPILL_TRY(
        spill_outlier_find_id(owner, &place->head, which, &place->page, &place->number, error));
    place->document = place->number == SPILL_HEAD ? &place->head : &place->page;
    return SPILL_OK;
}

/*
 * Read the head, with element `seq` if it holds that, and complete intents until it has none. An
 * element in removal still has its document, and must not enter the top by a refill.
 */
static spill_code_t read_head_without_intent(const spill_owner_t *owner, int64_t seq,
                                             place_t *place, spill_error_t *error)
{
    int tries = 0;
    while (true) {
        SPILL_TRY(spill_referenced_read_with(owner, SPILL_HEAD, seq, &place->head, error));
        if (!place->head.state.present || !place->head.state.intent)
            return SPILL_OK;
        SPILL_TRY(spill_read_head_without_intent(owner, NULL, &place->head, error));
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}

/* SPILL_NOT_FOUND if the element was deleted. */
static spill_code_t find(const spill_owner_t *owner, spill_which_t *which, place_t *place,
                         spill_error_t *error)
{
    int64_t seq = which->seq;
    if (which->id)
        return find_by_id(owner, which, place, error);
    SPILL_TRY(read_head_without_intent(owner, seq, place, error));
    const spill_state_t *head = &place->head.state;
    if (!head->present || seq < head->watermark || seq >= spill_state_end(head))
        return fail_deleted(owner, seq, error);
    place->number = seq >= head->first ? SPILL_HEAD : seq;
    place->document = seq >= head->first ? &place->head : &place->page;
    if (place->number != SPILL_HEAD)
        SPILL_TRY(spill_referenced_read_with(owner, seq, seq, &place->page, error));
    if (!spill_referenced_has(place->document, seq) ||
        place->document->state.incarnation != head->incarnation)
        return fail_deleted(owner, seq, error);
    return SPILL_OK;
}

/* ---- edit ------------------------------------------------------------------------------------ */

static spill_code_t fail_size(int64_t seq, const spill_value_t *element, spill_error_t *error)
{
    return spill_fail(error, SPILL_TOO_BIG,
                      "the new element %" PRId64 " of %u bytes does not fit its document", seq,
                      element->size_bytes);
}

static spill_code_t edit_in_journal(const spill_owner_t *owner, int64_t seq,
                                    const spill_value_t *element, const place_t *place, bool *done,
                                    spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    const spill_state_t *head = &place->head.state;
    spill_request_t edit = spill_owner_request(owner, SPILL_REQUEST_EDIT, SPILL_HEAD);
    edit.limits = spill_head_limits(definition, &definition->bounds);
    edit.incarnation = head->incarnation;
    edit.rev = head->rev;
    edit.change.seq = seq;
    edit.change.element = element;
    edit.change.sum_removed = spill_referenced_value(owner, &place->head);
    edit.change.sum_added = spill_sum_of(definition, element);
    SPILL_TRY(spill_referenced_step(owner, head, &edit, done, error));
    if (*done)
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t after = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &after, error));
    /* If the store refused and no client changed the head, there is no room. */
    return after.state.present && after.state.rev == head->rev ? fail_size(seq, element, error)
                                                               : SPILL_OK;
}

/* SPILL_CORRUPT if the head, which is read after the document, has not had the document's rev. */
static spill_code_t check_source(const spill_owner_t *owner, int64_t seq, int64_t source_rev,
                                 spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    if (!head.state.present || head.state.rev >= source_rev)
        return SPILL_OK;
    spill_fail(error, SPILL_CORRUPT,
               "the document of element %" PRId64
               " is a copy of a head that was changed more often than this one",
               seq);
    return spill_owner_name(owner, SPILL_CORRUPT, error);
}

static spill_code_t edit_in_document(const spill_owner_t *owner, int64_t seq,
                                     const spill_value_t *element, const place_t *place, bool *done,
                                     spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    const spill_state_t *head = &place->head.state;
    if (spill_state_document_bytes(definition, owner->value, false, &place->page.state, 1,
                                   element->size_bytes) > SPILL_DOCUMENT_BYTES_MAX)
        return fail_size(seq, element, error);
    spill_request_t prepare = spill_owner_request(owner, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = head->rev;
    prepare.change.seq = seq;
    prepare.change.intent_page = seq;
    prepare.change.edit = true;
    prepare.change.sum_removed = spill_referenced_value(owner, &place->page);
    prepare.change.sum_added = spill_sum_of(definition, element);
    bool prepared;
    SPILL_TRY(spill_owner_step(owner, &prepare, &prepared, error));
    if (!prepared)
        return SPILL_OK;
    int64_t source_rev = head->rev + 1; /* and the head's rev after PREPARE */
    SPILL_SCOPED(spill_response_release) spill_response_t there = SPILL_RESPONSE_INIT;
    SPILL_TRY(
        spill_intent_finish_edit(owner, head, seq, source_rev, source_rev, element, &there, error));
    if (spill_referenced_has(&there, seq) && there.state.source_rev >= source_rev) {
        spill_element_t now = spill_run_element(&there.run, 0);
        *done = spill_value_equal(&now.value, element);
    }
    /* A later edit of another client came first, or the document can never be replaced. */
    return !*done && there.state.source_rev > source_rev
               ? check_source(owner, seq, there.state.source_rev, error)
               : SPILL_OK;
}

spill_code_t spill_referenced_edit(spill_owner_t *owner, spill_which_t *which,
                                   const spill_value_t *element, spill_error_t *error)
{
    int tries = 0;
    bool done = false;
    SPILL_TRY(spill_stored_element_check(&owner->array->definition, element, NULL, error));
    while (true) {
        SPILL_SCOPED(release_place) place_t place = {.number = SPILL_HEAD};
        SPILL_TRY(find(owner, which, &place, error));
        if (place.number == SPILL_HEAD)
            SPILL_TRY(edit_in_journal(owner, which->seq, element, &place, &done, error));
        else
            SPILL_TRY(edit_in_document(owner, which->seq, element, &place, &done, error));
        if (done)
            return SPILL_OK;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}

/* ---- remove ---------------------------------------------------------------------------------- */

static spill_code_t remove_in_journal(const spill_owner_t *owner, int64_t seq, const place_t *place,
                                      bool *done, spill_error_t *error)
{
    const spill_state_t *head = &place->head.state;
    spill_request_t remove = spill_owner_request(owner, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = head->rev;
    remove.change.seq = seq;
    remove.change.sum_removed = spill_referenced_value(owner, &place->head);
    return spill_referenced_step(owner, head, &remove, done, error);
}

static spill_code_t remove_in_document(const spill_owner_t *owner, int64_t seq,
                                       const place_t *place, bool *done, spill_error_t *error)
{
    const spill_state_t *head = &place->head.state;
    spill_request_t prepare = spill_owner_request(owner, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = head->rev;
    prepare.change.seq = seq;
    prepare.change.intent_page = seq;
    prepare.change.sum_removed = spill_referenced_value(owner, &place->page);
    SPILL_TRY(spill_referenced_step(owner, head, &prepare, done, error));
    if (!*done)
        return SPILL_OK;
    /* The removal counts from here on. If this client dies, the next one completes it. */
    return spill_intent_finish_removal(owner, head->incarnation, seq, seq, head->rev + 1, error);
}

spill_code_t spill_referenced_remove(spill_owner_t *owner, spill_which_t *which,
                                     spill_error_t *error)
{
    int tries = 0;
    bool done = false;
    while (true) {
        SPILL_SCOPED(release_place) place_t place = {.number = SPILL_HEAD};
        SPILL_TRY(find(owner, which, &place, error));
        if (place.number == SPILL_HEAD)
            SPILL_TRY(remove_in_journal(owner, which->seq, &place, &done, error));
        else
            SPILL_TRY(remove_in_document(owner, which->seq, &place, &done, error));
        if (done)
            return SPILL_OK;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}
