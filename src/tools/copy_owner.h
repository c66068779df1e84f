/* Copying one owner; what the files of a copy share. */
#ifndef SPILL_TOOLS_COPY_OWNER_H
#define SPILL_TOOLS_COPY_OWNER_H

#include "core/walk.h"
#include "tools/copy.h"

#include <spillway/bucket.h>

/* Most elements of a batch. An unfinished copy leaves placeholders only among the last numbers, at
 * most this many. */
#define SPILL_COPY_BATCH 1000

/* One store's side of a copy. */
typedef struct spill_copy_side {
    const char *name; /* "source" or "target", for messages */
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t *definitions; /* all of the store: some may share heads */
    size_t definition_count;
} spill_copy_side_t;

typedef struct spill_copy {
    spill_copy_side_t source;
    spill_copy_side_t target;
    /*
     * If both definitions have the same windows, each window is copied as an owner, and both are
     * false. joins_windows: each owner's windows are read as one array, numbered from 0, in their
     * order. makes_windows: each element is appended to its window of the target.
     */
    bool joins_windows;
    bool makes_windows;
    /*
     * The source is being dropped, and the first of its joined windows may be deleted. Then the
     * source's elements are the last elements of the target.
     */
    bool drops_windows;
    const spill_copy_options_t *options;
    spill_copy_result_t *result;
    bson_t last; /* the owner that was reported last, under an empty name */
    bool last_differs;
    bool last_ahead;
} spill_copy_t;

/* The owner that is being copied. */
typedef struct spill_copy_owner {
    const spill_copy_t *copy;
    spill_owner_t source;
    spill_owner_t target;
    int64_t begin;    /* the source's first number: above 0 if first windows were dropped */
    int64_t end;      /* numbers below it are copied */
    int64_t has;      /* elements of the source below `end` */
    int64_t next;     /* of the target */
    int64_t live;     /* elements in the target */
    int64_t base;     /* of the next operation there */
    int64_t cap_room; /* capped target: most elements that it keeps */
    int64_t cap_from; /* the source's number from which on its cap may keep elements */
    int64_t cap_low;  /* the target's trim watermark */
    bool cap_begins;  /* elements below cap_from are not trimmed yet, and may be placeholders */
    uint64_t hash;    /* of the compared elements, in the source's order */
    spill_copy_difference_t difference; /* `ahead` is set if any difference is */
} spill_copy_owner_t;

/* The result for one owner. */
typedef struct spill_copied {
    spill_copy_difference_t difference; /* count 0: none */
    int64_t elements;                   /* of the source */
    uint64_t hash;                      /* of the compared elements, in the source's order */
} spill_copied_t;

/*
 * A copy, owner by owner: begin, one call for each owner, end (in every case). Before, set stores,
 * names of sides, options, result and `last`, and zero the rest. (copy.c)
 */
spill_code_t spill_copy_begin(spill_copy_t *copy, const char *name, spill_error_t *error);
spill_code_t spill_copy_one(spill_copy_t *copy, const spill_value_t *value, spill_copied_t *copied,
                            spill_error_t *error);
void spill_copy_end(spill_copy_t *copy);

/* Put the side in front of an error's message. */
spill_code_t spill_copy_failed(const spill_copy_side_t *side, spill_code_t code,
                               spill_error_t *error);

/* Count a difference, and store it if it is the owner's first. `text` is static. */
void spill_copy_differs(spill_copy_owner_t *owner, int64_t seq, const char *text);
/* The same, for a target that has more than the source. */
void spill_copy_differs_ahead(spill_copy_owner_t *owner, int64_t seq, const char *text);

/* Count a difference if a drop of the target has begun: the next append or repair there deletes its
 * elements. `target` is the owner there, or one of its windows. */
spill_code_t spill_copy_check_dropped(spill_copy_owner_t *owner, const spill_owner_t *target,
                                      spill_error_t *error);

void spill_copy_progress(const spill_copy_t *copy);

