#include "store/summary.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/state.h"

#include <math.h>
#include <string.h>

/* ---- ranks ----------------------------------------------------------------------------------- */

static spill_rank_t rank_of_integer(spill_rank_class_t class, int64_t integer)
{
    double value = (double)integer;
    if (value >= 0x1p63 || (int64_t)value > integer) { /* rounded up: the double before it */
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits += value > 0 ? UINT64_MAX : 1;
        memcpy(&value, &bits, sizeof bits);
    }
    return (spill_rank_t){
        .value = value, .rest = (uint16_t)(integer - (int64_t)value), .class = (uint8_t) class};
}

spill_rank_t spill_rank_of_value(const spill_value_t *value)
{
    switch (value->type) {
    case BSON_TYPE_INT32:
        return rank_of_integer(SPILL_RANK_NUMBER, spill_value_int32(value));
    case BSON_TYPE_INT64:
        return rank_of_integer(SPILL_RANK_NUMBER, spill_value_int64(value));
    case BSON_TYPE_DATE_TIME:
        return rank_of_integer(SPILL_RANK_DATE, spill_value_int64(value));
    case BSON_TYPE_DOUBLE:
        if (!isnan(spill_value_double(value)))
            return (spill_rank_t){.value = spill_value_double(value) + 0.0, /* -0 is 0 */
                                  .class = SPILL_RANK_NUMBER};
        break;
    default:
        break;
    }
    return (spill_rank_t){0};
}

spill_rank_t spill_rank_of(const spill_definition_t *definition, const spill_value_t *element)
{
    spill_value_t value;
    if (definition->sort_field[0] == '\0' ||
        !spill_value_at(element, definition->sort_field, &value))
        return (spill_rank_t){0};
    return spill_rank_of_value(&value);
}

static bool is_integer(const spill_rank_t *rank)
{
    return rank->value >= -0x1p63 && rank->value < 0x1p63 &&
           rank->value == (double)(int64_t)rank->value;
}

void spill_rank_append(const spill_rank_t *rank, bson_t *document, const char *key)
{
    if (rank->class == SPILL_RANK_NONE)
        return;
    if (rank->class == SPILL_RANK_DATE)
        BSON_APPEND_DATE_TIME(document, key, (int64_t)rank->value + rank->rest);
    else if (is_integer(rank))
        BSON_APPEND_INT64(document, key, (int64_t)rank->value + rank->rest);
    else
        BSON_APPEND_DOUBLE(document, key, rank->value);
}

void spill_rank_key(const spill_rank_t *rank, uint8_t key[SPILL_RANK_KEY_BYTES])
{
    uint64_t bits;
    memcpy(&bits, &rank->value, sizeof bits);
    bits = bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
    *key++ = (uint8_t)~rank->class;
    for (int shift = 56; shift >= 0; shift -= 8)
        *key++ = (uint8_t) ~(bits >> shift);
    *key++ = (uint8_t) ~(rank->rest >> 8);
    *key = (uint8_t)~rank->rest;
}

int spill_top_compare(const spill_top_entry_t *left, const spill_top_entry_t *right)
{
    const spill_rank_t *a = &left->rank, *b = &right->rank;
    int order = (a->class > b->class) - (a->class < b->class);
    if (order == 0)
        order = (a->value > b->value) - (a->value < b->value);
    if (order == 0)
        order = (a->rest > b->rest) - (a->rest < b->rest);
    return order != 0 ? order : (left->seq > right->seq) - (left->seq < right->seq);
}

/* ---- entries --------------------------------------------------------------------------------- */

spill_top_entry_t spill_top_entry_of(const spill_definition_t *definition, int64_t seq,
                                     const spill_value_t *element)
{
    return (spill_top_entry_t){
        .seq = seq, .size_bytes = element->size_bytes, .rank = spill_rank_of(definition, element)};
}

/* The index of the first entry that does not rank above this one. */
static size_t seek(const spill_top_t *top, const spill_top_entry_t *entry)
{
    size_t low = 0, high = top->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spill_top_compare(&top->at[middle], entry) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void spill_top_add(spill_top_t *top, size_t most, const spill_top_entry_t *entry)
{
    size_t place = seek(top, entry);
    if (place >= most || (place < top->count && top->at[place].seq == entry->seq))
        return;
    if (top->count >= most) {
        top->count = most - 1;
    } else if (top->count == top->capacity) {
        top->capacity = top->capacity < 4 ? 4 : top->capacity * 2;
        top->at = bson_realloc(top->at, top->capacity * sizeof *top->at);
    }
    memmove(top->at + place + 1, top->at + place, (top->count - place) * sizeof *top->at);
    top->at[place] = *entry;
    top->count++;
}

void spill_top_add_all(spill_top_t *top, size_t most, const spill_top_t *others)
{
    for (size_t i = 0; i < others->count; i++)
        spill_top_add(top, most, &others->at[i]);
}

void spill_top_note(spill_top_t *top, const spill_definition_t *definition, const spill_run_t *run)
{
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_top_entry_t entry = spill_top_entry_of(definition, element.seq, &element.value);
        spill_top_add(top, SIZE_MAX, &entry);
    }
}

