#include "tools/scan/feed.h"

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

void spill_feed_report(spill_feed_t *feed, int64_t place, const char *format, ...)
{
    char text[SPILL_ERROR_MESSAGE_SIZE] = "the input is damaged";
    va_list arguments;
    va_start(arguments, format);
    if (feed->reports++ < SPILL_FEED_REPORTS)
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
        return; /* an empty block has no data to move */
    memmove(block->data.data, block->data.data + count, block->data.size - count);
    block->data.size -= count;
    window->offset += (int64_t)count;
}

void spill_feed_window_keep(spill_feed_window_t *window, spill_block_t *block, size_t count)
{
    size_t left = block->data.size - count;
    spill_buffer_clear(&window->rest);
    if (left > 0)
        spill_buffer_append(&window->rest, block->data.data + count, left);
    block->data.size = count;
    window->offset += (int64_t)count;
}

bool spill_feed_interrupted(const spill_feed_t *feed)
{
    return feed->source && spill_source_check_stop(feed->source);
}

bool spill_feed_has_no_size(const spill_feed_t *feed)
{
    return spill_source_size(feed->source) < 0 || strcmp(feed->name, "stdin") == 0;
}
