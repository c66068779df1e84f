/*
 * The engine's logs, and its list of files.
 *
 *   log_reader.c  read the records of a log, their changes, and the list of files
 *   log_check.c   can the logs be read to their end?
 *   log_cut.c     repair a log that cannot, and count what that drops
 */
#ifndef SPILL_STORE_EMBEDDED_LOGS_H
#define SPILL_STORE_EMBEDDED_LOGS_H

#include "store/embedded/folder.h"
#include "store/embedded/kv.h"
#include "util/buffer.h"

#include <spillway/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- log_reader.c: records ------------------------------------------------------------------- */

/*
 * Reads a log of the engine, and its list of files (MANIFEST), which has the same format.
 *
 *   file     blocks of 32 KiB; the last one may be shorter
 *   block    parts, then fewer than 7 bytes that are zero
 *   part     checksum (4 bytes), length (2), type (1: whole, 2: first, 3: middle, 4: last), content
 *   record   the content of one whole part, or of a first part, middle parts and a last part
 *
 * The checksum is a masked CRC-32C of type and content. Numbers are little-endian. The engine
 * never recycles a log of a store, so that other types of parts are damage.
 */

enum { SPILL_LOG_BLOCK_BYTES = 32 * 1024 };

typedef enum spill_log_step {
    SPILL_LOG_RECORD, /* `record` is the next record */
    SPILL_LOG_BREAK,  /* at `offset` begins what cannot be read */
    SPILL_LOG_END     /* the end of the file, or the file cannot be read (`failed`) */
} spill_log_step_t;

/* After spill_log_reader_open the fields down to `failed` may be read. */
typedef struct spill_log_reader {
    int64_t offset;        /* of the record's first byte, or of the break */
    const uint8_t *record; /* the record's content, valid until the next step */
    size_t record_bytes;
    bool torn;    /* of a break: it looks as a write does that was cut off */
    bool more;    /* a good part was found behind the first break */
    bool gave_up; /* a search left out the rest of a block, where a good part may be */
    int failed;   /* errno of a read that failed; 0: none */

    FILE *file;
    int64_t block_offset;
    size_t block_bytes;
    size_t at; /* in the block */
    bool last; /* the block is the file's last */
    bool searching;
    spill_buffer_t joined;
    uint8_t block[SPILL_LOG_BLOCK_BYTES];
} spill_log_reader_t;

/* Read a file that is open, from its start. The file stays the caller's. */
void spill_log_reader_open(spill_log_reader_t *reader, FILE *file);

/* Free the reader's memory. */
void spill_log_reader_close(spill_log_reader_t *reader);

/*
 * Go to the next record. After a break the step after it searches for the next record with a
 * good checksum. The search gives up a block (`gave_up`) after it has summed 32 times the block's
 * bytes. It searches the file's last block to its end, because a torn end lies there.
 * Cost: linear in the bytes, and at most 0.5 GB of checksums for the last block.
 */
spill_log_step_t spill_log_reader_next(spill_log_reader_t *reader);

/*
 * Has the log a part of a type that the engine uses in recycled logs? The logs of a store have
 * none, so it is damage. If RocksDB 7.8 skips damage, it reads such a part over and over, for ever.
 * The file is read from its start. O(bytes).
 */
bool spill_log_has_recycled_part(FILE *file);

/* The checksum of bytes as the engine stores it in logs and in files of large values. */
uint32_t spill_log_checksum(const void *data, size_t size);

/* ---- log_reader.c: the changes of a record --------------------------------------------------- */

/*
 * One record of the engine's log: a batch of changes.
 *
 *   sequence (8 bytes) | count of changes (4) | changes
 *   change   tag (1 byte), key, and for a put or a range a second text; each text with its length
 *
 * Numbers are little-endian, lengths are varints. A batch of a store has puts, deletes and deleted
 * ranges; other changes do not occur and make the batch malformed.
 */

/* A batch that is read. */
typedef struct spill_log_batch {
    uint64_t sequence; /* of its first change */
    uint32_t count;    /* of its changes */
    spill_reader_t at;
} spill_log_batch_t;

/* A change; the texts are those of the record. Of a range, `value` is the first key behind it. */
typedef struct spill_log_change {
    spill_change_kind_t kind;
    const uint8_t *key;
    size_t key_bytes;
    const uint8_t *value;
    size_t value_bytes;
} spill_log_change_t;

