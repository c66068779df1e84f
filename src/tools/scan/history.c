#include "tools/scan/history.h"

#include <bson/bson.h>
#include <stdlib.h>
#include <string.h>

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

void spill_history_add(spill_history_t *history, int64_t time_ms)
{
    note_extremes(history, time_ms, time_ms);
    if (history->seen > 0) {
        history->rising += time_ms > history->last;
        history->falling += time_ms < history->last;
    }
    history->last = time_ms;
    if (history->count == history->most && history->seen % history->stride == 0)
        thin_points(history);
    if (history->seen++ % history->stride != 0)
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
        if (before >= 0 && element / history->stride == before / history->stride)
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
    if (history->count > 1)
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
