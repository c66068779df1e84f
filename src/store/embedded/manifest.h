/* The engine's list of files, as far as the check of the logs needs it. */
#ifndef SPILL_EMBEDDED_MANIFEST_H
#define SPILL_EMBEDDED_MANIFEST_H

#include "store/embedded/pinned.h"

#include <spillway/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct spill_manifest {
    char name[32];      /* "MANIFEST-000005" */
    uint64_t log;       /* the first log that is needed */
    uint64_t sequence;  /* the last change that is in a table file */
    uint64_t next_file; /* files that the engine began later have this number or more */
    int64_t offset;     /* of the end of the last record that was read */
    int64_t bytes;      /* of the file */
    bool torn;          /* the end was cut off, as a power loss may do */
} spill_manifest_t;

/*
 * Read the list of files that CURRENT names. SPILL_CORRUPT names CURRENT if that names no list that
 * exists, and else the list if it has damage other than a torn end. SPILL_IO, SPILL_DENIED.
 * Cost: reads the list once.
 */
spill_code_t spill_manifest_read(const char *folder, spill_manifest_t *manifest,
                                 spill_error_t *error);

/* The same of a reader's view. */
spill_code_t spill_manifest_read_pinned(const spill_pinned_t *pinned, spill_manifest_t *manifest,
                                        spill_error_t *error);

/*
 * Open a file of the folder for reading: the view's, or, if `pinned` is NULL, the one that is there
 * now. A link is not followed, and a pipe is not waited for. NULL sets errno.
 */
FILE *spill_manifest_open_file(const char *folder, const spill_pinned_t *pinned, const char *name);

/* Take the numbers of one record of the list. False: the record is malformed. */
bool spill_manifest_apply(spill_manifest_t *manifest, const uint8_t *record, size_t bytes);

#endif
