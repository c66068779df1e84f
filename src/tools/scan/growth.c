/* How an array grew: the history of an owner's array, and the growth of a path. */
#include "tools/scan/growth.h"

#include <bson/bson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- history --------------------------------------------------------------------------------- */

void spill_history_init(spill_history_t *history, size_t most)
{
    *history = (spill_history_t){.most = most, .stride = 1};
}

void spill_history_release(spill_history_t *history)
{
    bson_free(history->points);
    *history = (spill_history_t){.most = history->most, .stride = 1};
}

void spill_history_clear(spill_history_t *history)
{
    *history = (spill_history_t){.points = history->points,
                                 .capacity = history->capacity,
                                 .most = history->most,
                                 .stride = 1};
}

/* Drop every second point. The first stays: the points are elements 0, stride, 2 stride, ... */
static void thin_points(spill_history_t *history)
{
    size_t kept = 0;
    for (size_t i = 0; i < history->count; i += 2)
        history->points[kept++] = history->points[i];
    history->count = kept;
    history->stride *= 2;
}

static void reserve(spill_history_t *history, size_t count)
{
    if (count <= history->capacity)
        return;
    size_t doubled = history->capacity ? 2 * history->capacity : 16;
    history->capacity = doubled > count ? doubled : count;
    history->points = bson_realloc(history->points, history->capacity * sizeof *history->points);
}

static void note_extremes(spill_history_t *history, int64_t oldest, int64_t newest)
{
    if (history->seen == 0 || oldest < history->oldest)
        history->oldest = oldest;
    if (history->seen == 0 || newest > history->newest)
        history->newest = newest;
}

/* Report whether the element of that number is a point: every stride begins with one. */
static bool is_point(const spill_history_t *history, int64_t element)
{
    return (element & (history->stride - 1)) == 0; /* the stride is a power of two */
}

void spill_history_add(spill_history_t *history, int64_t time_ms)
{
    if (history->seen == 0)
        history->oldest = history->newest = history->last = time_ms;
    history->oldest = time_ms < history->oldest ? time_ms : history->oldest;
    history->newest = time_ms > history->newest ? time_ms : history->newest;
    history->rising += time_ms > history->last;
    history->falling += time_ms < history->last;
    history->last = time_ms;
    if (history->count == history->most && is_point(history, history->seen))
        thin_points(history);
    if (!is_point(history, history->seen++))
        return;
    reserve(history, history->count + 1);
    history->points[history->count++] = time_ms;
}

/* Append the points of `from` at which another stride of the whole begins. */
static void append_points(spill_history_t *history, const spill_history_t *from)
{
    int64_t element = history->seen;
    for (size_t i = 0; i < from->count; i++, element += from->stride) {
        int64_t before = element - from->stride;
        if (before >= 0 && (element & -history->stride) == (before & -history->stride))
            continue;
        reserve(history, history->count + 1);
        history->points[history->count++] = from->points[i];
    }
}

void spill_history_merge(spill_history_t *history, const spill_history_t *from)
{
    if (from->seen == 0)
        return;
    note_extremes(history, from->oldest, from->newest);
    while (history->stride < from->stride)
        thin_points(history);
    append_points(history, from);
    while (history->count > history->most)
        thin_points(history);
    history->seen += from->seen;
    history->rising += from->rising;
    history->falling += from->falling;
    history->last = from->last;
}

void spill_history_copy(const spill_history_t *history, spill_history_t *copy)
{
    *copy = *history;
    copy->capacity = history->count;
    copy->points = bson_malloc(history->count * sizeof *history->points + 1);
    if (history->count > 0)
        memcpy(copy->points, history->points, history->count * sizeof *history->points);
}

