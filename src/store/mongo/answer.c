/* What a server answers: its errors, the documents of its cursors, and its lists of collections. */
#include "store/mongo/mongo.h"

#include "bson/value.h"
#include "store/raw_reader.h"
#include "store/server_code.h"
#include "util/buffer.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------- */

bool spill_mongo_is_duplicate(const bson_error_t *cause)
{
    return cause->domain != MONGOC_ERROR_STREAM && cause->code == SPILL_SERVER_DUPLICATE_KEY;
}

/* DocumentDB has another code for an update; the text is the same everywhere. */
static bool is_too_large(const bson_error_t *cause)
{
    return spill_server_meaning_of((int)cause->code) == SPILL_SERVER_MEANS_TOO_LARGE ||
           strstr(cause->message, "larger than MaxDoc");
}

/* FerretDB returns PostgreSQL's text with its own codes. */
static bool is_denied(const bson_error_t *cause)
{
    return strstr(cause->message, "permission denied for ") != NULL;
}

/* The user or the password is wrong. The driver reports that with codes of its own. */
static bool is_wrong_login(const bson_error_t *cause)
{
    return cause->domain == MONGOC_ERROR_SASL || cause->domain == MONGOC_ERROR_SCRAM ||
           (cause->domain == MONGOC_ERROR_CLIENT &&
            cause->code == MONGOC_ERROR_CLIENT_AUTHENTICATE);
}

static spill_server_meaning_t meaning_of(const bson_error_t *cause)
{
    if (is_too_large(cause))
        return SPILL_SERVER_MEANS_TOO_LARGE;
    if (is_denied(cause) || is_wrong_login(cause))
        return SPILL_SERVER_MEANS_DENIED;
    switch (cause->domain) {
    case MONGOC_ERROR_SERVER_SELECTION:
        return SPILL_SERVER_MEANS_NOT_DONE;
    case MONGOC_ERROR_STREAM:
    case MONGOC_ERROR_PROTOCOL:
        return SPILL_SERVER_MEANS_PERHAPS;
    case MONGOC_ERROR_CLIENT:
        return SPILL_SERVER_MEANS_OTHER;
    case MONGOC_ERROR_WRITE_CONCERN: /* done, but may be rolled back */
        return SPILL_SERVER_MEANS_PERHAPS;
    case MONGOC_ERROR_BSON:
        return SPILL_SERVER_MEANS_INVALID;
    default:
        return spill_server_meaning_of((int)cause->code);
    }
}

static spill_code_t code_of(spill_server_meaning_t meaning, bool write)
{
    switch (meaning) {
    case SPILL_SERVER_MEANS_PERHAPS:
        return write ? SPILL_UNKNOWN : SPILL_IO;
    case SPILL_SERVER_MEANS_DENIED:
        return SPILL_DENIED;
    case SPILL_SERVER_MEANS_INVALID:
        return SPILL_INVALID;
    case SPILL_SERVER_MEANS_TOO_LARGE:
        return SPILL_TOO_BIG;
    case SPILL_SERVER_MEANS_NOT_DONE:
    case SPILL_SERVER_MEANS_OTHER:
        break;
    }
    return SPILL_IO;
}

/* The user is known, and may not do this. */
static bool lacks_right(const bson_error_t *cause)
{
    return is_denied(cause) ||
           (cause->domain == MONGOC_ERROR_SERVER && cause->code == SPILL_SERVER_UNAUTHORIZED);
}

