/* The counters as Prometheus reads them. */
#include "gateway/metrics.h"

#include "service/exposition.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const int64_t bounds_us[] = SPILL_METRICS_BOUNDS_US;
_Static_assert(sizeof bounds_us / sizeof bounds_us[0] == SPILL_METRICS_BUCKETS,
               "a bucket for each bound");

void spill_metrics_duration(spill_metrics_t *metrics, spill_metrics_class_t class,
                            int64_t duration_us)
{
    size_t bucket = 0;
    spill_metrics_durations_t *durations = &metrics->durations[class];
    while (bucket < SPILL_METRICS_BUCKETS && duration_us > bounds_us[bucket])
        bucket++;
    spill_metrics_add(&durations->buckets[bucket], 1);
    spill_metrics_add(&durations->sum_us, duration_us);
}

const char *spill_metrics_class_name(spill_metrics_class_t class)
{
    static const char *const names[] = {[SPILL_METRICS_RELAYED] = "relayed",
                                        [SPILL_METRICS_READ] = "read",
                                        [SPILL_METRICS_WRITE] = "write",
                                        [SPILL_METRICS_OTHER] = "other"};
    return names[class];
}

static int64_t bound_at(const int64_t *counts, int64_t rank)
{
    int64_t passed = 0;
    for (size_t i = 0; i < SPILL_METRICS_BUCKETS; i++) {
        passed += counts[i];
        if (passed >= rank)
            return bounds_us[i];
    }
    return INT64_MAX;
}

spill_metrics_summary_t spill_metrics_summary(spill_metrics_t *metrics, spill_metrics_class_t class)
{
    int64_t counts[SPILL_METRICS_BUCKETS + 1];
    spill_metrics_summary_t summary = {0};
    spill_metrics_durations_t *durations = &metrics->durations[class];
    for (size_t i = 0; i <= SPILL_METRICS_BUCKETS; i++)
        summary.count += counts[i] = atomic_load(&durations->buckets[i]);
    if (summary.count == 0)
        return summary;
    summary.mean_us = atomic_load(&durations->sum_us) / summary.count;
    summary.median_us = bound_at(counts, (summary.count + 1) / 2);
    summary.later_us = bound_at(counts, summary.count - summary.count / 20);
    summary.late_us = bound_at(counts, summary.count - summary.count / 100);
    return summary;
}

static void print_one(spill_buffer_t *out, const char *name, const char *type, const char *help,
                      int64_t value)
{
    char full[80];
    snprintf(full, sizeof full, "spillway_gateway_%s", name);
    spill_exposition_begin(out, full, type, help);
    spill_exposition_print(out, "%s %" PRId64 "\n", full, value);
}

/* The histogram of the classes from `from` to `to`. */
static void print_durations(spill_metrics_t *metrics, spill_metrics_class_t from,
                            spill_metrics_class_t to, const char *family, const char *help,
                            spill_buffer_t *out)
{
    char name[80];
    snprintf(name, sizeof name, "spillway_gateway_%s_seconds", family);
    spill_exposition_begin(out, name, "histogram", help);
    for (spill_metrics_class_t class = from; class <= to; class ++) {
        spill_metrics_durations_t *durations = &metrics->durations[class];
        const char *label = spill_metrics_class_name(class);
        int64_t count = 0;
        for (size_t i = 0; i < SPILL_METRICS_BUCKETS; i++) {
            count += atomic_load(&durations->buckets[i]);
            spill_exposition_print(out, "%s_bucket{class=\"%s\",le=\"%g\"} %" PRId64 "\n", name,
                                   label, (double)bounds_us[i] / 1e6, count);
        }
        count += atomic_load(&durations->buckets[SPILL_METRICS_BUCKETS]);
        spill_exposition_print(out, "%s_bucket{class=\"%s\",le=\"+Inf\"} %" PRId64 "\n", name,
                               label, count);
        spill_exposition_print(out, "%s_sum{class=\"%s\"} %g\n", name, label,
                               (double)atomic_load(&durations->sum_us) / 1e6);
        spill_exposition_print(out, "%s_count{class=\"%s\"} %" PRId64 "\n", name, label, count);
    }
}

static void print_refusals(spill_activity_t *activity, spill_buffer_t *out)
{
    static const char name[] = "spillway_gateway_refusals_total";
    spill_activity_refusal_row_t rows[SPILL_ACTIVITY_REFUSALS];
    size_t count = spill_activity_refusals(activity, rows);
    spill_exposition_begin(out, name, "counter", "Refusals on served collections");
    for (size_t i = 0; i < count; i++)
        spill_exposition_print(out, "%s{command=\"%s\",code=\"%d\",operation=\"%s\"} %" PRId64 "\n",
                               name, rows[i].command, rows[i].code, rows[i].operation,
                               rows[i].count);
}

static void print_errors(spill_activity_t *activity, spill_buffer_t *out)
{
    static const char name[] = "spillway_gateway_errors_total";
    spill_exposition_begin(out, name, "counter",
                           "Errors on served collections that are no refusals");
    for (spill_activity_error_t class = 0; class < SPILL_ACTIVITY_ERRORS; class ++)
        spill_exposition_print(out, "%s{class=\"%s\"} %" PRId64 "\n", name,
                               spill_activity_error_name(class),
                               spill_activity_errors(activity, class));
}

void spill_metrics_print(spill_metrics_t *metrics, const spill_metrics_state_t *state,
                         spill_buffer_t *out)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } counters[] = {
#define COUNTER(field, name, help) {name "_total", help, offsetof(spill_metrics_t, field)},
        SPILL_METRICS_COUNTERS(COUNTER)
#undef COUNTER
    };
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        print_one(out, counters[i].name, "counter", counters[i].help,
                  atomic_load((atomic_int_fast64_t *)((char *)metrics + counters[i].offset)));
    print_one(out, "connections", "gauge", "Connections of clients", state->connections);
    print_one(out, "memory_bytes", "gauge", "Bytes that count against --memory",
              state->memory_bytes);
    print_one(out, "primary", "gauge", "1 if there is a primary", state->primary ? 1 : 0);
    print_one(out, "adoptions_total", "counter", "Arrays that became managed ones",
              spill_activity_adoptions(state->activity));
    print_one(out, "spills_total", "counter", "Runs of elements that moved to pages",
              state->spills);
    print_durations(metrics, SPILL_METRICS_READ, SPILL_METRICS_OTHER, "translated",
                    "Durations of commands on served collections", out);
    print_durations(metrics, SPILL_METRICS_RELAYED, SPILL_METRICS_RELAYED, "relayed",
                    "Durations of relayed commands", out);
    print_refusals(state->activity, out);
    print_errors(state->activity, out);
    spill_lost_lines_print(state->log, "serve", out);
}
