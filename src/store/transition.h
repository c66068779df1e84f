/*
 * The guards and effects of request.h as pure functions on a document's state, for the stores that
 * keep state themselves (embedded, and the model store of the tests). One place for each rule.
 */
#ifndef SPILL_STORE_TRANSITION_H
#define SPILL_STORE_TRANSITION_H

#include "store/request.h"

/* What the store has to do with the document's elements. */
typedef enum spill_effect_kind {
    SPILL_EFFECT_NONE,
    /*
     * Add append.elements as seq, seq + 1, ... (spill_request_seq). Capped: then delete the
     * elements with numbers below `end`, old and new. Top-N: then delete the elements that the
     * state has as deleted (spill_is_deleted), old and new; seq is the first of the append.skip
     * numbers before them.
     */
    SPILL_EFFECT_ADD,
    SPILL_EFFECT_REPLACE, /* element seq becomes change.element */
    SPILL_EFFECT_DELETE,  /* delete element seq */
    SPILL_EFFECT_CUT,     /* elements in [seq, end) leave the head: a page has them */
    SPILL_EFFECT_ERASE,   /* delete elements in [seq, end) */
    SPILL_EFFECT_FILL,    /* replace the document's elements by the run (spill_request_run) */
    SPILL_EFFECT_DROP /* delete document and elements (UNMANAGE: they become an unmanaged array) */
} spill_effect_kind_t;

typedef struct spill_effect {
    spill_effect_kind_t kind;
    int64_t seq;
    int64_t end;
    int64_t crowded_out; /* ADD: spill_response.crowded_out */
} spill_effect_t;

/* What a document's other content says about an append or an update of fields. */
typedef struct spill_seen {
    bool op;        /* append.op is in the window */
    bool unmatched; /* the head does not match append.match */
    bool has_id;    /* append.searched: an element with the id of an appended one is there */
    spill_session_verdict_t
        session; /* of the operations of sessions: the first one that is not NEW */
} spill_seen_t;

/* What only the store knows about its document. Fields that a kind does not use are ignored. */
typedef struct spill_facts {
    /*
     * APPEND, capped: return the size of the document's live element `seq`. It is called for the
     * oldest elements in turn. Below 0: the size is not known, and the request is refused.
     */
    int64_t (*size_of)(void *context, int64_t seq);
    void *context;
    spill_seen_t seen;    /* APPEND, UPDATE_FIELDS, REWRITE */
    bool differs;         /* CUT with a run, ADOPT_SPLIT: the slots hold other elements */
    int64_t old_bytes;    /* EDIT, REMOVE, DELETE: size of element change.seq; -1: absent */
    int64_t erased_bytes; /* TRIM: size of the head's live elements below change.watermark */
    /* RECOUNT with `counts`, in a store that keeps these two: the elements that it has counted. */
    bool measured;
    int64_t live, live_bytes;
    /*
     * If spill_needs_journal: all of the document's elements (layout subset: the journal); else
     * NULL.
     */
    const spill_top_t *journal;
    /* If spill_needs_window_stats (layout bucket): see spill_window_stats_after. */
    spill_window_stats_t window_stats;
    /*
     * ADOPT: the elements of the unmanaged array, ascending, numbered from 0; NULL: no such array,
     * or an empty one. ADOPT_SPLIT: without the elements of adopt.run.
     */
    const spill_run_t *unmanaged;
    /*
     * Size of the head's other fields. APPEND, UPDATE_FIELDS: after append.update, or in the head
     * to be made; 0: unchanged. ADOPT, ADOPT_SPLIT: without the array. UNMANAGE: with the array.
     */
    int64_t fields_bytes;
    /*
     * The part of fields_bytes that a new head adds: documents around the array's own fields. The
     * bound does not count it again, because a client that reads the absent head cannot know it.
     */
    int64_t around_bytes;
    int64_t now_us;      /* if spill_needs_time: the store's clock */
    int64_t dropped_rev; /* ADOPT_SPLIT: the highest rev of a dropped head of this owner */
} spill_facts_t;

/*
 * Apply a request of any kind but READ to a document's state (of an absent document: present ==
 * false). If REFUSED, the state is unchanged. If DONE, it is the state after the step, with live
 * and live_bytes up to date, and *effect says what to do with the elements.
 */
spill_outcome_t spill_transition(const spill_request_t *request, const spill_facts_t *facts,
                                 spill_state_t *state, spill_effect_t *effect);

/* How many of an APPEND's elements, its first ones, a capped head drops in the same step. */
size_t spill_append_skipped(const spill_request_t *append, const spill_effect_t *effect);

/* Does the request need the time (facts->now_us)? A lease that has run out never runs again. */
bool spill_needs_time(const spill_request_t *request);

/*
 * Layout bucket: the window statistics of a document after a request that edits, removes or counts
 * elements. `run` holds the document's live elements before it, ascending.
 */
bool spill_needs_window_stats(const spill_request_t *request);
spill_window_stats_t spill_window_stats_after(const spill_request_t *request,
                                              const spill_run_t *run);

