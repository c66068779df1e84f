/*
 * The command bulkWrite: its operations as insert, update and delete commands, each on its own
 * collection, and one reply. So it works on servers that do not know the command.
 */
#include "gateway/translate/mention.h"
#include "gateway/translate/statements.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <string.h>

enum { OPERATIONS_MAX = 100000, ENTRY_BYTES = 512 };

typedef enum kind { KIND_INSERT, KIND_UPDATE, KIND_DELETE } kind_t;

static const struct {
    const char *name, *list;
    spill_translate_fn run;
} kinds[] = {[KIND_INSERT] = {"insert", "documents", spill_translate_insert},
             [KIND_UPDATE] = {"update", "updates", spill_translate_update},
             [KIND_DELETE] = {"delete", "deletes", spill_translate_delete}};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* One operation, which borrows from the command. */
typedef struct operation {
    kind_t kind;
    int64_t ns; /* its place in nsInfo */
    bson_t document;
} operation_t;

typedef struct bulk {
    spill_translation_t *translation;
    char **databases; /* of nsInfo, ended by NULL; the collection follows the dot's place */
    int64_t ns_count;
    int32_t index; /* of the next operation */
    int32_t count;
    bool ordered, errors_only;
    spill_statement_numbers_t numbers;
    bson_t results; /* an array */
    uint32_t result_count;
    int32_t errors, inserted, matched, modified, upserted, deleted;
    bson_t rest; /* other fields of the last reply */
    bool stopped;
} bulk_t;

static void release(bulk_t *bulk)
{
    for (int64_t i = 0; i < bulk->ns_count; i++)
        bson_free(bulk->databases[i]);
    bson_free(bulk->databases);
    spill_numbers_release(&bulk->numbers);
    bson_destroy(&bulk->results);
    bson_destroy(&bulk->rest);
}

static bool flag(const spill_translation_t *translation, const char *name, bool otherwise)
{
    bson_iter_t iter;
    return spill_translation_find(translation, name, &iter) ? spill_iter_is_true(&iter) : otherwise;
}

/* ---- reading the command --------------------------------------------------------------------- */

static const char *collection_of(const bulk_t *bulk, int64_t ns)
{
    return bulk->databases[ns] + strlen(bulk->databases[ns]) + 1;
}

static bool read_namespace(bulk_t *bulk, const bson_t *entry)
{
    bson_iter_t iter;
    spill_translation_t *translation = bulk->translation;
    const char *text = "";
    if (!spill_statement_check(translation, entry))
        return false;
    for (bool any = bson_iter_init(&iter, entry); any && bson_iter_next(&iter);) {
        if (strcmp(bson_iter_key(&iter), "ns") != 0 || !BSON_ITER_HOLDS_UTF8(&iter))
            return spill_translation_refuse(translation, bson_iter_key(&iter), "bulkWrite",
                                            "entries of nsInfo can only have a text `ns`");
        text = bson_iter_utf8(&iter, NULL);
    }
    const char *dot = strchr(text, '.');
    if (dot == NULL || dot == text || dot[1] == '\0')
        return spill_translation_fail(translation, SPILL_SERVER_BAD_VALUE,
                                      "spillway: an entry of nsInfo has no ns such as db.c");
    bulk->databases =
        bson_realloc(bulk->databases, (size_t)(bulk->ns_count + 1) * sizeof *bulk->databases);
    bulk->databases[bulk->ns_count] = bson_strdup(text);
    bulk->databases[bulk->ns_count][dot - text] = '\0';
    bulk->ns_count++;
    return !spill_served_hidden(translation->served, bulk->databases[bulk->ns_count - 1],
                                collection_of(bulk, bulk->ns_count - 1)) ||
           spill_translation_refuse_hidden(translation, collection_of(bulk, bulk->ns_count - 1));
}

