/**
 * \file
 * One logical array for each owner.
 */
#ifndef SPILLWAY_ARRAY_H
#define SPILLWAY_ARRAY_H

#include <spillway/operation.h>
#include <spillway/store.h>
#include <spillway/value.h>

/**
 * \defgroup spillway_array Arrays
 * One logical array for each owner, as a definition describes it.
 *
 * Elements have sequence numbers: 0, 1, 2, ... in the order of appending, given once and never
 * again. A sequence number is also the cursor: it stays valid while others append or remove.
 *
 *     spill_array_t *feed;
 *     spill_array_open(store, "feed", &feed, &error);
 *     spill_array_append(feed, &owner, &element, 1, NULL, NULL, &error);
 *     spill_slice_t *newest;
 *     spill_array_read(feed, &owner, NULL, &newest, &error);     // the newest 20
 *     spill_slice_free(newest);
 *     spill_array_close(feed);
 *
 * Threads: a spill_array_t may be used from any number of threads. Results belong to the caller.
 * \{
 */

SPILL_BEGIN_DECLS

/** An open array. */
typedef struct spill_array spill_array_t;

/**
 * Open an array: bind to a saved definition. The array keeps the bounds that the definition has
 * now.
 *
 * \param store  an open store, which must outlive the array
 * \param name   the definition's name
 * \param array  becomes the array, which the caller closes with spill_array_close(); NULL after an
 *               error
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (there is none of that name), SPILL_CORRUPT (its record cannot be read),
 *         SPILL_FORMAT (a newer Spillway saved it), SPILL_IO, SPILL_TIMED_OUT
 * \cost one store operation; on a server, one command
 * \threads any number at once
 * \sample{open_array}
 */
SPILL_API spill_code_t spill_array_open(spill_store_t *store, const char *name,
                                        spill_array_t **array, spill_error_t *error);

/**
 * Close the array, before its store. On a server it first performs the spills that appends have
 * left to the store's thread: at most 1024, and none after one that fails, which is logged. Later
 * appends perform those. In a forked child, this frees only the handle.
 *
 * \param array  the array; its memory is freed
 * \null `array` may be NULL
 * \errors none
 * \cost the spills that appends have left; deadlines do not apply
 * \threads the last call on its array
 */
SPILL_API void spill_array_close(spill_array_t *array);

/**
 * Return the definition as it was when the array was opened.
 *
 * \param array  an open array
 * \return a view that belongs to the array until it is closed
 * \null `array` NULL: NULL
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API const spill_definition_t *spill_array_get_definition(const spill_array_t *array);

/* ---- append ---------------------------------------------------------------------------------- */

/** The version of spill_append_options_t. */
#define SPILL_APPEND_OPTIONS_VERSION 2

/** How to append. Initialize it with spill_append_options_init(). */
typedef struct spill_append_options {
    int version; /**< SPILL_APPEND_OPTIONS_VERSION; 1: without the fields after `fill` */
    /**
     * The operation, with which a repeated append is exact: an id, and the base from before the
     * first try (with a new base it appends again; see also spill_definition_t::unique). NULL
     * (default): none. After SPILL_UNKNOWN only a read can then show if elements were appended.
     */
    const spill_op_t *op;
    /**
     * Updates of the head's other fields ($set, $unset, $inc, $min, $max; on a server any
     * operator), or NULL (the default). With keep newest they are one atomic step with the append.
     * With keep oldest and pages they are a second step. If its answer is lost, the result is
     * SPILL_UNKNOWN and counts the elements. A repeated append does not make the update again.
     */
    const bson_t *update;
    /**
     * Fill documents to their bounds: if a document has room for the first elements of a batch
     * only, split the batch there, even if it fits a page. Default: false. Keep newest always fills
     * documents.
     */
    bool fill;
    /**
     * An operation of a session, instead of `op`, for layout outlier with keep newest. NULL
     * (default): none. The errors' reasons are
     * SPILL_REASON_TOO_OLD and SPILL_REASON_SESSIONS; both leave the array unchanged. A repeated
     * append has result->first = -1, because an entry has no sequence numbers.
     */
    const spill_session_op_t *session;
    /**
     * Layout outlier with keep newest: a filter on the head's other fields. NULL (default): none.
     * The head is not created, and must match at the moment of the append; otherwise the result is
     * SPILL_NOT_FOUND with SPILL_REASON_NO_MATCH. {}: the head must exist. Of a batch that is
     * split, the first part matches; for the others the head must exist. An embedded store has the
     * operators of spill_array_remove_where; a server has its own. `match` cannot name the array.
     */
    const bson_t *match;
} spill_append_options_t;

