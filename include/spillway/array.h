/*
 * One logical array for each owner, as a definition describes it.
 *
 * Elements have sequence numbers: 0, 1, 2, ... in the order of appending, given once and never
 * again. A sequence number is also the cursor: it stays valid while others append or remove.
 *
 * Threads: a spill_array_t may be used from any number of threads. Results belong to the caller.
 */
#ifndef SPILLWAY_ARRAY_H
#define SPILLWAY_ARRAY_H

#include <spillway/store.h>
#include <spillway/value.h>

SPILL_BEGIN_DECLS

typedef struct spill_array spill_array_t;

/*
 * Bind to a saved definition. Cost: one store operation; on a server, one command. SPILL_NOT_FOUND:
 * there is none of that name. SPILL_CORRUPT: its record cannot be read.
 */
SPILL_API spill_code_t spill_array_open(spill_store_t *store, const char *name,
                                        spill_array_t **array, spill_error_t *error);
/*
 * Close the array before its store. NULL is allowed. On a server it first performs the spills that
 * appends have left to the store's thread: at most 1024, and none after one that fails, which is
 * logged. Later appends perform those.
 */
SPILL_API void spill_array_close(spill_array_t *array);

/* Borrows from the array. NULL if `array` is NULL. */
SPILL_API const spill_definition_t *spill_array_get_definition(const spill_array_t *array);

/* ---- append ---------------------------------------------------------------------------------- */

#define SPILL_OP_ID_MAX 64 /* bytes */

/*
 * An operation: an id of the caller's choosing and a base, any value of spill_array_op_base seen
 * for this owner before the first try. Keep both for a retry. A retry is exact until op_window
 * further appends with operation ids to that owner; after that it answers SPILL_UNKNOWN, and is
 * never applied a second time.
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
    const void *id;
    size_t id_bytes; /* 1..SPILL_OP_ID_MAX */
    int64_t base;    /* 0..SPILL_OP_BASE_MAX */
} spill_op_t;

#define SPILL_OP_BASE_MAX (INT64_MAX / 2)

/*
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
 * of adjacent numbers, so a command must not leave many gaps.
 *
 * All writers of an array use the same horizon.
 */
typedef struct spill_session_op {
    uint8_t session[16];
    uint8_t user[8];    /* a digest of the user's name: sessions of different users are different */
    int64_t txn;        /* 0 or more */
    int32_t number;     /* 0 or more */
    int64_t horizon_us; /* 0: SPILL_SESSION_HORIZON_US */
    int32_t entries_max; /* 0: SPILL_SESSION_ENTRIES_MAX */
} spill_session_op_t;

#define SPILL_SESSION_HORIZON_US 120000000
#define SPILL_SESSION_ENTRIES_MAX 1024
#define SPILL_SESSION_RUNS_MAX 8

#define SPILL_APPEND_OPTIONS_VERSION 2

typedef struct spill_append_options {
    int version;          /* SPILL_APPEND_OPTIONS_VERSION; 1: without the fields after `fill` */
    const spill_op_t *op; /* NULL: none; a lost answer is then SPILL_UNKNOWN for good */
    /*
     * Updates of the head's other fields ($set, $unset, $inc, $min, $max; on a server any
     * operator), or NULL. With keep
     * newest they are one atomic step with the append. With keep oldest and pages they are a second
     * step. If its answer is lost, the result is SPILL_UNKNOWN and counts the elements. A repeated
     * append does not make the update again.
     */
    const bson_t *update;
    /*
     * Fill documents to their bounds: if a document has room for the first elements of a batch
     * only, split the batch there, even if it fits a page. Keep newest always fills documents.
     */
    bool fill;
    /*
     * Layout outlier with keep newest, instead of `op`; or NULL. The errors' reasons are
     * SPILL_REASON_TOO_OLD and SPILL_REASON_SESSIONS; both leave the array unchanged. A repeated
     * append has result->first = -1, because an entry has no sequence numbers.
     */
    const spill_session_op_t *session;
    /*
     * Layout outlier with keep newest: a filter on the head's other fields, or NULL. The head is
     * not created, and must match at the moment of the append; otherwise the result is
     * SPILL_NOT_FOUND with SPILL_REASON_NO_MATCH. {}: the head must exist. A batch that is split
     * matches for its first part. An embedded store has the operators of spill_array_remove_where;
     * a server has its own. `match` cannot name the array.
     */
    const bson_t *match;
} spill_append_options_t;

