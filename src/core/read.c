/*
 * Reads: which documents are read, and in which order. reading.h has the state of a read. And the
 * read of the highest-ranked elements.
 */
#include "core/array.h"
#include "core/reading.h"
#include "definition/schema.h"
#include "layout/owner.h"
#include "store/slice.h"
#include "util/error.h"

#include <inttypes.h>

void spill_read_options_init(spill_read_options_t *options)
{
    if (options == NULL)
        return;
    *options = (spill_read_options_t){
        .version = SPILL_READ_OPTIONS_VERSION,
        .order = SPILL_NEWEST_FIRST,
        .limit = 20,
        .before = INT64_MAX,
        .after = -1,
    };
}

/* ---- newest first ---------------------------------------------------------------------------- */

/*
 * Read the first page of a read towards older elements, and take its run. *page is its number; -1:
 * there is none.
 */
static spill_code_t start_backward(spill_reading_t *reading, int64_t *page, spill_error_t *error)
{
    const spill_state_t *head = &reading->head.state;
    bool newest = reading->schema->appends_to_head;
    int64_t top = newest && head->first <= reading->upper ? head->first - 1 : reading->upper;
    bool from_last = newest ? top == head->first - 1 : reading->upper >= head->total;
    *page = from_last ? head->pages - 1 : SPILL_PAGE_HOLDING;
    spill_code_t code = spill_reading_read_page(reading, *page, SPILL_WANT_BACKWARD, top, error);
    /* With keep oldest the last page that the head counts may not exist yet. */
    if (code == SPILL_OK && from_last && !newest && !reading->page.state.present && *page > 0)
        code = spill_reading_read_page(reading, --*page, SPILL_WANT_BACKWARD, top, error);
    else if (code == SPILL_OK && from_last && !newest && !reading->page.state.present)
        *page = SPILL_HEAD;
    if (code != SPILL_OK || *page == SPILL_HEAD)
        return code;
    if (reading->page.state.present)
        *page = reading->page.state.page;
    else if (*page == SPILL_PAGE_HOLDING)
        *page = SPILL_HEAD; /* below the first page: removed numbers only */
    else
        reading->vanished = true;
    return SPILL_OK;
}

static spill_code_t pages_backward(spill_reading_t *reading, spill_error_t *error)
{
    int64_t page;
    spill_code_t code = start_backward(reading, &page, error);
    while (code == SPILL_OK && page > 0 && !spill_reading_finished(reading) &&
           reading->page.state.first > reading->lower) {
        int64_t top = reading->page.state.first - 1;
        code = spill_reading_read_page(reading, --page, SPILL_WANT_BACKWARD, top, error);
        if (code == SPILL_OK && !reading->page.state.present)
            reading->vanished = true;
    }
    return code;
}

static spill_code_t read_backward(spill_reading_t *reading, spill_error_t *error)
{
    const spill_state_t *head = &reading->head.state;
    bool spare = !reading->schema->appends_to_head;
    SPILL_TRY(spill_reading_read_head(reading, SPILL_WANT_BACKWARD, reading->upper, spare, error));
    if (!head->present)
        return SPILL_OK;
    if (reading->schema->appends_to_head) {
        spill_reading_take(reading, &reading->head.run);
        if (reading->schema->has_referenced_elements)
            return spill_reading_take_elements(reading, SPILL_WANT_BACKWARD, error);
        if (!spill_reading_finished(reading) && head->pages > 0 && head->first > reading->lower)
            return pages_backward(reading, error);
        return SPILL_OK;
    }
    if (head->pages > 0 && reading->upper >= spill_state_end(head))
        SPILL_TRY(pages_backward(reading, error));
    return spill_reading_take_head(reading, SPILL_WANT_BACKWARD, reading->upper, error);
}

/* ---- oldest first ---------------------------------------------------------------------------- */