static bool has_document(const bson_t *document, const char *name, bool list)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) &&
           (BSON_ITER_HOLDS_DOCUMENT(&iter) || (list && BSON_ITER_HOLDS_ARRAY(&iter)));
}

static bool read_operation(bulk_t *bulk, const bson_t *document, operation_t *operation)
{
    bson_iter_t iter;
    size_t kind = 0;
    if (!spill_statement_check(bulk->translation, document))
        return false;
    bool any = bson_iter_init(&iter, document) && bson_iter_next(&iter);
    while (any && kind < KINDS && strcmp(bson_iter_key(&iter), kinds[kind].name) != 0)
        kind++;
    if (!any || kind == KINDS || !BSON_ITER_HOLDS_NUMBER(&iter))
        return spill_translation_fail(bulk->translation, SPILL_SERVER_BAD_VALUE,
                                      "spillway: an entry of ops must begin with insert, update "
                                      "or delete and a number");
    operation->kind = (kind_t)kind;
    operation->ns = bson_iter_as_int64(&iter);
    bson_init_static(&operation->document, bson_get_data(document), document->len);
    if (operation->ns < 0 || operation->ns >= bulk->ns_count)
        return spill_translation_fail(bulk->translation, SPILL_SERVER_BAD_VALUE,
                                      "spillway: an entry of ops names no entry of nsInfo");
    bool whole = kind == KIND_INSERT
                     ? has_document(document, "document", false)
                     : has_document(document, "filter", false) &&
                           (kind == KIND_DELETE || has_document(document, "updateMods", true));
    return whole || spill_translation_fail(bulk->translation, SPILL_SERVER_BAD_VALUE,
                                           "spillway: an entry of ops has no document, filter or "
                                           "updateMods");
}

/* Read everything once, so that a malformed command changes nothing. */
static bool read_command(bulk_t *bulk)
{
    bson_t document;
    operation_t operation;
    spill_translation_t *translation = bulk->translation;
    spill_statement_source_t source = spill_statement_source(translation, "nsInfo");
    bulk->ordered = flag(translation, "ordered", true);
    bulk->errors_only = flag(translation, "errorsOnly", false);
    while (spill_statement_next(&source, &document))
        if (!read_namespace(bulk, &document))
            return false;
    source = spill_statement_source(translation, "ops");
    while (bulk->count <= OPERATIONS_MAX && spill_statement_next(&source, &document)) {
        if (!read_operation(bulk, &document, &operation))
            return false;
        bulk->count++;
    }
    if (bulk->count == 0 || bulk->count > OPERATIONS_MAX)
        return spill_translation_fail(translation, SPILL_SERVER_INVALID_LENGTH,
                                      "spillway: a bulkWrite has 1 to %d operations",
                                      OPERATIONS_MAX);
    spill_client_connection_t *connection = translation->connection;
    return connection->reserve(connection, (size_t)bulk->count * ENTRY_BYTES) ||
           spill_translation_overloaded(translation, "the limit of memory (--memory) is reached");
}

/* ---- the reply ------------------------------------------------------------------------------- */

static void append_result(bulk_t *bulk, int32_t index, const bson_t *fields, bool ok)
{
    static const char *const shown[] = {"n", "nModified", "upserted", "code", "errmsg", NULL};
    static const char *const details[] = {"codeName", "spillway", "keyPattern",
                                          "keyValue", "errInfo",  NULL};
    char text[16];
    const char *key;
    bson_t entry;
    bson_iter_t field;
    bool room = bulk->results.len / ENTRY_BYTES <= bulk->result_count;
    if (ok && bulk->errors_only)
        return;
    bson_uint32_to_string(bulk->result_count++, &key, text, sizeof text);
    BSON_APPEND_DOCUMENT_BEGIN(&bulk->results, key, &entry);
    BSON_APPEND_DOUBLE(&entry, "ok", ok ? 1 : 0);
    BSON_APPEND_INT32(&entry, "idx", index);
    if (!ok)
        BSON_APPEND_INT32(&entry, "n", 0);
    for (bool any = bson_iter_init(&field, fields); any && bson_iter_next(&field);)
        if (spill_is_one_of(bson_iter_key(&field), shown) ||
            (room && spill_is_one_of(bson_iter_key(&field), details)))
            bson_append_iter(&entry, NULL, -1, &field);
    bson_append_document_end(&bulk->results, &entry);
}

