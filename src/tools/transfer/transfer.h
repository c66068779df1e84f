/*
 * The transfer engine: it copies the elements of a definition's owners to another definition and
 * compares both. copy, convert and the second stage of migrate use it.
 *
 *      sides.c             both sides, and a reader of elements in the order of their numbers
 *      writer.c            appends to the target, each at most once
 *      comparison.c        both sides, element by element
 *      storable.c          elements that a definition cannot store
 *      transfer_owner.c    one owner: copy and compare
 *      transfer_windows.c  the same for a target with windows
 *      transfer_capped.c   a capped target
 *      transfer.c          begin, one owner, end; copy: all owners
 *      transfer_group.c    small owners, many at a time
 *      numbered.c          elements with numbers, from no array (import of an export)
 *
 * docs/internals/transfer.md explains which transfers do not use it.
 */
#ifndef SPILL_TOOLS_TRANSFER_TRANSFER_H
#define SPILL_TOOLS_TRANSFER_TRANSFER_H

#include "layout/owner.h"
#include "tools/definition_jobs.h"

/* One store's side of a transfer. */
typedef struct spill_transfer_side {
    const char *name; /* "source" or "target", for messages; NULL: messages name no side */
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
    /* A pass has checked every owner: check its elements only while they are appended. */
    bool is_checked;
    const spill_copy_options_t *options;
    spill_copy_result_t *result;
} spill_transfer_t;

/* The missing elements of an owner, as read from the source (kept.c). */
typedef struct spill_transfer_kept {
    spill_run_t run;
    int64_t from, to;         /* the numbers that were read */
    int64_t incarnation, rev; /* of the source's head, before they were read */
    bool is_filling;          /* they are being read */
    bool is_whole;            /* all were read: `run` has them */
} spill_transfer_kept_t;

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
    int64_t evicted;  /* numbers that a cap of the target has dropped with their own append */
    int64_t cap_room; /* capped target: most elements that it keeps */
    int64_t cap_from; /* the source's number from which on its cap may keep elements */
    int64_t cap_low;  /* the target's trim watermark */
    bool cap_begins;  /* elements below cap_from are not trimmed yet, and may be placeholders */
    uint64_t hash;    /* of the compared elements, in the source's order */
    int64_t source_incarnation, source_rev; /* when `end` was read */
    spill_response_t source_head;           /* ... with, if source_is_new: the next reader has it */
    bool source_is_new;
    spill_transfer_kept_t kept;
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
 * stores, names of sides, options and result, and zero the rest.
 */
spill_code_t spill_transfer_begin(spill_transfer_t *transfer, const char *name,
                                  spill_error_t *error);
spill_code_t spill_transfer_one(const spill_transfer_t *transfer, const spill_value_t *value,
                                spill_transferred_t *transferred, spill_error_t *error);
void spill_transfer_end(spill_transfer_t *transfer);

/* The definition of each side. */
const spill_definition_t *spill_transfer_source(const spill_transfer_t *transfer);
const spill_definition_t *spill_transfer_target(const spill_transfer_t *transfer);

/* Call options->progress after a change of the target. */
void spill_transfer_progress(const spill_transfer_t *transfer);

/* ---- elements that a definition cannot store (storable.c) ------------------------------------ */

/*
 * A definition may refuse an element because of its value. Layouts reference and subset refuse some
 * names of fields, windows refuse an element without a time, and a capped array with a sortField
 * refuses some ranks and sizes.
 */
bool spill_storable_may_refuse(const spill_definition_t *definition);

/*
 * Check one element of `source`, which `target` is to store. The target's array need not be saved.
 * SPILL_INVALID or SPILL_TOO_BIG: the message names the element and the owner.
 */
spill_code_t spill_storable_check(const spill_owner_t *target, const spill_owner_t *source,
                                  const spill_element_t *element, spill_error_t *error);

/*
 * Check all elements of an owner, which may have an unmanaged array. The message names the first
 * element that `to` cannot store. A missing owner is no error. Cost: if the definition may refuse
 * elements, a read of every element.
 */
spill_code_t spill_storable_check_owner(const spill_definition_t *to, const spill_owner_t *owner,
                                        spill_error_t *error);

#endif
