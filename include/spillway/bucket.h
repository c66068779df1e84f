/**
 * \file
 * Arrays in time windows (layout bucket), with statistics.
 */
#ifndef SPILLWAY_BUCKET_H
#define SPILLWAY_BUCKET_H

#include <spillway/array.h>

/**
 * \defgroup spillway_bucket Arrays in time windows
 * Layout bucket: an owner's elements lie in a document for each hour, day,
 * week, month or year (or for each value of a field), with statistics of the elements that the
 * document holds. A window that is full continues in a next part, a document like the first.
 *
 * A window is an array of its own. Its elements have sequence numbers from 0 in the order of
 * appending, and (window, sequence number) is an element's address. The functions of array.h work
 * on one window. Their owner is the document {owner, window} that spill_bucket_name() makes; any
 * other owner is SPILL_INVALID. spill_array_edit(), spill_array_remove(), spill_array_count() and
 * spill_array_drop_owner() edit, remove and count elements of one window, and drop one window.
 * There are four differences to other layouts:
 *
 *   - An element that is appended, or that replaces another, must belong to the window.
 *   - Updates of other fields return SPILL_INVALID, because these documents have no other fields.
 *   - Trims return SPILL_INVALID. Use spill_bucket_trim_keep() or spill_bucket_trim_older(), which
 *     trim all windows of an owner.
 *   - spill_array_owners() and the other walks visit windows.
 *
 * The functions below work on all windows of an owner. If the definition has another layout, they
 * return SPILL_INVALID.
 *
 * Statistics use the number in the definition's value_field. An element counts without a value if
 * the field has no finite int32, int64 or double; a decimal128 is not such a number. A document's
 * statistics change in the same atomic step as its elements:
 *
 *   sum      an int64 if all values are integers and each partial sum, from the first element to
 *            the last, fits an int64; otherwise the sum of doubles in that order
 *   average  the sum divided by the number of values
 *   min, max the least and the greatest value, compared as numbers; if values are equal, the first
 *
 * Without a value there is no average, min or max, and the sum is 0. If an answer covers several
 * parts or windows, their statistics are combined in order. Each part's statistics describe one
 * moment.
 *
 * Threads: as array.h.
 * \{
 */

SPILL_BEGIN_DECLS

/** Most bytes of a window's text, with its NUL. */
#define SPILL_WINDOW_SIZE 64

/* ---- names of windows ------------------------------------------------------------------------ */

/**
 * Find the window of an element. No store operation.
 *
 * \param definition  a definition of layout bucket
 * \param element     the element
 * \param window      becomes the window's text; "" after an error
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID: the element has no time (for windows of a field: no string), or one
 *         outside the years 0 to 9999; or the definition fails its check, or has another layout
 * \cost O(size of the element)
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_window_of(const spill_definition_t *definition,
                                              const spill_value_t *element,
                                              char window[SPILL_WINDOW_SIZE], spill_error_t *error);

/**
 * Make the name of a window as an owner of array.h: the document {owner, window}.
 *
 * \param storage  an initialized document of the caller's; the bytes are appended to it
 * \param owner    the owner
 * \param window   the window's text
 * \return a view of the bytes in `storage`. The next append to `storage` makes earlier values
 *         invalid.
 * \null any NULL: an empty value
 * \errors none
 * \cost O(size)
 * \threads one at a time for each `storage`
 */
SPILL_API spill_value_t spill_bucket_name(bson_t *storage, const spill_value_t *owner,
                                          const char *window);

/**
 * Split a name that spill_bucket_name() has made.
 *
 * \param name    the name
 * \param owner   becomes a view of the name's bytes
 * \param window  becomes the window's text
 * \return true; false: it is no such name
 * \null any NULL: false
 * \errors none
 * \cost O(1)
 * \threads any number at once
 */
SPILL_API bool spill_bucket_split(const spill_value_t *name, spill_value_t *owner,
                                  char window[SPILL_WINDOW_SIZE]);

/* ---- append ---------------------------------------------------------------------------------- */

/** A base of an operation (array.h), of one window. */
typedef struct spill_bucket_base {
    char window[SPILL_WINDOW_SIZE]; /**< the window's text */
    int64_t base;                   /**< as in spill_op_t */
} spill_bucket_base_t;

