/*
 * Threads that append, read, edit and remove through the public functions, on shared owners and on
 * owners of their own, while writes may fail. Every store must withstand this.
 */
#ifndef TESTS_RACE_APPENDERS_H
#define TESTS_RACE_APPENDERS_H

#include <spillway/spillway.h>

typedef struct race_settings {
    spill_keep_t keep;
    int threads;
    int appends;             /* per thread */
    void (*disturb)(void *); /* called from the threads now and then; may be NULL */
    void *context;
} race_settings_t;

/*
 * Run the race on a new array of the store and check: every acknowledged element exists once, each
 * thread's elements in their order; no read shows a gap; the verifier finds nothing.
 */
void run_race(spill_store_t *store, const race_settings_t *settings);

#endif
