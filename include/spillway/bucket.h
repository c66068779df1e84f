/*
 * Arrays in time windows (layout bucket): an owner's elements lie in a document for each hour, day,
 * week, month or year (or for each value of a field), with statistics of the elements that the
 * document holds. A window that is full continues in a next part, a document like the first.
 *
 * A window is an array of its own: its elements have sequence numbers from 0 in the order of
 * appending, and an element's address is (window, sequence number). The functions of array.h work
 * on one window: their owner is then the document {owner, window} that spill_bucket_name makes, and
 * any other is SPILL_INVALID. So edit and remove by spill_array_edit and spill_array_remove, count
 * by spill_array_count, drop one window by spill_array_drop_owner. They differ in this:
 *
 *   - an element that is appended, or takes another's place, has to lie in that window
 *   - updates of other fields are SPILL_INVALID: these documents have none
 *   - trims are SPILL_INVALID: what is old goes by owner (spill_bucket_trim_keep, _trim_older)
 *   - spill_array_owners and the other walks go from window to window
 *
 * The functions below work on an owner, over its windows. On a definition of another layout each
 * of them is SPILL_INVALID.
 *
 * Statistics are about the number at the definition's value_field. An element without a finite
 * int32, int64 or double there is counted, and has no value (so has a decimal128). A document's
 * statistics change in the same atomic step as its elements, and follow from these alone:
 *
 *   sum      an int64 while all values are integers, and all sums on the way from the first
 *            element to the last fit; else the sum of doubles, from the first element to the last
 *   average  sum / how many values there are
 *   min, max the least and the greatest value, compared as numbers; of equal ones the first
 *
 * Without any value there is no average, min or max, and the sum is 0. Statistics of several parts
 * or windows are combined in order. Each part's statistics are as of one moment.
 *
 * Threads: as array.h.
 */
#ifndef SPILLWAY_BUCKET_H
#define SPILLWAY_BUCKET_H

#include <spillway/array.h>

SPILL_BEGIN_DECLS

#define SPILL_WINDOW_SIZE 64 /* most bytes of a window's text, with its NUL */

/* ---- names of windows ------------------------------------------------------------------------ */

/*
 * Find the window of an element. SPILL_INVALID: the element has no time (for windows of a field: no
 * string), or one outside the years 0 to 9999, or the definition fails its check. No store
 * operation.
 */
SPILL_API spill_code_t spill_bucket_window_of(const spill_definition_t *definition,
                                              const spill_value_t *element,
                                              char window[SPILL_WINDOW_SIZE], spill_error_t *error);

/*
 * A window as an owner of array.h: {owner, window}. Appends it to `storage`, an initialized bson_t
 * of the caller's that owns the bytes; appending again ends the life of values made before. An
 * empty value if an argument is NULL.
 */
SPILL_API spill_value_t spill_bucket_name(bson_t *storage, const spill_value_t *owner,
                                          const char *window);

/* And back; false if it is no such name, or an argument is NULL. `owner` borrows. */
SPILL_API bool spill_bucket_split(const spill_value_t *name, spill_value_t *owner,
                                  char window[SPILL_WINDOW_SIZE]);

/* ---- append ---------------------------------------------------------------------------------- */

/* A base of an operation (array.h), of one window. */
typedef struct spill_bucket_base {
    char window[SPILL_WINDOW_SIZE];
    int64_t base;
} spill_bucket_base_t;

#define SPILL_BUCKET_APPEND_OPTIONS_VERSION 1

typedef struct spill_bucket_append_options {
    int version; /* SPILL_BUCKET_APPEND_OPTIONS_VERSION */
    /*
     * An operation's id, or NULL. Each window of the batch gets an operation with this id and its
     * own base. If a window is missing in `bases`, the result is SPILL_INVALID before any write.
     */
    const void *op_id;
    size_t op_id_bytes;
    const spill_bucket_base_t *bases;
    size_t base_count;
    bool fill; /* as in spill_append_options_t */
} spill_bucket_append_options_t;

/* The defaults: no operation, a batch that fits a part in one piece. */
SPILL_API void spill_bucket_append_options_init(spill_bucket_append_options_t *options);

/* What became of the elements of one window. */
typedef struct spill_bucket_appended {
    char window[SPILL_WINDOW_SIZE];
    int64_t elements; /* how many of the batch lie in it */
    spill_append_result_t result;
} spill_bucket_appended_t;

/*
 * Append elements, each to its window. The elements of a window stay in order and are one batch of
 * spill_array_append. The windows are written in the order of their first elements. A crash or an
 * error may leave out the later ones. `options` may be NULL. `appended` and `count` may both be
 * NULL. *appended gets *count entries, one for each window that was begun, also after an error.
 * Free it with bson_free. Cost and errors: as spill_array_append for each window. SPILL_INVALID
 * before any write: an element belongs to no window.
 */