spill_code_t spill_mongo_fail(const spill_mongo_t *store, const char *collection, bool write,
                              const bson_error_t *cause, const bson_t *reply, spill_error_t *error)
{
    spill_server_meaning_t meaning = meaning_of(cause);
    /* If the driver tried twice, the error is of the second try; the first may have succeeded. */
    if (meaning == SPILL_SERVER_MEANS_NOT_DONE && store->retries &&
        cause->domain != MONGOC_ERROR_SERVER_SELECTION)
        meaning = SPILL_SERVER_MEANS_PERHAPS;
    if (meaning == SPILL_SERVER_MEANS_OTHER && reply &&
        mongoc_error_has_label(reply, "RetryableWriteError"))
        meaning = SPILL_SERVER_MEANS_PERHAPS;
    spill_code_t code = code_of(meaning, write);
    spill_fail(error, code, "%s%s%s: %s%s", store->place, collection ? "." : "",
               collection ? collection : "", cause->message,
               lacks_right(cause) ? " (the role readWrite on the database has every right that "
                                    "Spillway needs; to read, the role read is enough)"
                                  : "");
    if (error) {
        error->native =
            is_wrong_login(cause) ? SPILL_SERVER_AUTHENTICATION_FAILED : (int)cause->code;
        error->retryable =
            meaning == SPILL_SERVER_MEANS_NOT_DONE || meaning == SPILL_SERVER_MEANS_PERHAPS;
    }
    return code;
}

/* ---- cursors --------------------------------------------------------------------------------- */

/*
 * Cursors over what a server sends. The server is trusted to keep data, but no answer of it may
 * crash or block the program: each document is checked before anything reads it, and a cursor that
 * does not advance ends in an error.
 */

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
    bool is_wrong;                      /* the answer has another namespace: */
    char unexpected[128];
} awaited;

/* `expected`: NULL if no namespace of a collection is right. */
static bool is_expected(const spill_mongo_t *store, const char *expected, const char *name)
{
    const char *database = store->database;
    size_t length = strlen(database);
    if (strncmp(name, database, length) != 0 || name[length] != '.')
        return false;
    const char *collection = name + length + 1;
    return strncmp(collection, "$cmd.", 5) == 0 || (expected && strcmp(collection, expected) == 0);
}

/* Find the cursor of a reply, and its namespace ("" if it has none). */
static bool find_cursor(const bson_t *reply, bson_iter_t *cursor, const char **name)
{
    bson_iter_t field;
    *name = "";
    if (!bson_iter_init_find(cursor, reply, "cursor") || !BSON_ITER_HOLDS_DOCUMENT(cursor) ||
        !bson_iter_recurse(cursor, &field))
        return false;
    if (bson_iter_find(&field, "ns") && BSON_ITER_HOLDS_UTF8(&field))
        *name = bson_iter_utf8(&field, NULL);
    return true;
}

void spill_mongo_check_answer(const bson_t *reply)
{
    bson_iter_t cursor;
    const char *name;
    if (!awaited.cursor || !find_cursor(reply, &cursor, &name))
        return;
    awaited.is_wrong = !is_expected(awaited.cursor->store, awaited.cursor->collection, name);
    bson_snprintf(awaited.unexpected, sizeof awaited.unexpected, "%s", name);
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

/* `collection`: NULL for an answer about the database. */
static spill_code_t fail_answer(const spill_mongo_t *store, const char *collection,
                                const char *what, spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT, "%s%s%s: the server's answer is wrong: %s",
                      store->place, collection ? "." : "", collection ? collection : "", what);
}

static spill_code_t fail_namespace(const spill_mongo_t *store, const char *collection,
                                   const char *name, spill_error_t *error)
{
    char what[192];
    snprintf(what, sizeof what, "its cursor is of the namespace '%.128s'", name);
    return fail_answer(store, collection, what, error);
}

