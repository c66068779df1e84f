#include "gateway/statements.h"

#include "gateway/classify.h"
#include "gateway/mention.h"
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

void spill_sums_keep(spill_sums_t *sums, const bson_t *reply)
{
    static const char *const made[] = {"n", "nModified", "upserted", "writeErrors", "ok", NULL};
    bson_iter_t field;
    bson_reinit(&sums->rest);
    if (!bson_iter_init(&field, reply))
        return;
    while (bson_iter_next(&field))
        if (!spill_is_one_of(bson_iter_key(&field), made))
            bson_append_iter(&sums->rest, NULL, -1, &field);
}

bool spill_sums_call(spill_translation_t *translation, const spill_sums_t *sums, const bson_t *body,
                     bson_t *reply)
{
    enum { UNKNOWN_FIELD = 40415 };
    atomic_bool *numbered = spill_served_numbers_statements(translation->served);
    if (translation->command->txn_number < 0 || sums->count == 1 || !atomic_load(numbered))
        return spill_translation_call(translation, body, reply);
    bson_t with = BSON_INITIALIZER;
    bson_concat(&with, body);
    BCON_APPEND(&with, "stmtIds", "[", BCON_INT32(sums->index), "]");
    bool done = spill_translation_call(translation, &with, reply);
    bson_destroy(&with);
    if (done || spill_translation_failure_code(translation) != UNKNOWN_FIELD)
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

/* The list, in the body or in a sequence. */
typedef struct source {
    bson_iter_t each; /* of the body */
    bool in_body;
    const spill_wire_sequence_t *sequence; /* or NULL */
    size_t at;
} source_t;

static source_t find_source(const spill_translation_t *translation, const char *name)
{
    source_t source = {0};
    bson_iter_t iter;
    const spill_wire_message_t *message = translation->command->message;
    source.in_body = spill_translation_find(translation, name, &iter) &&
                     BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &source.each);
    for (size_t i = 0; i < message->sequence_count; i++)
        if (strcmp(message->sequences[i].name, name) == 0)
            source.sequence = &message->sequences[i];
    return source;
}

static bool next_statement(source_t *source, bson_t *document)
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
    source_t source = find_source(translation, name);
    bool all = true;
    while (all && next_statement(&source, &document))
        all = test(translation, &document);
    spill_translation_recover(translation);
    return all;
}

static size_t count_statements(const spill_translation_t *translation, const char *name)
{
    bson_t document;
    source_t source = find_source(translation, name);
    size_t count = 0;
    while (next_statement(&source, &document))
        count++;
    return count;
}

bool spill_statements_only(const spill_translation_t *translation, const char *name,
                           bson_t *document)
{
    source_t source = find_source(translation, name);
    return count_statements(translation, name) == 1 && next_statement(&source, document);
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
    source_t source = find_source(translation, name);
    init_sums(&sums);
    sums.updates = strcmp(name, "updates") == 0;
    sums.count = count_statements(translation, name);
    while ((done || (!ordered && !translation->whole)) && next_statement(&source, &document)) {
        spill_translation_recover(translation);
        done = run(translation, &document, &sums);
        if (!done && !translation->whole)
            append_indexed(&sums.errors, &sums.error_count, sums.index, &translation->failure);
        sums.index++;
    }
    bool failed = !done && translation->whole;
    if (!failed)
        make_reply(&sums, reply);
    release_sums(&sums);
    return !failed;
}