SPILL_API spill_code_t spill_bucket_append(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *elements, size_t element_count,
                                           const spill_bucket_append_options_t *options,
                                           spill_bucket_appended_t **appended, size_t *count,
                                           spill_error_t *error);

/*
 * A base for each window that these elements lie in, in the order of their first ones, to be kept
 * for retries with the operation's id. Free *bases with bson_free. Cost: up to three store
 * operations a window.
 */
SPILL_API spill_code_t spill_bucket_op_bases(spill_array_t *array, const spill_value_t *owner,
                                             const spill_value_t *elements, size_t element_count,
                                             spill_bucket_base_t **bases, size_t *count,
                                             spill_error_t *error);

/* ---- windows and statistics ------------------------------------------------------------------ */

/* A number as it was found or summed up. */
typedef struct spill_amount {
    bool real;     /* a double; else an integer */
    int64_t whole; /* the integer */
    double value;  /* either as a double */
} spill_amount_t;

typedef struct spill_statistics {
    int64_t count;  /* elements */
    int64_t values; /* elements with a value */
    spill_amount_t sum, min, max;
    double average; /* 0 without values */
} spill_statistics_t;

typedef struct spill_bucket_window {
    const char *window; /* borrowed for the length of the call */
    int64_t parts;      /* documents; 1 more than the pages of array.h */
    spill_statistics_t statistics;
} spill_bucket_window_t;

/* Return false to stop the walk, which then returns SPILL_CANCELLED. */
typedef bool (*spill_bucket_window_fn)(void *context, const spill_bucket_window_t *window);

/*
 * Visit an owner's windows from `from` to `to`, both included (NULL: no bound), in time order or
 * the newest first. Reads no element. Cost: one small read for each part. Listing the windows costs
 * one operation for the first 2, the next 8, the next 32 and each 100 after that, or none if `from`
 * equals `to`. Windows created meanwhile may be missed.
 */
SPILL_API spill_code_t spill_bucket_windows(spill_array_t *array, const spill_value_t *owner,
                                            const char *from, const char *to, spill_order_t order,
                                            spill_bucket_window_fn visit, void *context,
                                            spill_error_t *error);

/*
 * Combine the statistics of the windows from `from` to `to`. *windows (may be NULL) is their
 * number. An owner that does not exist has none. Cost: as spill_bucket_windows.
 */
SPILL_API spill_code_t spill_bucket_statistics(spill_array_t *array, const spill_value_t *owner,
                                               const char *from, const char *to,
                                               spill_statistics_t *statistics, int64_t *windows,
                                               spill_error_t *error);

/* ---- read ------------------------------------------------------------------------------------ */

#define SPILL_BUCKET_READ_OPTIONS_VERSION 1

typedef struct spill_bucket_read_options {
    int version;         /* SPILL_BUCKET_READ_OPTIONS_VERSION */
    spill_order_t order; /* of windows, and of numbers within each; default: newest first */
    int64_t limit;       /* most elements; default 20 */
    const char *from;    /* only windows from here on, or NULL */
    const char *to;      /* ... up to here, included, or NULL */
    /* Only elements of times in [from_ms, to_ms), since 1970; not for windows of a field. */
    int64_t from_ms; /* INT64_MIN (default): no bound */
    int64_t to_ms;   /* INT64_MAX (default): no bound */
    /* Continue after this element, in the order of the read: a slice's cursor. NULL: begin. */
    const char *cursor_window;
    int64_t cursor_seq;
} spill_bucket_read_options_t;

/* The defaults: the newest 20 elements. */
SPILL_API void spill_bucket_read_options_init(spill_bucket_read_options_t *options);

typedef struct spill_bucket_element {
    const char *window; /* borrows from the slice, as the value does */
    int64_t seq;        /* in the window */
    spill_value_t value;
} spill_bucket_element_t;

/* Free with spill_bucket_slice_free. */
typedef struct spill_bucket_slice {
    spill_bucket_element_t *elements;
    size_t count;
    bool more; /* elements may remain beyond this slice; false is certain */
    char cursor_window[SPILL_WINDOW_SIZE]; /* the cursor for them: the last element's address */
    int64_t cursor_seq;
    void *memory; /* private */
} spill_bucket_slice_t;

/*
 * Read a run of elements, window by window. A window has its elements in the order in which they
 * were appended, which may differ from the order of their times. So a bound in time filters the
 * elements of its first and last window. An owner that does not exist reads as empty. Cost: as
 * spill_array_read for each window, and as spill_bucket_windows to list them.
 */
SPILL_API spill_code_t spill_bucket_read(spill_array_t *array, const spill_value_t *owner,
                                         const spill_bucket_read_options_t *options,
                                         spill_bucket_slice_t **slice, spill_error_t *error);
