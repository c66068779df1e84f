/* READ of a document: its state, elements, operations, other fields, referenced elements. */
#include "store/embedded/view.h"

#include "bson/element_fields.h"
#include "definition/schema.h"
#include "store/embedded/embedded_sessions.h"
#include "store/embedded/op_records.h"
#include "store/embedded/records.h"
#include "store/render.h"
#include "util/error.h"

#include <string.h>

/* ---- referenced elements --------------------------------------------------------------------- */

/*
 * Read the elements with numbers from `high` down to `low` until the run has `limit` elements or
 * reaches bytes_most. *stopped: the bytes ended it, and more elements may follow.
 */
static spill_code_t read_numbers(spill_view_t *reading, int64_t high, int64_t low, size_t limit,
                                 bool *stopped, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_kv_iter_t *iter = reading->iter;
    spill_run_t *run = &reading->response->run;
    int64_t incarnation, seq = high, bytes = 0;
    bool found;
    *stopped = false;
    if (high < low)
        return SPILL_OK;
    spill_record_key_element(&reading->key, request->incarnation, high);
    SPILL_TRY(spill_view_seek(reading, &found, error));
    while (!*stopped && iter->valid && run->count < limit &&
           spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, &incarnation,
                                       &seq) &&
           incarnation == request->incarnation && seq >= low) {
        spill_value_t value;
        reading->page = seq;
        if (!spill_element_decode(request->definition, iter->value, iter->value_bytes, &value))
            return spill_view_corrupt(reading, error, "the record of an element cannot be read");
        spill_run_add(run, seq, &value);
        bytes += value.size_bytes;
        *stopped = request->read.bytes_most > 0 && bytes >= request->read.bytes_most && seq > low;
        iter->ops->next(iter);
        SPILL_TRY(spill_kv_iter_stop(iter, error));
    }
    return SPILL_OK;
}

/*
 * Read upwards in ranges of numbers, each from its upper end down. A range has as many numbers as
 * elements are still wanted. If it has too many bytes, read half of it instead.
 */
static spill_code_t read_upwards(spill_view_t *reading, int64_t from, int64_t last,
                                 spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_run_t *run = &reading->response->run;
    size_t limit = (size_t)request->read.limit;
    int64_t length = request->read.limit;
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
        spill_view_reverse(run, had);
        from = high + 1;
        enough =
            request->read.bytes_most > 0 && (int64_t)run->arena.size >= request->read.bytes_most;
        length = length < INT64_MAX / 4 ? length * 2 : length;
    }
    reading->response->stopped = enough;
    if (run->count > limit)
        run->count = limit;
    return code;
}

/* Get the element with this number. Damage of other records of the tables does no harm. */
static spill_code_t get_number(spill_view_t *reading, int64_t seq, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t record = SPILL_BUFFER_INIT;
    const spill_request_t *request = reading->request;
    spill_value_t value;
    bool found;
    reading->page = seq;
    spill_record_key_element(&reading->key, request->incarnation, seq);
    spill_code_t code = spill_embedded_get(reading->store, NULL, reading->key.data,
                                           reading->key.size, &record, &found, error);
    if (code != SPILL_OK)
        return spill_embedded_place(request, seq, code, error);
    if (!found)
        return SPILL_OK;
    if (!spill_element_decode(request->definition, record.data, record.size, &value))
        return spill_view_corrupt(reading, error, "the record of an element cannot be read");
    spill_run_add(&reading->response->run, seq, &value);
    return SPILL_OK;
}

/* The records of the elements are adjacent, the newest first. */
static spill_code_t read_elements(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    int64_t last = request->read.pages - 1;
    bool one = last == request->read.watermark && last == request->read.seq;
    if (one && request->read.limit > 0)
        return get_number(reading, last, error);
    if (request->read.want == SPILL_WANT_BACKWARD)
        return read_numbers(reading, request->read.seq < last ? request->read.seq : last,
                            request->read.watermark, (size_t)request->read.limit,
                            &reading->response->stopped, error);
    return read_upwards(reading,
                        request->read.seq > request->read.watermark ? request->read.seq
                                                                    : request->read.watermark,
                        last, error);
}

