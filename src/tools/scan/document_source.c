/* Document sources, and the small ones: Extended JSON, and a collection of a server by a cursor. */
#include "tools/scan/document_source.h"

#include "util/clock.h"
#include "util/error.h"

#include <bson/bson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KEEP_BYTES (16 * 1024 * 1024) /* free memory of blocks beyond, which few inputs need */

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
    window->work += (int64_t)window->rest.size;
    if (window->rest.capacity > KEEP_BYTES)
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
        window->work += (int64_t)got;
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
    window->work += (int64_t)block->data.size;
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
    window->work += (int64_t)left;
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

/* ---- Extended JSON: one document per line, or documents in sequence -------------------------- */

#define TEXT_BLOCK_BYTES (256 * 1024)

typedef struct text_source {
    spill_document_source_t base;
    spill_records_t *records;
    bool ended;
    bool begun; /* the input was not empty */
} text_source_t;

/* Messages of records begin with their place; the problem names it already. */
static const char *without_place(const char *message, int64_t line)
{
    char number[24];
    int length = snprintf(number, sizeof number, ":%lld: ", (long long)line);
    const char *found = strstr(message, number);
    return found ? found + length : message;
}

static spill_code_t next_texts(spill_document_source_t *base, spill_block_t *block,
                               spill_error_t *error)
{
    text_source_t *document_source = (text_source_t *)base;
    while (!document_source->ended && block->data.size < TEXT_BLOCK_BYTES) {
        spill_input_record_t record;
        bool more = false;
        int64_t line = spill_records_line(document_source->records);
        spill_code_t code = spill_records_next(document_source->records, &record,
                                               &document_source->ended, &more, error);
        if (code == SPILL_OK && !document_source->ended) {
            spill_block_add(block, block->data.size, record.size, record.line);
            spill_buffer_append(&block->data, record.data, record.size);
        } else if (code != SPILL_OK) {
            spill_document_source_report(base, line, "%s", without_place(error->message, line));
            document_source->ended = !more;
        }
        document_source->begun =
            document_source->begun || !document_source->ended || code != SPILL_OK;
    }
    if (!document_source->begun && spill_document_source_has_no_size(base))
        spill_document_source_report(base, -1, "there is no input");
    document_source->begun = true;
    return SPILL_OK;
}

static void close_text_source(spill_document_source_t *base)
{
    text_source_t *document_source = (text_source_t *)base;
    spill_records_close(document_source->records);
    bson_free(document_source);
}

static const spill_document_source_ops_t TEXT_OPS = {
    .next = next_texts, .close = close_text_source, .text = true, .by_line = true};

spill_code_t spill_document_source_text(spill_source_t *source, spill_format_t format,
                                        spill_document_source_t **document_source,
                                        spill_error_t *error)
{
    text_source_t *made = bson_malloc0(sizeof *made);
    made->base = (spill_document_source_t){
        .ops = &TEXT_OPS, .source = source, .name = spill_source_name(source)};
    *document_source = &made->base;
    return spill_records_open(source, format, &made->records, error);
}

/* ---- a collection of a server, by a cursor --------------------------------------------------- */

#define BATCH_MAX 1000
#define PAUSES_PER_SECOND 10 /* so that a slow scan can be stopped soon */

typedef struct server_source {
    spill_document_source_t base;
    spill_raw_reader_t *reader;
    int64_t rate; /* documents per second; 0: not limited */
    int64_t began_us;
    bool ended;
} server_source_t;

/* Wait until the rate allows the next documents. */
static void wait_for_rate(const server_source_t *document_source)
{
    if (document_source->rate == 0)
        return;
    double due_us = (double)document_source->base.done * 1e6 / (double)document_source->rate;
    spill_clock_sleep_us(NULL, document_source->began_us + (int64_t)due_us -
                                   spill_clock_monotonic_us(NULL));
}

static spill_code_t next_from_server(spill_document_source_t *base, spill_block_t *block,
                                     spill_error_t *error)
{
    server_source_t *document_source = (server_source_t *)base;
    size_t most = BATCH_MAX;
    if (document_source->rate > 0 && document_source->rate < BATCH_MAX * PAUSES_PER_SECOND)
        most = document_source->rate < PAUSES_PER_SECOND
                   ? 1
                   : (size_t)document_source->rate / PAUSES_PER_SECOND;
    wait_for_rate(document_source);
    while (!document_source->ended && block->count < most && block->data.size < SPILL_BLOCK_BYTES) {
        const uint8_t *data;
        uint32_t size;
        if (spill_raw_reader_next(document_source->reader, &data, &size, error) != SPILL_OK)
            spill_document_source_report(base, -1, "%s", error->message);
        document_source->ended = data == NULL;
        if (document_source->ended)
            break;
        spill_block_add(block, block->data.size, size, base->done++);
        spill_buffer_append(&block->data, data, size);
    }
    return SPILL_OK;
}

static void close_server_source(spill_document_source_t *base)
{
    bson_free(base);
}

static const spill_document_source_ops_t SERVER_OPS = {.next = next_from_server,
                                                       .close = close_server_source};

spill_document_source_t *spill_document_source_server(spill_raw_reader_t *reader,
                                                      const char *collection, int64_t sample,
                                                      int64_t rate)
{
    server_source_t *made = bson_malloc0(sizeof *made);
    made->base =
        (spill_document_source_t){.ops = &SERVER_OPS, .name = spill_raw_reader_place(reader)};
    made->reader = reader;
    made->rate = rate;
    made->began_us = spill_clock_monotonic_us(NULL);
    spill_raw_reader_begin(reader, collection, sample);
    return &made->base;
}
