#include "store/embedded/embedded.h"

#include "store/embedded/codec.h"

#include <string.h>

enum { RESERVED_BYTES_MAX = 1024 * 1024 };

/* One READ: one iterator, so that all of it is seen at one moment. */
typedef struct reading {
    spill_embedded_t *store;
    const spill_request_t *request;
    spill_response_t *response;
    spill_kv_iter_t *iter;
    spill_record_key_t key;
    int64_t page; /* which document it turned out to be */
} reading_t;

static spill_code_t corrupt(const reading_t *reading, spill_error_t *error, const char *what)
{
    return spill_embedded_corrupt(reading->store, reading->request, reading->page, error, what);
}

/* Go to reading->key. *found: there is such a record. */
static spill_code_t seek(reading_t *reading, bool *found, spill_error_t *error)
{
    spill_kv_iter_t *iter = reading->iter;
    const spill_record_key_t *key = &reading->key;
    iter->ops->seek(iter, key->data, key->size);
    *found =
        iter->valid && iter->key_bytes == key->size && memcmp(iter->key, key->data, key->size) == 0;
    if (iter->valid)
        return SPILL_OK;
    spill_code_t code = iter->ops->status(iter, error);
    return code == SPILL_OK ? code
                            : spill_embedded_place(reading->request, reading->page, code, error);
}

static spill_code_t read_state(reading_t *reading, int64_t page, spill_state_t *state,
                               spill_error_t *error)
{
    bool found;
    reading->page = page;
    spill_embedded_state_key(&reading->key, page);
    spill_code_t code = seek(reading, &found, error);
    if (code != SPILL_OK || !found)
        return code;
    if (!spill_state_decode(reading->iter->value, reading->iter->value_bytes, page == SPILL_HEAD,
                            state))
        return corrupt(reading, error, "the record of its state cannot be read");
    if (page != SPILL_HEAD)
        state->page = page;
    return SPILL_OK;
}

/* ---- the page that holds a number ------------------------------------------------------------ */

/* The page of the first entry, in the index's order, that is at or after (first, page); or -1. */
static spill_code_t seek_entry(reading_t *reading, int64_t *first, int64_t *page,
                               spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_kv_iter_t *iter = reading->iter;
    int64_t epoch;
    bool found;
    spill_record_key_first(&reading->key, request->epoch, *first, *page);
    spill_code_t code = seek(reading, &found, error);
    while (
        code == SPILL_OK && iter->valid &&
        spill_record_key_is_first(&reading->key, iter->key, iter->key_bytes, &epoch, first, page) &&
        epoch == request->epoch) {
        if (*page < request->pages)
            return SPILL_OK;
        iter->ops->next(iter); /* not committed */
        code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    }
    *page = -1;
    return code;
}

static spill_code_t find_page(reading_t *reading, spill_error_t *error)
{
    if (reading->request->seq < 0)
        return SPILL_OK;
    int64_t first = reading->request->seq;
    int64_t page = INT64_MAX;
    spill_code_t code = seek_entry(reading, &first, &page, error);
    if (code != SPILL_OK || page < 0)
        return code;
    spill_state_t *state = &reading->response->state;
    code = read_state(reading, page, state, error);
    if (code == SPILL_OK && (!state->present || state->epoch != reading->request->epoch))
        return corrupt(reading, error, "the index has a page that is not there");
    return code;
}

/* ---- an element by its id -------------------------------------------------------------------- */

/* The lowest number from `from` on, of the incarnation's, that has the id; -1: there is none. */
static spill_code_t seek_id(reading_t *reading, int64_t epoch, int64_t from, int64_t *seq,
                            spill_error_t *error)
{
    const spill_kv_iter_t *iter = reading->iter;
    spill_buffer_t id = SPILL_BUFFER_INIT;
    const uint8_t *data;
    size_t size;
    int64_t of, number;
    bool found;
    *seq = -1;
    spill_code_t code = spill_element_id_key(reading->request->id, &id, error);
    if (code == SPILL_OK) {
        spill_record_key_id(&reading->key, epoch, &id, from > 0 ? from : 0);
        code = seek(reading, &found, error);
    }
    if (code == SPILL_OK && iter->valid &&
        spill_record_key_is_id(&reading->key, iter->key, iter->key_bytes, &of, &data, &size,
                               &number) &&
        of == epoch && size == id.size && memcmp(data, id.data, size) == 0)
        *seq = number;
    spill_buffer_release(&id);
    return code;
}

