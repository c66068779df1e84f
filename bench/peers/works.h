/*
 * The works on which peers are measured. Each work runs one peer in a child process and measures
 * the figures of one row.
 */
#ifndef BENCH_PEERS_WORKS_H
#define BENCH_PEERS_WORKS_H

#include "peer.h"

typedef struct works_options {
    int appends;    /* to one owner, at most */
    int length;     /* of the long owner */
    int adds;       /* with an id check */
    int owners;     /* of the feed */
    int threads;    /* of the feed, and of the appends by several threads */
    int racers;     /* threads of the race, and of the process that is killed */
    int race_count; /* appends of each of them */
    double seconds; /* after which a work ends, even if it is not complete */
} works_options_t;

/* A figure of a row: its name in the results, and how it is printed. */
typedef struct column {
    const char *key, *head;
    int decimals;
} column_t;

enum { COLUMNS_MAX = 12 };

typedef struct row {
    double figures[COLUMNS_MAX]; /* in the order of the columns; fewer: not tried */
    size_t count;
    char note[256]; /* other errors; may be empty */
} row_t;

typedef struct work {
    const char *name;
    column_t columns[COLUMNS_MAX + 1]; /* ended by one without a key */
    bool counts_loss;                  /* racy peers take part too */
    void (*run)(const peer_t *peer, const peer_place_t *place, const works_options_t *options,
                row_t *row);
} work_t;

void row_add(row_t *row, double figure);

extern const work_t work_append, work_threads, work_long, work_ids, work_add,
    work_feed;                            /* speed.c */
extern const work_t work_race, work_kill; /* loss.c */

#endif