/**
 * Set the defaults: no operation, no update, a batch that fits a page in one piece.
 *
 * \param options  becomes the defaults of SPILL_APPEND_OPTIONS_VERSION
 * \null `options` NULL: nothing happens
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_append_options_init(spill_append_options_t *options);

/** The version of spill_append_result_t. */
#define SPILL_APPEND_RESULT_VERSION 1

/** What spill_array_append() did. */
typedef struct spill_append_result {
    int64_t first;   /**< sequence number of the first element given; -1: repeated in a session */
    int64_t count;   /**< elements acknowledged (all of them, unless an error was returned) */
    bool repeated;   /**< the operation id was known: nothing was written this time */
    int64_t op_base; /**< a base for the owner's next operation */
    /**
     * Layout capped: elements of the batch that the head did not keep, because others are newer or
     * rank higher. For a repeated operation: those that the head no longer holds.
     */
    int64_t dropped;
    /**
     * Layout capped with a sort_field: older elements that were dropped because the head would have
     * exceeded head_bytes_max, although fewer than `threshold` others rank higher. The head's other
     * fields count towards these bytes. 0 for a repeated operation.
     */
    int64_t crowded_out;
    /**
     * An array that keeps each id once: elements of `count` that were left out, because the array
     * or an earlier element of the batch has their id. `first` is -1 if all were.
     */
    int64_t duplicates;
    int version;         /**< SPILL_APPEND_RESULT_VERSION of the library */
    int64_t reserved[4]; /**< 0: for fields of later versions */
} spill_append_result_t;

