/* findAndModify: the replies. */
#include "bson/field_path.h"
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/modify.h"
#include "util/error.h"

#include <string.h>

bool spill_modify_fail_repeated(spill_translation_t *translation)
{
    return spill_translation_fail(
        translation, SPILL_SERVER_INCOMPLETE_HISTORY,
        "spillway: an earlier try has made the change, and the document before it is not known any "
        "more: ask for the new document, or read it with find");
}

static size_t room(const spill_translation_t *translation)
{
    return (size_t)translation->connection->reply_bytes_max - 16 * 1024;
}

/* After a write, a failure to return the document must not look like a failure to write. */
static bool fail_written(spill_translation_t *translation)
{
    return spill_translation_fail(
        translation, SPILL_SERVER_DOCUMENT_TOO_LARGE,
        "spillway: the change was made, but the document cannot be returned: ask for it without "
        "'%s', {\"%s\": 0}, or read it with find",
        translation->array, translation->array);
}

/*
 * Append the value of a change that was made, completed; null if the document is gone. A removal
 * answers with a head that has pages only if an earlier try has made it: perhaps they are gone.
 */
static bool append_value(spill_modify_t *modify, const bson_t *document, int64_t end, bson_t *reply)
{
    bson_t made;
    bool gone;
    spill_translation_t *translation = modify->translation;
    if (!spill_asked_document(translation, &modify->asked, document, room(translation), end, &made,
                              &gone))
        return translation->close ? false : fail_written(translation);
    bool known = !gone || !modify->removes;
    if (gone && known)
        BSON_APPEND_NULL(reply, "value");
    else if (known)
        BSON_APPEND_DOCUMENT(reply, "value", &made);
    bson_destroy(&made);
    return known || spill_modify_fail_repeated(translation);
}

bool spill_modify_reply_answer(spill_modify_t *modify, bson_t *reply)
{
    bson_iter_t field;
    bson_t document;
    bool done = true;
    bson_init(reply);
    if (!bson_iter_init(&field, &modify->answer))
        return true;
    while (done && bson_iter_next(&field)) {
        if (strcmp(bson_iter_key(&field), "value") == 0 && BSON_ITER_HOLDS_DOCUMENT(&field) &&
            spill_iter_document(&field, &document))
            done = append_value(modify, &document, INT64_MAX, reply);
        else
            bson_append_iter(reply, NULL, -1, &field);
    }
    if (!done)
        bson_destroy(reply);
    return done;
}

/* The reply to a change that the library or a removal made, without the document. */
static void begin_reply(const spill_modify_t *modify, bson_t *reply)
{
    bson_init(reply);
    if (modify->removes)
        BCON_APPEND(reply, "lastErrorObject", "{", "n", BCON_INT32(1), "}");
    else
        BCON_APPEND(reply, "lastErrorObject", "{", "n", BCON_INT32(1), "updatedExisting",
                    BCON_BOOL(true), "}");
}

bool spill_modify_reply_old(const spill_modify_t *modify, bson_t *reply)
{
    begin_reply(modify, reply);
    if (modify->has_made)
        BSON_APPEND_DOCUMENT(reply, "value", &modify->made);
    else
        BSON_APPEND_NULL(reply, "value");
    BSON_APPEND_DOUBLE(reply, "ok", 1);
    return true;
}

/* The client's projection, but with `spill`: it shows which document was read. */
static void append_projection(const spill_asked_t *asked, bson_t *find)
{
    bson_t projection;
    if (asked->projection == NULL)
        return;
    bool left_out = bson_has_field(asked->projection, SPILL_STORED_ROOT);
    BSON_APPEND_DOCUMENT_BEGIN(find, "projection", &projection);
    if (asked->kind != SPILL_ASKED_PASS) {
        bson_concat(&projection, asked->projection);
    } else {
        bson_copy_to_excluding_noinit(asked->projection, &projection, SPILL_STORED_ROOT, NULL);
        if (!left_out)
            BSON_APPEND_INT32(&projection, SPILL_STORED_ROOT, 1);
    }
    bson_append_document_end(find, &projection);
}

/* Read the document {_id: ...} as the client asked for it. *there is false if it is gone. */
static bool read_document(spill_modify_t *modify, const bson_t *id, bson_t *document, bool *there)
{
    spill_translation_t *translation = modify->translation;
    bson_iter_t iter, found;
    bson_t reply, only;
    SPILL_SCOPED(bson_destroy) bson_t find = BSON_INITIALIZER;
    BCON_APPEND(&find, "find", BCON_UTF8(translation->at->collection), "filter", BCON_DOCUMENT(id),
                "limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    append_projection(&modify->asked, &find);
    spill_translation_finish_step(translation, &find);
    if (!spill_translation_call(translation, &find, &reply))
        return false;
    bson_reinit(document);
    *there = bson_iter_init(&iter, &reply) &&
             bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &found) &&
             spill_iter_document(&found, &only);
    if (*there)
        bson_concat(document, &only);
    bson_destroy(&reply);
    return true;
}

