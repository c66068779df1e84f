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
 * Without any value there is no average, min or max, and the sum is 0. Those of several parts or
 * windows together are made of those of each, in order; each is of one moment.
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
 * The window that an element lies in. SPILL_INVALID where it has no time (or no string, for windows
 * of a field), or one outside the years 0 to 9999, or where the definition does not pass its check.
 * No store operation.
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
     * An operation's id, or NULL. Each window of the batch gets an operation of this id, with its
     * own base: all of them have to be among `bases`, else SPILL_INVALID before anything is done.
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
 * Append elements, each to its window; those of one window in their order, as one batch of
 * spill_array_append. Windows follow each other as they first occur in the batch; a crash, or an
 * error, may leave the later ones out. `options` may be NULL; `appended` may be NULL, and `count`
 * with it: `appended` gets *count entries, a window each (free with bson_free), also after an
 * error: those that were begun. Cost: that of spill_array_append for each window. Errors: as there;
 * SPILL_INVALID for an element in no window, before anything is done.
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
    int64_t values; /* of which have a value */
    spill_amount_t sum, min, max;
    double average; /* 0 where there is no value */
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
 * the newest first. No element is read. Cost: one small read for each part, and to list windows one
 * operation for the first 2, the next 8, the next 32 and each 100 from there on, or none where
 * `from` and `to` are the same. Windows made meanwhile may or may not be met.
 */
SPILL_API spill_code_t spill_bucket_windows(spill_array_t *array, const spill_value_t *owner,
                                            const char *from, const char *to, spill_order_t order,
                                            spill_bucket_window_fn visit, void *context,
                                            spill_error_t *error);

/*
 * Statistics of the windows from `from` to `to` together, and how many of these there are (may be
 * NULL). An owner that does not exist has none. Cost: that of spill_bucket_windows.
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
    /* Go on behind this element, in the order of the read: a slice's cursor. NULL: from the start.
     */
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
 * Read a run of elements, window by window. In a window elements stand in the order of appending,
 * which is that of their times only where they came in that order; so a bound in time leaves
 * elements out of its first and last window, which are read as far as the limit takes. An owner
 * that does not exist reads as empty. Cost: for each window touched that of spill_array_read, and
 * to list them as spill_bucket_windows.
 */
SPILL_API spill_code_t spill_bucket_read(spill_array_t *array, const spill_value_t *owner,
                                         const spill_bucket_read_options_t *options,
                                         spill_bucket_slice_t **slice, spill_error_t *error);
SPILL_API void spill_bucket_slice_free(spill_bucket_slice_t *slice); /* NULL is allowed */

/* ---- elements by their ids, and by a filter -------------------------------------------------- */

/*
 * The element of an owner with this id, as spill_array_find_id: of several the one in the earliest
 * window, and there with the lowest number. `window` ("" where none was found) and *seq (-1) say
 * where. Cost: one operation that finds the windows, through an index, and that of
 * spill_array_find_id for each of them, mostly one.
 */
SPILL_API spill_code_t spill_bucket_find_id(spill_array_t *array, const spill_value_t *owner,
                                            const spill_value_t *id, char window[SPILL_WINDOW_SIZE],
                                            int64_t *seq, spill_error_t *error);

/*
 * Edit or remove it, as spill_array_edit_id and spill_array_remove_id. The new element has to lie
 * in the same window, else SPILL_INVALID. Cost: as above, with the edit or removal.
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

/* Retention drops at most so many windows after an append; the next one goes on. */
#define SPILL_BUCKET_RETAINED 16

/*
 * Remove what is older than a time, in milliseconds since 1970: windows that end at or before it
 * go as a whole (as by spill_bucket_drop_older), and in the window in which it lies the oldest
 * elements, up to the first one that is not older. There, elements that the first part holds go one
 * by one; of a later part all go, or none: so with elements in the order of their times at most
 * one part's are left that are older. Statistics follow. Not for windows of a field.
 *
 * Cost: that of the drops; and as spill_array_trim_older in the one window. One that dies is
 * finished by the next, or by spill_array_repair; statistics are right meanwhile.
 */
SPILL_API spill_code_t spill_bucket_trim_older(spill_array_t *array, const spill_value_t *owner,
                                               int64_t time_ms, spill_error_t *error);

/*
 * Remove all but an owner's newest `keep` elements, the newest window first and in a window the
 * highest number: windows before these go as a whole, and in the window that they begin in, what
 * is before them, by parts as above. So no fewer are left, but where others remove elements
 * meanwhile, and at most one part more. Cost: one small read for each part that stays, one
 * operation for each 100 windows, and what goes as above.
 */
SPILL_API spill_code_t spill_bucket_trim_keep(spill_array_t *array, const spill_value_t *owner,
                                              int64_t keep, spill_error_t *error);

/* ---- owners, and dropping -------------------------------------------------------------------- */

/* Every owner once, in the store's order. Cost: a walk over all windows. */
SPILL_API spill_code_t spill_bucket_owners(spill_array_t *array, spill_owner_fn visit,
                                           void *context, spill_error_t *error);

/*
 * Drop the windows of an owner that lie before a window's text (NULL: all of them), the oldest
 * first; *dropped (may be NULL) is how many. One that dies is finished by the next.
 * Cost: that of spill_array_drop_owner for each. SPILL_NOT_FOUND, for all of them, where there is
 * none. SPILL_INVALID, and nothing dropped: `window` is no text of a window of this definition.
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