/* ---- the highest-ranked elements ------------------------------------------------------------- */

/* Copy an element's record into the run; *found: it exists. */
static spill_code_t copy_element(spill_view_t *reading, int64_t incarnation, int64_t seq,
                                 spill_run_t *run, bool *found, spill_error_t *error)
{
    spill_value_t value;
    spill_record_key_element(&reading->key, incarnation, seq);
    SPILL_TRY(spill_view_seek(reading, found, error));
    if (!*found)
        return SPILL_OK;
    if (!spill_element_decode(reading->request->definition, reading->iter->value,
                              reading->iter->value_bytes, &value))
        return spill_view_corrupt(reading, error, "the record of an element cannot be read");
    spill_run_add(run, seq, &value);
    return SPILL_OK;
}

/* Read the elements that a head shows. */
static spill_code_t read_top(spill_view_t *reading, spill_error_t *error)
{
    const spill_state_t *state = &reading->response->state;
    for (size_t i = 0; i < state->top.shown; i++) {
        bool found;
        SPILL_TRY(copy_element(reading, state->incarnation, state->top.at[i].seq,
                               &reading->response->top_run, &found, error));
        if (!found)
            return spill_view_corrupt(reading, error,
                                      "the record of an element that it shows is missing");
    }
    return SPILL_OK;
}

/* Is the iterator at a record of the incarnation in rank order: an index entry or an element? */
static bool at_ranked(const spill_view_t *reading, int64_t *seq)
{
    const spill_kv_iter_t *iter = reading->iter;
    int64_t incarnation;
    bool ranked = spill_schema_of(reading->request->definition)->has_rank_index;
    return iter->valid &&
           (ranked ? spill_record_key_is_rank(&reading->key, iter->key, iter->key_bytes,
                                              &incarnation, seq)
                   : spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes,
                                                 &incarnation, seq)) &&
           incarnation == reading->request->incarnation;
}

/* List the numbers of the highest-ranked elements. It skips the journal's and trimmed elements,
 * which are few. */
static spill_code_t list_top_n(spill_view_t *reading, int64_t *numbers, size_t *count,
                               spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    bool ranked = spill_schema_of(request->definition)->has_rank_index;
    int64_t seq;
    bool found;
    *count = 0;
    int64_t last = request->read.pages - 1;
    const spill_top_entry_t *below = request->read.below;
    if (ranked)
        spill_record_key_rank(&reading->key, request->incarnation, below ? &below->rank : NULL,
                              below ? below->seq : 0);
    else
        spill_record_key_element(&reading->key, request->incarnation,
                                 below && below->seq < last ? below->seq : last);
    SPILL_TRY(spill_view_seek(reading, &found, error));
    while (at_ranked(reading, &seq) && (int64_t)*count < request->read.limit &&
           (ranked || seq >= request->read.watermark)) {
        bool passed = seq == request->read.seq || (below && seq == below->seq);
        if (seq >= request->read.watermark && seq < request->read.pages && !passed)
            numbers[(*count)++] = seq;
        reading->iter->ops->next(reading->iter);
        SPILL_TRY(spill_kv_iter_stop(reading->iter, error));
    }
    return SPILL_OK;
}

