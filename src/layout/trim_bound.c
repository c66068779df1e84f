/*
 * Find where a trim by count or by time ends. The walk starts at the oldest document, so the cost
 * depends on what the trim deletes, not on what stays. The result belongs to one head, and the trim
 * is guarded by that head's rev: every removal raises it.
 */
#include "bson/element_fields.h"
#include "definition/schema.h"
#include "layout/locate.h"
#include "layout/referenced.h"
#include "layout/trim.h"
#include "util/error.h"

enum { RUN_ELEMENTS = 256 };

/* A walk over documents, the oldest first. */
typedef struct walk {
    const spill_owner_t *owner;
    const spill_state_t *head;
    spill_response_t read; /* the current document, unless it is the head */
    int64_t at;
    int64_t missing;                    /* pages in a row that are not there */
    spill_referenced_walk_t referenced; /* over referenced elements */
} walk_t;

static void release_walk(walk_t *walk)
{
    spill_response_release(&walk->read);
}

/* Find the document that holds the first number from the watermark on. */
static spill_code_t begin(walk_t *walk, spill_error_t *error)
{
    SPILL_TRY(spill_outlier_locate(walk->owner, walk->head, walk->head->watermark, SPILL_WANT_NONE,
                                   0, &walk->read, &walk->at, error));
    if (walk->at == SPILL_NO_DOCUMENT)
        walk->at = walk->head->pages > 0 ? 0 : SPILL_HEAD; /* the lowest numbers were removed */
    return SPILL_OK;
}

static bool is_referenced(const walk_t *walk)
{
    return spill_schema_of(&walk->owner->array->definition)->has_referenced_elements;
}

/* Go to the next document. All referenced elements count as one. `there`: this one exists. */
static spill_code_t go_to_next(walk_t *walk, bool there, spill_error_t *error)
{
    if (is_referenced(walk) && walk->at != SPILL_HEAD) {
        walk->at = SPILL_HEAD;
        return SPILL_OK;
    }
    int64_t page = walk->at;
    walk->missing = there || page == SPILL_HEAD ? 0 : walk->missing + 1;
    walk->at = spill_document_after(spill_schema_of(&walk->owner->array->definition), walk->at,
                                    walk->head->pages);
    return spill_owner_check_missing(walk->owner, walk->head, page, walk->missing, error);
}

/* The number of the live element that follows `passed` others from `from` on. */
static int64_t number_after(const spill_state_t *state, int64_t from, int64_t passed)
{
    return spill_seqs_absent(&state->deleted, from > state->first ? from : state->first, passed);
}

/* Read the next run of referenced elements. */
static spill_code_t read_referenced(walk_t *walk, spill_error_t *error)
{
    return spill_referenced_walk(walk->owner, walk->head, walk->head->first, &walk->referenced,
                                 &walk->read, error);
}

/* ---- by count -------------------------------------------------------------------------------- */

/* Pass over `excess` referenced elements. */
static spill_code_t pass_referenced(walk_t *walk, int64_t *excess, int64_t *bound,
                                    spill_error_t *error)
{
    const spill_run_t *run = &walk->read.run;
    walk->referenced = (spill_referenced_walk_t){.next = walk->head->watermark};
    while (*excess > 0 && walk->referenced.next < walk->head->first) {
        SPILL_TRY(read_referenced(walk, error));
        int64_t count = (int64_t)run->count;
        if (count > 0 && count >= *excess)
            *bound = run->entries[*excess - 1].seq + 1;
        *excess -= count < *excess ? count : *excess;
    }
    return SPILL_OK;
}

