/* The counters as Prometheus reads them. */
#include "gateway/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const int64_t bounds_us[SPILL_METRICS_BUCKETS] = SPILL_METRICS_BOUNDS_US;

void spill_metrics_duration(spill_metrics_t *metrics, int64_t duration_us)
{
    size_t bucket = 0;
    while (bucket < SPILL_METRICS_BUCKETS && duration_us > bounds_us[bucket])
        bucket++;
    spill_metrics_add(&metrics->durations[bucket], 1);
    spill_metrics_add(&metrics->duration_us, duration_us);
}

static void print(spill_buffer_t *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print(spill_buffer_t *out, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    spill_buffer_append(out, line, strlen(line));
}

static void print_one(spill_buffer_t *out, const char *name, const char *type, const char *help,
                      int64_t value)
{
    print(out, "# HELP spillway_gateway_%s %s\n# TYPE spillway_gateway_%s %s\n", name, help, name,
          type);
    print(out, "spillway_gateway_%s %" PRId64 "\n", name, value);
}

static void print_durations(spill_metrics_t *metrics, spill_buffer_t *out)
{
    static const char name[] = "spillway_gateway_translated_seconds";
    int64_t count = 0;
    print(out, "# HELP %s Durations of commands on served collections\n# TYPE %s histogram\n", name,
          name);
    for (size_t i = 0; i < SPILL_METRICS_BUCKETS; i++) {
        count += atomic_load(&metrics->durations[i]);
        print(out, "%s_bucket{le=\"%g\"} %" PRId64 "\n", name, (double)bounds_us[i] / 1e6, count);
    }
    count += atomic_load(&metrics->durations[SPILL_METRICS_BUCKETS]);
    print(out, "%s_bucket{le=\"+Inf\"} %" PRId64 "\n", name, count);
    print(out, "%s_sum %g\n", name, (double)atomic_load(&metrics->duration_us) / 1e6);
    print(out, "%s_count %" PRId64 "\n", name, count);
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
    print_durations(metrics, out);
}
