/* Documents in sequence, as mongodump writes them. */
#include "tools/scan/document_source.h"

#include "util/error.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <string.h>

typedef struct bson_source {
    spill_document_source_t base;
    spill_document_source_window_t window;
    spill_resync_t *resync; /* NULL before the first damage */
    int64_t lost_from;      /* the start of the damage that is being skipped, or NOWHERE */
    char lost[96];          /* what was wrong there */
    int64_t measured_to;    /* fields before this place were measured once without a match */
    bool some;              /* a document was found */
    bool without;           /* a document was found that does not begin with _id */
    bool told;              /* it was reported that the input is empty */
} bson_source_t;

#define NOWHERE INT64_C(-1)

static uint32_t length_at(const spill_block_t *block, size_t at)
{
    uint32_t value;
    memcpy(&value, block->data.data + at, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

static spill_resync_view_t view_of(const bson_source_t *document_source, const spill_block_t *block)
{
    return (spill_resync_view_t){.data = block->data.data,
                                 .size = block->data.size,
                                 .offset = document_source->window.offset,
                                 .ended = document_source->window.ended,
                                 .ids = document_source->some && !document_source->without};
}

static spill_resync_t *resync_of(bson_source_t *document_source)
{
    if (!document_source->resync)
        document_source->resync = spill_resync_new();
    return document_source->resync;
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* No document begins at `at`: begin to skip bytes up to the next one. */
static void begin_loss(bson_source_t *document_source, const spill_block_t *block, size_t at,
                       bool cut_off)
{
    size_t left = block->data.size - at;
    document_source->lost_from = document_source->window.offset + (int64_t)at;
    if (cut_off)
        snprintf(document_source->lost, sizeof document_source->lost,
                 "the document is cut off: %" PRIu32 " bytes expected, %zu found",
                 length_at(block, at), left);
    else
        strcpy(document_source->lost, "this is not a BSON document");
}

/* End the damage: the next document, or the end of the input, is at `at`. */
static void end_loss(bson_source_t *document_source, const spill_block_t *block, size_t at)
{
    int64_t place = document_source->window.offset + (int64_t)at;
    if (!document_source->window.failed || at < block->data.size)
        spill_document_source_report(&document_source->base, document_source->lost_from,
                                     "%s; %" PRId64 " bytes are skipped", document_source->lost,
                                     place - document_source->lost_from);
    document_source->lost_from = NOWHERE;
}

static spill_sight_t skip_damage(bson_source_t *document_source, const spill_block_t *block,
                                 size_t *at, size_t *wanted)
{
    spill_resync_view_t view = view_of(document_source, block);
    spill_sight_t sight = spill_resync_find(resync_of(document_source), &view, at, wanted);
    if (sight != SPILL_SIGHT_CANNOT_TELL)
        end_loss(document_source, block, *at);
    return sight;
}

/* ---- documents ------------------------------------------------------------------------------- */

/*
 * Report whether the document's fields end at its end. Their contents are not checked. Each byte is
 * measured once in this way; after that the search remembers what it has measured.
 */
static bool fields_fit(bson_source_t *document_source, const spill_resync_view_t *view, size_t at,
                       size_t length)
{
    size_t passed;
    if (view->offset + (int64_t)at < document_source->measured_to)
        return spill_resync_whole(resync_of(document_source), view, at, length);
    bool fit = spill_resync_fits(view, at, length, &passed);
    document_source->window.work += (int64_t)(passed - at);
    if (!fit)
        document_source->measured_to = view->offset + (int64_t)passed;
    return fit;
}

/*
 * Check the length of the document at `at`. It is right if another document follows, or if the
 * document's fields end there. *wanted: as for spill_resync_look, from `at` on.
 */
static spill_sight_t check_length(bson_source_t *document_source, const spill_block_t *block,
                                  size_t at, uint32_t length, size_t *wanted)
{
    spill_resync_view_t view = view_of(document_source, block);
    const uint8_t *here = view.data + at;
    size_t left = view.size - at - length;
    if (here[length - 1] != 0)
        return SPILL_SIGHT_NO;
    bool end = left == 0 && view.ended;
    if (end || spill_resync_two(here + length, left) ||
        fields_fit(document_source, &view, at, length))
        return SPILL_SIGHT_YES;
    spill_sight_t sight = spill_resync_look(resync_of(document_source), &view, at + length, wanted);
    *wanted += length;
    return sight;
}

static void add_document(bson_source_t *document_source, spill_block_t *block, size_t at,
                         uint32_t length)
{
    const uint8_t *data = block->data.data + at;
    document_source->some = true;
    document_source->without =
        document_source->without || length < 9 || memcmp(data + 5, "_id", 4) != 0;
    spill_block_add(block, at, length, document_source->window.offset + (int64_t)at);
}

/* Add the document at *at to the block. NO at the end of the input; YES also after damage. */
static spill_sight_t take_document(bson_source_t *document_source, spill_block_t *block, size_t *at,
                                   size_t *wanted)
{
    size_t left = block->data.size - *at;
    *wanted = sizeof(uint32_t);
    document_source->window.work++;
    if (left < sizeof(uint32_t) && !document_source->window.ended)
        return SPILL_SIGHT_CANNOT_TELL;
    if (left == 0)
        return SPILL_SIGHT_NO;
    uint32_t length = left < sizeof(uint32_t) ? 0 : length_at(block, *at);
    bool good = length >= 5 && length <= SPILL_SCAN_DOCUMENT_BYTES_MAX;
    bool whole = good && length <= left;
    *wanted = length;
    if (good && !whole && !document_source->window.ended)
        return SPILL_SIGHT_CANNOT_TELL;
    spill_sight_t sight =
        whole ? check_length(document_source, block, *at, length, wanted) : SPILL_SIGHT_NO;
    if (sight == SPILL_SIGHT_CANNOT_TELL)
        return sight;
    if (sight == SPILL_SIGHT_YES)
        add_document(document_source, block, *at, length);
    else
        begin_loss(document_source, block, *at, good && !whole);
    *at += sight == SPILL_SIGHT_YES ? length : 1;
    return SPILL_SIGHT_YES;
}

/*
 * Make room for more bytes behind `at`: remove the bytes before it, unless they are the block's
 * documents. At least half of the block is consumed then, so each byte moves at most twice on
 * average. False: the caller must return the block first.
 */
static bool read_more(bson_source_t *document_source, spill_block_t *block, size_t *at,
                      size_t wanted)
{
    if (block->count > 0 && *at >= block->data.size / 2)
        return false;
    if (block->count == 0 && *at >= SPILL_BLOCK_BYTES && *at >= block->data.size / 2) {
        spill_document_source_window_drop(&document_source->window, block, *at);
        *at = 0;
    }
    size_t size = *at + wanted;
    if (wanted > 0) /* read more than was requested, so that small requests cause fewer reads */
        spill_document_source_window_fill(&document_source->base, &document_source->window, block,
                                          size > SPILL_BLOCK_BYTES ? size + SPILL_BLOCK_BYTES
                                                                   : SPILL_BLOCK_BYTES);
    return true;
}

/* Cut the block into documents, and skip everything else. */
static void cut_block(bson_source_t *document_source, spill_block_t *block)
{
    size_t at = 0;
    for (;;) {
        size_t wanted = 0;
        spill_sight_t sight = document_source->lost_from == NOWHERE
                                  ? take_document(document_source, block, &at, &wanted)
                                  : skip_damage(document_source, block, &at, &wanted);
        if (sight == SPILL_SIGHT_NO)
            break;
        if (sight == SPILL_SIGHT_YES)
            continue;
        if (spill_document_source_interrupted(&document_source->base)) {
            document_source->window.ended = true;
            break;
        }
        if (!read_more(document_source, block, &at, wanted))
            break;
    }
    spill_document_source_window_keep(&document_source->window, block, at);
}

/* Report an empty pipe. A file's size is known before, and it may be empty on purpose. */
static void report_empty(bson_source_t *document_source)
{
    if (spill_document_source_has_no_size(&document_source->base) &&
        !document_source->window.failed && !document_source->told)
        spill_document_source_report(&document_source->base, -1, "there is no input");
    document_source->told = true;
}

static spill_code_t next_block(spill_document_source_t *base, spill_block_t *block,
                               spill_error_t *error)
{
    (void)error; /* a read error is reported as a problem, and ends the input */
    bson_source_t *document_source = (bson_source_t *)base;
    spill_document_source_window_begin(&document_source->window, block);
    spill_document_source_window_fill(&document_source->base, &document_source->window, block,
                                      SPILL_BLOCK_BYTES);
    cut_block(document_source, block);
    base->work = document_source->window.work;
    if (document_source->resync)
        base->work += spill_resync_work(document_source->resync);
    if (block->data.size == 0 && document_source->window.offset == 0)
        report_empty(document_source);
    return SPILL_OK;
}

static void close_source(spill_document_source_t *base)
{
    bson_source_t *document_source = (bson_source_t *)base;
    spill_buffer_release(&document_source->window.rest);
    spill_resync_free(document_source->resync);
    bson_free(document_source);
}

static const spill_document_source_ops_t OPS = {.next = next_block, .close = close_source};

spill_code_t spill_document_source_bson(spill_source_t *source,
                                        spill_document_source_t **document_source,
                                        spill_error_t *error)
{
    (void)error;
    bson_source_t *made = bson_malloc0(sizeof *made);
    made->base =
        (spill_document_source_t){.ops = &OPS, .source = source, .name = spill_source_name(source)};
    made->lost_from = NOWHERE;
    *document_source = &made->base;
    return SPILL_OK;
}
