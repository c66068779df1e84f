/* The parsing side of an import: a thread that reads the input ahead of the writer. */
#include "tools/import/import_chunk.h"

#include "store/content.h"
#include "tools/import/import_records.h"
#include "util/buffer.h"
#include "util/error.h"

#include <spillway/bucket.h>

#include <pthread.h>
#include <string.h>

#define CHUNKS 3
#define BASES_AT_ONCE 64
/*
 * A larger record has a chunk of its own, and is decoded only after all chunks before it were
 * applied. So memory holds the text and the document of at most one such record.
 */
#define LARGE_BYTES (1024 * 1024)

/* A record that was decoded. Some of its items are in no chunk yet. */
typedef struct pending {
    bool there;
    bson_t document;
    spill_input_item_t item;    /* the next one */
    spill_input_record_t place; /* offset and line; `data` is no longer valid */
    uint64_t hash;
    int64_t offset; /* the end of the record before it */
    int64_t line;
    int64_t end_offset;
    int64_t end_line;
} pending_t;

/*
 * An import of exported documents reads one document too many: the first of the next owner. It is
 * kept here, and begins the next record.
 */
typedef struct following {
    bool there;
    bson_t document;
    spill_input_record_t place;
    uint64_t hash;
    int64_t offset; /* where it begins */
    int64_t line;
} following_t;

struct spill_parser {
    spill_parser_options_t options;
    spill_input_t input;
    pending_t pending;
    following_t following;
    int64_t number;
    int64_t end_offset; /* of the previous chunk: where the next one begins */
    int64_t end_line;
    int64_t end_items;
    int64_t passed; /* items of the first record that earlier chunks have; then 0 */
    bool exact;     /* the first chunk has the end that is given in the options */
    int64_t skipped;
    spill_bases_reader_t *bases; /* or NULL */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    spill_chunk_t chunks[CHUNKS]; /* filled and applied in turn */
    size_t filled;                /* chunks ever filled, and ever returned */
    size_t returned;
    size_t handed_out; /* to the importing thread, which returns them */
    bool stop;
};

/* ---- the queue ------------------------------------------------------------------------------- */

static spill_chunk_t *wait_for_room(spill_parser_t *parser)
{
    pthread_mutex_lock(&parser->lock);
    while (!parser->stop && parser->filled - parser->returned == CHUNKS)
        pthread_cond_wait(&parser->changed, &parser->lock);
    spill_chunk_t *chunk = parser->stop ? NULL : &parser->chunks[parser->filled % CHUNKS];
    pthread_mutex_unlock(&parser->lock);
    return chunk;
}

static void wait_until_idle(spill_parser_t *parser)
{
    pthread_mutex_lock(&parser->lock);
    while (!parser->stop && parser->filled != parser->returned)
        pthread_cond_wait(&parser->changed, &parser->lock);
    pthread_mutex_unlock(&parser->lock);
}

static void raise_count(spill_parser_t *parser, size_t *count)
{
    pthread_mutex_lock(&parser->lock);
    (*count)++;
    pthread_cond_broadcast(&parser->changed);
    pthread_mutex_unlock(&parser->lock);
}

spill_chunk_t *spill_parser_next(spill_parser_t *parser)
{
    pthread_mutex_lock(&parser->lock);
    while (parser->handed_out == parser->filled)
        pthread_cond_wait(&parser->changed, &parser->lock);
    spill_chunk_t *chunk = &parser->chunks[parser->handed_out++ % CHUNKS];
    pthread_mutex_unlock(&parser->lock);
    return chunk;
}

void spill_parser_return(spill_parser_t *parser, spill_chunk_t *chunk)
{
    spill_chunk_clear(chunk);
    raise_count(parser, &parser->returned);
}

/* ---- filling a chunk ------------------------------------------------------------------------- */

static uint64_t mix_hash(uint64_t hash, uint64_t more)
{
    return (hash ^ more) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
}

/* The chunk ends at this place now: `items` of the record that begins there are in it. */
static void end_chunk_at(spill_chunk_t *chunk, int64_t offset, int64_t line, int64_t items)
{
    chunk->end_offset = offset;
    chunk->end_line = line;
    chunk->end_items = items;
}

/* End the input with this chunk and this result. */
static void end_input(spill_chunk_t *chunk, spill_code_t code, const spill_error_t *error)
{
    chunk->last = true;
    chunk->code = code;
    if (code != SPILL_OK)
        chunk->error = *error;
}

