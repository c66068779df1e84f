#include "tools/scan/document_source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KEEP_BYTES (4 * SPILL_BLOCK_BYTES) /* free the memory of a block that is larger */

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
    block->records[block->count++] = (spill_document_source_record_t){at, size_bytes, place};
}

void spill_document_source_close(spill_document_source_t *document_source)
{
    if (!document_source)
        return;
    spill_source_t *source = document_source->source;
    document_source->ops->close(document_source);
    spill_source_close(source);
}

void spill_document_source_report(spill_document_source_t *document_source, int64_t place,
                                  const char *format, ...)
{
    char text[SPILL_ERROR_MESSAGE_SIZE] = "the input is damaged";
    va_list arguments;
    va_start(arguments, format);
    if (document_source->reports++ < SPILL_DOCUMENT_SOURCE_REPORTS)
        vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (document_source->problem)
        document_source->problem(document_source->context, place, text);
}

/* ---- for document sources of bytes ----------------------------------------------------------- */

void spill_document_source_window_begin(spill_document_source_window_t *window,
                                        spill_block_t *block)
{
    spill_buffer_append(&block->data, window->rest.data, window->rest.size);
    if (window->rest.size > SPILL_BLOCK_BYTES)
        spill_buffer_release(&window->rest);
    spill_buffer_clear(&window->rest);
}

void spill_document_source_window_fill(spill_document_source_t *document_source,
                                       spill_document_source_window_t *window, spill_block_t *block,
                                       size_t wanted)
{
    while (block->data.size < wanted && !window->ended) {
        size_t room = wanted - block->data.size;
        size_t got = 0;
        spill_error_t error;
        uint8_t *to = spill_buffer_reserve(&block->data, room);
        if (spill_source_read(document_source->source, to, room, &got, &error) != SPILL_OK) {
            window->failed = true;
            window->ended = true;
            spill_document_source_report(
                document_source, window->offset + (int64_t)block->data.size, "%s", error.message);
        }
        window->ended = window->ended || got == 0;
        block->data.size += got;
    }
}

void spill_document_source_window_drop(spill_document_source_window_t *window, spill_block_t *block,
                                       size_t count)
{
    if (count == 0)
        return; /* an empty block has no data to move */
    memmove(block->data.data, block->data.data + count, block->data.size - count);
    block->data.size -= count;
    window->offset += (int64_t)count;
}

void spill_document_source_window_keep(spill_document_source_window_t *window, spill_block_t *block,
                                       size_t count)
{
    size_t left = block->data.size - count;
    spill_buffer_clear(&window->rest);
    if (left > 0)
        spill_buffer_append(&window->rest, block->data.data + count, left);
    block->data.size = count;
    window->offset += (int64_t)count;
}

bool spill_document_source_interrupted(const spill_document_source_t *document_source)
{
    return document_source->source && spill_source_check_stop(document_source->source);
}

bool spill_document_source_has_no_size(const spill_document_source_t *document_source)
{
    return spill_source_size(document_source->source) < 0 ||
           strcmp(document_source->name, "stdin") == 0;
}
