/*
 * Copy: a definition and its arrays, from one store to another, of any kind; or to another
 * definition of the same store, which may have another layout.
 *
 * Every element keeps its sequence number, so cursors that applications hold stay valid. If the
 * source's element of a number was removed or trimmed, the target gives that number to a
 * placeholder, MinKey, and removes it at once. So the target's next number shows how much of an
 * owner was copied, and an interrupted copy continues from it. docs/internals/copy.md explains why
 * nothing is copied twice.
 *
 *      for each owner:  other fields -> check tail -> append batches -> compare everything
 *
 * A capped target receives what its cap keeps. In a target with windows, elements are numbered
 * window by window. A source with windows is read one window after another (docs/how-to/copy.md).
 */
#ifndef SPILL_TOOLS_COPY_H
#define SPILL_TOOLS_COPY_H

#include <spillway/array.h>

/* An owner with different arrays in source and target. */
typedef struct spill_copy_difference {
    const char *definition;
    const spill_value_t *owner;
    const char *window; /* layout bucket: the window; else NULL */
    int64_t seq;        /* the first number that differs; -1: another field of the head differs */
    int64_t count;      /* of numbers and fields that differ */
    const char *text;   /* describes the first difference */
    bool ahead;         /* the target has more: elements, or numbers given */
} spill_copy_difference_t;

typedef struct spill_copy_result {
    int64_t owners;
    int64_t windows;     /* layout bucket: visited windows of these owners */
    int64_t elements;    /* copied in this run */
    int64_t before;      /* already in the target */
    int64_t verified;    /* compared, and equal */
    int64_t dropped;     /* capped target: elements of the source that its cap does not keep */
    int64_t differences; /* owners that differ */
    int64_t ahead;       /* of these, owners with more elements or numbers in the target */
} spill_copy_result_t;

typedef struct spill_copy_options {
    /*
     * The target definition, which exists and may have any layout. NULL: the definition of the
     * same name and layout, which is created if it does not exist.
     */
    const char *as;
    /*
     * Bounds to set in the target definition. 0: keep its bound; if it does not exist yet, use the
     * source's bound. Without page_bytes_max, pages get head_bytes_max.
     */
    spill_bounds_t bounds;
    bool unverified; /* do not compare what was copied */
    bool dropping;   /* the source is being dropped, and part of it may be deleted already */
    bool building;   /* this copy builds the target (core/array.h): the heads' other fields
                       are not copied */

    /* All may be NULL. */
    /* Before each append of `elements`: it may wait, or end the copy (SPILL_CANCELLED). */
    spill_code_t (*turn)(void *context, int64_t elements, spill_error_t *error);
    void (*differs)(void *context, const spill_copy_difference_t *difference);
    void (*progress)(void *context, const spill_copy_result_t *result); /* after each batch */
    void *context;
} spill_copy_options_t;

/*
 * Copy the definition `name` with all its owners. The call adds to *result, also if it fails.
 * Source and target may be one store if options->as names another definition; otherwise that is
 * SPILL_INVALID, even if the store was opened under two names. Elements appended to an owner after
 * it was copied are left to the next copy. Differences are not errors: they are reported, and
 * nothing in the target is changed.
 *
 * Errors name the side. SPILL_REFUSED: the target has another definition of that name, or another
 * client appends to an owner there. SPILL_CORRUPT: an owner is damaged. It was reported to that
 * store's log and skipped, and all other owners are copied. And the errors of spill_store_define,
 * spill_array_append and the reads. One thread; memory: a batch (1 MiB, or one element) and a
 * document of each store; to windows, about 100 bytes per window of an owner. Cost per owner: about
 * ten operations of the target, and one per 1000 elements or per page.
 * The comparison reads both arrays completely.
 */
spill_code_t spill_copy(spill_store_t *source, spill_store_t *target, const char *name,
                        const spill_copy_options_t *options, spill_copy_result_t *result,
                        spill_error_t *error);

/* Set a definition's bounds from spill_copy_options_t.bounds, as spill_copy does. */
void spill_copy_set_bounds(const spill_bounds_t *bounds, spill_definition_t *definition);

#endif