/* SPILL_WANT_TOP_N: use the index of ranks, or the elements' own order if there is none. */
static spill_code_t read_top_n(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_top_t *top_n = &reading->response->top_n;
    spill_run_t one = {0};
    size_t count;
    int64_t bytes = 0;
    int64_t *numbers = bson_malloc((size_t)request->read.limit * sizeof *numbers);
    spill_code_t code = list_top_n(reading, numbers, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        bool found;
        spill_run_clear(&one);
        reading->page = numbers[i];
        code = copy_element(reading, request->incarnation, numbers[i], &one, &found, error);
        if (code == SPILL_OK && !found)
            code = spill_view_corrupt(reading, error,
                                      "an element in the index of ranks has no record");
        if (code != SPILL_OK)
            break;
        spill_element_t element = spill_run_element(&one, 0);
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, numbers[i], &element.value);
        spill_top_add(top_n, (size_t)request->read.limit, &entry);
        bytes += element.value.size_bytes;
        if (bytes <= spill_top_room(request->definition))
            spill_run_add(&reading->response->run, numbers[i], &element.value);
    }
    spill_top_show(top_n, request->definition, SIZE_MAX);
    if (reading->response->run.count > top_n->shown)
        reading->response->run.count = top_n->shown;
    spill_run_release(&one);
    bson_free(numbers);
    return code;
}

enum { RESERVED_BYTES_MAX = 1024 * 1024 };

/* ---- elements -------------------------------------------------------------------------------- */

/* The numbers of the run: live numbers from `high` down to `low`, at most `count`. */
typedef struct range {
    int64_t high;
    int64_t low;
    int64_t count;
} range_t;

/*
 * Read a run from its highest number down, in the order of the records. If the run goes upwards
 * from `seq`, its highest number is the limit-th live number from there.
 */
static range_t range_of(const spill_request_t *request, const spill_state_t *state)
{
    range_t range = {
        .high = spill_state_end(state) - 1, .low = state->first, .count = request->read.limit};
    if (request->read.want == SPILL_WANT_BACKWARD) {
        if (request->read.seq < range.high)
            range.high = request->read.seq;
        return range;
    }
    if (request->read.seq > range.low)
        range.low = request->read.seq;
    if (range.low > range.high || request->read.limit > range.high - range.low)
        return range;
    int64_t high = spill_seqs_absent(&state->deleted, range.low, request->read.limit - 1);
    if (high < range.high)
        range.high = high;
    return range;
}

/* Go to the record of element `seq`. The newest of a head is next to the head. */
static spill_code_t seek_element(spill_view_t *reading, int64_t seq, spill_error_t *error)
{
    spill_kv_iter_t *iter = reading->iter;
    int64_t wanted = reading->response->state.incarnation;
    int64_t incarnation, newest;
    if (iter->valid &&
        spill_record_key_kind_of(&reading->key, iter->key, iter->key_bytes) == SPILL_RECORD_HEAD) {
        iter->ops->next(iter);
        if (iter->valid &&
            spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, &incarnation,
                                        &newest) &&
            incarnation == wanted && newest <= seq)
            return SPILL_OK;
    }
    bool found;
    spill_record_key_element(&reading->key, wanted, seq);
    return spill_view_seek(reading, &found, error);
}

/*
 * A number of the document has no record. That is damage, unless the page is not committed: then it
 * is a view of records of the head, which may have deleted them since.
 */
static spill_code_t check_missing(spill_view_t *reading, int64_t seq, spill_error_t *error)
{
    int64_t page = reading->page;
    if (page != SPILL_HEAD) {
        spill_state_t head = {0};
        spill_code_t code = spill_view_read_state(reading, SPILL_HEAD, &head, error);
        bool committed = head.present && head.incarnation == reading->response->state.incarnation &&
                         page < head.pages && seq >= head.watermark;
        spill_state_release(&head);
        reading->page = page;
        if (code != SPILL_OK || !committed)
            return code;
    }
    return spill_view_corrupt(reading, error, "the record of an element is missing");
}

