/* A span: the records of consecutive owners in memory, and one owner's records as an engine. */
#include "store/embedded/read_ahead.h"

#include "store/embedded/embedded.h"
#include "util/buffer.h"
#include "util/error.h"

#include <assert.h>
#include <string.h>

/* ---- fill ------------------------------------------------------------------------------------ */

static size_t used_bytes(const spill_span_t *span)
{
    return span->bytes.size + span->record_count * sizeof *span->records +
           span->owner_count * sizeof *span->owners;
}

static spill_span_record_t add_bytes(spill_span_t *span, const spill_kv_iter_t *iter)
{
    spill_span_record_t record = {.key = (uint32_t)span->bytes.size,
                                  .key_bytes = (uint32_t)iter->key_bytes,
                                  .value = (uint32_t)(span->bytes.size + iter->key_bytes),
                                  .value_bytes = (uint32_t)iter->value_bytes};
    spill_buffer_append(&span->bytes, iter->key, iter->key_bytes);
    if (iter->value_bytes > 0)
        spill_buffer_append(&span->bytes, iter->value, iter->value_bytes);
    return record;
}

static void add_record(spill_span_t *span, const spill_kv_iter_t *iter)
{
    if (span->record_count == span->record_capacity) {
        span->record_capacity = span->record_capacity ? 2 * span->record_capacity : 512;
        span->records = bson_realloc(span->records, span->record_capacity * sizeof *span->records);
    }
    span->records[span->record_count++] = add_bytes(span, iter);
}

static spill_span_owner_t *add_owner(spill_span_t *span, size_t key_bytes)
{
    if (span->owner_count == span->owner_capacity) {
        span->owner_capacity = span->owner_capacity ? 2 * span->owner_capacity : 128;
        span->owners = bson_realloc(span->owners, span->owner_capacity * sizeof *span->owners);
    }
    spill_span_owner_t *owner = &span->owners[span->owner_count++];
    *owner = (spill_span_owner_t){.first = (uint32_t)span->record_count,
                                  .key_bytes = (uint32_t)key_bytes};
    return owner;
}

/* Remove the owners from number `count` on. Their bytes stay until the next fill. */
static void cut_owners(spill_span_t *span, size_t count)
{
    if (count == span->owner_count)
        return;
    span->record_count = span->owners[count].first;
    span->owner_count = count;
    span->ends = false;
}

const uint8_t *spill_span_owner_key(const spill_span_t *span, const spill_span_owner_t *owner)
{
    return span->bytes.data + span->records[owner->first].key + 4;
}

static bool is_of_owner(const spill_span_t *span, const spill_span_owner_t *owner,
                        const spill_kv_iter_t *iter)
{
    return iter->key_bytes > 4 + owner->key_bytes &&
           memcmp(iter->key + 4, spill_span_owner_key(span, owner), owner->key_bytes) == 0;
}

void spill_embedded_pass_owner(spill_kv_iter_t *iter, spill_record_key_t *owner)
{
    spill_record_key_kind(owner, SPILL_RECORD_END);
    iter->ops->seek(iter, owner->data, owner->size);
    while (iter->valid && spill_record_key_kind_of(owner, iter->key, iter->key_bytes) != 0)
        iter->ops->next(iter); /* of an unknown kind */
}

/* Go behind all array's records of the owner `after`. */
static void seek_records(spill_kv_iter_t *iter, const spill_span_range_t *range)
{
    spill_record_key_t key;
    spill_record_key_init(&key, range->array_id, range->after, range->after_bytes);
    if (range->after_bytes > 0)
        spill_embedded_pass_owner(iter, &key);
    else
        iter->ops->seek(iter, key.data, key.size);
}

/* Go behind the other fields of the owner `after`. */
static void seek_fields(spill_kv_iter_t *iter, const spill_span_range_t *range)
{
    spill_record_key_t key;
    spill_record_key_init(&key, range->collection_id, range->after, range->after_bytes);
    iter->ops->seek(iter, key.data, key.size);
    if (range->after_bytes > 0 && iter->valid && iter->key_bytes == key.size &&
        memcmp(iter->key, key.data, key.size) == 0)
        iter->ops->next(iter);
}

static bool has_prefix(const spill_kv_iter_t *iter, const uint8_t prefix[4])
{
    return iter->key_bytes >= 4 && memcmp(iter->key, prefix, 4) == 0;
}

