/*
 * A chunk: consecutive records, grouped by owner. Each owner's records are appended as one batch.
 * A chunk owns all its memory.
 */
#ifndef SPILL_TOOLS_IMPORT_CHUNK_H
#define SPILL_TOOLS_IMPORT_CHUNK_H

#include "util/buffer.h"

#include <spillway/array.h>

typedef struct spill_chunk_record {
    size_t offset; /* of the document in `documents` */
    uint32_t size_bytes;
    uint32_t next;    /* the owner's next record, or SPILL_CHUNK_NONE */
    size_t id_offset; /* of the operation id in `ids`; id_bytes == 0: none */
    uint32_t id_bytes;
} spill_chunk_record_t;

typedef struct spill_chunk_owner {
    uint64_t hash;
    size_t key_offset; /* in `keys` */
    size_t key_bytes;
    size_t value_offset; /* its value, in `documents` */
    uint32_t value_bytes;
    uint8_t value_type;
    uint32_t first; /* record */
    uint32_t last;
    uint32_t count;
    int64_t parts; /* batches that fit a page; an upper bound */
    int64_t part_count;
    int64_t part_bytes;
} spill_chunk_owner_t;

#define SPILL_CHUNK_NONE UINT32_MAX

/* The limits that make a chunk full. */
typedef struct spill_chunk_bounds {
    size_t records_max;
    size_t bytes_max;
    int64_t parts_max; /* of one owner: each part needs an entry of the operation window */
    int64_t page_capacity;
    int64_t part_bytes_max; /* includes bookkeeping and owner */
    int64_t op_window;
    const char *without; /* a field of the record that its element does not store; or NULL */
} spill_chunk_bounds_t;

typedef struct spill_chunk {
    /* Its place in the input. */
    int64_t number;
    int64_t offset;
    int64_t line;
    int64_t end_offset; /* behind the last record, good or bad */
    int64_t end_line;
    uint64_t hash;       /* of the records' bytes */
    int64_t record_line; /* line of the last good record */
    int64_t record_offset;

    spill_chunk_record_t *records;
    size_t record_count;
    size_t record_capacity;
    spill_chunk_owner_t *owners; /* in the order of their first records */
    size_t owner_count;
    size_t owner_capacity;
    uint32_t *table; /* hash table of owners' indexes; a power of two, at most half full */
    size_t table_size;
    spill_buffer_t documents;
    spill_buffer_t keys;
    spill_buffer_t ids;
    bool full;

    int64_t skipped;    /* bad records in it */
    spill_buffer_t bad; /* their messages, each ended by NUL */

    /* How the input ended, in the last chunk. */
    bool last;
    spill_code_t code;
    spill_error_t error;
} spill_chunk_t;

void spill_chunk_release(spill_chunk_t *chunk);

/* Empty it for another use. Its memory is kept, unless a huge record has enlarged it. */
void spill_chunk_clear(spill_chunk_t *chunk);

/*
 * Add a record. `owner`, which may lie within `document`, and `id` (size 0: none) are borrowed.
 * SPILL_PARSE: the value is no valid owner. Sets chunk->full if another record might not fit.
 */
spill_code_t spill_chunk_add(spill_chunk_t *chunk, const spill_chunk_bounds_t *bounds,
                             const bson_t *document, const spill_value_t *owner, const void *id,
                             size_t id_bytes, spill_error_t *error);

void spill_chunk_add_bad(spill_chunk_t *chunk, const char *message);

/* The owner as a value, and a record's document as a value; both borrowed from the chunk. */
spill_value_t spill_chunk_owner_value(const spill_chunk_t *chunk, const spill_chunk_owner_t *owner);
spill_value_t spill_chunk_element(const spill_chunk_t *chunk, const spill_chunk_record_t *record);

#endif
