/*
 * Migrate: reshape the arrays that other programs keep in the documents of a definition's heads, or
 * have pushed to, while those programs continue to run. The documents themselves show what is done:
 * after a crash at any point, the same call continues. The recorded place of a pass only saves it
 * visits (migrate_place.h).
 * docs/reference/allowed-writes.md lists what other programs may do meanwhile.
 *
 * The folder's files, in the order to read:
 *   migrate.c         one pass over the arrays, in place
 *   migrate_pass.c    the owners of a pass, on several threads
 *   migrate_place.c   where an interrupted pass continues
 *   undoing.c         the mark of an undo, and the end of the definition
 *   migrate_checks.c  what is checked before a migration begins
 *   planned.c         the planned definition, into which elements are copied later
 *   staged.c          a migration in two stages; catch_up.c copies what was appended meanwhile
 */
#ifndef SPILL_TOOLS_MIGRATE_MIGRATE_H
#define SPILL_TOOLS_MIGRATE_MIGRATE_H

#include "store/raw_admin.h"
#include "tools/definition_jobs.h"
#include "tools/migrate/planned.h"
#include "tools/throttle.h"

#include <spillway/array.h>
#include <spillway/store.h>

/*
 * A document with less than this below the limit is full: it may have no room for the bytes that
 * ADOPT adds, about 300.
 */
enum { SPILL_MIGRATE_ROOM_BYTES = 1024 };

/* What must be done, or was done. Calls add to these numbers. */
typedef struct spill_migrate_result {
    int64_t owners;    /* visited: their arrays must be reshaped, or are unmanaged by an undo */
    int64_t unmanaged; /* of these, owners of unmanaged arrays */
    int64_t full;      /* of these, documents without room; not those that are skipped */
    int64_t elements;  /* in their arrays */
    int64_t bytes;     /* of their arrays */
    int64_t moved;     /* elements moved to pages */
    int64_t pages;     /* pages that received them */
    int64_t changed;   /* pages that clients changed before they could be compared */
    int64_t failed;    /* owners that were skipped */
    int64_t over_cap; /* spill_migrate_predict: elements of unmanaged arrays over the planned cap */
    bool resumed;     /* the search began where an interrupted one ended */
} spill_migrate_result_t;

/* What was done for one owner. */
typedef struct spill_migrated {
    const spill_value_t *owner;
    int64_t elements; /* in its array, when it was visited or unmanaged */
    int64_t moved, pages;
    uint64_t hash;  /* of the moved, or compared, elements in their order */
    bool adopted;   /* the array was unmanaged and is adopted */
    bool at_once;   /* the update that adopted it also cut it */
    bool full;      /* its document had no room (SPILL_MIGRATE_ROOM_BYTES) */
    bool unmanaged; /* the array is unmanaged again */
    bool caught_up; /* copied to the planned definition and compared (tools/migrate/staged.h) */
    bool recopied;  /* that copy was made again from the start */
    bool deleted;   /* dropped from the planned definition: the original has no such owner */
    const spill_error_t *failed; /* why the owner was skipped, or NULL */
} spill_migrated_t;

#define SPILL_MIGRATE_STEP_BYTES (1 << 20)

typedef struct spill_migrate_options {
    spill_throttle_t *throttle; /* in elements; NULL: none */
    int threads;                /* owners at the same time; 0: one */
    /*
     * Begin where an interrupted pass with `resumes` ended, and store how far this one is. Owners
     * before that place that have changed since are left to the next pass. (migrate_place.h)
     */
    bool resumes;
    /*
     * With a rate, an owner moves in steps of a second's elements, but of at least this size,
     * because each step rewrites the document; 0: SPILL_MIGRATE_STEP_BYTES.
     */
    int64_t step_bytes;
    int64_t full_bytes; /* documents of at least this size are full; 0: as on a server */
    /*
     * The definition into which elements are copied later, or NULL. An unmanaged array with an
     * element that this definition cannot store is left unchanged: its owner fails.
     */
    const spill_definition_t *planned;
    const spill_value_t *owner; /* spill_migrate_undo: only this owner; NULL: all */
    /* All may be NULL. Called by any of these threads, one at a time. */
    void (*migrated)(void *context, const spill_migrated_t *migrated);
    void (*progress)(void *context, const spill_migrate_result_t *result);
    /* A thread begins to work on an owner, and (NULL) ends it. By several threads at a time. */
    void (*works)(void *context, const spill_value_t *owner);
    void (*caught_up)(void *context, const spill_copy_result_t *result);
    /* An undo has measured every owner, and begins to unmanage them. */
    void (*measured)(void *context, const spill_migrate_result_t *all);
    void *context;
} spill_migrate_options_t;