static spill_code_t pages_forward(spill_reading_t *reading, int64_t page, spill_error_t *error)
{
    const spill_state_t *head = &reading->head.state;
    spill_code_t code =
        spill_reading_read_page(reading, page, SPILL_WANT_FORWARD, reading->lower, error);
    if (code == SPILL_OK && page == SPILL_PAGE_HOLDING && !reading->page.state.present)
        code =
            spill_reading_read_page(reading, page = 0, SPILL_WANT_FORWARD, reading->lower, error);
    if (reading->page.state.present)
        page = reading->page.state.page;
    while (code == SPILL_OK) {
        if (!reading->page.state.present) {
            /* With keep oldest the last page may not be made yet. */
            reading->vanished = reading->schema->appends_to_head || page < head->pages - 1;
            break;
        }
        if (spill_reading_finished(reading) || ++page >= head->pages ||
            spill_state_end(&reading->page.state) > reading->upper)
            break;
        code = spill_reading_read_page(reading, page, SPILL_WANT_FORWARD, reading->lower, error);
    }
    reading->unread = page + 1 < head->pages;
    return code;
}

static spill_code_t read_forward(spill_reading_t *reading, spill_error_t *error)
{
    const spill_state_t *head = &reading->head.state;
    bool spare = reading->schema->appends_to_head && !reading->schema->has_referenced_elements;
    SPILL_TRY(spill_reading_read_head(reading, SPILL_WANT_FORWARD, reading->lower, spare, error));
    if (!head->present)
        return SPILL_OK;
    if (reading->schema->appends_to_head) {
        if (reading->schema->has_referenced_elements)
            SPILL_TRY(spill_reading_take_elements(reading, SPILL_WANT_FORWARD, error));
        else if (head->pages > 0 && reading->lower < head->first)
            SPILL_TRY(pages_forward(reading, SPILL_PAGE_HOLDING, error));
        return spill_reading_take_head(reading, SPILL_WANT_FORWARD, reading->lower, error);
    }
    spill_reading_take(reading, &reading->head.run);
    reading->unread = head->pages > 0;
    if (spill_reading_finished(reading) || head->pages == 0 ||
        reading->upper < spill_state_end(head))
        return SPILL_OK;
    bool from_head = reading->lower < spill_state_end(head);
    return pages_forward(reading, from_head ? 0 : SPILL_PAGE_HOLDING, error);
}

/* ---- the read -------------------------------------------------------------------------------- */

/* No number is between `after` and `before`. */
static bool is_nothing(const spill_read_options_t *options)
{
    return options->after == INT64_MAX || options->before <= 0;
}

/* The lowest and the highest number that are read, if it is not nothing. */
static int64_t lower_of(const spill_read_options_t *options)
{
    return options->after < 0 ? 0 : options->after + 1;
}

static int64_t upper_of(const spill_read_options_t *options)
{
    return options->before == INT64_MAX ? INT64_MAX : options->before - 1;
}

static spill_code_t read_once(spill_reading_t *reading, const spill_read_options_t *options,
                              spill_error_t *error)
{
    bool newest_first = options->order == SPILL_NEWEST_FIRST;
    bool nothing = is_nothing(options);
    reading->lower = nothing ? 0 : lower_of(options);
    reading->upper = nothing ? INT64_MAX : upper_of(options);
    reading->limit = nothing ? 0 : (size_t)options->limit;
    reading->unread = false;
    reading->vanished = false;
    reading->overtaken = false;
    reading->lowest = INT64_MAX;
    spill_run_clear(&reading->run);
    bool skips = options->skip > 0 && !nothing;
    if (skips)
        SPILL_TRY(spill_reading_pass_over(reading, options->skip, newest_first, error));
    if (reading->limit == 0 || reading->lower > reading->upper)
        return SPILL_OK;
    const spill_state_t *head = &reading->head.state;
    int64_t incarnation = head->incarnation, watermark = head->watermark;
    SPILL_TRY(newest_first ? read_backward(reading, error) : read_forward(reading, error));
    /* The elements to skip were counted at an earlier head. */
    if (skips && (head->incarnation != incarnation || head->watermark > watermark))
        reading->overtaken = true;
    return SPILL_OK;
}

