#include "gateway/translate/statements.h"

#include "gateway/relay/classify.h"
#include "gateway/translate/mention.h"
#include "util/error.h"

#include <string.h>

/* ---- the reply ------------------------------------------------------------------------------- */

static void init_sums(spill_sums_t *sums)
{
    *sums = (spill_sums_t){0};
    bson_init(&sums->upserted);
    bson_init(&sums->errors);
    bson_init(&sums->rest);
}

static void release_sums(spill_sums_t *sums)
{
    bson_destroy(&sums->upserted);
    bson_destroy(&sums->errors);
    bson_destroy(&sums->rest);
    spill_numbers_release(&sums->numbers);
}

static void append_indexed(bson_t *list, uint32_t *count, int32_t index, const bson_t *fields)
{
    char text[16];
    const char *key;
    bson_t entry;
    bson_uint32_to_string((*count)++, &key, text, sizeof text);
    BSON_APPEND_DOCUMENT_BEGIN(list, key, &entry);
    BSON_APPEND_INT32(&entry, "index", index);
    bson_concat(&entry, fields);
    bson_append_document_end(list, &entry);
}

void spill_sums_upserted(spill_sums_t *sums, const bson_t *fields)
{
    append_indexed(&sums->upserted, &sums->upserted_count, sums->index, fields);
}

void spill_reply_rest(const bson_t *reply, bson_t *rest)
{
    static const char *const made[] = {"n", "nModified", "upserted", "writeErrors", "ok", NULL};
    bson_iter_t field;
    bson_reinit(rest);
    if (!bson_iter_init(&field, reply))
        return;
    while (bson_iter_next(&field))
        if (!spill_is_one_of(bson_iter_key(&field), made))
            bson_append_iter(rest, NULL, -1, &field);
}

bool spill_sums_call(spill_translation_t *translation, const spill_sums_t *sums, const bson_t *body,
                     bson_t *reply)
{
    atomic_bool *numbered = spill_served_numbers_statements(translation->served);
    if (!bson_has_field(body, "txnNumber") || sums->count == 1 || !atomic_load(numbered))
        return spill_translation_call(translation, body, reply);
    bson_t with = BSON_INITIALIZER;
    bson_concat(&with, body);
    if (bson_has_field(body, "findAndModify"))
        BSON_APPEND_INT32(&with, "stmtId", sums->index);
    else
        BCON_APPEND(&with, "stmtIds", "[", BCON_INT32(sums->index), "]");
    bool done = spill_translation_call(translation, &with, reply);
    bson_destroy(&with);
    if (done || spill_translation_failure_code(translation) != SPILL_SERVER_UNKNOWN_FIELD)
        return done;
    atomic_store(numbered, false);
    spill_translation_recover(translation);
    return spill_translation_call(translation, body, reply);
}

static void make_reply(const spill_sums_t *sums, bson_t *reply)
{
    bson_init(reply);
    BSON_APPEND_INT32(reply, "n", (int32_t)sums->n);
    if (sums->updates)
        BSON_APPEND_INT32(reply, "nModified", (int32_t)sums->modified);
    if (sums->upserted_count > 0)
        BSON_APPEND_ARRAY(reply, "upserted", &sums->upserted);
    if (sums->error_count > 0)
        BSON_APPEND_ARRAY(reply, "writeErrors", &sums->errors);
    bson_concat(reply, &sums->rest);
    BSON_APPEND_DOUBLE(reply, "ok", 1);
}

/* ---- statements ------------------------------------------------------------------------------ */

void spill_statement_guard(const bson_t *statement, const bson_t *q, const bson_t *guards,
                           bson_t *copy)
{
    static const char *const appended[] = {"upsert", "multi", "limit", NULL};
    bson_iter_t field;
    bson_t filter;
    if (!bson_iter_init(&field, statement))
        return;
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "q") == 0) {
            BSON_APPEND_DOCUMENT_BEGIN(copy, "q", &filter);
            bson_concat(&filter, q);
            bson_concat(&filter, guards);
            bson_append_document_end(copy, &filter);
        } else if (!spill_is_one_of(key, appended)) {
            bson_append_iter(copy, NULL, -1, &field);
        }
    }
}

