/*
 * Back-test of the forecasts of growth (src/tools/scan/forecast.h) on real streams.
 *
 *      bench_forecast FOLDER
 *
 * FOLDER holds the data sets. Each stream is cut at 50, 75 and 90 % of its time. For each owner
 * that has SPILL_GROWTH_LENGTH_MIN elements at the cut, the growth to the stream's end is forecast,
 * using only what a scan at the cut would keep, and compared with the actual growth. The other
 * column is the usual guess: the rate over the newest tenth of the time so far continues.
 *
 * The error is the mean factor between prediction and actual growth: exp(mean |log((1 + actual) /
 * (1 + predicted))|). The interval is hit if it contains the actual growth. No figure depends on
 * the machine.
 */
#include "measure.h"
#include "tools/import/import_records.h"
#include "tools/scan/forecast.h"
#include "util/buffer.h"

#include <bson/bson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream {
    const char *file;
    const char *owner;
    const char *field, *value; /* only events with this value; NULL: all events */
} stream_t;

static const stream_t streams[] = {
    {"openstack_updates", "project", NULL, NULL}, {"openstack_updates", "by", NULL, NULL},
    {"gitter_chat", "room", NULL, NULL},          {"gitter_chat", "user", NULL, NULL},
    {"eol_releases", "product", "op", "add"},     {"wiki_edits", "channel", NULL, NULL},
    {"wiki_edits", "user", NULL, NULL},           {"wiki_edits", "namespace", NULL, NULL},
};

typedef struct event {
    uint64_t owner;
    int64_t at_ms;
} event_t;

typedef struct events {
    event_t *at; /* by owner, then by time */
    size_t count;
    size_t capacity;
    int64_t first_ms, last_ms;
} events_t;

/* ---- reading --------------------------------------------------------------------------------- */

static const char *text_of(const bson_t *document, const char *field, uint32_t *length)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, field) || !BSON_ITER_HOLDS_UTF8(&iter))
        return NULL;
    return bson_iter_utf8(&iter, length);
}

static void add_event(const stream_t *stream, const bson_t *document, events_t *events)
{
    bson_iter_t at;
    uint32_t length = 0;
    const char *value = stream->field ? text_of(document, stream->field, &length) : NULL;
    if (stream->field && (!value || strcmp(value, stream->value) != 0))
        return;
    const char *owner = text_of(document, stream->owner, &length);
    if (!owner || !bson_iter_init_find(&at, document, "at") || !BSON_ITER_HOLDS_DATE_TIME(&at))
        return;
    if (events->count == events->capacity) {
        events->capacity = events->capacity ? 2 * events->capacity : 1024;
        events->at = bson_realloc(events->at, events->capacity * sizeof *events->at);
    }
    event_t event = {.owner = spill_hash(owner, length), .at_ms = bson_iter_date_time(&at)};
    if (events->count == 0 || event.at_ms < events->first_ms)
        events->first_ms = event.at_ms;
    if (events->count == 0 || event.at_ms > events->last_ms)
        events->last_ms = event.at_ms;
    events->at[events->count++] = event;
}

static void add_line(const stream_t *stream, const char *line, size_t size, events_t *events)
{
    bson_error_t problem;
    bson_t *document = bson_new_from_json((const uint8_t *)line, (ssize_t)size, &problem);
    if (!document)
        measure_stop("%s: %s", stream->file, problem.message);
    add_event(stream, document, events);
    bson_destroy(document);
}