static spill_code_t bound_by_count(walk_t *walk, int64_t excess, int64_t *bound,
                                   spill_error_t *error)
{
    const spill_state_t *head = walk->head;
    bool newest = spill_schema_of(&walk->owner->array->definition)->appends_to_head;
    *bound = head->watermark + excess;
    if (head->removed == 0 && (!newest || *bound <= head->first))
        return SPILL_OK; /* no number is missing there */
    *bound = -1;         /* the result if a page was deleted meanwhile */
    walk->at = SPILL_HEAD;
    SPILL_TRY(is_referenced(walk) ? pass_referenced(walk, &excess, bound, error)
                                  : begin(walk, error));
    if (*bound >= 0)
        return SPILL_OK;
    while (walk->at != SPILL_NO_DOCUMENT) {
        const spill_state_t *state = head;
        if (walk->at != SPILL_HEAD) {
            SPILL_TRY(spill_owner_read_state(walk->owner, walk->at, &walk->read, error));
            state = &walk->read.state;
        }
        if (state->present && state->incarnation == head->incarnation) {
            int64_t live = spill_state_live_within(state, head->watermark, INT64_MAX);
            if (excess < live) {
                *bound = number_after(state, head->watermark, excess);
                break;
            }
            excess -= live;
        }
        SPILL_TRY(go_to_next(walk, state->present, error));
    }
    return SPILL_OK;
}

/* ---- by time --------------------------------------------------------------------------------- */

/* Find the first element of the run that is not older. False: all are older. */
static bool find_younger(const walk_t *walk, int64_t time_ms, int64_t *seq)
{
    const char *path = walk->owner->array->definition.time_field;
    const spill_run_t *run = &walk->read.run;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        int64_t own_ms;
        *seq = element.seq;
        if (!spill_element_time_ms(&element.value, path, &own_ms) || own_ms >= time_ms)
            return true;
    }
    return false;
}

static spill_code_t read_run(walk_t *walk, int64_t from, spill_error_t *error)
{
    if (is_referenced(walk) && walk->at != SPILL_HEAD)
        return read_referenced(walk, error);
    spill_request_t read = spill_owner_request(walk->owner, SPILL_REQUEST_READ, walk->at);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.seq = from;
    read.read.limit = RUN_ELEMENTS;
    SPILL_TRY(spill_owner_call(walk->owner, &read, &walk->read, error));
    if (walk->read.state.incarnation != walk->head->incarnation)
        walk->read.run.count = 0;
    return SPILL_OK;
}

static bool is_read_to_its_end(const walk_t *walk)
{
    if (is_referenced(walk) && walk->at != SPILL_HEAD)
        return walk->referenced.next >= walk->head->first;
    return walk->read.run.count < RUN_ELEMENTS;
}

/* Lower *bound, which is the highest allowed value, to the first element that is not older. */
static spill_code_t bound_by_time(walk_t *walk, int64_t time_ms, int64_t *bound,
                                  spill_error_t *error)
{
    int64_t from = walk->head->watermark;
    int64_t seq;
    walk->at = 0; /* begin() sets the first document; referenced elements have no such walk */
    walk->referenced = (spill_referenced_walk_t){.next = from};
    if (!is_referenced(walk))
        SPILL_TRY(begin(walk, error));
    while (walk->at != SPILL_NO_DOCUMENT && from < *bound) {
        SPILL_TRY(read_run(walk, from, error));
        if (walk->read.run.count == 0) {
            SPILL_TRY(go_to_next(walk, walk->read.state.present, error));
            continue;
        }
        if (find_younger(walk, time_ms, &seq)) {
            *bound = seq < *bound ? seq : *bound;
            break;
        }
        from = seq + 1;
        if (is_read_to_its_end(walk))
            SPILL_TRY(go_to_next(walk, true, error));
    }
    return SPILL_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

spill_code_t spill_outlier_trim_bound(const spill_owner_t *owner, const spill_trim_t *trim,
                                      const spill_state_t *head, const spill_count_t *count,
                                      int64_t *bound, spill_error_t *error)
{
    SPILL_SCOPED(release_walk)
    walk_t walk = {.owner = owner, .head = head, .read = SPILL_RESPONSE_INIT};
    *bound = trim->below < count->next ? trim->below : count->next;
    if (trim->keep > 0 && trim->keep >= count->count)
        *bound = head->watermark;
    else if (trim->keep > 0)
        SPILL_TRY(bound_by_count(&walk, count->count - trim->keep, bound, error));
    if (trim->by_time && *bound > head->watermark)
        SPILL_TRY(bound_by_time(&walk, trim->time_ms, bound, error));
    return SPILL_OK;
}