static spill_code_t find_page_with_id(reading_t *reading, spill_error_t *error)
{
    spill_state_t *state = &reading->response->state;
    const spill_request_t *request = reading->request;
    int64_t seq;
    spill_code_t code = seek_id(reading, request->epoch, request->seq, &seq, error);
    if (code != SPILL_OK || seq < 0)
        return code;
    spill_request_t holding = *request;
    holding.seq = seq;
    reading->request = &holding;
    code = find_page(reading, error);
    reading->request = request;
    if (seq >= spill_state_end(state)) /* the head's */
        spill_state_release(state);
    return code;
}

/* ---- a page that is left over ---------------------------------------------------------------- */

/* An element of the incarnations up to request->epoch, the latest one's newest. */
static spill_code_t seek_left_over(reading_t *reading, int64_t *epoch, int64_t *seq, bool *found,
                                   spill_error_t *error)
{
    const spill_kv_iter_t *iter = reading->iter;
    spill_record_key_element(&reading->key, reading->request->epoch, INT64_MAX);
    spill_code_t code = seek(reading, found, error);
    *found = code == SPILL_OK && iter->valid &&
             spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, epoch, seq);
    return code;
}

/* The page of the index's first entry from the iterator's place on, if it is what the index says.
 */
static spill_code_t read_entry(reading_t *reading, int64_t holding, spill_error_t *error)
{
    const spill_kv_iter_t *iter = reading->iter;
    spill_state_t *state = &reading->response->state;
    int64_t epoch, first, page;
    if (!iter->valid || !spill_record_key_is_first(&reading->key, iter->key, iter->key_bytes,
                                                   &epoch, &first, &page))
        return SPILL_OK;
    spill_code_t code = read_state(reading, page, state, error);
    if (state->epoch != epoch || holding >= spill_state_end(state))
        spill_state_release(state);
    return code;
}

/*
 * Pages lie in the index, the latest incarnation first. With keep oldest every tombstone does, too,
 * so the way to a page that is none goes by an element.
 */
static spill_code_t find_left_over(reading_t *reading, spill_error_t *error)
{
    bool oldest = reading->request->definition->keep == SPILL_KEEP_OLDEST;
    int64_t epoch = reading->request->epoch, seq = -1;
    bool found = true;
    spill_code_t code = SPILL_OK;
    if (oldest)
        code = seek_left_over(reading, &epoch, &seq, &found, error);
    if (code != SPILL_OK || !found)
        return code;
    spill_record_key_first(&reading->key, epoch, oldest ? seq : INT64_MAX, INT64_MAX);
    code = seek(reading, &found, error);
    return code == SPILL_OK ? read_entry(reading, seq, error) : code;
}

static spill_code_t read_document(reading_t *reading, spill_error_t *error)
{
    if (reading->request->page == SPILL_PAGE_HOLDING)
        return find_page(reading, error);
    if (reading->request->page == SPILL_PAGE_LEFT_OVER)
        return find_left_over(reading, error);
    if (reading->request->page == SPILL_PAGE_WITH_ID)
        return find_page_with_id(reading, error);
    return read_state(reading, reading->request->page, &reading->response->state, error);
}

/* ---- its elements ---------------------------------------------------------------------------- */

/* The numbers of the run: live ones from `high` down to `low`, at most `count`. */
typedef struct range {
    int64_t high;
    int64_t low;
    int64_t count;
} range_t;

/*
 * Either way the run is read from its highest number down, as the records lie. For a run upwards
 * from `seq`, that is the limit-th live number from there.
 */
static range_t range_of(const spill_request_t *request, const spill_state_t *state)
{
    range_t range = {
        .high = spill_state_end(state) - 1, .low = state->first, .count = request->limit};
    if (request->want == SPILL_WANT_BACKWARD) {
        if (request->seq < range.high)
            range.high = request->seq;
        return range;
    }
    if (request->seq > range.low)
        range.low = request->seq;
    if (range.low > range.high || request->limit > range.high - range.low)
        return range;
    int64_t high = range.low + request->limit - 1;
    size_t gone = spill_seqs_count_below(&state->gone, range.low);
    while (gone < state->gone.count && state->gone.at[gone] <= high && high < range.high) {
        gone++;
        high++;
    }
    range.high = high;
    return range;
}

