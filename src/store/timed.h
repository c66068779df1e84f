/*
 * Deadlines (include/spillway/deadline.h). A thread that has one does not carry out a step itself:
 * another thread does, with copies of the arguments, and the caller waits until the deadline. What
 * the driver, the network or a disk do then cannot keep the caller. The other thread ends when they
 * do.
 *
 *      WAITS -> BEGUN -> done        spill_timed_begin, just before the step can have an effect
 *      WAITS -> given up             the deadline: the step has no effect      SPILL_TIMED_OUT
 *               BEGUN -> given up    it may have one, also later               SPILL_UNKNOWN
 *
 * A READ has no effect, so giving it up is always SPILL_TIMED_OUT. A call of several steps returns
 * SPILL_UNKNOWN instead if an earlier step has begun what was asked for: another client may finish
 * it.
 */
#ifndef SPILL_STORE_TIMED_H
#define SPILL_STORE_TIMED_H

#include "store/store.h"

#include <spillway/deadline.h>

typedef struct spill_timed spill_timed_t;

/* Has the calling thread a deadline? */
bool spill_timed_is_set(void);

/* Put the deadline of the calling thread aside. Restore it with spill_deadline_end. */
spill_deadline_t spill_timed_suspend(void);

/* The next step belongs to another call, or to another part of a batch. */
void spill_timed_forget_changes(void);

/*
 * pthread_cond_wait until the deadline of the calling thread. False: it has passed. The condition
 * uses CLOCK_MONOTONIC (spill_clock_condition_init).
 */
bool spill_timed_wait(pthread_cond_t *condition, pthread_mutex_t *lock);

/*
 * For a thread that has a deadline: the functions of store.h without `timed_`, and a listing of the
 * store.
 */
spill_code_t spill_timed_call(spill_store_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error);
spill_code_t spill_timed_call_all(spill_store_t *store, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error);
spill_code_t spill_timed_list(spill_store_t *store, const spill_definition_t *definition,
                              const spill_binding_t *binding, const spill_list_query_t *query,
                              spill_listing_t *listing, spill_error_t *error);
spill_code_t spill_timed_open_entries(spill_store_t *store, const char *name, const char *import,
                                      spill_entries_t *entries, spill_error_t *error);

spill_code_t spill_timed_head_ends(spill_store_t *store, int64_t rev, spill_error_t *error);
spill_code_t spill_timed_note_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, const spill_drop_note_t *note,
                                   spill_error_t *error);
spill_code_t spill_timed_find_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error);
spill_code_t spill_timed_forget_drop(spill_store_t *store, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error);

/* Wait until no step that was given up uses the store. */
void spill_timed_finish(spill_store_t *store);

/* ---- for stores with begins_steps ------------------------------------------------------------ */

/* The step that the calling thread carries out for another one; NULL: its own. */
spill_timed_t *spill_timed_current(void);

/* The step has an effect from now on. False: it was given up, and must not have one. */
bool spill_timed_begin(spill_timed_t *step); /* NULL: true */

/* The error of a step that was given up before it has begun. */
spill_code_t spill_timed_given_up(spill_error_t *error);

#endif
