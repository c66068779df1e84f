/*
 * A store: where documents live. "rocksdb:PATH" or a plain path is an embedded store in a folder;
 * "mongodb://..." or "mongodb+srv://..." with a database is one on a server; "memory:" is one in
 * this process's memory, for tests.
 *
 * Threads: every function here may be called from any thread at any time, except that
 * spill_store_close must be the last call on its store.
 */
#ifndef SPILLWAY_STORE_H
#define SPILLWAY_STORE_H

#include <spillway/definition.h>
#include <spillway/error.h>
#include <spillway/value.h>

#include <bson/bson.h>
#include <stdbool.h>
#include <stdint.h>

SPILL_BEGIN_DECLS

typedef struct spill_store spill_store_t;

typedef enum spill_durability {
    SPILL_DURABILITY_FSYNC, /* an acknowledged write survives a power loss (the default) */
    SPILL_DURABILITY_LOG    /* it survives the death of the process, not of the machine */
} spill_durability_t;

typedef enum spill_log_level {
    SPILL_LOG_ERROR,
    SPILL_LOG_WARNING,
    SPILL_LOG_INFO,
    SPILL_LOG_DEBUG
} spill_log_level_t;

/* Called from any thread that works on the store; must not call back into it. */
typedef void (*spill_log_fn)(void *context, spill_log_level_t level, const char *message);

/* The time, and the pauses between tries. A simulation passes its own. NULL: the real ones. */
typedef struct spill_clock {
    void *context;
    int64_t (*now_us)(void *context);                     /* microseconds since 1970 */
    void (*sleep_us)(void *context, int64_t duration_us); /* between two tries */
} spill_clock_t;

#define SPILL_STORE_OPTIONS_VERSION 1

typedef struct spill_store_options {
    int version;     /* SPILL_STORE_OPTIONS_VERSION */
    bool read_only;  /* open an existing store for reading, beside a writer */
    bool must_exist; /* do not create a store */
    spill_durability_t durability;
    /*
     * Of an embedded store; default 64 MiB. One half of it keeps the newest elements of owners that
     * were read lately (up to 64 elements, 32 KiB each), the other is the engine's block cache. A
     * store in memory uses only the first half. 0: no caches.
     */
    int64_t cache_bytes;
    /*
     * On a server: send a command for each append, even if several threads append to one owner at
     * the same time. By default appends that wait for a running command are sent as one.
     */
    bool separate_appends;
    bool count_bytes; /* on a server: fill the counters of bytes, which inspects every answer */
    spill_log_fn log; /* NULL: silent */
    void *log_context;
    spill_clock_t clock;
    /*
     * With read_only, of an embedded store: open it also if files of it are damaged or missing, and
     * read what the other files hold. Without it such an open fails with SPILL_CORRUPT.
     */
    bool partial;
    /*
     * Permissions of the folder of a new embedded store and of a backup, given as those of a file:
     * 0600 by default. The folder also gets x wherever they have r. RocksDB creates the files in it
     * with 0644 less the process's umask, which the library does not change; the folder protects
     * them. Must include 0600, and nothing outside 0666.
     */
    unsigned file_mode;
} spill_store_options_t;

/* The defaults: read and write, create, fsync, silent. */
SPILL_API void spill_store_options_init(spill_store_options_t *options);

/*
 * Open a store. `options` may be NULL for the defaults. On success *store is the caller's, to be
 * closed with spill_store_close. Errors: SPILL_BUSY (another process writes to it; the message says
 * which), SPILL_FORMAT (made by a newer Spillway), SPILL_CORRUPT (names the damaged file, and the
 * offset of damage to a log; see `partial`),
 * SPILL_DENIED, SPILL_NO_SPACE, SPILL_NOT_FOUND (a file, or a folder with something else in it;
 * with read_only or must_exist: nothing), SPILL_INVALID (no such scheme).
 */
SPILL_API spill_code_t spill_store_open(const char *uri, const spill_store_options_t *options,
                                        spill_store_t **store, spill_error_t *error);

/*
 * For a store that was opened with `partial`: a sentence that names the file that cannot be read.
 * Every answer may then lack elements. NULL if the whole store can be read, or if `store` is NULL.
 * The text belongs to the store until it is closed.
 */
SPILL_API const char *spill_store_damage(const spill_store_t *store);

/* Flush and close. NULL is allowed. After an error the store is closed all the same. */
SPILL_API spill_code_t spill_store_close(spill_store_t *store, spill_error_t *error);

/*
 * Save a definition. If the name exists and has data, only the bounds, op_window and what is
 * retained may change; SPILL_REFUSED names what differs. Saving the same definition again succeeds.
 * SPILL_REFUSED also if the definition would share documents with another one of the store
 * (spill_definition_beside). If two programs save such a pair at the same moment on a server, both
 * may be refused. Clients that have the array open use the old bounds until they open it again;
 * documents then obey the old or the new ones. Cost: four store operations, and two for each other
 * definition.
 */
SPILL_API spill_code_t spill_store_define(spill_store_t *store,
                                          const spill_definition_t *definition,
                                          spill_error_t *error);

