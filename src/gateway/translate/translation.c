#include "gateway/translate/translation.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spill_translation_init(spill_translation_t *translation, spill_served_t *served,
                            spill_client_connection_t *connection,
                            const spill_client_command_t *command)
{
    *translation = (spill_translation_t){
        .served = served, .array = "", .connection = connection, .command = command};
    if (connection != NULL)
        memcpy(translation->user, connection->user, sizeof translation->user);
    bson_init(&translation->failure);
    translation->at = spill_served_find(served, command->database, command->collection);
    if (translation->at != NULL)
        translation->array = translation->at->definition->array;
}

const char *spill_translation_book_path(const spill_translation_t *translation, const char *field,
                                        char path[SPILL_BOOK_PATH_SIZE])
{
    return spill_bookkeeping_path(translation->at->definition->array, field, path);
}

void spill_translation_release(spill_translation_t *translation)
{
    bson_destroy(&translation->failure);
}

/* ---- the client's body ----------------------------------------------------------------------- */

bool spill_translation_find(const spill_translation_t *translation, const char *name,
                            bson_iter_t *iter)
{
    return bson_iter_init_find(iter, &translation->command->message->body, name);
}

bool spill_translation_find_document(const spill_translation_t *translation, const char *name,
                                     bson_t *document)
{
    bson_iter_t iter;
    return spill_translation_find(translation, name, &iter) && BSON_ITER_HOLDS_DOCUMENT(&iter) &&
           spill_iter_document(&iter, document);
}

/* Is it {w: 0}? Then upstream would not say what it has done. */
static bool is_unacknowledged(const bson_iter_t *concern)
{
    bson_t document;
    bson_iter_t w;
    return spill_iter_document(concern, &document) && bson_iter_init_find(&w, &document, "w") &&
           BSON_ITER_HOLDS_NUMBER(&w) && bson_iter_as_int64(&w) == 0;
}

void spill_translation_copy_body(const spill_translation_t *translation, const char *const *except,
                                 bson_t *copy)
{
    bson_iter_t field;
    if (!bson_iter_init(&field, &translation->command->message->body))
        return;
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (spill_is_one_of(key, except) || strcmp(key, "stmtIds") == 0 ||
            strcmp(key, "stmtId") == 0 ||
            (strcmp(key, "writeConcern") == 0 && is_unacknowledged(&field)))
            continue;
        bson_append_iter(copy, key, -1, &field);
    }
}

void spill_translation_finish_step(const spill_translation_t *translation, bson_t *step)
{
    static const char *const names[] = {"$db",        "lsid",      "$clusterTime",
                                        "apiVersion", "apiStrict", "apiDeprecationErrors",
                                        "comment",    NULL};
    bson_iter_t field;
    if (!bson_iter_init(&field, &translation->command->message->body))
        return;
    while (bson_iter_next(&field))
        if (spill_is_one_of(bson_iter_key(&field), names))
            bson_append_iter(step, NULL, -1, &field);
}

bool spill_translation_check_concern(spill_translation_t *translation)
{
    bson_t concern;
    bson_iter_t w;
    if (!spill_translation_find_document(translation, "writeConcern", &concern) ||
        !bson_iter_init_find(&w, &concern, "w"))
        return true;
    bool known = BSON_ITER_HOLDS_NUMBER(&w) ? bson_iter_as_double(&w) <= 1
                                            : BSON_ITER_HOLDS_UTF8(&w) &&
                                                  strcmp(bson_iter_utf8(&w, NULL), "majority") == 0;
    return known ||
           spill_translation_fail(
               translation, SPILL_SERVER_UNSATISFIABLE_WRITE_CONCERN,
               "spillway: changes of a managed array, and pushes that adopt one, wait for the "
               "majority, and for no other write concern: use w: \"majority\"");
}

/* ---- failures -------------------------------------------------------------------------------- */

static void set_failure(spill_translation_t *translation, spill_server_code_t code,
                        const char *message)
{
    char *valid = bson_utf8_validate(message, strlen(message), false)
                      ? NULL
                      : bson_strdup("spillway: the message has malformed text");
    bson_reinit(&translation->failure);
    BSON_APPEND_INT32(&translation->failure, "code", (int32_t)code);
    BSON_APPEND_UTF8(&translation->failure, "codeName", spill_server_name_of((int)code));
    BSON_APPEND_UTF8(&translation->failure, "errmsg", valid != NULL ? valid : message);
    translation->failed = true;
    translation->by_library = false;
    translation->whole = false;
    bson_free(valid);
}

