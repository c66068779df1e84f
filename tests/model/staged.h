/*
 * Migrations that are not in place: each layout, in the original's document or in its own
 * collections. In the middle of each, programs append, edit and remove in the original; an owner is
 * added and one is dropped. So a second pass catches up owners or copies them again. Then the
 * migration is finished or undone. One store call goes wrong.
 */
#ifndef TESTS_MODEL_STAGED_H
#define TESTS_MODEL_STAGED_H

#include "support/fault_store.h"

/* The planned array. `beside`: its head is in the original's document. */
typedef struct staged_goal {
    const char *name;
    spill_layout_t layout;
    spill_keep_t keep;
    bool beside;
    const char *sort_field; /* capped with a top-N by this field; or NULL */
} staged_goal_t;

#define STAGED_GOALS 8
extern const staged_goal_t staged_goals[STAGED_GOALS];

/*
 * In an empty store: migrate, change, migrate, finish (or `undo`), and compare; call `at` goes
 * wrong. False: the whole run makes at most `at` calls.
 */
bool staged_survives(const staged_goal_t *goal, spill_store_t *store, int64_t at, fault_t fault,
                     bool undo);

/*
 * `finish` fails while it drops the originals. One original is edited, and the rest is dropped as
 * the refusal says: the copies stay, and the migration can be finished. Definitions with the only
 * copy cannot be dropped.
 */
void staged_original_is_dropped(const staged_goal_t *goal, spill_store_t *store);

/* A program appends while `finish` compares: nothing is dropped, and the next `finish` has all. */
void staged_writer_continues(const staged_goal_t *goal, spill_store_t *store);

/*
 * As staged_original_is_dropped, but the original disappears together with its job checkpoint, and
 * is defined again, empty.
 */
void staged_original_vanishes(const staged_goal_t *goal, spill_store_t *store);

/*
 * An owner is dropped in order to be copied again, and the run fails before its head is dropped;
 * then the edit is reverted. After the finish, the next append must not complete the drop.
 */
void staged_drop_is_broken_off(const staged_goal_t *goal, spill_store_t *store);

/* A changed plan, which is not the stored one, undoes nothing. In a collection `planned`. */
void staged_definition_is_another(const staged_goal_t *goal, spill_store_t *store);

/*
 * On a server: `change` replaces the document of the owner ada in `users` by one without the array,
 * and puts another document into the collection `planned`. Ada's copy is kept and the migration is
 * not finished until ada's pages in the original are dropped by hand; then it is undone.
 */
void staged_documents_of_others(const staged_goal_t *goal, spill_store_t *store, const char *uri,
                                void (*change)(const char *uri));

/*
 * On a server: `insert` puts documents eve and fay into `users` that have only the array. Eve's
 * array is dropped before the end, fay's at the end: their documents stay.
 */
void staged_documents_stay(const staged_goal_t *goal, spill_store_t *store, const char *uri,
                           void (*insert)(const char *uri));

/*
 * At call `at` of a first run another operator does everything, including finish. False: the run
 * has fewer calls.
 */
bool staged_meets_another(const staged_goal_t *goal, spill_store_t *store, int64_t at);

#endif
