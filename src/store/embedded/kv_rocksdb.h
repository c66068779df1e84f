/*
 * The engine of stores on disk. kv_rocksdb.c calls RocksDB; engine_guard.cpp turns its exceptions
 * and messages into errors; engine_files.cpp gives it the files that a reader holds open.
 */
#ifndef SPILL_STORE_EMBEDDED_KV_ROCKSDB_H
#define SPILL_STORE_EMBEDDED_KV_ROCKSDB_H

#include "store/embedded/folder.h"
#include "store/embedded/insert_hints.h"
#include "store/embedded/kv.h"

#include <spillway/error.h>
#include <spillway/store.h>

#include <stdbool.h>

typedef struct spill_rocksdb_options {
    bool read_only;
    bool partial; /* read_only: if files are damaged, show what the other files hold */
    bool synced;  /* each write is synced, so that a power loss leaves no hole in the logs */
    int64_t cache_bytes;
    spill_log_fn log; /* NULL: silent */
    void *log_context;
} spill_rocksdb_options_t;

/* The engine's options, as rocksdb_options_t; for benchmarks that compare with the bare engine. */
struct rocksdb_options_t;
struct rocksdb_options_t *spill_kv_rocksdb_options(const spill_rocksdb_options_t *from);

/*
 * Open the database in a folder, and create it if it is missing, unless read_only. Read-only never
 * writes into the folder; it opens the database's files now and holds them until it is closed. If a
 * file is damaged, the open fails with SPILL_CORRUPT; with `partial` it succeeds, and kv->damage
 * says what is damaged. Errors: SPILL_CORRUPT, SPILL_NO_SPACE, SPILL_DENIED, SPILL_BUSY,
 * SPILL_NO_MEMORY, SPILL_IO. The engine's functions return SPILL_NO_MEMORY too; after a write that
 * ran out of memory (SPILL_UNKNOWN), all that follow.
 */
spill_code_t spill_kv_rocksdb_open(const char *folder, const spill_rocksdb_options_t *options,
                                   spill_kv_t **kv, spill_error_t *error);

/* For engine_guard.cpp: the same, and an iterator's functions, which throw what the engine throws.
 */
spill_code_t spill_rocksdb_open(const char *folder, const spill_rocksdb_options_t *options,
                                spill_kv_t **kv, spill_error_t *error);
extern const spill_kv_iter_ops_t spill_rocksdb_iter_ops;

/* ---- engine_guard.cpp: RocksDB reports errors as text ---------------------------------------- */

/* The code of an engine's message. */
spill_code_t spill_engine_code(const char *message);

/* Does the message say that data reached the log, but perhaps not the disk? */
bool spill_engine_sync_failed(const char *message);

/* Fill *error (may be NULL): "<place>: <message> <what to do>". Frees nothing. */
spill_code_t spill_engine_fail(spill_error_t *error, const char *place, const char *message);

/*
 * Read a table file, and compare the checksum of each of its blocks. SPILL_CORRUPT and SPILL_IO:
 * the message begins with `name`, the file's name for the user. Cost: reads the file once, with
 * buffers of 256 KiB.
 */
spill_code_t spill_engine_check(const char *path, const char *name, spill_error_t *error);

/* ---- backup_check.c: the files of a copy ----------------------------------------------------- */

/*
 * Compare the checksums of all table files and files of large values in `folder`, a copy of the
 * store in the folder `store`. SPILL_CORRUPT: the message names the first damaged file, as a file
 * of the store: on the same file system, it is the same file. Memory: one stored element, or 256
 * KiB. Cost: reads these files once.
 */
spill_code_t spill_backup_check(const char *folder, const char *store, spill_error_t *error);

/* ---- engine_files.cpp: the file systems of readers and writers ------------------------------- */

typedef struct spill_engine_files spill_engine_files_t;

/*
 * `pinned` is borrowed and must outlive the result; NULL: for a writer. Call it guarded: it throws
 * std::bad_alloc.
 */
spill_engine_files_t *spill_engine_files_new(const spill_pinned_t *pinned);

/* Call it after the last database that uses it is closed. NULL is allowed. */
void spill_engine_files_free(spill_engine_files_t *files);

/*
 * Let a database that is opened with these options use the file system. Returns false and sets
 * *message (free with rocksdb_free) if the engine does not accept that.
 */
bool spill_engine_files_use(spill_engine_files_t *files, struct rocksdb_options_t *options,
                            char **message);

/* ---- engine_hints.cpp: where the memtable puts records ----------------------------------------
 */

/*
 * Let a database that is opened with these options use the hints, which must outlive it. Returns
 * false and sets *message (free with rocksdb_free) if the engine does not accept that. Call it
 * guarded: it throws std::bad_alloc.
 */
bool spill_engine_hints_use(spill_insert_hints_t *hints, struct rocksdb_options_t *options,
                            char **message);

/* For engine_guard.cpp: the check, which throws. NULL, or the damage: free with bson_free. */
char *spill_engine_check_table(const char *path);

#endif
