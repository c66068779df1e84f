/* Rounds, medians, threads: what the benchmarks share. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#define ROUNDS_MAX 99
#define THREADS_MAX 32
#define ELEMENT_BYTES 200

double measure_now(void); /* seconds, from any point in time */

/* Reorders the values. */
double measure_median(double *values, size_t count);

void measure_stop(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Something that a thread does `count` times. */
typedef void (*measure_fn)(void *context, int thread, int count);

/* Seconds that `threads` threads take to do it `count` times each. */
double measure_threads(measure_fn run, void *context, int threads, int count);

/*
 * An element: an activity of ELEMENT_BYTES in BSON, of a kind, an actor, a time and words, as an
 * application has them. Engines that compress get it to about a half.
 */
void measure_element(uint8_t *document, uint64_t number);

/* A new folder below `parent`; freed with free. Removing it removes all that is in it. */
char *measure_folder(const char *parent);
void measure_remove_folder(char *folder);

#endif
