/*
 * The sides of a transfer: their definitions and errors, differences, and a reader of one owner's
 * elements on one side.
 */
#include "layout/oldest.h"
#include "tools/transfer/transfer_parts.h"

#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <string.h>

const spill_definition_t *spill_transfer_source(const spill_transfer_t *transfer)
{
    return spill_array_get_definition(transfer->source.array);
}

const spill_definition_t *spill_transfer_target(const spill_transfer_t *transfer)
{
    return spill_array_get_definition(transfer->target.array);
}

bool spill_transfer_is_capped(const spill_transfer_t *transfer)
{
    const spill_schema_t *schema = spill_schema_of(spill_transfer_target(transfer));
    return schema->is_capped && !schema->keeps_top_n;
}

bool spill_transfer_keeps_top_n(const spill_transfer_t *transfer)
{
    return spill_schema_of(spill_transfer_target(transfer))->keeps_top_n;
}

spill_code_t spill_transfer_failed(const spill_transfer_side_t *side, spill_code_t code,
                                   spill_error_t *error)
{
    return code == SPILL_OK || !side->name ? code
                                           : spill_fail_prefix(error, code, "%s", side->name);
}

spill_code_t spill_transfer_wait(const spill_transfer_t *transfer, int64_t elements,
                                 spill_error_t *error)
{
    const spill_copy_options_t *options = transfer->options;
    return options->turn ? options->turn(options->context, elements, error) : SPILL_OK;
}

void spill_transfer_progress(const spill_transfer_t *transfer)
{
    if (transfer->options->progress)
        transfer->options->progress(transfer->options->context, transfer->result);
}

/* ---- differences ----------------------------------------------------------------------------- */

void spill_transfer_differs(spill_transfer_owner_t *owner, int64_t seq, const char *text)
{
    if (owner->difference.count == 0) {
        owner->difference.seq = seq;
        owner->difference.text = text;
    }
    owner->difference.count++;
}

void spill_transfer_differs_ahead(spill_transfer_owner_t *owner, int64_t seq, const char *text)
{
    spill_transfer_differs(owner, seq, text);
    owner->difference.ahead = true;
}

spill_code_t spill_transfer_check_dropped(spill_transfer_owner_t *owner,
                                          const spill_owner_t *target, spill_error_t *error)
{
    bool begun;
    SPILL_TRY(spill_transfer_failed(&owner->transfer->target,
                                    spill_outlier_drop_has_begun(target, &begun, error), error));
    if (begun)
        spill_transfer_differs(owner, -1,
                               "in the target an unfinished drop has begun to delete it");
    return SPILL_OK;
}

/* ---- elements in the order of their numbers -------------------------------------------------- */

spill_transfer_reader_t spill_transfer_reader_of_source(const spill_transfer_owner_t *owner,
                                                        int64_t from, int64_t to)
{
    size_t at = 0;
    const spill_run_t *kept = spill_transfer_kept_run(owner, from, to, &at);
    return (spill_transfer_reader_t){.side = &owner->transfer->source,
                                     .owner = &owner->source,
                                     .to = to,
                                     .stretch.next = from,
                                     .kept = kept,
                                     .at = at,
                                     .ended = from >= to,
                                     .joins = owner->transfer->joins_windows,
                                     .first = owner->begin};
}

spill_transfer_reader_t spill_transfer_reader_of_target(const spill_transfer_owner_t *owner,
                                                        int64_t from, int64_t to)
{
    return (spill_transfer_reader_t){.side = &owner->transfer->target,
                                     .owner = &owner->target,
                                     .to = to,
                                     .stretch.next = from,
                                     .ended = from >= to};
}

void spill_transfer_reader_release(spill_transfer_reader_t *reader)
{
    spill_stretch_release(&reader->stretch);
    spill_bucket_slice_free(reader->slice);
}

int64_t spill_transfer_next_limit(int64_t limit, size_t count, int64_t bytes)
{
    enum { MOST = 200, BYTES_MOST = 2 * 1024 * 1024 };
    return spill_run_next_limit(limit, MOST, BYTES_MOST, (int64_t)count, bytes);
}

/* ---- the windows of a source as one array: in their order, numbered from 0 ------------------- */

typedef struct search {
    spill_transfer_reader_t *reader;
    int64_t from;
} search_t;

static bool find_window(void *context, const spill_bucket_window_t *window)
{
    const search_t *search = context;
    spill_transfer_reader_t *reader = search->reader;
    if (reader->first + window->statistics.count <= search->from) {
        reader->first += window->statistics.count;
        return true;
    }
    memcpy(reader->window, window->window, strlen(window->window) + 1);
    return false;
}

/* Find the window with number `from`; the windows before it have reader->first elements. */
static spill_code_t find_start(spill_transfer_reader_t *reader, int64_t from, spill_error_t *error)
{
    search_t search = {.reader = reader, .from = from};
    if (from == 0)
        return SPILL_OK;
    spill_code_t code = spill_bucket_windows(reader->side->array, reader->owner->value, NULL, NULL,
                                             SPILL_OLDEST_FIRST, find_window, &search, error);
    if (code == SPILL_OK)
        reader->ended = true; /* the windows have fewer elements */
    return code == SPILL_CANCELLED ? SPILL_OK : code;
}

