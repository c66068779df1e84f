/* A collection of a server, by a cursor. */
#include "tools/scan/document_source.h"

#include "util/clock.h"

#include <bson/bson.h>

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
    spill_clock_sleep_us(NULL,
                         document_source->began_us + (int64_t)due_us - spill_clock_now_us(NULL));
}

static spill_code_t next_block(spill_document_source_t *base, spill_block_t *block,
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

static void close_source(spill_document_source_t *base)
{
    bson_free(base);
}

static const spill_document_source_ops_t OPS = {.next = next_block, .close = close_source};

spill_document_source_t *spill_document_source_server(spill_raw_reader_t *reader,
                                                      const char *collection, int64_t sample,
                                                      int64_t rate)
{
    server_source_t *made = bson_malloc0(sizeof *made);
    made->base = (spill_document_source_t){.ops = &OPS, .name = spill_raw_reader_place(reader)};
    made->reader = reader;
    made->rate = rate;
    made->began_us = spill_clock_now_us(NULL);
    spill_raw_reader_begin(reader, collection, sample);
    return &made->base;
}
