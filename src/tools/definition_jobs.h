/*
 * Jobs on one whole definition: copy its arrays to another store, convert them to another layout,
 * drop them, and count what they contain.
 */
#ifndef SPILL_TOOLS_DEFINITION_JOBS_H
#define SPILL_TOOLS_DEFINITION_JOBS_H

#include "core/building.h"

#include <spillway/array.h>
#include <spillway/definition.h>
#include <spillway/store.h>

/* ---- copy ------------------------------------------------------------------------------------ */

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
 *      for each owner:  check that the target can store all elements
 *      for each owner:  other fields -> check tail -> append batches -> compare everything
 *
 * A capped target receives what its cap keeps. In a target with windows, elements are numbered
 * window by window. A source with windows is read one window after another (docs/how-to/copy.md).
 */

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
    int64_t checked;     /* elements that the target can store, before they are copied */
    int64_t elements;    /* copied in this run */
    int64_t before;      /* already in the target */
    int64_t verified;    /* compared, and equal */
    int64_t dropped;     /* capped target: elements of the source that its cap does not keep */
    int64_t differences; /* owners that differ */
    int64_t ahead;       /* of these, owners with more elements or numbers in the target */
} spill_copy_result_t;

typedef struct spill_copy_options {
    /*
     * The target definition, which may have any layout. NULL: the definition of the
     * same name and layout, which is created if it does not exist.
     */
    const char *as;
    /* With `as`: create this definition, of that name, if it does not exist. NULL: it exists. */
    const spill_definition_t *definition;
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
 * If the target may refuse elements (layouts reference, subset, bucket, and top-N caps), the call
 * first reads all elements that are to be copied and checks them. SPILL_INVALID or SPILL_TOO_BIG
 * names the owner and the element. The call has then written nothing, unless the element was
 * appended after that check; the elements before it are then copied, and the same call continues.
 *
 * Errors name the side. SPILL_REFUSED: the target has another definition of that name, or another
 * client appends to an owner there. SPILL_CORRUPT: an owner is damaged. It was reported to that
 * store's log and skipped, and all other owners are copied. And the errors of spill_store_define,
 * spill_array_append and the reads. One thread; memory: a batch (1 MiB, or one element) and a
 * document of each store; to windows, about 100 bytes per window of an owner.
 *
 * Cost: on a server up to 128 small owners share their operations, which are less than one for each
 * (docs/internals/copy.md says which owners are small). Any other owner takes 30 to 40 operations
 * of both sides, or about 17 if nothing is missing, and more for each page and for each batch of up
 * to 1000 elements. An append of a batch is one operation, and four if elements are documents of
 * their own. The comparison reads both arrays completely.
 */
spill_code_t spill_copy(spill_store_t *source, spill_store_t *target, const char *name,
                        const spill_copy_options_t *options, spill_copy_result_t *result,
                        spill_error_t *error);

/*
 * Check, as spill_copy does before it writes, that the target can store all elements that are to be
 * copied. Change nothing. The target's definition need not be saved. Errors and cost: as the check
 * of spill_copy.
 */
spill_code_t spill_copy_check(spill_store_t *source, spill_store_t *target, const char *name,
                              const spill_copy_options_t *options, spill_copy_result_t *result,
                              spill_error_t *error);

/* Set a definition's bounds from spill_copy_options_t.bounds, as spill_copy does. */
void spill_copy_set_bounds(const spill_bounds_t *bounds, spill_definition_t *definition);

/* ---- convert --------------------------------------------------------------------------------- */

/*
 * Convert: copy the arrays of a definition into another layout. The old documents stay until
 * spill_convert_finish. A conversion is a copy within one store: it keeps sequence
 * numbers, continues after an interruption, and compares every element.
 */

/*
 * Make a definition named `as` from `from`, with this layout and `keep` (NULL: the default of the
 * layout, or as in `from`). It has the bounds and names of `from` and collections of its own:
 * `as` for the heads and `as`.pages for the pages. If the documents change their shape
 * (docs/how-to/copy.md), a preset gives bounds and names. Ids, times, retention and
 * statistics are copied from `from`, as far as the layout has them. A capped top-N definition is
 * made into a capped one of the same order. SPILL_INVALID: `as` is no valid name, a collection's
 * name would be too long, something is missing that the layout needs, or `keep` is given for a
 * layout without that choice.
 */
spill_code_t spill_convert_definition(const spill_definition_t *from, const char *as,
                                      spill_layout_t layout, const spill_keep_t *keep,
                                      spill_definition_t *definition, spill_error_t *error);

/*
 * Check that `name` may be converted into `as`, which need not exist. SPILL_INVALID: both are one
 * definition. SPILL_REFUSED: spill_convert_finish has begun to drop `name`. One read.
 */
spill_code_t spill_convert_check(spill_store_t *store, const char *name, const char *as,
                                 spill_error_t *error);

/*
 * Copy the arrays of `name` into `options->as`, a definition of the same store. Call again
 * to continue after an interruption, and to copy what was appended since. Errors and cost: as
 * spill_copy and spill_convert_check.
 */
spill_code_t spill_convert(spill_store_t *store, const char *name,
                           const spill_copy_options_t *options, spill_copy_result_t *result,
                           spill_error_t *error);

/*
 * Convert once more. If no owner differs, drop `name` with its old documents; other fields of heads
 * that both definitions share stay. From this call on no program may write to `name`: elements
 * appended after an owner was compared are dropped with the rest. SPILL_REFUSED: something differs,
 * and this call dropped nothing.
 *
 * A checkpoint in the catalog records that dropping has begun. After a crash, the same call
 * continues if the checkpoint exists: each array that is left must be the end of the array in `as`.
 * spill_convert and another `as` are then SPILL_REFUSED. Without the checkpoint, the arrays must be
 * equal. Before dropping a definition in another way, call spill_import_checkpoints_drop: its name
 * may be used again.
 */
spill_code_t spill_convert_finish(spill_store_t *store, const char *name,
                                  const spill_copy_options_t *options, spill_copy_result_t *result,
                                  spill_error_t *error);

/* Report whether `name` no longer exists and was dropped into `as`, which exists. Two reads. */
spill_code_t spill_convert_finished(spill_store_t *store, const char *name, const char *as,
                                    bool *finished, spill_error_t *error);

/* ---- the job checkpoint of a conversion's end ------------------------------------------------ */

/*
 * It records in the store's catalog that the old definition is being dropped. It is saved after
 * everything was compared and before the first old document is dropped. Only while it is stored may
 * the old arrays be shorter than the new ones.
 */
typedef struct spill_convert_checkpoint {
    char as[SPILL_NAME_SIZE]; /* the definition that has the arrays; "": no checkpoint */
    bool emptied;             /* no array of the old definition is left */
    bson_t *stored;           /* the checkpoint as stored in the catalog, or NULL */
} spill_convert_checkpoint_t;

/* Report whether dropping was begun and is not done. */
bool spill_convert_checkpoint_stands(const spill_convert_checkpoint_t *checkpoint);

/* Load the checkpoint of definition `name`; release it in every case. SPILL_CORRUPT. One read. */
spill_code_t spill_convert_checkpoint_load(spill_store_t *store, const char *name,
                                           spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error);
void spill_convert_checkpoint_release(spill_convert_checkpoint_t *checkpoint);

/*
 * Load the record of the building definition `building_name`, and the checkpoint of definition
 * `name`. Release both in every case. SPILL_CORRUPT. One read if the store reads two jobs at once,
 * else two, of which the record is the first.
 */
spill_code_t spill_convert_checkpoint_load_with(spill_store_t *store, const char *building_name,
                                                spill_building_t *building, const char *name,
                                                spill_convert_checkpoint_t *checkpoint,
                                                spill_error_t *error);

/*
 * Replace the checkpoint that was loaded: `name` is being dropped into `as`, or (emptied) none of
 * its arrays is left. SPILL_CONFLICT: another process has changed the checkpoint. One write, in the
 * order and with the durability of the store's other writes. spill_import_checkpoints_drop deletes
 * the checkpoint.
 */
spill_code_t spill_convert_checkpoint_save(spill_store_t *store, const char *name, const char *as,
                                           bool emptied, spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error);

/* ---- drop ------------------------------------------------------------------------------------ */

/*
 * Drop a definition, and the checkpoints of its imports and of its conversion. SPILL_REFUSED in a
 * migration in two stages (tools/migrate/staged.h), because it may be the only copy: if it is the
 * original, unless that is being dropped already, and then its checkpoint stays; or if it is the
 * planned definition and the original is being dropped or no longer exists. After a crash the same
 * call continues.
 */
spill_code_t spill_drop_definition(spill_store_t *store, const char *name, spill_error_t *error);

/*
 * Drop every owner of a definition. `documents_stay`: the heads are the application's documents,
 * which keep their other fields. `building`: the caller's migration builds the definition, so its
 * owners may be dropped. One drop per owner.
 */
spill_code_t spill_drop_owners(spill_store_t *store, const char *name, bool documents_stay,
                               bool building, spill_error_t *error);

/*
 * Delete what is left of the pages of `definition`, which is still saved but has no owner left.
 * Then drop its collections if they are empty and no other definition names them. Documents of
 * other programs stay, and so does their collection. `uri` is the store's. Cost: one read of all
 * documents left, and one delete per page. Only for a server: other stores have no visible
 * collections.
 */
spill_code_t spill_drop_emptied(spill_store_t *store, const char *uri,
                                const spill_definition_t *definition, spill_error_t *error);

/* ---- contents -------------------------------------------------------------------------------- */

/* What an owner's array contains. With layout bucket: all of its windows together. */
typedef struct spill_owner_totals {
    spill_value_t owner; /* borrowed */
    int64_t elements;
    int64_t bytes;     /* of the elements' values */
    int64_t newest_ms; /* the latest time of an element; SPILL_DATE_UNKNOWN: none has one */
    bool unmanaged;    /* the array is in the owner's document, and Spillway has not adopted it */
} spill_owner_totals_t;

/* Return false to stop. */
typedef bool (*spill_owner_totals_fn)(void *context, const spill_owner_totals_t *totals);

/*
 * Visit each owner in the store's order, also those whose arrays are unmanaged
 * (spill_array_has_unmanaged). `prefix`: only owners that are strings, or ObjectIds in hexadecimal
 * digits, and begin with this text; NULL: all. `newest`: find the latest times, if the definition
 * has a time_field; otherwise they are unknown. Cost: one read of a state for each document of the
 * owners. Every element is read once if latest times are found, if each element has a document of
 * its own, and in a store opened with `partial`. If an owner is SPILL_CORRUPT, report it to the
 * store's log and skip it; the call then returns SPILL_CORRUPT at its end. *skipped: documents that
 * cannot have the array (core/array.h, spill_each_array). Memory: one owner's name.
 */
spill_code_t spill_stats_owners(spill_array_t *array, const char *prefix, bool newest,
                                spill_owner_totals_fn visit, void *context, int64_t *skipped,
                                spill_error_t *error);

/* How many owners have exactly this many elements. */
typedef struct spill_stats_length {
    int64_t length;
    int64_t owners;
} spill_stats_length_t;

typedef struct spill_stats_owner {
    bson_t *storage; /* owns the value */
    spill_value_t owner;
    int64_t elements;
    int64_t bytes;
} spill_stats_owner_t;

typedef struct spill_stats {
    int64_t owners;
    int64_t unmanaged; /* of these, owners of unmanaged arrays */
    int64_t skipped;   /* documents that cannot have the array */
    int64_t elements;
    int64_t bytes; /* of the elements' values */
    /*
     * Every length that occurs, ascending. Exact and small: d different lengths need at least
     * d * (d - 1) / 2 elements, so 10^9 elements have at most 44 722 lengths.
     */
    spill_stats_length_t *lengths;
    size_t length_count;
    size_t length_capacity;
    spill_stats_owner_t *largest; /* by elements, descending */
    size_t largest_count;
    size_t largest_max;
} spill_stats_t;

/*
 * Add up all owners. `top`: how many of the largest ones to return. Cost: that of
 * spill_stats_owners without `newest`; memory does not grow with it (see `lengths`). If an owner is
 * SPILL_CORRUPT, report it to the store's log and skip it; the call then returns SPILL_CORRUPT,
 * with the other owners in *stats. Release in every case.
 */
spill_code_t spill_stats_collect(spill_array_t *array, size_t top, spill_stats_t *stats,
                                 spill_error_t *error);
void spill_stats_release(spill_stats_t *stats);

/* Nearest-rank percentile of the lengths, in tenths of a percent: 500 is the median. */
int64_t spill_stats_percentile(const spill_stats_t *stats, int64_t per_mille);

#endif