/* May a bad record be skipped? `more`: its end is known. */
static bool may_skip(const spill_parser_t *parser, bool more, spill_code_t code)
{
    return (code == SPILL_PARSE || code == SPILL_TOO_BIG) && more &&
           parser->skipped < parser->options.skip_max;
}

/* Report the bad record if it may be skipped; otherwise end the input with its error. */
static bool pass_bad(spill_parser_t *parser, spill_chunk_t *chunk, bool more, spill_code_t code,
                     const spill_error_t *error)
{
    if (!may_skip(parser, more, code)) {
        end_input(chunk, code, error);
        return false;
    }
    parser->skipped++;
    spill_chunk_add_bad(chunk, error->message);
    return true;
}

/* Skip a bad record if skip_max allows it and its end is known; otherwise end the input here. */
static bool skip_record(spill_parser_t *parser, spill_chunk_t *chunk, bool more, uint64_t hash,
                        spill_code_t code, const spill_error_t *error)
{
    if (!pass_bad(parser, chunk, more, code, error))
        return false;
    chunk->hash = mix_hash(chunk->hash, hash);
    end_chunk_at(chunk, spill_input_offset(&parser->input), spill_input_line(&parser->input), 0);
    return true;
}

/* The pending document is the one that was read last. */
static void note_place(spill_parser_t *parser, const spill_input_record_t *record, uint64_t hash)
{
    pending_t *pending = &parser->pending;
    pending->place = (spill_input_record_t){.offset = record->offset, .line = record->line};
    pending->hash = hash;
    pending->end_offset = spill_input_offset(&parser->input);
    pending->end_line = spill_input_line(&parser->input);
}

/*
 * Begin with the pending document, and check its items if it has several: then they are good or bad
 * together. After an error it is not pending.
 */
static spill_code_t begin_document(spill_parser_t *parser, const spill_input_record_t *record,
                                   uint64_t hash, spill_error_t *error)
{
    pending_t *pending = &parser->pending;
    spill_split_t *split = &parser->input.split;
    const bool has_array = parser->options.elements.array != NULL;
    bool storable = true;
    spill_code_t code = SPILL_OK;
    if (has_array)
        code = spill_input_check_items(&parser->input, &parser->options, &pending->document,
                                       &storable, error);
    if (code == SPILL_OK)
        code = spill_split_begin(split, &pending->document, error);
    if (code == SPILL_OK && !has_array && !spill_split_is_exported(split) &&
        pending->document.len > SPILL_DOCUMENT_BYTES_MAX)
        code = spill_fail(error, SPILL_TOO_BIG,
                          "the element has %u bytes, and a document holds at most 16 MiB",
                          pending->document.len);
    if (code != SPILL_OK) {
        bson_destroy(&pending->document);
        return spill_input_fail(&parser->input, record, has_array ? SPILL_PARSE : code, error);
    }
    pending->there = true;
    note_place(parser, record, hash);
    return SPILL_OK;
}

static spill_code_t decode_record(spill_parser_t *parser, const spill_input_record_t *record,
                                  spill_error_t *error)
{
    spill_code_t code =
        spill_decode(&parser->input.decoder, record, &parser->pending.document, error);
    if (code != SPILL_OK)
        return spill_input_fail(&parser->input, record, code, error);
    return begin_document(parser, record, spill_hash(record->data, record->size), error);
}

/* ---- documents of an export ------------------------------------------------------------------ */

/*
 * The owner's documents so far have no items left: read and decode the next document in their
 * place. *end: there is none.
 */
static spill_code_t read_behind(spill_parser_t *parser, spill_input_record_t *record, bool *end,
                                bool *more, spill_error_t *error)
{
    pending_t *pending = &parser->pending;
    SPILL_TRY(spill_input_next(&parser->input, record, end, more, error));
    if (*end)
        return SPILL_OK;
    *more = true;
    if (record->size > LARGE_BYTES)
        wait_until_idle(parser);
    bson_destroy(&pending->document);
    spill_code_t code = spill_decode(&parser->input.decoder, record, &pending->document, error);
    if (code == SPILL_OK)
        return SPILL_OK;
    bson_init(&pending->document);
    return spill_input_fail(&parser->input, record, code, error);
}