/** The version of spill_bucket_append_options_t. */
#define SPILL_BUCKET_APPEND_OPTIONS_VERSION 1

/** How to append. Initialize it with spill_bucket_append_options_init(). */
typedef struct spill_bucket_append_options {
    int version; /**< SPILL_BUCKET_APPEND_OPTIONS_VERSION */
    /**
     * An operation's id, or NULL. Each window of the batch gets an operation with this id and its
     * own base. If a window is missing in `bases`, the result is SPILL_INVALID before any write.
     */
    const void *op_id;
    size_t op_id_bytes;               /**< its length, 1..SPILL_OP_ID_MAX */
    const spill_bucket_base_t *bases; /**< what spill_bucket_op_bases() has returned; or NULL */
    size_t base_count;                /**< their number */
    bool fill;                        /**< as in spill_append_options_t */
} spill_bucket_append_options_t;

/**
 * Set the defaults: no operation, a batch that fits a part in one piece.
 *
 * \param options  becomes the defaults of SPILL_BUCKET_APPEND_OPTIONS_VERSION
 * \null `options` NULL: nothing happens
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_bucket_append_options_init(spill_bucket_append_options_t *options);

/** What became of the elements of one window. */
typedef struct spill_bucket_appended {
    char window[SPILL_WINDOW_SIZE]; /**< the window's text */
    int64_t elements;               /**< how many of the batch lie in it */
    spill_append_result_t result;   /**< of their append */
} spill_bucket_appended_t;

/**
 * Append elements, each to its window. The elements of a window stay in order and are one batch of
 * spill_array_append(). The windows are written in the order of their first elements. A crash or
 * an error may leave out the later ones.
 *
 * \param array          an open array of layout bucket
 * \param owner          the owner
 * \param elements       the elements; they are copied
 * \param element_count  the number of elements, 1 or more
 * \param options        initialized by spill_bucket_append_options_init(); NULL: the defaults
 * \param appended       becomes an array with an entry for each window that was begun, also after
 *                       an error; the caller frees it with bson_free()
 * \param count          becomes the number of entries
 * \param error          filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `options`, `appended` and `error` may be NULL, and then `count`, too; else SPILL_INVALID
 * \errors SPILL_INVALID before any write (an element belongs to no window; a window has no base),
 *         and as spill_array_append() for the window at which the call has stopped
 * \cost spill_array_append() for each window
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_append(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *elements, size_t element_count,
                                           const spill_bucket_append_options_t *options,
                                           spill_bucket_appended_t **appended, size_t *count,
                                           spill_error_t *error);

/**
 * Read a base for each window that these elements lie in, in the order of their first ones, to be
 * kept for retries with the operation's id.
 *
 * \param array          an open array of layout bucket
 * \param owner          the owner
 * \param elements       the elements
 * \param element_count  the number of elements, 1 or more
 * \param bases          becomes an array of bases, which the caller frees with bson_free()
 * \param count          becomes the number of bases
 * \param error          filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (an element belongs to no window), SPILL_IO, SPILL_CORRUPT,
 *         SPILL_TIMED_OUT
 * \cost up to three store operations for each window
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_op_bases(spill_array_t *array, const spill_value_t *owner,
                                             const spill_value_t *elements, size_t element_count,
                                             spill_bucket_base_t **bases, size_t *count,
                                             spill_error_t *error);

/* ---- windows and statistics ------------------------------------------------------------------ */

/** A number as it was found or summed up. */
typedef struct spill_amount {
    bool real;     /**< true: a double, in `value`; false: an integer, in `whole` */
    int64_t whole; /**< the integer */
    double value;  /**< the number as a double, also if it is an integer */
} spill_amount_t;

/** The version of spill_statistics_t. */
#define SPILL_STATISTICS_VERSION 1

/** Statistics of the elements of windows. */
typedef struct spill_statistics {
    int64_t count;       /**< elements */
    int64_t values;      /**< elements with a value */
    spill_amount_t sum;  /**< the sum of the values; 0 if `values` is 0 */
    spill_amount_t min;  /**< the least value; 0 if `values` is 0 */
    spill_amount_t max;  /**< the greatest value; 0 if `values` is 0 */
    double average;      /**< the average of the values; 0 if `values` is 0 */
    int version;         /**< SPILL_STATISTICS_VERSION of the library */
    int64_t reserved[4]; /**< 0: for fields of later versions */
} spill_statistics_t;

