/*
 * Plausible but wrong versions of the protocol: each weakens one guard, or is a client without a
 * guard. The simulation must find a failure in each, and none in the real protocol under the same
 * schedules. docs/internals/simulation.md lists them.
 */
#ifndef SIM_NAIVE_H
#define SIM_NAIVE_H

#include "world.h"

typedef struct sim_naive {
    const char *name;
    sim_execute_fn execute; /* NULL: the store's own guards */
    sim_deliver_fn deliver; /* NULL: the store's own notes of drops */
    sim_body_fn body;       /* NULL: the usual clients */
    void (*finish)(sim_world_t *world);
    void (*adjust)(sim_world_t *world);
    /* how requests are carried out when the real protocol runs; NULL: as usual */
    sim_execute_fn real;
    const char *shows; /* a part of the expected failure's text */
    int schedules;     /* the failure must occur within this number */
} sim_naive_t;

/* One owner, these weights, no padding; all clients have the same bounds. */
void sim_naive_weigh(sim_settings_t *settings, const int *weights);
void sim_naive_bound(sim_settings_t *settings, int64_t threshold, int64_t page);

/* Weakened guards (naive_store.c). */
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

/* Sessions (naive_session.c). */
extern const sim_naive_t sim_naive_sessions_by_count;
extern const sim_naive_t sim_naive_highest_statement;
extern const sim_naive_t sim_naive_entry_replaced_late;

/* REWRITE (naive_rewrite.c). */
extern const sim_naive_t sim_naive_rewrite_without_length;
extern const sim_naive_t sim_naive_rewrite_without_entry;

/* Notes of drops (naive_ending.c). */
extern const sim_naive_t sim_naive_note_always_believed;
extern const sim_naive_t sim_naive_note_afterwards;
extern const sim_naive_t sim_naive_note_forgotten_by_all;
extern const sim_naive_t sim_naive_note_replaced;
extern const sim_naive_t sim_naive_note_ends_with_pages;
extern const sim_naive_t sim_naive_all_believed;
extern const sim_naive_t sim_naive_all_stays;
extern const sim_naive_t sim_naive_all_replaced;
extern const sim_naive_t sim_naive_ended_without_mark;

/* Arrays that keep each id once (naive_set.c). */
extern const sim_naive_t sim_naive_set_without_pages;
extern const sim_naive_t sim_naive_set_without_head;

/* Naive clients (naive_client.c). */
extern const sim_naive_t sim_naive_count_by_max;
extern const sim_naive_t sim_naive_batch_larger_than_page;
extern const sim_naive_t sim_naive_check_then_act;
extern const sim_naive_t sim_naive_page_number_read_separately;
extern const sim_naive_t sim_naive_count_incremented_after;
extern const sim_naive_t sim_naive_retry_without_id;
extern const sim_naive_t sim_naive_head_has_the_newest;

#endif
