/*
 * Reads: a run of elements in sequence order, gathered document by document. The head is read
 * first, pages after it; a page that the head speaks of is there, so where one is not, the owner
 * was trimmed or dropped meanwhile, and the read begins again.
 */
#include "core/array.h"
#include "definition/fields.h"
#include "layout/apart.h"
#include "util/error.h"

#include <inttypes.h>

void spill_read_options_init(spill_read_options_t *options)
{
    *options = (spill_read_options_t){
        .version = SPILL_READ_OPTIONS_VERSION,
        .order = SPILL_NEWEST_FIRST,
        .limit = 20,
        .before = INT64_MAX,
        .after = -1,
    };
}

/* One read under way. Numbers in [lower, upper] are wanted, `limit` of them at most. */
typedef struct reader {
    const spill_owner_t *owner;
    spill_keep_t keep;
    int64_t lower;
    int64_t upper;
    size_t limit;
    spill_run_t run;       /* what was gathered */
    spill_response_t head; /* as it was read first */
    spill_response_t page;
    int64_t end;   /* every number that this read knows of is below */
    int64_t edge;  /* oldest first: where the next page should begin, at the latest */
    bool unread;   /* there are pages beyond those that were read (oldest first) */
    bool vanished; /* a page was not where the head said: begin again */
    /*
     * The store may read copies of different age, of which one may lack what another's document
     * goes on from. Documents that do not meet are read again, from where writes go.
     */
    bool may_be_old;
} reader_t;

static bool finished(const reader_t *reader)
{
    return reader->run.count >= reader->limit || reader->vanished;
}

/* Take over what a document brought, within the bounds. The first whole run is moved, not copied.
 */
static void take(reader_t *reader, spill_run_t *run)
{
    size_t from = 0;
    size_t end = run->count;
    while (from < end &&
           (run->entries[from].seq < reader->lower || run->entries[from].seq > reader->upper))
        from++;
    while (end > from &&
           (run->entries[end - 1].seq < reader->lower || run->entries[end - 1].seq > reader->upper))
        end--;
    if (from == 0 && reader->run.count == 0) {
        spill_run_t empty = reader->run;
        reader->run = *run;
        reader->run.count = end < reader->limit ? end : reader->limit;
        *run = empty;
        return;
    }
    for (; from < end && reader->run.count < reader->limit; from++) {
        spill_element_t element = spill_run_element(run, from);
        spill_run_add(&reader->run, element.seq, &element.value);
    }
}