/**
 * Append elements, in order, to the owner's array, and create the owner.
 *
 * A batch that fits a page (page_capacity elements, page_bytes_max) is appended completely or not
 * at all, and its numbers are consecutive. With keep newest it must also fit half of
 * head_bytes_max. A larger batch is split into parts that each fit. The parts are appended in
 * order. Appends of other clients may come between them. After an error
 * spill_append_result_t::count is the number of acknowledged elements. A split batch with an
 * operation id repeats exactly if it has fewer parts than the window, even after a change of the
 * bounds. If its elements were edited or removed meanwhile, the result is SPILL_CONFLICT.
 *
 * A known operation id with the same number of elements is a retry, without a comparison. If fewer
 * are stored, and equal the first ones given, the append stores the rest. Else: SPILL_CONFLICT.
 *
 * With keep oldest, a batch that does not fit the rest of the last document begins the next
 * document and leaves the last one short. With spill_append_options_t::fill documents are filled
 * to their bounds instead: every batch is split where a document is full. Without other clients
 * that makes one part more, and one for each page that is full in bytes. An operation id must
 * leave room for the number of a part.
 *
 * With layout capped a batch is never split. The same step drops the oldest elements beyond the
 * capacity, possibly also elements of the batch. The whole batch is acknowledged with its numbers.
 * With a sort_field the step drops the elements that rank lowest, new or old (spill_array_top()
 * explains the rank). Each element must then fit head_bytes_max, and must not have a decimal128 at
 * its sort_field.
 *
 * An array that keeps each id once (spill_definition_t::unique) appends only elements whose ids it
 * does not have: of clients that append one id at the same time, one appends it. Each element must
 * have an id (SPILL_INVALID). spill_append_result_t::count counts all elements,
 * spill_append_result_t::duplicates those that were left out; the others have consecutive numbers.
 * A batch with an operation id must fit a page. If an operation is repeated, all elements that it
 * did not append count as duplicates. With a session each element is appended alone.
 *
 * \param array     an open array
 * \param owner     the owner: any type but an array, a regular expression or undefined
 * \param elements  the elements, oldest first; they are copied
 * \param count     the number of elements, 1 or more
 * \param options   initialized by spill_append_options_init(); NULL: the defaults
 * \param result    becomes what was appended, also after an error
 * \param error     filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `options`, `result` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_TOO_BIG (no document can hold the element), SPILL_INVALID (the owner's type is not
 *         allowed, an element is malformed, a string is not UTF-8), SPILL_CONFLICT (see above; a
 *         session's number was used with another number of elements; every race was lost),
 *         SPILL_REFUSED (SPILL_REASON_UNMANAGED), SPILL_UNKNOWN (repeat it with its operation id),
 *         SPILL_TIMED_OUT, SPILL_NO_SPACE, SPILL_IO, SPILL_READ_ONLY, SPILL_NOT_FOUND (the
 *         definition was dropped; `match` does not hold). After any other error than SPILL_UNKNOWN
 *         nothing of a batch that fits a page was written, unless spill_append_options_t::fill is
 *         set.
 * \cost one store operation; a spill (three) every page_capacity elements, and with retention a
 *       trim; with fill up to three more for each document. An array that keeps each id once: in
 *       addition a look-up for each element in an index; on a server a read of the head, and a
 *       look-up if there are pages.
 * \threads any number at once; appends of several threads to one owner are sent together
 * \sample{append}
 */
SPILL_API spill_code_t spill_array_append(spill_array_t *array, const spill_value_t *owner,
                                          const spill_value_t *elements, size_t count,
                                          const spill_append_options_t *options,
                                          spill_append_result_t *result, spill_error_t *error);

/**
 * Read a base for the next operation on this owner. Store it durably with the id before the first
 * try, and never read a new base for an id that was tried (spill_op_t).
 *
 * \param array  an open array
 * \param owner  the owner
 * \param base   becomes the number of the owner's appends with operation ids so far, or a lower
 *               number; 0 for an owner that does not exist
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (the owner's type is not allowed), SPILL_IO, SPILL_CORRUPT,
 *         SPILL_TIMED_OUT
 * \cost one store operation; up to three with keep oldest
 * \threads any number at once
 * \sample{op_base}
 */
SPILL_API spill_code_t spill_array_op_base(spill_array_t *array, const spill_value_t *owner,
                                           int64_t *base, spill_error_t *error);

/**
 * Update the head's other fields in one atomic step, and create the owner.
 *
 * \param array   an open array
 * \param owner   the owner
 * \param update  operators as in spill_append_options_t::update
 * \param error   filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (an unknown operator, or a field of the array; layout bucket),
 *         SPILL_TOO_BIG, SPILL_REFUSED (on an embedded store: the update would change the array of
 *         another definition that this owner has, or a document around it), SPILL_UNKNOWN,
 *         SPILL_TIMED_OUT, SPILL_IO, SPILL_READ_ONLY
 * \cost one store operation
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_update(spill_array_t *array, const spill_value_t *owner,
                                          const bson_t *update, spill_error_t *error);

/** The version of spill_update_options_t. */
#define SPILL_UPDATE_OPTIONS_VERSION 1

/** How to update. Initialize it with spill_update_options_init(). */
typedef struct spill_update_options {
    int version;                       /**< SPILL_UPDATE_OPTIONS_VERSION */
    const spill_session_op_t *session; /**< as spill_append_options_t::session */
    const bson_t *match;               /**< as spill_append_options_t::match */
} spill_update_options_t;