static bool is_among(const spill_top_t *top, size_t first, int64_t seq)
{
    for (size_t i = 0; i < first; i++)
        if (top->at[i].seq == seq)
            return true;
    return false;
}

bool spill_top_contains(const spill_top_t *top, int64_t seq)
{
    return is_among(top, top->count, seq);
}

bool spill_top_shows(const spill_top_t *top, int64_t seq)
{
    return is_among(top, top->shown, seq);
}

static void keep(spill_top_t *top, int64_t low, int64_t without)
{
    size_t kept = 0;
    for (size_t i = 0; i < top->count; i++)
        if (top->at[i].seq >= low && top->at[i].seq != without)
            top->at[kept++] = top->at[i];
    top->count = kept;
}

void spill_top_remove(spill_top_t *top, int64_t seq)
{
    keep(top, INT64_MIN, seq);
}

void spill_top_drop_below(spill_top_t *top, int64_t seq)
{
    keep(top, seq, INT64_MIN);
}

bool spill_top_equal(const spill_top_t *left, const spill_top_t *right)
{
    bool same = left->count == right->count && left->shown == right->shown;
    for (size_t i = 0; same && i < left->count; i++)
        same = spill_top_compare(&left->at[i], &right->at[i]) == 0 &&
               left->at[i].size_bytes == right->at[i].size_bytes;
    return same;
}

void spill_top_copy(const spill_top_t *from, spill_top_t *to)
{
    if (from->count > to->capacity) {
        to->at = bson_realloc(to->at, from->count * sizeof *to->at);
        to->capacity = from->count;
    }
    if (from->count > 0)
        memcpy(to->at, from->at, from->count * sizeof *to->at);
    to->count = from->count;
    to->shown = from->shown;
    to->shown_bytes = from->shown_bytes;
}

void spill_top_clear(spill_top_t *top)
{
    top->count = 0;
    top->shown = 0;
    top->shown_bytes = 0;
}

void spill_top_release(spill_top_t *top)
{
    bson_free(top->at);
    *top = (spill_top_t){0};
}

/* ---- shown elements -------------------------------------------------------------------------- */

int64_t spill_top_room(const spill_definition_t *definition)
{
    return spill_schema_of(definition)->has_top ? definition->bounds.head_bytes_max / 2 : 0;
}

void spill_top_show(spill_top_t *top, const spill_definition_t *definition, size_t most)
{
    int64_t room = spill_top_room(definition);
    top->shown = 0;
    top->shown_bytes = 0;
    for (; top->shown < top->count && top->shown < most; top->shown++) {
        int64_t bytes = top->shown_bytes + top->at[top->shown].size_bytes;
        if (bytes + spill_array_framing((int64_t)top->shown + 1) > room)
            break;
        top->shown_bytes = bytes;
    }
}

/* ---- in documents ---------------------------------------------------------------------------- */

void spill_top_append(const spill_top_t *top, const char *name, bson_t *document)
{
    bson_t array, entry;
    bson_append_array_begin(document, name, -1, &array);
    for (size_t i = 0; i < top->count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        bson_append_document_begin(&array, key, -1, &entry);
        BSON_APPEND_INT64(&entry, SPILL_STORED_TOP_SEQ, top->at[i].seq);
        BSON_APPEND_INT64(&entry, SPILL_STORED_TOP_SIZE, top->at[i].size_bytes);
        spill_rank_append(&top->at[i].rank, &entry, SPILL_STORED_TOP_RANK);
        bson_append_document_end(&array, &entry);
    }
    bson_append_array_end(document, &array);
}

static bool read_entry(const spill_value_t *value, spill_top_entry_t *entry)
{
    spill_value_t seq, size, key;
    *entry = (spill_top_entry_t){0};
    if (!spill_value_at(value, SPILL_STORED_TOP_SEQ, &seq) || seq.type != BSON_TYPE_INT64 ||
        !spill_value_at(value, SPILL_STORED_TOP_SIZE, &size) || size.type != BSON_TYPE_INT64)
        return false;
    entry->seq = spill_value_int64(&seq);
    entry->size_bytes = (uint32_t)spill_value_int64(&size);
    if (spill_value_at(value, SPILL_STORED_TOP_RANK, &key))
        entry->rank = spill_rank_of_value(&key);
    return entry->seq >= 0 && entry->size_bytes == spill_value_int64(&size);
}

bool spill_top_read(const spill_value_t *value, size_t shown, spill_top_t *top)
{
    spill_top_clear(top);
    if (value->type != BSON_TYPE_ARRAY)
        return false;
    spill_fields_t fields = spill_fields_of(value->data);
    const char *name;
    spill_value_t field;
    while (spill_fields_next(&fields, &name, &field)) {
        spill_top_entry_t entry;
        size_t count = top->count;
        if (field.type != BSON_TYPE_DOCUMENT || !read_entry(&field, &entry))
            return false;
        spill_top_add(top, SIZE_MAX, &entry);
        if (top->count != count + 1 || top->at[count].seq != entry.seq)
            return false;
    }
    for (; top->shown < shown && top->shown < top->count; top->shown++)
        top->shown_bytes += top->at[top->shown].size_bytes;
    return shown <= top->count;
}
