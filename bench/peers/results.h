/* Print and store rows. A results file has a line of JSON for each row. */
#ifndef BENCH_PEERS_RESULTS_H
#define BENCH_PEERS_RESULTS_H

#include "works.h"

/* Identifies a row: the options, the run, and the repetition in the run. */
typedef struct results_key {
    const work_t *work;
    const peer_t *peer;
    const peer_place_t *place;
    const works_options_t *options;
    int run, repetition;
} results_key_t;

/* Whether the file has this row. False if `file` is NULL or does not exist. */
bool results_have(const char *file, const results_key_t *key);

/* Add a row in one write. `load` is the machine's load before the row began. */
void results_add(const char *file, const results_key_t *key, const row_t *row, double load);

void results_print_heads(const work_t *work);
void results_print(const work_t *work, const row_t *row);

#endif
