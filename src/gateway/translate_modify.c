/* findAndModify: an update or a delete of one document that returns the document. */
#include "gateway/mention.h"
#include "gateway/removal.h"
#include "gateway/translations.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

enum { TRIES = 20 };

typedef struct modification {
    spill_translation_t *translation;
    spill_statement_t statement; /* q alone for a removal */
    spill_asked_t asked;         /* of the document that is returned */
    bson_t query;                /* the client's, with the _id that sort chooses */
    bool chosen;                 /* sort has chosen one */
    bool removes, returns_new;
    bool done;     /* some document was changed */
    bson_t answer; /* the server's last reply */
    bool answered;
    bson_t before; /* the document before the change, as the server has it; or empty */
    bson_t made;   /* ... and as the client gets it; or empty */
} modification_t;

static void release(modification_t *modification)
{
    spill_asked_release(&modification->asked);
    bson_destroy(&modification->query);
    bson_destroy(&modification->before);
    bson_destroy(&modification->made);
    if (modification->answered)
        bson_destroy(&modification->answer);
}

/* ---- the server's command -------------------------------------------------------------------- */

/*
 * 1 if the server has found or inserted a document. The DocumentDB engine counts n: 0 if the update
 * leaves the document as it was.
 */
static int64_t changed(const bson_t *answer)
{
    bson_iter_t iter, n;
    if (bson_iter_init_find(&iter, answer, "value") && BSON_ITER_HOLDS_DOCUMENT(&iter))
        return 1;
    return bson_iter_init(&iter, answer) &&
                   bson_iter_find_descendant(&iter, "lastErrorObject.n", &n) &&
                   bson_iter_as_int64(&n) > 0
               ? 1
               : 0;
}

/* Send it, and keep the answer. */
static bool send_command(modification_t *modification, bson_t *body)
{
    bson_t reply;
    if (modification->asked.projection != NULL)
        BSON_APPEND_DOCUMENT(body, "fields", modification->asked.projection);
    if (!spill_translation_call(modification->translation, body, &reply))
        return false;
    if (modification->answered)
        bson_destroy(&modification->answer);
    bson_steal(&modification->answer, &reply);
    modification->answered = true;
    return true;
}

static bool forward(modification_t *modification, const bson_t *guards, bool upsert)
{
    static const char *const except[] = {"query", "fields", "upsert", NULL};
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    bson_t query;
    spill_translation_copy_body(modification->translation, except, &body);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "query", &query);
    bson_concat(&query, &modification->query);
    bson_concat(&query, guards);
    bson_append_document_end(&body, &query);
    if (upsert)
        BSON_APPEND_BOOL(&body, "upsert", true);
    return send_command(modification, &body);
}

/* The same with the update of an adopted array. The session's entry makes a retry exact. */
static bool rewrite(spill_change_t *change, const spill_adopted_step_t *step, bool *matched)
{
    static const char *const except[] = {"query", "fields",    "upsert",       "update",
                                         "sort",  "txnNumber", "writeConcern", NULL};
    modification_t *modification = change->context;
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_copy_body(modification->translation, except, &body);
    BCON_APPEND(&body, "query", BCON_DOCUMENT(step->query), "writeConcern", "{", "w", "majority",
                "}");
    if (step->pipeline)
        BSON_APPEND_ARRAY(&body, "update", step->update);
    else
        BSON_APPEND_DOCUMENT(&body, "update", step->update);
    if (!send_command(modification, &body))
        return false;
    *matched = changed(&modification->answer) > 0;
    change->n += *matched;
    return true;
}

static bool attempt(spill_change_t *change, const bson_t *guards, bool upsert, bool many)
{
    bson_iter_t iter, id;
    modification_t *modification = change->context;
    (void)many;
    if (!forward(modification, guards, upsert))
        return false;
    change->n += changed(&modification->answer);
    if (bson_iter_init(&iter, &modification->answer) &&
        bson_iter_find_descendant(&iter, "lastErrorObject.upserted", &id))
        bson_append_iter(&change->upserted, "_id", -1, &id);
    return true;
}

/* ---- replies --------------------------------------------------------------------------------- */

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

/* Append the value of a change that was made, completed; null if the document is gone. */
static bool append_value(modification_t *modification, const bson_t *document, int64_t end,
                         bson_t *reply)
{
    bson_t made;
    bool gone;
    spill_translation_t *translation = modification->translation;
    if (!spill_asked_document(translation, &modification->asked, document, room(translation), end,
                              &made, &gone))
        return translation->close ? false : fail_written(translation);
    if (gone)
        BSON_APPEND_NULL(reply, "value");
    else
        BSON_APPEND_DOCUMENT(reply, "value", &made);
    bson_destroy(&made);
    return true;
}

