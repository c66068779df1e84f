/* update: statement by statement, unless none of them touches F. */
#include "gateway/change.h"
#include "gateway/classify.h"
#include "gateway/mention.h"
#include "gateway/translations.h"
#include "util/error.h"

#include <string.h>

/* ---- the reply ------------------------------------------------------------------------------- */

/* The sums over the statements. */
typedef struct sums {
    int64_t n, modified;
    bson_t upserted, errors; /* arrays */
    uint32_t upserted_count, error_count;
    bson_t rest; /* other fields of upstream's last reply */
} sums_t;

static void init_sums(sums_t *sums)
{
    *sums = (sums_t){0};
    bson_init(&sums->upserted);
    bson_init(&sums->errors);
    bson_init(&sums->rest);
}

static void release_sums(sums_t *sums)
{
    bson_destroy(&sums->upserted);
    bson_destroy(&sums->errors);
    bson_destroy(&sums->rest);
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

static void make_reply(const sums_t *sums, bson_t *reply)
{
    bson_init(reply);
    BSON_APPEND_INT32(reply, "n", (int32_t)sums->n);
    BSON_APPEND_INT32(reply, "nModified", (int32_t)sums->modified);
    if (sums->upserted_count > 0)
        BSON_APPEND_ARRAY(reply, "upserted", &sums->upserted);
    if (sums->error_count > 0)
        BSON_APPEND_ARRAY(reply, "writeErrors", &sums->errors);
    bson_concat(reply, &sums->rest);
    BSON_APPEND_DOUBLE(reply, "ok", 1);
}

/* Keep the fields of upstream's reply that are not made of several replies. */
static void keep_rest(const bson_t *reply, bson_t *rest)
{
    static const char *const made[] = {"n", "nModified", "upserted", "writeErrors", "ok", NULL};
    bson_iter_t field;
    bson_reinit(rest);
    if (!bson_iter_init(&field, reply))
        return;
    while (bson_iter_next(&field)) {
        bool other = true;
        for (size_t i = 0; made[i] != NULL; i++)
            other = other && strcmp(made[i], bson_iter_key(&field)) != 0;
        if (other)
            bson_append_iter(rest, NULL, -1, &field);
    }
}

/* ---- one statement for upstream -------------------------------------------------------------- */

typedef struct place {
    sums_t *sums;
    int32_t index;
    size_t count; /* of the command's statements */
} place_t;

static void append_statement(const spill_change_t *change, const bson_t *guards, bool upsert,
                             bool many, bson_t *statement)
{
    bson_iter_t field;
    bson_t q;
    if (!bson_iter_init(&field, &change->statement->whole))
        return;
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "q") == 0) {
            BSON_APPEND_DOCUMENT_BEGIN(statement, "q", &q);
            bson_concat(&q, &change->statement->q);
            bson_concat(&q, guards);
            bson_append_document_end(statement, &q);
        } else if (strcmp(key, "upsert") != 0 && strcmp(key, "multi") != 0) {
            bson_append_iter(statement, NULL, -1, &field);
        }
    }
    if (upsert)
        BSON_APPEND_BOOL(statement, "upsert", true);
    if (many)
        BSON_APPEND_BOOL(statement, "multi", true);
}

static bool read_reply(spill_change_t *change, const bson_t *reply)
{
    bson_iter_t iter, found;
    bson_t error;
    int64_t n = bson_iter_init_find(&iter, reply, "n") ? bson_iter_as_int64(&iter) : 0;
    change->n += n;
    change->modified +=
        bson_iter_init_find(&iter, reply, "nModified") ? bson_iter_as_int64(&iter) : 0;
    if (bson_iter_init(&iter, reply) &&
        bson_iter_find_descendant(&iter, "upserted.0._id", &found))
        bson_append_iter(&change->upserted, "_id", -1, &found);
    if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "writeErrors.0", &found) &&
        spill_iter_document(&found, &error))
        return spill_translation_keep(change->translation, &error, false);
    return true;
}

static bool attempt_update(spill_change_t *change, const bson_t *guards, bool upsert, bool many)
{
    static const char *const except[] = {"updates", "ordered", NULL};
    const place_t *place = change->context;
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    bson_t list, statement, reply;
    spill_translation_copy_body(change->translation, except, &body);
    BSON_APPEND_ARRAY_BEGIN(&body, "updates", &list);
    BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &statement);
    append_statement(change, guards, upsert, many, &statement);
    bson_append_document_end(&list, &statement);
    bson_append_array_end(&body, &list);
    if (change->translation->command->txn_number >= 0 && place->count > 1)
        BCON_APPEND(&body, "stmtIds", "[", BCON_INT32(place->index), "]");
    if (!spill_translation_call(change->translation, &body, &reply))
        return false;
    keep_rest(&reply, &place->sums->rest);
    bool done = read_reply(change, &reply);
    bson_destroy(&reply);
    return done;
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool flag(const bson_t *document, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) && spill_iter_is_true(&iter);
}

