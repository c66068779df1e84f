/*
 * A step that is carried out under a deadline: timed.c runs it; timed_steps.c and timed_list.c have
 * the kinds.
 */
#ifndef SPILL_STORE_TIMED_STEP_H
#define SPILL_STORE_TIMED_STEP_H

#include "store/timed.h"

typedef void (*spill_timed_fn)(spill_timed_t *step);

struct spill_timed {
    pthread_mutex_t lock; /* guards begun, given_up and done */
    pthread_cond_t changed;
    bool begun, given_up, done;

    spill_store_t *store;
    spill_timed_fn run;     /* in the other thread; sets `code` and `error` */
    spill_timed_fn release; /* free the copies and the results */
    spill_code_t code;
    spill_error_t error;

    /* Copies of the arguments, and the results. */
    spill_request_t **requests;
    spill_response_t *responses;
    size_t count;
    spill_definition_t definition;
    spill_binding_t binding;
    bool bound;
    spill_list_query_t query;
    void *query_copies[5];
    spill_value_t query_values[2];
    spill_listing_t listing;
    char *name, *import;
    spill_entries_t entries;
    spill_drop_note_t note;
};

spill_timed_t *spill_timed_step_new(spill_store_t *store, spill_timed_fn run,
                                    spill_timed_fn release);
void spill_timed_step_free(spill_timed_t *step);

/*
 * Let another thread carry out the step. *done: it has ended in time, and the caller takes its
 * results and frees it. Otherwise it is freed later. `changes`: it begins what was asked for.
 */
spill_code_t spill_timed_carry_out(spill_timed_t *step, bool changes, bool *done,
                                   spill_error_t *error);

/* A step of this call has begun what was asked for. */
void spill_timed_note_change(void);

#endif
