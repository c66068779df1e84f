/* What a scan keeps of many values in bounded memory: distributions, and the largest owners. */
#include "tools/scan/sketch.h"

#include <bson/bson.h>
#include <string.h>

/* ---- distribution ---------------------------------------------------------------------------- */

#define EXACT 128U /* values below have a bucket each */
#define STEPS 64U  /* buckets between one power of two and the next */
#define ROUND 64U  /* memory grows by this many buckets */

static uint32_t bucket_of(uint64_t value)
{
    if (value < EXACT)
        return (uint32_t)value;
    uint32_t exponent = 63U - (uint32_t)__builtin_clzll(value); /* 7 or more */
    uint32_t step = (uint32_t)(value >> (exponent - 6)) & (STEPS - 1);
    return EXACT + (exponent - 7) * STEPS + step;
}

/* How many values a bucket covers. */
static uint64_t width_of(uint32_t bucket)
{
    return bucket < EXACT ? 1 : UINT64_C(1) << ((bucket - EXACT) / STEPS + 1);
}

static uint64_t least_of(uint32_t bucket)
{
    return bucket < EXACT ? bucket : (STEPS + (bucket - EXACT) % STEPS) * width_of(bucket);
}

/* The middle of a bucket's values. */
static uint64_t value_of(uint32_t bucket)
{
    return least_of(bucket) + width_of(bucket) / 2;
}

void spill_sketch_init(spill_sketch_t *sketch)
{
    *sketch = (spill_sketch_t){.min = UINT64_MAX};
}

void spill_sketch_release(spill_sketch_t *sketch)
{
    bson_free(sketch->buckets);
    spill_sketch_init(sketch);
}

static void grow_buckets(spill_sketch_t *sketch, uint32_t bucket)
{
    uint32_t capacity = (bucket / ROUND + 1) * ROUND;
    sketch->buckets = bson_realloc(sketch->buckets, capacity * sizeof *sketch->buckets);
    memset(sketch->buckets + sketch->capacity, 0,
           (capacity - sketch->capacity) * sizeof *sketch->buckets);
    sketch->capacity = capacity;
}

void spill_sketch_add(spill_sketch_t *sketch, uint64_t value, uint64_t times)
{
    uint32_t bucket = bucket_of(value);
    if (bucket >= sketch->capacity)
        grow_buckets(sketch, bucket);
    sketch->buckets[bucket] += times;
    sketch->count += times;
    sketch->sum += value * times;
    if (value < sketch->min)
        sketch->min = value;
    if (value > sketch->max)
        sketch->max = value;
}

