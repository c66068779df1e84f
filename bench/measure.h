/* Rounds, medians, threads, figures and their bars: what the benchmarks share. */
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

/* Reorders the values. */
double measure_median(double *values, size_t count);

/* End the program; measure_check: unless the code is SPILL_OK. */
void measure_stop(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void measure_check(spill_code_t code, const spill_error_t *error);

/* Something that a thread does `count` times. */
typedef void (*measure_fn)(void *context, int thread, int count);

/* Seconds that `threads` threads take to do it `count` times each. */
double measure_threads(measure_fn run, void *context, int threads, int count);

/* ---- figures --------------------------------------------------------------------------------- */

/* What is measured, and how many times a thread does it in a round. */
typedef struct measure_side {
    measure_fn run;
    void *context;
    int count;
} measure_side_t;

/* Two sides that take turns, round after round. */
typedef struct measure_figure {
    const char *name;
    const char *what;
    double bar;   /* 0: none */
    bool at_most; /* ours / other, a ratio of costs; else other / ours, how many times faster */
    int threads;
    int rounds;
    measure_side_t ours;
    measure_side_t other;
} measure_figure_t;

typedef struct measure_report {
    const char *only; /* the name of the one figure that is wanted; NULL: all are */
    bool failed;      /* a figure missed its bar */
} measure_report_t;

bool measure_wanted(const measure_report_t *report, const char *name);

/* Print the heads of the columns that measure_figure prints. */
void measure_print_header(void);

/*
 * Run a figure and print a line: the medians of both sides' rounds, in microseconds for one, the
 * median of the rounds' ratios, and whether it keeps the bar.
 */
void measure_figure(measure_report_t *report, const measure_figure_t *figure);

/* ---- data ------------------------------------------------------------------------------------ */

/*
 * An element: an activity of ELEMENT_BYTES in BSON, of a kind, an actor, a time and words, as an
 * application has them. Engines that compress get it to about a half.
 */
void measure_element(uint8_t *document, uint64_t number);

/* A new folder below `parent`; freed with free. Removing it removes all that is in it. */
char *measure_folder(const char *parent);
void measure_remove_folder(char *folder);

/* What its files take on the disk. */
int64_t measure_folder_bytes(const char *folder);

#endif