static int by_owner_and_time(const void *left, const void *right)
{
    const event_t *a = left, *b = right;
    if (a->owner != b->owner)
        return a->owner < b->owner ? -1 : 1;
    return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

static char *read_whole(const char *path, size_t *size)
{
    spill_source_t *source = NULL;
    spill_error_t error;
    char *data = NULL;
    size_t capacity = 0, got = 1;
    measure_check(spill_source_open(path, SPILL_CODEC_GZIP, &source, &error), &error);
    for (*size = 0; got > 0; *size += got) {
        if (capacity - *size < 65536)
            data = bson_realloc(data, capacity = 2 * capacity + 131072);
        measure_check(
            spill_source_read(source, (uint8_t *)data + *size, capacity - *size, &got, &error),
            &error);
    }
    spill_source_close(source);
    return data;
}

static events_t read_events(const char *folder, const stream_t *stream)
{
    events_t events = {0};
    size_t size = 0;
    char *path = bson_strdup_printf("%s/%s/events.ndjson.gz", folder, stream->file);
    char *data = read_whole(path, &size);
    for (char *line = data, *end; line < data + size; line = end + 1) {
        end = memchr(line, '\n', (size_t)(data + size - line));
        if (!end)
            break;
        add_line(stream, line, (size_t)(end - line), &events);
    }
    bson_free(data);
    bson_free(path);
    if (events.count > 0)
        qsort(events.at, events.count, sizeof *events.at, by_owner_and_time);
    return events;
}

/* ---- one cut --------------------------------------------------------------------------------- */

/* The horizons of a scan, and the end of the stream. */
enum { HORIZONS = SPILL_GROWTH_FORECAST_HORIZONS + 1 };

typedef struct cut {
    int64_t now_ms;
    double horizon_ms;
    double history_ms;
    double horizons_ms[HORIZONS];
    size_t horizon; /* index of the horizon at the end of the stream */
} cut_t;

/* Actual and predicted growth, summed over owners. */
typedef struct score {
    size_t owners, hit;
    double error, last_rate_error;
    size_t beaten; /* owners with a forecast at least as good as the last rate */
} score_t;

static double error_factor(double came, double predicted)
{
    return fabs(log1p(came) - log1p(predicted));
}

/* Read the events of one owner, from `first`. Events before the cut are added to *history. */
static size_t read_owner_events(const events_t *events, size_t first, int64_t now_ms,
                                spill_history_t *history)
{
    size_t end = first;
    spill_history_clear(history);
    for (; end < events->count && events->at[end].owner == events->at[first].owner; end++)
        if (events->at[end].at_ms < now_ms)
            spill_history_add(history, events->at[end].at_ms);
    return end;
}

static void score(const spill_forecast_model_t *model, const cut_t *cut,
                  const spill_history_t *history, double came, score_t *total)
{
    spill_forecast_t forecast;
    if (!spill_forecast_model_forecast(model, cut->horizon, history, &forecast))
        return;
    double newest = (double)history->seen -
                    spill_history_before(history, (double)cut->now_ms - cut->history_ms / 10);
    double last_rate = newest * cut->horizon_ms / (cut->history_ms / 10);
    total->owners++;
    total->hit += came >= forecast.low && came <= forecast.high;
    total->error += error_factor(came, forecast.likely);
    total->last_rate_error += error_factor(came, last_rate);
    total->beaten += error_factor(came, forecast.likely) <= error_factor(came, last_rate);
}

static spill_forecast_model_t *learn(const events_t *events, const cut_t *cut,
                                     const spill_growth_t *growth)
{
    const spill_history_t *histories[SPILL_GROWTH_OWNERS];
    for (size_t i = 0; i < growth->owner_count; i++)
        histories[i] = &growth->owners[i].history;
    return spill_forecast_model_new(histories, growth->owner_count, events->first_ms, cut->now_ms,
                                    cut->horizons_ms, HORIZONS);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static cut_t cut_at(const events_t *events, double part)
{
    double whole = (double)(events->last_ms + 1 - events->first_ms);
    cut_t cut = {.now_ms = events->first_ms + (int64_t)(part * whole),
                 .horizon_ms = (1 - part) * whole,
                 .history_ms = part * whole};
    for (size_t i = 0; i < SPILL_GROWTH_FORECAST_HORIZONS; i++)
        cut.horizons_ms[i] = spill_growth_forecast_horizon_ms(cut.history_ms, i);
    cut.horizons_ms[HORIZONS - 1] = cut.horizon_ms;
    qsort(cut.horizons_ms, HORIZONS, sizeof cut.horizons_ms[0], by_value);
    while (cut.horizons_ms[cut.horizon] < cut.horizon_ms)
        cut.horizon++;
    return cut;
}

/* All owners' elements together, forecast only from their common history. */
static void score_whole(const events_t *events, const cut_t *cut, spill_history_t *all,
                        score_t *total)
{
    const spill_history_t *history = all;
    spill_history_sort(all);
    spill_forecast_model_t *model = spill_forecast_model_new(
        &history, 1, events->first_ms, cut->now_ms, cut->horizons_ms, HORIZONS);
    score(model, cut, all, (double)events->count - (double)all->seen, total);
    spill_forecast_model_free(model);
}

static score_t score_owners(const events_t *events, const cut_t *cut, score_t *whole)
{
    score_t total = {0};
    spill_growth_t growth;
    spill_history_t history;
    spill_growth_init(&growth);
    spill_history_init(&history, SPILL_GROWTH_POINTS);
    for (size_t first = 0, end; first < events->count; first = end) {
        end = read_owner_events(events, first, cut->now_ms, &history);
        spill_growth_add(&growth, events->at[first].owner, &history);
    }
    score_whole(events, cut, &growth.all, whole);
    spill_forecast_model_t *model = learn(events, cut, &growth);
    for (size_t first = 0, end; first < events->count; first = end) {
        end = read_owner_events(events, first, cut->now_ms, &history);
        if (history.seen >= SPILL_GROWTH_LENGTH_MIN)
            score(model, cut, &history, (double)(end - first) - (double)history.seen, &total);
    }
    spill_forecast_model_free(model);
    spill_history_release(&history);
    spill_growth_release(&growth);
    return total;
}

static void print_score(const char *name, double part, const cut_t *cut, const score_t *total)
{
    double owners = (double)total->owners;
    printf("%-28s %3.0f %%  %4.2f  %6zu  %5.0f %%  %8.2f  %9.2f  %5.0f %%\n", name, 100 * part,
           cut->horizon_ms / cut->history_ms, total->owners, 100 * (double)total->hit / owners,
           exp(total->error / owners), exp(total->last_rate_error / owners),
           100 * (double)total->beaten / owners);
}

static void add_score(score_t *sum, const score_t *total)
{
    sum->owners += total->owners;
    sum->hit += total->hit;
    sum->error += total->error;
    sum->last_rate_error += total->last_rate_error;
    sum->beaten += total->beaten;
}

int main(int argc, char **argv)
{
    static const double parts[] = {0.5, 0.75, 0.9};
    score_t sums[3] = {{0}}, wholes[3] = {{0}};
    cut_t cut = {0};
    if (argc != 2)
        measure_stop("usage: bench_forecast FOLDER (of the data sets)");
    printf("stream, owners by              cut  ahead  owners   hit    forecast  last rate  "
           "no worse\n");
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        char *name = bson_strdup_printf("%s by %s", streams[i].file, streams[i].owner);
        events_t events = read_events(argv[1], &streams[i]);
        for (size_t j = 0; j < 3; j++) {
            cut = cut_at(&events, parts[j]);
            score_t total = score_owners(&events, &cut, &wholes[j]);
            print_score(name, parts[j], &cut, &total);
            add_score(&sums[j], &total);
        }
        bson_free(events.at);
        bson_free(name);
    }
    for (size_t j = 0; j < 3; j++) {
        cut = (cut_t){.horizon_ms = 1 - parts[j], .history_ms = parts[j]};
        print_score("all owners", parts[j], &cut, &sums[j]);
        print_score("whole streams", parts[j], &cut, &wholes[j]);
    }
    return 0;
}
