/*
 * Find an element by its id. If several elements have the id, find the one with the lowest number:
 * with keep oldest search the head first, with keep newest the pages.
 *
 * The client reads the head before the pages. So it does not miss an element that moves to a page
 * meanwhile: the head, as it was read, still has it. The number stays the element's wherever it
 * moves.
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

/* If no page has the id, *where stays as it is. */
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
    SPILL_TRY(spill_owner_call(owner, &read, page, error));
    if (page->state.present && page->run.count > 0) {
        *where = page->state.page;
        which->seq = page->run.entries[0].seq;
    }
    return SPILL_OK;
}

spill_code_t spill_outlier_find_id(const spill_owner_t *owner, const spill_response_t *head,
                                   spill_which_t *which, spill_response_t *page, int64_t *where,
                                   spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    *where = SPILL_NO_DOCUMENT;
    bool oldest = !spill_schema_of(&owner->array->definition)->appends_to_head;
    bool in_head = head->run.count > 0;
    /* With keep newest the head knows how many elements are in pages; with keep oldest it does not.
     */
    bool in_pages = oldest ? !in_head : state->first - state->watermark - state->removed > 0;
    int64_t from = oldest ? spill_state_end(state) : 0;
    if (state->pages > 0 && in_pages)
        SPILL_TRY(find_in_pages(owner, state, which,
                                from > state->watermark ? from : state->watermark, page, where,
                                error));
    if (*where != SPILL_NO_DOCUMENT)
        return SPILL_OK;
    if (!in_head)
        return spill_outlier_absent_element(owner, which, error);
    *where = SPILL_HEAD;
    which->seq = head->run.entries[0].seq;
    return SPILL_OK;
}