/*
 * Does the request depend on how the document's elements rank? Layout subset: if it has a refill.
 * Top-N capped: every append.
 */
bool spill_needs_journal(const spill_request_t *request);

/* ADOPT, ADOPT_SPLIT, UNMANAGE: an array leaves the head's other fields, or joins them. */
bool spill_moves_array(const spill_request_t *request);

/* Was element `seq`, which the document had or which was appended to it, deleted by the step? */
bool spill_is_deleted(const spill_state_t *after, int64_t seq);

/* Most bytes that an update (may be NULL) adds to a head's other fields. */
int64_t spill_update_growth(const bson_t *update);

/* The same of an APPEND or UPDATE_FIELDS: its update, and its sessions' entries. */
int64_t spill_fields_growth(const spill_request_t *request);

/*
 * Why an append was refused, according to a later READ of the same document. If the append carries
 * an update, its room is computed with the most that the update can add to the fields.
 */
typedef enum spill_refusal {
    SPILL_REFUSAL_NONE,     /* it would be accepted now: retry */
    SPILL_REFUSAL_ABSENT,   /* no document, or a page of another incarnation */
    SPILL_REFUSAL_REPEATED, /* the operation is in the window */
    SPILL_REFUSAL_STALE,    /* op_count has passed base + window: it may have left the window */
    SPILL_REFUSAL_TOO_OLD,  /* the session has made a later transaction */
    SPILL_REFUSAL_NO_MATCH, /* the head is absent, or does not match */
    SPILL_REFUSAL_SESSIONS, /* there is no room for the session's entry */
    SPILL_REFUSAL_GAPS,     /* there is no room in the session's entry */
    SPILL_REFUSAL_SEALED,
    SPILL_REFUSAL_PRESENT, /* append.seqs, and there is a head */
    SPILL_REFUSAL_SEARCH,  /* append.searched does not hold: search again */
    SPILL_REFUSAL_FULL
} spill_refusal_t;

/* `seen` NULL: nothing. */
spill_refusal_t spill_append_refusal(const spill_request_t *append, const spill_state_t *state,
                                     const spill_seen_t *seen);

/* The same with the size that the head's other fields will have, if the store knows it. */
spill_refusal_t spill_append_refusal_within(const spill_request_t *append,
                                            const spill_state_t *state, const spill_seen_t *seen,
                                            int64_t fields_bytes);

/* What a READ with the request's operation and match has found. */
spill_seen_t spill_seen_by(const spill_response_t *read);

/*
 * What appends and updates of fields have in common: session, match, absence. An update of fields
 * may also be refused because of its size.
 */
spill_refusal_t spill_update_refusal(const spill_request_t *update, const spill_state_t *state,
                                     const spill_seen_t *seen);

/*
 * Does the new element fit its document? The old one has `old_bytes` bytes. An element that is not
 * larger than the old one always fits.
 */
bool spill_edit_has_room(const spill_request_t *edit, const spill_state_t *state,
                         int64_t old_bytes);

/*
 * Will the request write the head's other fields, so that the store must compute
 * facts->fields_bytes? Not if it is refused for another reason: then errors of the update itself do
 * not matter.
 */
bool spill_writes_fields(const spill_request_t *request, const spill_state_t *state,
                         const spill_seen_t *seen);

/* ---- the top of a summary -------------------------------------------------------------------- */

/*
 * Layout subset: what the steps do to the top of a summary (step_top.c). In other layouts, which
 * have no top, these functions do nothing.
 */

/* REMOVE, EDIT, PREPARE, COMPLETE, TRIM: does the step remove or change element `seq`? */
bool spill_step_affects(const spill_request_t *request, int64_t seq);

/* Has the step a refill, or is none needed because it removes no element from the top? */
bool spill_step_allows_top(const spill_request_t *request, const spill_state_t *state);

/* Add the elements of an APPEND, with numbers from `end` on, to the top. */
void spill_step_appends_to_top(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state);

/*
 * If the step has a refill, remove the affected elements and add the refill's and the journal's.
 * Then add the new value of the element, `edited`, unless it is NULL.
 */
void spill_step_changes_top(const spill_request_t *request, const spill_facts_t *facts,
                            const spill_value_t *edited, spill_state_t *state);

/*
 * RECOUNT: replace the top by request->recount.refill; show the leading elements that refill_run
 * has.
 */
void spill_step_replaces_top(const spill_request_t *request, spill_state_t *state);

/* ---- top-N capped heads ---------------------------------------------------------------------- */

/* Has facts->journal all of the state's elements? Not if a record could not be read. */
bool spill_step_knows_all(const spill_facts_t *facts, const spill_state_t *state);

/*
 * After the new elements, with numbers from `end` on, were added to the state: keep the
 * highest-ranked elements, old and new, within slots_max and bytes_max, but at least one if a
 * document can hold it. Add the numbers of the rest to `deleted`. Return how many old elements were
 * dropped only because of the bytes.
 */
int64_t spill_step_keeps_top_n(const spill_request_t *request, const spill_facts_t *facts,
                               int64_t end, spill_state_t *state);

#endif
