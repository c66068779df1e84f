#include "measure.h"

#include <assert.h>
#include <bson/bson.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double measure_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

double measure_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void measure_stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "benchmark: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(EXIT_FAILURE);
}

void measure_check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        measure_stop("%s", error->message);
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct worker {
    measure_fn run;
    void *context;
    int thread;
    int count;
    pthread_barrier_t *start;
} worker_t;

static void *work(void *argument)
{
    const worker_t *worker = argument;
    pthread_barrier_wait(worker->start);
    worker->run(worker->context, worker->thread, worker->count);
    return NULL;
}

double measure_threads(measure_fn run, void *context, int threads, int count)
{
    pthread_t ids[THREADS_MAX];
    worker_t workers[THREADS_MAX];
    pthread_barrier_t start;
    if (threads == 1) {
        double from = measure_now();
        run(context, 0, count);
        return measure_now() - from;
    }
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker_t){run, context, i, count, &start};
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0)
            measure_stop("cannot start a thread");
    }
    pthread_barrier_wait(&start);
    double from = measure_now();
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&start);
    return measure_now() - from;
}

/* ---- figures --------------------------------------------------------------------------------- */

bool measure_wanted(const measure_report_t *report, const char *name)
{
    return !report->only || strcmp(report->only, name) == 0;
}

void measure_print_header(void)
{
    printf("%-16s %10s %10s %8s  %-8s\n", "figure", "ours us", "other us", "ratio", "bar");
}

/* Microseconds for one. */
static double cost(const measure_side_t *side, int threads)
{
    return measure_threads(side->run, side->context, threads, side->count) * 1e6 /
           ((double)threads * side->count);
}

void measure_figure(measure_report_t *report, const measure_figure_t *figure)
{
    double ours[ROUNDS_MAX];
    double other[ROUNDS_MAX];
    double ratios[ROUNDS_MAX];
    char bar[16] = "no bar";
    for (int i = -1; i < figure->rounds; i++) { /* round -1 warms up */
        double theirs = cost(&figure->other, figure->threads);
        double mine = cost(&figure->ours, figure->threads);
        if (i < 0)
            continue;
        ours[i] = mine;
        other[i] = theirs;
        ratios[i] = figure->at_most ? mine / theirs : theirs / mine;
    }
    size_t rounds = (size_t)figure->rounds;
    double ratio = measure_median(ratios, rounds);
    bool kept = figure->at_most ? ratio <= figure->bar : ratio >= figure->bar;
    const char *verdict = figure->bar == 0 ? "" : kept ? "ok" : "FAIL";
    if (figure->bar > 0)
        snprintf(bar, sizeof bar, "%s %5.2f", figure->at_most ? "<=" : ">=", figure->bar);
    printf("%-16s %10.2f %10.2f %8.2f  %-8s  %-4s %s\n", figure->name, measure_median(ours, rounds),
           measure_median(other, rounds), ratio, bar, verdict, figure->what);
    fflush(stdout);
    report->failed |= figure->bar > 0 && !kept;
}

/* ---- data ------------------------------------------------------------------------------------ */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* `size` characters of words. */
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

void measure_element(uint8_t *document, uint64_t number)
{
    static const char *const kinds[] = {"comment", "review", "vote", "merge", "upload"};
    enum { FIXED_BYTES = 4 + (1 + 5 + 4 + 1) + (1 + 6 + 8) + (1 + 3 + 8) + (1 + 5 + 4 + 1) + 1 };
    uint64_t random = number;
    const char *kind = kinds[next_random(&random) % (sizeof kinds / sizeof *kinds)];
    char text[ELEMENT_BYTES];
    size_t length = ELEMENT_BYTES - FIXED_BYTES - strlen(kind);
    bson_t element = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&element, "type", kind);
    BSON_APPEND_INT64(&element, "actor", (int64_t)next_random(&random));
    BSON_APPEND_DATE_TIME(&element, "at", INT64_C(1600000000000) + (int64_t)number * 1000);
    write_words(text, length, &random);
    bson_append_utf8(&element, "text", -1, text, (int)length);
    assert(element.len == ELEMENT_BYTES);
    memcpy(document, bson_get_data(&element), ELEMENT_BYTES);
    bson_destroy(&element);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)kind;
    (void)walk;
    return remove(path);
}

char *measure_folder(const char *parent)
{
    size_t size = strlen(parent) + sizeof "/spillway-bench-XXXXXX";
    char *folder = malloc(size);
    snprintf(folder, size, "%s/spillway-bench-XXXXXX", parent);
    if (!mkdtemp(folder))
        measure_stop("%s: cannot make a folder", folder);
    return folder;
}

void measure_remove_folder(char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