static int by_time(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

void spill_history_sort(spill_history_t *history)
{
    bool sorted = true;
    for (size_t i = 1; i < history->count && sorted; i++)
        sorted = history->points[i - 1] <= history->points[i];
    if (!sorted) /* most arrays grow at one end */
        qsort(history->points, history->count, sizeof *history->points, by_time);
}

/* How many points are before that moment. */
static size_t count_before(const spill_history_t *history, double time_ms)
{
    size_t low = 0, high = history->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((double)history->points[middle] < time_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double spill_history_before(const spill_history_t *history, double time_ms)
{
    size_t at = count_before(history, time_ms);
    if (history->stride == 1)
        return (double)at;
    if (history->seen == 0 || time_ms <= (double)history->oldest)
        return 0;
    if (time_ms > (double)history->newest)
        return (double)history->seen;
    /* Each point is in the middle of its share of the elements. */
    double share = (double)history->seen / (double)history->count;
    double below = at == 0 ? 0 : ((double)at - 0.5) * share;
    double above = at == history->count ? (double)history->seen : ((double)at + 0.5) * share;
    double from = at == 0 ? (double)history->oldest : (double)history->points[at - 1];
    double to = at == history->count ? (double)history->newest : (double)history->points[at];
    return to <= from ? below : below + (above - below) * (time_ms - from) / (to - from);
}

double spill_history_between(const spill_history_t *history, double from_ms, double to_ms)
{
    return spill_history_before(history, to_ms) - spill_history_before(history, from_ms);
}

/* ---- pace ------------------------------------------------------------------------------------ */

static double burst_of(const spill_history_t *history)
{
    size_t half = history->count / 2;
    int64_t whole = history->points[history->count - 1] - history->points[0];
    int64_t shortest = whole;
    for (size_t i = 0; i + half < history->count; i++)
        if (history->points[i + half] - history->points[i] < shortest)
            shortest = history->points[i + half] - history->points[i];
    return whole > 0 ? (double)shortest / (double)whole : 0;
}

spill_pace_t spill_history_pace(const spill_history_t *history, int64_t now_ms)
{
    static const double day_ms = 86400e3;
    spill_pace_t pace = {0};
    if (history->count < 2 || now_ms <= history->oldest)
        return pace;
    double now = (double)now_ms, age = now - (double)history->oldest;
    double newest = spill_history_between(history, now - age / 4, now);
    double before = spill_history_between(history, now - age / 2, now - age / 4);
    pace.per_day = spill_history_between(history, now - age / 10, now) / (age / 10) * day_ms;
    pace.acceleration = newest > 0 && before > 0 ? newest / before : 0;
    pace.burst = burst_of(history);
    return pace;
}

/* ---- growth ---------------------------------------------------------------------------------- */

void spill_growth_init(spill_growth_t *growth)
{
    *growth = (spill_growth_t){0};
    spill_history_init(&growth->all, SPILL_GROWTH_ALL_POINTS);
}

void spill_growth_release(spill_growth_t *growth)
{
    for (size_t i = 0; i < growth->owner_count; i++)
        spill_history_release(&growth->owners[i].history);
    bson_free(growth->owners);
    spill_history_release(&growth->all);
    spill_growth_init(growth);
}

/* The sample needs good high bits; FNV's low bits are better (MurmurHash3's finalizer). */
static uint64_t mix_hash(uint64_t hash)
{
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ (hash >> 33);
}

static void swap(spill_growth_owner_t *left, spill_growth_owner_t *right)
{
    spill_growth_owner_t kept = *left;
    *left = *right;
    *right = kept;
}

static void sift_up(spill_growth_owner_t *owners, size_t at)
{
    for (; at > 0 && owners[(at - 1) / 2].hash < owners[at].hash; at = (at - 1) / 2)
        swap(&owners[at], &owners[(at - 1) / 2]);
}

static void sift_down(spill_growth_owner_t *owners, size_t count)
{
    for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && owners[child + 1].hash > owners[child].hash)
            child++;
        if (owners[child].hash <= owners[at].hash)
            return;
        swap(&owners[at], &owners[child]);
    }
}

static void insert_owner(spill_growth_t *growth, uint64_t hash, const spill_history_t *history)
{
    spill_growth_owner_t owner = {.hash = hash};
    spill_history_copy(history, &owner.history);
    spill_history_sort(&owner.history);
    if (!growth->owners)
        growth->owners = bson_malloc0(SPILL_GROWTH_OWNERS * sizeof *growth->owners);
    if (growth->owner_count < SPILL_GROWTH_OWNERS) {
        growth->owners[growth->owner_count] = owner;
        sift_up(growth->owners, growth->owner_count++);
        return;
    }
    spill_history_release(&growth->owners[0].history);
    growth->owners[0] = owner;
    sift_down(growth->owners, growth->owner_count);
}

static bool belongs(const spill_growth_t *growth, uint64_t hash)
{
    return growth->owner_count < SPILL_GROWTH_OWNERS || hash < growth->owners[0].hash;
}

void spill_growth_add(spill_growth_t *growth, uint64_t owner, const spill_history_t *history)
{
    uint64_t hash = mix_hash(owner);
    spill_history_merge(&growth->all, history);
    if (history->seen >= SPILL_GROWTH_LENGTH_MIN && belongs(growth, hash))
        insert_owner(growth, hash, history);
}

void spill_growth_merge(spill_growth_t *growth, const spill_growth_t *from)
{
    spill_history_merge(&growth->all, &from->all);
    for (size_t i = 0; i < from->owner_count; i++)
        if (belongs(growth, from->owners[i].hash))
            insert_owner(growth, from->owners[i].hash, &from->owners[i].history);
}
