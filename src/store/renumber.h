/*
 * REWRITE on a server (store/request.h): the update that changes the elements of a head without
 * pages may be any update, even one of a program that does not know the result. It is guarded by
 * the head's whole bookkeeping and the array's length as they were read, and it changes the
 * bookkeeping so that it is valid for every array that may result:
 *
 *   first, low   the end before: all elements get new numbers, and the old ones count as trimmed
 *   removed      0; `gone` is removed
 *   rev          raised
 *   n, ops       n is raised by op_window and the window is empty: an operation that was tried
 *                before is unknown, never applied again
 *   sessions     the entry of the operation that makes the update
 */
#ifndef SPILL_STORE_RENUMBER_H
#define SPILL_STORE_RENUMBER_H

#include "store/session_entry.h"

#include <bson/bson.h>

/* A head without pages, as it was read. Borrows from the document. */
typedef struct spill_renumbering {
    const char *array;
    int64_t op_window;
    bson_t spill; /* static: all of `spill` */
    bson_t own;   /* static: spill.<array> */
    int64_t incarnation, rev, pages, op_count;
    int64_t next;   /* the number that follows the elements */
    int64_t length; /* of the array; -1: the field is not one */
    /* The operation of the update and its numbers, or NULL. */
    const spill_session_op_t *session;
    int64_t session_count;
    bool has_entry;              /* of the session */
    spill_session_entry_t entry; /* if so, the one before */
    int64_t entries;             /* of all sessions */
} spill_renumbering_t;

/*
 * Read the bookkeeping of document's head. False: it has none for this array, or it is malformed.
 * The caller has set array, op_window, session and session_count.
 */
bool spill_renumber_read(const bson_t *document, spill_renumbering_t *renumbering);

/* Append the guard to a filter: bookkeeping and length are as they were read. */
void spill_renumber_guard(const spill_renumbering_t *renumbering, bson_t *filter);

/* Append the changes to an update's $set, $unset and $currentDate. */
void spill_renumber_set(const spill_renumbering_t *renumbering, bson_t *set, bson_t *unset,
                        bson_t *date);

/*
 * Append the expression: is the field at the path an array, in documents alone? (`$isArray` is also
 * true of a path through an array of documents.) `or_missing`: or nothing.
 */
void spill_append_is_array(const char *array, bool or_missing, const char *key, bson_t *to);

/*
 * Append the new value of `spill` as an expression. If the array's field then has another value
 * than an array, the bookkeeping is removed: the caller has seen to it that later heads of the
 * owner get a later incarnation.
 */
void spill_renumber_expression(const spill_renumbering_t *renumbering, bson_t *set);

#endif