bool spill_translation_fail(spill_translation_t *translation, spill_server_code_t code,
                            const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    set_failure(translation, code, message);
    return false;
}

bool spill_translation_refuse_in(spill_translation_t *translation, const char *collection,
                                 const char *field, const char *operation, const char *reason)
{
    bson_t details;
    bool names_both = field[0] != '\0' && collection[0] != '\0';
    spill_translation_fail(translation, SPILL_SERVER_NOT_SUPPORTED,
                           "spillway: %s is refused for '%s'%s%s%s: %s", operation,
                           field[0] != '\0' ? field : collection, names_both ? " of '" : "",
                           names_both ? collection : "", names_both ? "'" : "", reason);
    BSON_APPEND_DOCUMENT_BEGIN(&translation->failure, "spillway", &details);
    if (collection[0] != '\0')
        BSON_APPEND_UTF8(&details, "collection", collection);
    if (field[0] != '\0')
        BSON_APPEND_UTF8(&details, "field", field);
    BSON_APPEND_UTF8(&details, "operator", operation);
    BSON_APPEND_UTF8(&details, "reason", reason);
    bson_append_document_end(&translation->failure, &details);
    return false;
}

bool spill_translation_refuse(spill_translation_t *translation, const char *field,
                              const char *operation, const char *reason)
{
    const char *named = translation->command->collection;
    return spill_translation_refuse_in(translation,
                                       translation->at != NULL ? translation->at->collection
                                       : named != NULL         ? named
                                                               : "",
                                       field, operation, reason);
}

bool spill_translation_find_collation(const spill_translation_t *translation,
                                      const bson_t *statement, bson_iter_t *collation)
{
    return (statement != NULL && bson_iter_init_find(collation, statement, "collation")) ||
           spill_translation_find(translation, "collation", collation);
}

/* Does the filter concern at most the owner of this _id? With a collation, several are equal. */
static bool names_owner(const spill_translation_t *translation, const bson_t *statement,
                        const bson_t *filter, bson_iter_t *id)
{
    bson_iter_t collation;
    return filter != NULL && spill_filter_find_id(filter, id) &&
           !spill_translation_find_collation(translation, statement, &collation);
}

bool spill_translation_refuse_search(spill_translation_t *translation, const bson_t *filter,
                                     const char *operation)
{
    bson_iter_t id;
    return spill_translation_refuse(
        translation, translation->array, operation,
        names_owner(translation, NULL, filter, &id)
            ? "the array of this _id has pages, which the server does not search: find the "
              "document by its _id alone, and choose in the application"
            : "arrays of the collection have pages, which the server does not search: add the _id "
              "of an array without pages, or find the documents without this condition and choose "
              "in the application");
}

bool spill_translation_refuse_view(spill_translation_t *translation,
                                   const spill_served_view_t *view, const char *operation)
{
    char *reason = bson_strdup_printf("the view reads '%s', and would return heads without their "
                                      "pages: read '%s' itself",
                                      view->collection, view->collection);
    spill_translation_refuse_in(translation, view->name, "", operation, reason);
    bson_free(reason);
    return false;
}

bool spill_translation_refuse_hidden(spill_translation_t *translation, const char *collection)
{
    return spill_translation_fail(
        translation, SPILL_SERVER_UNAUTHORIZED,
        "spillway: %s is refused for '%s', which has pages or bookkeeping of Spillway: a change "
        "there would damage arrays; change the documents of the collection itself",
        translation->command->name, collection);
}

bool spill_translation_refuse_spill(spill_translation_t *translation, const char *place)
{
    return spill_translation_refuse(translation, SPILL_STORED_ROOT, place,
                                    "this field belongs to Spillway; leave it out");
}

static void append_labels(spill_translation_t *translation, const char *first, const char *second)
{
    bson_t labels;
    BSON_APPEND_ARRAY_BEGIN(&translation->failure, "errorLabels", &labels);
    BSON_APPEND_UTF8(&labels, "0", first);
    if (second != NULL)
        BSON_APPEND_UTF8(&labels, "1", second);
    bson_append_array_end(&translation->failure, &labels);
}