/* ---- changes by the library ------------------------------------------------------------------ */

/* Complete the document that was read. */
static bool make_old(spill_modify_t *modify)
{
    bson_t made;
    bool gone;
    spill_translation_t *translation = modify->translation;
    bson_reinit(&modify->made);
    if (!modify->has_made)
        return true;
    if (!spill_asked_document(translation, &modify->asked, &modify->before, room(translation),
                              INT64_MAX, &made, &gone))
        return false;
    bson_concat(&modify->made, &made);
    bson_destroy(&made);
    return true;
}

bool spill_modify_check_return(spill_modify_t *modify, const spill_look_t *look)
{
    const spill_asked_t *asked = &modify->asked;
    spill_translation_t *translation = modify->translation;
    bool old = modify->removes || !modify->returns_new;
    if (asked->kind == SPILL_ASKED_REFUSE)
        return spill_translation_refuse(translation, translation->array, asked->operation,
                                        "return the whole array, or leave it out");
    bool appends = !modify->removes && !spill_statement_is_relayed(&modify->statement);
    if (asked->kind == SPILL_ASKED_SLICE && old && appends)
        return spill_translation_refuse(translation, translation->array, "$slice",
                                        "return the new document, or leave the array out");
    if (!read_document(modify, &look->id, &modify->before, &modify->has_made))
        return false;
    if (old)
        return make_old(modify);
    return spill_asked_estimate(translation, asked, &modify->before) <= room(translation) ||
           spill_translation_fail(translation, SPILL_SERVER_DOCUMENT_TOO_LARGE,
                                  "spillway: the document with the whole array '%s' would exceed "
                                  "the message size: ask for it without, {\"%s\": 0}. Nothing was "
                                  "changed",
                                  translation->array, translation->array);
}

/* The number that follows the elements of a document with the whole array; -1: not known. */
static int64_t end_of(const spill_modify_t *modify, const bson_t *document)
{
    spill_book_t book;
    bson_iter_t field;
    bson_t elements;
    const char *array = modify->translation->array;
    if (modify->asked.kind != SPILL_ASKED_WHOLE || !spill_book_read(document, array, &book))
        return -1;
    int64_t end = book.first + (book.has_gone ? (int64_t)bson_count_keys(&book.gone) : 0);
    bool any = spill_path_find(document, array, &field) && /* else it is an empty array */
               spill_iter_document(&field, &elements);
    return any ? end + (int64_t)bson_count_keys(&elements) : end;
}

/* Has another client deleted or replaced the document since it was read before the change? */
static bool is_replaced(const spill_modify_t *modify, const bson_t *now)
{
    spill_book_t before, after;
    const char *array = modify->translation->array;
    return !spill_book_read(&modify->before, array, &before) ||
           !spill_book_read(now, array, &after) || before.epoch != after.epoch;
}

static bool fail_replaced(spill_translation_t *translation)
{
    return spill_translation_fail(
        translation, SPILL_SERVER_INCOMPLETE_HISTORY,
        "spillway: the change was made, and another client has deleted or replaced the document "
        "since: read it with find");
}

/*
 * The library appended the elements. The document before: the one that was read, if no other client
 * appended in between; else the present one without the elements from the first new one on.
 */
bool spill_modify_reply_appended(spill_modify_t *modify, const spill_change_t *change,
                                 bson_t *reply)
{
    bson_t now = BSON_INITIALIZER;
    const spill_append_result_t *result = &change->result;
    bool numbered = change->statement->count > 0 && result->first >= 0;
    int64_t end = modify->returns_new ? result->first + result->count : result->first;
    if (!modify->returns_new && modify->has_made &&
        (!numbered || modify->asked.kind == SPILL_ASKED_PASS ||
         end_of(modify, &modify->before) == result->first))
        return spill_modify_reply_old(modify, reply);
    bool there, done = read_document(modify, &change->owner, &now, &there);
    if (done && (!there || is_replaced(modify, &now))) {
        done = fail_replaced(modify->translation);
    } else if (done) {
        begin_reply(modify, reply);
        done = append_value(modify, &now, numbered ? end : INT64_MAX, reply);
        BSON_APPEND_DOUBLE(reply, "ok", 1);
        if (!done)
            bson_destroy(reply);
    }
    bson_destroy(&now);
    return done;
}
