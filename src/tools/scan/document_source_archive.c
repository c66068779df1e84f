/*
 * A file that mongodump --archive makes: several collections in interleaved parts.
 *
 *   archive ::= magic prelude part*         magic: 0x8199e26d
 *   prelude ::= document* end               describes the collections
 *   part    ::= head document* end          head: {db, collection, EOF, CRC}
 *   end     ::= 0xffffffff
 *
 * If a part's head has EOF: true, the part has no documents and is its collection's last one; its
 * CRC is of all documents of the collection.
 */
#include "tools/scan/document_source.h"

#include "bson/value.h"
#include "tools/scan/paths.h"
#include "util/buffer.h"
#include "util/error.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT32_C(0x8199e26d)
#define END UINT32_MAX
#define NOWHERE SIZE_MAX
/* A part's head has at most this many bytes: heads within heads would take long to check. */
#define HEAD_BYTES 1024

typedef struct member {
    char *name;    /* "shop.products" */
    int64_t *work; /* of the source: comparing names adds to it */
    size_t index;
    char *metadata; /* or NULL */
    bool begun;     /* the archive has a part of it */
    bool ended;
    bool damaged; /* a part of it was damaged, and that was reported */
    uint64_t crc; /* of its documents so far */
} member_t;

typedef struct archive_source {
    spill_document_source_t base;
    spill_document_source_window_t window;
    spill_block_t held; /* bytes read; the first `begin` bytes are consumed */
    size_t begin;
    member_t **members; /* in the order in which the archive names them */
    size_t count;
    void *by_name; /* the same members, as a tree of search.h */
    size_t at;     /* the current part's member; NOWHERE: a head is next */
    bool started;  /* the prelude was read */
} archive_source_t;

static size_t left_of(const archive_source_t *document_source)
{
    return document_source->held.data.size - document_source->begin;
}

static const uint8_t *here(const archive_source_t *document_source)
{
    return document_source->held.data.data + document_source->begin;
}

