/* The records of a READ, and how it finds its document. */
#include "store/embedded/view.h"
#include "definition/schema.h"
#include "store/embedded/records.h"
#include "util/error.h"

#include <string.h>

spill_code_t spill_view_corrupt(const spill_view_t *reading, spill_error_t *error, const char *what)
{
    return spill_embedded_corrupt(reading->store, reading->request, reading->page, error, what);
}

/* Go to reading->key. *found: the record exists. */
spill_code_t spill_view_seek(spill_view_t *reading, bool *found, spill_error_t *error)
{
    spill_kv_iter_t *iter = reading->iter;
    const spill_record_key_t *key = &reading->key;
    iter->ops->seek(iter, key->data, key->size);
    *found =
        iter->valid && iter->key_bytes == key->size && memcmp(iter->key, key->data, key->size) == 0;
    spill_code_t code = spill_kv_iter_stop(iter, error);
    return code == SPILL_OK ? code
                            : spill_embedded_place(reading->request, reading->page, code, error);
}

spill_code_t spill_view_read_state(spill_view_t *reading, int64_t page, spill_state_t *state,
                                   spill_error_t *error)
{
    bool found;
    reading->page = page;
    spill_embedded_state_key(&reading->key, page);
    SPILL_TRY(spill_view_seek(reading, &found, error));
    if (!found)
        return SPILL_OK;
    if (!spill_state_decode(reading->iter->value, reading->iter->value_bytes, page == SPILL_HEAD,
                            state))
        return spill_view_corrupt(reading, error, "the record of its state cannot be read");
    if (page != SPILL_HEAD)
        state->page = page;
    return SPILL_OK;
}

/* ---- the page that holds a number ------------------------------------------------------------ */

/* The page of the first index entry at or after (first, page); or -1. */
static spill_code_t seek_entry(spill_view_t *reading, int64_t *first, int64_t *page,
                               spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_kv_iter_t *iter = reading->iter;
    int64_t incarnation;
    bool found;
    spill_record_key_first(&reading->key, request->incarnation, *first, *page);
    spill_code_t code = spill_view_seek(reading, &found, error);
    while (code == SPILL_OK && iter->valid &&
           spill_record_key_is_first(&reading->key, iter->key, iter->key_bytes, &incarnation, first,
                                     page) &&
           incarnation == request->incarnation) {
        if (*page < request->read.pages)
            return SPILL_OK;
        iter->ops->next(iter); /* not committed */
        code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    }
    *page = -1;
    return code;
}

static spill_code_t find_page(spill_view_t *reading, spill_error_t *error)
{
    if (reading->request->read.seq < 0)
        return SPILL_OK;
    int64_t first = reading->request->read.seq;
    int64_t page = INT64_MAX;
    spill_code_t code = seek_entry(reading, &first, &page, error);
    if (code != SPILL_OK || page < 0)
        return code;
    spill_state_t *state = &reading->response->state;
    code = spill_view_read_state(reading, page, state, error);
    if (code == SPILL_OK &&
        (!state->present || state->incarnation != reading->request->incarnation))
        return spill_view_corrupt(reading, error, "the index has a page that is not there");
    return code;
}

/* ---- an element by its id -------------------------------------------------------------------- */

/* The lowest number >= `from` of an element of the incarnation with the id; -1: none. */
spill_code_t spill_view_seek_id(spill_view_t *reading, int64_t incarnation, int64_t from,
                                int64_t *seq, spill_error_t *error)
{
    const spill_kv_iter_t *iter = reading->iter;
    spill_buffer_t id = SPILL_BUFFER_INIT;
    const uint8_t *data;
    size_t size;
    int64_t of, number;
    bool found;
    *seq = -1;
    spill_code_t code = spill_element_id_key(reading->request->read.id,
                                             reading->request->definition->unique, &id, error);
    if (code == SPILL_OK) {
        spill_record_key_id(&reading->key, incarnation, &id, from > 0 ? from : 0);
        code = spill_view_seek(reading, &found, error);
    }
    if (code == SPILL_OK && iter->valid &&
        spill_record_key_is_id(&reading->key, iter->key, iter->key_bytes, &of, &data, &size,
                               &number) &&
        of == incarnation && size == id.size && memcmp(data, id.data, size) == 0)
        *seq = number;
    spill_buffer_release(&id);
    return code;
}

