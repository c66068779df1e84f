/*
 * A file that mongodump --archive makes: several collections, in parts that take turns.
 *
 *   archive ::= magic prelude part*         magic: 0x8199e26d
 *   prelude ::= document* end               what the collections are
 *   part    ::= head document* end          head: {db, collection, EOF, CRC}
 *   end     ::= 0xffffffff
 *
 * A part whose head says EOF has no documents, and is its collection's last; its CRC is that of all
 * of the collection's documents.
 */
#include "tools/scan/feed.h"
#include "tools/scan/resync.h"

#include "tools/scan/walk.h"
#include "util/crc64.h"
#include "util/error.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <string.h>

#define MAGIC UINT32_C(0x8199e26d)
#define END UINT32_MAX
#define NOWHERE SIZE_MAX

typedef struct member {
    char *name;     /* "shop.products" */
    char *metadata; /* or NULL */
    bool begun;     /* a part of it was there */
    bool ended;
    bool damaged; /* what could not be read in its parts was told */
    uint64_t crc; /* of its documents so far */
} member_t;

typedef struct archive_feed {
    spill_feed_t base;
    spill_feed_window_t window;
    spill_block_t held; /* what was read; its first `begin` bytes are done with */
    size_t begin;
    member_t *members;
    size_t count;
    size_t at;    /* whose part this is, or NOWHERE: a head comes */
    bool started; /* the prelude was passed */
} archive_feed_t;

static size_t left_of(const archive_feed_t *feed)
{
    return feed->held.data.size - feed->begin;
}

static const uint8_t *here(const archive_feed_t *feed)
{
    return feed->held.data.data + feed->begin;
}

