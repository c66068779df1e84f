#include "tools/scan/feed.h"

#include "bson/value.h"
#include "tools/scan/walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KEEP_BYTES                                                                                 \
    (4 * SPILL_BLOCK_BYTES) /* a block that a huge document made grow is given back */

void spill_block_clear(spill_block_t *block)
{
    if (block->data.capacity > KEEP_BYTES)
        spill_buffer_release(&block->data);
    spill_buffer_clear(&block->data);
    block->count = 0;
    block->collection = 0;
}

void spill_block_release(spill_block_t *block)
{
    spill_buffer_release(&block->data);
    bson_free(block->records);
    *block = (spill_block_t){0};
}

void spill_block_add(spill_block_t *block, size_t at, size_t size_bytes, int64_t place)
{
    if (block->count == block->capacity) {
        block->capacity = block->capacity ? 2 * block->capacity : 256;
        block->records = bson_realloc(block->records, block->capacity * sizeof *block->records);
    }
    block->records[block->count++] = (spill_feed_record_t){at, size_bytes, place};
}

void spill_feed_close(spill_feed_t *feed)
{
    if (!feed)
        return;
    spill_source_t *source = feed->source;
    feed->ops->close(feed);
    spill_source_close(source);
}

void spill_feed_report(const spill_feed_t *feed, int64_t place, const char *format, ...)
{
    char text[SPILL_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (feed->problem)
        feed->problem(feed->context, place, text);
}

/* ---- what feeds of bytes are made of --------------------------------------------------------- */

void spill_feed_window_begin(spill_feed_window_t *window, spill_block_t *block)
{
    spill_buffer_append(&block->data, window->rest.data, window->rest.size);
    if (window->rest.size > SPILL_BLOCK_BYTES)
        spill_buffer_release(&window->rest);
    spill_buffer_clear(&window->rest);
}

void spill_feed_window_fill(spill_feed_t *feed, spill_feed_window_t *window, spill_block_t *block,
                            size_t wanted)
{
    while (block->data.size < wanted && !window->ended) {
        size_t room = wanted - block->data.size;
        size_t got = 0;
        spill_error_t error;
        uint8_t *to = spill_buffer_reserve(&block->data, room);
        if (spill_source_read(feed->source, to, room, &got, &error) != SPILL_OK) {
            window->failed = true;
            window->ended = true;
            spill_feed_report(feed, window->offset + (int64_t)block->data.size, "%s",
                              error.message);
        }
        window->ended = window->ended || got == 0;
        block->data.size += got;
    }
}

void spill_feed_window_drop(spill_feed_window_t *window, spill_block_t *block, size_t count)
{
    if (count == 0)
        return;
    memmove(block->data.data, block->data.data + count, block->data.size - count);
    block->data.size -= count;
    window->offset += (int64_t)count;
}

void spill_feed_window_keep(spill_feed_window_t *window, spill_block_t *block, size_t count)
{
    spill_buffer_clear(&window->rest);
    spill_buffer_append(&window->rest, block->data.data + count, block->data.size - count);
    block->data.size = count;
    window->offset += (int64_t)count;
}

bool spill_feed_has_no_size(const spill_feed_t *feed)
{
    return spill_source_size(feed->source) < 0 || strcmp(feed->name, "stdin") == 0;
}

/* ---- finding documents again ----------------------------------------------------------------- */

static uint32_t length_of(const uint8_t *data)
{
    uint32_t value;
    memcpy(&value, data, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

bool spill_feed_header(const uint8_t *data, size_t size)
{
    if (size < 4)
        return true; /* who knows */
    uint32_t length = length_of(data);
    if (length < 5 || length > SPILL_DOCUMENT_BYTES_MAX)
        return false;
    uint8_t type = size > 4 ? data[4] : 0;
    bool known = type == BSON_TYPE_MAXKEY || type == BSON_TYPE_MINKEY ||
                 (type > 0 && type <= BSON_TYPE_DECIMAL128);
    return size < 5 || (length == 5 ? type == 0 : known);
}

static bool begins_with_id(const uint8_t *data, size_t size)
{
    return size >= 9 && spill_feed_header(data, size) && memcmp(data + 5, "_id", 4) == 0;
}

bool spill_feed_two(const uint8_t *data, size_t size)
{
    if (!begins_with_id(data, size))
        return false;
    uint32_t length = length_of(data);
    return length < size && data[length - 1] == 0 && begins_with_id(data + length, size - length);
}

/* Is there a sound document? */
static spill_feed_sight_t look_at_one(const uint8_t *data, size_t size, bool ended, size_t *wanted)
{
    *wanted = 5;
    if (size < 5)
        return ended ? SPILL_FEED_NO : SPILL_FEED_CANNOT_TELL;
    uint32_t length = length_of(data);
    if (!spill_feed_header(data, size) || length == 5)
        return SPILL_FEED_NO;
    *wanted = length;
    if (length > size)
        return ended ? SPILL_FEED_NO : SPILL_FEED_CANNOT_TELL;
    return data[length - 1] == 0 && spill_walk_check(data, length) ? SPILL_FEED_YES : SPILL_FEED_NO;
}

spill_feed_sight_t spill_feed_look(const uint8_t *data, size_t size, bool ended, bool ids,
                                   size_t *wanted)
{
    *wanted = 5;
    if (size < 5)
        return ended ? SPILL_FEED_NO : SPILL_FEED_CANNOT_TELL;
    bool id = begins_with_id(data, size);
    uint32_t length = length_of(data);
    if (!spill_feed_header(data, size) || length == 5)
        return SPILL_FEED_NO;
    if (length > size && ids && !id)
        return SPILL_FEED_NO;
    if (length < size && !spill_feed_header(data + length, size - length))
        return SPILL_FEED_NO;
    spill_feed_sight_t first = look_at_one(data, size, ended, wanted);
    if (first != SPILL_FEED_YES || (length == size && ended))
        return first;
    const uint8_t *behind = data + length;
    size_t left = size - length;
    if (ids && !id && left >= 9 && !begins_with_id(behind, left))
        return SPILL_FEED_NO;
    spill_feed_sight_t second = look_at_one(behind, left, ended, wanted);
    *wanted += length;
    return second;
}

bool spill_feed_find(const uint8_t *data, size_t size, size_t from, bool ended, bool ids,
                     size_t *at, size_t *wanted)
{
    *wanted = 0;
    for (*at = from; *at + 5 <= size; ++*at) {
        spill_feed_sight_t sight = spill_feed_look(data + *at, size - *at, ended, ids, wanted);
        if (sight != SPILL_FEED_NO)
            return sight == SPILL_FEED_YES;
    }
    *wanted = 0;
    return false;
}