/* Read the array's records. */
static void fill_records(spill_span_t *span, spill_kv_iter_t *iter, const spill_span_range_t *range)
{
    uint8_t prefix[4];
    spill_span_owner_t *owner = NULL;
    size_t heads = 0;
    bool whole = true; /* the last owner's records are all there */
    spill_id_prefix(prefix, range->array_id);
    seek_records(iter, range);
    for (; iter->valid && has_prefix(iter, prefix); iter->ops->next(iter)) {
        bool same = owner && is_of_owner(span, owner, iter);
        if (!same) {
            size_t length = spill_owner_key_length(iter->key + 4, iter->key_bytes - 4);
            if (length == 0 || length > SPILL_OWNER_KEY_MAX || iter->key_bytes == 4 + length)
                continue; /* not an owner's record */
            if (heads == range->heads_max)
                return;
            owner = add_owner(span, length);
        }
        whole = used_bytes(span) + iter->key_bytes + iter->value_bytes <= span->bytes_most &&
                (range->owner_records_max == 0 || owner->count < range->owner_records_max);
        if (!whole)
            break;
        if (iter->key_bytes == 5 + owner->key_bytes &&
            iter->key[4 + owner->key_bytes] == SPILL_RECORD_HEAD) {
            owner->has_head = true;
            heads++;
        }
        add_record(span, iter);
        owner->count++;
    }
    span->ends = whole && spill_kv_iter_stop(iter, NULL) == SPILL_OK;
    if (!span->ends && span->owner_count > 0)
        cut_owners(span, span->owner_count - 1);
}

static bool is_owner_key(const spill_kv_iter_t *iter)
{
    return spill_owner_key_length(iter->key + 4, iter->key_bytes - 4) == iter->key_bytes - 4;
}

/* Add the fields if they are of the owner `at`, or of one behind it, which `at` becomes. */
static bool add_fields(spill_span_t *span, const spill_kv_iter_t *iter, size_t bytes_most,
                       size_t *at)
{
    int order = -1;
    while (*at < span->owner_count &&
           (order = spill_bytes_compare(spill_span_owner_key(span, &span->owners[*at]),
                                        span->owners[*at].key_bytes, iter->key + 4,
                                        iter->key_bytes - 4)) < 0)
        ++*at;
    if (order != 0) /* of an owner that has no record in the array */
        return is_owner_key(iter);
    if (used_bytes(span) + iter->key_bytes + iter->value_bytes > bytes_most)
        return false;
    span->owners[*at].fields = add_bytes(span, iter);
    span->owners[(*at)++].has_fields = true;
    return true;
}

/*
 * Read the other fields of the span's owners, up to the last one, or to the end of the collection.
 * The span ends before a key that is not an owner's.
 */
static void fill_fields(spill_span_t *span, spill_kv_iter_t *iter, const spill_span_range_t *range)
{
    uint8_t prefix[4];
    size_t at = 0, bytes_most = used_bytes(span) + span->bytes_most;
    bool good = true;
    spill_id_prefix(prefix, range->collection_id);
    for (seek_fields(iter, range);
         good && iter->valid && (at < span->owner_count || span->ends) && has_prefix(iter, prefix);
         iter->ops->next(iter))
        good = add_fields(span, iter, bytes_most, &at);
    if (good && spill_kv_iter_stop(iter, NULL) == SPILL_OK)
        return;
    cut_owners(span, at);
    span->ends = false;
}

void spill_span_fill(spill_span_t *span, spill_kv_t *kv, const spill_span_range_t *range)
{
    if (span->bytes_most == 0)
        span->bytes_most = SPILL_SPAN_BYTES_MIN;
    spill_buffer_clear(&span->bytes);
    span->record_count = span->owner_count = 0;
    span->ends = false;
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    fill_records(span, iter, range);
    if (range->collection_id != 0)
        fill_fields(span, iter, range);
    iter->ops->free(iter);
    if (span->owner_count > 0 && span->bytes_most < SPILL_SPAN_BYTES)
        span->bytes_most *= 2;
    else if (span->owner_count == 0 && span->bytes_most > SPILL_SPAN_BYTES_MIN)
        span->bytes_most /= 2;
}

void spill_span_release(spill_span_t *span)
{
    spill_buffer_release(&span->bytes);
    bson_free(span->records);
    bson_free(span->owners);
    *span = (spill_span_t){.bytes_most = 0};
}

/* ---- one owner's records --------------------------------------------------------------------- */