/** A window that spill_bucket_windows() visits. */
typedef struct spill_bucket_window {
    const char *window;            /**< its text, borrowed until the callback returns */
    int64_t parts;                 /**< number of its documents, which are its parts */
    spill_statistics_t statistics; /**< of its elements */
} spill_bucket_window_t;

/** Visits a window. Return false to stop the walk: SPILL_CANCELLED. Arguments are borrowed. */
typedef bool (*spill_bucket_window_fn)(void *context, const spill_bucket_window_t *window);

/**
 * Visit an owner's windows in time order, or the newest first. Reads no element. Windows created
 * meanwhile may be missed.
 *
 * \param array    an open array of layout bucket
 * \param owner    the owner
 * \param from     the first window's text, included; NULL: no bound
 * \param to       the last window's text, included; NULL: no bound
 * \param order    SPILL_OLDEST_FIRST or SPILL_NEWEST_FIRST
 * \param visit    called for each window
 * \param context  passed to `visit`
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `from`, `to`, `context` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_CANCELLED (`visit` returned false), SPILL_INVALID (a bound is no window's text),
 *         SPILL_CORRUPT, SPILL_IO, SPILL_TIMED_OUT
 * \cost one small read for each part. Listing the windows costs one operation for the first 2, the
 *       next 8, the next 32 and each 100 after that, or none if `from` equals `to`.
 * \threads any number at once; `visit` is called on this thread
 */
SPILL_API spill_code_t spill_bucket_windows(spill_array_t *array, const spill_value_t *owner,
                                            const char *from, const char *to, spill_order_t order,
                                            spill_bucket_window_fn visit, void *context,
                                            spill_error_t *error);

/**
 * Combine the statistics of windows. An owner that does not exist has none.
 *
 * \param array       an open array of layout bucket
 * \param owner       the owner
 * \param from        the first window's text, included; NULL: no bound
 * \param to          the last window's text, included; NULL: no bound
 * \param statistics  becomes the statistics
 * \param windows     becomes the number of windows
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `from`, `to`, `windows` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_bucket_windows()
 * \cost as spill_bucket_windows()
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_statistics(spill_array_t *array, const spill_value_t *owner,
                                               const char *from, const char *to,
                                               spill_statistics_t *statistics, int64_t *windows,
                                               spill_error_t *error);

/* ---- read ------------------------------------------------------------------------------------ */

/** The version of spill_bucket_read_options_t. */
#define SPILL_BUCKET_READ_OPTIONS_VERSION 1

/** What to read. Initialize it with spill_bucket_read_options_init(). */
typedef struct spill_bucket_read_options {
    int version;         /**< SPILL_BUCKET_READ_OPTIONS_VERSION */
    spill_order_t order; /**< of windows, and of elements in each; default: newest first */
    int64_t limit;       /**< most elements; default 20 */
    const char *from;    /**< text of the first window, included; NULL (default): no bound */
    const char *to;      /**< text of the last window, included; NULL (default): no bound */
    /**
     * Only elements of this time or later: milliseconds since 1970. INT64_MIN (default): no bound.
     * Not for windows of a field.
     */
    int64_t from_ms;
    /** Only elements before this time, as from_ms. INT64_MAX (default): no bound. */
    int64_t to_ms;
    /**
     * Continue behind an element: the cursor_window of the slice before. NULL (default): begin at
     * the first element.
     */
    const char *cursor_window;
    int64_t cursor_seq; /**< the cursor_seq of that slice; ignored if cursor_window is NULL */
} spill_bucket_read_options_t;

/**
 * Set the defaults: the newest 20 elements.
 *
 * \param options  becomes the defaults of SPILL_BUCKET_READ_OPTIONS_VERSION
 * \null `options` NULL: nothing happens
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_bucket_read_options_init(spill_bucket_read_options_t *options);

/** An element that was read. */
typedef struct spill_bucket_element {
    const char *window;  /**< the text of its window; borrows from the slice */
    int64_t seq;         /**< its sequence number in the window */
    spill_value_t value; /**< borrows from the slice */
} spill_bucket_element_t;