bool spill_translation_overloaded(spill_translation_t *translation, const char *what)
{
    spill_translation_fail(translation, SPILL_SERVER_OVERLOADED,
                           "spillway: %s; try again in some seconds", what);
    append_labels(translation, "SystemOverloadedError", "RetryableError");
    translation->whole = true;
    return false;
}

bool spill_translation_fail_gaps(spill_translation_t *translation)
{
    return spill_translation_fail(
        translation, SPILL_SERVER_NOT_SUPPORTED,
        "spillway: in this command, statements that change nothing lie between those that change "
        "this document, at more than %d places: the gateway cannot number them. This statement "
        "and later ones on the document were not made: send them in another command, or the "
        "statements of one document in smaller ones",
        SPILL_SESSION_RUNS_MAX - 1);
}

static spill_server_code_t code_of(spill_code_t code)
{
    switch (code) {
    case SPILL_TOO_BIG:
        return SPILL_SERVER_DOCUMENT_TOO_LARGE;
    case SPILL_CONFLICT:
        return SPILL_SERVER_WRITE_CONFLICT;
    case SPILL_DENIED:
    case SPILL_READ_ONLY:
        return SPILL_SERVER_UNAUTHORIZED;
    case SPILL_UNKNOWN:
    case SPILL_IO:
    case SPILL_BUSY:
        return SPILL_SERVER_SHUTDOWN;
    default:
        return SPILL_SERVER_BAD_VALUE;
    }
}

bool spill_translation_fail_library(spill_translation_t *translation, spill_code_t code,
                                    const spill_error_t *error)
{
    if (error->reason == SPILL_REASON_SESSIONS)
        return error->retryable ? spill_translation_overloaded(translation, error->message)
                                : spill_translation_fail_gaps(translation);
    if (error->reason == SPILL_REASON_TOO_OLD)
        return spill_translation_fail(translation, SPILL_SERVER_TRANSACTION_TOO_OLD, "spillway: %s",
                                      error->message);
    spill_translation_fail(translation, code_of(code), "spillway: %s", error->message);
    translation->by_library = true;
    if (code == SPILL_UNKNOWN && translation->command->txn_number >= 0) {
        append_labels(translation, "RetryableWriteError", NULL);
        translation->whole = true; /* a driver reads the label there, and repeats the command */
    }
    return false;
}

void spill_translation_recover(spill_translation_t *translation)
{
    bson_reinit(&translation->failure);
    translation->failed = false;
}

int spill_translation_failure_code(const spill_translation_t *translation)
{
    bson_iter_t code;
    return translation->failed && bson_iter_init_find(&code, &translation->failure, "code")
               ? (int)bson_iter_as_int64(&code)
               : 0;
}

bool spill_translation_is_duplicate(const spill_translation_t *translation)
{
    bson_iter_t text;
    switch (spill_translation_failure_code(translation)) {
    case SPILL_SERVER_DUPLICATE_KEY:
        return true;
    case SPILL_SERVER_INTERNAL_ERROR:
        return bson_iter_init_find(&text, &translation->failure, "errmsg") &&
               BSON_ITER_HOLDS_UTF8(&text) &&
               strstr(bson_iter_utf8(&text, NULL),
                      "duplicate key value violates unique constraint") != NULL;
    default:
        return false;
    }
}

bool spill_translation_may_have_changed(const spill_translation_t *translation)
{
    return translation->close ||
           spill_server_may_have_changed(spill_translation_failure_code(translation));
}

/* ---- time ------------------------------------------------------------------------------------ */

static const char *const modifies[] = {"findAndModify", "findandmodify", NULL};

/* INT64_MAX: no end. */
static int64_t time_left_us(const spill_translation_t *translation)
{
    const int64_t most_ms = INT32_MAX;
    int64_t received_us = translation->connection->received_us;
    int64_t bound_ms = translation->command->max_time_ms;
    bool answers = translation->written && spill_is_one_of(translation->command->name, modifies);
    if (bound_ms <= 0 || bound_ms > most_ms || received_us == 0 || answers)
        return INT64_MAX;
    return received_us + bound_ms * 1000 - spill_clock_monotonic_us(NULL);
}

