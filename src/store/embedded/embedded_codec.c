/* Encode and decode the values of records. */
#include "store/embedded/embedded_codec.h"

#include "bson/element_fields.h"
#include "bson/key.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "store/content.h"

#include <string.h>

/*
 * The forms of a state record. TOP: it ends with a subset's top. GAPS: deleted numbers are runs.
 * LEASE: a page's record, which ends with its lease. Any of them + OPS: the newest operations
 * follow.
 */
enum {
    STATE_FORM = 1,
    STATE_FORM_TOP = 2,
    STATE_FORM_GAPS = 3,
    STATE_FORM_LEASE = 4,
    STATE_OPS = 16
};

static uint8_t form_of(const spill_state_t *state)
{
    if (state->gaps)
        return STATE_FORM_GAPS;
    if (state->lease > 0)
        return STATE_FORM_LEASE;
    return state->top.count > 0 ? STATE_FORM_TOP : STATE_FORM;
}

enum {
    FLAG_HEAD = 1,
    FLAG_SEALED = 2,
    FLAG_CLOSED = 4,
    FLAG_INTENT = 8,
    FLAG_DELETED = 16,
    FLAG_WINDOW_STATS = 32, /* layout bucket */
    FLAG_SUM = 64,          /* referenced elements */
    FLAG_EDIT = 128,        /* the intent is an edit */
    FLAG_ALL = 31 | FLAG_WINDOW_STATS | FLAG_SUM | FLAG_EDIT
};

/* ---- states ---------------------------------------------------------------------------------- */

static uint8_t flags_of(const spill_state_t *state, bool head)
{
    return (uint8_t)((head ? FLAG_HEAD : 0) | (state->sealed ? FLAG_SEALED : 0) |
                     (state->closed ? FLAG_CLOSED : 0) | (state->intent ? FLAG_INTENT : 0) |
                     (state->deleted.count > 0 ? FLAG_DELETED : 0) |
                     (state->window_stats.values > 0 ? FLAG_WINDOW_STATS : 0) |
                     (state->sum.values > 0 ? FLAG_SUM : 0) | (state->intent_edit ? FLAG_EDIT : 0));
}

static void encode_double(double value, spill_buffer_t *bytes)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int shift = 0; shift < 64; shift += 8)
        spill_buffer_append_byte(bytes, (uint8_t)(bits >> shift));
}

/* A sum of integers has a pair of zeros, which takes one byte. */
static void encode_sum(const spill_sum_t *sum, spill_buffer_t *bytes)
{
    bool pair = sum->high != 0 || sum->low != 0;
    spill_buffer_append_varint(bytes, (uint64_t)sum->values);
    spill_buffer_append_zigzag(bytes, sum->whole);
    spill_buffer_append_byte(bytes, pair ? 1 : 0);
    if (!pair)
        return;
    encode_double(sum->high, bytes);
    encode_double(sum->low, bytes);
}

static void encode_deleted(const spill_state_t *state, spill_buffer_t *bytes)
{
    int64_t last = state->first;
    spill_buffer_append_varint(bytes, state->deleted.count);
    for (size_t i = 0; i < state->deleted.run_count; i++)
        for (int64_t seq = state->deleted.runs[i].first; seq < state->deleted.runs[i].end; seq++) {
            spill_buffer_append_varint(bytes, (uint64_t)(seq - last));
            last = seq;
        }
}

/* Runs: the distance of each from the end of the one before, and its length. */
static void encode_gaps(const spill_state_t *state, spill_buffer_t *bytes)
{
    int64_t last = state->first;
    spill_buffer_append_varint(bytes, state->deleted.run_count);
    for (size_t i = 0; i < state->deleted.run_count; i++) {
        const spill_seq_run_t *run = &state->deleted.runs[i];
        spill_buffer_append_varint(bytes, (uint64_t)(run->first - last));
        spill_buffer_append_varint(bytes, (uint64_t)(run->end - run->first));
        last = run->end;
    }
}

/* ---- window statistics ----------------------------------------------------------------------- */