static bool read_statement(spill_translation_t *translation, const bson_t *document,
                           spill_statement_t *statement)
{
    bson_iter_t q, u;
    if (!bson_iter_init_find(&q, document, "q") || !bson_iter_init_find(&u, document, "u") ||
        !spill_statement_read(translation->at, &q, &u, statement))
        return spill_translation_fail(translation, SPILL_SERVER_INVALID_BSON,
                                      "spillway: a statement has no q or no u, or is malformed");
    bson_init_static(&statement->whole, bson_get_data(document), document->len);
    statement->upsert = flag(document, "upsert");
    statement->multi = flag(document, "multi");
    statement->has_filters = bson_iter_init_find(&q, document, "arrayFilters");
    statement->has_collation = bson_iter_init_find(&q, document, "collation");
    return true;
}

static bool is_relayed(const spill_statement_t *statement)
{
    return statement->kind == SPILL_CHANGE_OTHER && statement->q_mentions == 0;
}

/* An update of another layout's fields is never made. */
static bool check_served(spill_translation_t *translation, const spill_statement_t *statement)
{
    if (statement->kind == SPILL_CHANGE_SPILL)
        return spill_translation_refuse_spill(translation, translation->command->name);
    if (translation->at->array != NULL || statement->kind == SPILL_CHANGE_OTHER)
        return true;
    return spill_translation_refuse(translation, statement->field, statement->operation,
                                    "the gateway does not serve this layout: use the library");
}

static bool run_statement(spill_translation_t *translation, const bson_t *document,
                          spill_numbers_t *numbers, place_t *place)
{
    spill_statement_t statement;
    spill_change_t change;
    bson_t nothing = BSON_INITIALIZER;
    sums_t *sums = place->sums;
    if (!read_statement(translation, document, &statement) ||
        !check_served(translation, &statement))
        return false;
    spill_change_init(&change, translation, &statement, numbers);
    change.attempt = attempt_update;
    change.context = place;
    bool done = is_relayed(&statement) || translation->at->array == NULL
                    ? attempt_update(&change, &nothing, statement.upsert, statement.multi)
                    : (statement.multi ? spill_change_many(&change) : spill_change_one(&change));
    sums->n += change.n;
    sums->modified += change.modified;
    if (!bson_empty(&change.upserted))
        append_indexed(&sums->upserted, &sums->upserted_count, place->index, &change.upserted);
    spill_change_release(&change);
    return done;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* The statements, from the body or from a sequence. */
typedef struct source {
    bson_iter_t each; /* of the body */
    bool in_body;
    const spill_wire_sequence_t *sequence; /* or NULL */
    size_t at;
} source_t;

static source_t find_source(const spill_translation_t *translation)
{
    source_t source = {0};
    bson_iter_t iter;
    const spill_wire_message_t *message = translation->command->message;
    source.in_body = spill_translation_find(translation, "updates", &iter) &&
                     BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &source.each);
    for (size_t i = 0; i < message->sequence_count; i++)
        if (strcmp(message->sequences[i].name, "updates") == 0)
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

/* The number of statements. *relayed: none touches F. False: one is malformed or refused. */
static bool survey(spill_translation_t *translation, size_t *count, bool *relayed)
{
    bson_t document;
    spill_statement_t statement;
    source_t source = find_source(translation);
    *relayed = true;
    for (*count = 0; next_statement(&source, &document); (*count)++)
        *relayed = *relayed && read_statement(translation, &document, &statement) &&
                   is_relayed(&statement);
    spill_translation_recover(translation);
    return true;
}

bool spill_translate_update(spill_translation_t *translation, bson_t *reply)
{
    bson_t document;
    bson_iter_t iter;
    bool relayed, done = true;
    SPILL_SCOPED(release_sums) sums_t sums;
    SPILL_SCOPED(spill_numbers_release) spill_numbers_t numbers = {0};
    place_t place = {.sums = &sums};
    source_t source = find_source(translation);
    bool ordered = !spill_translation_find(translation, "ordered", &iter) ||
                   spill_iter_is_true(&iter);
    init_sums(&sums);
    survey(translation, &place.count, &relayed);
    if (relayed)
        return spill_translation_forward(translation, reply);
    while ((done || !ordered) && next_statement(&source, &document)) {
        done = run_statement(translation, &document, &numbers, &place);
        if (!done && translation->whole)
            return false;
        if (!done)
            append_indexed(&sums.errors, &sums.error_count, place.index, &translation->failure);
        spill_translation_recover(translation);
        place.index++;
    }
    make_reply(&sums, reply);
    return true;
}
