/*
 * Copy: a definition and its arrays, from one store to another, whatever kind either is; or to
 * another definition of the same store, which lays them out in another way.
 *
 * Every element keeps its sequence number, so that cursors which applications hold stay good. Where
 * the source has given a number that no element has any more (it was removed or trimmed), the
 * target gives the same number to a placeholder, MinKey, and removes it at once. So the target's
 * own next number always says how much of an owner is there, and a copy that is started again,
 * after whatever, goes on from it; docs/internals/copy.md says why nothing is copied twice.
 *
 *      for each owner:  other fields -> tail checked -> batches appended -> all of it compared
 *
 * A capped target gets what its cap keeps. In a target with windows elements are numbered window by
 * window, from a source with windows one window after the other (docs/how-to/copy.md).
 */
#ifndef SPILL_TOOLS_COPY_H
#define SPILL_TOOLS_COPY_H

#include <spillway/array.h>

/* An owner whose array in the target is not the source's. */
typedef struct spill_copy_difference {
    const char *definition;
    const spill_value_t *owner;
    const char *window; /* layout bucket: where; else NULL */
    int64_t seq;        /* the first number that differs; -1: one of the head's other fields */
    int64_t count;      /* how many do */
    const char *text;   /* what is wrong with the first */
    bool ahead;         /* the target has more: elements, or numbers given */
} spill_copy_difference_t;

typedef struct spill_copy_result {
    int64_t owners;
    int64_t windows;     /* layout bucket: of these owners, one after the other */
    int64_t elements;    /* copied in this run */
    int64_t before;      /* that the target had already */
    int64_t verified;    /* compared, and equal */
    int64_t dropped;     /* capped target: elements of the source that its cap does not keep */
    int64_t differences; /* owners that have one */
    int64_t ahead;       /* of these, owners of which the target has more, elements or numbers */
} spill_copy_result_t;

typedef struct spill_copy_options {
    /*
     * The definition of the target that the arrays go to, which is there already and may be laid
     * out in any way. NULL: one of the same name and layout, which is made where there is none.
     */
    const char *as;
    /*
     * Bounds of the definition in the target, where they are to be others than it has there or, if
     * it has none, than in the source. 0: not, and a page has the bytes of a head.
     */
    spill_bounds_t bounds;
    bool unverified; /* do not compare what has been copied */
    bool dropping;   /* the source is being dropped, and part of it may be gone already */
    bool building;   /* the target is forming (core/building.h), and this brings its arrays: the
                       heads' other fields stay where they are */

    /* All may be NULL. */
    /* Before so many elements are appended: it may wait, or end the copy (SPILL_CANCELLED). */
    spill_code_t (*turn)(void *context, int64_t elements, spill_error_t *error);
    void (*differs)(void *context, const spill_copy_difference_t *difference);
    void (*progress)(void *context, const spill_copy_result_t *result); /* after each batch */
    void *context;
} spill_copy_options_t;

/*
 * Copy the definition `name` with all its owners; *result is added to, in every case. Source and
 * target may be one store where options->as names another definition; else that is SPILL_INVALID,
 * by whatever names the store was opened. Numbers that the source gives out after an owner's turn
 * has come are left to the next copy. Differences are not errors: they are reported, and nothing
 * that is in the target is changed.
 *
 * Errors say which side they are from. SPILL_REFUSED: the target has another definition of that
 * name, or someone else appends to an owner there. SPILL_CORRUPT: an owner is damaged; it was told
 * to that store's log and passed over, and all others are copied. And those of spill_store_define,
 * spill_array_append and the reads. One thread; memory: a batch (1 MiB, or one element) and a
 * document of each store; to windows, some 100 bytes for each window of an owner. Cost for each
 * owner: some ten operations of the target, and one for each 1000 elements, or for as many as a
 * page holds; and all of both arrays is read to compare them.
 */
spill_code_t spill_copy(spill_store_t *source, spill_store_t *target, const char *name,
                        const spill_copy_options_t *options, spill_copy_result_t *result,
                        spill_error_t *error);

/* Give a definition the bounds of spill_copy_options_t, as spill_copy does. */
void spill_copy_set_bounds(const spill_bounds_t *bounds, spill_definition_t *definition);

#endif
