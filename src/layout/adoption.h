/*
 * The right to adopt arrays of a definition. An undo deletes the definition, and an array that is
 * adopted later would be managed without one. Adoption and definition are two documents, so:
 *
 *   adopter   1 entry    write NAME:<id>:adopter to the catalog: my last ADOPT ends before `ends`
 *             2 check    read the definition: it exists, and is not being undone
 *             3 ADOPT    guard: the store's time is before `until`; the server may take run_us
 *             4 leave    delete the entry, if no thread has an ADOPT on its way or unanswered
 *   undo      1 mark     the definition is being undone
 *             2          unmanage the arrays
 *             3 wait     until each entry that was there when the wait began is deleted, or its
 *                        `ends` has passed
 *             4          unmanage what was adopted meanwhile, then delete the definition
 *
 * If an adopter checks before the mark, it has written its entry before the undo reads the
 * entries. So no ADOPT is carried out after step 3 of the undo. The threads of a program share the
 * entry of an array: while one of them adopts, the entry is not deleted, and `ends` only grows.
 * docs/internals/protocol.md has the argument. Only stores with other writers need this: in other
 * stores the definition stays.
 */
#ifndef SPILL_LAYOUT_ADOPTION_H
#define SPILL_LAYOUT_ADOPTION_H

#include "layout/owner.h"

#include <spillway/error.h>

/* How long the server may carry out one ADOPT, of a small or a large array: 10 s, or a minute. */
int64_t spill_adopt_run_us(const spill_store_t *store, bool large);

spill_adoption_t *spill_adoption_new(void);

/* Leave, and free. NULL is allowed. */
void spill_adoption_free(spill_array_t *array);

/*
 * Between these two calls threads may adopt arrays. The calls nest. The entry is written by the
 * first adoption, and deleted by the last end.
 */
void spill_adoption_begin(spill_array_t *array);
void spill_adoption_end(spill_array_t *array);

/*
 * Make sure that the owner's array may be adopted now, by an update that the store carries out
 * within run_us: *until is the time for its guard, by the store's clock; 0: no guard is needed. At
 * least half of `adopter_us` is left until then; with `whole`, all but a second. SPILL_REFUSED with
 * SPILL_REASON_NOT_ADOPTED: the definition is being undone, is deleted or changed, so no other
 * owner can be adopted either. Cost: mostly none; four operations at first and every few seconds,
 * one in each second. Any thread.
 */
spill_code_t spill_adoption_until(const spill_owner_t *owner, int64_t run_us, bool whole,
                                  int64_t *until, spill_error_t *error);

/*
 * The same refusals, before anything is done for an owner; nothing is written. A read, or nothing
 * if the outcome of less than a second ago is known. Any thread.
 */
spill_code_t spill_adoption_check(const spill_owner_t *owner, spill_error_t *error);

/*
 * An ADOPT with this `until` was refused. *late: perhaps because the time is over, so try again.
 * The store is asked for its time, because its clock may have been set. One operation. Any thread.
 */
spill_code_t spill_adoption_is_late(const spill_owner_t *owner, int64_t until, bool *late,
                                    spill_error_t *error);

/* The outcome of an ADOPT is not known: it may arrive until the entry ends. */
void spill_adoption_unknown(spill_array_t *array);

/* ---- entries of adopters --------------------------------------------------------------------- */

typedef struct spill_adopter {
    const char *host; /* borrows from `stored` */
    int64_t pid;
    int64_t ends_ms; /* by the store's clock */
    bson_t *stored;
} spill_adopter_t;

/* Is this catalog entry an adopter's? Then *name is the definition's name. */
bool spill_adopter_split(const char *entry, char name[SPILL_NAME_SIZE]);

/* How long the adopter of an entry may still adopt arrays; 0 or less: its time has passed. */
int64_t spill_adopter_left_us(const spill_store_t *store, int64_t ends_ms, int64_t now_us);

/* List the catalog entries of all adopters, and of other jobs. One operation. */
spill_code_t spill_adopters_list(spill_store_t *store, spill_listing_t *entries,
                                 spill_error_t *error);

/*
 * Of the listed entries of a definition, delete the entries of killed adopters: their time has
 * passed. *left is the number of entries that stay; `text` (may be NULL) becomes a sentence about
 * one of these. Cost: an operation, and one or two for each entry of the definition.
 */
spill_code_t spill_adopters_purge(spill_store_t *store, const char *name,
                                  const spill_listing_t *entries, int64_t *left, char *text,
                                  size_t size, spill_error_t *error);

/* List, and delete the entries of killed adopters of a definition. */
spill_code_t spill_adopters_sweep(spill_store_t *store, const char *name, spill_error_t *error);

#endif
