/* A growing buffer. Memory comes from bson_malloc, which aborts if there is none. */
#ifndef SPILL_UTIL_BUFFER_H
#define SPILL_UTIL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct spill_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
} spill_buffer_t;

#define SPILL_BUFFER_INIT                                                                          \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

/* Reserve `more` bytes after the last one and return their start. The data may move. */
uint8_t *spill_buffer_reserve(spill_buffer_t *buffer, size_t more);
void spill_buffer_append(spill_buffer_t *buffer, const void *data, size_t size);
void spill_buffer_append_byte(spill_buffer_t *buffer, uint8_t byte);
void spill_buffer_append_be64(spill_buffer_t *buffer, uint64_t value);
/* LEB128 as in protocol buffers; a signed value in zigzag encoding. */
void spill_buffer_append_varint(spill_buffer_t *buffer, uint64_t value);
void spill_buffer_append_zigzag(spill_buffer_t *buffer, int64_t value);
void spill_buffer_clear(spill_buffer_t *buffer);   /* size 0, memory kept */
void spill_buffer_release(spill_buffer_t *buffer); /* memory freed, ready for use again */

bool spill_buffer_equal(const spill_buffer_t *left, const spill_buffer_t *right);

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

#endif