/* The defaults: no operation, no update, a batch that fits a page in one piece. */
SPILL_API void spill_append_options_init(spill_append_options_t *options);

typedef struct spill_append_result {
    int64_t first;   /* sequence number of the first element given; -1: repeated in a session */
    int64_t count;   /* elements acknowledged (all of them, unless an error was returned) */
    bool repeated;   /* the operation id was known: nothing was written this time */
    int64_t op_base; /* a base for the owner's next operation */
    /*
     * Layout capped: elements of the batch that the head did not keep, because others are newer or
     * rank higher. For a repeated operation: those that the head no longer holds.
     */
    int64_t dropped;
    /*
     * Layout capped with a sort_field: older elements that were dropped because the head would have
     * exceeded head_bytes_max, although fewer than `threshold` others rank higher. The head's other
     * fields count towards these bytes. 0 for a repeated operation.
     */
    int64_t crowded_out;
    /*
     * An array that keeps each id once: elements of `count` that were left out, because the array
     * or an earlier element of the batch has their id. `first` is -1 if all were.
     */
    int64_t duplicates;
} spill_append_result_t;

/*
 * Append `count` elements, in order, to the owner's array. Creates the owner. `options` and
 * `result` may be NULL.
 *
 * A batch that fits a page (page_capacity elements, page_bytes_max) is appended completely or not
 * at all, and its numbers are consecutive. With keep newest it must also fit half of
 * head_bytes_max. A larger batch is split into parts that each fit. The parts are appended in
 * order. Appends of other clients may come between them. After an error result->count is the number
 * of acknowledged elements. A split batch with an operation id repeats exactly if it has fewer
 * parts than the window, even after a change of the bounds. If its elements were edited or removed
 * meanwhile, the result is SPILL_CONFLICT.
 *
 * With keep oldest, a batch that does not fit the rest of the last document begins the next
 * document and leaves the last one short. With options->fill documents are filled to their bounds
 * instead: every batch is split where a document is full. Without other clients that makes one part
 * more, and one for each page that is full in bytes. An operation id must leave room for the number
 * of a part.
 *
 * With layout capped a batch is never split. The same step drops the oldest elements beyond the
 * capacity, possibly also elements of the batch. The whole batch is acknowledged with its numbers.
 * With a sort_field the step drops the elements that rank lowest, new or old (spill_array_top
 * explains the rank). Each element must then fit head_bytes_max, and must not have a decimal128 at
 * its sort_field.
 *
 * An array that keeps each id once (spill_definition_t.unique) appends only elements whose ids it
 * does not have: of clients that append one id at the same time, one appends it. Each element must
 * have an id (SPILL_INVALID). `count` counts all elements, `duplicates` those that were left out;
 * the others have consecutive numbers. A batch with an operation id must fit a page. If an
 * operation is repeated, all elements that it did not append count as duplicates. With a session
 * each element is appended alone. Cost in addition: a look-up for each element in an index; on a
 * server a read of the head, and a look-up if there are pages.
 *
 * Cost: one store operation; a spill (three) every page_capacity elements, and with retention a
 * trim; with fill up to three more for each document.
 * Errors: SPILL_TOO_BIG (no document can hold the element), SPILL_INVALID (the owner's type is not
 * allowed, or an element is malformed), SPILL_CONFLICT (the id or a session's number was used with
 * another batch, or every race was lost), SPILL_UNKNOWN. After any other error than SPILL_UNKNOWN
 * nothing of a batch that fits a page was written, unless options->fill is set.
 */
SPILL_API spill_code_t spill_array_append(spill_array_t *array, const spill_value_t *owner,
                                          const spill_value_t *elements, size_t count,
                                          const spill_append_options_t *options,
                                          spill_append_result_t *result, spill_error_t *error);

/* A base for the next operation on this owner; 0 for an owner that does not exist. */
SPILL_API spill_code_t spill_array_op_base(spill_array_t *array, const spill_value_t *owner,
                                           int64_t *base, spill_error_t *error);

/*
 * Update the head's other fields as in spill_append_options; creates the owner. One atomic step.
 * SPILL_REFUSED, on an embedded store: the update would change the array of another definition that
 * this owner has, or a document around it.
 */
SPILL_API spill_code_t spill_array_update(spill_array_t *array, const spill_value_t *owner,
                                          const bson_t *update, spill_error_t *error);