void spill_sketch_merge(spill_sketch_t *into, const spill_sketch_t *from)
{
    if (from->count == 0)
        return;
    if (from->capacity > into->capacity)
        grow_buckets(into, from->capacity - 1);
    for (uint32_t i = 0; i < from->capacity; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->sum += from->sum;
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
}

uint64_t spill_sketch_quantile(const spill_sketch_t *sketch, uint64_t per_mille)
{
    if (sketch->count == 0)
        return 0;
    uint64_t whole = sketch->count / 1000 * per_mille; /* in this order nothing overflows */
    uint64_t rank = whole + (sketch->count % 1000 * per_mille + 999) / 1000;
    if (rank >= sketch->count)
        return sketch->max;
    uint64_t passed = 0;
    uint64_t value = sketch->max;
    for (uint32_t i = 0; i < sketch->capacity; i++) {
        passed += sketch->buckets[i];
        if (passed >= rank && passed > 0) {
            value = value_of(i);
            break;
        }
    }
    if (value < sketch->min)
        return sketch->min;
    return value > sketch->max ? sketch->max : value;
}

/* ---- bins ------------------------------------------------------------------------------------ */

#define BIN_EXACT 8U /* values below have a bin each */

/* How many values the bin of a value covers: a quarter of the value's highest power of two. */
static uint64_t bin_width(uint64_t value)
{
    return value < BIN_EXACT ? 1 : UINT64_C(1) << (61U - (uint32_t)__builtin_clzll(value));
}

uint64_t spill_sketch_bin_end(uint64_t least)
{
    return least + bin_width(least);
}

size_t spill_sketch_histogram(const spill_sketch_t *sketch, spill_sketch_bin_t **bins)
{
    size_t count = 0;
    *bins = bson_malloc((size_t)(BIN_EXACT + 4 * 64) * sizeof **bins);
    for (uint32_t i = 0; i < sketch->capacity; i++) {
        uint64_t value = least_of(i);
        uint64_t least = value - value % bin_width(value);
        if (sketch->buckets[i] == 0)
            continue;
        if (count == 0 || (*bins)[count - 1].least != least)
            (*bins)[count++] = (spill_sketch_bin_t){least, 0};
        (*bins)[count - 1].count += sketch->buckets[i];
    }
    *bins = bson_realloc(*bins, (count + 1) * sizeof **bins);
    return count;
}

/* ---- the largest owners ---------------------------------------------------------------------- */

static int compare_names(const spill_value_t *left, const spill_value_t *right)
{
    if (left->type != right->type)
        return left->type < right->type ? -1 : 1;
    uint32_t common = left->size_bytes < right->size_bytes ? left->size_bytes : right->size_bytes;
    int order = common > 0 ? memcmp(left->data, right->data, common) : 0;
    if (order != 0)
        return order;
    return (left->size_bytes > right->size_bytes) - (left->size_bytes < right->size_bytes);
}

/* The first and the second sort key of the list. */
static int64_t first_of(const spill_owners_t *owners, const spill_large_owner_t *owner)
{
    return owners->by_bytes ? owner->bytes : owner->length;
}

static int64_t second_of(const spill_owners_t *owners, const spill_large_owner_t *owner)
{
    return owners->by_bytes ? owner->length : owner->bytes;
}

/* Report whether `left` comes before `right`. */
static bool before(const spill_owners_t *owners, const spill_large_owner_t *left,
                   const spill_large_owner_t *right)
{
    if (first_of(owners, left) != first_of(owners, right))
        return first_of(owners, left) > first_of(owners, right);
    if (second_of(owners, left) != second_of(owners, right))
        return second_of(owners, left) > second_of(owners, right);
    int order = compare_names(&left->value, &right->value);
    return order != 0 ? order < 0 : left->place < right->place;
}

bool spill_owners_wanted(const spill_owners_t *owners, int64_t length, int64_t bytes)
{
    if (owners->count < SPILL_OWNERS_MAX)
        return true;
    const spill_large_owner_t *last = &owners->items[SPILL_OWNERS_MAX - 1];
    spill_large_owner_t one = {.length = length, .bytes = bytes};
    return first_of(owners, &one) > first_of(owners, last) ||
           (first_of(owners, &one) == first_of(owners, last) &&
            second_of(owners, &one) >= second_of(owners, last));
}

static void release(spill_large_owner_t *owner)
{
    bson_free((void *)(uintptr_t)owner->value.data);
    bson_free(owner->growth_forecast.course);
    spill_owner_forget_history(owner);
}

void spill_owner_forget_history(spill_large_owner_t *owner)
{
    spill_history_t *history = (spill_history_t *)(uintptr_t)owner->history;
    if (history)
        spill_history_release(history);
    bson_free(history);
    owner->history = NULL;
}

static const spill_history_t *sorted_copy(const spill_history_t *history)
{
    spill_history_t *copy = bson_malloc(sizeof *copy);
    spill_history_copy(history, copy);
    spill_history_sort(copy);
    return copy;
}

void spill_owners_add(spill_owners_t *owners, const spill_large_owner_t *owner)
{
    spill_large_owner_t item = *owner;
    if (!item.value.data || item.value.size_bytes > SPILL_OWNER_NAME_MAX)
        item.value = (spill_value_t){0};
    size_t at = owners->count;
    while (at > 0 && before(owners, &item, &owners->items[at - 1]))
        at--;
    if (at == SPILL_OWNERS_MAX)
        return;
    if (item.value.data) {
        uint8_t *copy = bson_malloc(item.value.size_bytes + 1U); /* a null value has no bytes */
        memcpy(copy, item.value.data, item.value.size_bytes);
        item.value.data = copy;
    }
    if (owners->count == SPILL_OWNERS_MAX)
        release(&owners->items[--owners->count]);
    if (item.history)
        item.history = sorted_copy(item.history);
    if (item.growth_forecast.course)
        item.growth_forecast.course = memcpy(bson_malloc(sizeof(spill_course_t)),
                                             owner->growth_forecast.course, sizeof(spill_course_t));
    memmove(&owners->items[at + 1], &owners->items[at],
            (owners->count - at) * sizeof owners->items[0]);
    owners->items[at] = item;
    owners->count++;
}

void spill_owners_merge(spill_owners_t *into, const spill_owners_t *from)
{
    for (size_t i = 0; i < from->count; i++)
        spill_owners_add(into, &from->items[i]);
}

void spill_owners_release(spill_owners_t *owners)
{
    for (size_t i = 0; i < owners->count; i++)
        release(&owners->items[i]);
    owners->count = 0;
}

static int64_t soonest_of(const spill_large_owner_t *owner)
{
    const spill_when_t *limit = &owner->growth_forecast.limit;
    if (limit->elements == 0)
        return SPILL_WHEN_UNKNOWN;
    return limit->likely_ms != SPILL_WHEN_UNKNOWN ? limit->likely_ms : limit->earliest_ms;
}

const spill_large_owner_t *spill_owners_first_at_limit(const spill_owners_t *owners)
{
    const spill_large_owner_t *first = &owners->items[0];
    for (size_t i = 1; i < owners->count; i++)
        if (soonest_of(&owners->items[i]) < soonest_of(first))
            first = &owners->items[i];
    return first;
}