/**
 * Set the defaults: no session, no match.
 *
 * \param options  becomes the defaults of SPILL_UPDATE_OPTIONS_VERSION
 * \null `options` NULL: nothing happens
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_update_options_init(spill_update_options_t *options);

/**
 * Update the head's other fields in one atomic step, with options. With a session or a match the
 * head is not created.
 *
 * \param array     an open array
 * \param owner     the owner
 * \param update    operators as in spill_append_options_t::update
 * \param options   initialized by spill_update_options_init(); NULL: the defaults
 * \param repeated  becomes true if the operation was known, and nothing was written this time
 * \param error     filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `options`, `repeated` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_update(); SPILL_NOT_FOUND (SPILL_REASON_NO_MATCH), SPILL_CONFLICT
 *         (SPILL_REASON_TOO_OLD, SPILL_REASON_SESSIONS)
 * \cost one store operation
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_update_with(spill_array_t *array, const spill_value_t *owner,
                                               const bson_t *update,
                                               const spill_update_options_t *options,
                                               bool *repeated, spill_error_t *error);

/**
 * Adopt the array that a program without Spillway has stored in this owner's document, and spill
 * it below its threshold. Appends to such an array are refused with SPILL_REASON_UNMANAGED. Layout
 * outlier with keep newest.
 *
 * Other programs may push to the array meanwhile, and edit or pull elements
 * (docs/reference/allowed-writes.md). Any number of clients may adopt one array at the same time.
 * After an error the array is unmanaged, or it is adopted and later appends spill it.
 *
 * \param array    an open array
 * \param owner    the owner
 * \param adopted  becomes true if this call has adopted it, false if it is managed already
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `adopted` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (there is no array, or an empty one), SPILL_REFUSED (a field of the
 *         document is in the way, or pages without a head may have the only copy of their
 *         elements), SPILL_TOO_BIG (the document is full, and its elements cannot be moved),
 *         SPILL_CONFLICT (another program changed the array, or another client is at work on a
 *         full document; retry later), SPILL_INVALID (another layout), SPILL_UNKNOWN,
 *         SPILL_TIMED_OUT
 * \cost 3 store operations (a server: 8), and for each page the same as spill_array_append()
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_adopt(spill_array_t *array, const spill_value_t *owner,
                                         bool *adopted, spill_error_t *error);

/* ---- read ------------------------------------------------------------------------------------ */

/** The order of a read. */
typedef enum spill_order {
    SPILL_NEWEST_FIRST, /**< from the highest sequence number down */
    SPILL_OLDEST_FIRST  /**< from the lowest sequence number up */
} spill_order_t;

/** The version of spill_read_options_t. */
#define SPILL_READ_OPTIONS_VERSION 1

/** What to read. Initialize it with spill_read_options_init(). */
typedef struct spill_read_options {
    int version;         /**< SPILL_READ_OPTIONS_VERSION */
    spill_order_t order; /**< default: newest first */
    int64_t limit;       /**< most elements; default 20 */
    int64_t before;      /**< only sequence numbers below; INT64_MAX (default): no bound */
    int64_t after;       /**< only sequence numbers above; -1 (default): no bound */
    int64_t skip;        /**< elements to pass over before the first that is read; default 0 */
} spill_read_options_t;

/**
 * Set the defaults: the newest 20 elements.
 *
 * \param options  becomes the defaults of SPILL_READ_OPTIONS_VERSION
 * \null `options` NULL: nothing happens
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_read_options_init(spill_read_options_t *options);

/** An element that was read. */
typedef struct spill_element {
    int64_t seq;         /**< its sequence number */
    spill_value_t value; /**< borrows from the slice, or from the walk */
} spill_element_t;