/* Load the definition of that name. The message of SPILL_NOT_FOUND lists the existing ones. */
SPILL_API spill_code_t spill_store_definition(spill_store_t *store, const char *name,
                                              spill_definition_t *definition, spill_error_t *error);

/* Load all definitions, sorted by name. Free *definitions with bson_free; NULL: there is none. */
SPILL_API spill_code_t spill_store_definitions(spill_store_t *store,
                                               spill_definition_t **definitions, size_t *count,
                                               spill_error_t *error);

/*
 * Drop a definition and all its owners' arrays and pages (other fields of the heads stay). Not one
 * atomic step: after a crash, call it again. Cost grows with the number of owners. Arrays that are
 * open on it then read as empty, and changes return SPILL_NOT_FOUND. (Not on a server:
 * docs/reference/lifetimes.md.) SPILL_CONFLICT: other clients create owners faster than this call
 * drops them.
 */
SPILL_API spill_code_t spill_store_drop(spill_store_t *store, const char *name,
                                        spill_error_t *error);

/*
 * Copy an embedded store to a new folder while it is used. The copy is consistent, and complete or
 * absent. SPILL_REFUSED: the folder exists. SPILL_CORRUPT: a file is damaged; the message names it.
 * With `partial` that is a warning to the store's log. Cost: reads the whole copy once.
 */
SPILL_API spill_code_t spill_store_backup(spill_store_t *store, const char *folder,
                                          spill_error_t *error);

/* What the store has done since it was opened. Values only rise, except tail_bytes. */
typedef struct spill_counters {
    int64_t calls;    /* store operations */
    int64_t appends;  /* appends acknowledged */
    int64_t elements; /* elements in them */
    int64_t repeats;  /* appends recognized by their operation id */
    int64_t spills;   /* pages cut or sealed */
    int64_t retries;  /* operations tried again after losing a race */
    int64_t waits;    /* pauses taken between tries */
    int64_t commits;  /* write batches given to the embedded engine */
    int64_t syncs;    /* commits that were synced */
    /*
     * Embedded: keys and values that the engine was given, before it compresses them, and without
     * what it writes again when it merges. On a server, with count_bytes: the documents of commands
     * and of their replies.
     */
    int64_t bytes_written;
    int64_t bytes_read; /* embedded: not counted */
    /*
     * Embedded: reads of heads that the cache of newest elements answered, those that it could have
     * answered but had to leave to the engine, and the bytes that it has now, which rise and fall.
     */
    int64_t tail_hits;
    int64_t tail_misses;
    int64_t tail_bytes;
} spill_counters_t;

/* Read the counters, one after the other. All are 0 if `store` is NULL. */
SPILL_API void spill_store_counters(spill_store_t *store, spill_counters_t *counters);

/* One owner's readable changes behind a cut in a log. */
typedef struct spill_log_loss {
    const char *definition;     /* NULL: no definition that can be read has this number */
    uint32_t array_id;          /* the number */
    const spill_value_t *owner; /* NULL: its key cannot be read */
    int64_t elements;           /* elements written; one written twice counts twice */
    int64_t deleted;            /* deletions of an element, or of a range of elements */
} spill_log_loss_t;

/* A cut in the log of an embedded store. */
typedef struct spill_log_cut {
    bool needed;      /* the log is damaged; else nothing below is set */
    char file[32];    /* the log, "000012.log" */
    int64_t offset;   /* the cut drops everything from this byte on, and every newer log */
    char reason[160]; /* why it cannot be read there */
    int64_t bytes;    /* behind the cut, in all logs */
    int64_t records;  /* readable batches of changes in these bytes */
    int64_t owners;   /* owners with changes in these batches */
    int64_t elements; /* elements written by these batches */
    char kept[64];    /* the file that keeps the old log; "" with look_only */
} spill_log_cut_t;

typedef void (*spill_log_loss_fn)(void *context, const spill_log_loss_t *loss);

/*
 * Make an embedded store with a damaged log writable again: drop the log from the first unreadable
 * byte on, and every newer log. The old logs stay in the store's folder under other names
 * (docs/internals/format.md). Nothing else is dropped. The function first calls `report` (may be
 * NULL) for each owner with readable changes behind the cut; *cut is then filled, except for
 * `kept`. With `look_only` it writes nothing. If the logs have no damage, or the store is not
 * embedded, *cut is zeroed. After a crash at any moment, call it again.
 *
 * `uri` is that of spill_store_open. No process may have the store open for writing. Errors:
 * SPILL_BUSY, SPILL_CORRUPT (damage that a cut does not repair: restore a backup),
 * SPILL_NOT_FOUND, SPILL_NO_SPACE, SPILL_DENIED. Cost: reads the logs three times.
 */
SPILL_API spill_code_t spill_store_cut_log(const char *uri, bool look_only,
                                           spill_log_loss_fn report, void *context,
                                           spill_log_cut_t *cut, spill_error_t *error);

SPILL_END_DECLS

#endif