/* The owner's documents end here, behind bad pages that were skipped. */
static void end_behind(spill_parser_t *parser, int64_t offset, int64_t line)
{
    parser->pending.end_offset = offset;
    parser->pending.end_line = line;
}

/* The document that was read belongs to another owner: it is the next record. */
static void put_aside(spill_parser_t *parser, const spill_input_record_t *record, uint64_t hash,
                      int64_t offset, int64_t line)
{
    parser->following = (following_t){.there = true,
                                      .place = {.offset = record->offset, .line = record->line},
                                      .hash = hash,
                                      .offset = offset,
                                      .line = line};
    bson_steal(&parser->following.document, &parser->pending.document); /* it must not be copied */
    bson_init(&parser->pending.document);
    end_behind(parser, offset, line);
}

/*
 * Report pages of the owner that are missing before the pending document, or behind it. If that may
 * be skipped, the import continues with the pages that are there. False: the input ended with it.
 */
static bool report_lack(spill_parser_t *parser, spill_chunk_t *chunk, spill_code_t code,
                        spill_error_t *error)
{
    if (code == SPILL_OK)
        return true;
    spill_input_fail(&parser->input, &parser->pending.place, code, error);
    return pass_bad(parser, chunk, true, code, error);
}

/*
 * Read the page behind the owner's documents so far, if one follows (*joined). A bad one that may
 * be skipped is reported, and the owner's record ends behind it. False: the input ended with an
 * error.
 */
static bool join_page(spill_parser_t *parser, spill_chunk_t *chunk, bool *joined)
{
    spill_split_t *split = &parser->input.split;
    *joined = false;
    for (;;) {
        spill_error_t error;
        spill_input_record_t record;
        bool end = false, more = false;
        int64_t offset = spill_input_offset(&parser->input);
        int64_t line = spill_input_line(&parser->input);
        spill_code_t code = read_behind(parser, &record, &end, &more, &error);
        if (code == SPILL_OK && end) {
            end_behind(parser, offset, line);
            return true;
        }
        if (code == SPILL_OK) {
            uint64_t hash = spill_hash(record.data, record.size);
            code = spill_split_join(split, &parser->pending.document, joined, &error);
            if (code == SPILL_OK && *joined)
                note_place(parser, &record, hash);
            else if (code == SPILL_OK)
                put_aside(parser, &record, hash, offset, line);
            if (code == SPILL_OK && *joined)
                return report_lack(parser, chunk, spill_split_check_gap(split, &error), &error);
            if (code == SPILL_OK)
                return true;
            spill_input_fail(&parser->input, &record, code, &error);
        }
        if (!pass_bad(parser, chunk, more, code, &error))
            return false;
        spill_split_leave_out(split);
    }
}

static spill_code_t take_following(spill_parser_t *parser, uint64_t *hash, spill_error_t *error)
{
    following_t *following = &parser->following;
    *hash = following->hash;
    following->there = false;
    parser->pending.offset = following->offset;
    parser->pending.line = following->line;
    bson_steal(&parser->pending.document, &following->document);
    return begin_document(parser, &following->place, following->hash, error);
}

/* ---- records and items ----------------------------------------------------------------------- */

/*
 * Go to the pending record's next item. After the last one, the record is no longer pending, and
 * the chunk ends behind it. The items are good: begin_document or add_to_chunk has checked them.
 * False: the input ended with an error.
 */
static bool next_item(spill_parser_t *parser, spill_chunk_t *chunk)
{
    pending_t *pending = &parser->pending;
    spill_split_t *split = &parser->input.split;
    spill_error_t unused, error;
    bool more = true;
    while (more) {
        bool end = false, joined = false;
        if (spill_split_next(split, &pending->item, &end, &unused) == SPILL_OK && !end)
            return true;
        more = spill_split_is_exported(split) && !split->finished;
        if (more && !join_page(parser, chunk, &joined))
            return false;
        if (more && !joined &&
            !report_lack(parser, chunk, spill_split_check_end(split, &error), &error))
            return false;
        more = more && (joined || spill_split_finish(split));
    }
    if (split->items == 0)
        chunk->hash = mix_hash(chunk->hash, pending->hash);
    end_chunk_at(chunk, pending->end_offset, pending->end_line, 0);
    chunk->split += split->options->array != NULL;
    chunk->missing += split->missing;
    bson_destroy(&pending->document);
    pending->there = false;
    return true;
}