#define SPILL_UPDATE_OPTIONS_VERSION 1

typedef struct spill_update_options {
    int version;                       /* SPILL_UPDATE_OPTIONS_VERSION */
    const spill_session_op_t *session; /* as in spill_append_options; or NULL */
    const bson_t *match;               /* as in spill_append_options; or NULL */
} spill_update_options_t;

/* The defaults: no session, no match. */
SPILL_API void spill_update_options_init(spill_update_options_t *options);

/*
 * The same with options, which may be NULL. With a session or a match the head is not created.
 * *repeated (may be NULL): the operation was known, and nothing was written this time.
 */
SPILL_API spill_code_t spill_array_update_with(spill_array_t *array, const spill_value_t *owner,
                                               const bson_t *update,
                                               const spill_update_options_t *options,
                                               bool *repeated, spill_error_t *error);

/*
 * Adopt the array that a program without Spillway has stored in this owner's document, and spill it
 * below its threshold. Appends to such an array are refused with SPILL_REASON_UNMANAGED. Layout
 * outlier with keep newest; SPILL_INVALID: another layout. *adopted (may be NULL): this call has
 * adopted it. It is false if the array is managed already.
 *
 * Other programs may push to the array meanwhile, and edit or pull elements
 * (docs/reference/allowed-writes.md). Any number of clients may adopt one array at the same time.
 * After an error the array is unmanaged, or it is adopted and later appends spill it.
 *
 * Errors: SPILL_NOT_FOUND (there is no array, or an empty one), SPILL_REFUSED (a field of the
 * document is in the way, or pages without a head may have the only copy of their elements),
 * SPILL_TOO_BIG (the document is full, and its elements cannot be moved), SPILL_CONFLICT (another
 * program changed the array, or another client is at work on a full document; retry later). Cost:
 * three store operations, and what spill_array_append costs for each page.
 */
SPILL_API spill_code_t spill_array_adopt(spill_array_t *array, const spill_value_t *owner,
                                         bool *adopted, spill_error_t *error);

/* ---- read ------------------------------------------------------------------------------------ */

typedef enum spill_order { SPILL_NEWEST_FIRST, SPILL_OLDEST_FIRST } spill_order_t;

#define SPILL_READ_OPTIONS_VERSION 1

typedef struct spill_read_options {
    int version;         /* SPILL_READ_OPTIONS_VERSION */
    spill_order_t order; /* default: newest first */
    int64_t limit;       /* most elements; default 20 */
    int64_t before;      /* only sequence numbers below; INT64_MAX (default): no bound */
    int64_t after;       /* only sequence numbers above; -1 (default): no bound */
    int64_t skip;        /* elements passed over first, counted from the end read from */
} spill_read_options_t;

/* The defaults: the newest 20 elements. */
SPILL_API void spill_read_options_init(spill_read_options_t *options);

typedef struct spill_element {
    int64_t seq;
    spill_value_t value; /* borrows from the page read */
} spill_element_t;

/* A run of elements that was read; the caller's, freed with spill_slice_free. */
typedef struct spill_slice {
    spill_element_t *elements;
    size_t count;
    bool more;    /* elements may remain beyond this slice; false is certain */
    int64_t next; /* the cursor for them: `before` when newest first, `after` when oldest first */
    void *memory; /* private */
} spill_slice_t;

/*
 * Read a run of elements in sequence order. An owner that does not exist reads as empty. `options`
 * may be NULL. SPILL_INVALID: limit is below 1, skip below 0, or there is no such order.
 * Cost: O(limit) bytes; one document if it holds the whole run, else one more for each page, and
 * with keep newest the head's state once more. `skip`
 * is free if nothing was removed from pages; after removals it costs one small read for each page
 * that is skipped.
 */
SPILL_API spill_code_t spill_array_read(spill_array_t *array, const spill_value_t *owner,
                                        const spill_read_options_t *options, spill_slice_t **slice,
                                        spill_error_t *error);
SPILL_API void spill_slice_free(spill_slice_t *slice); /* NULL is allowed */

/* The sources' getActivities: newest first, `skip` passed over, `limit` returned. */
SPILL_API spill_code_t spill_array_get_activities(spill_array_t *array, const spill_value_t *owner,
                                                  int64_t skip, int64_t limit,
                                                  spill_slice_t **slice, spill_error_t *error);