enum {
    WINDOW_STATS_REAL = 1,
    WINDOW_STATS_MIN_REAL = 2,
    WINDOW_STATS_MAX_REAL = 4,
    WINDOW_STATS_ALL = 7
};

static void encode_real(double value, spill_buffer_t *bytes)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    spill_buffer_append_be64(bytes, bits);
}

static void encode_amount(const spill_amount_t *amount, spill_buffer_t *bytes)
{
    if (amount->real)
        encode_real(amount->value, bytes);
    else
        spill_buffer_append_zigzag(bytes, amount->whole);
}

static void encode_window_stats(const spill_window_stats_t *window_stats, spill_buffer_t *bytes)
{
    spill_buffer_append_byte(bytes,
                             (uint8_t)((window_stats->real ? WINDOW_STATS_REAL : 0) |
                                       (window_stats->min.real ? WINDOW_STATS_MIN_REAL : 0) |
                                       (window_stats->max.real ? WINDOW_STATS_MAX_REAL : 0)));
    spill_buffer_append_varint(bytes, (uint64_t)window_stats->values);
    if (!window_stats->real)
        spill_buffer_append_zigzag(bytes, window_stats->whole);
    encode_real(window_stats->run, bytes);
    encode_amount(&window_stats->min, bytes);
    encode_amount(&window_stats->max, bytes);
}

static double decode_real(spill_reader_t *reader)
{
    uint64_t bits = spill_reader_be64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static spill_amount_t decode_amount(spill_reader_t *reader, bool real)
{
    if (real)
        return (spill_amount_t){.real = true, .value = decode_real(reader)};
    int64_t whole = spill_reader_zigzag(reader);
    return (spill_amount_t){.whole = whole, .value = (double)whole};
}

static void decode_window_stats(spill_reader_t *reader, spill_window_stats_t *window_stats)
{
    uint8_t flags = spill_reader_byte(reader);
    uint64_t values = spill_reader_varint(reader);
    if ((flags & ~WINDOW_STATS_ALL) != 0 || values == 0 || values > SPILL_NUMBER_MAX)
        reader->bad = 1;
    window_stats->real = (flags & WINDOW_STATS_REAL) != 0;
    window_stats->values = reader->bad ? 0 : (int64_t)values;
    window_stats->whole = window_stats->real ? 0 : spill_reader_zigzag(reader);
    window_stats->run = decode_real(reader);
    window_stats->min = decode_amount(reader, (flags & WINDOW_STATS_MIN_REAL) != 0);
    window_stats->max = decode_amount(reader, (flags & WINDOW_STATS_MAX_REAL) != 0);
}

/* ---- tops ------------------------------------------------------------------------------------ */

static void encode_top(const spill_top_t *top, spill_buffer_t *bytes)
{
    spill_buffer_append_varint(bytes, top->count);
    spill_buffer_append_varint(bytes, top->shown);
    for (size_t i = 0; i < top->count; i++) {
        const spill_top_entry_t *entry = &top->at[i];
        spill_buffer_append_varint(bytes, (uint64_t)entry->seq);
        spill_buffer_append_varint(bytes, entry->size_bytes);
        spill_buffer_append_byte(bytes, entry->rank.class);
        if (entry->rank.class == SPILL_RANK_NONE)
            continue;
        encode_real(entry->rank.value, bytes);
        spill_buffer_append_varint(bytes, entry->rank.rest);
    }
}

static void decode_top(spill_reader_t *reader, spill_top_t *top)
{
    uint64_t count = spill_reader_varint(reader), shown = spill_reader_varint(reader);
    if (count == 0 || count > SPILL_TOP_MAX || shown > count)
        reader->bad = 1;
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        uint64_t seq = spill_reader_varint(reader), size = spill_reader_varint(reader), rest = 0;
        spill_top_entry_t entry = {.rank = {.class = spill_reader_byte(reader)}};
        if (entry.rank.class != SPILL_RANK_NONE) {
            entry.rank.value = decode_real(reader);
            rest = spill_reader_varint(reader);
        }
        entry.seq = (int64_t)seq;
        entry.size_bytes = (uint32_t)size;
        entry.rank.rest = (uint16_t)rest;
        if (seq > SPILL_NUMBER_MAX || size > UINT32_MAX || rest > UINT16_MAX ||
            entry.rank.class > SPILL_RANK_DATE)
            reader->bad = 1;
        else
            spill_top_add(top, SPILL_TOP_MAX, &entry);
        if (top->count != i + 1 || top->at[i].seq != entry.seq)
            reader->bad = 1;
    }
    for (; !reader->bad && top->shown < shown; top->shown++)
        top->shown_bytes += top->at[top->shown].size_bytes;
}

