/*
 * Trim: one update raises the head's watermark. From then on readers ignore all elements below it.
 * Pages that lie wholly below are emptied afterwards, the oldest first. If the client dies, the
 * next trim empties the rest.
 */
#include "layout/trim.h"
#include "bson/element_fields.h"
#include "definition/schema.h"
#include "layout/change_element.h"
#include "layout/locate.h"
#include "layout/referenced.h"
#include "util/error.h"

/* ---- retention ------------------------------------------------------------------------------- */

/*
 * Retention: which elements does the definition not keep? The append that spilled or sealed a
 * document then trims the array. Layouts without such a document trim after every few
 * appends.
 *
 * Retention is an ordinary trim. It may die at any step, and two may race. The next one finishes.
 */

bool spill_retain_is_due(int64_t first, int64_t count, int64_t step)
{
    return step <= 1 || first / step != (first + count) / step;
}

/* Is the oldest element, which is the first one that was read, older than the limit? */
static bool begins_old(const spill_owner_t *owner, const spill_response_t *head, int64_t time_ms)
{
    int64_t own_ms;
    if (head->run.count == 0)
        return false;
    spill_element_t oldest = spill_run_element(&head->run, 0);
    return spill_element_time_ms(&oldest.value, owner->array->definition.time_field, &own_ms) &&
           own_ms < time_ms;
}

/* Judge from the head alone: *excess is false if it shows that nothing has to go. */
static spill_code_t has_excess(const spill_owner_t *owner, const spill_trim_t *trim, bool *excess,
                               spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    bool capped = !spill_schema_of(definition)->has_pages;
    *excess = true;
    if (!capped && (!spill_schema_of(definition)->appends_to_head || trim->keep == 0))
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = capped ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    read.read.limit = 1;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    *excess = capped ? begins_old(owner, &head, trim->time_ms)
                     : spill_state_count(definition, &head.state) > trim->keep;
    return SPILL_OK;
}

spill_code_t spill_retain_find_excess(const spill_owner_t *owner, spill_trim_t *trim, bool *excess,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    *trim = (spill_trim_t){.below = INT64_MAX, .keep = definition->keep_elements};
    *excess = false;
    if (!owner->array->retains || (trim->keep == 0 && definition->keep_seconds == 0) ||
        spill_schema_of(definition)->has_windows) /* of all windows: core/bucket_change.c */
        return SPILL_OK;
    if (definition->keep_seconds > 0) {
        trim->by_time = true;
        trim->time_ms = spill_owner_now(owner) / 1000 - definition->keep_seconds * 1000;
    }
    return has_excess(owner, trim, excess, error);
}

/* ---- trims ----------------------------------------------------------------------------------- */

static bool is_bucket(const spill_owner_t *owner)
{
    return spill_schema_of(&owner->array->definition)->has_windows;
}

/*
 * Count live elements in pages (and, if appends go to the tail, in the head) with numbers in
 * [from, end). Walks down from the page that holds the last number. One small read for each page.
 */
static spill_code_t count_live(const spill_owner_t *owner, const spill_state_t *head, int64_t from,
                               int64_t end, int64_t *live, spill_error_t *error)
{
    bool oldest = !spill_schema_of(&owner->array->definition)->appends_to_head;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    int64_t where;
    *live = oldest ? spill_state_live_within(head, from, end) : 0;
    SPILL_TRY(spill_outlier_locate(owner, head, end - 1, SPILL_WANT_NONE, 0, &page, &where, error));
    while (where >= 0 && page.state.present) {
        *live += spill_state_live_within(&page.state, from, end);
        if (page.state.first <= from || where == 0)
            break;
        SPILL_TRY(spill_owner_read_state(owner, --where, &page, error));
    }
    return SPILL_OK;
}

/* Compute the value of state.removed with the new watermark. */
static spill_code_t removed_above(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t watermark, int64_t *removed, spill_error_t *error)
{
    int64_t end = watermark; /* of the deleted numbers that `removed` counts */
    if (spill_schema_of(&owner->array->definition)->appends_to_head && watermark > head->first)
        end = head->first;
    *removed = head->removed;
    if (head->removed == 0 || end <= head->watermark)
        return SPILL_OK;
    int64_t live;
    SPILL_TRY(count_live(owner, head, head->watermark, end, &live, error));
    *removed = head->removed - (end - head->watermark - live);
    return SPILL_OK;
}

/*
 * Keep the last of these pages: a read that starts at the watermark finds its first page by it,
 * even if numbers are missing between two pages. Judge each page by its own end, because a page
 * with a wrong first number may be found instead of the last one.
 */
spill_code_t spill_outlier_trimmed_pages(const spill_owner_t *owner, const spill_state_t *head,
                                         int64_t *from, int64_t *end, spill_error_t *error)
{
    *from = *end = 0;
    if (head->pages == 0 || head->watermark == 0)
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_outlier_request_holding(owner, head, head->watermark - 1);
    SPILL_TRY(spill_owner_call(owner, &read, &page, error));
    if (page.state.present) {
        *from = *end = page.state.page;
        /* A bucket has no gap between pages, and its statistics must not count deleted elements. */
        if (is_bucket(owner) && spill_state_slots(&page.state) > 0 &&
            spill_state_end(&page.state) <= head->watermark)
            ++*end;
    }
    for (; *from > 0; --*from) {
        SPILL_TRY(spill_owner_read_state(owner, *from - 1, &page, error));
        if (!page.state.present || spill_state_slots(&page.state) == 0 ||
            spill_state_end(&page.state) > head->watermark)
            break;
    }
    return SPILL_OK;
}