static spill_code_t read_head(reader_t *reader, spill_want_t want, int64_t seq, bool spare,
                              spill_error_t *error)
{
    spill_request_t read = spill_owner_request(reader->owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.want = want;
    read.seq = seq;
    read.limit = (int64_t)reader->limit;
    read.spare = spare;
    read.may_be_old = reader->may_be_old;
    spill_code_t code = spill_owner_call(reader->owner, &read, &reader->head, error);
    if (code == SPILL_OK && reader->lower < reader->head.state.low)
        reader->lower = reader->head.state.low;
    reader->edge = reader->keep == SPILL_KEEP_OLDEST ? spill_state_end(&reader->head.state) : 0;
    if (reader->edge < reader->lower)
        reader->edge = reader->lower;
    reader->end = spill_state_end(&reader->head.state);
    return code;
}

/*
 * Is the run likely to go on in another page? By how long pages are meant to be, and where they
 * then begin; a tail may be of any length.
 */
static bool goes_beyond(const reader_t *reader, int64_t page, spill_want_t want, int64_t seq)
{
    const spill_definition_t *definition = &reader->owner->array->definition;
    int64_t length = definition->bounds.page_capacity;
    int64_t left = (int64_t)(reader->limit - reader->run.count);
    int64_t begin = reader->keep == SPILL_KEEP_NEWEST ? 0 : spill_state_end(&reader->head.state);
    if (page == 0 && want == SPILL_WANT_BACKWARD)
        return false;
    if (page >= 0)
        return left > length || (reader->keep == SPILL_KEEP_OLDEST && want == SPILL_WANT_BACKWARD);
    int64_t place = seq > begin ? (seq - begin) % length : 0;
    return left > (want == SPILL_WANT_BACKWARD ? place + 1 : length - place);
}

/* Does the page go on where the one before ended, or hold the number that was asked for? */
static bool meets(const reader_t *reader, spill_want_t want, int64_t seq)
{
    const spill_state_t *page = &reader->page.state;
    if (!page->present || (want == SPILL_WANT_BACKWARD && seq == INT64_MAX))
        return page->present;
    if (want == SPILL_WANT_BACKWARD)
        return seq < spill_state_end(page);
    return page->first <= reader->edge;
}

/* The page may have come along with the one before. */
static bool take_beyond(reader_t *reader, int64_t page)
{
    spill_response_t *read = &reader->page;
    if (page < 0 || !read->beyond.present || read->beyond.page != page ||
        read->beyond.epoch != reader->head.state.epoch)
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

/* What the head has comes after what pages had. */
static spill_code_t take_head(reader_t *reader, spill_want_t want, int64_t seq,
                              spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    if (finished(reader))
        return SPILL_OK;
    if (reader->may_be_old && want == SPILL_WANT_FORWARD &&
        reader->head.state.first > reader->edge) {
        reader->vanished = true;
        return SPILL_OK;
    }
    if (reader->head.spared && reader->run.count + reader->head.run.count < reader->limit) {
        int64_t rev = reader->head.state.rev;
        code = read_head(reader, want, seq, false, error);
        /* Cut, or otherwise changed, meanwhile: what was between is in a page by now. */
        reader->vanished = reader->head.state.rev != rev || !reader->head.state.present;
    }
    if (code == SPILL_OK && !reader->vanished)
        take(reader, &reader->head.run);
    return code;
}

/* Read a page, by number or SPILL_PAGE_HOLDING `seq`, and take its elements from `seq` on. */
static spill_code_t read_page(reader_t *reader, int64_t page, spill_want_t want, int64_t seq,
                              spill_error_t *error)
{
    spill_request_t read = spill_owner_request(reader->owner, SPILL_REQUEST_READ, page);
    read.epoch = reader->head.state.epoch;
    read.pages = reader->head.state.pages;
    read.want = want;
    read.seq = seq;
    read.limit = (int64_t)(reader->limit - reader->run.count);
    read.want_beyond = goes_beyond(reader, page, want, seq);
    read.may_be_old = reader->may_be_old;
    spill_code_t code = SPILL_OK;
    if (!take_beyond(reader, page))
        code = spill_owner_call(reader->owner, &read, &reader->page, error);
    if (code != SPILL_OK)
        return code;
    if (reader->page.state.present && reader->page.state.epoch != reader->head.state.epoch)
        reader->page.state.present = false;
    if (reader->may_be_old && !meets(reader, want, seq))
        reader->vanished = true;
    reader->edge = spill_state_end(&reader->page.state);
    if (reader->page.state.present) {
        if (reader->end < spill_state_end(&reader->page.state))
            reader->end = spill_state_end(&reader->page.state);
        take(reader, &reader->page.run);
    }
    return SPILL_OK;
}

/* ---- elements apart -------------------------------------------------------------------------- */

static bool is_apart(const reader_t *reader)
{
    return spill_elements_apart(&reader->owner->array->definition);
}

/* A run of the elements that are in documents of their own. */
static spill_code_t take_elements(reader_t *reader, spill_want_t want, spill_error_t *error)
{
    const spill_state_t *head = &reader->head.state;
    if (finished(reader) || reader->lower >= head->first)
        return SPILL_OK;
    int64_t end = reader->upper < head->first ? reader->upper + 1 : head->first;
    spill_code_t code =
        spill_apart_read(reader->owner, head, reader->lower, end,
                         want == SPILL_WANT_FORWARD ? reader->lower : end - 1, want,
                         (int64_t)(reader->limit - reader->run.count), &reader->page, error);
    if (code == SPILL_OK)
        take(reader, &reader->page.run);
    return code;
}

/*
 * Once elements were removed, where `skip` of them end is seen by reading them: a bounded run at a
 * time, of which only the last number is kept.
 */
static spill_code_t skip_elements(reader_t *reader, int64_t skip, bool newest_first,
                                  spill_error_t *error)
{
    enum { PASSED_AT_A_TIME = 1000 };
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.order = newest_first ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
    options.before = reader->upper == INT64_MAX ? INT64_MAX : reader->upper + 1;
    options.after = reader->lower - 1;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && skip > 0 && reader->limit > 0) {
        spill_slice_t *slice;
        options.limit = skip < PASSED_AT_A_TIME ? skip : PASSED_AT_A_TIME;
        code =
            spill_array_read(reader->owner->array, reader->owner->value, &options, &slice, error);
        if (code != SPILL_OK)
            break;
        skip -= (int64_t)slice->count;
        if ((int64_t)slice->count < options.limit)
            reader->limit = 0; /* everything was passed over */
        *(newest_first ? &options.before : &options.after) = slice->next;
        spill_slice_free(slice);
    }
    if (newest_first && options.before != INT64_MAX)
        reader->upper = options.before - 1;
    else if (!newest_first)
        reader->lower = options.after + 1;
    return code;
}

/* ---- newest first ---------------------------------------------------------------------------- */

/*
 * The page that a read towards older elements starts with, taken. *page is its number; -1 where
 * there is none.
 */
static spill_code_t start_backward(reader_t *reader, int64_t *page, spill_error_t *error)
{
    const spill_state_t *head = &reader->head.state;
    bool newest = reader->keep == SPILL_KEEP_NEWEST;
    int64_t top = newest && head->first <= reader->upper ? head->first - 1 : reader->upper;
    bool from_last = newest ? top == head->first - 1 : reader->upper >= head->total;
    *page = from_last ? head->pages - 1 : SPILL_PAGE_HOLDING;
    spill_code_t code = read_page(reader, *page, SPILL_WANT_BACKWARD, top, error);
    /* With keep oldest the last page that the head speaks of may not be made yet. */
    if (code == SPILL_OK && from_last && !newest && !reader->page.state.present && *page > 0)
        code = read_page(reader, --*page, SPILL_WANT_BACKWARD, top, error);
    else if (code == SPILL_OK && from_last && !newest && !reader->page.state.present)
        *page = SPILL_HEAD;
    if (code != SPILL_OK || *page == SPILL_HEAD)
        return code;
    if (reader->page.state.present)
        *page = reader->page.state.page;
    else if (*page == SPILL_PAGE_HOLDING)
        *page = SPILL_HEAD; /* below the first page: removed numbers only */
    else
        reader->vanished = true;
    return SPILL_OK;
}

static spill_code_t pages_backward(reader_t *reader, spill_error_t *error)
{
    int64_t page;
    spill_code_t code = start_backward(reader, &page, error);
    while (code == SPILL_OK && page > 0 && !finished(reader) &&
           reader->page.state.first > reader->lower) {
        int64_t top = reader->page.state.first - 1;
        code = read_page(reader, --page, SPILL_WANT_BACKWARD, top, error);
        if (code == SPILL_OK && !reader->page.state.present)
            reader->vanished = true;
    }
    return code;
}

static spill_code_t read_backward(reader_t *reader, spill_error_t *error)
{
    const spill_state_t *head = &reader->head.state;
    bool spare = reader->keep == SPILL_KEEP_OLDEST;
    spill_code_t code = read_head(reader, SPILL_WANT_BACKWARD, reader->upper, spare, error);
    if (code != SPILL_OK || !head->present)
        return code;
    if (reader->keep == SPILL_KEEP_NEWEST) {
        take(reader, &reader->head.run);
        if (is_apart(reader))
            code = take_elements(reader, SPILL_WANT_BACKWARD, error);
        else if (!finished(reader) && head->pages > 0 && head->first > reader->lower)
            code = pages_backward(reader, error);
        return code;
    }
    if (head->pages > 0 && reader->upper >= spill_state_end(head))
        code = pages_backward(reader, error);
    return code == SPILL_OK ? take_head(reader, SPILL_WANT_BACKWARD, reader->upper, error) : code;
}

/* ---- oldest first ---------------------------------------------------------------------------- */

static spill_code_t pages_forward(reader_t *reader, int64_t page, spill_error_t *error)
{
    const spill_state_t *head = &reader->head.state;
    spill_code_t code = read_page(reader, page, SPILL_WANT_FORWARD, reader->lower, error);
    if (code == SPILL_OK && page == SPILL_PAGE_HOLDING && !reader->page.state.present)
        code = read_page(reader, page = 0, SPILL_WANT_FORWARD, reader->lower, error);
    if (reader->page.state.present)
        page = reader->page.state.page;
    while (code == SPILL_OK) {
        if (!reader->page.state.present) {
            /* With keep oldest the last page may not be made yet. */
            reader->vanished = reader->keep == SPILL_KEEP_NEWEST || page < head->pages - 1;
            break;
        }
        if (finished(reader) || ++page >= head->pages ||
            spill_state_end(&reader->page.state) > reader->upper)
            break;
        code = read_page(reader, page, SPILL_WANT_FORWARD, reader->lower, error);
    }
    reader->unread = page + 1 < head->pages;
    return code;
}

static spill_code_t read_forward(reader_t *reader, spill_error_t *error)
{
    const spill_state_t *head = &reader->head.state;
    bool spare = reader->keep == SPILL_KEEP_NEWEST && !is_apart(reader);
    spill_code_t code = read_head(reader, SPILL_WANT_FORWARD, reader->lower, spare, error);
    if (code != SPILL_OK || !head->present)
        return code;
    if (reader->keep == SPILL_KEEP_NEWEST) {
        if (is_apart(reader))
            code = take_elements(reader, SPILL_WANT_FORWARD, error);
        else if (head->pages > 0 && reader->lower < head->first)
            code = pages_forward(reader, SPILL_PAGE_HOLDING, error);
        return code == SPILL_OK ? take_head(reader, SPILL_WANT_FORWARD, reader->lower, error)
                                : code;
    }
    take(reader, &reader->head.run);
    reader->unread = head->pages > 0;
    if (finished(reader) || head->pages == 0 || reader->upper < spill_state_end(head))
        return SPILL_OK;
    bool from_head = reader->lower < spill_state_end(head);
    return pages_forward(reader, from_head ? 0 : SPILL_PAGE_HOLDING, error);
}

/* ---- skip ------------------------------------------------------------------------------------ */

/* The number that `skip` live elements of this document, all wanted, lie before (or after). */
static int64_t pass_within(const reader_t *reader, const spill_state_t *state, int64_t skip,
                           bool newest_first)
{
    int64_t low = reader->lower;
    int64_t high = reader->upper == INT64_MAX ? INT64_MAX : reader->upper + 1;
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
 * The first document to pass over. Pages before the one that holds the lower bound are not looked
 * at: of those that were trimmed one may have been put again, too late, and not as it was.
 */
static spill_code_t first_to_pass(reader_t *reader, bool newest_first, int64_t *at,
                                  spill_error_t *error)
{
    const spill_state_t *head = &reader->head.state;
    bool head_first = (reader->keep == SPILL_KEEP_NEWEST) == newest_first;
    *at = SPILL_HEAD;
    if (head_first || head->pages == 0)
        return SPILL_OK;
    *at = newest_first ? head->pages - 1 : 0;
    if (newest_first)
        return SPILL_OK;
    spill_code_t code = spill_outlier_locate(reader->owner, head, reader->lower, SPILL_WANT_NONE, 0,
                                             &reader->page, at, error);
    if (code == SPILL_OK && *at == SPILL_NO_DOCUMENT)
        *at = 0;
    return code;
}

/* Pass over whole documents, then within one. One small read for each page passed. */
static spill_code_t skip_by_documents(reader_t *reader, int64_t skip, bool newest_first,
                                      spill_error_t *error)
{
    int64_t pages = reader->head.state.pages;
    int64_t at;
    spill_code_t code = first_to_pass(reader, newest_first, &at, error);
    while (code == SPILL_OK && at != SPILL_NO_DOCUMENT) {
        const spill_state_t *state = &reader->head.state;
        if (at != SPILL_HEAD) {
            code = spill_owner_read_state(reader->owner, at, &reader->page, error);
            state = &reader->page.state;
        }
        if (code == SPILL_OK && state->present && state->epoch == reader->head.state.epoch) {
            int64_t top = reader->upper == INT64_MAX ? INT64_MAX : reader->upper + 1;
            int64_t live = spill_state_live_within(state, reader->lower, top);
            if (skip < live) {
                int64_t seq = pass_within(reader, state, skip, newest_first);
                *(newest_first ? &reader->upper : &reader->lower) = seq;
                return SPILL_OK;
            }
            skip -= live;
            if (newest_first && at != SPILL_HEAD && state->first <= reader->lower)
                break;
        }
        at = newest_first ? spill_document_before(reader->keep, at, pages)
                          : spill_document_after(reader->keep, at, pages);
    }
    reader->limit = 0; /* everything was passed over */
    return code;
}

/* Turn `skip` into a bound. Free of further reads where no number in the array is dead. */
static spill_code_t pass_over(reader_t *reader, int64_t skip, bool newest_first,
                              spill_error_t *error)
{
    spill_code_t code = spill_owner_read_state(reader->owner, SPILL_HEAD, &reader->head, error);
    const spill_state_t *head = &reader->head.state;
    if (code == SPILL_OK && !head->present)
        reader->limit = 0;
    if (code != SPILL_OK || !head->present)
        return code;
    if (reader->lower < head->low)
        reader->lower = head->low;
    if ((head->removed > 0 || head->gone.count > 0) && is_apart(reader))
        return skip_elements(reader, skip, newest_first, error);
    if (head->removed > 0 || head->gone.count > 0)
        return skip_by_documents(reader, skip, newest_first, error);
    spill_count_t count = {.next = spill_state_end(head)};
    if (reader->keep == SPILL_KEEP_OLDEST && head->pages > 0)
        code = spill_outlier_count((spill_owner_t *)reader->owner, &count, error);
    int64_t top = reader->upper < count.next ? reader->upper : count.next - 1;
    if (skip > top - reader->lower)
        reader->limit = 0;
    else if (newest_first)
        reader->upper = top - skip;
    else
        reader->lower += skip;
    return code;
}

/* ---- the read -------------------------------------------------------------------------------- */

static spill_code_t read_once(reader_t *reader, const spill_read_options_t *options,
                              spill_error_t *error)
{
    bool newest_first = options->order == SPILL_NEWEST_FIRST;
    bool nothing = options->after == INT64_MAX || options->before <= 0;
    reader->lower = options->after < 0 || nothing ? 0 : options->after + 1;
    reader->upper = options->before == INT64_MAX || nothing ? INT64_MAX : options->before - 1;
    reader->limit = nothing ? 0 : (size_t)options->limit;
    reader->unread = false;
    reader->vanished = false;
    spill_run_clear(&reader->run);
    spill_code_t code = SPILL_OK;
    if (options->skip > 0 && !nothing)
        code = pass_over(reader, options->skip, newest_first, error);
    if (code != SPILL_OK || reader->limit == 0 || reader->lower > reader->upper)
        return code;
    return newest_first ? read_backward(reader, error) : read_forward(reader, error);
}

static spill_slice_t *make_slice(reader_t *reader, const spill_read_options_t *options)
{
    bool newest_first = options->order == SPILL_NEWEST_FIRST;
    spill_slice_t *slice = bson_malloc0(sizeof *slice);
    spill_run_t *run = bson_malloc0(sizeof *run);
    *run = reader->run;
    reader->run = (spill_run_t){0};
    slice->memory = run;
    slice->count = run->count;
    slice->elements = bson_malloc0((run->count + 1) * sizeof *slice->elements);
    for (size_t i = 0; i < run->count; i++)
        slice->elements[i] = spill_run_element(run, i);
    slice->next = newest_first ? options->before : options->after;
    if (run->count == 0)
        return slice;
    slice->next = slice->elements[run->count - 1].seq;
    if (newest_first)
        slice->more = slice->next > reader->lower;
    else
        slice->more =
            slice->next < reader->upper && (reader->unread || slice->next < reader->end - 1);
    return slice;
}

static spill_code_t check_options(const spill_read_options_t *options, spill_error_t *error)
{
    if (options->version != SPILL_READ_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID, "read options of version %d, not %d",
                          options->version, SPILL_READ_OPTIONS_VERSION);
    if (options->limit < 1 || options->skip < 0)
        return spill_fail(error, SPILL_INVALID,
                          "limit is at least 1 and skip at least 0, not %" PRId64 " and %" PRId64,
                          options->limit, options->skip);
    return SPILL_OK;
}

spill_code_t spill_array_read(spill_array_t *array, const spill_value_t *owner,
                              const spill_read_options_t *options, spill_slice_t **slice,
                              spill_error_t *error)
{
    *slice = NULL;
    spill_read_options_t defaults;
    spill_read_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    spill_code_t code = check_options(options, error);
    if (code != SPILL_OK)
        return code;
    spill_owner_t own;
    reader_t reader = {.owner = &own, .keep = array->definition.keep};
    code = spill_owner_init(&own, array, owner, error);
    int tries = 0;
    bool again = code == SPILL_OK;
    while (again) {
        /* Of documents apart a copy may lack one in the middle: nothing would show it. */
        reader.may_be_old =
            tries == 0 && array->store->reads_copies && !spill_elements_apart(&array->definition);
        code = read_once(&reader, options, error);
        again = code == SPILL_OK && reader.vanished;
        if (again && ++tries > 10) {
            code = spill_owner_missing_page(&own, SPILL_PAGE_HOLDING, error);
            again = false;
        }
    }
    if (code == SPILL_OK)
        *slice = make_slice(&reader, options);
    spill_run_release(&reader.run);
    spill_response_release(&reader.head);
    spill_response_release(&reader.page);
    spill_owner_release(&own);
    return code;
}

spill_code_t spill_array_get_activities(spill_array_t *array, const spill_value_t *owner,
                                        int64_t skip, int64_t limit, spill_slice_t **slice,
                                        spill_error_t *error)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.skip = skip;
    options.limit = limit;
    return spill_array_read(array, owner, &options, slice, error);
}

void spill_slice_free(spill_slice_t *slice)
{
    if (slice == NULL)
        return;
    spill_run_release(slice->memory);
    bson_free(slice->memory);
    bson_free(slice->elements);
    bson_free(slice);
}
