#include "measure.h"

#include "tools/bench/samples.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double measure_now(void)
{
    return spill_crew_now();
}

double measure_median(double *values, size_t count)
{
    return spill_median_of(values, count);
}

bool measure_is_smallest(void)
{
    return getenv("SPILLWAY_BENCH_SMALLEST") != NULL;
}

int measure_count(int count, int smallest)
{
    return measure_is_smallest() ? smallest : count;
}

void measure_stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "benchmark: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(MEASURE_ERROR);
}

void measure_check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        measure_stop("%s", error->message);
}

/* ---- threads --------------------------------------------------------------------------------- */

double measure_threads(measure_fn run, void *context, int threads, int count)
{
    double seconds = 0;
    spill_error_t error;
    measure_check(spill_crew_run(run, context, threads, count, &seconds, &error), &error);
    return seconds;
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

/* Microseconds for one operation. */
static double cost(const measure_side_t *side, int threads)
{
    enum { SMALLEST = 5 };
    int count = side->count < SMALLEST ? side->count : measure_count(side->count, SMALLEST);
    return measure_threads(side->run, side->context, threads, count) * 1e6 /
           ((double)threads * count);
}

static void judge_time(measure_report_t *report, const measure_figure_t *figure, double us)
{
    bool kept = us <= figure->us_max;
    printf("%-16s %10.2f %10s %8s  <= %5.2f  %-4s the time of ours, in us\n", figure->name, us, "",
           "", figure->us_max, kept ? "ok" : "FAIL");
    report->failed |= !kept;
}

void measure_figure(measure_report_t *report, const measure_figure_t *figure)
{
    double ours[ROUNDS_MAX];
    double other[ROUNDS_MAX];
    double ratios[ROUNDS_MAX];
    char bar[16] = "no bar";
    size_t rounds = (size_t)measure_count(figure->rounds, 1);
    for (int i = -1; i < (int)rounds; i++) { /* round -1 warms up */
        double theirs = cost(&figure->other, figure->threads);
        double mine = cost(&figure->ours, figure->threads);
        if (i < 0)
            continue;
        ours[i] = mine;
        other[i] = theirs;
        ratios[i] = figure->at_most ? mine / theirs : theirs / mine;
    }
    double ratio = measure_median(ratios, rounds);
    bool kept = figure->at_most ? ratio <= figure->bar : ratio >= figure->bar;
    const char *verdict = figure->bar == 0 ? "" : kept ? "ok" : "FAIL";
    if (figure->bar > 0)
        snprintf(bar, sizeof bar, "%s %5.2f", figure->at_most ? "<=" : ">=", figure->bar);
    double us = measure_median(ours, rounds);
    printf("%-16s %10.2f %10.2f %8.2f  %-8s  %-4s %s\n", figure->name, us,
           measure_median(other, rounds), ratio, bar, verdict, figure->what);
    report->failed |= figure->bar > 0 && !kept;
    if (figure->us_max > 0)
        judge_time(report, figure, us);
    fflush(stdout);
}

void measure_print_bar(measure_report_t *report, double value, double bar, bool at_most)
{
    bool met = at_most ? value <= bar : value >= bar;
    report->failed |= !met;
    printf("; %s %.4g: %s", at_most ? "at most" : "at least", bar, met ? "met" : "MISSED");
}

/* ---- data ------------------------------------------------------------------------------------ */

void measure_element(uint8_t *document, uint64_t number)
{
    spill_bench_element(document, ELEMENT_BYTES, number);
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

static int64_t summed_bytes;

static int sum_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    enum { BLOCK_BYTES = 512 };
    (void)path;
    (void)walk;
    summed_bytes += kind == FTW_F ? (int64_t)about->st_blocks * BLOCK_BYTES : 0;
    return 0;
}

int64_t measure_folder_bytes(const char *folder)
{
    summed_bytes = 0;
    nftw(folder, sum_entry, 16, FTW_PHYS);
    return summed_bytes;
}

/* ---- owners ---------------------------------------------------------------------------------- */

double *measure_zipf(int owners)
{
    double *sums = malloc((size_t)owners * sizeof *sums), sum = 0;
    for (int i = 0; i < owners; i++)
        sums[i] = sum += 1.0 / (i + 1);
    for (int i = 0; i < owners; i++)
        sums[i] /= sum;
    return sums;
}

int measure_zipf_draw(const double *zipf, int owners, double at)
{
    int low = 0, high = owners - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (zipf[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