static const uint8_t *first_key(const spill_owner_records_t *records)
{
    return records->span->bytes.data + records->span->records[records->owner->first].key;
}

/* Is it a key of the owner in its array? Otherwise it is the key of its other fields. */
static bool is_in_array(const spill_owner_records_t *records, const uint8_t *key, size_t key_bytes)
{
    const uint8_t *first = first_key(records);
    assert(key_bytes >= 4 + records->owner->key_bytes &&
           memcmp(key + 4, first + 4, records->owner->key_bytes) == 0);
    (void)key_bytes;
    return memcmp(key, first, 4) == 0;
}

/* The first of the array's records at or behind the key. */
static size_t find_place(const spill_owner_records_t *records, const uint8_t *key, size_t key_bytes)
{
    const spill_span_record_t *first = &records->span->records[records->owner->first];
    size_t prefix = 4 + records->owner->key_bytes;
    size_t low = 0, high = records->owner->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const uint8_t *other = records->span->bytes.data + first[middle].key;
        if (spill_bytes_compare(other + prefix, first[middle].key_bytes - prefix, key + prefix,
                                key_bytes - prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Place the iterator at a record, or behind the records that it can step to. */
static void set_place(spill_owner_iter_t *iter, size_t at)
{
    const spill_owner_records_t *records = iter->of;
    const spill_span_owner_t *owner = records->owner;
    const spill_span_record_t *record = &owner->fields;
    if (at < owner->count)
        record = &records->span->records[owner->first + at];
    iter->at = at;
    iter->base.key = records->span->bytes.data + record->key;
    iter->base.key_bytes = record->key_bytes;
    iter->base.value = records->span->bytes.data + record->value;
    iter->base.value_bytes = record->value_bytes;
}

static void seek(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    spill_owner_iter_t *iter = (spill_owner_iter_t *)base;
    bool in_array = is_in_array(iter->of, key, key_bytes);
    size_t at = in_array ? find_place(iter->of, key, key_bytes) : iter->of->owner->count;
    base->valid = in_array ? at < iter->of->owner->count : iter->of->owner->has_fields;
    if (base->valid)
        set_place(iter, at);
}

static void next(spill_kv_iter_t *base)
{
    spill_owner_iter_t *iter = (spill_owner_iter_t *)base;
    base->valid = iter->at + 1 < iter->of->owner->count;
    if (base->valid)
        set_place(iter, iter->at + 1);
}

static void seek_before(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    spill_owner_iter_t *iter = (spill_owner_iter_t *)base;
    size_t at = is_in_array(iter->of, key, key_bytes) ? find_place(iter->of, key, key_bytes) : 0;
    base->valid = at > 0;
    if (base->valid)
        set_place(iter, at - 1);
}

static spill_code_t status(spill_kv_iter_t *base, spill_error_t *error)
{
    (void)base;
    (void)error;
    return SPILL_OK;
}

static void free_iter(spill_kv_iter_t *base)
{
    (void)base;
}

static spill_kv_iter_t *iterate(spill_kv_t *base)
{
    static const spill_kv_iter_ops_t ops = {.seek = seek,
                                            .next = next,
                                            .seek_before = seek_before,
                                            .status = status,
                                            .free = free_iter};
    spill_owner_records_t *records = (spill_owner_records_t *)base;
    records->iter = (spill_owner_iter_t){.base = {.ops = &ops}, .of = records};
    return &records->iter.base;
}

static spill_code_t get(spill_kv_t *base, const uint8_t *key, size_t key_bytes,
                        spill_buffer_t *value, bool *found, spill_error_t *error)
{
    const spill_owner_records_t *records = (const spill_owner_records_t *)base;
    spill_owner_iter_t iter = {.of = records};
    (void)error;
    spill_buffer_clear(value);
    seek(&iter.base, key, key_bytes);
    *found = iter.base.valid && iter.base.key_bytes == key_bytes &&
             memcmp(iter.base.key, key, key_bytes) == 0;
    if (*found && iter.base.value_bytes > 0)
        spill_buffer_append(value, iter.base.value, iter.base.value_bytes);
    return SPILL_OK;
}

spill_kv_t *spill_owner_records_open(spill_owner_records_t *records, const spill_span_t *span,
                                     const spill_span_owner_t *owner)
{
    static const spill_kv_ops_t ops = {.get = get, .iterate = iterate};
    records->base = (spill_kv_t){.ops = &ops};
    records->span = span;
    records->owner = owner;
    return &records->base;
}