static spill_code_t fail_document(const spill_mongo_t *store, const char *collection,
                                  spill_error_t *error)
{
    return fail_answer(store, collection, "a document is not valid BSON, or is nested too deeply",
                       error);
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
    awaited.is_wrong = false;
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
           mongoc_cursor_more(cursor->cursor) && !awaited.is_wrong && ++empty < EMPTY_BATCHES_MAX)
        any = advance(cursor, &next);
    if (awaited.is_wrong)
        return fail_namespace(cursor->store, cursor->collection, awaited.unexpected, error);
    if (mongoc_cursor_error_document(cursor->cursor, &cause, &reply))
        return spill_mongo_fail(cursor->store, cursor->collection, false, &cause, reply, error);
    if (empty == EMPTY_BATCHES_MAX)
        return fail_answer(cursor->store, cursor->collection,
                           "its cursor returns empty batches without an end", error);
    if (!any)
        return SPILL_OK;
    if (!spill_answer_valid(next))
        return fail_document(cursor->store, cursor->collection, error);
    if (is_cycling(cursor, next))
        return fail_answer(cursor->store, cursor->collection,
                           "its cursor returns the same documents again and again", error);
    *document = next;
    return SPILL_OK;
}

/* ---- the documents of one answer ------------------------------------------------------------- */

static spill_code_t visit_document(const spill_mongo_t *store, const char *collection,
                                   const bson_iter_t *iter, spill_mongo_visit_fn visit,
                                   void *context, bool *goes_on, spill_error_t *error)
{
    const uint8_t *data;
    uint32_t size;
    bson_t document;
    if (!BSON_ITER_HOLDS_DOCUMENT(iter))
        return fail_answer(store, collection, "its cursor returns a value that is no document",
                           error);
    bson_iter_document(iter, &size, &data);
    if (!bson_init_static(&document, data, size) || !spill_answer_valid(&document))
        return fail_document(store, collection, error);
    *goes_on = visit(context, &document);
    return SPILL_OK;
}

spill_code_t spill_mongo_visit_answer(const spill_mongo_t *store, const char *collection,
                                      const bson_t *reply, int64_t limit,
                                      spill_mongo_visit_fn visit, void *context,
                                      spill_error_t *error)
{
    const char *name;
    bson_iter_t cursor, field, iter;
    bool goes_on = true;
    if (!find_cursor(reply, &cursor, &name) || !bson_iter_recurse(&cursor, &field) ||
        !bson_iter_find(&field, "firstBatch") || !BSON_ITER_HOLDS_ARRAY(&field) ||
        !bson_iter_recurse(&field, &iter))
        return fail_answer(store, collection, "it has no cursor", error);
    if (!is_expected(store, collection, name))
        return fail_namespace(store, collection, name, error);
    for (int64_t i = 0; goes_on && i < limit && bson_iter_next(&iter); i++)
        SPILL_TRY(visit_document(store, collection, &iter, visit, context, &goes_on, error));
    return SPILL_OK;
}

/* ---- collations ------------------------------------------------------------------------------ */

/* `description` is the server's: {name, options: {collation: {locale, ...}}}. */
static bool has_collation(const bson_iter_t *description, const char *collection)
{
    bson_iter_t field, found;
    const char *locale = "";
    if (!bson_iter_recurse(description, &field) || !bson_iter_find(&field, "name") ||
        !BSON_ITER_HOLDS_UTF8(&field) || strcmp(bson_iter_utf8(&field, NULL), collection) != 0)
        return false;
    if (!bson_iter_recurse(description, &field) ||
        !bson_iter_find_descendant(&field, "options.collation", &found) ||
        !BSON_ITER_HOLDS_DOCUMENT(&found))
        return false;
    if (bson_iter_recurse(&found, &field) && bson_iter_find(&field, "locale") &&
        BSON_ITER_HOLDS_UTF8(&field))
        locale = bson_iter_utf8(&field, NULL);
    return strcmp(locale, "simple") != 0;
}

spill_code_t spill_collation_refuse(const bson_t *listing, const char *collection,
                                    spill_error_t *error)
{
    bson_iter_t iter;
    bool has = false;
    if (bson_iter_init(&iter, listing))
        while (!has && bson_iter_next(&iter))
            has = has_collation(&iter, collection);
    if (!has)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' has a collation of its own, by which the server compares _ids and "
                      "elements, so Spillway cannot manage its arrays. Copy the documents to a "
                      "collection without one, or name another collection",
                      collection);
}
