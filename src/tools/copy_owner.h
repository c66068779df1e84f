/* Copying one owner; what the parts of a copy share. */
#ifndef SPILL_TOOLS_COPY_OWNER_H
#define SPILL_TOOLS_COPY_OWNER_H

#include "core/walk.h"
#include "tools/copy.h"

#include <spillway/bucket.h>

/* Elements of a batch at most; so many numbers below its end, an unfinished copy may have left
 * placeholders. */
#define SPILL_COPY_BATCH 1000

/* One store's side of a copy. */
typedef struct spill_copy_side {
    const char *name; /* "source" or "target", for messages */
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t *definitions; /* all that the store has: some may share heads */
    size_t definition_count;
} spill_copy_side_t;

typedef struct spill_copy {
    spill_copy_side_t source;
    spill_copy_side_t target;
    /*
     * Between two definitions of the same windows, each window is an owner. Else a source that has
     * windows is one array for each owner, the windows one after the other, its elements numbered
     * from 0 in that order; and in a target that has windows each element goes to its own.
     */
    bool joins_windows;
    bool makes_windows;
    /*
     * The source is being dropped: of windows that are one array the first may be gone. Then the
     * source is what the target ends with.
     */
    bool drops_windows;
    const spill_copy_options_t *options;
    spill_copy_result_t *result;
    bson_t last; /* the owner that was reported last, under an empty name */
    bool last_differs;
    bool last_ahead;
} spill_copy_t;

/* One owner while it is its turn. */
typedef struct spill_copy_owner {
    const spill_copy_t *copy;
    spill_owner_t source;
    spill_owner_t target;
    int64_t begin;    /* where the source's numbers begin: not at 0 where windows that are one
                         array were dropped meanwhile */
    int64_t end;      /* they are copied below this */
    int64_t has;      /* elements of the source below it */
    int64_t next;     /* of the target */
    int64_t live;     /* elements in the target */
    int64_t base;     /* of the next operation there */
    int64_t cap_room; /* capped target: so many elements it keeps at most, */
    int64_t cap_from; /* and they are among those from this number of the source on */
    int64_t cap_low;  /* where what it holds begins */
    bool cap_begins;  /* what it holds below that is still to go, and may be placeholders */
    uint64_t hash;    /* of the elements that were compared, in the source's order */
    spill_copy_difference_t difference; /* `ahead` is of all of them */
} spill_copy_owner_t;

/* What was found of an owner. */
typedef struct spill_copied {
    spill_copy_difference_t difference; /* count 0: there is none */
    int64_t elements;                   /* of the source, */
    uint64_t hash;                      /* and of those that were compared, in its order */
} spill_copied_t;

/*
 * A copy, owner by owner: begin, one for each, end (in every case). Zero it but for stores, names
 * of sides, options, result and `last`. (copy.c)
 */
spill_code_t spill_copy_begin(spill_copy_t *copy, const char *name, spill_error_t *error);
spill_code_t spill_copy_one(spill_copy_t *copy, const spill_value_t *value, spill_copied_t *copied,
                            spill_error_t *error);
void spill_copy_end(spill_copy_t *copy);

/* Put the side before the message of an error. */
spill_code_t spill_copy_failed(const spill_copy_side_t *side, spill_code_t code,
                               spill_error_t *error);

/* Count a difference, and keep it where it is the owner's first. `text` is static. */
void spill_copy_differs(spill_copy_owner_t *owner, int64_t seq, const char *text);
/* The same, where the target has more than the source. */
void spill_copy_differs_ahead(spill_copy_owner_t *owner, int64_t seq, const char *text);

/* One that is being dropped differs, whatever elements it has still: the next append or repair
 * takes them. `target` is the owner there, or one of its windows. */
spill_code_t spill_copy_check_dropped(spill_copy_owner_t *owner, const spill_owner_t *target,
                                      spill_error_t *error);

void spill_copy_progress(const spill_copy_t *copy);

/* Make the other fields of the target's head those of the source's. (copy_fields.c) */
spill_code_t spill_copy_fields(spill_copy_owner_t *owner, spill_error_t *error);

/*
 * Compare the numbers in [from, to), and remove placeholders that an unfinished copy has
 * left in the target, and what has fallen off a capped source since it was copied. *equal (may be
 * NULL) is raised by the elements that are. (copy_compare.c)
 */
spill_code_t spill_copy_compare(spill_copy_owner_t *owner, int64_t from, int64_t to, int64_t *equal,
                                spill_error_t *error);

/* Both have this element: *equal (NULL: nothing is counted) and the hash are raised. */
void spill_copy_count_equal(spill_copy_owner_t *owner, const spill_value_t *value, int64_t *equal);

/*
 * Only the target has this number, by what the cursor of the source has read: a difference, or it
 * is removed where it is a placeholder, or fell off a capped source. (copy_compare.c)
 */
typedef struct spill_copy_cursor spill_copy_cursor_t;
spill_code_t spill_copy_surplus(spill_copy_owner_t *owner, const spill_copy_cursor_t *source,
                                const spill_element_t *element, spill_error_t *error);

/* Append what the source has and the target has not yet. (copy_elements.c) */
spill_code_t spill_copy_elements(spill_copy_owner_t *owner, spill_error_t *error);

/* Set end and has; next, live and base, the base being read first. (copy_elements.c) */
spill_code_t spill_copy_look_at_source(spill_copy_owner_t *owner, spill_error_t *error);
spill_code_t spill_copy_look_at_target(spill_copy_owner_t *owner, spill_error_t *error);