/* Report whether a failure concerns one owner only, so that a pass continues with the others. */
bool spill_migrate_is_owner_failure(spill_code_t code);

/*
 * Count what must be done; change nothing. `pages` counts the pages that would be created, `failed`
 * the owners that would be skipped. options->migrated reports those owners with the reason. Of
 * `options` (may be NULL) only that, the context, full_bytes and resumes are used. The definition
 * need not be saved. One store operation per 256 owners, which reads every head.
 */
spill_code_t spill_migrate_survey(spill_store_t *store, const spill_definition_t *definition,
                                  const spill_migrate_options_t *options,
                                  spill_migrate_result_t *result, spill_error_t *error);

/*
 * Find the owners that have an element which options->planned cannot store. `migrated` reports each
 * with its first such element, and result->failed counts them; nothing is changed. The definition
 * need not be saved. Cost: reads every element, unless the planned definition can store any.
 */
spill_code_t spill_migrate_predict(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_migrate_options_t *options,
                                   spill_migrate_result_t *result, spill_error_t *error);

/*
 * Report whether the collection of the heads has a non-empty unmanaged array. The definition need
 * not be saved. Ends at the first array.
 */
spill_code_t spill_migrate_has_unmanaged(spill_store_t *store, const spill_definition_t *definition,
                                         bool *any, spill_error_t *error);

/*
 * One pass: adopt each unmanaged array, move excess elements of heads to pages, and recount heads
 * with wrong counts. An owner that fails is skipped and reported, for example because it is
 * damaged or a copy of it is in the way. Whatever ends the pass (SPILL_CANCELLED: the throttle's
 * `stop`; an unreachable store), the same call continues.
 */
spill_code_t spill_migrate(spill_array_t *array, const spill_migrate_options_t *options,
                           spill_migrate_result_t *result, spill_error_t *error);

/*
 * Measure which arrays would fit their documents again after spill_migrate_undo. Reads every owner
 * and changes nothing. `migrated` reports each owner that spill_migrate_undo would leave managed,
 * and result->failed counts them. SPILL_TOO_BIG: none fits. With options->owner, measure only that
 * owner. SPILL_NOT_FOUND: there is no such owner.
 */
spill_code_t spill_migrate_measure_undo(spill_array_t *array,
                                        const spill_migrate_options_t *options,
                                        spill_migrate_result_t *result, spill_error_t *error);

/* The same. SPILL_TOO_BIG: some array does not fit. */
spill_code_t spill_migrate_check_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                      spill_migrate_result_t *result, spill_error_t *error);

/*
 * Measure the same, then unmanage every array of the definition that fits. The others stay managed:
 * `migrated` reports them, and result->failed counts them. Clients of the library must be
 * stopped; other programs may push. From its first change on, no client adopts an array
 * (undoing.h), until the definition is deleted or spill_undoing_cancel is called. The call waits
 * for clients that adopt arrays. After a crash, or if owners failed, the same call continues.
 * SPILL_TOO_BIG: no array fits, and nothing was changed. SPILL_REFUSED: at the end some arrays are
 * managed again.
 *
 * With options->owner, unmanage only the array of that owner. No client may edit or remove its
 * elements meanwhile; clients may do anything to the other owners.
 */
spill_code_t spill_migrate_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error);

/* ---- checks ---------------------------------------------------------------------------------- */