/* The server's reply, with its document completed. */
static bool reply_answer(modification_t *modification, bson_t *reply)
{
    bson_iter_t field;
    bson_t document;
    bool done = true;
    bson_init(reply);
    if (!bson_iter_init(&field, &modification->answer))
        return true;
    while (done && bson_iter_next(&field)) {
        if (strcmp(bson_iter_key(&field), "value") == 0 && BSON_ITER_HOLDS_DOCUMENT(&field) &&
            spill_iter_document(&field, &document))
            done = append_value(modification, &document, INT64_MAX, reply);
        else
            bson_append_iter(reply, NULL, -1, &field);
    }
    if (!done)
        bson_destroy(reply);
    return done;
}

/* The reply to a change that the library or a removal made, without the document. */
static void begin_reply(const modification_t *modification, bson_t *reply)
{
    bson_init(reply);
    if (modification->removes)
        BCON_APPEND(reply, "lastErrorObject", "{", "n", BCON_INT32(1), "}");
    else
        BCON_APPEND(reply, "lastErrorObject", "{", "n", BCON_INT32(1), "updatedExisting",
                    BCON_BOOL(true), "}");
}

/* The document as it was before. */
static bool reply_old(const modification_t *modification, bson_t *reply)
{
    begin_reply(modification, reply);
    if (bson_empty(&modification->made))
        BSON_APPEND_NULL(reply, "value");
    else
        BSON_APPEND_DOCUMENT(reply, "value", &modification->made);
    BSON_APPEND_DOUBLE(reply, "ok", 1);
    return true;
}