/* ---- whole states ---------------------------------------------------------------------------- */

/*
 * Encode a count, or 0 if it is negative: a wrong count may fall below 0. The record stays
 * readable, and verify reports the count.
 */
static void encode_count(int64_t count, spill_buffer_t *bytes)
{
    spill_buffer_append_varint(bytes, count > 0 ? (uint64_t)count : 0);
}

void spill_state_encode(const spill_state_t *state, bool head, spill_buffer_t *bytes)
{
    uint8_t ops = state->newest_ops.size > 0 ? STATE_OPS : 0;
    spill_buffer_append_byte(bytes, (uint8_t)(form_of(state) + ops));
    spill_buffer_append_byte(bytes, flags_of(state, head));
    spill_buffer_append_zigzag(bytes, state->incarnation);
    spill_buffer_append_zigzag(bytes, state->rev - state->incarnation);
    encode_count(state->first, bytes);
    encode_count(state->live, bytes);
    encode_count(state->live_bytes, bytes);
    encode_count(state->op_count, bytes);
    if (head) {
        encode_count(state->pages, bytes);
        spill_buffer_append_zigzag(bytes, state->removed);
        encode_count(state->watermark, bytes);
        encode_count(state->total, bytes);
        encode_count(state->fields_bytes, bytes);
    } else {
        spill_buffer_append_zigzag(bytes, state->source_rev - state->incarnation);
    }
    if (state->intent) {
        spill_buffer_append_zigzag(bytes, state->intent_seq);
        spill_buffer_append_zigzag(bytes, state->intent_page);
    }
    if (state->intent_edit) {
        spill_buffer_append_zigzag(bytes, state->intent_source_rev - state->incarnation);
        encode_sum(&state->intent_value, bytes);
    }
    if (state->sum.values > 0)
        encode_sum(&state->sum, bytes);
    if (state->deleted.count > 0 && state->gaps)
        encode_gaps(state, bytes);
    else if (state->deleted.count > 0)
        encode_deleted(state, bytes);
    if (state->window_stats.values > 0)
        encode_window_stats(&state->window_stats, bytes);
    if (state->top.count > 0)
        encode_top(&state->top, bytes);
    if (state->lease > 0)
        spill_buffer_append_varint(bytes, (uint64_t)state->lease);
    spill_buffer_append(bytes, state->newest_ops.data, state->newest_ops.size);
}

/* Read a number from 0 to `most`. */
static int64_t read_at_most(spill_reader_t *reader, uint64_t most)
{
    uint64_t value = spill_reader_varint(reader);
    if (value > most)
        reader->bad = 1;
    return reader->bad ? 0 : (int64_t)value;
}

static int64_t read_count(spill_reader_t *reader)
{
    return read_at_most(reader, SPILL_NUMBER_MAX);
}

/* Read a number from -most to `most`. */
static int64_t read_signed(spill_reader_t *reader, int64_t most)
{
    int64_t value = spill_reader_zigzag(reader);
    if (value > most || value < -most)
        reader->bad = 1;
    return reader->bad ? 0 : value;
}

/* Read an incarnation, which is never negative, because keys sort by it. */
static int64_t read_incarnation(spill_reader_t *reader)
{
    int64_t incarnation = read_signed(reader, SPILL_MOMENT_MAX);
    if (incarnation < 0)
        reader->bad = 1;
    return reader->bad ? 0 : incarnation;
}