static void append_error(bulk_t *bulk, int32_t index, const bson_t *error)
{
    bulk->errors++;
    bulk->stopped = bulk->ordered;
    append_result(bulk, index, error, false);
}

static int32_t number_of(const bson_t *reply, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, reply, name) ? (int32_t)bson_iter_as_int64(&iter) : 0;
}

/* An update or delete that was made. */
static void append_done(bulk_t *bulk, kind_t kind, const bson_t *reply)
{
    bson_t fields = BSON_INITIALIZER, upserted;
    bson_iter_t iter, id;
    int32_t n = number_of(reply, "n");
    BSON_APPEND_INT32(&fields, "n", n);
    if (kind == KIND_UPDATE) {
        bool inserted =
            bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "upserted.0._id", &id);
        BSON_APPEND_INT32(&fields, "nModified", number_of(reply, "nModified"));
        if (inserted) {
            BSON_APPEND_DOCUMENT_BEGIN(&fields, "upserted", &upserted);
            bson_append_iter(&upserted, "_id", -1, &id);
            bson_append_document_end(&fields, &upserted);
        }
        bulk->upserted += inserted;
        bulk->matched += n - inserted;
        bulk->modified += number_of(reply, "nModified");
    } else {
        bulk->deleted += n;
    }
    append_result(bulk, bulk->index, &fields, true);
    bson_destroy(&fields);
}

/* Is there a write error of this statement? *errors is at the first one that was not read. */
static bool next_error(bson_iter_t *errors, bool *any, int32_t statement, bson_t *error)
{
    bool failed = *any && spill_iter_document(errors, error) &&
                  (statement < 0 || number_of(error, "index") == statement);
    if (failed)
        *any = bson_iter_next(errors);
    return failed;
}

static bool find_errors(const bson_t *reply, bson_iter_t *errors)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, reply, "writeErrors") && BSON_ITER_HOLDS_ARRAY(&iter) &&
           bson_iter_recurse(&iter, errors) && bson_iter_next(errors);
}

/* The inserts of one command. After an ordered error, the others have no result. */
static void append_inserts(bulk_t *bulk, int32_t count, const bson_t *reply)
{
    bson_iter_t errors = {0};
    bson_t error, one = BSON_INITIALIZER;
    bool any = find_errors(reply, &errors);
    BSON_APPEND_INT32(&one, "n", 1);
    bulk->inserted += number_of(reply, "n");
    for (int32_t i = 0; i < count && !bulk->stopped; i++)
        if (next_error(&errors, &any, i, &error))
            append_error(bulk, bulk->index + i, &error);
        else
            append_result(bulk, bulk->index + i, &one, true);
    bson_destroy(&one);
}

static void append_results(bulk_t *bulk, kind_t kind, int32_t count, const bson_t *reply)
{
    bson_iter_t errors = {0};
    bson_t error;
    bool any = find_errors(reply, &errors);
    if (kind == KIND_INSERT)
        append_inserts(bulk, count, reply);
    else if (next_error(&errors, &any, -1, &error))
        append_error(bulk, bulk->index, &error);
    else
        append_done(bulk, kind, reply);
    if (!bson_has_field(&bulk->rest, "writeConcernError"))
        spill_reply_rest(reply, &bulk->rest);
}