static spill_code_t read_slice(spill_transfer_reader_t *reader, spill_error_t *error)
{
    spill_bucket_slice_t *last = reader->slice;
    spill_bucket_read_options_t read;
    spill_bucket_read_options_init(&read);
    read.order = SPILL_OLDEST_FIRST;
    read.limit = reader->limit > 0 ? reader->limit : SPILL_TRANSFER_FIRST_READ;
    if (last) {
        read.cursor_window = last->cursor_window;
        read.cursor_seq = last->cursor_seq;
        reader->first += (int64_t)last->count;
    } else if (reader->window[0] != '\0') {
        read.from = reader->window;
    }
    spill_code_t code =
        spill_bucket_read(reader->side->array, reader->owner->value, &read, &reader->slice, error);
    spill_bucket_slice_free(last);
    reader->at = 0;
    reader->limit = read.limit;
    if (code == SPILL_OK) {
        int64_t bytes = 0;
        for (size_t i = 0; i < reader->slice->count; i++)
            bytes += reader->slice->elements[i].value.size_bytes;
        reader->limit = spill_transfer_next_limit(read.limit, reader->slice->count, bytes);
    }
    return code;
}

/* Read slices until one has the element at the reader, or until the end. */
static spill_code_t read_windows(spill_transfer_reader_t *reader, spill_error_t *error)
{
    int64_t from = reader->stretch.next;
    if (!reader->ended && !reader->slice)
        SPILL_TRY(find_start(reader, from, error));
    while (!reader->ended && (!reader->slice || reader->at == reader->slice->count)) {
        reader->ended = reader->slice && !reader->slice->more;
        if (reader->ended)
            break;
        SPILL_TRY(read_slice(reader, error));
        if (reader->first < from) {
            int64_t before = from - reader->first;
            size_t count = reader->slice->count;
            reader->at = before < (int64_t)count ? (size_t)before : count;
        }
    }
    return SPILL_OK;
}

/* ---- one array ------------------------------------------------------------------------------- */

static spill_code_t read_stretches(spill_transfer_reader_t *reader, spill_error_t *error)
{
    spill_stretch_t *stretch = &reader->stretch;
    while (!reader->ended && (!stretch->run || reader->at == stretch->run->count)) {
        reader->ended = stretch->last || stretch->next >= reader->to;
        if (reader->ended)
            break;
        SPILL_TRY(spill_stretch_read(reader->owner, stretch, error));
        reader->at = 0;
    }
    return SPILL_OK;
}

static void get_kept(spill_transfer_reader_t *reader, spill_element_t *element)
{
    reader->ended = reader->ended || reader->at == reader->kept->count;
    if (reader->ended)
        return;
    *element = spill_run_element(reader->kept, reader->at);
    reader->ended = element->seq >= reader->to;
}

spill_code_t spill_transfer_reader_get(spill_transfer_reader_t *reader, spill_element_t *element,
                                       spill_error_t *error)
{
    if (reader->kept) {
        get_kept(reader, element);
        return SPILL_OK;
    }
    spill_code_t code = reader->joins ? read_windows(reader, error) : read_stretches(reader, error);
    if (code != SPILL_OK)
        return spill_transfer_failed(reader->side, code, error);
    if (reader->ended)
        return SPILL_OK;
    if (reader->joins)
        *element = (spill_element_t){.seq = reader->first + (int64_t)reader->at,
                                     .value = reader->slice->elements[reader->at].value};
    else
        *element = spill_run_element(reader->stretch.run, reader->at);
    reader->ended = element->seq >= reader->to;
    return SPILL_OK;
}

spill_code_t spill_transfer_reader_fetch_head(spill_transfer_reader_t *reader, spill_error_t *error)
{
    spill_stretch_t *stretch = &reader->stretch;
    spill_request_t read = spill_owner_request(reader->owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    SPILL_TRY(spill_transfer_failed(
        reader->side, spill_owner_call(reader->owner, &read, &stretch->head, error), error));
    stretch->run = &stretch->head.run;
    stretch->last = true;
    while (reader->at < stretch->run->count &&
           stretch->run->entries[reader->at].seq < stretch->next)
        reader->at++;
    return SPILL_OK;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static spill_code_t count_head(const spill_transfer_side_t *side, const spill_owner_t *owner,
                               bool append_follows, spill_response_t *head, spill_count_t *count,
                               spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.append_follows = append_follows;
    SPILL_TRY(spill_owner_call(owner, &read, head, error));
    count->count = spill_state_count(spill_array_get_definition(side->array), &head->state);
    count->next = spill_state_end(&head->state);
    return SPILL_OK;
}

spill_code_t spill_transfer_count_source(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_side_t *source = &owner->transfer->source;
    const spill_value_t *value = owner->source.value;
    spill_count_t here = {0};
    spill_code_t code;
    if (owner->transfer->joins_windows) {
        spill_statistics_t statistics = {0};
        code = spill_bucket_statistics(source->array, value, NULL, NULL, &statistics, NULL, error);
        here.count = here.next = statistics.count;
    } else if (spill_transfer_keeps_elements(owner->transfer)) {
        SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
        code = count_head(source, &owner->source, false, &head, &here, error);
        owner->source_incarnation = head.state.incarnation;
        owner->source_rev = head.state.rev;
    } else {
        code = spill_array_count(source->array, value, &here, error);
    }
    owner->begin = 0;
    owner->end = here.next;
    owner->has = here.count;
    return spill_transfer_failed(source, code, error);
}

spill_code_t spill_transfer_count_target(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_side_t *target = &owner->transfer->target;
    const spill_value_t *value = owner->target.value;
    spill_count_t there = {0};
    spill_code_t code;
    if (spill_schema_of(spill_transfer_target(owner->transfer))->has_referenced_elements) {
        SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
        code = count_head(target, &owner->target, true, &head, &there, error);
        owner->base = head.state.op_count;
    } else {
        code = spill_array_op_base(target->array, value, &owner->base, error);
        if (code == SPILL_OK)
            code = spill_array_count(target->array, value, &there, error);
    }
    owner->next = there.next;
    owner->live = there.count;
    return spill_transfer_failed(target, code, error);
}
