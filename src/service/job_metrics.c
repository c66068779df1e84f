/* The counters of a long job as Prometheus reads them. */
#include "service/job_metrics.h"

#include "service/exposition.h"
#include "util/clock.h"
#include "util/redact.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void spill_job_metrics_init(spill_job_metrics_t *metrics, const char *command)
{
    *metrics = (spill_job_metrics_t){
        .command = command, .lock = PTHREAD_MUTEX_INITIALIZER, .failure = SPILL_OK};
    atomic_store(&metrics->started_us, spill_clock_now_us(NULL));
}

static void add(atomic_int_fast64_t *counter, int64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void spill_job_metrics_begin(spill_job_metrics_t *metrics, const char *definition)
{
    pthread_mutex_lock(&metrics->lock);
    bson_strncpy(metrics->definition, definition, sizeof metrics->definition);
    pthread_mutex_unlock(&metrics->lock);
    atomic_store(&metrics->progress_per_mille, 0);
}

void spill_job_metrics_owner(spill_job_metrics_t *metrics, const spill_migrated_t *migrated)
{
    add(&metrics->owners, 1);
    if (migrated->failed) {
        add(&metrics->skipped, 1);
        return;
    }
    add(&metrics->adopted, migrated->adopted ? 1 : 0);
    add(&metrics->moved, migrated->moved);
    add(&metrics->pages, migrated->pages);
    add(&metrics->compared, migrated->caught_up ? migrated->elements : 0);
}

/* ---- owners in progress ---------------------------------------------------------------------- */

void spill_job_metrics_owner_begins(spill_job_metrics_t *metrics, const spill_value_t *owner)
{
    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i <= SPILL_PARALLEL_MAX; i++) {
        spill_job_owner_t *working = &metrics->working[i];
        if (working->since_us != 0)
            continue;
        bool fits = owner->size_bytes <= SPILL_JOB_OWNER_BYTES;
        working->thread = pthread_self();
        working->since_us = spill_clock_now_us(NULL);
        working->type = fits ? owner->type : BSON_TYPE_EOD;
        working->size_bytes = fits ? owner->size_bytes : 0;
        if (working->size_bytes > 0)
            memcpy(working->data, owner->data, working->size_bytes);
        break;
    }
    pthread_mutex_unlock(&metrics->lock);
}

void spill_job_metrics_owner_ends(spill_job_metrics_t *metrics)
{
    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i <= SPILL_PARALLEL_MAX; i++) {
        spill_job_owner_t *working = &metrics->working[i];
        if (working->since_us != 0 && pthread_equal(working->thread, pthread_self()))
            working->since_us = 0;
    }
    pthread_mutex_unlock(&metrics->lock);
}

bool spill_job_metrics_longest(spill_job_metrics_t *metrics, spill_job_owner_t *longest)
{
    *longest = (spill_job_owner_t){0};
    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i <= SPILL_PARALLEL_MAX; i++) {
        const spill_job_owner_t *working = &metrics->working[i];
        if (working->since_us != 0 &&
            (longest->since_us == 0 || working->since_us < longest->since_us))
            *longest = *working;
    }
    pthread_mutex_unlock(&metrics->lock);
    return longest->since_us != 0;
}

spill_value_t spill_job_owner_value(const spill_job_owner_t *owner)
{
    return (spill_value_t){.type = (uint8_t)owner->type,
                           .data = owner->type != BSON_TYPE_EOD ? owner->data : NULL,
                           .size_bytes = owner->size_bytes};
}

/* ---- documents and passes -------------------------------------------------------------------- */

void spill_job_metrics_documents(spill_job_metrics_t *metrics, int64_t written)
{
    add(&metrics->documents, written);
}

void spill_job_metrics_progress(spill_job_metrics_t *metrics, int64_t done, int64_t whole)
{
    double fraction = whole > 0 ? (double)done / (double)whole : 0;
    atomic_store(&metrics->progress_per_mille, fraction < 1 ? (int64_t)(fraction * 1000) : 1000);
}