static void make_reply(const bulk_t *bulk, bson_t *reply)
{
    bson_t cursor;
    bson_init(reply);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "cursor", &cursor);
    BSON_APPEND_INT64(&cursor, "id", 0);
    BSON_APPEND_ARRAY(&cursor, "firstBatch", &bulk->results);
    BSON_APPEND_UTF8(&cursor, "ns", "admin.$cmd.bulkWrite");
    bson_append_document_end(reply, &cursor);
    BSON_APPEND_INT32(reply, "nErrors", bulk->errors);
    BSON_APPEND_INT32(reply, "nInserted", bulk->inserted);
    BSON_APPEND_INT32(reply, "nMatched", bulk->matched);
    BSON_APPEND_INT32(reply, "nModified", bulk->modified);
    BSON_APPEND_INT32(reply, "nUpserted", bulk->upserted);
    BSON_APPEND_INT32(reply, "nDeleted", bulk->deleted);
    bson_concat(reply, &bulk->rest);
    BSON_APPEND_DOUBLE(reply, "ok", 1);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Make a statement of update or delete from an operation. */
static void append_statement(const operation_t *operation, spill_buffer_t *list)
{
    static const struct {
        const char *from, *to;
    } names[] = {{"filter", "q"}, {"updateMods", "u"}, {"constants", "c"}};
    bson_iter_t field;
    bson_t statement = BSON_INITIALIZER;
    bool removes = operation->kind == KIND_DELETE, many = false;
    bool any = bson_iter_init(&field, &operation->document) && bson_iter_next(&field);
    while (any && bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (removes && strcmp(key, "multi") == 0) {
            many = spill_iter_is_true(&field);
            continue;
        }
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(key, names[i].from) == 0)
                key = names[i].to;
        bson_append_iter(&statement, key, -1, &field);
    }
    if (removes)
        BSON_APPEND_INT32(&statement, "limit", many ? 0 : 1);
    spill_buffer_append(list, bson_get_data(&statement), statement.len);
    bson_destroy(&statement);
}

static void append_operation(const operation_t *operation, spill_buffer_t *list)
{
    bson_iter_t iter;
    const uint8_t *bytes;
    uint32_t size;
    if (operation->kind != KIND_INSERT) {
        append_statement(operation, list);
    } else if (bson_iter_init_find(&iter, &operation->document, "document")) {
        bson_iter_document(&iter, &size, &bytes);
        spill_buffer_append(list, bytes, size);
    }
}

/* Make the body of a command with `count` operations, without the operations. */
static void make_body(const bulk_t *bulk, const operation_t *operation, int32_t count, bson_t *body)
{
    static const char *const other[] = {"bulkWrite", "ops", "nsInfo", "errorsOnly",
                                        "cursor",    "$db", "let",    "bypassDocumentValidation",
                                        NULL};
    static const char *const own[] = {"let", "bypassDocumentValidation"};
    spill_translation_t *translation = bulk->translation;
    bson_iter_t field;
    bson_t numbers;
    char text[16];
    const char *key;
    bson_append_utf8(body, kinds[operation->kind].name, -1, collection_of(bulk, operation->ns), -1);
    spill_translation_copy_body(translation, other, body);
    if (operation->kind != KIND_INSERT && spill_translation_find(translation, own[0], &field))
        bson_append_iter(body, NULL, -1, &field);
    if (operation->kind != KIND_DELETE && spill_translation_find(translation, own[1], &field))
        bson_append_iter(body, NULL, -1, &field);
    if (translation->command->txn_number >= 0 &&
        atomic_load(spill_served_numbers_statements(translation->served))) {
        BSON_APPEND_ARRAY_BEGIN(body, "stmtIds", &numbers);
        for (int32_t i = 0; i < count; i++) {
            bson_uint32_to_string((uint32_t)i, &key, text, sizeof text);
            BSON_APPEND_INT32(&numbers, key, bulk->index + i);
        }
        bson_append_array_end(body, &numbers);
    }
    BSON_APPEND_UTF8(body, "$db", bulk->databases[operation->ns]);
}

