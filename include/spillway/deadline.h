/**
 * \file
 * Deadlines: a call ends in time, whatever the server, the network or a disk do.
 */
#ifndef SPILLWAY_DEADLINE_H
#define SPILLWAY_DEADLINE_H

#include <spillway/export.h>

#include <stdint.h>

/**
 * \defgroup spillway_deadline Deadlines
 * A call ends in time, whatever the server, the network or a disk do.
 *
 * A deadline belongs to the calling thread. Begin it, make the call, end it:
 *
 *     spill_deadline_t outer = spill_deadline_begin(200);
 *     spill_code_t code = spill_array_append(array, &owner, &element, 1, NULL, NULL, &error);
 *     spill_deadline_end(outer);
 *
 * A call that the deadline ends returns one of two codes:
 *
 * - #SPILL_TIMED_OUT: nothing was changed, and nothing will be. A read always returns this code.
 * - #SPILL_UNKNOWN: the change may have been made, or may still be made later. Repeat an append
 *   with its operation id (#spill_op_t); after any other call read the array, then decide.
 *
 * A code speaks of its own call alone. If an earlier try of the same operation returned
 * #SPILL_UNKNOWN, only #SPILL_OK ends the doubt: after any other code keep the operation id.
 *
 * What was acknowledged stays. A batch that is split counts the appended elements
 * (spill_append_result_t::count). A call that makes several changes, such as
 * spill_array_remove_where(), keeps those that it has made; the code is about the change at which
 * it has stopped.
 *
 * Deadlines hold for spill_array_open() and all functions of an open array, on every store. These
 * functions ignore them: spill_store_open(), spill_store_close(), spill_store_define() and the
 * other functions of definitions, spill_store_backup(), spill_store_cut_log(), spill_array_close().
 * On a server, the options serverSelectionTimeoutMS and socketTimeoutMS of the connection string
 * bound these. In an embedded store a stalled disk can also keep a caller that reads definitions:
 * spill_array_open(), an update of other fields, and the checks of spill_array_verify() and
 * spill_array_repair().
 *
 * A step that was given up ends in the background: on a server at the latest after
 * serverSelectionTimeoutMS if no server is usable, and after socketTimeoutMS if one does not
 * answer. spill_store_close() waits for it. A store carries out at most 256 steps for
 * callers with deadlines at one time; the next callers wait for one of them to end, and may return
 * #SPILL_TIMED_OUT.
 * \{
 */

SPILL_BEGIN_DECLS

/** The deadline that a thread had before, to be restored. */
typedef struct spill_deadline {
    int64_t at_us; /**< private: do not read or change it */
} spill_deadline_t;

/**
 * Give the calls of this thread a deadline, from now on. If the thread has an earlier one, that one
 * stays.
 *
 * \param timeout_ms  milliseconds from now; 0: calls only return what needs no store operation;
 *                    below 0: no new deadline
 * \return the deadline that the thread had, for spill_deadline_end()
 * \errors none
 * \cost reads a clock. Under a deadline each store operation is handed to another thread, which
 *       costs some 25 microseconds, and appends of several threads to one owner are not joined.
 * \threads any; a deadline applies to the calling thread only
 * \sample{deadline}
 */
SPILL_API spill_deadline_t spill_deadline_begin(int64_t timeout_ms);

/**
 * End the deadline of this thread that spill_deadline_begin() began last, and restore the outer
 * one.
 *
 * \param outer  what spill_deadline_begin() returned
 * \errors none
 * \cost none
 * \threads the thread that began it
 */
SPILL_API void spill_deadline_end(spill_deadline_t outer);

SPILL_END_DECLS

/** \} */

#endif
