/*
 * Migrations to what is not laid out in place: each layout, in a document of the original's or in
 * collections of its own. In the middle of each, programs append, edit and remove in the original,
 * so owners are brought on and anew; an owner is added, and one is dropped. Then it is finished, or
 * undone. One store call goes wrong.
 */
#ifndef TESTS_MODEL_STAGED_H
#define TESTS_MODEL_STAGED_H

#include "support/fault_store.h"

/* What is planned. `beside`: its head is in the original's document. */
typedef struct staged_goal {
    const char *name;
    spill_layout_t layout;
    spill_keep_t keep;
    bool beside;
    const char *sort_field; /* capped, keeping the best; or NULL */
} staged_goal_t;

#define STAGED_GOALS 8
extern const staged_goal_t staged_goals[STAGED_GOALS];

/*
 * In a store that has nothing yet: migrate, change, migrate, finish (or `undo`), and compare; the
 * call `at` goes wrong. False: all of it makes no more calls than that.
 */
bool staged_survives(const staged_goal_t *goal, spill_store_t *store, int64_t at, fault_t fault,
                     bool undo);

/*
 * `finish` dies among the originals, one of them is edited, and the rest dropped as its refusal
 * says: what was brought stays, and can be finished. Definitions that have the only copy cannot be
 * dropped.
 */
void staged_original_is_dropped(const staged_goal_t *goal, spill_store_t *store);

/* The same where the original goes with its mark, and is defined again, empty. */
void staged_original_vanishes(const staged_goal_t *goal, spill_store_t *store);

/*
 * An owner is dropped to be brought anew, and the run dies before its head goes; the edit is taken
 * back. What is finished then is no owner that the next append drops.
 */
void staged_drop_is_broken_off(const staged_goal_t *goal, spill_store_t *store);

/* The plan's definition is not the stored one: nothing is undone by it. In a collection `planned`.
 */
void staged_definition_is_another(const staged_goal_t *goal, spill_store_t *store);

/*
 * On a server: `change` replaces the document of the owner ada in `users` by one without the array,
 * and puts a document of its own into the collection `planned`. What was brought of ada is kept,
 * and nothing finished, until its pages in the original are dropped by hand; then it is undone.
 */
void staged_documents_of_others(const staged_goal_t *goal, spill_store_t *store, const char *uri,
                                void (*change)(const char *uri));

/*
 * On a server: `insert` puts documents eve and fay into `users` that have nothing but their array.
 * Eve's goes from the original before the end, fay's with it: the documents stay.
 */
void staged_documents_stay(const staged_goal_t *goal, spill_store_t *store, const char *uri,
                           void (*insert)(const char *uri));

/* At call `at` of a first run another operator does all, with finish. False: it has less calls. */
bool staged_meets_another(const staged_goal_t *goal, spill_store_t *store, int64_t at);

#endif