static uint32_t number_at(const uint8_t *data)
{
    uint32_t value;
    memcpy(&value, data, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

static int64_t offset_of(const archive_source_t *document_source)
{
    return document_source->window.offset + (int64_t)document_source->begin;
}

/* Read until `wanted` bytes are available. False: the input ends before. */
static bool have(archive_source_t *document_source, size_t wanted)
{
    if (left_of(document_source) >= wanted)
        return true;
    if (document_source->begin >=
        document_source->held.data.size / 2) { /* so each byte moves at most twice on average */
        spill_document_source_window_drop(&document_source->window, &document_source->held,
                                          document_source->begin);
        document_source->begin = 0;
    }
    spill_document_source_window_fill(&document_source->base, &document_source->window,
                                      &document_source->held,
                                      document_source->begin + wanted + SPILL_BLOCK_BYTES);
    return left_of(document_source) >= wanted;
}

/* ---- collections ----------------------------------------------------------------------------- */

static void free_member(member_t *member)
{
    bson_free(member->name);
    bson_free(member->metadata);
    bson_free(member);
}

static int compare_names(const void *left, const void *right)
{
    const member_t *one = left, *other = right;
    ++*one->work;
    return strcmp(one->name, other->name);
}

/* Return the member with this name; add it if it is new. O(log members), for any names. */
static member_t *member_of(archive_source_t *document_source, const char *database,
                           const char *collection)
{
    member_t *made = bson_malloc0(sizeof *made);
    made->name = bson_strdup_printf("%s.%s", database, collection);
    made->work = &document_source->window.work;
    made->index = document_source->count;
    member_t **found = tsearch(made, &document_source->by_name, compare_names);
    if (!found)
        abort(); /* no memory, as in bson_malloc */
    if (*found != made) {
        free_member(made);
        return *found;
    }
    if ((made->index & (made->index - 1)) == 0) /* double at each power of two */
        document_source->members =
            bson_realloc(document_source->members, (2 * made->index + 1) * sizeof(member_t *));
    document_source->members[document_source->count++] = made;
    return made;
}

/* Compare the CRC of the collection's documents. Earlier versions of mongodump write none. */
static void check_crc(archive_source_t *document_source, const member_t *member, const bson_t *head)
{
    bson_iter_t iter;
    if (member->damaged || !bson_iter_init_find(&iter, head, "CRC") ||
        !BSON_ITER_HOLDS_INT64(&iter))
        return;
    uint64_t expected = (uint64_t)bson_iter_int64(&iter);
    if (expected != member->crc)
        spill_document_source_report(
            &document_source->base, offset_of(document_source),
            "the documents of %s are not those that were dumped: their CRC is "
            "%016" PRIx64 ", not %016" PRIx64,
            member->name, member->crc, expected);
}

/* Read a part's head. False: it is none. */
static bool read_head(archive_source_t *document_source, const uint8_t *data, uint32_t size)
{
    bson_t head;
    bson_iter_t iter;
    if (!spill_walk_check(data, size) || !bson_init_static(&head, data, size))
        return false;
    const char *database = spill_document_text(&head, "db", NULL);
    const char *collection = spill_document_text(&head, "collection", NULL);
    if (!database || !collection || !bson_iter_init_find(&iter, &head, "EOF"))
        return false;
    member_t *member = member_of(document_source, database, collection);
    document_source->at = member->index;
    member->begun = true;
    member->ended = bson_iter_as_bool(&iter);
    if (member->ended)
        check_crc(document_source, member, &head);
    return true;
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Skip a head's field of that name, with a text of at most `most` bytes. NULL: no such field. */
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
 * Report whether this is the end of a part with the next part's head behind it. mongodump writes
 * the names first, then EOF, and little else. Names are not read, so that heads within heads take
 * no longer. *work: add the bytes that are examined.
 */
static bool is_head(const uint8_t *data, size_t left, int64_t *work)
{
    enum { DATABASE_BYTES = 128, COLLECTION_BYTES = 512, OTHER_BYTES = 64 };
    static const uint8_t eof[] = {BSON_TYPE_BOOL, 'E', 'O', 'F', 0};
    ++*work;
    if (left < 12 || number_at(data) != END)
        return false;
    uint32_t size = number_at(data + 4);
    if (size < 5 || size > left - 4)
        return false;
    const uint8_t *end = data + 4 + size;
    const uint8_t *at = pass_text(data + 8, end, "db", DATABASE_BYTES);
    at = at ? pass_text(at, end, "collection", COLLECTION_BYTES) : NULL;
    bool names_fit = at && (size_t)(end - at) > sizeof eof && (size_t)(end - at) <= OTHER_BYTES &&
                     memcmp(at, eof, sizeof eof) == 0;
    *work += names_fit ? size : 0;
    return names_fit && spill_walk_check(data + 4, size);
}

/* Skip damage up to the next part. */
static void find_part(archive_source_t *document_source, const char *what)
{
    int64_t damaged = offset_of(document_source);
    bool found = false;
    do {
        bool more = have(document_source, HEAD_BYTES);
        const uint8_t *data = here(document_source);
        size_t last = more ? left_of(document_source) - HEAD_BYTES + 1 : left_of(document_source);
        size_t at = 0;
        while (at < last && !(found = is_head(data + at, left_of(document_source) - at,
                                              &document_source->window.work)))
            at++;
        document_source->begin += at;
    } while (!found && left_of(document_source) > 0 &&
             !spill_document_source_interrupted(&document_source->base));
    spill_document_source_report(&document_source->base, damaged,
                                 "%s; %" PRId64 " bytes are skipped", what,
                                 offset_of(document_source) - damaged);
    if (document_source->at != NOWHERE)
        document_source->members[document_source->at]->damaged = true;
    document_source->at = NOWHERE;
}

/* ---- parts ----------------------------------------------------------------------------------- */

typedef enum step { STEP_ON, STEP_BLOCK_DONE, STEP_DAMAGE } step_t;

/* Read what is next: a head, a document, or a part's end. */
static step_t read_next(archive_source_t *document_source, spill_block_t *block)
{
    uint32_t size = have(document_source, 4) ? number_at(here(document_source)) : 0;
    if (size == END) {
        document_source->begin += 4;
        document_source->at = NOWHERE;
        return block->count > 0 ? STEP_BLOCK_DONE : STEP_ON; /* a block has one collection */
    }
    uint32_t most = document_source->at == NOWHERE ? HEAD_BYTES : SPILL_SCAN_DOCUMENT_BYTES_MAX;
    if (size < 5 || size > most || !have(document_source, size))
        return STEP_DAMAGE;
    if (document_source->at == NOWHERE) {
        document_source->window.work += size;
        if (!read_head(document_source, here(document_source), size))
            return STEP_DAMAGE;
    } else if (here(document_source)[size - 1] == 0) {
        spill_block_add(block, block->data.size, size, offset_of(document_source));
        spill_buffer_append(&block->data, here(document_source), size);
        block->collection = document_source->at;
        document_source->window.work += size;
        member_t *member = document_source->members[document_source->at];
        member->crc = spill_crc64(member->crc, here(document_source), size);
    } else {
        return STEP_DAMAGE;
    }
    document_source->begin += size;
    return block->data.size < SPILL_BLOCK_BYTES ? STEP_ON : STEP_BLOCK_DONE;
}

/*
 * If a document of the prelude describes a collection, expect parts of it. Views have no parts, and
 * those of time series have another name.
 */
static void expect_member(archive_source_t *document_source, const uint8_t *data, uint32_t size)
{
    bson_t document;
    if (!spill_walk_check(data, size) || !bson_init_static(&document, data, size))
        return;
    const char *database = spill_document_text(&document, "db", NULL);
    const char *name = spill_document_text(&document, "collection", NULL);
    const char *type = spill_document_text(&document, "type", NULL);
    const char *metadata = spill_document_text(&document, "metadata", NULL);
    bool other = (type && *type && strcmp(type, "collection") != 0) ||
                 (metadata && strstr(metadata, "\"viewOn\""));
    if (!database || !name || other)
        return;
    member_t *member = member_of(document_source, database, name);
    if (!member->metadata)
        member->metadata = bson_strdup(metadata);
}

/* Read the prelude. */
static spill_code_t read_prelude(archive_source_t *document_source, spill_error_t *error)
{
    document_source->started = true;
    if (!have(document_source, 4) || number_at(here(document_source)) != MAGIC)
        return spill_fail(error, SPILL_PARSE, "this is no archive of mongodump");
    document_source->begin += 4;
    for (;;) {
        uint32_t size = have(document_source, 4) ? number_at(here(document_source)) : 0;
        if (size == END)
            break;
        if (size < 5 || size > SPILL_SCAN_DOCUMENT_BYTES_MAX || !have(document_source, size))
            return spill_fail(error, SPILL_PARSE,
                              "the archive's list of collections is damaged at byte %" PRId64,
                              offset_of(document_source));
        expect_member(document_source, here(document_source), size);
        document_source->begin += size;
    }
    document_source->begin += 4;
    return SPILL_OK;
}

/* Report the collections that are incomplete. */
static void check_ends(archive_source_t *document_source)
{
    for (size_t i = 0; i < document_source->count; i++) {
        member_t *member = document_source->members[i];
        if (!member->ended)
            spill_document_source_report(&document_source->base, offset_of(document_source),
                                         member->begun
                                             ? "the archive ends before the collection %s does"
                                             : "the archive does not have the collection %s",
                                         member->name);
        member->ended = true;
    }
}

static spill_code_t next_block(spill_document_source_t *base, spill_block_t *block,
                               spill_error_t *error)
{
    archive_source_t *document_source = (archive_source_t *)base;
    spill_code_t code = document_source->started ? SPILL_OK : read_prelude(document_source, error);
    if (code != SPILL_OK)
        return code;
    step_t step = STEP_ON;
    while (step != STEP_BLOCK_DONE && have(document_source, 1)) {
        step = read_next(document_source, block);
        if (step == STEP_DAMAGE && block->count > 0)
            break; /* return the good documents first */
        if (step == STEP_DAMAGE)
            find_part(document_source, document_source->window.ended
                                           ? "the archive is cut off or damaged"
                                           : "the archive is damaged");
    }
    if (block->count == 0)
        check_ends(document_source);
    base->work = document_source->window.work;
    return SPILL_OK;
}

static const char *collection(const spill_document_source_t *base, size_t index, bool *ended)
{
    const archive_source_t *document_source = (const archive_source_t *)base;
    *ended = index < document_source->count && document_source->members[index]->ended;
    return index < document_source->count ? document_source->members[index]->name : NULL;
}

static const char *metadata_of(const spill_document_source_t *base, size_t index)
{
    const archive_source_t *document_source = (const archive_source_t *)base;
    return index < document_source->count ? document_source->members[index]->metadata : NULL;
}

/* The tree borrows its members. */
static void keep_member(void *member)
{
    (void)member;
}

static void close_source(spill_document_source_t *base)
{
    archive_source_t *document_source = (archive_source_t *)base;
    tdestroy(document_source->by_name, keep_member);
    for (size_t i = 0; i < document_source->count; i++)
        free_member(document_source->members[i]);
    bson_free(document_source->members);
    spill_buffer_release(&document_source->window.rest);
    spill_block_release(&document_source->held);
    bson_free(document_source);
}

static const spill_document_source_ops_t OPS = {
    .next = next_block, .close = close_source, .collection = collection, .metadata = metadata_of};

spill_code_t spill_document_source_archive(spill_source_t *source,
                                           spill_document_source_t **document_source,
                                           spill_error_t *error)
{
    (void)error;
    archive_source_t *made = bson_malloc0(sizeof *made);
    made->base =
        (spill_document_source_t){.ops = &OPS, .source = source, .name = spill_source_name(source)};
    made->at = NOWHERE;
    *document_source = &made->base;
    return SPILL_OK;
}