/* Read a time that is stored as its distance from `base`. */
static int64_t read_moment_after(spill_reader_t *reader, int64_t base)
{
    int64_t sum;
    if (__builtin_add_overflow(base, spill_reader_zigzag(reader), &sum) || sum > SPILL_MOMENT_MAX ||
        sum < -SPILL_MOMENT_MAX) {
        reader->bad = 1;
        return 0;
    }
    return sum;
}

static void decode_deleted(spill_reader_t *reader, spill_state_t *state)
{
    int64_t count = read_count(reader);
    int64_t last = state->first;
    if (count > reader->end - reader->at) /* each has at least one byte */
        reader->bad = 1;
    for (int64_t i = 0; i < count && !reader->bad; i++) {
        int64_t step = read_count(reader);
        if ((step == 0 && i > 0) || last > SPILL_NUMBER_MAX)
            reader->bad = 1;
        last += step;
        if (!reader->bad)
            spill_seqs_insert(&state->deleted, last);
    }
    if (last >= spill_state_end(state))
        reader->bad = 1;
}

static void decode_gaps(spill_reader_t *reader, spill_state_t *state)
{
    int64_t count = read_count(reader);
    int64_t last = state->first;
    if (count > reader->end - reader->at)
        reader->bad = 1;
    for (int64_t i = 0; i < count && !reader->bad; i++) {
        int64_t step = read_count(reader), numbers = read_count(reader);
        if ((step == 0 && i > 0) || numbers == 0 || last > SPILL_NUMBER_MAX)
            reader->bad = 1;
        last += step;
        if (!reader->bad)
            spill_seqs_insert_run(&state->deleted, last, last + numbers);
        last += numbers;
    }
    if (last > spill_state_end(state))
        reader->bad = 1;
}

static double decode_double(spill_reader_t *reader)
{
    uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8)
        bits |= (uint64_t)spill_reader_byte(reader) << shift;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void decode_sum(spill_reader_t *reader, spill_sum_t *sum)
{
    sum->values = read_count(reader);
    sum->whole = spill_reader_zigzag(reader);
    uint8_t pair = spill_reader_byte(reader);
    if (pair > 1)
        reader->bad = 1;
    if (pair != 1)
        return;
    sum->high = decode_double(reader);
    sum->low = decode_double(reader);
}

static void decode_head(spill_reader_t *reader, spill_state_t *state)
{
    state->pages = read_count(reader);
    state->removed = read_signed(reader, SPILL_NUMBER_MAX);
    state->watermark = read_count(reader);
    state->total = read_count(reader);
    state->fields_bytes = read_at_most(reader, INT32_MAX);
}

/* They are the rest of the record. */
static void decode_newest_ops(spill_reader_t *reader, spill_state_t *state)
{
    size_t size = (size_t)(reader->end - reader->at);
    int64_t count = reader->bad ? 0 : spill_op_list_count(reader->at, size);
    if (count == 0 || count > state->op_count) {
        reader->bad = 1;
        return;
    }
    spill_buffer_append(&state->newest_ops, spill_reader_bytes(reader, size), size);
}

