/*
 * Finding an element by its id. Of several with the id the one with the lowest number is meant:
 * with keep oldest the head is looked at first, with keep newest the pages.
 *
 * The head is read first, pages after it, so an element that was there before the call is not
 * missed by moving to a page meanwhile: it is found in the head, as that was read. The number found
 * stays the element's, wherever it moves.
 */
#include "definition/schema.h"
#include "layout/outlier.h"
#include "util/error.h"

#include <inttypes.h>

spill_code_t spill_outlier_absent_element(const spill_owner_t *owner, const spill_which_t *which,
                                          spill_error_t *error)
{
    if (which->id && error) {
        char *json = spill_value_to_json(which->id, false);
        spill_fail(error, SPILL_NOT_FOUND, "there is no element with the id %.100s",
                   json ? json : "?");
        bson_free(json);
    } else {
        spill_fail(error, SPILL_NOT_FOUND, "there is no element %" PRId64, which->seq);
    }
    return spill_owner_name(owner, SPILL_NOT_FOUND, error);
}

spill_code_t spill_outlier_read_head(const spill_owner_t *owner, const spill_value_t *id,
                                     spill_response_t *head, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = id ? SPILL_WANT_ID : SPILL_WANT_NONE;
    read.read.id = id;
    read.read.limit = id ? 1 : 0;
    return spill_owner_call(owner, &read, head, error);
}

/* *where stays what it is where no page has it. */
static spill_code_t find_in_pages(const spill_owner_t *owner, const spill_state_t *head,
                                  spill_which_t *which, int64_t from, spill_response_t *page,
                                  int64_t *where, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_PAGE_WITH_ID);
    read.incarnation = head->incarnation;
    read.read.pages = head->pages;
    read.read.want = SPILL_WANT_ID;
    read.read.id = which->id;
    read.read.seq = from;
    read.read.limit = 1;
    spill_code_t code = spill_owner_call(owner, &read, page, error);
    if (code == SPILL_OK && page->state.present && page->run.count > 0) {
        *where = page->state.page;
        which->seq = page->run.entries[0].seq;
    }
    return code;
}

spill_code_t spill_outlier_find_id(const spill_owner_t *owner, const spill_response_t *head,
                                   spill_which_t *which, spill_response_t *page, int64_t *where,
                                   spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    spill_code_t code = SPILL_OK;
    *where = SPILL_NO_DOCUMENT;
    bool oldest = !spill_schema_of(&owner->array->definition)->appends_to_head;
    bool in_head = head->run.count > 0;
    /* With keep newest so many elements are in pages; with keep oldest the head does not know. */
    bool in_pages = oldest ? !in_head : state->first - state->watermark - state->removed > 0;
    int64_t from = oldest ? spill_state_end(state) : 0;
    if (state->pages > 0 && in_pages)
        code = find_in_pages(owner, state, which, from > state->watermark ? from : state->watermark,
                             page, where, error);
    if (code == SPILL_OK && *where == SPILL_NO_DOCUMENT && in_head) {
        *where = SPILL_HEAD;
        which->seq = head->run.entries[0].seq;
    }
    if (code == SPILL_OK && *where == SPILL_NO_DOCUMENT)
        return spill_outlier_absent_element(owner, which, error);
    return code;
}
