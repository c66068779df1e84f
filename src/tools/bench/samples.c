/*
 * Measuring: the elements that are appended, threads that begin together, and statistics of what
 * they measured.
 */
#include "tools/bench/samples.h"

#include "util/error.h"

#include <assert.h>
#include <bson/bson.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- elements -------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Write `size` characters of words. */
static void write_words(char *text, size_t size, uint64_t *random)
{
    static const char *const words[] = {
        "the",    "change",  "was",     "in",    "review", "and",   "test",   "build",
        "merged", "comment", "failed",  "on",    "for",    "a",     "branch", "which",
        "server", "replied", "to",      "of",    "with",   "patch", "new",    "version",
        "after",  "release", "removed", "small", "fixes",  "issue", "again",  "documentation"};
    size_t at = 0;
    while (at < size) {
        const char *word = words[next_random(random) % (sizeof words / sizeof *words)];
        for (; *word != '\0' && at < size; word++)
            text[at++] = *word;
        if (at < size)
            text[at++] = ' ';
    }
}

void spill_bench_element(uint8_t *document, size_t size_bytes, uint64_t number)
{
    static const char *const kinds[] = {"comment", "review", "vote", "merge", "upload"};
    enum { FIXED_BYTES = 4 + (1 + 5 + 4 + 1) + (1 + 6 + 8) + (1 + 3 + 8) + (1 + 5 + 4 + 1) + 1 };
    uint64_t random = number;
    const char *kind = kinds[next_random(&random) % (sizeof kinds / sizeof *kinds)];
    size_t length = size_bytes - FIXED_BYTES - strlen(kind);
    char small[512], *text = length <= sizeof small ? small : bson_malloc(length);
    bson_t element = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&element, "type", kind);
    BSON_APPEND_INT64(&element, "actor", (int64_t)next_random(&random));
    BSON_APPEND_DATE_TIME(&element, "at", INT64_C(1600000000000) + (int64_t)number * 1000);
    write_words(text, length, &random);
    bson_append_utf8(&element, "text", -1, text, (int)length);
    assert(element.len == size_bytes);
    memcpy(document, bson_get_data(&element), size_bytes);
    bson_destroy(&element);
    if (text != small)
        bson_free(text);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Holds the threads back until all are started. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP } state;
} gate_t;

typedef struct worker {
    spill_crew_fn run;
    void *context;
    int thread;
    int count;
    gate_t *gate;
} worker_t;

double spill_crew_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *run_worker(void *argument)
{
    const worker_t *worker = argument;
    gate_t *gate = worker->gate;
    pthread_mutex_lock(&gate->lock);
    while (gate->state == GATE_SHUT)
        pthread_cond_wait(&gate->changed, &gate->lock);
    bool open = gate->state == GATE_OPEN;
    pthread_mutex_unlock(&gate->lock);
    if (open)
        worker->run(worker->context, worker->thread, worker->count);
    return NULL;
}

static void set_gate(gate_t *gate, bool open)
{
    pthread_mutex_lock(&gate->lock);
    gate->state = open ? GATE_OPEN : GATE_GIVEN_UP;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static double run_alone(spill_crew_fn run, void *context, int count)
{
    double from = spill_crew_now();
    run(context, 0, count);
    return spill_crew_now() - from;
}

spill_code_t spill_crew_run(spill_crew_fn run, void *context, int threads, int count,
                            double *seconds, spill_error_t *error)
{
    pthread_t ids[SPILL_CREW_MAX];
    worker_t workers[SPILL_CREW_MAX];
    gate_t gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, GATE_SHUT};
    int started = 0, problem = 0;
    assert(threads >= 1 && threads <= SPILL_CREW_MAX);
    if (threads == 1) {
        *seconds = run_alone(run, context, count);
        return SPILL_OK;
    }
    for (; started < threads && problem == 0; started += problem == 0) {
        workers[started] = (worker_t){run, context, started, count, &gate};
        problem = pthread_create(&ids[started], NULL, run_worker, &workers[started]);
    }
    double from = spill_crew_now();
    set_gate(&gate, problem == 0);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    *seconds = spill_crew_now() - from;
    return problem == 0 ? SPILL_OK : spill_fail_errno(error, problem, "cannot start a thread");
}

/* ---- statistics ------------------------------------------------------------------------------ */

static const double confidence_min = 0.95;

void spill_samples_add(spill_samples_t *samples, double value)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 64;
        samples->values = bson_realloc(samples->values, samples->capacity * sizeof(double));
    }
    samples->values[samples->count++] = value;
}

void spill_samples_release(spill_samples_t *samples)
{
    bson_free(samples->values);
    *samples = (spill_samples_t){0};
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, compare);
}

double spill_median_of(double *values, size_t count)
{
    sort(values, count);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/*
 * The probability that the median is between the k-th least and the k-th greatest value: that at
 * least k and at most count - k values are below it, each with probability 1/2.
 */
static double confidence_of(size_t count, size_t k)
{
    double term = pow(0.5, (double)count), outside = 0;
    for (size_t i = 0; i < k; i++) {
        outside += term;
        term *= (double)(count - i) / (double)(i + 1);
    }
    return 1 - 2 * outside;
}

spill_median_t spill_samples_median(spill_samples_t *samples)
{
    size_t count = samples->count, k = 1;
    if (count == 0)
        return (spill_median_t){0};
    double median = spill_median_of(samples->values, count);
    while (2 * (k + 1) <= count && confidence_of(count, k + 1) >= confidence_min)
        k++;
    return (spill_median_t){median, samples->values[k - 1], samples->values[count - k],
                            confidence_of(count, k)};
}

double spill_samples_percentile(spill_samples_t *samples, int per_mille)
{
    if (samples->count == 0)
        return 0;
    sort(samples->values, samples->count);
    size_t rank = (samples->count * (size_t)per_mille + 999) / 1000;
    return samples->values[rank > 0 ? rank - 1 : 0];
}
