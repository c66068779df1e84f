/*
 * The right to adopt arrays of a definition. An undo deletes the definition, and an array that is
 * adopted later would be managed without one. Adoption and definition are two documents, so:
 *
 *   adopter   1 entry    write NAME:<id>:adopter to the catalog: my last ADOPT ends before `ends`
 *             2 check    read the definition: it exists, and is not being undone
 *             3 ADOPT    guard: the store's time is before `until`; the server may take run_us
 *             4 leave    delete the entry, if every ADOPT was answered
 *   undo      1 mark     the definition is being undone
 *             2          unmanage the arrays
 *             3 wait     until no entry is left, except those whose `ends` has passed
 *             4          unmanage what was adopted meanwhile, then delete the definition
 *
 * An adopter whose check came before the mark has written its entry before the undo reads the
 * entries. So no ADOPT is carried out after step 3 of the undo. docs/internals/protocol.md has the
 * argument. Only stores with other writers need this: in other stores the definition stays.
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
 * within run_us: *until is the time for its guard, by the store's clock; 0: no guard is needed.
 * SPILL_REFUSED: the definition is being undone, is deleted or changed. Cost: mostly none; four
 * operations at first and every few seconds, one in each second. Any thread.
 */
spill_code_t spill_adoption_until(const spill_owner_t *owner, int64_t run_us, int64_t *until,
                                  spill_error_t *error);

/* An ADOPT was refused. Has so much time passed that it may have come too late? Then try again. */
bool spill_adoption_may_be_late(const spill_owner_t *owner);

/* The outcome of an ADOPT is not known: it may arrive until the entry ends. */
void spill_adoption_unknown(spill_array_t *array);

/* Did the last call of spill_adoption_until refuse? Then no other owner can be adopted either. */
bool spill_adoption_is_refused(spill_array_t *array);

/* ---- entries of adopters --------------------------------------------------------------------- */

typedef struct spill_adopter {
    const char *host; /* borrows from `stored` */
    int64_t pid;
    int64_t ends_ms; /* by the store's clock */
    bson_t *stored;
} spill_adopter_t;

/* Return false to end the walk; *code is then its result. */
typedef bool (*spill_adopter_fn)(void *context, const char *entry, const spill_adopter_t *adopter,
                                 spill_code_t *code, spill_error_t *error);

/* Visit the adopters of a definition. Cost: one list of the catalog, and a read for each. */
spill_code_t spill_adopters_each(spill_store_t *store, const char *name, spill_adopter_fn visit,
                                 void *context, spill_error_t *error);

/* Is this catalog entry an adopter's? Then *name is the definition's name. */
bool spill_adopter_split(const char *entry, char name[SPILL_NAME_SIZE]);

/*
 * Delete the entries of killed adopters: their time has passed. *left is the number of other
 * entries; `text` (may be NULL) becomes a sentence about one of these.
 */
spill_code_t spill_adopters_purge(spill_store_t *store, const char *name, int64_t *left, char *text,
                                  size_t size, spill_error_t *error);

#endif
