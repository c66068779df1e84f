/* Shared by the benchmarks: rounds, medians, threads, figures and their bars. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <spillway/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUNDS_MAX 99
#define THREADS_MAX 32
#define ELEMENT_BYTES 200

double measure_now(void); /* seconds, from any point in time */

/* Sorts the values. */
double measure_median(double *values, size_t count);

/*
 * The exit code of a benchmark is 0, or 1 if a figure missed its bar, or MEASURE_ERROR if it could
 * not measure.
 */
#define MEASURE_ERROR 2

/*
 * Is SPILLWAY_BENCH_SMALLEST set? Then a test only runs the program: each figure once, with little
 * work. The times say nothing.
 */
bool measure_is_smallest(void);

/* `smallest` in that case, else `count`. */
int measure_count(int count, int smallest);

/*
 * Print "benchmark: " and a message on stderr, and end the program with MEASURE_ERROR.
 * measure_check does so only if the code is not SPILL_OK.
 */
void measure_stop(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void measure_check(spill_code_t code, const spill_error_t *error);

/* An operation that a thread repeats `count` times. */
typedef void (*measure_fn)(void *context, int thread, int count);

/* Seconds that `threads` threads need to repeat it `count` times each. */
double measure_threads(measure_fn run, void *context, int threads, int count);

/* ---- figures --------------------------------------------------------------------------------- */

/* One side of a figure: an operation, and how often a thread repeats it in a round. */
typedef struct measure_side {
    measure_fn run;
    void *context;
    int count;
} measure_side_t;

/* Two sides that take turns, round after round. */
typedef struct measure_figure {
    const char *name;
    const char *what;
    double bar;    /* 0: none */
    bool at_most;  /* ours / other, a ratio of costs; else other / ours, how many times faster */
    double us_max; /* a second bar: the median microseconds of one operation of ours; 0: none */
    int threads;
    int rounds;
    measure_side_t ours;
    measure_side_t other;
} measure_figure_t;

typedef struct measure_report {
    const char *only; /* the name of the only figure to measure; NULL: all */
    bool failed;      /* a figure missed its bar */
} measure_report_t;

bool measure_wanted(const measure_report_t *report, const char *name);

/* Print the column heads of measure_figure's lines. */
void measure_print_header(void);

/*
 * Measure a figure and print a line: the medians of both sides' rounds in microseconds per
 * operation, the median of the rounds' ratios, and whether it meets the bar. A second line is about
 * us_max, if the figure has it.
 */
void measure_figure(measure_report_t *report, const measure_figure_t *figure);

/*
 * For a program with lines of its own: judge a value, and print "; at most 1.10: met" (or "at
 * least", or "MISSED") behind it, without the end of the line.
 */
void measure_print_bar(measure_report_t *report, double value, double bar, bool at_most);

/* ---- data ------------------------------------------------------------------------------------ */

/*
 * An element: an activity of ELEMENT_BYTES in BSON, with a kind, an actor, a time and words, like
 * an application's. Engines that compress store it in about half the bytes.
 */
void measure_element(uint8_t *document, uint64_t number);

/* A new folder below `parent`; free its path with free. Removing it also removes its contents. */
char *measure_folder(const char *parent);
void measure_remove_folder(char *folder);

/* The disk space of its files. */
int64_t measure_folder_bytes(const char *folder);

/*
 * Zipf's law: the n-th owner is used 1/n times as often as the first. The chance of the first n
 * owners, for each n; free it. The draw returns the owner, from 0, at a place in [0, 1).
 */
double *measure_zipf(int owners);
int measure_zipf_draw(const double *zipf, int owners, double at);

#endif
