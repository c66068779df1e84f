/*
 * Bytes in memory: a growing buffer, a reader, a hash for tables and locks, and the checksums of
 * two file formats. Memory comes from bson_malloc, which aborts if there is none.
 */
#ifndef SPILL_UTIL_BUFFER_H
#define SPILL_UTIL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct spill_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
} spill_buffer_t;

#define SPILL_BUFFER_INIT                                                                          \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

/* Make the capacity at least size + more. */
void spill_buffer_grow(spill_buffer_t *buffer, size_t more);

/* Reserve `more` bytes after the last one and return their start. The data may move. */
static inline uint8_t *spill_buffer_reserve(spill_buffer_t *buffer, size_t more)
{
    if (buffer->capacity - buffer->size < more)
        spill_buffer_grow(buffer, more);
    return buffer->data + buffer->size;
}

static inline void spill_buffer_append(spill_buffer_t *buffer, const void *data, size_t size)
{
    if (size > 0) {
        memcpy(spill_buffer_reserve(buffer, size), data, size);
        buffer->size += size;
    }
}

static inline void spill_buffer_append_byte(spill_buffer_t *buffer, uint8_t byte)
{
    *spill_buffer_reserve(buffer, 1) = byte;
    buffer->size++;
}

void spill_buffer_append_be64(spill_buffer_t *buffer, uint64_t value);
/* LEB128 as in protocol buffers; a signed value in zigzag encoding. */
void spill_buffer_append_varint(spill_buffer_t *buffer, uint64_t value);
void spill_buffer_append_zigzag(spill_buffer_t *buffer, int64_t value);
void spill_buffer_clear(spill_buffer_t *buffer);   /* size 0, memory kept */
void spill_buffer_release(spill_buffer_t *buffer); /* memory freed, ready for use again */

bool spill_buffer_equal(const spill_buffer_t *left, const spill_buffer_t *right);

/* The order of two strings of bytes, as memcmp returns it; a prefix comes before what it begins. */
int spill_bytes_compare(const uint8_t *left, size_t left_bytes, const uint8_t *right,
                        size_t right_bytes);

/* A reader of borrowed bytes. A short or malformed read sets `bad`. */
typedef struct spill_reader {
    const uint8_t *at;
    const uint8_t *end;
    int bad;
} spill_reader_t;

/* Read `size` bytes at `data`, which may be NULL if `size` is 0. */
spill_reader_t spill_reader_of(const uint8_t *data, size_t size);

/* Did every read succeed, and are all bytes read? */
bool spill_reader_ended(const spill_reader_t *reader);

uint8_t spill_reader_byte(spill_reader_t *reader);
uint64_t spill_reader_be64(spill_reader_t *reader);
uint64_t spill_reader_varint(spill_reader_t *reader);
int64_t spill_reader_zigzag(spill_reader_t *reader);
const uint8_t *spill_reader_bytes(spill_reader_t *reader, size_t size); /* NULL if too short */

/* ---- hashes ---------------------------------------------------------------------------------- */

/* FNV-1a of 64 bits, for tables and locks. Do not use it for keys that an attacker chooses. */
uint64_t spill_hash(const void *data, size_t size);

/*
 * Another hash, for tables in memory only: its values depend on the machine and the version. It
 * reads eight bytes at a time. All bits of the result depend on all bytes. The same warning.
 */
uint64_t spill_hash_quick(const void *data, size_t size);

/* Continue such a hash with a word. Bits depend on all bits of the words before the last one. */
static inline uint64_t spill_hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

/* CRC-32C (Castagnoli), the checksum of the engine's logs. Any thread. About 1 ns a byte. */
uint32_t spill_crc32c(const void *data, size_t size);

/*
 * Continue the checksum `crc` (0 at the start) with these bytes: CRC-64 with the polynomial of
 * ECMA-182, as in Go and xz and in mongodump's archives. Any thread.
 */
uint64_t spill_crc64(uint64_t crc, const void *data, size_t size);

#endif
