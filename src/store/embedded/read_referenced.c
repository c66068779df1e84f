/* Referenced elements, and the highest-ranked of them. */
#include "store/embedded/view.h"

#include "definition/schema.h"
#include "util/error.h"

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

/* The records of the elements are adjacent, the newest first. */
spill_code_t spill_view_read_elements(spill_view_t *reading, spill_error_t *error)
{
    const spill_request_t *request = reading->request;
    int64_t last = request->read.pages - 1;
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
spill_code_t spill_view_read_top(spill_view_t *reading, spill_error_t *error)
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
spill_code_t spill_view_read_top_n(spill_view_t *reading, spill_error_t *error)
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