/* If the iterator is at the record of element `seq`, add it to the run. */
static spill_code_t add_element(spill_view_t *reading, int64_t seq, bool *taken,
                                spill_error_t *error)
{
    spill_kv_iter_t *iter = reading->iter;
    int64_t incarnation, number;
    spill_value_t value;
    *taken = false;
    if (!iter->valid) {
        spill_code_t code = spill_kv_iter_stop(iter, error);
        return code == SPILL_OK
                   ? code
                   : spill_embedded_place(reading->request, reading->page, code, error);
    }
    if (!spill_record_key_is_element(&reading->key, iter->key, iter->key_bytes, &incarnation,
                                     &number) ||
        incarnation != reading->response->state.incarnation || number != seq)
        return SPILL_OK;
    if (!spill_element_decode(reading->request->definition, iter->value, iter->value_bytes, &value))
        return spill_view_corrupt(reading, error, "the record of an element cannot be read");
    spill_run_add(&reading->response->run, seq, &value);
    *taken = true;
    return SPILL_OK;
}

void spill_view_reverse(spill_run_t *run, size_t from)
{
    for (size_t i = from, k = run->count; i + 1 < k; i++, k--) {
        spill_run_entry_t entry = run->entries[i];
        run->entries[i] = run->entries[k - 1];
        run->entries[k - 1] = entry;
    }
}

/* Reserve the memory of the run at once, estimated from the document's average element. */
static void reserve_run(spill_view_t *reading, const range_t *range)
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

static spill_code_t read_run(spill_view_t *reading, spill_error_t *error)
{
    const spill_state_t *state = &reading->response->state;
    range_t range = range_of(reading->request, state);
    reserve_run(reading, &range);
    int64_t left = range.count;
    bool placed = false;
    for (int64_t seq = range.high; left > 0; seq--) {
        bool taken;
        seq = spill_seqs_pass_down(&state->deleted, seq);
        if (seq < range.low)
            break;
        if (!placed)
            SPILL_TRY(seek_element(reading, seq, error));
        SPILL_TRY(add_element(reading, seq, &taken, error));
        if (!taken)
            SPILL_TRY(check_missing(reading, seq, error));
        placed = taken;
        left--;
        if (taken && left > 0 && seq > range.low)
            reading->iter->ops->next(reading->iter);
    }
    if (reading->request->read.want == SPILL_WANT_FORWARD)
        spill_view_reverse(&reading->response->run, 0);
    return SPILL_OK;
}

/*
 * Find the number of the element that SPILL_WANT_ID selects; -1: the document has none. The index
 * has all elements of the array, so a head's read may find that no document has the id.
 */
static spill_code_t find_id(spill_view_t *reading, int64_t *seq, spill_error_t *error)
{
    spill_response_t *response = reading->response;
    const spill_state_t *state = &response->state;
    const spill_request_t *request = reading->request;
    int64_t from = request->read.seq > state->first ? request->read.seq : state->first;
    bool whole = request->page == SPILL_HEAD && request->read.seq <= state->watermark;
    SPILL_TRY(spill_view_seek_id(reading, state->incarnation, whole ? state->watermark : from, seq,
                                 error));
    response->id_absent = whole && *seq < 0;
    if (*seq >= 0 && *seq < from)
        SPILL_TRY(spill_view_seek_id(reading, state->incarnation, from, seq, error));
    if (*seq >= spill_state_end(state))
        *seq = -1;
    return SPILL_OK;
}

/* Read the element that SPILL_WANT_ID selects, if the document has it. */
static spill_code_t read_id(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    int64_t seq;
    spill_code_t code = find_id(reading, &seq, error);
    if (code != SPILL_OK || seq < 0)
        return code;
    spill_request_t one = *request;
    one.read.want = SPILL_WANT_FORWARD;
    one.read.seq = seq;
    one.read.limit = 1;
    reading->request = &one;
    code = read_run(reading, error);
    reading->request = request;
    return code;
}

/* ---- operations and other fields ------------------------------------------------------------- */

static void reverse_ops(spill_ops_t *ops)
{
    for (size_t i = 0, j = ops->count; i + 1 < j; i++, j--) {
        spill_op_entry_t entry = ops->entries[i];
        ops->entries[i] = ops->entries[j - 1];
        ops->entries[j - 1] = entry;
    }
}

