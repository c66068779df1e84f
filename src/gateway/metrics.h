/* What the gateway counts, and how Prometheus reads it. */
#ifndef SPILL_GATEWAY_METRICS_H
#define SPILL_GATEWAY_METRICS_H

#include "gateway/activity.h"
#include "service/lost_lines.h"
#include "util/buffer.h"

#include <spillway/error.h>

#include <stdatomic.h>

/* X(field, name, help): the counters. */
#define SPILL_METRICS_COUNTERS(X)                                                                  \
    X(accepted, "connections_accepted", "Connections of clients that were accepted")               \
    X(refused, "connections_refused", "Connections that a limit refused")                          \
    X(relayed, "commands_relayed", "Commands that were passed on unchanged")                       \
    X(translated, "commands_translated", "Commands on served collections")                         \
    X(answered, "commands_answered", "Commands that the gateway answered by itself")               \
    X(overloaded, "commands_overloaded", "Commands that the limit of memory refused")              \
    X(malformed, "messages_malformed", "Messages that were malformed and closed a connection")     \
    X(timed_out, "clients_timed_out", "Clients that sent a part of a message and paused")          \
    X(failures, "upstream_failures", "Upstream connections that failed")                           \
    X(received_bytes, "received_bytes", "Bytes that clients sent")                                 \
    X(sent_bytes, "sent_bytes", "Bytes that were sent to clients")

/*
 * The classes of commands with counted durations: relayed ones until their reply has been
 * passed on, and those on served collections.
 */
typedef enum spill_metrics_class {
    SPILL_METRICS_RELAYED,
    SPILL_METRICS_READ,
    SPILL_METRICS_WRITE,
    SPILL_METRICS_OTHER,
    SPILL_METRICS_CLASSES
} spill_metrics_class_t;

/*
 * The upper bounds of the buckets of durations, in microseconds: six in each decade, so that a
 * quantile is known within a factor of 1.7.
 */
#define SPILL_METRICS_BOUNDS_US                                                                    \
    {                                                                                              \
        50, 75, 100, 150, 250, 350, 500, 750, 1000, 1500, 2500, 3500, 5000, 7500, 10000, 15000,    \
            25000, 35000, 50000, 75000, 100000, 150000, 250000, 350000, 500000, 750000, 1000000,   \
            1500000, 2500000, 3500000, 5000000, 7500000, 10000000                                  \
    }
#define SPILL_METRICS_BUCKETS 33

typedef struct spill_metrics_durations {
    atomic_int_fast64_t buckets[SPILL_METRICS_BUCKETS + 1]; /* the last: longer ones */
    atomic_int_fast64_t sum_us;
} spill_metrics_durations_t;

typedef struct spill_metrics {
#define SPILL_METRICS_FIELD(field, name, help) atomic_int_fast64_t field;
    SPILL_METRICS_COUNTERS(SPILL_METRICS_FIELD)
#undef SPILL_METRICS_FIELD
    spill_metrics_durations_t durations[SPILL_METRICS_CLASSES];
} spill_metrics_t;

/* What is true now, beside the counters. */
typedef struct spill_metrics_state {
    int64_t connections;
    int64_t memory_bytes;
    int64_t spills;
    int64_t uptime_us;
    bool primary;
    const char *listen, *upstream; /* places, without passwords */
    spill_activity_t *activity;
    const spill_lost_lines_t *log;
} spill_metrics_state_t;

static inline void spill_metrics_add(atomic_int_fast64_t *counter, int64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* Count a command's duration. Any thread. */
void spill_metrics_duration(spill_metrics_t *metrics, spill_metrics_class_t class,
                            int64_t duration_us);

/* The commands of a class so far, and the upper bound of the bucket with this share of them. */
typedef struct spill_metrics_summary {
    int64_t count;
    int64_t mean_us;
    int64_t median_us, later_us, late_us; /* at 0.5, 0.95, 0.99; INT64_MAX: above the last bound */
} spill_metrics_summary_t;
spill_metrics_summary_t spill_metrics_summary(spill_metrics_t *metrics,
                                              spill_metrics_class_t class);
const char *spill_metrics_class_name(spill_metrics_class_t class);

/* Append them in Prometheus' text format. Any thread. */
void spill_metrics_print(spill_metrics_t *metrics, const spill_metrics_state_t *state,
                         spill_buffer_t *out);

#endif