/* Read a record, and begin with it. *hash and *more: for skip_record, after an error. */
static spill_code_t begin_record(spill_parser_t *parser, bool *end, bool *more, uint64_t *hash,
                                 spill_error_t *error)
{
    spill_input_record_t record;
    *more = true;
    if (parser->following.there)
        return take_following(parser, hash, error);
    *more = false;
    parser->pending.offset = spill_input_offset(&parser->input);
    parser->pending.line = spill_input_line(&parser->input);
    SPILL_TRY(spill_input_next(&parser->input, &record, end, more, error));
    if (*end)
        return SPILL_OK;
    *more = true;
    if (record.size > LARGE_BYTES)
        wait_until_idle(parser);
    *hash = spill_hash(record.data, record.size);
    return decode_record(parser, &record, error);
}

/* Read the next good record. False: the input ended before one. */
static bool read_record(spill_parser_t *parser, spill_chunk_t *chunk)
{
    for (;;) {
        spill_error_t error;
        bool end = false, more = false;
        uint64_t hash = 0;
        spill_code_t code = begin_record(parser, &end, &more, &hash, &error);
        if (code == SPILL_OK && !end)
            return true;
        if (code == SPILL_OK) {
            end_input(chunk, SPILL_OK, NULL);
            return false;
        }
        if (!skip_record(parser, chunk, more, hash, code, &error))
            return false;
    }
}

/* Go to the first item of the next record that has one. False: the input ended before. */
static bool read_pending(spill_parser_t *parser, spill_chunk_t *chunk)
{
    while (!parser->pending.there) {
        if (!read_record(parser, chunk))
            return false;
        do {
            if (!next_item(parser, chunk))
                return false;
        } while (parser->pending.there && parser->input.split.items <= parser->passed);
        parser->passed = 0;
    }
    return true;
}

static spill_code_t add_to_chunk(spill_parser_t *parser, spill_chunk_t *chunk, spill_error_t *error)
{
    const pending_t *pending = &parser->pending;
    spill_input_item_t item = pending->item;
    if (spill_input_check(&parser->input, &parser->options, &item, error) != SPILL_OK)
        return error->code = SPILL_PARSE; /* whatever the reason, the record is bad */
    if (item.update)
        spill_chunk_add_update(chunk, &parser->options.bounds, &item.owner, item.update);
    else
        SPILL_TRY(spill_chunk_add(chunk, &parser->options.bounds, &item, parser->input.id.data,
                                  parser->input.id.size, error));
    chunk->full = chunk->full || item.element.size_bytes > LARGE_BYTES;
    chunk->record_line = pending->place.line;
    chunk->record_offset = pending->place.offset;
    chunk->hash = mix_hash(chunk->hash, pending->hash);
    end_chunk_at(chunk, pending->offset, pending->line, parser->input.split.items);
    return SPILL_OK;
}

/* Move the pending item into the chunk. False: it is bad and the input ends with it. */
static bool add_pending(spill_parser_t *parser, spill_chunk_t *chunk)
{
    pending_t *pending = &parser->pending;
    spill_error_t error;
    spill_code_t code = add_to_chunk(parser, chunk, &error);
    if (code == SPILL_OK)
        return next_item(parser, chunk);
    spill_input_fail(&parser->input, &pending->place, code, &error);
    if (spill_split_is_exported(&parser->input.split)) /* the owner's other items are good */
        return pass_bad(parser, chunk, true, code, &error) && next_item(parser, chunk);
    bson_destroy(&pending->document);
    pending->there = false;
    return skip_record(parser, chunk, true, pending->hash, code, &error);
}

static void begin_chunk(spill_parser_t *parser, spill_chunk_t *chunk)
{
    chunk->number = parser->number++;
    chunk->offset = parser->end_offset;
    chunk->line = parser->end_line;
    chunk->items = parser->end_items;
    end_chunk_at(chunk, chunk->offset, chunk->line, chunk->items);
}

static bool is_complete(const spill_parser_t *parser, const spill_chunk_t *chunk)
{
    const spill_parser_options_t *options = &parser->options;
    if (parser->exact)
        return chunk->end_offset > options->end_offset ||
               (chunk->end_offset == options->end_offset && chunk->end_items >= options->end_items);
    return chunk->full || chunk->skipped >= (int64_t)options->bounds.records_max ||
           (chunk->record_count > 0 && parser->pending.there &&
            parser->pending.item.element.size_bytes > LARGE_BYTES);
}