bool spill_state_decode(const uint8_t *data, size_t size, bool head, spill_state_t *state)
{
    spill_reader_t reader = spill_reader_of(data, size);
    spill_state_clear(state);
    uint8_t form = spill_reader_byte(&reader);
    uint8_t flags = spill_reader_byte(&reader);
    bool has_ops = (form & STATE_OPS) != 0;
    form &= (uint8_t)~STATE_OPS;
    if (form < STATE_FORM || form > STATE_FORM_LEASE || (flags & ~FLAG_ALL) != 0 ||
        ((flags & FLAG_HEAD) != 0) != head || (head && form == STATE_FORM_LEASE))
        return false;
    state->sealed = (flags & FLAG_SEALED) != 0;
    state->closed = (flags & FLAG_CLOSED) != 0;
    state->intent = (flags & FLAG_INTENT) != 0;
    state->incarnation = read_incarnation(&reader);
    state->rev = read_moment_after(&reader, state->incarnation);
    state->first = read_count(&reader);
    state->live = read_at_most(&reader, SPILL_DOCUMENT_BYTES_MAX);
    state->live_bytes = read_at_most(&reader, INT32_MAX);
    state->op_count = read_count(&reader);
    if (head)
        decode_head(&reader, state);
    else
        state->source_rev = read_moment_after(&reader, state->incarnation);
    if (state->intent) {
        state->intent_seq = read_signed(&reader, SPILL_NUMBER_MAX);
        state->intent_page = read_signed(&reader, SPILL_NUMBER_MAX);
        reader.bad |= state->intent_seq < 0 || state->intent_page < 0;
    }
    state->intent_edit = (flags & FLAG_EDIT) != 0;
    reader.bad |= state->intent_edit && !state->intent;
    if (state->intent_edit) {
        state->intent_source_rev = read_moment_after(&reader, state->incarnation);
        decode_sum(&reader, &state->intent_value);
    }
    if (flags & FLAG_SUM)
        decode_sum(&reader, &state->sum);
    state->gaps = form == STATE_FORM_GAPS;
    if ((flags & FLAG_DELETED) && state->gaps)
        decode_gaps(&reader, state);
    else if (flags & FLAG_DELETED)
        decode_deleted(&reader, state);
    if (flags & FLAG_WINDOW_STATS)
        decode_window_stats(&reader, &state->window_stats);
    if (form == STATE_FORM_TOP)
        decode_top(&reader, &state->top);
    if (form == STATE_FORM_LEASE) {
        state->lease = read_at_most(&reader, SPILL_MOMENT_MAX);
        reader.bad |= state->lease == 0;
    }
    if (has_ops)
        decode_newest_ops(&reader, state);
    bool good = spill_reader_ended(&reader);
    if (!good)
        spill_state_clear(state);
    state->present = good;
    return good;
}

/* ---- operations and elements ----------------------------------------------------------------- */

void spill_op_encode(const spill_op_entry_t *entry, spill_buffer_t *bytes)
{
    spill_buffer_append_varint(bytes, (uint64_t)entry->seq);
    spill_buffer_append_varint(bytes, (uint64_t)entry->count);
    spill_buffer_append(bytes, entry->id, entry->id_bytes);
}

bool spill_op_decode(const uint8_t *data, size_t size, spill_op_entry_t *entry)
{
    spill_reader_t reader = spill_reader_of(data, size);
    *entry = (spill_op_entry_t){.seq = read_count(&reader)};
    entry->count = read_count(&reader);
    size_t id_bytes = (size_t)(reader.end - reader.at);
    if (reader.bad || id_bytes == 0 || id_bytes > SPILL_OP_ID_MAX)
        return false;
    entry->id_bytes = (uint8_t)id_bytes;
    memcpy(entry->id, reader.at, id_bytes);
    return true;
}

void spill_op_list_add(spill_buffer_t *list, const spill_op_entry_t *entry)
{
    spill_buffer_append_varint(list, (uint64_t)entry->seq);
    spill_buffer_append_varint(list, (uint64_t)entry->count);
    spill_buffer_append_byte(list, entry->id_bytes);
    spill_buffer_append(list, entry->id, entry->id_bytes);
}

/* Read an operation of a list; `id` borrows. */
static void next_op(spill_reader_t *reader, spill_op_entry_t *entry, const uint8_t **id)
{
    entry->seq = read_count(reader);
    entry->count = read_count(reader);
    entry->id_bytes = spill_reader_byte(reader);
    reader->bad |= entry->id_bytes == 0 || entry->id_bytes > SPILL_OP_ID_MAX;
    *id = spill_reader_bytes(reader, entry->id_bytes);
}

int64_t spill_op_list_count(const uint8_t *data, size_t size)
{
    spill_reader_t reader = spill_reader_of(data, size);
    spill_op_entry_t entry;
    const uint8_t *id;
    int64_t count = 0;
    for (; !reader.bad && reader.at < reader.end; count++)
        next_op(&reader, &entry, &id);
    return !reader.bad && count <= SPILL_OPS_TOGETHER ? count : 0;
}

