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
#ifndef SPILL_EMBEDDED_LOG_READER_H
#define SPILL_EMBEDDED_LOG_READER_H

#include "util/buffer.h"

#include <stdbool.h>
#include <stdio.h>

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

#endif
