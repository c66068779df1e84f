/*
 * The place of a pass over many owners: how far a migration that was interrupted has come. The next
 * run begins there instead of at the first owner.
 *
 * All owners before the place were visited, and none of them was skipped. An owner before it that
 * has changed since is found by the next pass from the start: a pass that ends deletes the place.
 * The place does not record what is done. A pass without it visits all owners, with the same
 * result.
 */
#ifndef SPILL_TOOLS_MIGRATE_MIGRATE_PLACE_H
#define SPILL_TOOLS_MIGRATE_MIGRATE_PLACE_H

#include "bson/record.h"
#include "store/listing.h"
#include "store/store.h"

#include <stdatomic.h>

/* As it is stored, in the catalog's entry NAME:migrate.at. */
typedef struct spill_place_entry {
    /* What the pass looks for: with other bounds, owners before the place may need a visit. */
    int64_t slots, bytes;
    spill_bytes_t after; /* a position of the store's listing; borrows. Empty: the beginning */
    bson_t *stored;      /* or NULL */
} spill_place_entry_t;

typedef struct spill_migrate_place {
    spill_store_t *store;
    const char *name;   /* of the definition */
    bool resumed;       /* the pass begins at a stored place */
    atomic_bool stores; /* the pass stores places */
    spill_place_entry_t entry;
    spill_buffer_t reached; /* all owners up to this position are done */
    int64_t unsaved;        /* owners done since the last save */
} spill_migrate_place_t;

/*
 * Load the place of definition `name`. Only with `resumes` the pass begins there, and stores
 * places. `slots` and `bytes`: the conditions of the search, 0 if there are none. Release it in
 * every case. One read.
 */
spill_code_t spill_migrate_place_begin(spill_migrate_place_t *place, spill_store_t *store,
                                       const char *name, int64_t slots, int64_t bytes, bool resumes,
                                       spill_error_t *error);

/*
 * The pass begins to change owners. If no place is stored, store an empty one, so that `status'
 * shows a pass that is killed before its first owner is done. One write at most; a failure has no
 * other effect.
 */
void spill_migrate_place_mark(spill_migrate_place_t *place);

/* Move a new cursor to the place. */
void spill_migrate_place_move(const spill_migrate_place_t *place, spill_cursor_t *cursor);

/*
 * `count` more owners are done, and all before them. `reached` (NULL or empty: not known) is a
 * position behind which all owners that are not done come. Stores the place now and then: one write
 * for 64 owners. If that fails, no place is stored any longer: the next run begins earlier.
 */
void spill_migrate_place_reach(spill_migrate_place_t *place, int64_t count,
                               const spill_buffer_t *reached);

/* An owner was skipped: store no place behind it. Any thread. */
void spill_migrate_place_stop(spill_migrate_place_t *place);

/* The pass has ended. If it has visited `all` owners, delete the place, else store it. */
spill_code_t spill_migrate_place_end(spill_migrate_place_t *place, bool all, spill_error_t *error);
void spill_migrate_place_release(spill_migrate_place_t *place);

/* Delete the place, because an undo makes the owners before it new work. One write. */
spill_code_t spill_migrate_place_delete(spill_store_t *store, const char *name,
                                        spill_error_t *error);

#endif