/** A run of elements that was read; the caller's, freed with spill_bucket_slice_free(). */
typedef struct spill_bucket_slice {
    spill_bucket_element_t *elements; /**< in the order of the read */
    size_t count;                     /**< their number */
    bool more; /**< elements may remain beyond this slice; false is certain */
    char cursor_window[SPILL_WINDOW_SIZE]; /**< the window of the last element, to continue there */
    int64_t cursor_seq;                    /**< its sequence number in that window */
    void *memory;                          /**< private: do not read or change it */
} spill_bucket_slice_t;

/**
 * Read a run of elements, window by window. A window has its elements in the order in which they
 * were appended, which may differ from the order of their times. So a bound in time filters the
 * elements of its first and last window. An owner that does not exist reads as empty.
 *
 * \param array    an open array of layout bucket
 * \param owner    the owner
 * \param options  initialized by spill_bucket_read_options_init(); NULL: the defaults
 * \param slice    becomes the elements, which the caller frees with spill_bucket_slice_free();
 *                 NULL after an error
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `options` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (a limit below 1, a bound that is no window's text), SPILL_CORRUPT,
 *         SPILL_IO, SPILL_TIMED_OUT
 * \cost spill_array_read() for each window, and spill_bucket_windows() to list them
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_read(spill_array_t *array, const spill_value_t *owner,
                                         const spill_bucket_read_options_t *options,
                                         spill_bucket_slice_t **slice, spill_error_t *error);

/**
 * Free a slice.
 *
 * \param slice  the slice
 * \null `slice` may be NULL
 * \errors none
 * \cost none
 * \threads the last use of the slice
 */
SPILL_API void spill_bucket_slice_free(spill_bucket_slice_t *slice);

/* ---- elements by their ids, and by a filter -------------------------------------------------- */

/**
 * Find the element of an owner with an id, as spill_array_find_id() does. Of several it finds the
 * one in the earliest window with the lowest number there.
 *
 * \param array   an open array of layout bucket
 * \param owner   the owner
 * \param id      the id
 * \param window  becomes the element's window; "" if none was found
 * \param seq     becomes the element's sequence number in the window; -1 if none was found
 * \param error   filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_find_id()
 * \cost one operation that finds the windows by an index, and spill_array_find_id() for each of
 *       them, usually one
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_find_id(spill_array_t *array, const spill_value_t *owner,
                                            const spill_value_t *id, char window[SPILL_WINDOW_SIZE],
                                            int64_t *seq, spill_error_t *error);

/**
 * Replace the element that spill_bucket_find_id() finds. The new element must belong to the same
 * window.
 *
 * \param array    an open array of layout bucket
 * \param owner    the owner
 * \param id       the id
 * \param element  the new element; it is copied
 * \param window   becomes the element's window; "" if none was found
 * \param seq      becomes the element's sequence number in the window; -1 if none was found
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_edit_id(); SPILL_INVALID (the new element belongs to another window)
 * \cost as spill_bucket_find_id(), and the edit
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_edit_id(spill_array_t *array, const spill_value_t *owner,
                                            const spill_value_t *id, const spill_value_t *element,
                                            char window[SPILL_WINDOW_SIZE], int64_t *seq,
                                            spill_error_t *error);

/**
 * Remove the element that spill_bucket_find_id() finds.
 *
 * \param array   an open array of layout bucket
 * \param owner   the owner
 * \param id      the id
 * \param window  becomes the element's window; "" if none was found
 * \param seq     becomes the element's sequence number in the window; -1 if none was found
 * \param error   filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_remove_id()
 * \cost as spill_bucket_find_id(), and the removal
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_remove_id(spill_array_t *array, const spill_value_t *owner,
                                              const spill_value_t *id,
                                              char window[SPILL_WINDOW_SIZE], int64_t *seq,
                                              spill_error_t *error);

/**
 * Remove the elements that match a filter, from the earliest window on: spill_array_remove_where()
 * for each. An owner that does not exist has nothing to remove.
 *
 * \param array    an open array of layout bucket
 * \param owner    the owner
 * \param filter   as in spill_array_remove_where()
 * \param limit    most elements to remove; 0: no limit
 * \param removed  becomes the number of removed elements, also after an error
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `removed` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_remove_where()
 * \cost spill_array_remove_where() for each window
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_remove_where(spill_array_t *array, const spill_value_t *owner,
                                                 const bson_t *filter, int64_t limit,
                                                 int64_t *removed, spill_error_t *error);

/* ---- trims ----------------------------------------------------------------------------------- */