/** A run of elements that was read; the caller's, freed with spill_slice_free. */
typedef struct spill_slice {
    spill_element_t *elements; /**< in the order of the read */
    size_t count;              /**< their number */
    bool more;                 /**< elements may remain beyond this slice; false is certain */
    int64_t next; /**< the cursor for them: `before` when newest first, `after` when oldest first */
    void *memory; /**< private: do not read or change it */
} spill_slice_t;

/**
 * Read a run of elements in sequence order. An owner that does not exist reads as empty.
 *
 * \param array    an open array
 * \param owner    the owner
 * \param options  initialized by spill_read_options_init(); NULL: the defaults
 * \param slice    becomes the elements, which the caller frees with spill_slice_free(); NULL after
 *                 an error
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `options` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (limit is below 1, skip below 0, or there is no such order),
 *         SPILL_CORRUPT, SPILL_REFUSED (SPILL_REASON_UNMANAGED), SPILL_IO, SPILL_TIMED_OUT
 * \cost O(limit) bytes; one document if it holds the whole run, else one more for each page, and
 *       with keep newest the head's state once more. `skip` is free if nothing was removed from
 *       pages; after removals it costs one small read for each page that is skipped.
 * \threads any number at once
 * \sample{read}
 */
SPILL_API spill_code_t spill_array_read(spill_array_t *array, const spill_value_t *owner,
                                        const spill_read_options_t *options, spill_slice_t **slice,
                                        spill_error_t *error);

/**
 * Free a slice.
 *
 * \param slice  the slice
 * \null `slice` may be NULL
 * \errors none
 * \cost none
 * \threads the last use of the slice
 */
SPILL_API void spill_slice_free(spill_slice_t *slice);

/**
 * Read a feed: newest first, `skip` elements passed over, `limit` returned.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param skip   the number of newest elements to pass over, 0 or more
 * \param limit  most elements, 1 or more
 * \param slice  becomes the elements, which the caller frees with spill_slice_free(); NULL after
 *               an error
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_read()
 * \cost as spill_array_read()
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_read_newest(spill_array_t *array, const spill_value_t *owner,
                                               int64_t skip, int64_t limit, spill_slice_t **slice,
                                               spill_error_t *error);

/**
 * Read the elements that rank highest.
 *
 * Layout subset: read the first `limit` elements of the head's summary, the highest-ranked first.
 * The summary has top_count elements, or fewer if they fill half of head_bytes_max (definition.h).
 * They rank highest at one moment during the call; an element that another client is editing may
 * still count with its old value. spill_slice_t::more: the top has more elements, beyond `limit`
 * or without room in the head. spill_slice_t::next is not used. An owner that does not exist reads
 * as empty.
 *
 * Layout capped with a sort_field: read the first `limit` of all elements, in the same order.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param limit  most elements, 1 or more
 * \param slice  becomes the elements, which the caller frees with spill_slice_free(); NULL after
 *               an error
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (another layout; limit is below 1), SPILL_CORRUPT, SPILL_IO,
 *         SPILL_TIMED_OUT
 * \cost one store operation, on the head only
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_top(spill_array_t *array, const spill_value_t *owner,
                                       int64_t limit, spill_slice_t **slice, spill_error_t *error);

/** The version of spill_count_t. */
#define SPILL_COUNT_VERSION 1

/** What spill_array_count() has counted. */
typedef struct spill_count {
    bool exists;   /**< true if the owner has a head document */
    int64_t count; /**< elements, exact at one moment during the call */
    int64_t head;  /**< elements in the head document */
    int64_t pages; /**< page documents */
    int64_t next;  /**< the sequence number that the next element will get */
    /** Layouts reference and subset: number of elements with a number at value_field. */
    int64_t values;
    double sum;          /**< the sum of these numbers */
    double average;      /**< their average; 0 if `values` is 0 */
    int version;         /**< SPILL_COUNT_VERSION of the library */
    int64_t reserved[4]; /**< 0: for fields of later versions */
} spill_count_t;

