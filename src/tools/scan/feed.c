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
    return size >= 9 && memcmp(data + 5, "_id", 4) == 0;
}

bool spill_feed_find(const uint8_t *data, size_t size, size_t from, bool ended, size_t *at,
                     size_t *wanted)
{
    *wanted = 0;
    for (*at = from; *at + 5 <= size; ++*at) {
        const uint8_t *here = data + *at;
        size_t left = size - *at;
        uint32_t length = length_of(here);
        if (!spill_feed_header(here, left) || length == 5)
            continue;
        if (length > left) {
            if (!ended && begins_with_id(here, left)) {
                *wanted = length;
                return false;
            }
            continue;
        }
        bool followed = length == left ? true : spill_feed_header(here + length, left - length);
        if (here[length - 1] == 0 && followed && spill_walk_check(here, length))
            return true;
    }
    return false;
}
