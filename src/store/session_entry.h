/*
 * Operations of sessions (spill_session_op_t): what a head has of a session, and what it says about
 * an operation. The stores keep the entries, each in its own form; all decide by these functions.
 */
#ifndef SPILL_STORE_SESSION_ENTRY_H
#define SPILL_STORE_SESSION_ENTRY_H

#include <spillway/array.h>

#include <stdbool.h>
#include <stdint.h>

/* The session's id, then the user's digest. */
enum { SPILL_SESSION_KEY_BYTES = 16 + 8 };

/* Numbers [first, last] of the entry's transaction that were applied. */
typedef struct spill_session_run {
    int32_t first;
    int32_t last;
} spill_session_run_t;

typedef struct spill_session_entry {
    uint8_t key[SPILL_SESSION_KEY_BYTES];
    int64_t txn;
    int64_t at_us; /* of the last change, by the store's clock */
    int32_t run_count;
    spill_session_run_t runs[SPILL_SESSION_RUNS_MAX]; /* ascending; adjacent runs are merged */
} spill_session_entry_t;

/* What an entry says about an operation. */
typedef enum spill_session_verdict {
    SPILL_SESSION_NEW,      /* apply it */
    SPILL_SESSION_REPEATED, /* the first of its numbers was applied */
    SPILL_SESSION_TOO_OLD,  /* the session has made a later transaction */
    SPILL_SESSION_FULL,     /* no room for its entry: too many sessions */
    SPILL_SESSION_GAPS      /* no room in its entry: too many runs. No retry can help */
} spill_session_verdict_t;

/*
 * Bytes of an entry in a document {hexadecimal key: {txn, at, done}} with one run, and the most
 * that an entry has. A run is two numbers in an array.
 */
enum {
    SPILL_SESSION_RUN_BYTES = 2 * (1 + 3 + 4), /* with indexes of two digits */
    SPILL_SESSION_ENTRY_BYTES = (1 + 2 * SPILL_SESSION_KEY_BYTES + 1 + 5) + (1 + 4 + 8) +
                                (1 + 3 + 8) + (1 + 5 + 5) + 2 * (1 + 2 + 4),
    SPILL_SESSION_ENTRY_BYTES_MOST =
        SPILL_SESSION_ENTRY_BYTES + (SPILL_SESSION_RUNS_MAX - 1) * SPILL_SESSION_RUN_BYTES
};

void spill_session_key(const spill_session_op_t *op, uint8_t key[SPILL_SESSION_KEY_BYTES]);

int64_t spill_session_horizon_us(const spill_session_op_t *op);
int64_t spill_session_entries_max(const spill_session_op_t *op);

/*
 * Judge an operation of `count` numbers. `own` is the session's entry (NULL: none), and the owner
 * has `entries` entries. *applied: how many of its numbers, from the first one on, were applied.
 */
spill_session_verdict_t spill_session_judge(const spill_session_op_t *op, int64_t count,
                                            const spill_session_entry_t *own, int64_t entries,
                                            int64_t *applied);

/* Make the entry after the operation, which is NEW. `own` may be NULL; `after` may equal it. */
void spill_session_apply(const spill_session_op_t *op, int64_t count,
                         const spill_session_entry_t *own, int64_t now_us,
                         spill_session_entry_t *after);

/* Is the entry older than the horizon, so that it may be removed? */
bool spill_session_expired(const spill_session_entry_t *entry, int64_t horizon_us, int64_t now_us);

/*
 * Removing entries costs a request, so only some appends ask for it: of many operations about one
 * in entries_max / 16. The choice depends on the operation alone.
 */
bool spill_session_forgets(const spill_session_op_t *op);

/* ---- the entries of one owner, for stores that keep them in one place -------------------------
 */

typedef struct spill_sessions {
    spill_session_entry_t *entries;
    size_t count, capacity;
} spill_sessions_t;

/* NULL: there is none. */
spill_session_entry_t *spill_sessions_find(const spill_sessions_t *sessions,
                                           const uint8_t key[SPILL_SESSION_KEY_BYTES]);
/* Add the entry, or replace that of the same session. */
void spill_sessions_put(spill_sessions_t *sessions, const spill_session_entry_t *entry);
/* Remove the entries that are older than the horizon. Returns their number. */
size_t spill_sessions_forget(spill_sessions_t *sessions, int64_t horizon_us, int64_t now_us);
void spill_sessions_release(spill_sessions_t *sessions);

#endif