/* Set the other fields of the target's head as in the source. (copy_fields.c) */
spill_code_t spill_copy_fields(spill_copy_owner_t *owner, spill_error_t *error);

/*
 * Compare the numbers in [from, to). Remove placeholders that an unfinished copy has left in the
 * target, and elements that a capped source has dropped since they were copied. Add the number of
 * equal elements to *equal (may be NULL). (copy_compare.c)
 */
spill_code_t spill_copy_compare(spill_copy_owner_t *owner, int64_t from, int64_t to, int64_t *equal,
                                spill_error_t *error);

/* Count an element that both have: in *equal (NULL: not counted) and in the hash. */
void spill_copy_count_equal(spill_copy_owner_t *owner, const spill_value_t *value, int64_t *equal);

/*
 * Handle a number that only the target has, as read by the source's cursor. Remove the element if
 * it is a placeholder or if a capped source has dropped it; else count a difference.
 * (copy_compare.c)
 */
typedef struct spill_copy_cursor spill_copy_cursor_t;
spill_code_t spill_copy_surplus(spill_copy_owner_t *owner, const spill_copy_cursor_t *source,
                                const spill_element_t *element, spill_error_t *error);

/* Append the elements of the source that the target does not have yet. (copy_elements.c) */
spill_code_t spill_copy_elements(spill_copy_owner_t *owner, spill_error_t *error);

/* Set end and has; set next, live and base. The second reads the base first. (copy_elements.c) */
spill_code_t spill_copy_read_source(spill_copy_owner_t *owner, spill_error_t *error);
spill_code_t spill_copy_read_target(spill_copy_owner_t *owner, spill_error_t *error);

/* A placeholder is MinKey, a type that applications do not store, or a document with it. */
bool spill_copy_is_placeholder(const spill_value_t *value);

/* Remove a placeholder, if it was not removed already. (copy_elements.c) */
spill_code_t spill_copy_remove(const spill_copy_owner_t *owner, int64_t seq, spill_error_t *error);

/* ---- batches (copy_elements.c) --------------------------------------------------------------- */

typedef struct spill_copy_batch {
    int64_t first; /* the first number that it gives in the target */
    int64_t skip;  /* top-N target: numbers to skip before its first element */
    size_t count;
    size_t placeholders;
    spill_buffer_t bytes;
    spill_value_t values[SPILL_COPY_BATCH];
    size_t offsets[SPILL_COPY_BATCH]; /* of the values in `bytes` */
    bool gaps[SPILL_COPY_BATCH];      /* true for placeholders */
} spill_copy_batch_t;

/* A batch that begins at a number of the target. Free it with spill_copy_batch_free. */
spill_copy_batch_t *spill_copy_batch_new(int64_t first);
void spill_copy_batch_free(spill_copy_batch_t *batch);

/* Report whether one more value fits, for any target. */
bool spill_copy_batch_is_short(const spill_copy_batch_t *batch, const spill_value_t *value);
/* Copies the value's bytes. */
void spill_copy_batch_add(spill_copy_batch_t *batch, const spill_value_t *value, bool gap);
/* Make the values point to their bytes; call it after the last add. */
void spill_copy_batch_finish(spill_copy_batch_t *batch);

/* Add a value to the batch. If it does not fit, append the batch first. */
spill_code_t spill_copy_push(spill_copy_owner_t *owner, spill_copy_batch_t *batch,
                             const spill_value_t *value, bool gap, spill_error_t *error);

/* Append the batch, at most once; the empty batch then begins behind it. */
spill_code_t spill_copy_flush(spill_copy_owner_t *owner, spill_copy_batch_t *batch,
                              spill_error_t *error);

/* Capped target without elements: give the numbers from its next one up to `to`. */
spill_code_t spill_copy_skip(spill_copy_owner_t *owner, int64_t to, spill_error_t *error);

/* ---- a capped target (copy_cap.c) ------------------------------------------------------------ */

/* ... with keep newest. */
bool spill_copy_is_capped(const spill_copy_t *copy);