static uint32_t number_at(const uint8_t *data)
{
    uint32_t value;
    memcpy(&value, data, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

static int64_t offset_of(const archive_feed_t *feed)
{
    return feed->window.offset + (int64_t)feed->begin;
}

/* Are there so many bytes? They are read where they are not. */
static bool have(archive_feed_t *feed, size_t wanted)
{
    if (left_of(feed) >= wanted)
        return true;
    if (feed->begin >= feed->held.data.size / 2) { /* a byte is moved twice at most on average */
        spill_feed_window_drop(&feed->window, &feed->held, feed->begin);
        feed->begin = 0;
    }
    spill_feed_window_fill(&feed->base, &feed->window, &feed->held,
                           feed->begin + wanted + SPILL_BLOCK_BYTES);
    return left_of(feed) >= wanted;
}

/* ---- collections ----------------------------------------------------------------------------- */

static size_t member_of(archive_feed_t *feed, const char *database, const char *collection)
{
    char *name = bson_strdup_printf("%s.%s", database, collection);
    for (size_t i = 0; i < feed->count; i++) {
        if (strcmp(feed->members[i].name, name) == 0) {
            bson_free(name);
            return i;
        }
    }
    feed->members = bson_realloc(feed->members, (feed->count + 1) * sizeof *feed->members);
    feed->members[feed->count] = (member_t){.name = name};
    return feed->count++;
}

static const char *text_in(const bson_t *document, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) && BSON_ITER_HOLDS_UTF8(&iter)
               ? bson_iter_utf8(&iter, NULL)
               : NULL;
}

/* Are its documents those that were dumped? Earlier versions of mongodump do not say. */
static void check_crc(archive_feed_t *feed, const member_t *member, const bson_t *head)
{
    bson_iter_t iter;
    if (member->damaged || !bson_iter_init_find(&iter, head, "CRC") ||
        !BSON_ITER_HOLDS_INT64(&iter))
        return;
    uint64_t expected = (uint64_t)bson_iter_int64(&iter);
    if (expected != member->crc)
        spill_feed_report(&feed->base, offset_of(feed),
                          "the documents of %s are not those that were dumped: their CRC is "
                          "%016" PRIx64 ", and was %016" PRIx64,
                          member->name, member->crc, expected);
}

/* A part's head: false where it is none. */
static bool read_head(archive_feed_t *feed, const uint8_t *data, uint32_t size)
{
    bson_t head;
    bson_iter_t iter;
    if (!spill_walk_check(data, size) || !bson_init_static(&head, data, size))
        return false;
    const char *database = text_in(&head, "db");
    const char *collection = text_in(&head, "collection");
    if (!database || !collection || !bson_iter_init_find(&iter, &head, "EOF"))
        return false;
    feed->at = member_of(feed, database, collection);
    member_t *member = &feed->members[feed->at];
    member->begun = true;
    member->ended = bson_iter_as_bool(&iter);
    if (member->ended)
        check_crc(feed, member, &head);
    return true;
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Behind a head's field of that name, a text of at most `most` bytes; NULL: it is not there. */
static const uint8_t *pass_text(const uint8_t *at, const uint8_t *end, const char *name,
                                size_t most)
{
    size_t before = 1 + strlen(name) + 1; /* type and name */
    size_t left = (size_t)(end - at);
    if (left < before + 4 || at[0] != BSON_TYPE_UTF8 || memcmp(at + 1, name, before - 1) != 0)
        return NULL;
    uint32_t size = number_at(at + before);
    if (size == 0 || size > most || size > left - before - 4 || at[before + 3 + size] != 0)
        return NULL;
    return at + before + 4 + size;
}

/*
 * Is this the end of a part, with another one's head behind it? mongodump writes the names first,
 * then EOF, and little else. Names are not looked into, so that heads in heads take no longer.
 */
static bool is_head(const uint8_t *data, size_t left)
{
    enum { DATABASE_BYTES = 128, COLLECTION_BYTES = 512, OTHER_BYTES = 64 };
    static const uint8_t eof[] = {BSON_TYPE_BOOL, 'E', 'O', 'F', 0};
    if (left < 12 || number_at(data) != END)
        return false;
    uint32_t size = number_at(data + 4);
    if (size < 5 || size > left - 4)
        return false;
    const uint8_t *end = data + 4 + size;
    const uint8_t *at = pass_text(data + 8, end, "db", DATABASE_BYTES);
    at = at ? pass_text(at, end, "collection", COLLECTION_BYTES) : NULL;
    return at && (size_t)(end - at) > sizeof eof && (size_t)(end - at) <= OTHER_BYTES &&
           memcmp(at, eof, sizeof eof) == 0 && spill_walk_check(data + 4, size);
}

/* Nothing can be read here: look for the next part. */
static void find_part(archive_feed_t *feed, const char *what)
{
    enum { HEAD_BYTES = 1024 }; /* what a head may have, and is to be seen whole */
    int64_t damaged = offset_of(feed);
    bool found = false;
    do {
        bool more = have(feed, HEAD_BYTES);
        const uint8_t *data = here(feed);
        size_t last = more ? left_of(feed) - HEAD_BYTES + 1 : left_of(feed);
        size_t at = 0;
        while (at < last && !(found = is_head(data + at, left_of(feed) - at)))
            at++;
        feed->begin += at;
    } while (!found && left_of(feed) > 0 && !spill_feed_interrupted(&feed->base));
    spill_feed_report(&feed->base, damaged, "%s; %" PRId64 " bytes are passed over", what,
                      offset_of(feed) - damaged);
    if (feed->at != NOWHERE)
        feed->members[feed->at].damaged = true;
    feed->at = NOWHERE;
}

/* ---- parts ----------------------------------------------------------------------------------- */

typedef enum step { STEP_ON, STEP_BLOCK_DONE, STEP_DAMAGE } step_t;

/* What stands here: a head, a document, or a part's end. */
static step_t take(archive_feed_t *feed, spill_block_t *block)
{
    uint32_t size = have(feed, 4) ? number_at(here(feed)) : 0;
    if (size == END) {
        feed->begin += 4;
        feed->at = NOWHERE;
        return block->count > 0 ? STEP_BLOCK_DONE : STEP_ON; /* a block is of one collection */
    }
    if (size < 5 || size > SPILL_SCAN_DOCUMENT_BYTES_MAX || !have(feed, size))
        return STEP_DAMAGE;
    if (feed->at == NOWHERE) {
        if (!read_head(feed, here(feed), size))
            return STEP_DAMAGE;
    } else if (here(feed)[size - 1] == 0) {
        spill_block_add(block, block->data.size, size, offset_of(feed));
        spill_buffer_append(&block->data, here(feed), size);
        block->collection = feed->at;
        feed->members[feed->at].crc = spill_crc64(feed->members[feed->at].crc, here(feed), size);
    } else {
        return STEP_DAMAGE;
    }
    feed->begin += size;
    return block->data.size < SPILL_BLOCK_BYTES ? STEP_ON : STEP_BLOCK_DONE;
}

/*
 * A document of the prelude may be a collection's, of which there will be parts: there are none of
 * views, and those of time series have another name.
 */
static void expect_member(archive_feed_t *feed, const uint8_t *data, uint32_t size)
{
    bson_t document;
    if (!spill_walk_check(data, size) || !bson_init_static(&document, data, size))
        return;
    const char *database = text_in(&document, "db");
    const char *name = text_in(&document, "collection");
    const char *type = text_in(&document, "type");
    const char *metadata = text_in(&document, "metadata");
    bool other = (type && *type && strcmp(type, "collection") != 0) ||
                 (metadata && strstr(metadata, "\"viewOn\""));
    if (!database || !name || other)
        return;
    size_t index = member_of(feed, database, name);
    member_t *member = &feed->members[index];
    if (!member->metadata)
        member->metadata = bson_strdup(metadata);
}

/* Read what the archive says of itself. */
static spill_code_t start(archive_feed_t *feed, spill_error_t *error)
{
    feed->started = true;
    if (!have(feed, 4) || number_at(here(feed)) != MAGIC)
        return spill_fail(error, SPILL_PARSE, "this is no archive that mongodump makes");
    feed->begin += 4;
    for (;;) {
        uint32_t size = have(feed, 4) ? number_at(here(feed)) : 0;
        if (size == END)
            break;
        if (size < 5 || size > SPILL_SCAN_DOCUMENT_BYTES_MAX || !have(feed, size))
            return spill_fail(error, SPILL_PARSE,
                              "the archive's list of collections is damaged at byte %" PRId64,
                              offset_of(feed));
        expect_member(feed, here(feed), size);
        feed->begin += size;
    }
    feed->begin += 4;
    return SPILL_OK;
}

/* Which collections are not all there? */
static void check_ends(archive_feed_t *feed)
{
    for (size_t i = 0; i < feed->count; i++) {
        if (!feed->members[i].ended)
            spill_feed_report(&feed->base, offset_of(feed),
                              feed->members[i].begun
                                  ? "the archive ends before the collection %s does"
                                  : "the archive does not have the collection %s",
                              feed->members[i].name);
        feed->members[i].ended = true;
    }
}

static spill_code_t next(spill_feed_t *base, spill_block_t *block, spill_error_t *error)
{
    archive_feed_t *feed = (archive_feed_t *)base;
    spill_code_t code = feed->started ? SPILL_OK : start(feed, error);
    if (code != SPILL_OK)
        return code;
    step_t step = STEP_ON;
    while (step != STEP_BLOCK_DONE && have(feed, 1)) {
        step = take(feed, block);
        if (step == STEP_DAMAGE && block->count > 0)
            break; /* what is good first */
        if (step == STEP_DAMAGE)
            find_part(feed, feed->window.ended ? "the archive is cut off or damaged"
                                               : "the archive is damaged");
    }
    if (block->count == 0)
        check_ends(feed);
    return SPILL_OK;
}

static const char *collection(const spill_feed_t *base, size_t index, bool *ended)
{
    const archive_feed_t *feed = (const archive_feed_t *)base;
    *ended = index < feed->count && feed->members[index].ended;
    return index < feed->count ? feed->members[index].name : NULL;
}

static const char *metadata_of(const spill_feed_t *base, size_t index)
{
    const archive_feed_t *feed = (const archive_feed_t *)base;
    return index < feed->count ? feed->members[index].metadata : NULL;
}

static void close_feed(spill_feed_t *base)
{
    archive_feed_t *feed = (archive_feed_t *)base;
    for (size_t i = 0; i < feed->count; i++) {
        bson_free(feed->members[i].name);
        bson_free(feed->members[i].metadata);
    }
    bson_free(feed->members);
    spill_buffer_release(&feed->window.rest);
    spill_block_release(&feed->held);
    bson_free(feed);
}

static const spill_feed_ops_t OPS = {
    .next = next, .close = close_feed, .collection = collection, .metadata = metadata_of};

spill_code_t spill_feed_archive(spill_source_t *source, spill_feed_t **feed, spill_error_t *error)
{
    (void)error;
    archive_feed_t *made = bson_malloc0(sizeof *made);
    made->base = (spill_feed_t){.ops = &OPS, .source = source, .name = spill_source_name(source)};
    made->at = NOWHERE;
    *feed = &made->base;
    return SPILL_OK;
}