/*
 * Layout subset: read the first `limit` elements of the head's summary, the highest-ranked first.
 * The summary has top_count elements, or fewer if they fill half of head_bytes_max (definition.h).
 * They rank highest at one moment during the call; an element that another client is editing may
 * still count with its old value. slice->more: the top has more elements, beyond `limit` or without
 * room in the head. slice->next is not used. An owner that does not exist reads as empty. Cost: one
 * store operation, on the head only. SPILL_INVALID: another layout.
 *
 * Layout capped with a sort_field: read the first `limit` of all elements, in the same order.
 */
SPILL_API spill_code_t spill_array_top(spill_array_t *array, const spill_value_t *owner,
                                       int64_t limit, spill_slice_t **slice, spill_error_t *error);

typedef struct spill_count {
    bool exists;   /* has the owner a head? */
    int64_t count; /* elements, exact at one moment during the call */
    int64_t head;  /* elements in the head document */
    int64_t pages; /* page documents */
    int64_t next;  /* the sequence number that the next element will get */
    /* Layouts reference and subset: the values at the definition's value_field. */
    int64_t values; /* number of elements with a number there */
    double sum;
    double average; /* 0 without values */
} spill_count_t;

/* Cost: one document with keep newest; three reads with keep oldest once there are pages. */
SPILL_API spill_code_t spill_array_count(spill_array_t *array, const spill_value_t *owner,
                                         spill_count_t *count, spill_error_t *error);

/* ---- change and remove ----------------------------------------------------------------------- */

/*
 * Replace one element. SPILL_NOT_FOUND: it was deleted. SPILL_TOO_BIG: it no longer fits.
 * SPILL_INVALID: `seq` is below 0.
 */
SPILL_API spill_code_t spill_array_edit(spill_array_t *array, const spill_value_t *owner,
                                        int64_t seq, const spill_value_t *element,
                                        spill_error_t *error);

/*
 * Remove one element; its number is not used again. SPILL_NOT_FOUND: it was deleted before.
 * SPILL_INVALID: `seq` is below 0.
 */
SPILL_API spill_code_t spill_array_remove(spill_array_t *array, const spill_value_t *owner,
                                          int64_t seq, spill_error_t *error);

/*
 * The same by an element's id: the value at the definition's id_field, a path through documents.
 * Ids that compare as equal in MongoDB are one (1, 1L and 1.0). Of several elements with the id the
 * one with the lowest sequence number is meant; *seq (NULL only to edit or remove) is its number.
 * An element that has nothing at the path, or null, undefined, an array, a regular expression, or
 * more than 1024 bytes of key, has no id.
 *
 * Cost: find: one store operation if the head has the element (with keep newest: and there are no
 * pages), else two. An index finds it, so the array's length does not matter. Edit: two more.
 * Remove: one more in the head, three in a page.
 *
 * To learn only whether an element has the id, pass NULL as `error`: a message takes longer than
 * the look-up of an id that is in memory.
 *
 * Errors: SPILL_NOT_FOUND: no element has the id. SPILL_INVALID: the definition has no id_field, or
 * the value cannot be an id. After SPILL_UNKNOWN a removal may have been made, and a second call
 * would remove the next element with that id. Remove by the number *seq instead. If one client
 * gives an element in a page another id while another client removes it by its old id, the element
 * may be lost with both calls acknowledged. Two edits have no such race.
 */
SPILL_API spill_code_t spill_array_find_id(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *id, int64_t *seq,
                                           spill_error_t *error);
SPILL_API spill_code_t spill_array_edit_id(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *id, const spill_value_t *element,
                                           int64_t *seq, spill_error_t *error);
SPILL_API spill_code_t spill_array_remove_id(spill_array_t *array, const spill_value_t *owner,
                                             const spill_value_t *id, int64_t *seq,
                                             spill_error_t *error);

/*
 * Remove the elements that match a filter, the oldest first, at most `limit` of them (0: all).
 * *removed (may be NULL) is their number, also after an error. A filter is a query of MongoDB:
 * {path: value} for equality, or {path: {operator: value}} with $eq, $ne, $gt, $gte, $lt, $lte,
 * $in, $nin and $exists. All conditions must hold. {operator: value} applies to the element itself.
 * If an array lies on a path, each of its documents is tried. An array at the end of a path matches
 * as a whole or by any of its elements. A missing value equals null. Other operators, regular
 * expressions and an empty filter are SPILL_INVALID.
 *
 * The removal is not atomic: the function reads each element, compares it, and removes it by its
 * number. It ignores elements that are appended meanwhile. An element that another client edits at
 * the same time may match by its old value. An owner that does not exist has nothing to remove.
 * Cost: O(array): reads every element, 1000 or a page at a time. Each removal costs as
 * spill_array_remove.
 */
