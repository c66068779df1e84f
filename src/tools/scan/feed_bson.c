/* Documents one after the other, as mongodump writes them. */
#include "tools/scan/feed.h"

#include "util/error.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <string.h>

typedef struct bson_feed {
    spill_feed_t base;
    spill_feed_window_t window;
    bool some;    /* a document was found */
    bool without; /* ... and one whose first field is not _id */
    bool told;    /* that the input is empty */
} bson_feed_t;

static uint32_t length_at(const spill_block_t *block, size_t at)
{
    uint32_t value;
    memcpy(&value, block->data.data + at, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

/* Has every document so far begun with its _id? */
static bool ids_first(const bson_feed_t *feed)
{
    return feed->some && !feed->without;
}

/* There is no document at the block's begin: look for the next one. */
static void find_next(bson_feed_t *feed, spill_block_t *block, const char *what)
{
    int64_t damaged = feed->window.offset;
    size_t from = 1;
    for (;;) {
        size_t at, wanted;
        bool found = spill_feed_find(block->data.data, block->data.size, from, feed->window.ended,
                                     ids_first(feed), &at, &wanted);
        if (found || feed->window.ended) {
            spill_feed_window_drop(&feed->window, block, found ? at : block->data.size);
            break;
        }
        if (at >= SPILL_BLOCK_BYTES && at >= block->data.size / 2) {
            spill_feed_window_drop(&feed->window, block, at);
            at = 0;
        }
        from = at;
        spill_feed_window_fill(&feed->base, &feed->window, block,
                               at + (wanted > 0 ? wanted : SPILL_BLOCK_BYTES));
    }
    if (!feed->window.failed || block->data.size > 0)
        spill_feed_report(&feed->base, damaged, "%s; %" PRId64 " bytes are passed over", what,
                          feed->window.offset - damaged);
}

/* The document that begins at the block's first byte is not all there. */
static void find_after_cut(bson_feed_t *feed, spill_block_t *block, uint32_t length)
{
    char what[96];
    snprintf(what, sizeof what, "the document is cut off: of %" PRIu32 " bytes %zu are there",
             length, block->data.size);
    find_next(feed, block, what);
}

/* Do the document's fields end where it does? What is in them is not looked at. O(fields). */
static bool fields_fit(const uint8_t *data, size_t length)
{
    bson_iter_t iter;
    if (!bson_iter_init_from_data(&iter, data, length))
        return false;
    while (bson_iter_next(&iter))
        ;
    return iter.err_off == 0;
}

/*
 * Is the length of the document at `at` to be believed? It is where another document follows, or
 * where it is that of the document's fields. *wanted as of spill_feed_look, from `at` on.
 */
static spill_feed_sight_t judge(const bson_feed_t *feed, const spill_block_t *block, size_t at,
                                uint32_t length, size_t *wanted)
{
    const uint8_t *here = block->data.data + at;
    const uint8_t *behind = here + length;
    size_t left = block->data.size - at - length;
    if (here[length - 1] != 0)
        return SPILL_FEED_NO;
    bool end = left == 0 && feed->window.ended;
    if (end || spill_feed_two(behind, left) || fields_fit(here, length))
        return SPILL_FEED_YES;
    spill_feed_sight_t sight =
        spill_feed_look(behind, left, feed->window.ended, ids_first(feed), wanted);
    *wanted += length;
    return sight;
}

static void add(bson_feed_t *feed, spill_block_t *block, size_t at, uint32_t length)
{
    const uint8_t *data = block->data.data + at;
    feed->some = true;
    feed->without = feed->without || length < 9 || memcmp(data + 5, "_id", 4) != 0;
    spill_block_add(block, at, length, feed->window.offset + (int64_t)at);
}

/* Cut the block into documents. False: there is none at its begin, and something was done. */
static bool cut(bson_feed_t *feed, spill_block_t *block)
{
    size_t at = 0;
    while (at < block->data.size) {
        size_t left = block->data.size - at;
        if (left < 4 && !feed->window.ended)
            break;
        uint32_t length = left < 4 ? 0 : length_at(block, at);
        bool good = length >= 5 && length <= SPILL_DOCUMENT_BYTES_MAX;
        bool whole = good && length <= left;
        size_t wanted = length;
        spill_feed_sight_t sight = whole ? judge(feed, block, at, length, &wanted)
                                   : good && !feed->window.ended ? SPILL_FEED_CANNOT_TELL
                                                                 : SPILL_FEED_NO;
        if (sight == SPILL_FEED_YES) {
            add(feed, block, at, length);
            at += length;
            continue;
        }
        if (block->count > 0)
            break; /* what is good first */
        if (sight == SPILL_FEED_CANNOT_TELL)
            spill_feed_window_fill(&feed->base, &feed->window, block, wanted);
        else if (good && !whole)
            find_after_cut(feed, block, length);
        else
            find_next(feed, block, "this is not a BSON document");
        return false;
    }
    spill_feed_window_keep(&feed->window, block, at);
    return true;
}

/* There was not a byte. Of a file with a size that is known before, and may be meant. */
static void tell_nothing(bson_feed_t *feed)
{
    if (spill_feed_has_no_size(&feed->base) && !feed->window.failed && !feed->told)
        spill_feed_report(&feed->base, -1, "there is no input");
    feed->told = true;
}

static spill_code_t next(spill_feed_t *base, spill_block_t *block, spill_error_t *error)
{
    (void)error; /* what cannot be read is reported, and is the end */
    bson_feed_t *feed = (bson_feed_t *)base;
    spill_feed_window_begin(&feed->window, block);
    do {
        spill_feed_window_fill(&feed->base, &feed->window, block, SPILL_BLOCK_BYTES);
    } while (!cut(feed, block));
    if (block->data.size == 0 && feed->window.offset == 0)
        tell_nothing(feed);
    return SPILL_OK;
}

static void close_feed(spill_feed_t *base)
{
    bson_feed_t *feed = (bson_feed_t *)base;
    spill_buffer_release(&feed->window.rest);
    bson_free(feed);
}

static const spill_feed_ops_t OPS = {.next = next, .close = close_feed};

spill_code_t spill_feed_bson(spill_source_t *source, spill_feed_t **feed, spill_error_t *error)
{
    (void)error;
    bson_feed_t *made = bson_malloc0(sizeof *made);
    made->base = (spill_feed_t){.ops = &OPS, .source = source, .name = spill_source_name(source)};
    *feed = &made->base;
    return SPILL_OK;
}