static spill_slice_t *make_slice(spill_reading_t *reading, const spill_read_options_t *options)
{
    bool newest_first = options->order == SPILL_NEWEST_FIRST;
    spill_slice_t *slice = spill_slice_of(&reading->run, reading->run.count);
    slice->next = newest_first ? options->before : options->after;
    if (slice->count == 0)
        return slice;
    slice->next = slice->elements[slice->count - 1].seq;
    if (newest_first)
        slice->more = slice->next > reading->lower;
    else
        slice->more =
            slice->next < reading->upper && (reading->unread || slice->next < reading->end - 1);
    return slice;
}

static spill_code_t check_options(const spill_read_options_t *options, spill_error_t *error)
{
    if (options->version != SPILL_READ_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID,
                          "read options have version %d, but this library needs version %d: "
                          "initialize them with spill_read_options_init",
                          options->version, SPILL_READ_OPTIONS_VERSION);
    if (options->order != SPILL_NEWEST_FIRST && options->order != SPILL_OLDEST_FIRST)
        return spill_fail(error, SPILL_INVALID, "read options: there is no order %d",
                          (int)options->order);
    if (options->limit < 1 || options->skip < 0)
        return spill_fail(error, SPILL_INVALID,
                          "limit is at least 1 and skip at least 0, not %" PRId64 " and %" PRId64,
                          options->limit, options->skip);
    return SPILL_OK;
}

/* Successive tries of a read that missed a page of the same head. */
typedef struct missing {
    int64_t incarnation, rev;
    int tries;
} missing_t;

/*
 * Is the missing page lost? A client that deletes a page raises the head's rev before. So it is
 * lost if it is missing again and again and the head does not change.
 */
static bool is_lost(const spill_state_t *head, missing_t *missing)
{
    enum { TRIES_MAX = 10 };
    bool same = missing->incarnation == head->incarnation && missing->rev == head->rev;
    *missing = (missing_t){head->incarnation, head->rev, same ? missing->tries + 1 : 1};
    return missing->tries > TRIES_MAX;
}

/* Read the documents, and again if other clients change them meanwhile. */
static spill_code_t read_documents(const spill_owner_t *owner, const spill_read_options_t *options,
                                   spill_slice_t **slice, spill_error_t *error)
{
    const spill_array_t *array = owner->array;
    const spill_schema_t *schema = spill_schema_of(&array->definition);
    spill_reading_t reading = {.owner = owner, .schema = schema};
    spill_code_t code = SPILL_OK;
    int tries = 0;
    missing_t missing = {0};
    bool again = true;
    while (again) {
        /* A replica may lack the document of a referenced element, and nothing would show it. */
        reading.may_be_old =
            tries == 0 && array->store->reads_copies && !schema->has_referenced_elements;
        code = read_once(&reading, options, error);
        if (code == SPILL_OK && !reading.vanished)
            code = spill_reading_check(&reading, error);
        again = code == SPILL_OK && (reading.vanished || reading.overtaken);
        if (again && reading.vanished && is_lost(&reading.head.state, &missing))
            code = spill_owner_missing_page(owner, SPILL_PAGE_HOLDING, error);
        else if (again)
            code = spill_owner_again(owner, &tries, error);
        again = again && code == SPILL_OK;
    }
    if (code == SPILL_OK)
        *slice = make_slice(&reading, options);
    spill_run_release(&reading.run);
    spill_response_release(&reading.head);
    spill_response_release(&reading.page);
    return code;
}

