/*
 * The guards and effects of request.h as pure functions on a document's state, for the stores that
 * keep state themselves (memory, embedded). One place for each rule.
 */
#ifndef SPILL_STORE_TRANSITION_H
#define SPILL_STORE_TRANSITION_H

#include "store/request.h"

/* What becomes of the document's elements, for the store to carry out. */
typedef enum spill_effect_kind {
    SPILL_EFFECT_NONE,
    /*
     * request->elements at seq, seq + 1, ...; capped: what has a number below `end` goes for
     * good, of the document's elements and of these. Capped, keeping the best: what is gone by the
     * state (spill_is_deleted) goes, of both; seq is the first of request->skip numbers before
     * them.
     */
    SPILL_EFFECT_ADD,
    SPILL_EFFECT_REPLACE, /* element seq becomes request->elements[0] */
    SPILL_EFFECT_DELETE,  /* element seq goes */
    SPILL_EFFECT_CUT,     /* elements in [seq, end) leave the head: they live on in a page */
    SPILL_EFFECT_ERASE,   /* elements in [seq, end) go for good */
    SPILL_EFFECT_FILL,    /* the document's elements are request->run */
    SPILL_EFFECT_DROP     /* the document goes, with its elements (UNMANAGE: to other fields) */
} spill_effect_kind_t;

typedef struct spill_effect {
    spill_effect_kind_t kind;
    int64_t seq;
    int64_t end;
    int64_t crowded_out; /* ADD: spill_response.crowded_out */
} spill_effect_t;

/* What only the store can know of its document. What a kind does not use is not looked at. */
typedef struct spill_facts {
    /*
     * APPEND, capped: the size of live element `seq` of the document, asked of the oldest ones,
     * one after the other; below 0: it cannot be told, and the request is refused.
     */
    int64_t (*size_of)(void *context, int64_t seq);
    void *context;
    bool op_seen;         /* APPEND: request->op is in the document's window */
    bool differs;         /* CUT with a run, ADOPT_SPLIT: the slots hold other elements */
    int64_t old_bytes;    /* EDIT, REMOVE, DELETE: size of element request->seq; -1: not there */
    int64_t erased_bytes; /* TRIM: size of the head's live elements below request->low */
    /* RECOUNT with `counts`, of stores that keep these two: the document's elements, and their
     * size. */
    bool measured;
    int64_t live, live_bytes;
    /*
     * Where spill_needs_journal: all of the document's elements; else NULL. Layout subset: they are
     * the journal's.
     */
    const spill_top_t *journal;
    spill_window_stats_t window_stats; /* layout bucket; where spill_needs_window_stats: see
                                          spill_window_stats_after */
    /*
     * ADOPT: the elements that others keep in the array's place, ascending, from 0 on; NULL: none,
     * or no array. ADOPT_SPLIT: without those that go.
     */
    const spill_run_t *unmanaged;
    /*
     * APPEND, UPDATE_FIELDS: size of the head's other fields after request->update, or of those of
     * the head to be made; 0: as they are. ADOPT, ADOPT_SPLIT: without the array; UNMANAGE: with
     * it.
     */
    int64_t fields_bytes;
    int64_t now_us;      /* where spill_needs_time: the store's clock */
    int64_t dropped_rev; /* ADOPT_SPLIT: the highest that a dropped head had */
} spill_facts_t;

/*
 * Apply a request (any kind but READ) to a document's state: before (present == false when it is
 * absent) and, when DONE, after; when REFUSED it is unchanged. state->live and state->live_bytes
 * are kept here for every effect.
 */

spill_outcome_t spill_transition(const spill_request_t *request, const spill_facts_t *facts,
                                 spill_state_t *state, spill_effect_t *effect);

/* Does it matter what time it is (facts->now_us)? Once a lease has run out, it never runs again. */
bool spill_needs_time(const spill_request_t *request);

/*
 * Layout bucket: the tally of a document once a request that changes, takes or counts elements has
 * been carried out. `run` holds the document's live elements, ascending.
 */
bool spill_needs_window_stats(const spill_request_t *request);
spill_window_stats_t spill_window_stats_after(const spill_request_t *request,
                                              const spill_run_t *run);

/*
 * Does it depend on how the document's elements rank? Layout subset: where it brings a refill;
 * capped, keeping the best: every append.
 */
bool spill_needs_journal(const spill_request_t *request);

/* ADOPT, ADOPT_SPLIT, UNMANAGE: does an array come out of the head's other fields, or go into them?
 */
bool spill_moves_array(const spill_request_t *request);

/* Is element `seq`, which was in the document or was appended to it, no longer there? */
bool spill_is_deleted(const spill_state_t *after, int64_t seq);

/* Most bytes that an update (may be NULL) adds to a head's other fields. */
int64_t spill_update_growth(const bson_t *update);

/*
 * Why an append was refused, judged from a later READ of the same document. Where the append
 * carries an update, room is judged with the most that the update could add to the fields.
 */
typedef enum spill_refusal {
    SPILL_REFUSAL_NONE,     /* it would be accepted now: try again */
    SPILL_REFUSAL_ABSENT,   /* or a page of another incarnation */
    SPILL_REFUSAL_REPEATED, /* the operation is in the window */
    SPILL_REFUSAL_STALE,    /* n has passed base + window: nobody can tell any more */
    SPILL_REFUSAL_SEALED,
    SPILL_REFUSAL_FULL
} spill_refusal_t;

spill_refusal_t spill_append_refusal(const spill_request_t *append, const spill_state_t *state,
                                     bool op_seen);

/*
 * Does the new element fit its document? The old one has `old_bytes` bytes. A smaller element
 * always fits.
 */
bool spill_edit_has_room(const spill_request_t *edit, const spill_state_t *state,
                         int64_t old_bytes);

/*
 * Will it write the head's other fields, so that facts->fields_bytes is to be found? Not where it
 * is refused anyway: a refusal comes before an update's own errors.
 */
bool spill_writes_fields(const spill_request_t *request, const spill_state_t *state, bool op_seen);

#endif
