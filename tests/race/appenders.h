/*
 * Threads that append, read, edit and remove through the public functions, on owners that they
 * share and on owners of their own, while writes may fail. What every store has to keep up.
 */
#ifndef TESTS_RACE_APPENDERS_H
#define TESTS_RACE_APPENDERS_H

#include <spillway/spillway.h>

typedef struct race_settings {
    spill_keep_t keep;
    int threads;
    int appends;             /* a thread */
    void (*disturb)(void *); /* called now and then from the threads; may be NULL */
    void *context;
} race_settings_t;

/*
 * Runs the race on a new array of the store and checks: every acknowledged element is there once,
 * each thread's own in its order; pages are never seen with a gap; the verifier is content.
 */
void run_race(spill_store_t *store, const race_settings_t *settings);

#endif
