/* A collection of a server, by a cursor. */
#include "tools/scan/feed.h"

#include "util/clock.h"

#include <bson/bson.h>

#define BATCH_MAX 1000
#define PAUSES_PER_SECOND 10 /* so that a scan with a rate can be stopped soon */

typedef struct server_feed {
    spill_feed_t base;
    spill_browse_t *browse;
    int64_t rate; /* documents a second; 0: no bound */
    int64_t began_us;
    bool ended;
} server_feed_t;

/* Wait until so many documents are due. */
static void pace(const server_feed_t *feed)
{
    if (feed->rate == 0)
        return;
    double due_us = (double)feed->base.done * 1e6 / (double)feed->rate;
    spill_clock_sleep_us(NULL, feed->began_us + (int64_t)due_us - spill_clock_now_us(NULL));
}

static spill_code_t next(spill_feed_t *base, spill_block_t *block, spill_error_t *error)
{
    server_feed_t *feed = (server_feed_t *)base;
    size_t most = BATCH_MAX;
    if (feed->rate > 0 && feed->rate < BATCH_MAX * PAUSES_PER_SECOND)
        most = feed->rate < PAUSES_PER_SECOND ? 1 : (size_t)feed->rate / PAUSES_PER_SECOND;
    pace(feed);
    while (!feed->ended && block->count < most && block->data.size < SPILL_BLOCK_BYTES) {
        const uint8_t *data;
        uint32_t size;
        if (spill_browse_next(feed->browse, &data, &size, error) != SPILL_OK)
            spill_feed_report(base, -1, "%s", error->message);
        feed->ended = data == NULL;
        if (feed->ended)
            break;
        spill_block_add(block, block->data.size, size, base->done++);
        spill_buffer_append(&block->data, data, size);
    }
    return SPILL_OK;
}

static void close_feed(spill_feed_t *base)
{
    bson_free(base);
}

static const spill_feed_ops_t OPS = {.next = next, .close = close_feed};

spill_feed_t *spill_feed_server(spill_browse_t *browse, const char *collection, int64_t sample,
                                int64_t rate)
{
    server_feed_t *made = bson_malloc0(sizeof *made);
    made->base = (spill_feed_t){.ops = &OPS, .name = spill_browse_place(browse)};
    made->browse = browse;
    made->rate = rate;
    made->began_us = spill_clock_now_us(NULL);
    spill_browse_begin(browse, collection, sample);
    return &made->base;
}
