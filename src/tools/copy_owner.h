/* Copying one owner; what the parts of a copy share. */
#ifndef SPILL_TOOLS_COPY_OWNER_H
#define SPILL_TOOLS_COPY_OWNER_H

#include "core/walk.h"
#include "tools/copy.h"

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
    const spill_copy_options_t *options;
    spill_copy_result_t *result;
    bson_t last; /* the owner that was reported last, under an empty name */
    bool last_differs;
} spill_copy_t;

/* One owner while it is its turn. */
typedef struct spill_copy_owner {
    const spill_copy_t *copy;
    spill_owner_t source;
    spill_owner_t target;
    int64_t end;  /* numbers of the source are copied below this */
    int64_t next; /* of the target */
    int64_t live; /* elements in the target */
    int64_t base; /* of the next operation there */
    spill_copy_difference_t difference;
} spill_copy_owner_t;

/* Put the side before the message of an error. */
spill_code_t spill_copy_failed(const spill_copy_side_t *side, spill_code_t code,
                               spill_error_t *error);

/* Count a difference, and keep it where it is the owner's first. `text` is static. */
void spill_copy_differs(spill_copy_owner_t *owner, int64_t seq, const char *text);

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

/* Append what the source has and the target has not yet. (copy_elements.c) */
spill_code_t spill_copy_elements(spill_copy_owner_t *owner, spill_error_t *error);

/* A placeholder: MinKey, a type that applications do not store, or a document of it. */
bool spill_copy_is_placeholder(const spill_value_t *value);

/* Remove a placeholder; that it is gone already is as good. (copy_elements.c) */
spill_code_t spill_copy_remove(const spill_copy_owner_t *owner, int64_t seq, spill_error_t *error);

/* ---- a cursor (copy_compare.c) --------------------------------------------------------------- */

/* The elements of one side with numbers in [from, to), ascending, one document at a time. */
typedef struct spill_copy_cursor {
    const spill_copy_side_t *side;
    const spill_owner_t *owner;
    int64_t to;
    spill_stretch_t stretch;
    size_t at;
    bool ended;
} spill_copy_cursor_t;

void spill_copy_cursor_init(spill_copy_cursor_t *cursor, const spill_copy_side_t *side,
                            const spill_owner_t *owner, int64_t from, int64_t to);
void spill_copy_cursor_release(spill_copy_cursor_t *cursor);

/*
 * The element that the cursor stands on; cursor->ended where there is none. Borrowed until the
 * cursor has been moved on (cursor->at++) and is asked again.
 */
spill_code_t spill_copy_cursor_get(spill_copy_cursor_t *cursor, spill_element_t *element,
                                   spill_error_t *error);

#endif