/* Read the document {_id: ...} as the client asked for it; empty if it is gone. */
static bool read_document(modification_t *modification, const bson_t *id, bson_t *document)
{
    spill_translation_t *translation = modification->translation;
    bson_iter_t iter, found;
    bson_t reply, only;
    SPILL_SCOPED(bson_destroy) bson_t find = BSON_INITIALIZER;
    BCON_APPEND(&find, "find", BCON_UTF8(translation->at->collection), "filter", BCON_DOCUMENT(id),
                "limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    if (modification->asked.projection != NULL)
        BSON_APPEND_DOCUMENT(&find, "projection", modification->asked.projection);
    spill_translation_finish_step(translation, &find);
    if (!spill_translation_call(translation, &find, &reply))
        return false;
    bson_reinit(document);
    if (bson_iter_init(&iter, &reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &found) &&
        spill_iter_document(&found, &only))
        bson_concat(document, &only);
    bson_destroy(&reply);
    return true;
}

/* ---- changes by the library ------------------------------------------------------------------ */

/* Complete the document that was read. */
static bool make_old(modification_t *modification)
{
    bson_t made;
    bool gone;
    spill_translation_t *translation = modification->translation;
    bson_reinit(&modification->made);
    if (bson_empty(&modification->before))
        return true;
    if (!spill_asked_document(translation, &modification->asked, &modification->before,
                              room(translation), INT64_MAX, &made, &gone))
        return false;
    bson_concat(&modification->made, &made);
    bson_destroy(&made);
    return true;
}

/* Before anything is changed: can the document be returned? Read it, if it is returned as it was.
 */
static bool check_return(modification_t *modification, const spill_look_t *look)
{
    const spill_asked_t *asked = &modification->asked;
    spill_translation_t *translation = modification->translation;
    bool old = modification->removes || !modification->returns_new;
    if (asked->kind == SPILL_ASKED_REFUSE)
        return spill_translation_refuse(translation, translation->array, asked->operation,
                                        "return the whole array, or leave it out");
    bool appends = !modification->removes && !spill_statement_is_relayed(&modification->statement);
    if (asked->kind == SPILL_ASKED_SLICE && old && appends)
        return spill_translation_refuse(translation, translation->array, "$slice",
                                        "return the new document, or leave the array out");
    if (!read_document(modification, &look->id, &modification->before))
        return false;
    if (old)
        return make_old(modification);
    return spill_asked_estimate(translation, asked, &modification->before) <= room(translation) ||
           spill_translation_fail(translation, SPILL_SERVER_DOCUMENT_TOO_LARGE,
                                  "spillway: the document with the whole array '%s' would exceed "
                                  "the message size: ask for it without, {\"%s\": 0}. Nothing was "
                                  "changed",
                                  translation->array, translation->array);
}

static bool prepare(spill_change_t *change, const spill_look_t *look)
{
    return check_return(change->context, look);
}

/* The number that follows the elements of a document with the whole array; -1: not known. */
static int64_t end_of(const modification_t *modification, const bson_t *document)
{
    spill_book_t book;
    bson_iter_t field;
    bson_t elements;
    const char *array = modification->translation->array;
    if (modification->asked.kind != SPILL_ASKED_WHOLE || !spill_book_read(document, array, &book) ||
        !bson_iter_init_find(&field, document, array) || !spill_iter_document(&field, &elements))
        return -1;
    int64_t gone = book.has_gone ? (int64_t)bson_count_keys(&book.gone) : 0;
    return book.first + (int64_t)bson_count_keys(&elements) + gone;
}

/*
 * The library appended the elements. The document before: the one that was read, if no other client
 * appended in between; else the present one without the elements from the first new one on.
 */
static bool reply_appended(modification_t *modification, const spill_change_t *change,
                           bson_t *reply)
{
    bson_t now = BSON_INITIALIZER;
    const spill_append_result_t *result = &change->result;
    bool numbered = change->statement->count > 0 && result->first >= 0;
    int64_t end = modification->returns_new ? result->first + result->count : result->first;
    if (!modification->returns_new && !bson_empty(&modification->made) &&
        (!numbered || modification->asked.kind == SPILL_ASKED_PASS ||
         end_of(modification, &modification->before) == result->first))
        return reply_old(modification, reply);
    bool done = read_document(modification, &change->owner, &now);
    if (done) {
        begin_reply(modification, reply);
        done = append_value(modification, &now, numbered ? end : INT64_MAX, reply);
        BSON_APPEND_DOUBLE(reply, "ok", 1);
        if (!done)
            bson_destroy(reply);
    }
    bson_destroy(&now);
    return done;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool flag(const spill_translation_t *translation, const char *name)
{
    bson_iter_t iter;
    return spill_translation_find(translation, name, &iter) && spill_iter_is_true(&iter);
}

/* The client's query, and the document that sort chooses. */
static bool choose(modification_t *modification, const bson_t *query)
{
    bson_t sort;
    bson_iter_t id;
    spill_look_t look;
    spill_translation_t *translation = modification->translation;
    bson_reinit(&modification->query);
    bson_concat(&modification->query, query);
    modification->chosen = false;
    if (!spill_translation_find_document(translation, "sort", &sort) ||
        spill_filter_find_id(query, &id))
        return true;
    if (spill_mentions_in_document(&sort, translation->array) != 0)
        return spill_translation_refuse(translation, translation->array, "sort",
                                        "sort by another field, or give the _id");
    if (!spill_look(translation, query, &sort, &look))
        return false;
    modification->chosen = look.found;
    if (look.found)
        bson_concat(&modification->query, &look.id);
    spill_look_release(&look);
    return true;
}

static bool read_statement(modification_t *modification)
{
    static const uint8_t none[] = {5, 0, 0, 0, 0};
    spill_translation_t *translation = modification->translation;
    spill_statement_t *statement = &modification->statement;
    bson_iter_t iter;
    bson_t update;
    bool pipeline = false;
    if (modification->removes) {
        bson_init_static(&update, none, sizeof none);
    } else {
        if (!spill_translation_find(translation, "update", &iter) ||
            !spill_iter_document(&iter, &update))
            return spill_translation_fail(translation, SPILL_SERVER_BAD_VALUE,
                                          "spillway: findAndModify needs update or remove");
        pipeline = BSON_ITER_HOLDS_ARRAY(&iter);
    }
    if (!spill_statement_read(translation->at, &modification->query, &update, pipeline, statement))
        return spill_translation_fail(translation, SPILL_SERVER_INVALID_BSON,
                                      "spillway: the query or the update is malformed");
    if (modification->removes && statement->kind != SPILL_STATEMENT_SPILL)
        statement->kind = SPILL_STATEMENT_OTHER;
    statement->upsert = flag(translation, "upsert") && !modification->chosen;
    statement->has_filters = spill_translation_find(translation, "arrayFilters", &iter);
    statement->has_collation = spill_translation_find(translation, "collation", &iter);
    return spill_change_check_served(translation, statement);
}

static bool read_fields(modification_t *modification)
{
    bson_t fields;
    spill_translation_t *translation = modification->translation;
    bool projects = spill_translation_find_document(translation, "fields", &fields);
    modification->removes = flag(translation, "remove");
    modification->returns_new = flag(translation, "new");
    if (!spill_asked_read(translation->array, projects ? &fields : NULL, &modification->asked))
        return spill_translation_refuse_spill(translation, "fields");
    modification->asked.filter = bson_new();
    modification->asked.options = bson_new();
    return true;
}

static bool is_nothing(const modification_t *modification)
{
    return changed(&modification->answer) == 0;
}

/* Remove the document with pages that the query finds. *removed: it was made, with a reply. */
static bool remove_outlier(modification_t *modification, bool *found, bool *removed, bson_t *reply)
{
    spill_look_t look;
    spill_translation_t *translation = modification->translation;
    if (!spill_look(translation, &modification->query, NULL, &look))
        return false;
    bool done = !look.found || look.pages == 0 ||
                (check_return(modification, &look) &&
                 spill_removal_run(translation, &look, &modification->query, removed));
    *found = look.found;
    spill_look_release(&look);
    return done && (!*removed || reply_old(modification, reply));
}

static bool run_removal(modification_t *modification, bson_t *reply)
{
    spill_translation_t *translation = modification->translation;
    bool any = false, removed = false, found = true;
    SPILL_SCOPED(bson_destroy) bson_t guards = BSON_INITIALIZER;
    if (modification->statement.q_mentions != 0 &&
        !spill_translation_find_pages(translation, &modification->query, &any))
        return false;
    if (any)
        return spill_change_refuse(translation, &modification->statement);
    spill_guard_no_pages(translation, &guards);
    for (int tries = 0; tries < TRIES && found; tries++) {
        if (!forward(modification, &guards, false))
            return false;
        modification->done = !is_nothing(modification);
        if (modification->done)
            return reply_answer(modification, reply);
        if (!remove_outlier(modification, &found, &removed, reply))
            return false;
        modification->done = removed;
        if (removed)
            return true;
    }
    if (!found)
        return reply_answer(modification, reply);
    return spill_translation_fail(translation, SPILL_SERVER_WRITE_CONFLICT,
                                  "spillway: the document changed at every try: try again");
}

/*
 * The statement does not touch F, but the document that is returned may have it. So the server
 * makes the change on a document without pages; on one with pages only if the document can be
 * returned.
 */
static bool run_relayed(spill_change_t *change)
{
    spill_look_t look;
    modification_t *modification = change->context;
    spill_translation_t *translation = modification->translation;
    const spill_statement_t *statement = change->statement;
    bson_t nothing = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t guards = BSON_INITIALIZER;
    if (modification->asked.kind <= SPILL_ASKED_STRIP)
        return attempt(change, &nothing, statement->upsert, false);
    spill_guard_no_pages(translation, &guards);
    if (!attempt(change, &guards, false, false))
        return false;
    if (change->n > 0)
        return true;
    if (!spill_look(translation, &modification->query, NULL, &look))
        return false;
    bool done = look.pages == 0 || check_return(modification, &look);
    spill_look_release(&look);
    return done && attempt(change, &nothing, statement->upsert, false);
}

static bool run_unserved(modification_t *modification, const bson_t *query, bson_t *reply)
{
    spill_translation_t *translation = modification->translation;
    if (flag(translation, "remove"))
        return spill_translation_refuse(translation, translation->array, "findAndModify",
                                        "the gateway does not serve this layout: use the library");
    bson_concat(&modification->query, query);
    return read_statement(modification) && spill_translation_forward(translation, reply);
}

static bool fail_repeated(spill_translation_t *translation)
{
    return spill_translation_fail(
        translation, SPILL_SERVER_INCOMPLETE_HISTORY,
        "spillway: an earlier try has made the change, and the document before it is not known any "
        "more: ask for the new document, or read it with find");
}

static bool run_update(modification_t *modification, bson_t *reply)
{
    spill_change_t change;
    spill_statement_numbers_t numbers = {0};
    const spill_statement_t *statement = &modification->statement;
    spill_change_init(&change, modification->translation, statement, &numbers);
    change.attempt = attempt;
    change.rewrite = rewrite;
    change.prepare = prepare;
    change.context = modification;
    bool done =
        spill_statement_is_relayed(statement) ? run_relayed(&change) : spill_change_one(&change);
    if (done && change.repeated && !modification->returns_new)
        done = fail_repeated(modification->translation);
    else if (done)
        done = change.appended ? reply_appended(modification, &change, reply)
                               : reply_answer(modification, reply);
    modification->done = done && (change.appended || !is_nothing(modification));
    spill_change_release(&change);
    spill_numbers_release(&numbers);
    return done;
}

bool spill_translate_modify(spill_translation_t *translation, bson_t *reply)
{
    bson_t query = BSON_INITIALIZER;
    SPILL_SCOPED(release) modification_t modification = {.translation = translation};
    bson_init(&modification.query);
    bson_init(&modification.before);
    bson_init(&modification.made);
    spill_translation_find_document(translation, "query", &query);
    if (translation->at->array == NULL)
        return run_unserved(&modification, &query, reply);
    if (!read_fields(&modification))
        return false;
    for (int tries = 1;; tries++) {
        bool done = choose(&modification, &query) && read_statement(&modification) &&
                    (modification.removes ? run_removal(&modification, reply)
                                          : run_update(&modification, reply));
        /* The document that sort chose has changed: choose again. */
        if (!done || modification.done || !modification.chosen || tries == TRIES)
            return done;
        bson_destroy(reply);
    }
}
