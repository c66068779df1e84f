#include "gateway/translate/reply_batch.h"

#include "gateway/translate/mention.h"
#include "util/error.h"

#include <string.h>

/* Besides the documents of a reply: its other fields, and what upstream adds to it. */
enum { REPLY_ROOM = 16 * 1024 };

static void free_cursor(spill_read_cursor_t **cursor)
{
    spill_read_cursor_free(*cursor);
}

/* Documents of one batch of upstream, in order. */
static bool find_batch(const bson_t *reply, const char *path, bson_t *batch)
{
    bson_iter_t iter, found;
    return bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &found) &&
           BSON_ITER_HOLDS_ARRAY(&found) && spill_iter_document(&found, batch);
}

static int64_t find_cursor_id(const bson_t *reply)
{
    bson_iter_t iter, found;
    return bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.id", &found) &&
                   BSON_ITER_HOLDS_NUMBER(&found)
               ? bson_iter_as_int64(&found)
               : 0;
}

/* Keep the documents of a batch until they are sent. */
static void keep_pending(const bson_t *batch, spill_read_cursor_t *cursor)
{
    bson_iter_t each;
    spill_buffer_clear(&cursor->pending);
    cursor->pending_at = 0;
    if (!bson_iter_init(&each, batch))
        return;
    while (bson_iter_next(&each)) {
        const uint8_t *data;
        uint32_t size;
        if (!BSON_ITER_HOLDS_DOCUMENT(&each))
            continue;
        bson_iter_document(&each, &size, &data);
        spill_buffer_append(&cursor->pending, data, size);
    }
}

static bool next_pending(const spill_read_cursor_t *cursor, bson_t *document)
{
    size_t left = cursor->pending.size - cursor->pending_at;
    uint32_t size;
    if (left < 5)
        return false;
    memcpy(&size, cursor->pending.data + cursor->pending_at, sizeof size);
    size = BSON_UINT32_FROM_LE(size);
    return size <= left &&
           bson_init_static(document, cursor->pending.data + cursor->pending_at, size);
}

/* ---- one batch ------------------------------------------------------------------------------- */

typedef struct batch {
    spill_translation_t *translation;
    spill_read_cursor_t *cursor;
    size_t bytes_max; /* of the reply's documents */
    bool single;
    bson_t documents; /* the reply's */
    uint32_t count;
} batch_t;

/* May this document follow? The first one always may. */
static bool has_room(const batch_t *batch, size_t bytes)
{
    size_t soft = batch->single ? batch->bytes_max : SPILL_BATCH_BYTES;
    return batch->count == 0 || batch->documents.len + bytes <= soft;
}

static bool append_document(batch_t *batch, const bson_t *document, bool *full)
{
    char text[16];
    const char *key;
    bson_t made;
    bool gone;
    spill_translation_t *translation = batch->translation;
    const spill_asked_t *asked = &batch->cursor->asked;
    *full = !has_room(batch, spill_asked_estimate(translation, asked, document));
    if (*full && batch->single)
        return spill_translation_fail(
            translation, SPILL_SERVER_DOCUMENT_TOO_LARGE,
            "spillway: the documents do not fit one reply: read fewer, or "
            "a part of the arrays with $slice");
    if (*full)
        return true;
    if (!spill_asked_document(translation, asked, document, batch->bytes_max, INT64_MAX, &made,
                              &gone))
        return false;
    *full = batch->count > 0 && batch->documents.len + made.len > batch->bytes_max;
    if (!gone && !*full) {
        bson_uint32_to_string(batch->count++, &key, text, sizeof text);
        bson_append_document(&batch->documents, key, -1, &made);
    }
    size_t bytes = made.len;
    bson_destroy(&made);
    return translation->connection->reserve(translation->connection, bytes) ||
           spill_translation_overloaded(translation, "the memory for replies is used up");
}

