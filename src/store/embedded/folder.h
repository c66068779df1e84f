/*
 * The folder of a store on disk: is it one, who writes to it, copies of it.
 *
 * The file SPILLWAY marks the folder. Its first line says what the folder is, its second which
 * process writes to it; that process holds a lock on the file.
 */
#ifndef SPILL_STORE_EMBEDDED_FOLDER_H
#define SPILL_STORE_EMBEDDED_FOLDER_H

#include <spillway/error.h>

#include <stdbool.h>

typedef enum spill_folder_kind {
    SPILL_FOLDER_MISSING, /* or empty */
    SPILL_FOLDER_STORE
} spill_folder_kind_t;

/*
 * SPILL_INVALID where there is something else, SPILL_CORRUPT where it is a store that lacks the
 * file by which the engine begins, SPILL_DENIED where it cannot be looked into.
 */
spill_code_t spill_folder_look(const char *folder, spill_folder_kind_t *kind, spill_error_t *error);

/* Make the folder, where it is missing. Its parent has to exist. */
spill_code_t spill_folder_make(const char *folder, spill_error_t *error);

/*
 * Mark the folder and take the lock; *lock is a descriptor that spill_folder_unlock closes.
 * SPILL_BUSY says who holds it.
 */
spill_code_t spill_folder_lock(const char *folder, int *lock, spill_error_t *error);
void spill_folder_unlock(int lock);

/* Mark a folder as a store that nobody writes to. */
spill_code_t spill_folder_mark(const char *folder, spill_error_t *error);

/* Delete a folder and the files in it, as far as possible. */
void spill_folder_remove(const char *folder);

/* Sync a folder's entries, or those of the folder that `path` lies in. */
spill_code_t spill_folder_sync(const char *folder, spill_error_t *error);
spill_code_t spill_folder_sync_parent(const char *path, spill_error_t *error);

#endif