/*
 * Checks around a migration: names that clash, entries of a plan that match nothing, and names that
 * an undo leaves behind. A misspelt collection or field must not end in a migration that reports
 * success and has done nothing. Collections are checked only on a server.
 */

/*
 * Before anything is saved, check that the definition clashes with no other one. SPILL_REFUSED: the
 * message names the other definition. *remark (NULL: none; free it with bson_free) says that
 * documents have a field of the definition's already, so that they would be skipped, or that the
 * page collection has documents, or that arrays are managed without a definition. SPILL_OK at once
 * if the definition is saved already. `uri` is the server's; NULL on an embedded store, where only
 * definitions are compared. Cost: one command per saved definition, and searches that may read the
 * whole collection.
 */
spill_code_t spill_migrate_check_names(spill_store_t *store, const char *uri,
                                       const spill_definition_t *definition, char **remark,
                                       spill_error_t *error);

/* spill_migrate_find_other_types counts up to this number. */
#define SPILL_MIGRATE_OTHER_TYPES_MAX 1000

/*
 * Count the documents of the definition's collection at `uri` that have another value than an array
 * in the array's field, such as null. A migration leaves them unchanged. *first: the _id of one, as
 * JSON; NULL if there is none; free it with bson_free. Cost: one read, which looks at the whole
 * collection if there are few.
 */
spill_code_t spill_migrate_find_other_types(const char *uri, const spill_definition_t *definition,
                                            int64_t *count, char **first, spill_error_t *error);

/*
 * The definition is not saved. Report whether arrays are managed all the same: an undo by an
 * earlier version, or a drop, ran beside another program. False on an embedded store, which has no
 * such arrays. Cost: a search, which reads the whole collection if no array is managed.
 */
spill_code_t spill_migrate_has_undefined(spill_store_t *store, const spill_definition_t *definition,
                                         bool *any, spill_error_t *error);

/*
 * After an undo that left no owner: delete the definition, and then drop the page collection, if it
 * is empty and no definition uses it. SPILL_OK if there is no such definition, so an interrupted
 * call can be repeated; an empty page collection may then stay. Cost: a few commands, and those of
 * spill_undoing_end.
 */
spill_code_t spill_migrate_remove_names(spill_store_t *store, const char *uri, const char *name,
                                        spill_error_t *error);

/*
 * Check that the database of a server has a collection of that name. SPILL_NOT_FOUND: it has none,
 * or it is a view. One command.
 */
spill_code_t spill_migrate_check_collection(const char *uri, const char *collection,
                                            spill_error_t *error);

/*
 * Check that the entry's collection exists on the server at `uri` (NULL: an embedded store), unless
 * the entry has "mayBeEmpty": true. SPILL_NOT_FOUND: the message says how to correct the entry.
 */
spill_code_t spill_migrate_check_source_collection(const char *uri, const spill_planned_t *planned,
                                                   spill_error_t *error);

/*
 * Check that the entry's collection has an array. `uri` is the server's, or NULL on an embedded
 * store. SPILL_NOT_FOUND: the collection is missing. SPILL_REFUSED: none of its documents has the
 * array. The message says how to correct the entry. An entry with "mayBeEmpty": true always passes.
 *
 * An embedded store knows the arrays of a definition once the definition is saved; before, all
 * entries pass. Cost: two searches; each ends at its first array.
 */
spill_code_t spill_migrate_check_source(spill_store_t *store, const char *uri,
                                        const spill_planned_t *planned, spill_error_t *error);

/* Count the arrays that Spillway manages under a definition. One search per 256 owners. */
spill_code_t spill_migrate_count_managed(spill_store_t *store, const char *name, int64_t *count,
                                         spill_error_t *error);

/* ---- the check of spill_collation_refuse (store/raw_reader.h), on a database of a server ----- */

/* SPILL_REFUSED: it has a collation. SPILL_OK if the collection does not exist. One command. */
spill_code_t spill_collation_check(spill_raw_admin_t *admin, const char *collection,
                                   spill_error_t *error);

/* The same check for a server's database, by its URI. */
spill_code_t spill_collation_check_at(const char *uri, const char *collection,
                                      spill_error_t *error);

#endif