/* Move pending documents into the batch until it is full. */
static bool fill(batch_t *batch)
{
    bson_t document;
    bool full = false;
    spill_read_cursor_t *cursor = batch->cursor;
    while (!full && next_pending(cursor, &document)) {
        if (!append_document(batch, &document, &full))
            return false;
        if (!full)
            cursor->pending_at += document.len;
    }
    return true;
}

/* The filter or the sort uses F: upstream's answer is right only while no owner has pages. */
static bool check_pages(spill_translation_t *translation, const spill_asked_t *asked)
{
    bool any;
    if (!asked->recounts)
        return true;
    if (!spill_translation_find_pages(translation, NULL, asked->filter, &any))
        return false;
    return !any || spill_translation_refuse_search(translation, asked->filter,
                                                   "a filter, a sort or an expression");
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Copy the other fields of upstream's reply. */
static void copy_rest(const bson_t *from, bson_t *reply)
{
    bson_iter_t field;
    if (!bson_iter_init(&field, from))
        return;
    while (bson_iter_next(&field))
        if (strcmp(bson_iter_key(&field), "cursor") != 0)
            bson_append_iter(reply, NULL, -1, &field);
}

/* Keep the cursor if it has more. *id: its id for the client; 0: it has ended. */
static bool keep_cursor(batch_t *batch, spill_read_cursor_t **cursor, int64_t *id)
{
    bson_t ignored;
    spill_translation_t *translation = batch->translation;
    bool more = (*cursor)->upstream != 0 || next_pending(*cursor, &ignored);
    *id = 0;
    if (!more || batch->single)
        return true;
    if (!spill_cursors_put(spill_served_cursors(translation->served), *cursor))
        return spill_translation_overloaded(translation, "too many cursors are open");
    *id = (*cursor)->id;
    *cursor = NULL;
    return true;
}

/* Fill a batch from the cursor's pending documents and make the reply. `from` may be NULL. */
static bool reply_batch(spill_translation_t *translation, spill_read_cursor_t **cursor,
                        const char *name, bool single, const bson_t *from, bson_t *reply)
{
    bson_t document;
    int64_t id = 0;
    char *ns = bson_strdup_printf("%s.%s", (*cursor)->at->database, (*cursor)->at->collection);
    batch_t batch = {.translation = translation,
                     .cursor = *cursor,
                     .bytes_max = (size_t)translation->connection->reply_bytes_max - REPLY_ROOM,
                     .single = single};
    bson_init(reply);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "cursor", &document);
    BSON_APPEND_ARRAY_BEGIN(&document, name, &batch.documents);
    bool done = check_pages(translation, &(*cursor)->asked) && fill(&batch);
    bson_append_array_end(&document, &batch.documents);
    done = done && keep_cursor(&batch, cursor, &id);
    BSON_APPEND_INT64(&document, "id", id);
    BSON_APPEND_UTF8(&document, "ns", ns);
    bson_append_document_end(reply, &document);
    if (from != NULL)
        copy_rest(from, reply);
    else
        BSON_APPEND_DOUBLE(reply, "ok", 1);
    bson_free(ns);
    if (!done)
        bson_destroy(reply);
    return done;
}

bool spill_batch_begin(spill_translation_t *translation, const bson_t *from, spill_asked_t *asked,
                       bool single, bson_t *reply)
{
    bson_t documents;
    SPILL_SCOPED(free_cursor)
    spill_read_cursor_t *cursor = spill_read_cursor_new(translation->at, translation->user);
    cursor->asked = *asked;
    *asked = (spill_asked_t){0};
    cursor->upstream = find_cursor_id(from);
    if (find_batch(from, "cursor.firstBatch", &documents))
        keep_pending(&documents, cursor);
    return reply_batch(translation, &cursor, "firstBatch", single, from, reply);
}

/* ---- getMore, killCursors -------------------------------------------------------------------- */