SPILL_API void spill_bucket_slice_free(spill_bucket_slice_t *slice); /* NULL is allowed */

/* ---- elements by their ids, and by a filter -------------------------------------------------- */

/*
 * Find the element of an owner with this id, as spill_array_find_id does. Of several it finds the
 * one in the earliest window with the lowest number there. `window` and *seq become its address, ""
 * and -1 if none was found. Cost: one operation that finds the windows by an index, and
 * spill_array_find_id for each of them, usually one.
 */
SPILL_API spill_code_t spill_bucket_find_id(spill_array_t *array, const spill_value_t *owner,
                                            const spill_value_t *id, char window[SPILL_WINDOW_SIZE],
                                            int64_t *seq, spill_error_t *error);

/*
 * Edit or remove it, as spill_array_edit_id and spill_array_remove_id. SPILL_INVALID: the new
 * element belongs to another window. Cost: as above, and the edit or removal.
 */
SPILL_API spill_code_t spill_bucket_edit_id(spill_array_t *array, const spill_value_t *owner,
                                            const spill_value_t *id, const spill_value_t *element,
                                            char window[SPILL_WINDOW_SIZE], int64_t *seq,
                                            spill_error_t *error);
SPILL_API spill_code_t spill_bucket_remove_id(spill_array_t *array, const spill_value_t *owner,
                                              const spill_value_t *id,
                                              char window[SPILL_WINDOW_SIZE], int64_t *seq,
                                              spill_error_t *error);

/*
 * Remove the elements that match a filter, at most `limit` of them (0: no limit), from the earliest
 * window on: spill_array_remove_where for each. *removed (may be NULL) is set after an error, too.
 * SPILL_NOT_FOUND is none of the errors: an owner that does not exist has nothing to remove.
 */
SPILL_API spill_code_t spill_bucket_remove_where(spill_array_t *array, const spill_value_t *owner,
                                                 const bson_t *filter, int64_t limit,
                                                 int64_t *removed, spill_error_t *error);

/* ---- trims ----------------------------------------------------------------------------------- */

/* Retention drops at most this number of windows after an append. The next append continues. */
#define SPILL_BUCKET_RETAINED 16

/*
 * Remove elements that are older than a time, in milliseconds since 1970. Windows that end at or
 * before that time are dropped (spill_bucket_drop_older). In the window of that time the oldest
 * elements are removed, up to the first one that is not older: single elements of the first part,
 * and whole later parts. If elements were appended in the order of their times, at most one part
 * keeps older elements. Statistics follow. Not for windows of a field.
 *
 * Cost: the drops, and spill_array_trim_older in one window. If the client dies, the next call or
 * spill_array_repair finishes; statistics are right meanwhile.
 */
SPILL_API spill_code_t spill_bucket_trim_older(spill_array_t *array, const spill_value_t *owner,
                                               int64_t time_ms, spill_error_t *error);

/*
 * Remove all but an owner's newest `keep` elements. The newest are those in the newest window with
 * the highest numbers. Windows before them are dropped. In the window in which they begin, the
 * elements before them are removed, by parts as above. So at least `keep` elements stay, unless
 * other clients remove some meanwhile, and at most one part more. Cost: two small reads for each
 * window that stays, one operation for each 100 windows, and the removal as above.
 */
SPILL_API spill_code_t spill_bucket_trim_keep(spill_array_t *array, const spill_value_t *owner,
                                              int64_t keep, spill_error_t *error);

/* ---- owners, and dropping -------------------------------------------------------------------- */

/* Every owner once, in the store's order. Cost: a walk over all windows. */
SPILL_API spill_code_t spill_bucket_owners(spill_array_t *array, spill_owner_fn visit,
                                           void *context, spill_error_t *error);

/*
 * Drop the windows of an owner before a window's text (NULL: all windows), the oldest first.
 * *dropped (may be NULL) is their number. If the client dies, the next call finishes. Cost: as
 * spill_array_drop_owner for each. SPILL_NOT_FOUND: `window` is NULL and the owner has no window.
 * SPILL_INVALID, before any drop: `window` is not the text of a window of this definition.
 */
SPILL_API spill_code_t spill_bucket_drop_before(spill_array_t *array, const spill_value_t *owner,
                                                const char *window, int64_t *dropped,
                                                spill_error_t *error);

/*
 * The same by time: windows that end at or before a moment, in milliseconds since 1970. Not for
 * windows of a field.
 */
SPILL_API spill_code_t spill_bucket_drop_older(spill_array_t *array, const spill_value_t *owner,
                                               int64_t time_ms, int64_t *dropped,
                                               spill_error_t *error);

SPILL_END_DECLS

#endif
