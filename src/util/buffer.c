#include "util/buffer.h"

#include <bson/bson.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, VARINT_BYTES_MAX = 10 };

uint8_t *spill_buffer_reserve(spill_buffer_t *buffer, size_t more)
{
    if (buffer->capacity - buffer->size < more) {
        size_t capacity = buffer->capacity == 0 ? FIRST_CAPACITY : buffer->capacity;
        while (capacity - buffer->size < more)
            capacity *= 2;
        buffer->data = bson_realloc(buffer->data, capacity);
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->size;
}

void spill_buffer_append(spill_buffer_t *buffer, const void *data, size_t size)
{
    if (size > 0) {
        memcpy(spill_buffer_reserve(buffer, size), data, size);
        buffer->size += size;
    }
}

void spill_buffer_append_byte(spill_buffer_t *buffer, uint8_t byte)
{
    *spill_buffer_reserve(buffer, 1) = byte;
    buffer->size++;
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