SPILL_API spill_code_t spill_array_remove_where(spill_array_t *array, const spill_value_t *owner,
                                                const bson_t *filter, int64_t limit,
                                                int64_t *removed, spill_error_t *error);

/*
 * Remove every element below a sequence number, and then the empty pages, except for the last of
 * them. SPILL_NOT_FOUND: there is no such owner. SPILL_INVALID: `below` is below 0. Cost: four
 * store operations, and two or three for each page that is removed.
 */
SPILL_API spill_code_t spill_array_trim(spill_array_t *array, const spill_value_t *owner,
                                        int64_t below, spill_error_t *error);

/*
 * Remove all but the newest `keep` elements. Elements that are appended meanwhile stay as well.
 * *below (may be NULL): every element below this number was removed. Cost: as spill_array_trim. If
 * elements were removed before, one more read for each page that is removed.
 */
SPILL_API spill_code_t spill_array_trim_keep(spill_array_t *array, const spill_value_t *owner,
                                             int64_t keep, int64_t *below, spill_error_t *error);

/*
 * Remove elements from the oldest on, up to the first one that is not older than time_ms
 * (milliseconds since 1970). The definition's time_field gives the time: a date, the time of an
 * ObjectId, or a timestamp. An element without a time ends the trim. An element that another client
 * edits at the same time may be compared by its old time. *below (may be NULL): every element below
 * this number was removed. SPILL_INVALID: the definition has no time_field. Cost: as
 * spill_array_trim. Reads the removed elements and up to 256 more (1000 in layouts reference and
 * subset).
 */
SPILL_API spill_code_t spill_array_trim_older(spill_array_t *array, const spill_value_t *owner,
                                              int64_t time_ms, int64_t *below,
                                              spill_error_t *error);

/*
 * Drop the owner's array, as `$unset` would: bookkeeping, elements, their ids, and pages. The
 * head's other fields stay, if it has any besides _id. SPILL_NOT_FOUND: there is no such owner. If
 * the client dies during a drop, pages may be left that no client reads. Another call deletes them
 * and returns SPILL_OK. Cost: one store operation, and one or two for each page.
 */
SPILL_API spill_code_t spill_array_drop_owner(spill_array_t *array, const spill_value_t *owner,
                                              spill_error_t *error);

/* ---- walk ------------------------------------------------------------------------------------ */

/* Return false to stop the walk, which then returns SPILL_CANCELLED. Arguments are borrowed. */
typedef bool (*spill_owner_fn)(void *context, const spill_value_t *owner);
typedef bool (*spill_element_fn)(void *context, const spill_value_t *owner,
                                 const spill_element_t *element);
typedef bool (*spill_document_fn)(void *context, const char *collection, const bson_t *document);

/* Visit every owner, in the store's order. Owners created meanwhile may be missed. O(1) memory. */
SPILL_API spill_code_t spill_array_owners(spill_array_t *array, spill_owner_fn visit, void *context,
                                          spill_error_t *error);

/*
 * Visit every element of an owner (NULL: of every owner), oldest first. Holds a bounded run in
 * memory. A walk over every owner skips damaged owners with a warning to the store's log, and
 * returns SPILL_CORRUPT with the first one's message at its end. spill_array_documents does the
 * same.
 *
 * In a store that was opened with `partial`, spill_array_export visits every element that can be
 * read. It logs the first and the last number of each hole, and returns SPILL_CORRUPT at the end.
 */
SPILL_API spill_code_t spill_array_export(spill_array_t *array, const spill_value_t *owner,
                                          spill_element_fn visit, void *context,
                                          spill_error_t *error);

/*
 * Visit the documents of an owner (NULL: of every owner) as a document database holds them: the
 * head, then its pages in order. The field `spill` has the bookkeeping; `plain` leaves it out.
 */
SPILL_API spill_code_t spill_array_documents(spill_array_t *array, const spill_value_t *owner,
                                             bool plain, spill_document_fn visit, void *context,
                                             spill_error_t *error);

SPILL_END_DECLS

#endif