static void keep_message(spill_job_metrics_t *metrics, const spill_error_t *error)
{
    char *redacted = spill_redact(error->message);
    bson_strncpy(metrics->message, redacted, sizeof metrics->message);
    metrics->failed_us = spill_clock_now_us(NULL);
    bson_free(redacted);
}

void spill_job_metrics_end(spill_job_metrics_t *metrics, spill_code_t code,
                           const spill_error_t *error)
{
    if (code == SPILL_CANCELLED)
        return;
    pthread_mutex_lock(&metrics->lock);
    metrics->failure = code;
    if (code != SPILL_OK)
        keep_message(metrics, error);
    pthread_mutex_unlock(&metrics->lock);
    if (code != SPILL_OK) {
        add(&metrics->failures[code], 1);
        add(&metrics->failures_in_a_row, 1);
        return;
    }
    add(&metrics->passes, 1);
    atomic_store(&metrics->failures_in_a_row, 0);
    atomic_store(&metrics->succeeded_us, spill_clock_now_us(NULL));
}

void spill_job_metrics_next(spill_job_metrics_t *metrics, int64_t next_us)
{
    pthread_mutex_lock(&metrics->lock);
    metrics->next_us = next_us;
    pthread_mutex_unlock(&metrics->lock);
}

void spill_job_metrics_gives_up(spill_job_metrics_t *metrics, int64_t gives_up_us)
{
    pthread_mutex_lock(&metrics->lock);
    metrics->gives_up_us = gives_up_us;
    pthread_mutex_unlock(&metrics->lock);
}

void spill_job_metrics_failures(spill_job_metrics_t *metrics, spill_job_failures_t *failures)
{
    *failures = (spill_job_failures_t){.passes = atomic_load(&metrics->passes),
                                       .in_a_row = atomic_load(&metrics->failures_in_a_row)};
    for (int code = 1; code < SPILL_JOB_CODE_COUNT; code++)
        failures->failures += atomic_load(&metrics->failures[code]);
    pthread_mutex_lock(&metrics->lock);
    memcpy(failures->definition, metrics->definition, sizeof failures->definition);
    memcpy(failures->message, metrics->message, sizeof failures->message);
    failures->failed_us = metrics->failed_us;
    failures->next_us = metrics->next_us;
    failures->gives_up_us = metrics->gives_up_us;
    pthread_mutex_unlock(&metrics->lock);
}

/* ---- the text -------------------------------------------------------------------------------- */

static void begin_metric(const char *name, const char *type, const char *help, spill_buffer_t *out)
{
    char full[80];
    snprintf(full, sizeof full, "spillway_job_%s", name);
    spill_exposition_begin(out, full, type, help);
}

static void print_sample(const spill_job_metrics_t *metrics, const char *name, double value,
                         spill_buffer_t *out)
{
    spill_exposition_print(out, "spillway_job_%s{command=\"%s\"} %.15g\n", name, metrics->command,
                           value);
}

static void print_gauge(const spill_job_metrics_t *metrics, const char *name, const char *help,
                        double value, spill_buffer_t *out)
{
    begin_metric(name, "gauge", help, out);
    print_sample(metrics, name, value, out);
}

static void print_counters(spill_job_metrics_t *metrics, spill_buffer_t *out)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } counters[] = {
#define COUNTER(field, name, help) {name "_total", help, offsetof(spill_job_metrics_t, field)},
        SPILL_JOB_COUNTERS(COUNTER)
#undef COUNTER
    };
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        const atomic_int_fast64_t *counter =
            (atomic_int_fast64_t *)((char *)metrics + counters[i].offset);
        begin_metric(counters[i].name, "counter", counters[i].help, out);
        print_sample(metrics, counters[i].name, (double)atomic_load(counter), out);
    }
}

