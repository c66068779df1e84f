/*
 * The files that a store's folder has at one moment, held open for a reader.
 *
 * A writer adds to its list of files (the MANIFEST), and then deletes files that the list no longer
 * has. Open files stay readable after that. The engine reads a pinned store through
 * engine_files.cpp, so a reader never opens a file by its name after spill_pinned_open.
 */
#ifndef SPILL_STORE_EMBEDDED_PINNED_H
#define SPILL_STORE_EMBEDDED_PINNED_H

#include <spillway/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

SPILL_BEGIN_DECLS

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

SPILL_END_DECLS

#endif