/**
 * Count an owner's elements and documents.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param count  becomes the counts; all 0 for an owner that does not exist
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (the owner's type is not allowed), SPILL_CORRUPT, SPILL_REFUSED
 *         (SPILL_REASON_UNMANAGED), SPILL_IO, SPILL_TIMED_OUT
 * \cost one document with keep newest; three reads with keep oldest once there are pages
 * \threads any number at once
 * \sample{deadline}
 */
SPILL_API spill_code_t spill_array_count(spill_array_t *array, const spill_value_t *owner,
                                         spill_count_t *count, spill_error_t *error);

/* ---- change and remove ----------------------------------------------------------------------- */

/**
 * Replace one element. Its sequence number stays.
 *
 * \param array    an open array
 * \param owner    the owner
 * \param seq      the element's sequence number, 0 or more
 * \param element  the new element; it is copied
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (it was deleted, or was never appended), SPILL_TOO_BIG (it no longer
 *         fits), SPILL_INVALID (`seq` is below 0; a malformed element), SPILL_CONFLICT (every race
 *         was lost), SPILL_UNKNOWN (the edit may be repeated), SPILL_TIMED_OUT, SPILL_IO,
 *         SPILL_READ_ONLY
 * \cost two store operations in the head, four in a page; referenced elements: six
 * \threads any number at once
 * \sample{edit}
 */
SPILL_API spill_code_t spill_array_edit(spill_array_t *array, const spill_value_t *owner,
                                        int64_t seq, const spill_value_t *element,
                                        spill_error_t *error);

/**
 * Remove one element; its number is not used again.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param seq    the element's sequence number, 0 or more
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (it was deleted before, or was never appended), SPILL_INVALID (`seq` is
 *         below 0), SPILL_CONFLICT (every race was lost), SPILL_UNKNOWN (the removal may be
 *         repeated; SPILL_NOT_FOUND then means that it was made), SPILL_TIMED_OUT, SPILL_IO,
 *         SPILL_READ_ONLY
 * \cost two store operations in the head, five in a page
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_remove(spill_array_t *array, const spill_value_t *owner,
                                          int64_t seq, spill_error_t *error);

/**
 * Find an element by its id: the value at the definition's id_field, a path through documents. Ids
 * that compare as equal in MongoDB are one (1, 1L and 1.0). Of several elements with the id the
 * one with the lowest sequence number is meant. An element that has nothing at the path, or null,
 * undefined, an array, a regular expression, or more than 1024 bytes of key, has no id. In an array
 * that keeps each id once, every value but undefined is an id, whatever its length.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param id     the id
 * \param seq    becomes the element's sequence number; -1 after an error
 * \param error  filled after a failure. To learn only whether an element has the id, pass NULL: a
 *               message takes longer than the look-up of an id that is in memory.
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (no element has the id), SPILL_INVALID (the definition has no id_field,
 *         or the value cannot be an id), SPILL_IO, SPILL_CORRUPT, SPILL_TIMED_OUT
 * \cost one store operation if the head has the element (with keep newest: and there are no
 *       pages), else two. An index finds it, so the array's length does not matter.
 * \threads any number at once
 * \sample{find_id}
 */
SPILL_API spill_code_t spill_array_find_id(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *id, int64_t *seq,
                                           spill_error_t *error);