spill_statement_source_t spill_statement_source(const spill_translation_t *translation,
                                                const char *name)
{
    spill_statement_source_t source = {0};
    bson_iter_t iter;
    const spill_wire_message_t *message = translation->command->message;
    source.in_body = spill_translation_find(translation, name, &iter) &&
                     BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &source.each);
    for (size_t i = 0; i < message->sequence_count; i++)
        if (strcmp(message->sequences[i].name, name) == 0)
            source.sequence = &message->sequences[i];
    return source;
}

bool spill_statement_next(spill_statement_source_t *source, bson_t *document)
{
    if (source->sequence != NULL)
        return spill_sequence_next(source->sequence, &source->at, document);
    return source->in_body && bson_iter_next(&source->each) &&
           spill_iter_document(&source->each, document);
}

bool spill_statements_all(spill_translation_t *translation, const char *name,
                          bool (*test)(spill_translation_t *translation, const bson_t *document))
{
    bson_t document;
    spill_statement_source_t source = spill_statement_source(translation, name);
    bool all = true;
    while (all && spill_statement_next(&source, &document))
        all = test(translation, &document);
    spill_translation_recover(translation);
    return all;
}

bool spill_statement_check(spill_translation_t *translation, const bson_t *document)
{
    static const char *const flags[] = {"multi", "upsert", NULL};
    bson_iter_t field;
    bool any = bson_iter_init(&field, document);
    while (any && bson_iter_next(&field))
        if (spill_is_one_of(bson_iter_key(&field), flags) && !BSON_ITER_HOLDS_BOOL(&field))
            return spill_translation_fail(translation, SPILL_SERVER_TYPE_MISMATCH,
                                          "spillway: '%s' of a statement is no boolean",
                                          bson_iter_key(&field));
    return (any && field.err_off == 0) ||
           spill_translation_fail(translation, SPILL_SERVER_INVALID_BSON,
                                  "spillway: a statement of '%s' is not BSON",
                                  translation->command->name);
}

/* Read all statements once, so that a malformed one changes nothing. */
static bool count_statements(spill_translation_t *translation, const char *name, size_t *count)
{
    bson_t document;
    spill_statement_source_t source = spill_statement_source(translation, name);
    for (*count = 0; spill_statement_next(&source, &document); ++*count)
        if (!spill_statement_check(translation, &document))
            return false;
    return true;
}

bool spill_statements_only(spill_translation_t *translation, const char *name, bson_t *document)
{
    spill_statement_source_t source = spill_statement_source(translation, name);
    if (!spill_statement_next(&source, document) || !spill_statement_check(translation, document))
        return false;
    return source.sequence != NULL ? source.at == source.sequence->bytes
                                   : !bson_iter_next(&source.each);
}

bool spill_statements_run(spill_translation_t *translation, const char *name,
                          spill_statement_fn run, bson_t *reply)
{
    bson_t document;
    bson_iter_t iter;
    spill_sums_t sums;
    bool ordered =
        !spill_translation_find(translation, "ordered", &iter) || spill_iter_is_true(&iter);
    bool done = true;
    size_t count;
    spill_statement_source_t source = spill_statement_source(translation, name);
    if (!count_statements(translation, name, &count))
        return false;
    init_sums(&sums);
    sums.count = count;
    sums.updates = strcmp(name, "updates") == 0;
    if (translation->bulk != NULL) {
        sums.index = translation->bulk->index;
        sums.count = translation->bulk->count;
        sums.numbers = *translation->bulk->numbers;
    }
    while ((done || (!ordered && !translation->whole)) &&
           spill_statement_next(&source, &document)) {
        spill_translation_recover(translation);
        done = run(translation, &document, &sums);
        if (!done && sums.n == 0 &&
            spill_translation_failure_code(translation) == SPILL_SERVER_TIME_EXPIRED)
            translation->whole = true; /* as a server, as long as nothing was made */
        if (!done && !translation->whole) {
            spill_translation_note_failure(translation);
            append_indexed(&sums.errors, &sums.error_count, sums.index, &translation->failure);
        }
        sums.index++;
    }
    bool failed = !done && translation->whole;
    if (!failed)
        make_reply(&sums, reply);
    if (translation->bulk != NULL) { /* the next command of the bulkWrite continues with them */
        *translation->bulk->numbers = sums.numbers;
        sums.numbers = (spill_statement_numbers_t){0};
    }
    release_sums(&sums);
    return !failed;
}