/* Go to the record of element `seq`. The newest of a head is next to the head. */
static spill_code_t seek_element(reading_t *reading, int64_t seq, spill_error_t *error)
{
    spill_kv_iter_t *iter = reading->iter;
    int64_t wanted = reading->response->state.epoch;
    int64_t epoch, newest;
    if (iter->valid &&
        spill_record_key_kind_of(&reading->key, iter->key, iter->key_bytes) == SPILL_RECORD_HEAD) {
        iter->ops->next(iter);
        if (iter->valid &&
            spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, &epoch,
                                        &newest) &&
            epoch == wanted && newest <= seq)
            return SPILL_OK;
    }
    bool found;
    spill_record_key_element(&reading->key, wanted, seq);
    return seek(reading, &found, error);
}

/*
 * There is no record for a number that the document should hold. A page that is not committed is a
 * view of records that the head has, and may have removed since.
 */
static spill_code_t judge_missing(reading_t *reading, int64_t seq, spill_error_t *error)
{
    int64_t page = reading->page;
    if (page != SPILL_HEAD) {
        spill_state_t head = {0};
        spill_code_t code = read_state(reading, SPILL_HEAD, &head, error);
        bool committed = head.present && head.epoch == reading->response->state.epoch &&
                         page < head.pages && seq >= head.low;
        spill_state_release(&head);
        reading->page = page;
        if (code != SPILL_OK || !committed)
            return code;
    }
    return corrupt(reading, error, "the record of an element is missing");
}

/* Is the iterator at the record of element `seq`? Then add it to the run. */
static spill_code_t take_element(reading_t *reading, int64_t seq, bool *taken, spill_error_t *error)
{
    spill_kv_iter_t *iter = reading->iter;
    int64_t epoch, number;
    spill_value_t value;
    *taken = false;
    if (!iter->valid) {
        spill_code_t code = iter->ops->status(iter, error);
        return code == SPILL_OK
                   ? code
                   : spill_embedded_place(reading->request, reading->page, code, error);
    }
    if (!spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, &epoch, &number) ||
        epoch != reading->response->state.epoch || number != seq)
        return SPILL_OK;
    if (!spill_element_decode(iter->value, iter->value_bytes, &value))
        return corrupt(reading, error, "the record of an element cannot be read");
    spill_run_add(&reading->response->run, seq, &value);
    *taken = true;
    return SPILL_OK;
}

/* The entries from place `from` on, in the other order. */
static void reverse(spill_run_t *run, size_t from)
{
    for (size_t i = from, k = run->count; i + 1 < k; i++, k--) {
        spill_run_entry_t entry = run->entries[i];
        run->entries[i] = run->entries[k - 1];
        run->entries[k - 1] = entry;
    }
}

/* Room for the run, as far as it can be told from the document's average, in one piece. */
static void reserve_run(reading_t *reading, const range_t *range)
{
    const spill_state_t *state = &reading->response->state;
    int64_t numbers = range->high - range->low + 1;
    int64_t count = range->count < numbers ? range->count : numbers;
    if (state->live == 0 || count <= 0)
        return;
    int64_t average = state->live_bytes / state->live + 1;
    int64_t bytes = average < RESERVED_BYTES_MAX / count ? average * count : RESERVED_BYTES_MAX;
    spill_buffer_reserve(&reading->response->run.arena, (size_t)bytes);
}

