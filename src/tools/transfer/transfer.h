/*
 * The transfer engine: it copies the elements of a definition's owners to another definition and
 * compares both. copy, convert and the second stage of migrate use it.
 *
 *      reader.h      elements of one side, in the order of their numbers
 *      writer.h      appends to the target, each at most once
 *      comparison.h  both sides, element by element
 *
 * docs/internals/transfer.md explains which transfers do not use it.
 */
#ifndef SPILL_TOOLS_TRANSFER_TRANSFER_H
#define SPILL_TOOLS_TRANSFER_TRANSFER_H

#include "layout/owner.h"
#include "tools/copy.h"

/* One store's side of a transfer. */
typedef struct spill_transfer_side {
    const char *name; /* "source" or "target", for messages */
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t *definitions; /* all of the store: some may share heads */
    size_t definition_count;
} spill_transfer_side_t;

typedef struct spill_transfer {
    spill_transfer_side_t source;
    spill_transfer_side_t target;
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
} spill_transfer_t;

/* The owner that is being copied. */
typedef struct spill_transfer_owner {
    const spill_transfer_t *transfer;
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
} spill_transfer_owner_t;

/* The result for one owner. */
typedef struct spill_transferred {
    spill_copy_difference_t difference; /* count 0: none */
    int64_t elements;                   /* of the source */
    uint64_t hash;                      /* of the compared elements, in the source's order */
} spill_transferred_t;

/*
 * A transfer, owner by owner: begin, one call for each owner, end (in every case). Before, set
 * stores, names of sides, options and result, and zero the rest. (transfer_run.c)
 */
spill_code_t spill_transfer_begin(spill_transfer_t *transfer, const char *name,
                                  spill_error_t *error);
spill_code_t spill_transfer_one(const spill_transfer_t *transfer, const spill_value_t *value,
                                spill_transferred_t *transferred, spill_error_t *error);
void spill_transfer_end(spill_transfer_t *transfer);

/* ---- what all files use (transfer.c) --------------------------------------------------------- */

/* The definition of each side. */
const spill_definition_t *spill_transfer_source(const spill_transfer_t *transfer);
const spill_definition_t *spill_transfer_target(const spill_transfer_t *transfer);

/* The target is capped with keep newest; it keeps the elements of the highest rank. */
bool spill_transfer_is_capped(const spill_transfer_t *transfer);
bool spill_transfer_keeps_top_n(const spill_transfer_t *transfer);

/* Put the side in front of an error's message. */
spill_code_t spill_transfer_failed(const spill_transfer_side_t *side, spill_code_t code,
                                   spill_error_t *error);

/* Call options->turn before a change of the target, and options->progress after it. */
spill_code_t spill_transfer_wait(const spill_transfer_t *transfer, int64_t elements,
                                 spill_error_t *error);
void spill_transfer_progress(const spill_transfer_t *transfer);

/* Count a difference, and store it if it is the owner's first. `text` is static. */
void spill_transfer_differs(spill_transfer_owner_t *owner, int64_t seq, const char *text);
/* The same, for a target that has more than the source. */
void spill_transfer_differs_ahead(spill_transfer_owner_t *owner, int64_t seq, const char *text);

/* Count a difference if a drop of the target has begun: the next append or repair there deletes its
 * elements. `target` is the owner there, or one of its windows. */
spill_code_t spill_transfer_check_dropped(spill_transfer_owner_t *owner,
                                          const spill_owner_t *target, spill_error_t *error);

/* ---- the steps for one owner, which spill_transfer_one chooses from -------------------------- */

/* Copy fields and elements to an owner of the target, and compare them. (transfer_owner.c) */
spill_code_t spill_transfer_to_array(spill_transfer_owner_t *owner, spill_error_t *error);

/* Copy an owner's elements, each to its window, and compare all of them. (transfer_windows.c) */
spill_code_t spill_transfer_to_windows(spill_transfer_owner_t *owner, spill_error_t *error);

/* ---- a capped target with keep newest (transfer_capped.c) ------------------------------------ */

/* Set cap_low, cap_room and cap_from from both arrays. Reads the elements that the cap keeps. */
spill_code_t spill_transfer_cap_read(spill_transfer_owner_t *owner, spill_error_t *error);

/*
 * Trim elements that the cap will not keep, and give the numbers up to the first that it keeps; set
 * next, live and base again. SPILL_CONFLICT: something was appended meanwhile.
 */
spill_code_t spill_transfer_cap_begin(spill_transfer_owner_t *owner, spill_error_t *error);

/*
 * Set *from to the first number that the target must have. Count a difference if the element before
 * it should be there too: the cap and the bytes have room for one more.
 */
spill_code_t spill_transfer_cap_check(spill_transfer_owner_t *owner, int64_t *from,
                                      spill_error_t *error);

#endif