static void print_failures(spill_job_metrics_t *metrics, spill_buffer_t *out)
{
    begin_metric("failures_total", "counter", "Passes that failed, by the code of the error", out);
    for (int code = 1; code < SPILL_JOB_CODE_COUNT; code++)
        if (code != SPILL_CANCELLED)
            spill_exposition_print(
                out, "spillway_job_failures_total{command=\"%s\",code=\"%s\"} %" PRId64 "\n",
                metrics->command, spill_code_name((spill_code_t)code),
                (int64_t)atomic_load(&metrics->failures[code]));
}

static void print_definition(spill_job_metrics_t *metrics, spill_buffer_t *out)
{
    char definition[SPILL_NAME_SIZE];
    pthread_mutex_lock(&metrics->lock);
    memcpy(definition, metrics->definition, sizeof definition);
    pthread_mutex_unlock(&metrics->lock);
    begin_metric("info", "gauge", "The definition, or the joint collection, of the pass", out);
    spill_exposition_print(out, "spillway_job_info{command=\"%s\",definition=", metrics->command);
    spill_exposition_label(out, definition);
    spill_exposition_print(out, "} 1\n");
}

static double owner_seconds(spill_job_metrics_t *metrics)
{
    spill_job_owner_t longest;
    return spill_job_metrics_longest(metrics, &longest)
               ? (double)(spill_clock_now_us(NULL) - longest.since_us) / 1e6
               : 0;
}

void spill_job_metrics_print(spill_job_metrics_t *metrics, spill_buffer_t *out)
{
    print_definition(metrics, out);
    print_counters(metrics, out);
    print_failures(metrics, out);
    print_gauge(metrics, "failures_in_a_row", "Failed passes since the last one that ended well",
                (double)atomic_load(&metrics->failures_in_a_row), out);
    print_gauge(metrics, "start_time_seconds", "When the job began, since 1970",
                (double)atomic_load(&metrics->started_us) / 1e6, out);
    print_gauge(metrics, "last_success_time_seconds",
                "When the last pass ended well, since 1970; 0: none did",
                (double)atomic_load(&metrics->succeeded_us) / 1e6, out);
    print_gauge(metrics, "progress_ratio",
                "How much of the pass is done, from 0 to 1; 0: not known",
                (double)atomic_load(&metrics->progress_per_mille) / 1e3, out);
    print_gauge(metrics, "owner_seconds",
                "How long the owner in progress has taken so far, the longest of all threads; 0: "
                "none is in progress",
                owner_seconds(metrics), out);
    print_gauge(metrics, "waiting",
                "1 while the job waits: it is paused, or the server is slow or behind",
                atomic_load(&metrics->waits) || atomic_load(&metrics->paused) ? 1 : 0, out);
    spill_lost_lines_print(metrics->log, metrics->command, out);
}

void spill_job_metrics_answer(void *context, const char *path, spill_http_answer_t *answer)
{
    spill_job_metrics_t *metrics = context;
    if (strcmp(path, "/metrics") == 0) {
        spill_job_metrics_print(metrics, &answer->text);
        return;
    }
    if (strcmp(path, "/healthz") != 0) {
        spill_http_say(answer, SPILL_HTTP_NOT_FOUND, "try /metrics or /healthz\n");
        return;
    }
    pthread_mutex_lock(&metrics->lock);
    spill_code_t failure = metrics->failure;
    pthread_mutex_unlock(&metrics->lock);
    if (failure == SPILL_OK) {
        spill_http_say(answer, SPILL_HTTP_OK, "ok\n");
    } else {
        spill_http_say(answer, SPILL_HTTP_UNAVAILABLE, "the last pass failed: ");
        spill_http_say(answer, SPILL_HTTP_UNAVAILABLE, spill_code_name(failure));
        spill_http_say(answer, SPILL_HTTP_UNAVAILABLE, "; the log has the reason\n");
    }
    spill_lost_lines_say(metrics->log, answer);
}
