/* Finds where a read begins that skips elements. */
#include "core/reading.h"
#include "layout/layout.h"
#include "util/error.h"

/* ---- within documents ------------------------------------------------------------------------ */

/* Find the number after which (or before which) `skip` live elements of the document lie. */
static int64_t pass_within(const spill_reading_t *reading, const spill_state_t *state, int64_t skip,
                           bool newest_first)
{
    int64_t low = reading->lower;
    int64_t high = reading->upper == INT64_MAX ? INT64_MAX : reading->upper + 1;
    if (low < state->first)
        low = state->first;
    if (high > spill_state_end(state))
        high = spill_state_end(state);
    int64_t from = low;
    int64_t to = high;
    while (from < to) { /* the smallest x such that enough lies beyond it */
        int64_t middle = from + (to - from) / 2;
        int64_t beyond = newest_first ? spill_state_live_within(state, middle, high)
                                      : spill_state_live_within(state, low, middle + 1);
        bool further = newest_first ? beyond > skip : beyond <= skip;
        if (further)
            from = middle + 1;
        else
            to = middle;
    }
    return newest_first ? from - 1 : from;
}

/*
 * Find the first document to skip over. Ignore pages before the one that holds the lower bound: a
 * late PUT_PAGE may have put a trimmed one again, with old elements.
 */
static spill_code_t first_to_pass(spill_reading_t *reading, bool newest_first, int64_t *at,
                                  spill_error_t *error)
{
    const spill_state_t *head = &reading->head.state;
    bool head_first = reading->schema->appends_to_head == newest_first;
    *at = SPILL_HEAD;
    if (head_first || head->pages == 0)
        return SPILL_OK;
    *at = newest_first ? head->pages - 1 : 0;
    if (newest_first)
        return SPILL_OK;
    SPILL_TRY(spill_outlier_locate(reading->owner, head, reading->lower, SPILL_WANT_NONE, 0,
                                   &reading->page, at, error));
    if (*at == SPILL_NO_DOCUMENT)
        *at = 0;
    return SPILL_OK;
}

/* Skip whole documents, then elements of one. One small read for each page. */
static spill_code_t skip_by_documents(spill_reading_t *reading, int64_t skip, bool newest_first,
                                      spill_error_t *error)
{
    int64_t pages = reading->head.state.pages;
    int64_t at, missing = 0;
    SPILL_TRY(first_to_pass(reading, newest_first, &at, error));
    while (at != SPILL_NO_DOCUMENT) {
        const spill_state_t *state = &reading->head.state;
        if (at != SPILL_HEAD) {
            SPILL_TRY(spill_owner_read_state(reading->owner, at, &reading->page, error));
            state = &reading->page.state;
        }
        if (state->present && state->incarnation == reading->head.state.incarnation) {
            int64_t top = reading->upper == INT64_MAX ? INT64_MAX : reading->upper + 1;
            int64_t live = spill_state_live_within(state, reading->lower, top);
            if (skip < live) {
                int64_t seq = pass_within(reading, state, skip, newest_first);
                *(newest_first ? &reading->upper : &reading->lower) = seq;
                return SPILL_OK;
            }
            skip -= live;
            if (newest_first && at != SPILL_HEAD && state->first <= reading->lower)
                break;
        }
        missing = at == SPILL_HEAD || state->present ? 0 : missing + 1;
        SPILL_TRY(
            spill_owner_check_missing(reading->owner, &reading->head.state, at, missing, error));
        at = newest_first ? spill_document_before(reading->schema, at, pages)
                          : spill_document_after(reading->schema, at, pages);
    }
    reading->limit = 0; /* all elements are skipped */
    return SPILL_OK;
}

/* ---- referenced elements --------------------------------------------------------------------- */

/*
 * If elements were removed, count by reading them: one bounded run at a time, of which only the
 * last number is kept.
 */
static spill_code_t skip_elements(spill_reading_t *reading, int64_t skip, bool newest_first,
                                  spill_error_t *error)
{
    enum { PASSED_AT_A_TIME = 1000 };
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.order = newest_first ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
    options.before = reading->upper == INT64_MAX ? INT64_MAX : reading->upper + 1;
    options.after = reading->lower - 1;
    while (skip > 0 && reading->limit > 0) {
        spill_slice_t *slice;
        options.limit = skip < PASSED_AT_A_TIME ? skip : PASSED_AT_A_TIME;
        SPILL_TRY(spill_array_read(reading->owner->array, reading->owner->value, &options, &slice,
                                   error));
        skip -= (int64_t)slice->count;
        if ((int64_t)slice->count < options.limit)
            reading->limit = 0; /* all elements are skipped */
        *(newest_first ? &options.before : &options.after) = slice->next;
        spill_slice_free(slice);
    }
    if (newest_first && options.before != INT64_MAX)
        reading->upper = options.before - 1;
    else if (!newest_first)
        reading->lower = options.after + 1;
    return SPILL_OK;
}

/* ---- either ---------------------------------------------------------------------------------- */

spill_code_t spill_reading_pass_over(spill_reading_t *reading, int64_t skip, bool newest_first,
                                     spill_error_t *error)
{
    SPILL_TRY(spill_owner_read_state(reading->owner, SPILL_HEAD, &reading->head, error));
    const spill_state_t *head = &reading->head.state;
    if (!head->present) {
        reading->limit = 0;
        return SPILL_OK;
    }
    if (reading->lower < head->watermark)
        reading->lower = head->watermark;
    if ((head->removed > 0 || head->deleted.count > 0) && reading->schema->has_referenced_elements)
        return skip_elements(reading, skip, newest_first, error);
    if (head->removed > 0 || head->deleted.count > 0)
        return skip_by_documents(reading, skip, newest_first, error);
    spill_count_t count = {.next = spill_state_end(head)};
    if (!reading->schema->appends_to_head && head->pages > 0)
        SPILL_TRY(spill_layout_count((spill_owner_t *)reading->owner, &count, error));
    int64_t top = reading->upper < count.next ? reading->upper : count.next - 1;
    if (skip > top - reading->lower)
        reading->limit = 0;
    else if (newest_first)
        reading->upper = top - skip;
    else
        reading->lower += skip;
    return SPILL_OK;
}
