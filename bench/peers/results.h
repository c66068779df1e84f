/* Rows, printed and kept: a file of results has a line of JSON for each row. */
#ifndef BENCH_PEERS_RESULTS_H
#define BENCH_PEERS_RESULTS_H

#include "works.h"

/* Which row it is: what was asked for, which of several runs of it, and which repetition there. */
typedef struct results_key {
    const work_t *work;
    const peer_t *peer;
    const peer_place_t *place;
    const works_options_t *options;
    int run, repetition;
} results_key_t;

/* The file has this row. No file, or one that is not there: no row. */
bool results_have(const char *file, const results_key_t *key);

/* Add a row in one write. `load`: the machine's before the row began. */
void results_add(const char *file, const results_key_t *key, const row_t *row, double load);

void results_print_heads(const work_t *work);
void results_print(const work_t *work, const row_t *row);

#endif
