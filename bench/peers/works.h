/* What peers are measured by. Each work runs one peer in a process of its own, and prints a row. */
#ifndef BENCH_PEERS_WORKS_H
#define BENCH_PEERS_WORKS_H

#include "peer.h"

typedef struct works_options {
    int appends;    /* to one owner, at most */
    int length;     /* of the owner that is long already */
    int adds;       /* with an id check */
    int owners;     /* of the feed */
    int threads;    /* of the feed, and of the appends by several */
    int racers;     /* of the race, and before the kill */
    int race_count; /* appends of each of them */
    double seconds; /* after which a work ends, whatever it has done */
} works_options_t;

typedef struct work {
    const char *name;
    const char *columns; /* the heads of its columns, behind the peer's name */
    bool counts_loss;    /* racy peers take part, too */
    void (*run)(const peer_t *peer, const peer_place_t *place, const works_options_t *options);
} work_t;

extern const work_t work_append, work_threads, work_long, work_add, work_feed; /* speed.c */
extern const work_t work_race, work_kill;                                      /* loss.c */

#endif