bool spill_op_list_get(const uint8_t *data, size_t size, int64_t end, int64_t ordinal,
                       spill_op_entry_t *entry)
{
    spill_reader_t reader = spill_reader_of(data, size);
    const uint8_t *id = NULL;
    int64_t first = end - spill_op_list_count(data, size);
    if (ordinal < first || ordinal >= end)
        return false;
    for (int64_t i = first; i <= ordinal; i++)
        next_op(&reader, entry, &id);
    entry->ordinal = ordinal;
    memcpy(entry->id, id, entry->id_bytes);
    return true;
}

void spill_session_encode(const spill_session_entry_t *entry, spill_buffer_t *bytes)
{
    spill_buffer_append_varint(bytes, (uint64_t)entry->txn);
    spill_buffer_append_varint(bytes, (uint64_t)entry->at_us);
    for (int32_t i = 0; i < entry->run_count; i++) {
        spill_buffer_append_varint(bytes, (uint64_t)entry->runs[i].first);
        spill_buffer_append_varint(bytes, (uint64_t)entry->runs[i].last);
    }
}

bool spill_session_decode(const uint8_t *data, size_t size, spill_session_entry_t *entry)
{
    spill_reader_t reader = spill_reader_of(data, size);
    int64_t next = 0;
    entry->txn = read_at_most(&reader, INT64_MAX);
    entry->at_us = read_at_most(&reader, SPILL_MOMENT_MAX);
    for (entry->run_count = 0; !reader.bad && reader.at < reader.end; entry->run_count++) {
        int64_t first = read_at_most(&reader, INT32_MAX), last = read_at_most(&reader, INT32_MAX);
        if (entry->run_count == SPILL_SESSION_RUNS_MAX || first < next || last < first)
            return false;
        entry->runs[entry->run_count] = (spill_session_run_t){(int32_t)first, (int32_t)last};
        next = last + 2; /* adjacent runs are one */
    }
    return spill_reader_ended(&reader) && entry->run_count > 0;
}

bool spill_session_number_decode(const uint8_t *data, size_t size, int64_t *number)
{
    spill_reader_t reader = spill_reader_of(data, size);
    *number = read_count(&reader);
    return spill_reader_ended(&reader);
}

bool spill_element_decode(const spill_definition_t *definition, const uint8_t *data, size_t size,
                          spill_value_t *value)
{
    if (size == 0 || size - 1 > UINT32_MAX) {
        *value = (spill_value_t){0};
        return false;
    }
    *value = (spill_value_t){.data = data + 1, .size_bytes = (uint32_t)(size - 1), .type = data[0]};
    bool any = !spill_schema_of(definition)->has_referenced_elements ||
               spill_is_whole_element(definition->id_field);
    if (!any && value->type != BSON_TYPE_DOCUMENT)
        return false;
    return spill_value_valid(value);
}

/* ---- documents ------------------------------------------------------------------------------- */

bool spill_catalog_decode(const uint8_t *data, size_t size, bson_t *document)
{
    return data != NULL && size > 0 && bson_init_static(document, data, size) &&
           spill_document_valid(document);
}

/* Is this the owner key of the value? */
static bool has_owner_key(const spill_value_t *id, const uint8_t *owner, size_t owner_bytes)
{
    spill_buffer_t key = SPILL_BUFFER_INIT;
    bool same = spill_owner_key(id, &key, NULL) == SPILL_OK && key.size == owner_bytes &&
                memcmp(key.data, owner, owner_bytes) == 0;
    spill_buffer_release(&key);
    return same;
}

bool spill_fields_decode(const uint8_t *data, size_t size, const uint8_t *owner, size_t owner_bytes,
                         bson_t *fields)
{
    const char *name;
    spill_value_t id;
    /* Elements of an unmanaged array may have the deepest nesting, two levels below the fields. */
    if (data == NULL || size == 0 || !bson_init_static(fields, data, size) ||
        !spill_answer_valid(fields))
        return false;
    spill_fields_t at = spill_fields_of(data);
    return spill_fields_next(&at, &name, &id) && strcmp(name, "_id") == 0 &&
           has_owner_key(&id, owner, owner_bytes);
}