/**
 * Replace the element that spill_array_find_id() finds. Two edits at the same time have no race.
 *
 * \param array    an open array
 * \param owner    the owner
 * \param id       the id
 * \param element  the new element; it is copied
 * \param seq      becomes the element's sequence number; -1 if none was found
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `seq` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_find_id() and spill_array_edit(). If one client gives an element in a
 *         page another id while another client removes it by its old id, the element may be lost
 *         with both calls acknowledged.
 * \cost as spill_array_find_id(), and two more operations
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_edit_id(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *id, const spill_value_t *element,
                                           int64_t *seq, spill_error_t *error);

/**
 * Remove the element that spill_array_find_id() finds.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param id     the id
 * \param seq    becomes the element's sequence number; -1 if none was found
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `seq` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_find_id() and spill_array_remove(). After SPILL_UNKNOWN the removal may
 *         have been made, and a second call would remove the next element with that id. Remove by
 *         the number *seq instead.
 * \cost as spill_array_find_id(), and one more operation in the head, three in a page
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_remove_id(spill_array_t *array, const spill_value_t *owner,
                                             const spill_value_t *id, int64_t *seq,
                                             spill_error_t *error);

/**
 * Remove the elements that match a filter, the oldest first.
 *
 * A filter is a query of MongoDB: {path: value} for equality, or {path: {operator: value}} with
 * $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin and $exists. All conditions must hold. {operator:
 * value} applies to the element itself. If an array lies on a path, each of its documents is
 * tried. An array at the end of a path matches as a whole or by any of its elements. A missing
 * value equals null.
 *
 * The removal is not atomic: the function reads each element, compares it, and removes it by its
 * number. It ignores elements that are appended meanwhile. An element that another client edits at
 * the same time may match by its old value. An owner that does not exist has nothing to remove.
 *
 * \param array    an open array
 * \param owner    the owner
 * \param filter   the filter
 * \param limit    most elements to remove; 0: all
 * \param removed  becomes the number of removed elements, also after an error
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `removed` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (an unknown operator, a regular expression, an empty filter), and as
 *         spill_array_remove(): SPILL_UNKNOWN and SPILL_TIMED_OUT are about the next element,
 *         which *removed does not count
 * \cost O(array): reads every element, 1000 or a page at a time. Each removal costs as
 *       spill_array_remove().
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_remove_where(spill_array_t *array, const spill_value_t *owner,
                                                const bson_t *filter, int64_t limit,
                                                int64_t *removed, spill_error_t *error);

/**
 * Remove every element below a sequence number, and then the empty pages, except for the last of
 * them.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param below  the sequence number of the oldest element that stays, 0 or more
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (there is no such owner), SPILL_INVALID (`below` is below 0),
 *         SPILL_CONFLICT, SPILL_UNKNOWN (the trim may be repeated), SPILL_TIMED_OUT, SPILL_IO,
 *         SPILL_READ_ONLY
 * \cost four store operations, and two or three for each page that is removed
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_trim(spill_array_t *array, const spill_value_t *owner,
                                        int64_t below, spill_error_t *error);

/**
 * Remove all but the newest elements. Elements that are appended meanwhile stay as well.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param keep   the number of newest elements that stay, 0 or more
 * \param below  becomes a sequence number: every element below it was removed
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `below` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_trim()
 * \cost as spill_array_trim(). If elements were removed before, one more read for each page that
 *       is removed.
 * \threads any number at once
 * \sample{trim}
 */
SPILL_API spill_code_t spill_array_trim_keep(spill_array_t *array, const spill_value_t *owner,
                                             int64_t keep, int64_t *below, spill_error_t *error);

/**
 * Remove elements from the oldest on, up to the first one that is not older than a time. The
 * definition's time_field gives the time: a date, the time of an ObjectId, or a timestamp. An
 * element without a time ends the trim. An element that another client edits at the same time may
 * be compared by its old time.
 *
 * \param array    an open array
 * \param owner    the owner
 * \param time_ms  milliseconds since 1970
 * \param below    becomes a sequence number: every element below it was removed
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `below` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_trim(); SPILL_INVALID (the definition has no time_field)
 * \cost as spill_array_trim(). Reads the removed elements and up to 256 more (1000 in layouts
 *       reference and subset).
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_trim_older(spill_array_t *array, const spill_value_t *owner,
                                              int64_t time_ms, int64_t *below,
                                              spill_error_t *error);

/**
 * Drop the owner's array, as `$unset` would: bookkeeping, elements, their ids, and pages. The
 * head's other fields stay, if it has any besides _id. If the client dies during a drop, pages may
 * be left that no client reads. Another call deletes them and returns SPILL_OK; so does a repair.
 *
 * \param array  an open array
 * \param owner  the owner
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (there is no such owner), SPILL_CONFLICT, SPILL_UNKNOWN (the drop may be
 *         repeated), SPILL_TIMED_OUT, SPILL_IO, SPILL_READ_ONLY
 * \cost one store operation, and one or two for each page; on a server, with pages, eight more
 * \threads any number at once
 */