/* Carry out one command. True: *reply is the server's or the gateway's. */
static bool run_once(bulk_t *bulk, const operation_t *operation, int32_t count,
                     const spill_buffer_t *list, bson_t *reply)
{
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_t one, *translation = bulk->translation;
    spill_client_command_t command;
    spill_error_t error;
    make_body(bulk, operation, count, &body);
    spill_wire_message_t message = {
        .sequences = {{kinds[operation->kind].list, list->data, list->size}}, .sequence_count = 1};
    bson_init_static(&message.body, bson_get_data(&body), body.len);
    if (spill_client_command_read(&message, &command, &error) != SPILL_OK)
        return spill_translation_fail(translation, SPILL_SERVER_INVALID_BSON, "spillway: %s",
                                      error.message);
    spill_bulk_place_t place = {
        .index = bulk->index, .count = (size_t)bulk->count, .numbers = &bulk->numbers};
    spill_translation_init(&one, translation->served, translation->connection, &command);
    one.bulk = &place;
    bool done = one.at != NULL ? kinds[operation->kind].run(&one, reply)
                               : spill_translation_forward(&one, reply);
    translation->close = one.close;
    if (!done)
        spill_translation_keep(translation, &one.failure, one.whole);
    spill_translation_release(&one);
    return done;
}

/* Does the failure end the whole command, because the driver may repeat it? */
static bool is_fatal(const spill_translation_t *translation)
{
    return translation->close ||
           spill_server_changes_state(spill_translation_failure_code(translation)) ||
           bson_has_field(&translation->failure, "errorLabels");
}

static bool run_command(bulk_t *bulk, const operation_t *operation, int32_t count,
                        const spill_buffer_t *list)
{
    bson_t reply;
    spill_translation_t *translation = bulk->translation;
    atomic_bool *numbered = spill_served_numbers_statements(translation->served);
    bool done = run_once(bulk, operation, count, list, &reply);
    if (!done && spill_translation_failure_code(translation) == SPILL_SERVER_UNKNOWN_FIELD &&
        translation->command->txn_number >= 0 && atomic_exchange(numbered, false))
        done = run_once(bulk, operation, count, list, &reply);
    if (!done && is_fatal(translation))
        return false;
    if (!done)
        spill_translation_note_failure(translation);
    if (done) {
        append_results(bulk, operation->kind, count, &reply);
        bson_destroy(&reply);
    }
    for (int32_t i = 0; !done && i < count && !bulk->stopped; i++)
        append_error(bulk, bulk->index + i, &translation->failure);
    spill_translation_recover(translation);
    bulk->index += count;
    return true;
}

/* Inserts into one collection that follow each other become one command. */
static bool run_all(bulk_t *bulk)
{
    bson_t document;
    operation_t operation = {0}, next = {0};
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t list = SPILL_BUFFER_INIT;
    spill_statement_source_t source = spill_statement_source(bulk->translation, "ops");
    bool done = true;
    bool any =
        spill_statement_next(&source, &document) && read_operation(bulk, &document, &operation);
    while (any && done && !bulk->stopped) {
        int32_t count = 0;
        spill_buffer_clear(&list);
        next = operation;
        do {
            append_operation(&next, &list);
            count++;
            any =
                spill_statement_next(&source, &document) && read_operation(bulk, &document, &next);
        } while (any && operation.kind == KIND_INSERT && next.kind == KIND_INSERT &&
                 next.ns == operation.ns);
        done = run_command(bulk, &operation, count, &list);
        operation = next;
    }
    return done;
}

bool spill_translate_bulk(spill_translation_t *translation, bson_t *reply)
{
    SPILL_SCOPED(release) bulk_t bulk = {.translation = translation};
    bson_init(&bulk.results);
    bson_init(&bulk.rest);
    if (!read_command(&bulk) || !run_all(&bulk))
        return false;
    make_reply(&bulk, reply);
    return true;
}