/* Read the head of a batch. False: it is shorter than that. The bytes stay the caller's. */
bool spill_log_batch_open(spill_log_batch_t *batch, const uint8_t *record, size_t bytes);

/* The next change. False: there is none, or (batch->at.bad) the batch is malformed. */
bool spill_log_batch_next(spill_log_batch_t *batch, spill_log_change_t *change);

/* ---- log_reader.c: the list of files --------------------------------------------------------- */

/* The engine's list of files, as far as the check of the logs needs it. */

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

/* ---- log_check.c ----------------------------------------------------------------------------- */

/*
 * Can the engine's logs be read to their end? The engine itself does not always notice: it takes
 * zeros in a log, and parts of a type that it would recycle, for an end, and it does not compare
 * the end of one log with the start of the next.
 *
 * Every record begins with the number of its first change. The store compares these: each record
 * continues the one before, and the first one continues what the table files hold.
 */

typedef enum spill_logs_health {
    SPILL_LOGS_WHOLE,   /* every record of every log can be read */
    SPILL_LOGS_TORN,    /* ... but the newest log ends in the middle of a record: a power loss */
    SPILL_LOGS_HOLE,    /* an older log lost its end: a power loss, with log durability */
    SPILL_LOGS_DAMAGED, /* bytes of a log were changed; repair can cut the log there */
    SPILL_LOGS_LOST     /* changes are missing before the first record of all logs */
} spill_logs_health_t;

/* If the logs are not WHOLE, the state names the place. */
typedef struct spill_logs_state {
    spill_logs_health_t health;
    bool torn;      /* a log ends in the middle of a record; newer logs may continue it */
    uint64_t log;   /* the number of that log */
    char file[32];  /* its name */
    int64_t offset; /* of the first byte that is not part of a good record */
    char what[160]; /* for a message */
    spill_manifest_t manifest;
} spill_logs_state_t;

/*
 * Check the list of files and the logs. Beside a writer the check is repeated while the list
 * changes. SPILL_CORRUPT names CURRENT or the list of files. A folder without CURRENT has whole
 * logs. Cost: reads the logs once, at most about 100 MB, about 1 ns a byte.
 */
spill_code_t spill_log_check(const char *folder, spill_logs_state_t *state, spill_error_t *error);

/* The same of a reader's view, which does not change. */
spill_code_t spill_log_check_pinned(const spill_pinned_t *pinned, spill_logs_state_t *state,
                                    spill_error_t *error);

/* Does a log have a part that the engine reads for ever if it skips damage? Reads the logs. */
bool spill_log_stalls_engine(const spill_pinned_t *pinned);

/* Make an error (SPILL_CORRUPT) of a state that is not WHOLE. It names the log and the offset. */
spill_code_t spill_log_fail(const char *folder, const spill_logs_state_t *state,
                            spill_error_t *error);

/*
 * List the numbers of the logs in a folder, from `oldest` on, in ascending order. Free *numbers
 * with bson_free; NULL: there is none. Fails if the folder cannot be read.
 */
spill_code_t spill_log_numbers(const char *folder, uint64_t oldest, uint64_t **numbers,
                               size_t *count, spill_error_t *error);

/* "FOLDER/000012.log". Free with bson_free. */
char *spill_log_path(const char *folder, uint64_t log);

/* ---- log_cut.c ------------------------------------------------------------------------------- */

/* What a cut in a log would drop: the readable records behind it, by owner. */

/* Of one owner in one array. */
typedef struct spill_log_owner {
    uint32_t array_id;
    size_t key; /* the owner's key, in the losses' bytes */
    size_t key_bytes;
    int64_t elements; /* element records that are written: by appends, edits */
    int64_t deleted;  /* element records that are deleted, one by one or as a range */
} spill_log_owner_t;

typedef struct spill_log_losses {
    int64_t records; /* batches whose checksum holds */
    int64_t bad;     /* of which so many are malformed */
    spill_log_owner_t *owners;
    size_t count;
    size_t capacity;
    uint32_t *slots; /* a hash table: 0, or an index into `owners` plus 1 */
    size_t slot_count;
    spill_buffer_t bytes;
} spill_log_losses_t;

#define SPILL_LOG_LOSSES_INIT                                                                      \
    {                                                                                              \
        .records = 0                                                                               \
    }

/* Add one record of a log. Any bytes are allowed. Cost: linear in the record. */
void spill_log_losses_add(spill_log_losses_t *losses, const uint8_t *record, size_t bytes);

void spill_log_losses_release(spill_log_losses_t *losses);

#endif