/** Retention drops at most this number of windows after an append. The next append continues. */
#define SPILL_BUCKET_RETAINED 16

/**
 * Remove elements that are older than a time. Windows that end at or before that time are dropped
 * (spill_bucket_drop_older()). In the window of that time the oldest elements are removed, up to
 * the first one that is not older: single elements of the first part, and whole later parts. If
 * elements were appended in the order of their times, at most one part keeps older elements.
 * Statistics follow. Not for windows of a field. If the client dies, the next call or
 * spill_array_repair() finishes; statistics are right meanwhile.
 *
 * \param array    an open array of layout bucket
 * \param owner    the owner
 * \param time_ms  milliseconds since 1970
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_trim() for the window at which the call has stopped; SPILL_INVALID
 *         (windows of a field)
 * \cost the drops, and spill_array_trim_older() in one window
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_trim_older(spill_array_t *array, const spill_value_t *owner,
                                               int64_t time_ms, spill_error_t *error);

/**
 * Remove all but an owner's newest elements. The newest are those in the newest window with the
 * highest numbers. Windows before them are dropped. In the window in which they begin, the
 * elements before them are removed, by parts as in spill_bucket_trim_older(). So at least `keep`
 * elements stay, unless other clients remove some meanwhile, and at most one part more.
 *
 * \param array  an open array of layout bucket
 * \param owner  the owner
 * \param keep   the number of newest elements that stay, 0 or more
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors as spill_array_trim() for the window at which the call has stopped
 * \cost two small reads for each window that stays, one operation for each 100 windows, and the
 *       removal as in spill_bucket_trim_older()
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_trim_keep(spill_array_t *array, const spill_value_t *owner,
                                              int64_t keep, spill_error_t *error);

/* ---- owners, and dropping -------------------------------------------------------------------- */

/**
 * Visit every owner once, in the store's order.
 *
 * \param array    an open array of layout bucket
 * \param visit    called for each owner
 * \param context  passed to `visit`
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `context` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_CANCELLED (`visit` returned false), SPILL_CORRUPT, SPILL_IO, SPILL_TIMED_OUT
 * \cost a walk over all windows: one store operation for each 1000
 * \threads any number at once; `visit` is called on this thread
 */
SPILL_API spill_code_t spill_bucket_owners(spill_array_t *array, spill_owner_fn visit,
                                           void *context, spill_error_t *error);

/**
 * Drop the windows of an owner before a window, the oldest first. If the client dies, the next
 * call finishes.
 *
 * \param array    an open array of layout bucket
 * \param owner    the owner
 * \param window   the text of the first window that stays; NULL: all windows are dropped
 * \param dropped  becomes the number of dropped windows, also after an error
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `window`, `dropped` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (`window` is NULL and the owner has no window), SPILL_INVALID before any
 *         drop (`window` is not the text of a window of this definition), and as
 *         spill_array_drop_owner() for the window at which the call has stopped
 * \cost spill_array_drop_owner() for each window
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_drop_before(spill_array_t *array, const spill_value_t *owner,
                                                const char *window, int64_t *dropped,
                                                spill_error_t *error);

/**
 * Drop the windows that end at or before a moment, the oldest first. Not for windows of a field.
 *
 * \param array    an open array of layout bucket
 * \param owner    the owner
 * \param time_ms  milliseconds since 1970
 * \param dropped  becomes the number of dropped windows, also after an error
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `dropped` and `error` may be NULL; else SPILL_INVALID
 * \errors as spill_bucket_drop_before(); SPILL_INVALID (windows of a field)
 * \cost spill_array_drop_owner() for each window
 * \threads any number at once
 */
SPILL_API spill_code_t spill_bucket_drop_older(spill_array_t *array, const spill_value_t *owner,
                                               int64_t time_ms, int64_t *dropped,
                                               spill_error_t *error);

SPILL_END_DECLS

/** \} */

#endif
