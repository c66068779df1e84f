/* Extended JSON: a document a line, or documents one after the other. */
#include "tools/scan/feed.h"

#include "util/error.h"

#include <bson/bson.h>
#include <string.h>

#define TEXT_BLOCK_BYTES (256 * 1024)

typedef struct text_feed {
    spill_feed_t base;
    spill_records_t *records;
    bool ended;
    bool begun; /* there was something */
} text_feed_t;

/* Messages of records begin with their place, which stands beside the problem already. */
static const char *without_place(const char *message, int64_t line)
{
    char number[24];
    int length = snprintf(number, sizeof number, ":%lld: ", (long long)line);
    const char *found = strstr(message, number);
    return found ? found + length : message;
}

static spill_code_t next(spill_feed_t *base, spill_block_t *block, spill_error_t *error)
{
    text_feed_t *feed = (text_feed_t *)base;
    while (!feed->ended && block->data.size < TEXT_BLOCK_BYTES) {
        spill_record_t record;
        bool more = false;
        int64_t line = spill_records_line(feed->records);
        spill_code_t code = spill_records_next(feed->records, &record, &feed->ended, &more, error);
        if (code == SPILL_OK && !feed->ended) {
            spill_block_add(block, block->data.size, record.size, record.line);
            spill_buffer_append(&block->data, record.data, record.size);
        } else if (code != SPILL_OK) {
            spill_feed_report(base, line, "%s", without_place(error->message, line));
            feed->ended = !more;
        }
        feed->begun = feed->begun || !feed->ended || code != SPILL_OK;
    }
    if (!feed->begun && spill_feed_has_no_size(base))
        spill_feed_report(base, -1, "there is no input");
    feed->begun = true;
    return SPILL_OK;
}

static void close_feed(spill_feed_t *base)
{
    text_feed_t *feed = (text_feed_t *)base;
    spill_records_close(feed->records);
    bson_free(feed);
}

static const spill_feed_ops_t OPS = {
    .next = next, .close = close_feed, .text = true, .by_line = true};

spill_code_t spill_feed_text(spill_source_t *source, spill_format_t format, spill_feed_t **feed,
                             spill_error_t *error)
{
    text_feed_t *made = bson_malloc0(sizeof *made);
    made->base = (spill_feed_t){.ops = &OPS, .source = source, .name = spill_source_name(source)};
    *feed = &made->base;
    return spill_records_open(source, format, &made->records, error);
}