static spill_code_t read_run(reading_t *reading, spill_error_t *error)
{
    const spill_state_t *state = &reading->response->state;
    range_t range = range_of(reading->request, state);
    reserve_run(reading, &range);
    size_t gone = spill_seqs_count_below(&state->gone, range.high + 1);
    int64_t left = range.count;
    bool placed = false;
    for (int64_t seq = range.high; seq >= range.low && left > 0; seq--) {
        if (gone > 0 && state->gone.at[gone - 1] == seq) {
            gone--;
            continue;
        }
        bool taken;
        spill_code_t code = placed ? SPILL_OK : seek_element(reading, seq, error);
        if (code == SPILL_OK)
            code = take_element(reading, seq, &taken, error);
        if (code == SPILL_OK && !taken)
            code = judge_missing(reading, seq, error);
        if (code != SPILL_OK)
            return code;
        placed = taken;
        left--;
        if (taken && left > 0 && seq > range.low)
            reading->iter->ops->next(reading->iter);
    }
    if (reading->request->want == SPILL_WANT_FORWARD)
        reverse(&reading->response->run, 0);
    return SPILL_OK;
}

/* The element that SPILL_WANT_ID means, if the document has it. */
static spill_code_t read_id(reading_t *reading, spill_error_t *error)
{
    const spill_state_t *state = &reading->response->state;
    const spill_request_t *request = reading->request;
    int64_t from = request->seq > state->first ? request->seq : state->first;
    int64_t seq;
    spill_code_t code = seek_id(reading, state->epoch, from, &seq, error);
    if (code != SPILL_OK || seq < 0 || seq >= spill_state_end(state))
        return code;
    spill_request_t one = *request;
    one.want = SPILL_WANT_FORWARD;
    one.seq = seq;
    one.limit = 1;
    reading->request = &one;
    code = read_run(reading, error);
    reading->request = request;
    return code;
}

/* ---- elements apart -------------------------------------------------------------------------- */

/*
 * The elements that there are with numbers from `high` down to `low`, until the run has `limit`, or
 * so many bytes of these as there may be: then *stopped, where more may follow.
 */
static spill_code_t read_numbers(reading_t *reading, int64_t high, int64_t low, size_t limit,
                                 bool *stopped, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_kv_iter_t *iter = reading->iter;
    spill_run_t *run = &reading->response->run;
    int64_t epoch, seq = high, bytes = 0;
    bool found;
    *stopped = false;
    if (high < low)
        return SPILL_OK;
    spill_record_key_element(&reading->key, request->epoch, high);
    spill_code_t code = seek(reading, &found, error);
    while (code == SPILL_OK && !*stopped && iter->valid && run->count < limit &&
           spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, &epoch, &seq) &&
           epoch == request->epoch && seq >= low) {
        spill_value_t value;
        reading->page = seq;
        if (!spill_element_decode(iter->value, iter->value_bytes, &value))
            return corrupt(reading, error, "the record of an element cannot be read");
        spill_run_add(run, seq, &value);
        bytes += value.size_bytes;
        *stopped = request->bytes_most > 0 && bytes >= request->bytes_most && seq > low;
        iter->ops->next(iter);
        code = iter->valid ? SPILL_OK : iter->ops->status(iter, error);
    }
    return code;
}

/*
 * Upwards, in stretches of numbers, each from its upper end down, as many as there may be elements
 * missing yet. One with too many bytes is read again as one of half as many numbers.
 */
static spill_code_t read_upwards(reading_t *reading, int64_t from, int64_t last,
                                 spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_run_t *run = &reading->response->run;
    size_t limit = (size_t)request->limit;
    int64_t length = request->limit;
    spill_code_t code = SPILL_OK;
    bool enough = false;
    while (code == SPILL_OK && !enough && from <= last && run->count < limit) {
        int64_t high = length <= last - from ? from + length - 1 : last;
        size_t had = run->count, used = run->arena.size;
        bool stopped;
        code = read_numbers(reading, high, from, SIZE_MAX, &stopped, error);
        if (stopped) {
            run->count = had;
            run->arena.size = used;
            length = (high - from + 1) / 2;
            continue;
        }
        reverse(run, had);
        from = high + 1;
        enough = request->bytes_most > 0 && (int64_t)run->arena.size >= request->bytes_most;
        length = length < INT64_MAX / 4 ? length * 2 : length;
    }
    reading->response->stopped = enough;
    if (run->count > limit)
        run->count = limit;
    return code;
}

/* The elements' records lie beside each other, the newest first. */
static spill_code_t read_elements(reading_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    int64_t last = request->pages - 1;
    if (request->want == SPILL_WANT_BACKWARD)
        return read_numbers(reading, request->seq < last ? request->seq : last, request->low,
                            (size_t)request->limit, &reading->response->stopped, error);
    return read_upwards(reading, request->seq > request->low ? request->seq : request->low, last,
                        error);
}

