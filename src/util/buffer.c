/* Bytes in memory: a growing buffer, a reader, a hash, and two checksums. */
#include "util/buffer.h"

#include <bson/bson.h>
#include <pthread.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, VARINT_BYTES_MAX = 10 };

void spill_buffer_grow(spill_buffer_t *buffer, size_t more)
{
    size_t capacity = buffer->capacity == 0 ? FIRST_CAPACITY : buffer->capacity;
    while (capacity - buffer->size < more)
        capacity *= 2;
    buffer->data = bson_realloc(buffer->data, capacity);
    buffer->capacity = capacity;
}

void spill_buffer_append_be64(spill_buffer_t *buffer, uint64_t value)
{
    uint64_t bytes = BSON_UINT64_TO_BE(value);
    spill_buffer_append(buffer, &bytes, sizeof bytes);
}

void spill_buffer_append_varint(spill_buffer_t *buffer, uint64_t value)
{
    uint8_t *at = spill_buffer_reserve(buffer, VARINT_BYTES_MAX);
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    buffer->size = (size_t)(at - buffer->data);
}

void spill_buffer_append_zigzag(spill_buffer_t *buffer, int64_t value)
{
    uint64_t sign = value < 0 ? UINT64_MAX : 0;
    spill_buffer_append_varint(buffer, ((uint64_t)value << 1) ^ sign);
}

void spill_buffer_clear(spill_buffer_t *buffer)
{
    buffer->size = 0;
}

void spill_buffer_release(spill_buffer_t *buffer)
{
    bson_free(buffer->data);
    *buffer = (spill_buffer_t)SPILL_BUFFER_INIT;
}

bool spill_buffer_equal(const spill_buffer_t *left, const spill_buffer_t *right)
{
    return left->size == right->size &&
           (left->size == 0 || memcmp(left->data, right->data, left->size) == 0);
}

int spill_bytes_compare(const uint8_t *left, size_t left_bytes, const uint8_t *right,
                        size_t right_bytes)
{
    size_t common = left_bytes < right_bytes ? left_bytes : right_bytes;
    int order = common > 0 ? memcmp(left, right, common) : 0;
    return order != 0 ? order : (left_bytes > right_bytes) - (left_bytes < right_bytes);
}

spill_reader_t spill_reader_of(const uint8_t *data, size_t size)
{
    static const uint8_t nothing;
    if (data == NULL || size == 0) /* an offset from NULL is undefined, even one of 0 */
        return (spill_reader_t){.at = &nothing, .end = &nothing};
    return (spill_reader_t){.at = data, .end = data + size};
}

bool spill_reader_ended(const spill_reader_t *reader)
{
    return !reader->bad && reader->at == reader->end;
}

const uint8_t *spill_reader_bytes(spill_reader_t *reader, size_t size)
{
    if (reader->bad || (size_t)(reader->end - reader->at) < size) {
        reader->bad = 1;
        return NULL;
    }
    const uint8_t *bytes = reader->at;
    reader->at += size;
    return bytes;
}

uint8_t spill_reader_byte(spill_reader_t *reader)
{
    const uint8_t *byte = spill_reader_bytes(reader, 1);
    return byte == NULL ? 0 : *byte;
}

uint64_t spill_reader_be64(spill_reader_t *reader)
{
    uint64_t value = 0;
    const uint8_t *bytes = spill_reader_bytes(reader, sizeof value);
    if (bytes != NULL)
        memcpy(&value, bytes, sizeof value);
    return BSON_UINT64_FROM_BE(value);
}

uint64_t spill_reader_varint(spill_reader_t *reader)
{
    uint64_t value = 0;
    if (!reader->bad && reader->at < reader->end && *reader->at < 0x80)
        return *reader->at++; /* most have one byte */
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = spill_reader_byte(reader);
        uint64_t bits = byte & 0x7f;
        if (bits << shift >> shift != bits)
            break;
        value |= bits << shift;
        if (byte < 0x80)
            return value;
    }
    reader->bad = 1;
    return 0;
}

int64_t spill_reader_zigzag(spill_reader_t *reader)
{
    uint64_t value = spill_reader_varint(reader);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* ---- hashes ---------------------------------------------------------------------------------- */

uint64_t spill_hash(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t spill_hash_quick(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = size, word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = spill_hash_mix(hash, word);
    }
    word = 0;
    if (size > 0)
        memcpy(&word, bytes, size);
    return spill_hash_mix(spill_hash_mix(hash, word), size);
}

/* The checksums read tables, this many bytes at a time. */
enum { SLICES = 8 };

/* ---- CRC-32C --------------------------------------------------------------------------------- */

/* The polynomial with its bits reversed: the lowest bit of a byte comes first. */
#define POLYNOMIAL_32 UINT32_C(0x82f63b78)

/* [i][byte]: what the byte adds when i more bytes follow it. */
static uint32_t tables_32[SLICES][256];

static void make_tables_32(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL_32 : crc >> 1;
        tables_32[0][byte] = crc;
    }
    for (int i = 1; i < SLICES; i++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables_32[i - 1][byte];
            tables_32[i][byte] = (before >> 8) ^ tables_32[0][before & 0xFF];
        }
}

/* Add eight bytes. The eight table reads do not depend on each other. */
static uint32_t add_eight_32(uint32_t crc, const uint8_t *data)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum ^= tables_32[SLICES - 1 - i][data[i] ^ (uint8_t)(crc >> (8 * i))];
    for (int i = 4; i < SLICES; i++)
        sum ^= tables_32[SLICES - 1 - i][data[i]];
    return sum;
}

uint32_t spill_crc32c(const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *bytes = data;
    uint32_t crc = UINT32_MAX;
    pthread_once(&once, make_tables_32);
    for (; size >= SLICES; size -= SLICES, bytes += SLICES)
        crc = add_eight_32(crc, bytes);
    for (; size > 0; size--, bytes++)
        crc = (crc >> 8) ^ tables_32[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
}

/* ---- CRC-64 ---------------------------------------------------------------------------------- */

/* The polynomial with its bits in reverse, as bytes come with their lowest bit first. */
#define POLYNOMIAL_64 UINT64_C(0xC96C5795D7870F42)

/* [i][byte]: what the byte adds when i more bytes follow it. */
static uint64_t tables_64[SLICES][256];

static void make_tables_64(void)
{
    for (uint64_t byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL_64 : crc >> 1;
        tables_64[0][byte] = crc;
    }
    for (int i = 1; i < SLICES; i++)
        for (int byte = 0; byte < 256; byte++) {
            uint64_t before = tables_64[i - 1][byte];
            tables_64[i][byte] = (before >> 8) ^ tables_64[0][before & 0xFF];
        }
}

/* Add eight bytes. The eight table reads do not depend on each other. */
static uint64_t add_eight_64(uint64_t crc, const uint8_t *data)
{
    uint64_t sum = 0;
    for (int i = 0; i < SLICES; i++)
        sum ^= tables_64[SLICES - 1 - i][data[i] ^ (uint8_t)(crc >> (8 * i))];
    return sum;
}

uint64_t spill_crc64(uint64_t crc, const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *bytes = data;
    pthread_once(&once, make_tables_64);
    crc = ~crc;
    for (; size >= SLICES; size -= SLICES, bytes += SLICES)
        crc = add_eight_64(crc, bytes);
    for (; size > 0; size--, bytes++)
        crc = (crc >> 8) ^ tables_64[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
}
