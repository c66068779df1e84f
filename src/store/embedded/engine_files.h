/* A file system for the engine that has only the open files of a pinned store. */
#ifndef SPILL_STORE_EMBEDDED_ENGINE_FILES_H
#define SPILL_STORE_EMBEDDED_ENGINE_FILES_H

#include "store/embedded/pinned.h"

#include <rocksdb/c.h>

SPILL_BEGIN_DECLS

typedef struct spill_engine_files spill_engine_files_t;

/* `pinned` is borrowed and must outlive the result. Call it guarded: it throws std::bad_alloc. */
spill_engine_files_t *spill_engine_files_new(const spill_pinned_t *pinned);

/* Call it after the last database that uses it is closed. NULL is allowed. */
void spill_engine_files_free(spill_engine_files_t *files);

/*
 * Let a database that is opened with these options read the pinned files. Returns false and sets
 * *message (free with rocksdb_free) if the engine does not accept that.
 */
bool spill_engine_files_use(spill_engine_files_t *files, rocksdb_options_t *options,
                            char **message);

SPILL_END_DECLS

#endif