/* ---- what ranks highest ---------------------------------------------------------------------- */

/* Copy an element's record into the run; *found: it is there. */
static spill_code_t copy_element(reading_t *reading, int64_t epoch, int64_t seq, spill_run_t *run,
                                 bool *found, spill_error_t *error)
{
    spill_value_t value;
    spill_record_key_element(&reading->key, epoch, seq);
    spill_code_t code = seek(reading, found, error);
    if (code != SPILL_OK || !*found)
        return code;
    if (!spill_element_decode(reading->iter->value, reading->iter->value_bytes, &value))
        return corrupt(reading, error, "the record of an element cannot be read");
    spill_run_add(run, seq, &value);
    return SPILL_OK;
}

/* The elements that a head shows. */
static spill_code_t read_top(reading_t *reading, spill_error_t *error)
{
    const spill_state_t *state = &reading->response->state;
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < state->top.shown; i++) {
        bool found;
        code = copy_element(reading, state->epoch, state->top.at[i].seq,
                            &reading->response->top_run, &found, error);
        if (code == SPILL_OK && !found)
            return corrupt(reading, error, "the record of an element that it shows is missing");
    }
    return code;
}

/* Is the iterator at an entry of the incarnation's by which elements follow as they rank? */
static bool at_ranked(const reading_t *reading, int64_t *seq)
{
    const spill_kv_iter_t *iter = reading->iter;
    int64_t epoch;
    bool ranked = reading->request->definition->sort_field[0] != '\0';
    return iter->valid &&
           (ranked
                ? spill_record_key_is_rank(&reading->key, iter->key, iter->key_bytes, &epoch, seq)
                : spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, &epoch,
                                              seq)) &&
           epoch == reading->request->epoch;
}

/* The numbers of those that rank highest; of the journal's and of trimmed ones it passes over few.
 */
static spill_code_t list_best(reading_t *reading, int64_t *numbers, size_t *count,
                              spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    bool ranked = request->definition->sort_field[0] != '\0';
    int64_t seq;
    bool found;
    *count = 0;
    int64_t last = request->pages - 1;
    const spill_top_entry_t *below = request->below;
    if (ranked)
        spill_record_key_rank(&reading->key, request->epoch, below ? &below->rank : NULL,
                              below ? below->seq : 0);
    else
        spill_record_key_element(&reading->key, request->epoch,
                                 below && below->seq < last ? below->seq : last);
    spill_code_t code = seek(reading, &found, error);
    while (code == SPILL_OK && at_ranked(reading, &seq) && (int64_t)*count < request->limit &&
           (ranked || seq >= request->low)) {
        bool passed = seq == request->seq || (below && seq == below->seq);
        if (seq >= request->low && seq < request->pages && !passed)
            numbers[(*count)++] = seq;
        reading->iter->ops->next(reading->iter);
        code = reading->iter->valid ? SPILL_OK : reading->iter->ops->status(reading->iter, error);
    }
    return code;
}

/* SPILL_WANT_BEST: by the index of ranks, or as the records lie. */
static spill_code_t read_best(reading_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_top_t *best = &reading->response->best;
    spill_run_t one = {0};
    size_t count;
    int64_t bytes = 0;
    int64_t *numbers = bson_malloc((size_t)request->limit * sizeof *numbers);
    spill_code_t code = list_best(reading, numbers, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        bool found;
        spill_run_clear(&one);
        reading->page = numbers[i];
        code = copy_element(reading, request->epoch, numbers[i], &one, &found, error);
        if (code == SPILL_OK && !found)
            code = corrupt(reading, error, "an element in the index of ranks has no record");
        if (code != SPILL_OK)
            break;
        spill_element_t element = spill_run_element(&one, 0);
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, numbers[i], &element.value);
        spill_top_add(best, (size_t)request->limit, &entry);
        bytes += element.value.size_bytes;
        if (bytes <= spill_top_room(request->definition))
            spill_run_add(&reading->response->run, numbers[i], &element.value);
    }
    spill_top_show(best, request->definition, SIZE_MAX);
    if (reading->response->run.count > best->shown)
        reading->response->run.count = best->shown;
    spill_run_release(&one);
    bson_free(numbers);
    return code;
}