/*
 * If the first page stays because its lease runs, keep the others as well: the next trim searches
 * from the highest of them down to the first.
 */
spill_code_t spill_outlier_empty_pages(const spill_owner_t *owner, int64_t incarnation,
                                       int64_t from, int64_t end, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    bool done;
    for (int64_t number = from; number < end; number++) {
        spill_request_t empty = spill_owner_request(owner, SPILL_REQUEST_EMPTY_PAGE, number);
        empty.incarnation = incarnation;
        SPILL_TRY(spill_owner_step(owner, &empty, &done, error));
        if (done || number > from)
            continue;
        SPILL_TRY(spill_owner_read_state(owner, number, &page, error));
        if (page.state.present && page.state.incarnation == incarnation && page.state.lease > 0)
            return SPILL_OK;
    }
    return SPILL_OK;
}

/*
 * Layout bucket: a page's statistics must not count elements below the watermark. So a trim deletes
 * whole pages. It never deletes the last page, because that may get more elements. It may end
 * anywhere in the head.
 */
static spill_code_t round_to_part(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t *watermark, spill_error_t *error)
{
    if (!is_bucket(owner) || *watermark <= spill_state_end(head))
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t part = SPILL_RESPONSE_INIT;
    const spill_state_t *state = &part.state;
    spill_request_t read = spill_outlier_request_holding(owner, head, *watermark);
    SPILL_TRY(spill_owner_call(owner, &read, &part, error));
    if (!state->present)
        *watermark = spill_state_end(head);
    else if (!state->sealed || spill_state_end(state) > *watermark)
        *watermark = state->first;
    return SPILL_OK;
}

/* Count the elements as of one moment. An absent owner has none. */
static spill_code_t count_elements(spill_owner_t *owner, spill_count_t *count, spill_error_t *error)
{
    *count = (spill_count_t){0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    if (!head.state.present)
        return SPILL_OK;
    return spill_schema_of(&owner->array->definition)->appends_to_head
               ? spill_count_newest(owner, &head, count, error)
               : spill_count_oldest(owner, &head, count, error);
}

/* Find the watermark that the trim sets; -1 if documents changed meanwhile. */
static spill_code_t find_watermark(const spill_owner_t *owner, const spill_trim_t *trim,
                                   const spill_state_t *head, const spill_count_t *count,
                                   int64_t *watermark, spill_error_t *error)
{
    SPILL_TRY(spill_outlier_trim_bound(owner, trim, head, count, watermark, error));
    return *watermark < 0 ? SPILL_OK : round_to_part(owner, head, watermark, error);
}

/* Make one try. *done: the head's watermark, then also *watermark, has reached the trim's end. */
static spill_code_t try_trim(spill_owner_t *owner, const spill_trim_t *trim, spill_response_t *head,
                             bool *done, int64_t *watermark, spill_error_t *error)
{
    spill_count_t count;
    SPILL_TRY(spill_read_head_without_intent(owner, NULL, head, error));
    if (!head->state.present)
        return spill_owner_absent(owner, error);
    int64_t rev = head->state.rev;
    SPILL_TRY(count_elements(owner, &count, error));
    /* Appends do not raise rev: read again, so that the head shows everything that was counted. */
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, head, error));
    if (!head->state.present || head->state.rev != rev)
        return SPILL_OK;
    if (!spill_schema_of(&owner->array->definition)->has_pages) /* what was counted may be gone */
        spill_head_count(&head->state, &count);
    spill_code_t code = find_watermark(owner, trim, &head->state, &count, watermark, error);
    if (code == SPILL_OK && *watermark < 0)
        return SPILL_OK; /* the head has another rev by now */
    if (code != SPILL_OK || *watermark <= head->state.watermark) {
        *watermark = head->state.watermark;
        *done = code == SPILL_OK;
        return code;
    }
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_TRIM, SPILL_HEAD);
    request.rev = head->state.rev;
    request.change.watermark = *watermark;
    /*
     * An append to a head that keeps the top-N may drop the very elements that the trim counted as
     * the newest, or the young one at which it ends. If one comes between, look again.
     */
    if ((trim->keep > 0 || trim->by_time) &&
        spill_schema_of(&owner->array->definition)->keeps_top_n)
        request.change.end = spill_state_end(&head->state);
    SPILL_TRY(removed_above(owner, &head->state, *watermark, &request.change.removed, error));
    return spill_owner_step(owner, &request, done, error);
}

spill_code_t spill_documents_trim(spill_owner_t *owner, const spill_trim_t *trim,
                                  int64_t *watermark, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    bool done = false;
    int tries = 0;
    while (true) {
        SPILL_TRY(try_trim(owner, trim, &head, &done, watermark, error));
        if (done)
            break;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
    int64_t from, end;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    SPILL_TRY(spill_outlier_trimmed_pages(owner, &head.state, &from, &end, error));
    return spill_outlier_empty_pages(owner, head.state.incarnation, from, end, error);
}

spill_code_t spill_documents_begin(const spill_owner_t *owner, int64_t number, bool *done,
                                   spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    *done = false;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    if (!head.state.present) {
        spill_request_t make = spill_owner_request(owner, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
        make.create = true;
        make.incarnation = spill_owner_now(owner);
        SPILL_TRY(spill_owner_step(owner, &make, NULL, error));
        SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    }
    if (!head.state.present)
        return SPILL_OK;
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_TRIM, SPILL_HEAD);
    request.rev = head.state.rev;
    request.change.watermark = number;
    request.change.end = spill_state_end(&head.state);
    request.change.begins = true;
    return spill_owner_step(owner, &request, done, error);
}