static void fill_chunk(spill_parser_t *parser, spill_chunk_t *chunk)
{
    begin_chunk(parser, chunk);
    while (!is_complete(parser, chunk)) {
        if (!parser->pending.there && !read_pending(parser, chunk))
            break;
        if (!is_complete(parser, chunk) && !add_pending(parser, chunk))
            break;
    }
    spill_chunk_sort(chunk);
    chunk->lines = parser->input.split.lines;
    parser->exact = false;
    parser->end_offset = chunk->end_offset;
    parser->end_line = chunk->end_line;
    parser->end_items = chunk->end_items;
}

/* Report whether the importing thread is still busy with earlier chunks. */
static bool is_ahead(spill_parser_t *parser)
{
    pthread_mutex_lock(&parser->lock);
    bool ahead = !parser->stop && parser->filled > parser->returned;
    pthread_mutex_unlock(&parser->lock);
    return ahead;
}

/* Read bases until a worker waits for the chunk. So a first chunk has none. */
static void read_bases(spill_parser_t *parser, spill_chunk_t *chunk)
{
    if (!parser->bases)
        return;
    spill_bases_begin(parser->bases, chunk);
    for (size_t k = 0; k < chunk->owner_count && is_ahead(parser); k += BASES_AT_ONCE)
        spill_bases_read(parser->bases, chunk, k, k + BASES_AT_ONCE);
}

static void *run_parser(void *context)
{
    spill_parser_t *parser = context;
    bool last = false;
    while (!last) {
        spill_chunk_t *chunk = wait_for_room(parser);
        if (!chunk)
            break;
        fill_chunk(parser, chunk);
        read_bases(parser, chunk);
        last = chunk->last;
        raise_count(parser, &parser->filled);
    }
    return NULL;
}

bool spill_parser_continues(const spill_parser_options_t *options)
{
    return options->end_offset > options->offset ||
           (options->end_offset == options->offset && options->end_items > options->items);
}

/* ---- start and stop -------------------------------------------------------------------------- */

static spill_code_t open_input(spill_parser_t *parser, spill_error_t *error)
{
    const spill_parser_options_t *options = &parser->options;
    SPILL_TRY(spill_input_open(options, options->offset, options->line, &parser->input, error));
    parser->end_offset = spill_input_offset(&parser->input);
    parser->end_line = spill_input_line(&parser->input);
    parser->end_items = options->items;
    parser->passed = options->items;
    return SPILL_OK;
}

spill_code_t spill_parser_start(const spill_parser_options_t *options, spill_parser_t **parser,
                                spill_error_t *error)
{
    spill_parser_t *made = bson_malloc0(sizeof *made);
    *parser = made;
    made->options = *options;
    made->number = options->number;
    if (options->bases_of)
        made->bases = spill_bases_reader_new(options->bases_of, CHUNKS - 1);
    made->exact = spill_parser_continues(options);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    SPILL_TRY(open_input(made, error));
    int failure = pthread_create(&made->thread, NULL, run_parser, made);
    made->started = failure == 0;
    return failure == 0 ? SPILL_OK : spill_fail_errno(error, failure, "cannot start a thread");
}

void spill_parser_stop(spill_parser_t *parser)
{
    if (!parser)
        return;
    if (parser->started) {
        pthread_mutex_lock(&parser->lock);
        parser->stop = true;
        pthread_cond_broadcast(&parser->changed);
        pthread_mutex_unlock(&parser->lock);
        pthread_join(parser->thread, NULL);
    }
    if (parser->pending.there)
        bson_destroy(&parser->pending.document);
    if (parser->following.there)
        bson_destroy(&parser->following.document);
    for (size_t i = 0; i < CHUNKS; i++)
        spill_chunk_release(&parser->chunks[i]);
    spill_input_close(&parser->input);
    spill_bases_reader_free(parser->bases);
    pthread_cond_destroy(&parser->changed);
    pthread_mutex_destroy(&parser->lock);
    bson_free(parser);
}

int64_t spill_parser_position(const spill_parser_t *parser)
{
    return spill_input_done(&parser->input);
}

int64_t spill_parser_size(const spill_parser_t *parser)
{
    return spill_input_expected(&parser->input);
}

void spill_parser_place(const spill_parser_t *parser, int64_t line, int64_t offset,
                        char place[SPILL_PLACE_SIZE])
{
    spill_input_place(&parser->input, line, offset, place);
}