bool spill_translation_has_time(spill_translation_t *translation)
{
    return time_left_us(translation) > 0 ||
           spill_translation_fail(translation, SPILL_SERVER_TIME_EXPIRED,
                                  "spillway: the command's maxTimeMS has passed; the steps that "
                                  "were begun are completed, the others are not made");
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const char *text_of(const bson_t *document, const char *path)
{
    bson_iter_t iter, found;
    return bson_iter_init(&iter, document) && bson_iter_find_descendant(&iter, path, &found) &&
                   BSON_ITER_HOLDS_UTF8(&found)
               ? bson_iter_utf8(&found, NULL)
               : NULL;
}

/* Is the failure the gateway's own answer to what was asked, and not one of the moment? */
static bool is_refusal(const spill_translation_t *translation)
{
    static const char own[] = "spillway: ";
    const char *message = text_of(&translation->failure, "errmsg");
    if (translation->by_library || message == NULL || strncmp(message, own, strlen(own)) != 0)
        return false;
    switch (spill_activity_error_of(spill_translation_failure_code(translation))) {
    case SPILL_ACTIVITY_UNAVAILABLE:
    case SPILL_ACTIVITY_TIME:
    case SPILL_ACTIVITY_CONFLICT:
    case SPILL_ACTIVITY_OVERLOAD:
        return false;
    default:
        return true;
    }
}

void spill_translation_note_reply(const spill_translation_t *translation, const bson_t *reply)
{
    int code = spill_reply_error_code(reply);
    if (code != 0 && !translation->counted)
        spill_activity_failed(translation->connection->activity, translation->command->name, code);
}

void spill_translation_note_failure(spill_translation_t *translation)
{
    spill_activity_t *activity = translation->connection->activity;
    translation->counted = true;
    int code = spill_translation_failure_code(translation);
    if (is_refusal(translation))
        spill_activity_refused(activity, translation->command->name,
                               translation->at != NULL ? translation->at->collection : "", code,
                               text_of(&translation->failure, "spillway.operator"));
    else if (code != 0)
        spill_activity_failed(activity, translation->command->name, code);
}

/* ---- upstream -------------------------------------------------------------------------------- */

static bool is_ok(const bson_t *reply)
{
    bson_iter_t ok;
    return bson_iter_init_find(&ok, reply, "ok") && spill_iter_is_true(&ok);
}

bool spill_translation_keep(spill_translation_t *translation, const bson_t *error, bool whole)
{
    bson_iter_t field;
    bson_reinit(&translation->failure);
    translation->failed = true;
    translation->whole = whole;
    if (!bson_iter_init(&field, error))
        return false;
    translation->by_library = false;
    while (bson_iter_next(&field))
        if (strcmp(bson_iter_key(&field), "ok") != 0 && strcmp(bson_iter_key(&field), "index") != 0)
            bson_append_iter(&translation->failure, NULL, -1, &field);
    return false;
}

bool spill_translation_keep_write_error(spill_translation_t *translation, const bson_t *reply,
                                        bool whole)
{
    bson_iter_t iter, found;
    bson_t error;
    return !(bson_iter_init(&iter, reply) &&
             bson_iter_find_descendant(&iter, "writeErrors.0", &found) &&
             spill_iter_document(&found, &error)) ||
           spill_translation_keep(translation, &error, whole);
}

static bool begins_with(const bson_t *body, const char *const *names)
{
    bson_iter_t iter;
    return bson_iter_init(&iter, body) && bson_iter_next(&iter) &&
           spill_is_one_of(bson_iter_key(&iter), names);
}

/* Send a command, with the time that is left as its maxTimeMS. A getMore cannot have one. */
static spill_code_t send_in_time(spill_translation_t *translation, const bson_t *body,
                                 const spill_wire_sequence_t *sequences, size_t count,
                                 bson_t *reply, spill_error_t *error)
{
    static const char *const timeless[] = {"getMore", "killCursors", NULL};
    spill_client_connection_t *connection = translation->connection;
    int64_t left_us = time_left_us(translation);
    if (left_us == INT64_MAX || begins_with(body, timeless))
        return connection->call(connection, body, sequences, count, reply, error);
    SPILL_SCOPED(bson_destroy) bson_t timed = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(body, &timed, "maxTimeMS", NULL);
    BSON_APPEND_INT64(&timed, "maxTimeMS", left_us / 1000 + 1);
    return connection->call(connection, &timed, sequences, count, reply, error);
}

int spill_reply_error_code(const bson_t *reply)
{
    static const char *const places[] = {"code", "writeErrors.0.code"};
    bson_iter_t iter, found;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, places[i], &found))
            return (int)bson_iter_as_int64(&found);
    return 0;
}

