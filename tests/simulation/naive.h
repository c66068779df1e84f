/*
 * Versions that look right and are not: each weakens one guard of the protocol, or is a client that
 * does without it. The simulation has to find a failure in each, and none in ours in the same
 * schedules. docs/internals/simulation.md lists them.
 */
#ifndef SIM_NAIVE_H
#define SIM_NAIVE_H

#include "world.h"

typedef struct sim_naive {
    const char *name;
    sim_execute_fn execute; /* NULL: the store's own guards */
    sim_body_fn body;       /* NULL: our clients */
    void (*finish)(sim_world_t *world);
    void (*adjust)(sim_world_t *world);
    sim_execute_fn ours; /* how requests are carried out where ours is tried; NULL: as they are */
    const char *shows;   /* what the failure says */
    int schedules;       /* within which it has to fail so */
} sim_naive_t;

/* One owner, these weights, no padding; the same bounds for every client. */
void sim_naive_weigh(sim_settings_t *settings, const int *weights);
void sim_naive_bound(sim_settings_t *settings, int64_t threshold, int64_t page);

/* A weakened guard (naive_store.c). */
extern const sim_naive_t sim_naive_put_replaces;
extern const sim_naive_t sim_naive_put_compares_contents;
extern const sim_naive_t sim_naive_cut_compares_contents;
extern const sim_naive_t sim_naive_window_alone;
extern const sim_naive_t sim_naive_window_for_each_document;
extern const sim_naive_t sim_naive_removal_deletes;
extern const sim_naive_t sim_naive_orphans_deleted;
extern const sim_naive_t sim_naive_trim_deletes_pages;
extern const sim_naive_t sim_naive_sealed_page_deleted;
extern const sim_naive_t sim_naive_stored_counter;

/* A naive client (naive_client.c). */
extern const sim_naive_t sim_naive_count_by_max;
extern const sim_naive_t sim_naive_batch_larger_than_page;
extern const sim_naive_t sim_naive_check_then_act;
extern const sim_naive_t sim_naive_page_number_read_separately;
extern const sim_naive_t sim_naive_count_incremented_after;
extern const sim_naive_t sim_naive_retry_without_id;
extern const sim_naive_t sim_naive_head_has_the_newest;

#endif
