/**
 * \file
 * A store: where documents live.
 */
#ifndef SPILLWAY_STORE_H
#define SPILLWAY_STORE_H

#include <spillway/definition.h>
#include <spillway/error.h>
#include <spillway/value.h>

#include <bson/bson.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * \defgroup spillway_store Stores
 * Where documents live. "rocksdb:PATH" or a plain path is an embedded store in a folder;
 * "mongodb://..." or "mongodb+srv://..." with a database is one on a server; "memory:" is one in
 * this process's memory, for tests.
 *
 *     spill_store_t *store;
 *     spill_error_t error;
 *     if (spill_store_open("rocksdb:/var/lib/app/feeds", NULL, &store, &error) != SPILL_OK)
 *         fprintf(stderr, "%s\n", error.message);
 *
 * A program that has a pool of libmongoc already opens a store on it: mongoc.h.
 *
 * Threads: every function here may be called from any thread at any time, except that
 * spill_store_close() must be the last call on its store.
 *
 * Forks: a store belongs to the process that opened it. In a child of that process, each function
 * on the store and on its arrays returns SPILL_INVALID with the parent's process id; only closing
 * works. Open stores after the fork. A child of a process that has opened an embedded store can
 * open one only with spill_store_options_t::read_only, until it calls exec: the engine's threads
 * are missing in it. If such a child calls exit(), it ends before the engine's destructors, and
 * does not run exit handlers that were registered before the first embedded store was opened.
 * \{
 */

SPILL_BEGIN_DECLS

/** An open store. */
typedef struct spill_store spill_store_t;

/** What an acknowledged write of an embedded store survives. */
typedef enum spill_durability {
    SPILL_DURABILITY_FSYNC, /**< an acknowledged write survives a power loss (the default) */
    SPILL_DURABILITY_LOG    /**< it survives the death of the process, not of the machine */
} spill_durability_t;

/** How important a message of the log is. */
typedef enum spill_log_level {
    SPILL_LOG_ERROR,   /**< something failed that no call reports */
    SPILL_LOG_WARNING, /**< something was put off or skipped */
    SPILL_LOG_INFO,    /**< the engine's reports */
    SPILL_LOG_DEBUG    /**< the engine's details */
} spill_log_level_t;

/**
 * Receives the messages of a store's log. Called from any thread that works on the store; it must
 * not call back into it. `message` is borrowed until it returns.
 */
typedef void (*spill_log_fn)(void *context, spill_log_level_t level, const char *message);

/** The time, and the pauses between tries. A simulation passes functions of its own. */
typedef struct spill_clock {
    void *context;                                        /**< passed to both functions */
    int64_t (*now_us)(void *context);                     /**< returns microseconds since 1970 */
    void (*sleep_us)(void *context, int64_t duration_us); /**< pauses before the next try */
} spill_clock_t;

/** The version of spill_store_options_t. */
#define SPILL_STORE_OPTIONS_VERSION 1

/** How to open a store. Initialize it with spill_store_options_init(). */
typedef struct spill_store_options {
    int version;     /**< SPILL_STORE_OPTIONS_VERSION */
    bool read_only;  /**< open an existing store for reading, beside a writer; default: false */
    bool must_exist; /**< fail if there is no store, instead of creating it; default: false */
    spill_durability_t durability; /**< of an embedded store; default: SPILL_DURABILITY_FSYNC */
    /**
     * Bytes of cache of an embedded store; default 64 MiB. One half of it keeps the newest elements
     * of owners that were read lately (up to 64 elements, 32 KiB each), the other is the engine's
     * block cache. A store in memory uses only the first half. 0: no caches.
     */
    int64_t cache_bytes;
    /**
     * On a server: send a command for each append, even if several threads append to one owner at
     * the same time. By default appends that wait for a running command are sent as one.
     */
    bool separate_appends;
    bool count_bytes;  /**< on a server: fill the counters of bytes, which inspects every answer */
    spill_log_fn log;  /**< receives the messages of the log; NULL (default): none */
    void *log_context; /**< passed to `log` */
    spill_clock_t clock; /**< a function that is NULL (default): the one of the system */
    /**
     * With read_only, of an embedded store: open it also if files of it are damaged or missing, and
     * read what the other files hold. Without it such an open fails with SPILL_CORRUPT.
     */
    bool partial;
    /**
     * Permissions of the folder of a new embedded store and of a backup, given as those of a file:
     * 0600 by default. The folder also gets x wherever they have r. RocksDB creates the files in it
     * with 0644 less the process's umask, which the library does not change; the folder protects
     * them. Must include 0600, and nothing outside 0666.
     */
    unsigned file_mode;
} spill_store_options_t;

/**
 * Set the defaults: read and write, create, fsync, silent.
 *
 * \param options  becomes the defaults of SPILL_STORE_OPTIONS_VERSION
 * \null `options` NULL: nothing happens
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_store_options_init(spill_store_options_t *options);

/**
 * Open a store, and create an embedded one that does not exist.
 *
 * \param uri      "rocksdb:PATH" or a path; "mongodb://HOST/DATABASE"; "memory:"
 * \param options  initialized by spill_store_options_init(); NULL: the defaults
 * \param store    becomes the store, which the caller closes with spill_store_close(); NULL after
 *                 an error
 * \param error    filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `options` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_BUSY (another process writes to it; the message says which), SPILL_FORMAT (made by
 *         a newer Spillway; a server older than MongoDB 4.4.2), SPILL_CORRUPT (names the damaged
 *         file, and the offset of damage to a log; see spill_store_options_t::partial),
 *         SPILL_DENIED, SPILL_NO_SPACE, SPILL_NOT_FOUND (a file, or a folder with something else
 *         in it; with read_only or must_exist: nothing), SPILL_INVALID (no such scheme; wrong
 *         options; a writer in a forked child, see above), SPILL_IO (the server cannot be reached;
 * libmongoc is not installed) \cost embedded: reads the end of the log; about 10 ms for a new
 * store. On a server: loads libmongoc once for the process (7 ms), connects, one command. Deadlines
 * do not apply: the options serverSelectionTimeoutMS (default 10 s) and connectTimeoutMS of the URI
 * do. \threads any number at once \sample{open}
 */
SPILL_API spill_code_t spill_store_open(const char *uri, const spill_store_options_t *options,
                                        spill_store_t **store, spill_error_t *error);

/**
 * Return what is missing in a store that was opened with spill_store_options_t::partial. Every
 * answer may then lack elements.
 *
 * \param store  an open store
 * \return a sentence that names the file that cannot be read; it belongs to the store until it is
 *         closed. NULL: the whole store can be read.
 * \null `store` NULL: NULL
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API const char *spill_store_damage(const spill_store_t *store);

/**
 * Flush and close. Close the arrays of the store first: while one is open, the result is
 * SPILL_REFUSED, the store stays open, and you call this again later. After any other error the
 * store is closed all the same. In a child of the process that opened the store (fork), this frees
 * the handle, and touches no file, socket or thread of the parent.
 *
 * \param store  the store; its memory is freed, except after SPILL_REFUSED
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null both may be NULL
 * \errors SPILL_REFUSED (arrays are open: the message counts them); SPILL_IO, SPILL_NO_SPACE: what
 *         was acknowledged with log durability may be lost in a power loss
 * \cost waits for the steps that calls with deadlines have given up (deadline.h)
 * \threads the last call on its store
 */
SPILL_API spill_code_t spill_store_close(spill_store_t *store, spill_error_t *error);

/**
 * Save a definition. If the name exists and has data, only the bounds, op_window and what is
 * retained may change. Saving the same definition again succeeds.
 *
 * Clients that have the array open use the old bounds until they open it again; documents then
 * obey the old or the new ones. If two programs save definitions that share documents at the same
 * moment on a server, both may be refused.
 *
 * \param store       an open store
 * \param definition  the definition; it is copied
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_REFUSED (the message names what differs from the saved one; or the definition
 *         would share documents with another one of the store, see spill_definition_beside()),
 *         SPILL_INVALID (spill_definition_check()), SPILL_READ_ONLY, SPILL_UNKNOWN (call it again)
 * \cost four store operations, and two for each other definition; deadlines do not apply
 * \threads any number at once; one at a time runs
 * \sample{define}
 */
SPILL_API spill_code_t spill_store_define(spill_store_t *store,
                                          const spill_definition_t *definition,
                                          spill_error_t *error);

/**
 * Load the definition of a name.
 *
 * \param store       an open store
 * \param name        its name
 * \param definition  becomes a copy
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (the message lists the existing ones), SPILL_CORRUPT (its record cannot
 *         be read), SPILL_FORMAT (a newer Spillway saved it)
 * \cost one store operation; two if there is no such name
 * \threads any number at once
 */
SPILL_API spill_code_t spill_store_definition(spill_store_t *store, const char *name,
                                              spill_definition_t *definition, spill_error_t *error);

/**
 * Load all definitions, sorted by name.
 *
 * \param store        an open store
 * \param definitions  becomes an array, which the caller frees with bson_free(); NULL: there is
 *                     none
 * \param count        becomes the number of definitions
 * \param error        filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_CORRUPT (a record cannot be read), SPILL_FORMAT (a newer Spillway saved it)
 * \cost one store operation, and one for each definition
 * \threads any number at once
 */
SPILL_API spill_code_t spill_store_definitions(spill_store_t *store,
                                               spill_definition_t **definitions, size_t *count,
                                               spill_error_t *error);

/**
 * Drop a definition and all its owners' arrays and pages. Other fields of the heads stay. This is
 * not one atomic step: after a crash or an error, call it again.
 *
 * Arrays that are open on it then read as empty, and changes return SPILL_NOT_FOUND. (Not on a
 * server: docs/reference/lifetimes.md.)
 *
 * \param store  an open store
 * \param name   the definition's name
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND, SPILL_CONFLICT (other clients create owners faster than this call drops
 *         them), SPILL_READ_ONLY, SPILL_UNKNOWN (call it again)
 * \cost spill_array_drop_owner() for each owner
 * \threads any number at once
 */
SPILL_API spill_code_t spill_store_drop(spill_store_t *store, const char *name,
                                        spill_error_t *error);

/**
 * Copy an embedded store to a new folder while it is used. The copy is consistent, and complete or
 * absent.
 *
 * \param store   an open embedded store
 * \param folder  a path at which nothing is
 * \param error   filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_REFUSED (the folder exists), SPILL_CORRUPT (a file is damaged, the message names
 *         it; with spill_store_options_t::partial that is a warning to the log), SPILL_NO_SPACE,
 *         SPILL_DENIED, SPILL_INVALID (a store of another kind)
 * \cost reads the whole copy once; deadlines do not apply
 * \threads any number at once
 */
SPILL_API spill_code_t spill_store_backup(spill_store_t *store, const char *folder,
                                          spill_error_t *error);

/** The version of spill_counters_t. */
#define SPILL_COUNTERS_VERSION 1

/** What the store has done since it was opened. Values only rise, except tail_bytes. */
typedef struct spill_counters {
    int64_t calls;    /**< store operations */
    int64_t appends;  /**< appends acknowledged */
    int64_t elements; /**< elements in them */
    int64_t repeats;  /**< appends recognized by their operation id */
    int64_t spills;   /**< pages cut or sealed */
    int64_t retries;  /**< operations tried again after losing a race */
    int64_t waits;    /**< pauses taken between tries */
    int64_t commits;  /**< write batches given to the embedded engine */
    int64_t syncs;    /**< commits that were synced */
    /**
     * Embedded: keys and values that the engine was given, before it compresses them, and without
     * what it writes again when it merges. On a server, with count_bytes: the documents of commands
     * and of their replies.
     */
    int64_t bytes_written;
    int64_t bytes_read; /**< embedded: not counted */
    /**
     * Embedded: reads of heads that the cache of newest elements answered, those that it could have
     * answered but had to leave to the engine, and the bytes that it has now, which rise and fall.
     */
    int64_t tail_hits;
    int64_t tail_misses; /**< reads that it had to leave to the engine */
    int64_t tail_bytes;  /**< bytes that it has now */
    int version;         /**< SPILL_COUNTERS_VERSION of the library */
    int64_t reserved[8]; /**< 0: for fields of later versions */
} spill_counters_t;

/**
 * Read the counters, one after the other: they are of slightly different moments.
 *
 * \param store     an open store
 * \param counters  becomes their values
 * \null `counters` NULL: nothing happens. `store` NULL: all counters are 0.
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_store_counters(spill_store_t *store, spill_counters_t *counters);

/** One owner's readable changes behind a cut in a log. */
typedef struct spill_log_loss {
    const char *definition;     /**< NULL: no definition that can be read has this number */
    uint32_t array_id;          /**< the number */
    const spill_value_t *owner; /**< NULL: its key cannot be read */
    int64_t elements;           /**< elements written; one written twice counts twice */
    int64_t deleted;            /**< deletions of an element, or of a range of elements */
} spill_log_loss_t;

/** The version of spill_log_cut_t. */
#define SPILL_LOG_CUT_VERSION 1

/** A cut in the log of an embedded store. */
typedef struct spill_log_cut {
    bool needed;         /**< the log is damaged; else nothing below is set */
    char file[32];       /**< the log, "000012.log" */
    int64_t offset;      /**< the cut drops everything from this byte on, and every newer log */
    char reason[160];    /**< why it cannot be read there */
    int64_t bytes;       /**< behind the cut, in all logs */
    int64_t records;     /**< readable batches of changes in these bytes */
    int64_t owners;      /**< owners with changes in these batches */
    int64_t elements;    /**< elements written by these batches */
    char kept[64];       /**< the file that keeps the old log; "" with look_only */
    int version;         /**< SPILL_LOG_CUT_VERSION of the library */
    int64_t reserved[4]; /**< 0: for fields of later versions */
} spill_log_cut_t;

/** Receives the losses of spill_store_cut_log(). `loss` is borrowed until it returns. */
typedef void (*spill_log_loss_fn)(void *context, const spill_log_loss_t *loss);

/**
 * Make an embedded store with a damaged log writable again: drop the log from the first unreadable
 * byte on, and every newer log. The old logs stay in the store's folder under other names
 * (docs/internals/format.md). Nothing else is dropped. After a crash at any moment, call it again.
 *
 * The function first calls `report` for each owner with readable changes behind the cut; *cut is
 * then filled, except for spill_log_cut_t::kept.
 *
 * \param uri        as in spill_store_open(); no process may have the store open for writing
 * \param look_only  write nothing
 * \param report     called for each owner with readable changes behind the cut
 * \param context    passed to `report`
 * \param cut        becomes what was cut; all 0 if the logs have no damage, or the store is not
 *                   embedded
 * \param error      filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `report`, `context` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_BUSY, SPILL_CORRUPT (damage that a cut does not repair: restore a backup),
 *         SPILL_NOT_FOUND, SPILL_NO_SPACE, SPILL_DENIED
 * \cost reads the logs three times; deadlines do not apply
 * \threads any number at once
 */
SPILL_API spill_code_t spill_store_cut_log(const char *uri, bool look_only,
                                           spill_log_loss_fn report, void *context,
                                           spill_log_cut_t *cut, spill_error_t *error);

SPILL_END_DECLS

/** \} */

#endif