/* Does the reply show that the server changed a document, or may it have? */
static bool may_show_change(const bson_t *reply)
{
    static const char *const counts[] = {"n", "lastErrorObject.n"};
    bson_iter_t iter, found;
    if (spill_server_may_have_changed(spill_reply_error_code(reply)))
        return true;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, counts[i], &found) &&
            bson_iter_as_int64(&found) > 0)
            return true;
    return bson_iter_init_find(&iter, reply, "value") && BSON_ITER_HOLDS_DOCUMENT(&iter);
}

static bool call(spill_translation_t *translation, const bson_t *body,
                 const spill_wire_sequence_t *sequences, size_t count, bson_t *reply)
{
    spill_error_t error;
    spill_client_connection_t *connection = translation->connection;
    if (!spill_translation_has_time(translation))
        return false;
    translation->written |= begins_with(body, modifies);
    spill_code_t code = send_in_time(translation, body, sequences, count, reply, &error);
    if (bson_has_field(body, "txnNumber") && (code != SPILL_OK || may_show_change(reply)))
        connection->changed = true;
    if (code != SPILL_OK) {
        translation->close = true;
        set_failure(translation, SPILL_SERVER_SHUTDOWN, error.message);
        translation->whole = true;
        return false;
    }
    if (is_ok(reply))
        return true;
    spill_translation_keep(translation, reply, true);
    bson_destroy(reply);
    return false;
}

bool spill_translation_call(spill_translation_t *translation, const bson_t *body, bson_t *reply)
{
    return call(translation, body, NULL, 0, reply);
}

bool spill_translation_forward(spill_translation_t *translation, bson_t *reply)
{
    const spill_wire_message_t *message = translation->command->message;
    return call(translation, &message->body, message->sequences, message->sequence_count, reply);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Does a find with these fields return a document? */
static bool finds(spill_translation_t *translation, const char *collection, const bson_t *filter,
                  bool *any)
{
    bson_t reply;
    bson_iter_t iter, batch;
    bson_t *find =
        BCON_NEW("find", BCON_UTF8(collection), "filter", BCON_DOCUMENT(filter), "projection", "{",
                 "_id", BCON_INT32(1), "}", "limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    spill_translation_finish_step(translation, find);
    bool done = spill_translation_call(translation, find, &reply);
    if (done) {
        *any = bson_iter_init(&iter, &reply) &&
               bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) &&
               bson_iter_recurse(&batch, &iter) && bson_iter_next(&iter);
        bson_destroy(&reply);
    }
    bson_destroy(find);
    return done;
}

void spill_translation_append_context(const spill_translation_t *translation,
                                      const bson_t *statement, bson_t *find)
{
    bson_iter_t iter;
    if (spill_translation_find_collation(translation, statement, &iter))
        bson_append_iter(find, NULL, -1, &iter);
    if (spill_translation_find(translation, "let", &iter))
        bson_append_iter(find, NULL, -1, &iter);
}

bool spill_translation_find_pages(spill_translation_t *translation, const bson_t *statement,
                                  const bson_t *filter, bool *any)
{
    char path[SPILL_BOOK_PATH_SIZE];
    bson_iter_t id;
    SPILL_SCOPED(bson_destroy) bson_t heads = BSON_INITIALIZER;
    const spill_definition_t *definition = translation->at->definition;
    *any = false;
    if (!names_owner(translation, statement, filter, &id))
        return finds(translation, definition->page_collection, &heads, any);
    bson_append_iter(&heads, "_id", -1, &id);
    BCON_APPEND(&heads, spill_translation_book_path(translation, SPILL_STORED_PAGES, path), "{",
                "$gt", BCON_INT64(0), "}");
    return finds(translation, definition->collection, &heads, any);
}
