/*
 * The folder of a store on disk: recognize it, lock it for a writer, compare it with its last
 * close, and hold its files open for a reader.
 *
 * The file SPILLWAY labels the folder. Its first line says what the folder is. While a process
 * writes to the store, it holds a lock on the file, and the second line names the process. After a
 * close the second line has the engine's list of files: "closed: MANIFEST-000012 4711 HASH".
 */
#ifndef SPILL_STORE_EMBEDDED_FOLDER_H
#define SPILL_STORE_EMBEDDED_FOLDER_H

#include <spillway/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- folder.c -------------------------------------------------------------------------------- */

typedef enum spill_folder_kind {
    SPILL_FOLDER_MISSING, /* or empty */
    SPILL_FOLDER_STORE
} spill_folder_kind_t;

/*
 * What the folder is. SPILL_NOT_FOUND if it is something else than a store, or if a link or a pipe
 * has the name of one of its files. SPILL_CORRUPT if it is a store without the engine's first file.
 * SPILL_DENIED if it cannot be read.
 */
spill_code_t spill_folder_look(const char *folder, spill_folder_kind_t *kind, spill_error_t *error);

/* The names of the engine's logs, for a message. */
void spill_folder_logs(const char *folder, char *text, size_t size);

/*
 * Make the folder if it is missing, with permissions that match files of `file_mode`; *made is true
 * if it was missing. Its parent must exist. SPILL_REFUSED inside another store.
 */
spill_code_t spill_folder_make(const char *folder, unsigned file_mode, bool *made,
                               spill_error_t *error);

/*
 * Compare the engine's list of files with the one recorded at the last close. SPILL_CORRUPT names a
 * file that has lost bytes since. The engine would treat a shortened list as the result of a crash,
 * and delete the files that are not in the list.
 */
spill_code_t spill_folder_compare(const char *folder, spill_error_t *error);

/*
 * SPILL_CORRUPT: the file SPILLWAY begins with other bytes than Spillway writes, so the store
 * cannot be opened for writing. Reading it is possible.
 */
spill_code_t spill_folder_check_label(const char *folder, spill_error_t *error);

/* The locked file SPILLWAY, and its second line before the lock. */
typedef struct spill_folder_lock {
    int mark; /* -1: not locked */
    char before[128];
} spill_folder_lock_t;

/*
 * Lock the file SPILLWAY; make it with these permissions if it is missing. SPILL_BUSY names the
 * process that holds the lock; SPILL_CORRUPT as spill_folder_compare. *lock is then not locked.
 */
spill_code_t spill_folder_lock(const char *folder, unsigned file_mode, spill_folder_lock_t *lock,
                               spill_error_t *error);

/* `closed`: the engine was closed without error, so the file can record its list of files. */
void spill_folder_unlock(const char *folder, spill_folder_lock_t *lock, bool closed);

/* Label a folder as a closed store, for later calls of spill_folder_compare. */
spill_code_t spill_folder_write_label(const char *folder, unsigned file_mode, spill_error_t *error);

/* Delete a folder and the files in it, as far as possible. A link to a folder stays. */
void spill_folder_remove(const char *folder);

/* Sync a folder's entries, or those of the folder that `path` lies in. */
spill_code_t spill_folder_sync(const char *folder, spill_error_t *error);
spill_code_t spill_folder_sync_parent(const char *path, spill_error_t *error);

/* ---- pinned.c -------------------------------------------------------------------------------- */

/*
 * The files that a store's folder has at one moment, held open for a reader.
 *
 * A writer adds to its list of files (the MANIFEST), and then deletes files that the list no longer
 * has. Open files stay readable after that. The engine reads a pinned store through
 * engine_files.cpp, so a reader never opens a file by its name after spill_pinned_open.
 */

typedef struct spill_pinned_file {
    char *name;          /* in the folder */
    int fd;              /* open for reading */
    uint64_t size_bytes; /* what the view has of it; the writer may append more */
} spill_pinned_file_t;

typedef struct spill_pinned {
    char *folder;
    spill_pinned_file_t *files; /* by name */
    size_t count;
    char unopened[64]; /* the file that could not be opened, or empty */
} spill_pinned_t;

/*
 * Open the files of the folder as of one moment: the list of files is the same before and after.
 * Retries for some seconds while writers change the list. A damaged folder is pinned too; the
 * engine then reports the damage. Free *pinned with spill_pinned_free. Errors: SPILL_BUSY
 * (retryable) if writers never paused, SPILL_IO (for example at the limit of open files),
 * SPILL_DENIED.
 */
spill_code_t spill_pinned_open(const char *folder, spill_pinned_t **pinned, spill_error_t *error);

/* NULL is allowed. */
void spill_pinned_free(spill_pinned_t *pinned);

/* The file of that name, or NULL. Borrowed. O(log files). */
const spill_pinned_file_t *spill_pinned_find(const spill_pinned_t *pinned, const char *name);

/* Read from a place of the file. Returns the bytes read, fewer only at its end; -1 sets errno. */
int64_t spill_pinned_read(const spill_pinned_file_t *file, uint64_t offset, void *bytes,
                          size_t size_bytes);

/* The file as a stream, from its start to the end of the view. NULL sets errno. */
FILE *spill_pinned_stream(const spill_pinned_file_t *file);

/*
 * Give the file a second name, a path where nothing is yet; copy it if it cannot be linked there.
 * Only for files that are complete. Returns 0 or errno; after an error there is no such file.
 */
int spill_pinned_link(const spill_pinned_file_t *file, const char *path);

#endif
