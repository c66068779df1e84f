/*
 * Operations of sessions on a server. A head has, in its bookkeeping,
 *
 *   sessions: {<session and user in hexadecimal>: {txn: T, at: DATE, done: [first, last, ...]}}
 *
 * so that one path names a session's entry. Its guard is a comparison of that path, and $set writes
 * it; the server's clock dates it. An append that was not read before assumes the most likely
 * entry: of an earlier transaction or none or, if its number is above 0, one that has all numbers
 * before. If that is wrong, the guard does not hold, and the document is read.
 */
#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/session_document.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

enum { SESSION_PATH_SIZE = SPILL_MONGO_PATH_SIZE + SPILL_SESSION_HEX_SIZE + 8 };

bool spill_mongo_has_sessions(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    return schema->appends_to_head && schema->has_pages && !schema->has_referenced_elements;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* "spill.activities.sessions.<hex>" and, unless `name` is "", ".name". */
static const char *path_of(const spill_mongo_document_t *document, const spill_session_op_t *op,
                           const char *name, char path[SESSION_PATH_SIZE])
{
    char hex[SPILL_SESSION_HEX_SIZE];
    snprintf(path, SESSION_PATH_SIZE, "%s.sessions.%s%s%s", document->spill,
             spill_session_hex(op, hex), name[0] != '\0' ? "." : "", name);
    return path;
}

/*
 * The entry that the step relies on: the one that was read or, if none was, the most likely one.
 * False: none, or one of an earlier transaction.
 */
static bool expected(const spill_mongo_document_t *document, const spill_session_op_t *op,
                     spill_session_entry_t *entry)
{
    if (document->judged) {
        *entry = document->judged->session_entry;
        return entry->run_count > 0 && entry->txn == op->txn;
    }
    *entry = (spill_session_entry_t){.txn = op->txn, .run_count = 1};
    entry->runs[0] = (spill_session_run_t){0, op->number - 1};
    return op->number > 0;
}

/* ---- guards ---------------------------------------------------------------------------------- */

/* Append an expression to the operands of $and. */
static void append_operand(bson_t *all, uint32_t *number, const bson_t *expression)
{
    char buffer[16];
    const char *key;
    bson_uint32_to_string((*number)++, &key, buffer, sizeof buffer);
    BSON_APPEND_DOCUMENT(all, key, expression);
}

static void append_condition(const spill_mongo_document_t *document, const spill_session_op_t *op,
                             uint32_t *number, bson_t *all)
{
    char path[SESSION_PATH_SIZE], ref[SESSION_PATH_SIZE + 1];
    spill_session_entry_t entry;
    bool same = expected(document, op, &entry);
    snprintf(ref, sizeof ref, "$%s", path_of(document, op, SPILL_STORED_SESSION_TXN, path));
    if (!same) {
        SPILL_SCOPED(spill_mongo_destroy)
        bson_t *below = BCON_NEW("$lt", "[", "{", "$ifNull", "[", BCON_UTF8(ref), BCON_INT64(-1),
                                 "]", "}", BCON_INT64(op->txn), "]");
        append_operand(all, number, below);
        return;
    }
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *txn = BCON_NEW("$eq", "[", BCON_UTF8(ref), BCON_INT64(op->txn), "]");
    append_operand(all, number, txn);
    SPILL_SCOPED(bson_destroy) bson_t done = BSON_INITIALIZER;
    bson_t sides;
    snprintf(ref, sizeof ref, "$%s", path_of(document, op, SPILL_STORED_SESSION_DONE, path));
    BSON_APPEND_ARRAY_BEGIN(&done, "$eq", &sides);
    BSON_APPEND_UTF8(&sides, "0", ref);
    spill_session_append_done(&entry, "1", &sides);
    bson_append_array_end(&done, &sides);
    append_operand(all, number, &done);
}

/*
 * There is room for more entries. Without a READ before, the guard compares their bytes, because
 * the server need not count them. An entry has at least SPILL_SESSION_ENTRY_BYTES.
 */
static void append_room(const spill_mongo_document_t *document, const spill_session_op_t *op,
                        int64_t added, uint32_t *number, bson_t *all)
{
    char path[SPILL_MONGO_PATH_SIZE];
    int64_t most = spill_session_entries_max(op) - added;
    spill_mongo_ref(document, SPILL_STORED_SESSIONS, path);
    if (document->judged && document->judged->session_entry.run_count > 0)
        return; /* the entry is replaced */
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *size =
        document->judged
            ? BCON_NEW("$lte", "[", "{", "$size", "{", "$objectToArray", "{", "$ifNull", "[",
                       BCON_UTF8(path), "{", "}", "]", "}", "}", "}", BCON_INT64(most), "]")
            : BCON_NEW("$lte", "[", "{", "$ifNull", "[", "{", "$bsonSize", BCON_UTF8(path), "}",
                       BCON_INT64(0), "]", "}", BCON_INT64(most * SPILL_SESSION_ENTRY_BYTES), "]");
    append_operand(all, number, size);
}

uint32_t spill_mongo_append_session_conditions(const spill_mongo_document_t *document,
                                               uint32_t number, bson_t *all)
{
    const spill_session_op_t *op, *any = NULL;
    int64_t count, added = 0;
    for (size_t i = 0; (op = spill_request_session_at(document->request, i, &count)) != NULL; i++) {
        append_condition(document, op, &number, all);
        any = op;
        added++;
    }
    if (any)
        append_room(document, any, added, &number, all);
    return number;
}

void spill_mongo_append_seen_guard(const spill_mongo_document_t *document, bool sessions,
                                   bson_t *filter)
{
    const bson_t *match = spill_request_match(document->request);
    int64_t count;
    bool any = sessions && spill_request_session_at(document->request, 0, &count) != NULL;
    bool matches = match && !bson_empty(match);
    bson_t all, part, expression, conditions;
    if (!any && !matches)
        return;
    BSON_APPEND_ARRAY_BEGIN(filter, "$and", &all);
    if (matches)
        BSON_APPEND_DOCUMENT(&all, "0", match);
    if (any) {
        BSON_APPEND_DOCUMENT_BEGIN(&all, matches ? "1" : "0", &part);
        BSON_APPEND_DOCUMENT_BEGIN(&part, "$expr", &expression);
        BSON_APPEND_ARRAY_BEGIN(&expression, "$and", &conditions);
        spill_mongo_append_session_conditions(document, 0, &conditions);
        bson_append_array_end(&expression, &conditions);
        bson_append_document_end(&part, &expression);
        bson_append_document_end(&all, &part);
    }
    bson_append_array_end(filter, &all);
}

/* ---- updates --------------------------------------------------------------------------------- */

void spill_mongo_set_sessions(const spill_mongo_document_t *document, bson_t *set, bson_t *date)
{
    const spill_session_op_t *op;
    int64_t count;
    for (size_t i = 0; (op = spill_request_session_at(document->request, i, &count)) != NULL; i++) {
        char path[SESSION_PATH_SIZE];
        spill_session_entry_t before, after;
        bool same = expected(document, op, &before);
        spill_session_apply(op, count, same ? &before : NULL, 0, &after);
        BSON_APPEND_INT64(set, path_of(document, op, SPILL_STORED_SESSION_TXN, path), after.txn);
        spill_session_append_done(&after, path_of(document, op, SPILL_STORED_SESSION_DONE, path),
                                  set);
        BSON_APPEND_BOOL(date, path_of(document, op, SPILL_STORED_SESSION_AT, path), true);
    }
}

spill_code_t spill_mongo_forget(spill_mongo_t *store, const spill_mongo_document_t *document,
                                bool *done, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE], ref[SPILL_MONGO_PATH_SIZE];
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    spill_mongo_select(document, &filter);
    BCON_APPEND(&filter, spill_mongo_path(document, SPILL_STORED_INCARNATION, path), "{", "$exists",
                BCON_BOOL(true), "}");
    spill_mongo_path(document, SPILL_STORED_SESSIONS, path);
    spill_mongo_ref(document, SPILL_STORED_SESSIONS, ref);
    BCON_APPEND(&filter, path, "{", "$exists", BCON_BOOL(true), "}");
    BCON_APPEND(&pipeline, "0", "{", "$set", "{", path, "{", "$arrayToObject", "{", "$filter", "{",
                "input", "{", "$objectToArray", BCON_UTF8(ref), "}", "as", "session", "cond", "{",
                "$gte", "[", "$$session.v.at", "{", "$subtract", "[", "$$NOW",
                BCON_INT64(document->request->forget.horizon_us / 1000), "]", "}", "]", "}", "}",
                "}", "}", "}", "}");
    return spill_mongo_modify(store, document->collection, &filter, &pipeline, NULL, NULL, done,
                              error);
}