SPILL_API spill_code_t spill_array_drop_owner(spill_array_t *array, const spill_value_t *owner,
                                              spill_error_t *error);

/* ---- walk ------------------------------------------------------------------------------------ */

/** Visits an owner. Return false to stop the walk: SPILL_CANCELLED. Arguments are borrowed. */
typedef bool (*spill_owner_fn)(void *context, const spill_value_t *owner);
/** Visits an element. Return false to stop the walk: SPILL_CANCELLED. Arguments are borrowed. */
typedef bool (*spill_element_fn)(void *context, const spill_value_t *owner,
                                 const spill_element_t *element);
/** Visits a document. Return false to stop the walk: SPILL_CANCELLED. Arguments are borrowed. */
typedef bool (*spill_document_fn)(void *context, const char *collection, const bson_t *document);

/**
 * Visit every owner, in the store's order. Owners created meanwhile may be missed.
 *
 * \param array    an open array
 * \param visit    called for each owner
 * \param context  passed to `visit`
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `context` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_CANCELLED (`visit` returned false), SPILL_CORRUPT, SPILL_IO, SPILL_TIMED_OUT
 * \cost one store operation for each 1000 owners; O(1) memory
 * \threads any number at once; `visit` is called on this thread, and may call functions of the
 *          array
 */
SPILL_API spill_code_t spill_array_owners(spill_array_t *array, spill_owner_fn visit, void *context,
                                          spill_error_t *error);

/**
 * Iterate: visit every element of an owner, or of every owner, oldest first. A
 * walk over every owner skips damaged owners with a warning to the store's log, and returns
 * SPILL_CORRUPT with the first one's message at its end.
 *
 * In a store that was opened with spill_store_options_t::partial, the function visits every
 * element that can be read. It logs the first and the last number of each hole, and returns
 * SPILL_CORRUPT at the end.
 *
 * \param array    an open array
 * \param owner    the owner; NULL: every owner
 * \param visit    called for each element
 * \param context  passed to `visit`
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `owner`, `context` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_CANCELLED (`visit` returned false), SPILL_CORRUPT, SPILL_IO, SPILL_TIMED_OUT
 * \cost reads every document once; holds a bounded run in memory: 1000 elements or one document
 * \threads any number at once; `visit` is called on this thread, and may call functions of the
 *          array
 * \sample{export}
 */
SPILL_API spill_code_t spill_array_export(spill_array_t *array, const spill_value_t *owner,
                                          spill_element_fn visit, void *context,
                                          spill_error_t *error);

/**
 * Visit the documents of an owner, or of every owner, as a document database holds them: the head,
 * then its pages in order. The field `spill` has the bookkeeping. A walk over every owner treats
 * damaged owners as spill_array_export() does.
 *
 * \param array    an open array
 * \param owner    the owner; NULL: every owner
 * \param plain    leave out the field `spill`
 * \param visit    called for each document
 * \param context  passed to `visit`
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `owner`, `context` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_CANCELLED (`visit` returned false), SPILL_CORRUPT, SPILL_IO, SPILL_TIMED_OUT
 * \cost reads every document once; holds one document in memory
 * \threads any number at once; `visit` is called on this thread, and may call functions of the
 *          array
 */
SPILL_API spill_code_t spill_array_documents(spill_array_t *array, const spill_value_t *owner,
                                             bool plain, spill_document_fn visit, void *context,
                                             spill_error_t *error);

SPILL_END_DECLS

/** \} */

#endif