/* Would the target's head, which keeps at most `room` elements, keep one more of this size? */
bool spill_copy_holds_one_more(const spill_copy_owner_t *owner, const spill_state_t *head,
                               int64_t room, int64_t bytes);

/* Set cap_low, cap_room and cap_from from both arrays. Reads the elements that the cap keeps. */
spill_code_t spill_copy_cap_read(spill_copy_owner_t *owner, spill_error_t *error);

/*
 * Trim elements that the cap will not keep, and give the numbers up to the first that it keeps; set
 * next, live and base again. SPILL_CONFLICT: something was appended meanwhile.
 */
spill_code_t spill_copy_cap_begin(spill_copy_owner_t *owner, spill_error_t *error);

/*
 * Set *from to the first number that the target must have. Count a difference if the element before
 * it should be there too: the cap and the bytes have room for one more.
 */
spill_code_t spill_copy_cap_check(spill_copy_owner_t *owner, int64_t *from, spill_error_t *error);

/* ---- a top-N target (copy_top_n.c) ----------------------------------------------------------- */

bool spill_copy_keeps_top_n(const spill_copy_t *copy);

/*
 * As spill_copy_compare, which calls it. A missing element is a difference if it ranks above an
 * element of the target or if the target has room for it.
 */
spill_code_t spill_copy_compare_top_n(spill_copy_owner_t *owner, int64_t from, int64_t to,
                                      int64_t *equal, spill_error_t *error);

/* Set live, and count the elements that the cap dropped. */
spill_code_t spill_copy_count_top_n(spill_copy_owner_t *owner, spill_error_t *error);

/* ---- a target with windows (copy_windows.c) -------------------------------------------------- */

/* Copy an owner's elements, each to its window, and compare all of them. */
spill_code_t spill_copy_to_windows(spill_copy_owner_t *owner, spill_error_t *error);

/* ---- a cursor (copy_compare.c) --------------------------------------------------------------- */

/* The elements of one side with numbers in [from, to), ascending, one document at a time. */
struct spill_copy_cursor {
    const spill_copy_side_t *side;
    const spill_owner_t *owner;
    int64_t to;
    spill_stretch_t stretch;
    size_t at;
    bool ended;
    bool joins;                     /* reads joined windows, with: */
    spill_bucket_slice_t *slice;    /* the elements read last, `at` being an index in it; or NULL */
    int64_t first;                  /* number of its first element */
    int64_t limit;                  /* elements of the next read; 0: the first read */
    char window[SPILL_WINDOW_SIZE]; /* where the first slice begins; "" if not set */
};

void spill_copy_cursor_source(spill_copy_cursor_t *cursor, const spill_copy_owner_t *owner,
                              int64_t from, int64_t to);
void spill_copy_cursor_target(spill_copy_cursor_t *cursor, const spill_copy_owner_t *owner,
                              int64_t from, int64_t to);
void spill_copy_cursor_release(spill_copy_cursor_t *cursor);

/*
 * Get the element at the cursor; at the end, set cursor->ended. The element is borrowed until the
 * call after the next move of the cursor (cursor->at++).
 */
spill_code_t spill_copy_cursor_get(spill_copy_cursor_t *cursor, spill_element_t *element,
                                   spill_error_t *error);

/* The same for joined windows: spill_copy_cursor_get calls it. (copy_join.c) */
spill_code_t spill_copy_cursor_join(spill_copy_cursor_t *cursor, spill_element_t *element,
                                    spill_error_t *error);

/*
 * A read of several documents at once begins with few elements. Each later read has as many as the
 * sizes of the last ones allow, so that large elements do not fill the memory. (copy_join.c)
 */
enum { SPILL_COPY_FIRST_READ = 4 };
int64_t spill_copy_next_limit(int64_t limit, size_t count, int64_t bytes);

/* Count the elements of an owner's joined windows. (copy_join.c) */
spill_code_t spill_copy_join_count(const spill_copy_side_t *side, const spill_owner_t *owner,
                                   int64_t *count, spill_error_t *error);

#endif