/* ---- reading --------------------------------------------------------------------------------- */

void spill_mongo_project_session(const spill_mongo_document_t *document, bson_t *projection)
{
    const spill_session_op_t *op = document->request->read.session;
    char path[SESSION_PATH_SIZE], ref[SESSION_PATH_SIZE + 1], all[SPILL_MONGO_PATH_SIZE];
    snprintf(ref, sizeof ref, "$%s", path_of(document, op, "", path));
    BSON_APPEND_UTF8(projection, "session", ref);
    BCON_APPEND(projection, "sessions", "{", "$size", "{", "$objectToArray", "{", "$ifNull", "[",
                BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_SESSIONS, all)), "{", "}", "]",
                "}", "}", "}");
}

spill_code_t spill_mongo_read_session(const spill_mongo_document_t *document,
                                      const bson_t *projected, spill_response_t *response,
                                      spill_error_t *error)
{
    const spill_session_op_t *op = document->request->read.session;
    spill_session_entry_t *entry = &response->session_entry;
    bson_iter_t iter;
    int64_t entries = 0;
    if (bson_iter_init_find(&iter, projected, "sessions"))
        entries = spill_iter_int64(&iter);
    bool found = bson_iter_init_find(&iter, projected, "session") && !BSON_ITER_HOLDS_NULL(&iter);
    spill_session_key(op, entry->key);
    if (found && !spill_session_read(&iter, entry))
        return spill_fail(error, SPILL_CORRUPT, "%s: %s.sessions has an entry that is not one",
                          document->collection, document->spill);
    response->session =
        spill_session_judge(op, document->request->read.session_count, found ? entry : NULL,
                            entries, &response->session_applied);
    return SPILL_OK;
}

static bool note_found(void *context, const bson_t *document)
{
    bool *found = context;
    (void)document;
    *found = true;
    return false;
}

spill_code_t spill_mongo_read_match(spill_mongo_t *store, const spill_mongo_document_t *document,
                                    spill_response_t *response, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t order = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t projection = BSON_INITIALIZER;
    const bson_t *match = document->request->read.match;
    bool found = bson_empty(match);
    bson_t all;
    if (found)
        return SPILL_OK;
    spill_mongo_select(document, &filter);
    BSON_APPEND_ARRAY_BEGIN(&filter, "$and", &all);
    BSON_APPEND_DOCUMENT(&all, "0", match);
    bson_append_array_end(&filter, &all);
    BSON_APPEND_INT32(&projection, "_id", 1);
    const spill_mongo_query_t query = {
        .filter = &filter, .order = &order, .projection = &projection, .limit = 1};
    SPILL_TRY(
        spill_mongo_find(store, document->collection, &query, false, note_found, &found, error));
    response->unmatched = !found;
    return SPILL_OK;
}