/* ---- what else is wanted --------------------------------------------------------------------- */

static void reverse_ops(spill_ops_t *ops)
{
    for (size_t i = 0, j = ops->count; i + 1 < j; i++, j--) {
        spill_op_entry_t entry = ops->entries[i];
        ops->entries[i] = ops->entries[j - 1];
        ops->entries[j - 1] = entry;
    }
}

/*
 * The window is the incarnation's; a document's are the operations before its n, here from the
 * newest down to the first that is forgotten. By single reads: older ones were deleted one by one,
 * and an iterator would have to pass over each that is not yet compacted away.
 */
static spill_code_t read_ops(reading_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_response_t *response = reading->response;
    const spill_state_t *state = &response->state;
    int64_t oldest = state->n - request->definition->op_window;
    if (!request->want_ops && request->op->base > oldest)
        oldest = request->op->base; /* what came before is another operation */
    spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_code_t code = SPILL_OK;
    bool found = true;
    for (int64_t ordinal = state->n - 1; found && ordinal >= 0 && ordinal >= oldest; ordinal--) {
        spill_op_entry_t entry;
        spill_record_key_op(&reading->key, state->epoch, ordinal);
        code = spill_embedded_get(reading->store, NULL, reading->key.data, reading->key.size,
                                  &value, &found, error);
        if (code != SPILL_OK || !found)
            break;
        if (!spill_op_decode(value.data, value.size, &entry)) {
            code = corrupt(reading, error, "the record of an operation cannot be read");
            break;
        }
        entry.ordinal = ordinal;
        if (request->want_ops)
            spill_ops_push(&response->ops, &entry, SIZE_MAX);
        if (request->op && request->op->id_bytes == entry.id_bytes &&
            memcmp(request->op->id, entry.id, entry.id_bytes) == 0) {
            response->op_found = true;
            response->op = entry;
        }
    }
    reverse_ops(&response->ops);
    spill_buffer_release(&value);
    return code;
}

static spill_code_t read_fields(reading_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    bool found;
    spill_record_key_init(&reading->key, request->collection_id, request->key, request->key_bytes);
    spill_code_t code = seek(reading, &found, error);
    if (code != SPILL_OK)
        return code;
    if (found)
        reading->response->fields =
            bson_new_from_data(reading->iter->value, reading->iter->value_bytes);
    if (!reading->response->fields)
        return corrupt(reading, error, "the record of the other fields is missing or damaged");
    return SPILL_OK;
}

static spill_code_t read_all(reading_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    if (request->page == SPILL_ELEMENTS)
        return request->want == SPILL_WANT_BEST ? read_best(reading, error)
                                                : read_elements(reading, error);
    spill_code_t code = read_document(reading, error);
    if (code != SPILL_OK || !reading->response->state.present)
        return code;
    if (request->want == SPILL_WANT_ID)
        code = read_id(reading, error);
    else if (request->want != SPILL_WANT_NONE)
        code = read_run(reading, error);
    if (code == SPILL_OK && request->want_top && request->page == SPILL_HEAD)
        code = read_top(reading, error);
    if (code == SPILL_OK && (request->op || request->want_ops))
        code = read_ops(reading, error);
    if (code == SPILL_OK && request->want_fields && request->page == SPILL_HEAD)
        code = read_fields(reading, error);
    return code;
}

spill_code_t spill_embedded_read(spill_embedded_t *store, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    reading_t reading;
    reading.store = store;
    reading.request = request;
    reading.response = response;
    reading.page = request->page;
    spill_record_key_init(&reading.key, request->array_id, request->key, request->key_bytes);
    response->outcome = SPILL_DONE;
    bool state_only = request->want == SPILL_WANT_NONE && !request->op && !request->want_ops &&
                      !request->want_fields && !request->want_top && request->page >= SPILL_HEAD;
    if (state_only)
        return spill_embedded_get_state(store, NULL, request, &reading.key, request->page,
                                        &response->state, error);
    reading.iter = store->kv->ops->iterate(store->kv);
    spill_code_t code = read_all(&reading, error);
    reading.iter->ops->free(reading.iter);
    return code;
}