/* Note an operation of the window in the response. */
static void add_op(const spill_read_t *read, const spill_op_entry_t *entry,
                   spill_response_t *response)
{
    if (read->want_ops)
        spill_ops_push(&response->ops, entry, SIZE_MAX);
    if (read->op && spill_op_entry_is(entry, read->op->id, read->op->id_bytes)) {
        response->op_found = true;
        response->op = *entry;
    }
}

/*
 * The incarnation has one window. A document's operations are those before its op_count, here from
 * the newest down to the first missing one. Use single reads: older operations were deleted one by
 * one, and an iterator would pass over each deletion that is not compacted yet.
 */
static spill_code_t read_ops(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_response_t *response = reading->response;
    const spill_state_t *state = &response->state;
    int64_t oldest = state->op_count - request->definition->op_window;
    if (!request->read.want_ops && request->read.op->base > oldest)
        oldest = request->read.op->base; /* an operation before that is another one */
    spill_op_source_t source = {
        .store = reading->store, .kv = reading->kv, .request = request, .page = reading->page};
    spill_code_t code = SPILL_OK;
    bool found = true;
    for (int64_t ordinal = state->op_count - 1; found && ordinal >= 0 && ordinal >= oldest;
         ordinal--) {
        spill_op_entry_t entry;
        code = spill_op_read(&source, &reading->key, state, ordinal, &entry, &found, error);
        if (code != SPILL_OK || !found)
            break;
        add_op(&request->read, &entry, response);
    }
    reverse_ops(&response->ops);
    spill_op_source_release(&source);
    return code;
}

static spill_code_t read_fields(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    bson_t stored;
    bool found;
    spill_record_key_init(&reading->key, request->collection_id, request->key, request->key_bytes);
    SPILL_TRY(spill_view_seek(reading, &found, error));
    if (found && spill_fields_decode(reading->iter->value, reading->iter->value_bytes, request->key,
                                     request->key_bytes, &stored))
        reading->response->fields = bson_copy(&stored);
    if (!reading->response->fields)
        return spill_view_corrupt(reading, error,
                                  "the record of the other fields is missing or damaged");
    return SPILL_OK;
}

/* An unmanaged array is one of the other fields. */
static spill_code_t read_unmanaged(spill_view_t *reading, spill_error_t *error)
{
    bson_t *fields = NULL;
    spill_code_t code =
        spill_embedded_get_fields(reading->store, NULL, reading->request, &fields, error);
    if (code == SPILL_OK)
        spill_unmanaged_read(reading->request, fields, reading->response);
    bson_destroy(fields);
    return code;
}

static spill_code_t read_all(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    if (request->page == SPILL_ELEMENTS)
        return request->read.want == SPILL_WANT_TOP_N ? read_top_n(reading, error)
                                                      : read_elements(reading, error);
    if (!reading->response->state.present) /* else the cache had it */
        SPILL_TRY(spill_view_find_document(reading, error));
    if (!reading->response->state.present)
        return request->read.unmanaged ? read_unmanaged(reading, error) : SPILL_OK;
    if (request->read.want == SPILL_WANT_ID)
        SPILL_TRY(read_id(reading, error));
    else if (request->read.want != SPILL_WANT_NONE)
        SPILL_TRY(read_run(reading, error));
    if (request->read.want_top && request->page == SPILL_HEAD)
        SPILL_TRY(read_top(reading, error));
    if (request->read.op || request->read.want_ops)
        SPILL_TRY(read_ops(reading, error));
    if (request->read.want_fields && request->page == SPILL_HEAD)
        SPILL_TRY(read_fields(reading, error));
    return SPILL_OK;
}

/* Read with one iterator. */
static spill_code_t read_view(spill_view_t *reading, spill_kv_t *kv, spill_error_t *error)
{
    reading->kv = kv;
    reading->iter = spill_kv_iterate_owner(kv);
    spill_code_t code = read_all(reading, error);
    reading->iter->ops->free(reading->iter);
    return code;
}