static spill_code_t find_page_with_id(spill_view_t *reading, spill_error_t *error)
{
    spill_state_t *state = &reading->response->state;
    const spill_request_t *request = reading->request;
    int64_t seq;
    spill_code_t code =
        spill_view_seek_id(reading, request->incarnation, request->read.seq, &seq, error);
    if (code != SPILL_OK || seq < 0)
        return code;
    spill_request_t holding = *request;
    holding.read.seq = seq;
    reading->request = &holding;
    code = find_page(reading, error);
    reading->request = request;
    if (seq >= spill_state_end(state)) /* in the head */
        spill_state_release(state);
    return code;
}

/* ---- SPILL_PAGE_LEFT_OVER -------------------------------------------------------------------- */

/* Find the newest element of the latest incarnation up to request->incarnation. */
static spill_code_t seek_left_over(spill_view_t *reading, int64_t *incarnation, int64_t *seq,
                                   bool *found, spill_error_t *error)
{
    const spill_kv_iter_t *iter = reading->iter;
    spill_record_key_element(&reading->key, reading->request->incarnation, INT64_MAX);
    spill_code_t code = spill_view_seek(reading, found, error);
    *found =
        code == SPILL_OK && iter->valid &&
        spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, incarnation, seq);
    return code;
}

/*
 * Read the page of the first index entry from the iterator's position on. Leave the state absent if
 * that page is not what the entry says, or (with an element number from 0 on) if it is of another
 * incarnation than `of` or does not hold that element: the element is then in no page.
 */
static spill_code_t read_entry(spill_view_t *reading, int64_t of, int64_t holding,
                               spill_error_t *error)
{
    const spill_kv_iter_t *iter = reading->iter;
    spill_state_t *state = &reading->response->state;
    int64_t incarnation, first, page;
    if (!iter->valid || !spill_record_key_is_first(&reading->key, iter->key, iter->key_bytes,
                                                   &incarnation, &first, &page))
        return SPILL_OK;
    spill_code_t code = spill_view_read_state(reading, page, state, error);
    if (state->incarnation != incarnation ||
        (holding >= 0 && (incarnation != of || holding < state->first)) ||
        holding >= spill_state_end(state))
        spill_state_release(state);
    return code;
}

/*
 * The index lists pages, the latest incarnation first. With keep oldest it lists tombstones too, so
 * find an element first, and then its page.
 */
static spill_code_t find_left_over(spill_view_t *reading, spill_error_t *error)
{
    bool oldest = !spill_schema_of(reading->request->definition)->appends_to_head;
    int64_t incarnation = reading->request->incarnation, seq = -1;
    bool found = true;
    spill_code_t code = SPILL_OK;
    if (oldest)
        code = seek_left_over(reading, &incarnation, &seq, &found, error);
    if (code != SPILL_OK || !found)
        return code;
    spill_record_key_first(&reading->key, incarnation, oldest ? seq : INT64_MAX, INT64_MAX);
    code = spill_view_seek(reading, &found, error);
    return code == SPILL_OK ? read_entry(reading, incarnation, seq, error) : code;
}

spill_code_t spill_view_find_document(spill_view_t *reading, spill_error_t *error)
{
    if (reading->request->page == SPILL_PAGE_HOLDING)
        return find_page(reading, error);
    if (reading->request->page == SPILL_PAGE_LEFT_OVER)
        return find_left_over(reading, error);
    if (reading->request->page == SPILL_PAGE_WITH_ID)
        return find_page_with_id(reading, error);
    return spill_view_read_state(reading, reading->request->page, &reading->response->state, error);
}