/* A placeholder: MinKey, a type that applications do not store, or a document of it. */
bool spill_copy_is_placeholder(const spill_value_t *value);

/* Remove a placeholder; that it is gone already is as good. (copy_elements.c) */
spill_code_t spill_copy_remove(const spill_copy_owner_t *owner, int64_t seq, spill_error_t *error);

/* ---- batches (copy_elements.c) --------------------------------------------------------------- */

typedef struct spill_copy_batch {
    int64_t first; /* the first number that it gives in the target */
    int64_t skip;  /* target that keeps the best: so many of no element, before the elements */
    size_t count;
    size_t placeholders;
    spill_buffer_t bytes;
    spill_value_t values[SPILL_COPY_BATCH];
    size_t offsets[SPILL_COPY_BATCH]; /* of the values' bytes */
    bool gaps[SPILL_COPY_BATCH];      /* which are placeholders */
} spill_copy_batch_t;

/* A batch that begins at a number of the target. Free it with spill_copy_batch_free. */
spill_copy_batch_t *spill_copy_batch_new(int64_t first);
void spill_copy_batch_free(spill_copy_batch_t *batch);

/* Is it short enough for one more, whatever the target? */
bool spill_copy_batch_is_short(const spill_copy_batch_t *batch, const spill_value_t *value);
/* Copies the value's bytes. */
void spill_copy_batch_add(spill_copy_batch_t *batch, const spill_value_t *value, bool gap);
/* Let the values point to their bytes: after the last was added. */
void spill_copy_batch_finish(spill_copy_batch_t *batch);

/* Put a value into the batch; what is in it is appended first where it does not fit. */
spill_code_t spill_copy_push(spill_copy_owner_t *owner, spill_copy_batch_t *batch,
                             const spill_value_t *value, bool gap, spill_error_t *error);

/* Append what is in the batch, at most once; it goes on behind that. */
spill_code_t spill_copy_flush(spill_copy_owner_t *owner, spill_copy_batch_t *batch,
                              spill_error_t *error);

/* Capped target, which holds nothing: give the numbers from its next one up to `to`. */
spill_code_t spill_copy_skip(spill_copy_owner_t *owner, int64_t to, spill_error_t *error);

/* ---- a capped target (copy_cap.c) ------------------------------------------------------------ */

/* ... that keeps the newest. */
bool spill_copy_is_capped(const spill_copy_t *copy);

/* Would the target's head, which keeps at most `room`, hold one more element of that size? */
bool spill_copy_holds_one_more(const spill_copy_owner_t *owner, const spill_state_t *head,
                               int64_t room, int64_t bytes);

/* Set cap_low, cap_room and cap_from, by what both have now. Reads what the cap keeps. */
spill_code_t spill_copy_cap_look(spill_copy_owner_t *owner, spill_error_t *error);

/*
 * Trim what the cap will not keep, and give the numbers up to it; next, live and base are as they
 * are then. SPILL_CONFLICT where something was appended meanwhile.
 */
spill_code_t spill_copy_cap_begin(spill_copy_owner_t *owner, spill_error_t *error);

/*
 * What the target holds begins at *from. A difference where an element below that should be there:
 * one more is within the cap, and fits its bytes.
 */
spill_code_t spill_copy_cap_check(spill_copy_owner_t *owner, int64_t *from, spill_error_t *error);

/* ---- a target that keeps the best (copy_top_n.c) ----------------------------------------------
 */

bool spill_copy_keeps_top_n(const spill_copy_t *copy);

/*
 * As spill_copy_compare, which calls it: what the target has not is a difference where it ranks
 * above what is there, or there is room for it.
 */
spill_code_t spill_copy_compare_top_n(spill_copy_owner_t *owner, int64_t from, int64_t to,
                                      int64_t *equal, spill_error_t *error);

/* Set live, and count what was dropped. */
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
    bool joins;                     /* windows, one after the other: */
    spill_bucket_slice_t *slice;    /* what is read of them, `at` being a place in it; or NULL */
    int64_t first;                  /* number of its first element */
    int64_t limit;                  /* elements of the next read; 0: of the first */
    char window[SPILL_WINDOW_SIZE]; /* where the first slice begins; "" where there is none */
};

void spill_copy_cursor_source(spill_copy_cursor_t *cursor, const spill_copy_owner_t *owner,
                              int64_t from, int64_t to);
void spill_copy_cursor_target(spill_copy_cursor_t *cursor, const spill_copy_owner_t *owner,
                              int64_t from, int64_t to);
void spill_copy_cursor_release(spill_copy_cursor_t *cursor);

/*
 * The element that the cursor stands on; cursor->ended where there is none. Borrowed until the
 * cursor has been moved on (cursor->at++) and is asked again.
 */
spill_code_t spill_copy_cursor_get(spill_copy_cursor_t *cursor, spill_element_t *element,
                                   spill_error_t *error);

/* The same of windows: spill_copy_cursor_get calls it. (copy_join.c) */
spill_code_t spill_copy_cursor_join(spill_copy_cursor_t *cursor, spill_element_t *element,
                                    spill_error_t *error);

/*
 * Reads of several documents at once begin with few elements, and go on with as many as their sizes
 * allow, so that large ones do not fill the memory. (copy_join.c)
 */
enum { SPILL_COPY_FIRST_READ = 4 };
int64_t spill_copy_next_limit(int64_t limit, size_t count, int64_t bytes);

/* How many elements an owner's windows have, those that are one array. (copy_join.c) */
spill_code_t spill_copy_join_count(const spill_copy_side_t *side, const spill_owner_t *owner,
                                   int64_t *count, spill_error_t *error);

#endif
