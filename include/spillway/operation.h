/**
 * \file
 * Operations, which make a retry of an append exact.
 */
#ifndef SPILLWAY_OPERATION_H
#define SPILLWAY_OPERATION_H

#include <spillway/export.h>

#include <stddef.h>
#include <stdint.h>

/**
 * \addtogroup spillway_array
 * \{
 */

/** Most bytes of an operation id. */
#define SPILL_OP_ID_MAX 64

/**
 * An operation makes the retry of an append exact. It has an id that the caller chooses, and a base
 * that the caller reads with spill_array_op_base() before the first try. Keep both for a retry. A
 * retry is exact until op_window further appends with operation ids to that owner. After that it
 * returns SPILL_UNKNOWN, and is never applied a second time.
 *
 * To append exactly once across a restart of the program, store id and base durably before the
 * first try. A restarted program that keeps the id and reads a new base may append a second time.
 * Fetch the base shortly before the first try: if op_window appends with operation ids came in
 * between, even a first try returns SPILL_UNKNOWN.
 *
 * The base limits the search for the id. An owner counts its appends with operation ids. An
 * operation that was first tried when the count was at least `base` is not among the first `base`
 * of them. A base below the count is safe, and uses up some of the window. A base above the count
 * is not safe: the append is accepted, but a retry does not find it and is applied a second time.
 *
 * The store accepts such a base because the count may decrease: with log durability a power loss
 * takes the last appends, and a dropped owner begins at 0 again. A client that kept its base then
 * has one above the count. It must read the owner and a new base. Until then two tries with the old
 * base may both be applied.
 */
typedef struct spill_op {
    const void *id;  /**< the id's bytes; borrowed during the call */
    size_t id_bytes; /**< the number of these bytes, 1 to SPILL_OP_ID_MAX */
    int64_t base;    /**< what spill_array_op_base() returned, 0 to SPILL_OP_BASE_MAX */
} spill_op_t;

/** The highest base. */
#define SPILL_OP_BASE_MAX (INT64_MAX / 2)

/**
 * An operation of a session, as clients of MongoDB number them: a client raises `txn` with each
 * command that writes, and repeats a command with the same one. It replaces an operation id for
 * callers that have no base: one that has just started, or one of several that serve a client.
 *
 * A head has one entry for each session (`session` and `user` together): its last `txn`, and which
 * numbers of it were applied. A later `txn` replaces the entry. An entry that is younger than the
 * horizon, by the store's clock, is never removed. So a retry within the horizon is exact, no
 * matter what other clients write. After the horizon, the operation may be applied once more.
 *
 * `number` counts what the command does to this owner, from 0: each appended element, and each
 * update of other fields, is one number. An append of 3 elements with number 5 uses 5, 6 and 7; the
 * command's next statement for this owner has number 8. An entry holds SPILL_SESSION_RUNS_MAX runs
 * of adjacent numbers, so a command must not leave many gaps: an operation that would need another
 * run is refused (SPILL_REASON_SESSIONS, not retryable).
 *
 * All writers of an array use the same horizon.
 */
typedef struct spill_session_op {
    uint8_t session[16]; /**< the session's id */
    uint8_t user[8]; /**< a digest of the user's name: sessions of different users are different */
    int64_t txn;     /**< the number of the command in the session, 0 or more */
    int32_t number;  /**< the number of the first change in the command, 0 or more */
    int64_t horizon_us;  /**< microseconds that an entry stays; 0: SPILL_SESSION_HORIZON_US */
    int32_t entries_max; /**< most entries of a head; 0: SPILL_SESSION_ENTRIES_MAX */
} spill_session_op_t;

#define SPILL_SESSION_HORIZON_US 120000000 /**< the usual horizon, in microseconds */
#define SPILL_SESSION_ENTRIES_MAX 1024     /**< the usual most entries of a head */
#define SPILL_SESSION_RUNS_MAX 8           /**< runs of adjacent numbers that an entry holds */

/** \} */

#endif