/* Read the newest elements, if the store has all of them in its memory. Else return NULL. */
static spill_slice_t *recall(const spill_owner_t *owner, const spill_read_options_t *options)
{
    const spill_array_t *array = owner->array;
    if (options->order != SPILL_NEWEST_FIRST || options->skip > 0 || is_nothing(options) ||
        !spill_schema_of(&array->definition)->appends_to_head)
        return NULL;
    spill_recall_t recall = {.array_id = array->binding.array_id,
                             .key = owner->key.data,
                             .key_bytes = owner->key.size,
                             .lower = lower_of(options),
                             .upper = upper_of(options),
                             .limit = options->limit};
    return spill_store_recall(array->store, &recall);
}

spill_code_t spill_array_read(spill_array_t *array, const spill_value_t *owner,
                              const spill_read_options_t *options, spill_slice_t **slice,
                              spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, slice);
    *slice = NULL;
    SPILL_CHECK_ARRAY(error, array, owner);
    spill_read_options_t defaults;
    spill_read_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    SPILL_TRY(check_options(options, error));
    spill_owner_t own;
    spill_code_t code = spill_owner_init(&own, array, owner, error);
    if (code == SPILL_OK)
        *slice = recall(&own, options);
    if (code == SPILL_OK && *slice == NULL)
        code = read_documents(&own, options, slice, error);
    spill_owner_release(&own);
    return code;
}

spill_code_t spill_array_read_newest(spill_array_t *array, const spill_value_t *owner, int64_t skip,
                                     int64_t limit, spill_slice_t **slice, spill_error_t *error)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.skip = skip;
    options.limit = limit;
    return spill_array_read(array, owner, &options, slice, error);
}

/* ---- top-N ----------------------------------------------------------------------------------- */

static spill_slice_t *make_top_slice(const spill_top_t *top, spill_run_t *run, int64_t limit)
{
    size_t count = (int64_t)run->count > limit ? (size_t)limit : run->count;
    spill_slice_t *slice = spill_slice_of(run, count);
    slice->more = top->count > count;
    return slice;
}

/* Capped, keeping the top-N: the head's elements, as they rank. */
static spill_code_t read_top_n(const spill_owner_t *owner, int64_t limit, spill_slice_t **slice,
                               spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_top_release) spill_top_t ranks = {0};
    SPILL_SCOPED(spill_run_release) spill_run_t run = {0};
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.may_be_old = owner->array->store->reads_copies;
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    spill_top_note(&ranks, &owner->array->definition, &head.run);
    for (size_t i = 0; i < ranks.count && (int64_t)i < limit; i++)
        for (size_t k = 0; k < head.run.count; k++)
            if (head.run.entries[k].seq == ranks.at[i].seq) {
                spill_element_t element = spill_run_element(&head.run, k);
                spill_run_add(&run, element.seq, &element.value);
            }
    *slice = make_top_slice(&ranks, &run, limit);
    return SPILL_OK;
}

static spill_code_t read_summary(const spill_owner_t *owner, int64_t limit, spill_slice_t **slice,
                                 spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_top = true;
    read.read.may_be_old = owner->array->store->reads_copies;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    *slice = make_top_slice(&head.state.top, &head.top_run, limit);
    return SPILL_OK;
}

spill_code_t spill_array_top(spill_array_t *array, const spill_value_t *owner, int64_t limit,
                             spill_slice_t **slice, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, slice);
    *slice = NULL;
    SPILL_CHECK_ARRAY(error, array, owner);
    bool top_n = spill_schema_of(&array->definition)->keeps_top_n;
    if (!spill_schema_of(&array->definition)->has_top && !top_n)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' has no top elements: its layout is '%s', not 'subset', or "
                          "'capped' with a sortField",
                          array->definition.name, spill_layout_name(array->definition.layout));
    if (limit < 0)
        return spill_fail(error, SPILL_INVALID, "limit cannot be negative");
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    return top_n ? read_top_n(&own, limit, slice, error) : read_summary(&own, limit, slice, error);
}
