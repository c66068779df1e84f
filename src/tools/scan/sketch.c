#include "tools/scan/sketch.h"

#include <bson/bson.h>
#include <string.h>

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
