/* Read the documents of a read one after another, and find the first one if elements are skipped.
 */
#include "core/reading.h"
#include "layout/locate.h"

#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/referenced.h"
#include "util/error.h"

bool spill_reading_finished(const spill_reading_t *reading)
{
    return reading->run.count >= reading->limit || reading->vanished;
}

/* The first whole run is moved, not copied. */
void spill_reading_take(spill_reading_t *reading, spill_run_t *run)
{
    size_t from = 0;
    size_t end = run->count;
    while (from < end &&
           (run->entries[from].seq < reading->lower || run->entries[from].seq > reading->upper))
        from++;
    while (end > from && (run->entries[end - 1].seq < reading->lower ||
                          run->entries[end - 1].seq > reading->upper))
        end--;
    if (from == 0 && reading->run.count == 0) {
        spill_run_t empty = reading->run;
        reading->run = *run;
        reading->run.count = end < reading->limit ? end : reading->limit;
        *run = empty;
        return;
    }
    for (; from < end && reading->run.count < reading->limit; from++) {
        spill_element_t element = spill_run_element(run, from);
        spill_run_add(&reading->run, element.seq, &element.value);
    }
}

spill_code_t spill_reading_read_head(spill_reading_t *reading, spill_want_t want, int64_t seq,
                                     bool spare, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(reading->owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = want;
    read.read.seq = seq;
    read.read.limit = (int64_t)reading->limit;
    read.read.spare = spare;
    read.read.unsized = true;
    read.read.may_be_old = reading->may_be_old;
    SPILL_TRY(spill_owner_call(reading->owner, &read, &reading->head, error));
    if (reading->lower < reading->head.state.watermark)
        reading->lower = reading->head.state.watermark;
    reading->edge = !reading->schema->appends_to_head ? spill_state_end(&reading->head.state) : 0;
    if (reading->edge < reading->lower)
        reading->edge = reading->lower;
    reading->end = spill_state_end(&reading->head.state);
    return SPILL_OK;
}

/*
 * Does the run probably continue in another page? Judges by the usual length of a page and where
 * pages then begin. A tail may have any length.
 */
static bool goes_beyond(const spill_reading_t *reading, int64_t page, spill_want_t want,
                        int64_t seq)
{
    const spill_definition_t *definition = &reading->owner->array->definition;
    int64_t length = spill_page_length(definition, &reading->head.state);
    int64_t left = (int64_t)(reading->limit - reading->run.count);
    int64_t begin = reading->schema->appends_to_head ? 0 : spill_state_end(&reading->head.state);
    if (length == 0)
        length = definition->bounds.page_capacity;
    if (page == 0 && want == SPILL_WANT_BACKWARD)
        return false;
    if (page >= 0)
        return left > length || (!reading->schema->appends_to_head && want == SPILL_WANT_BACKWARD);
    int64_t place = seq > begin ? (seq - begin) % length : 0;
    return left > (want == SPILL_WANT_BACKWARD ? place + 1 : length - place);
}

/* Is the page next to the last one, or does it have the requested number? */
static bool meets(const spill_reading_t *reading, spill_want_t want, int64_t seq)
{
    const spill_state_t *page = &reading->page.state;
    if (!page->present || (want == SPILL_WANT_BACKWARD && seq == INT64_MAX))
        return page->present;
    if (want == SPILL_WANT_BACKWARD)
        return seq < spill_state_end(page);
    return page->first <= reading->edge;
}

/* Add the page's run if the store has returned it together with the last page. */
static bool take_beyond(spill_reading_t *reading, int64_t page)
{
    spill_response_t *read = &reading->page;
    if (page < 0 || !read->beyond.present || read->beyond.page != page ||
        read->beyond.incarnation != reading->head.state.incarnation)
        return false;
    spill_state_t state = read->state;
    spill_run_t run = read->run;
    read->state = read->beyond;
    read->run = read->beyond_run;
    state.present = false;
    read->beyond = state;
    read->beyond_run = run;
    return true;
}

spill_code_t spill_reading_take_head(spill_reading_t *reading, spill_want_t want, int64_t seq,
                                     spill_error_t *error)
{
    if (spill_reading_finished(reading))
        return SPILL_OK;
    if (reading->may_be_old && want == SPILL_WANT_FORWARD &&
        reading->head.state.first > reading->edge) {
        reading->vanished = true;
        return SPILL_OK;
    }
    if (reading->head.spared && reading->run.count + reading->head.run.count < reading->limit) {
        int64_t rev = reading->head.state.rev;
        SPILL_TRY(spill_reading_read_head(reading, want, seq, false, error));
        /* The head changed meanwhile: a spill may have moved elements to a page. */
        reading->overtaken = reading->head.state.rev != rev || !reading->head.state.present;
    }
    if (!reading->overtaken)
        spill_reading_take(reading, &reading->head.run);
    return SPILL_OK;
}

spill_code_t spill_reading_read_page(spill_reading_t *reading, int64_t page, spill_want_t want,
                                     int64_t seq, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(reading->owner, SPILL_REQUEST_READ, page);
    read.incarnation = reading->head.state.incarnation;
    read.read.pages = reading->head.state.pages;
    read.read.want = want;
    read.read.seq = seq;
    read.read.page_length =
        spill_page_length(&reading->owner->array->definition, &reading->head.state);
    read.read.limit = (int64_t)(reading->limit - reading->run.count);
    read.read.want_beyond = goes_beyond(reading, page, want, seq);
    read.read.unsized = true;
    read.read.may_be_old = reading->may_be_old;
    if (!take_beyond(reading, page))
        SPILL_TRY(spill_owner_call(reading->owner, &read, &reading->page, error));
    if (reading->page.state.present &&
        reading->page.state.incarnation != reading->head.state.incarnation)
        reading->page.state.present = false;
    if (reading->may_be_old && !meets(reading, want, seq))
        reading->vanished = true;
    reading->edge = spill_state_end(&reading->page.state);
    if (reading->page.state.present) {
        if (reading->lowest > reading->page.state.first)
            reading->lowest = reading->page.state.first;
        if (reading->end < spill_state_end(&reading->page.state))
            reading->end = spill_state_end(&reading->page.state);
        spill_reading_take(reading, &reading->page.run);
    }
    return SPILL_OK;
}

spill_code_t spill_reading_take_elements(spill_reading_t *reading, spill_want_t want,
                                         spill_error_t *error)
{
    const spill_state_t *head = &reading->head.state;
    if (spill_reading_finished(reading) || reading->lower >= head->first)
        return SPILL_OK;
    int64_t end = reading->upper < head->first ? reading->upper + 1 : head->first;
    SPILL_TRY(spill_referenced_read(reading->owner, head, reading->lower, end,
                                    want == SPILL_WANT_FORWARD ? reading->lower : end - 1, want,
                                    (int64_t)(reading->limit - reading->run.count), &reading->page,
                                    error));
    reading->lowest = reading->lower;
    spill_reading_take(reading, &reading->page.run);
    return SPILL_OK;
}

spill_code_t spill_reading_check(spill_reading_t *reading, spill_error_t *error)
{
    bool still;
    if (reading->lowest == INT64_MAX || reading->may_be_old)
        return SPILL_OK;
    SPILL_TRY(spill_owner_still_has(reading->owner, &reading->head.state, reading->lowest,
                                    &reading->page, &still, error));
    reading->overtaken = reading->overtaken || !still;
    return SPILL_OK;
}

/* ---- skips within documents ------------------------------------------------------------------ */

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

/* ---- skips of referenced elements ------------------------------------------------------------ */

/*
 * If elements were removed, count the others by reading them, one bounded run at a time. Keep only
 * the last number.
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

/* ---- skips ----------------------------------------------------------------------------------- */

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
