/*
 * Cursors over what a server sends. The server is trusted to keep data, but no answer of it may
 * crash or block the program: each document is checked before anything reads it, and a cursor that
 * does not advance ends in an error.
 */
#include "store/mongo/mongo.h"

#include "bson/value.h"
#include "util/error.h"
#include "util/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    EMPTY_BATCHES_MAX = 1000, /* in succession */
    REPEATS_MAX = 3,          /* how often a document may be repeated, as a router may do */
    ALIKE_MAX = 1000          /* the same for documents without a unique identity */
};

/* ---- the namespace of an answer -------------------------------------------------------------- */

/*
 * The driver calls spill_mongo_check_answer in the thread that waits for the answer, before it
 * returns a document of it. So the thread's own variable has the cursor.
 */
static _Thread_local struct {
    const spill_mongo_cursor_t *cursor; /* NULL: no answer with a cursor is awaited */
    char unexpected[128];               /* the namespace that the answer has instead */
} awaited;

static bool is_expected(const spill_mongo_cursor_t *cursor, const char *name)
{
    const char *database = cursor->store->database;
    size_t length = strlen(database);
    if (strncmp(name, database, length) != 0 || name[length] != '.')
        return false;
    const char *collection = name + length + 1;
    return strncmp(collection, "$cmd.", 5) == 0 ||
           (cursor->collection && strcmp(collection, cursor->collection) == 0);
}

void spill_mongo_check_answer(const bson_t *reply)
{
    bson_iter_t iter, field;
    if (!awaited.cursor || !bson_iter_init_find(&iter, reply, "cursor") ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter) || !bson_iter_recurse(&iter, &field))
        return;
    const char *name = "";
    if (bson_iter_find(&field, "ns") && BSON_ITER_HOLDS_UTF8(&field))
        name = bson_iter_utf8(&field, NULL);
    if (!is_expected(awaited.cursor, name))
        bson_snprintf(awaited.unexpected, sizeof awaited.unexpected, "'%s'", name);
}

/* ---- a cursor -------------------------------------------------------------------------------- */

spill_mongo_cursor_t spill_mongo_cursor(spill_mongo_t *store, const char *collection,
                                        mongoc_cursor_t *cursor, bool unique)
{
    return (spill_mongo_cursor_t){
        .store = store, .collection = collection, .cursor = cursor, .unique = unique};
}

void spill_mongo_cursor_end(spill_mongo_cursor_t *cursor)
{
    mongoc_cursor_destroy(cursor->cursor);
    cursor->cursor = NULL;
}

static spill_code_t fail_answer(const spill_mongo_cursor_t *cursor, const char *what,
                                spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT, "%s%s%s: the server's answer is wrong: %s",
                      cursor->store->place, cursor->collection ? "." : "",
                      cursor->collection ? cursor->collection : "", what);
}

/*
 * Does the cursor return the same documents again and again? Brent's algorithm: remember one
 * document, after 1, 2, 4, ... documents the next one. A cycle of any length meets it again.
 */
static bool is_cycling(spill_mongo_cursor_t *cursor, const bson_t *document)
{
    bson_iter_t iter;
    uint64_t hash;
    cursor->count++;
    if (!cursor->unique && cursor->count == 1) /* often the only one, and it may be large */
        return false;
    if (cursor->unique && bson_iter_init_find(&iter, document, "_id")) {
        spill_value_t id = spill_value_from_iter(&iter);
        hash = spill_hash(id.data, id.size_bytes) + id.type;
    } else {
        hash = spill_hash(bson_get_data(document), document->len);
    }
    if (cursor->count > 1 && hash == cursor->remembered)
        cursor->repeats++;
    if ((cursor->count & (cursor->count - 1)) == 0) {
        cursor->remembered = hash;
        cursor->repeats = 0;
    }
    return cursor->repeats >= (cursor->unique ? REPEATS_MAX : ALIKE_MAX);
}

bool spill_mongo_follows(const uint8_t *place, size_t place_bytes, const bson_iter_t *id)
{
    bson_t document;
    bson_iter_t before;
    if (place_bytes == 0 || !bson_init_static(&document, place, place_bytes) ||
        !bson_iter_init(&before, &document) || !bson_iter_next(&before) ||
        bson_iter_type(&before) != bson_iter_type(id))
        return true;
    spill_value_t left = spill_value_from_iter(&before), right = spill_value_from_iter(id);
    switch (bson_iter_type(id)) {
    case BSON_TYPE_UTF8:
        return spill_value_compare(&left, &right) < 0;
    case BSON_TYPE_OID:
        return bson_oid_compare(bson_iter_oid(&before), bson_iter_oid(id)) < 0;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        return bson_iter_as_int64(&before) < bson_iter_as_int64(id);
    default:
        return !spill_value_equal(&left, &right);
    }
}

void spill_mongo_set_last(spill_listing_t *listing, const bson_iter_t *id)
{
    SPILL_SCOPED(bson_destroy) bson_t place = BSON_INITIALIZER;
    bson_append_iter(&place, "", 0, id);
    spill_listing_set_last(listing, bson_get_data(&place), place.len);
}

spill_code_t spill_mongo_fail_order(const spill_mongo_t *store, const char *collection,
                                    spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT,
                      "%s.%s: the server's answer is wrong: its documents are not in the order of "
                      "their _id",
                      store->place, collection);
}

static bool advance(spill_mongo_cursor_t *cursor, const bson_t **document)
{
    awaited.cursor = cursor;
    awaited.unexpected[0] = '\0';
    bool any = mongoc_cursor_next(cursor->cursor, document);
    awaited.cursor = NULL;
    return any;
}

spill_code_t spill_mongo_cursor_next(spill_mongo_cursor_t *cursor, const bson_t **document,
                                     spill_error_t *error)
{
    const bson_t *next = NULL, *reply = NULL;
    bson_error_t cause;
    int empty = 0;
    *document = NULL;
    bool any = advance(cursor, &next);
    /* After an empty batch, which others may follow, the driver reports that there is no document.
     */
    while (!any && !mongoc_cursor_error(cursor->cursor, NULL) &&
           mongoc_cursor_more(cursor->cursor) && awaited.unexpected[0] == '\0' &&
           ++empty < EMPTY_BATCHES_MAX)
        any = advance(cursor, &next);
    if (awaited.unexpected[0] != '\0') {
        char what[192];
        snprintf(what, sizeof what, "its cursor is of the namespace %s", awaited.unexpected);
        return fail_answer(cursor, what, error);
    }
    if (mongoc_cursor_error_document(cursor->cursor, &cause, &reply))
        return spill_mongo_fail(cursor->store, cursor->collection, false, &cause, reply, error);
    if (empty == EMPTY_BATCHES_MAX)
        return fail_answer(cursor, "its cursor returns empty batches without an end", error);
    if (!any)
        return SPILL_OK;
    if (!spill_answer_valid(next))
        return fail_answer(cursor, "a document is not valid BSON, or is nested too deeply", error);
    if (is_cycling(cursor, next))
        return fail_answer(cursor, "its cursor returns the same documents again and again", error);
    *document = next;
    return SPILL_OK;
}
