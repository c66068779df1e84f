/*
 * The folder of a store on disk: is it one, who writes to it, copies of it.
 *
 * The file SPILLWAY marks the folder. Its first line says what the folder is. Its second says which
 * process writes to it, and that process holds a lock on the file; or, when none does, what the
 * engine's list of files was when the store was closed: "closed: MANIFEST-000012 4711 HASH".
 */
#ifndef SPILL_STORE_EMBEDDED_FOLDER_H
#define SPILL_STORE_EMBEDDED_FOLDER_H

#include <spillway/error.h>

#include <stdbool.h>
#include <stddef.h>

typedef enum spill_folder_kind {
    SPILL_FOLDER_MISSING, /* or empty */
    SPILL_FOLDER_STORE
} spill_folder_kind_t;

/*
 * SPILL_NOT_FOUND where there is something else, or a link or pipe has the name of a file of it,
 * SPILL_CORRUPT where it is a store that lacks the file by which the engine begins, SPILL_DENIED
 * where it cannot be looked into.
 */
spill_code_t spill_folder_look(const char *folder, spill_folder_kind_t *kind, spill_error_t *error);

/* Names of the engine's logs, for a message. */
void spill_folder_logs(const char *folder, char *text, size_t size);

/*
 * Make the folder if it is missing, with the permissions that fit files of `file_mode`; *made says
 * whether it was. Its parent has to exist. SPILL_REFUSED inside another store.
 */
spill_code_t spill_folder_make(const char *folder, unsigned file_mode, bool *made,
                               spill_error_t *error);

/*
 * Was the store closed, and has it lost since what it had then? SPILL_CORRUPT names the file. The
 * engine takes a list of its files that was cut short for what a crash leaves, and would delete
 * what is not in the list.
 */
spill_code_t spill_folder_compare(const char *folder, spill_error_t *error);

/* The mark's file, locked, and what its second line was before. */
typedef struct spill_folder_lock {
    int mark; /* -1: not locked */
    char before[128];
} spill_folder_lock_t;

/*
 * Mark the folder, with a file of these permissions if there is none, and take the lock. SPILL_BUSY
 * says who holds it; SPILL_CORRUPT as spill_folder_compare. *lock is then not locked.
 */
spill_code_t spill_folder_lock(const char *folder, unsigned file_mode, spill_folder_lock_t *lock,
                               spill_error_t *error);

/* `closed`: the engine was closed in order, so that the mark can say what the store has. */
void spill_folder_unlock(const char *folder, spill_folder_lock_t *lock, bool closed);

/* Mark a folder as a store that nobody writes to, for spill_folder_compare to compare with. */
spill_code_t spill_folder_write_label(const char *folder, unsigned file_mode, spill_error_t *error);

/* Delete a folder and the files in it, as far as possible. A link to a folder stays. */
void spill_folder_remove(const char *folder);

/* Sync a folder's entries, or those of the folder that `path` lies in. */
spill_code_t spill_folder_sync(const char *folder, spill_error_t *error);
spill_code_t spill_folder_sync_parent(const char *path, spill_error_t *error);

#endif