static bool ask_upstream(spill_translation_t *translation, spill_read_cursor_t *cursor,
                         bson_t *reply)
{
    static const char *const except[] = {"getMore", NULL};
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    bson_t documents;
    BSON_APPEND_INT64(&body, "getMore", cursor->upstream);
    spill_translation_copy_body(translation, except, &body);
    if (!spill_translation_call(translation, &body, reply))
        return false;
    cursor->upstream = find_cursor_id(reply);
    if (find_batch(reply, "cursor.nextBatch", &documents))
        keep_pending(&documents, cursor);
    return true;
}

static bool no_cursor(spill_translation_t *translation, int64_t id)
{
    return spill_translation_fail(translation, SPILL_SERVER_CURSOR_NOT_FOUND,
                                  "spillway: cursor id %lld is not known: it was idle for 10 "
                                  "minutes, or the gateway has restarted; begin the read again",
                                  (long long)id);
}

bool spill_batch_get_more(spill_translation_t *translation, bson_t *reply)
{
    bson_iter_t iter;
    bson_t ignored, answer;
    int64_t id =
        spill_translation_find(translation, "getMore", &iter) && BSON_ITER_HOLDS_NUMBER(&iter)
            ? bson_iter_as_int64(&iter)
            : 0;
    SPILL_SCOPED(free_cursor)
    spill_read_cursor_t *cursor =
        spill_cursors_take(spill_served_cursors(translation->served), id, translation->user);
    if (cursor == NULL)
        return no_cursor(translation, id);
    translation->at = cursor->at; /* the definition that the read began with */
    translation->array = cursor->at->definition->array;
    if (next_pending(cursor, &ignored))
        return reply_batch(translation, &cursor, "nextBatch", false, NULL, reply);
    if (!ask_upstream(translation, cursor, &answer))
        return false;
    bool done = reply_batch(translation, &cursor, "nextBatch", false, &answer, reply);
    bson_destroy(&answer);
    return done;
}

/* Kill upstream's cursor. Its reply does not matter: upstream ends idle cursors. */
static void kill_upstream(spill_translation_t *translation, const spill_read_cursor_t *cursor)
{
    bson_t reply;
    if (cursor->upstream == 0)
        return;
    bson_t *kill = BCON_NEW("killCursors", BCON_UTF8(cursor->at->collection), "cursors", "[",
                            BCON_INT64(cursor->upstream), "]");
    spill_translation_finish_step(translation, kill);
    if (spill_translation_call(translation, kill, &reply))
        bson_destroy(&reply);
    else if (!translation->close)
        spill_translation_recover(translation);
    bson_destroy(kill);
}

bool spill_batch_kill(spill_translation_t *translation, bson_t *reply)
{
    bson_iter_t iter, id;
    bson_t killed, missing;
    uint32_t kills = 0, misses = 0;
    bson_init(&killed);
    bson_init(&missing);
    if (spill_translation_find(translation, "cursors", &iter) && BSON_ITER_HOLDS_ARRAY(&iter) &&
        bson_iter_recurse(&iter, &id))
        while (!translation->close && bson_iter_next(&id)) {
            char text[16];
            const char *key;
            int64_t number = bson_iter_as_int64(&id);
            spill_read_cursor_t *cursor = spill_cursors_take(
                spill_served_cursors(translation->served), number, translation->user);
            bson_uint32_to_string(cursor != NULL ? kills++ : misses++, &key, text, sizeof text);
            BSON_APPEND_INT64(cursor != NULL ? &killed : &missing, key, number);
            if (cursor != NULL)
                kill_upstream(translation, cursor);
            spill_read_cursor_free(cursor);
        }
    bson_init(reply);
    BCON_APPEND(reply, "cursorsKilled", BCON_ARRAY(&killed), "cursorsNotFound",
                BCON_ARRAY(&missing), "cursorsAlive", "[", "]", "cursorsUnknown", "[", "]", "ok",
                BCON_DOUBLE(1));
    bson_destroy(&killed);
    bson_destroy(&missing);
    if (translation->close)
        bson_destroy(reply);
    return !translation->close;
}