/* Read the engine. */
static spill_code_t read_engine(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_embedded_t *store = reading->store;
    bool state_only = !request->read.unmanaged && request->read.want == SPILL_WANT_NONE &&
                      !request->read.op && !request->read.want_ops && !request->read.want_fields &&
                      !request->read.want_top && request->page >= SPILL_HEAD;
    if (state_only)
        return spill_embedded_get_state(store, NULL, request, &reading->key, request->page,
                                        &reading->response->state, error);
    return read_view(reading, store->kv, error);
}

/*
 * Read the engine, or for the newest elements the cache. If an element is wanted by its id, the
 * cache has only the head's state, and the index is then of the same moment or a later one. The id
 * is found if an element has it at the later moment and had its number at the first. It is absent
 * if no element has it at the later moment, or the owner was dropped since the first one.
 */
static spill_code_t read_one(spill_view_t *reading, spill_error_t *error)
{
    spill_tail_ticket_t ticket;
    spill_tail_cache_t *tails = reading->store->tails;
    const spill_request_t *cached = reading->request;
    spill_request_t head;
    bool by_id = cached->read.want == SPILL_WANT_ID;
    if (by_id) {
        head = *cached;
        head.read.want = SPILL_WANT_NONE;
        cached = &head;
    }
    bool hit = spill_tail_cache_read(tails, &reading->key, cached, reading->response, &ticket);
    if (hit && !by_id)
        return SPILL_OK;
    SPILL_TRY(read_engine(reading, error));
    if (!hit)
        spill_tail_cache_fill(tails, &reading->key, cached, reading->response, &ticket);
    return SPILL_OK;
}

/* Read the owner from the span of a pass over many owners. *done: false if no span has it. */
static spill_code_t read_ahead(spill_view_t *reading, bool *done, spill_error_t *error)
{
    spill_hold_t hold;
    spill_kv_t *kv = spill_read_ahead_hold(reading->store->ahead, &reading->key, &hold);
    *done = kv != NULL;
    if (!kv)
        return SPILL_OK;
    spill_code_t code = read_view(reading, kv, error);
    spill_hold_release(&hold);
    return code;
}

/* The session and the match that the caller asks about. */
static spill_code_t read_judged(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    spill_response_t *response = reading->response;
    bson_t *fields = NULL;
    if (!response->state.present)
        return SPILL_OK;
    if (request->read.session)
        SPILL_TRY(
            spill_embedded_read_session(reading->store, request, &reading->key, response, error));
    if (!request->read.match)
        return SPILL_OK;
    SPILL_TRY(spill_embedded_get_fields(reading->store, NULL, request, &fields, error));
    response->unmatched = !spill_match_fields(request->read.match, fields);
    bson_destroy(fields);
    return SPILL_OK;
}

spill_code_t spill_embedded_read(spill_embedded_t *store, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    spill_view_t reading;
    bool done;
    int64_t note = spill_known_note(store->ahead);
    reading.store = store;
    reading.request = request;
    reading.response = response;
    reading.page = request->page;
    spill_record_key_init(&reading.key, request->array_id, request->key, request->key_bytes);
    response->outcome = SPILL_DONE;
    const spill_clock_t *clock = &store->base.options.clock;
    if (request->read.want_now)
        response->now_us = clock->now_us(clock->context);
    SPILL_TRY(read_ahead(&reading, &done, error));
    if (!done)
        SPILL_TRY(read_one(&reading, error));
    SPILL_TRY(read_judged(&reading, error));
    bool fields_only =
        request->page == SPILL_HEAD && !request->read.unmanaged && !response->state.present;
    if (!fields_only)
        return SPILL_OK;
    bool there;
    SPILL_TRY(spill_embedded_get_fields_bytes(store, request, &response->state.fields_bytes, &there,
                                              error));
    if (request->read.append_follows && !there)
        spill_known_add(store->ahead, request, NULL, 0, note);
    return SPILL_OK;
}
