/* update: statement by statement, unless none of them touches F. */
#include "bson/field_path.h"
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/statements.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <string.h>

/* ---- one statement for the server ------------------------------------------------------------ */

static bool read_reply(spill_change_t *change, const bson_t *reply)
{
    bson_iter_t iter, found;
    change->n += bson_iter_init_find(&iter, reply, "n") ? bson_iter_as_int64(&iter) : 0;
    change->modified +=
        bson_iter_init_find(&iter, reply, "nModified") ? bson_iter_as_int64(&iter) : 0;
    if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "upserted.0._id", &found))
        bson_append_iter(&change->upserted, "_id", -1, &found);
    return spill_translation_keep_write_error(change->translation, reply, false);
}

void spill_update_body(const spill_translation_t *translation, const spill_statement_t *own,
                       const bson_t *guards, bool upsert, bool many, bson_t *body)
{
    static const char *const except[] = {"updates", "ordered", NULL};
    bson_t list, statement;
    spill_translation_copy_body(translation, except, body);
    BSON_APPEND_ARRAY_BEGIN(body, "updates", &list);
    BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &statement);
    spill_statement_guard(&own->whole, &own->q, guards, &statement);
    if (upsert)
        BSON_APPEND_BOOL(&statement, "upsert", true);
    if (many)
        BSON_APPEND_BOOL(&statement, "multi", true);
    bson_append_document_end(&list, &statement);
    bson_append_array_end(body, &list);
}

static bool attempt(spill_change_t *change, const bson_t *guards, bool upsert, bool many)
{
    spill_sums_t *sums = change->context;
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    bson_t reply;
    spill_update_body(change->translation, change->statement, guards, upsert, many, &body);
    if (!spill_sums_call(change->translation, sums, &body, &reply))
        return false;
    spill_reply_rest(&reply, &sums->rest);
    bool done = read_reply(change, &reply);
    bson_destroy(&reply);
    return done;
}

/* ---- one statement on an adopted array ---- */

/*
 * Do both documents have the same fields, beside `spill`? If the update has removed the count field
 * of an array that stays managed, the gateway sets it again: that is no difference either.
 */
static bool is_same(const spill_change_t *change, const bson_t *before, const bson_t *after)
{
    bson_iter_t kept;
    SPILL_SCOPED(bson_destroy) bson_t left = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t right = BSON_INITIALIZER;
    const char *count_field = change->translation->at->definition->count_field;
    const char *const excluded[] = {SPILL_STORED_ROOT, count_field};
    bool restores = count_field[0] != '\0' && bson_has_field(after, SPILL_STORED_ROOT) &&
                    !spill_path_find(after, count_field, &kept);
    size_t count = restores ? 2 : 1;
    spill_document_exclude(before, excluded, count, &left);
    spill_document_exclude(after, excluded, count, &right);
    return bson_equal(&left, &right);
}

/* The reply of the findAndModify, as one of an update. */
static void keep_rest(spill_sums_t *sums, const bson_t *reply)
{
    bson_t rest = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(reply, &rest, "value", "lastErrorObject", NULL);
    spill_reply_rest(&rest, &sums->rest);
    bson_destroy(&rest);
}

/* It returns the document after the update: only that shows if the client's part changed it. */
static bool rewrite(spill_change_t *change, const spill_adopted_step_t *step, bool *matched)
{
    SPILL_SCOPED(bson_destroy) bson_t command = BSON_INITIALIZER;
    spill_translation_t *translation = change->translation;
    bson_t reply, after;
    bson_iter_t value;
    BCON_APPEND(&command, "findAndModify", BCON_UTF8(translation->at->collection), "query",
                BCON_DOCUMENT(step->query), "new", BCON_BOOL(true), "writeConcern", "{", "w",
                "majority", "}");
    if (step->pipeline)
        BSON_APPEND_ARRAY(&command, "update", step->update);
    else
        BSON_APPEND_DOCUMENT(&command, "update", step->update);
    spill_change_append_options(change, &command);
    spill_translation_finish_step(translation, &command);
    if (step->ends && translation->command->txn_number >= 0)
        BSON_APPEND_INT64(&command, "txnNumber", translation->command->txn_number);
    if (!spill_sums_call(translation, change->context, &command, &reply)) {
        translation->whole = translation->close; /* a write error of the statement */
        return false;
    }
    *matched = bson_iter_init_find(&value, &reply, "value") && spill_iter_document(&value, &after);
    if (*matched) {
        keep_rest(change->context, &reply);
        change->n++;
        change->modified += !is_same(change, step->before, &after);
    }
    bson_destroy(&reply);
    return true;
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool flag(const bson_t *document, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) && spill_iter_is_true(&iter);
}

bool spill_update_read(spill_translation_t *translation, const bson_t *document,
                       spill_statement_t *statement)
{
    bson_iter_t iter, update;
    bson_t q, u;
    if (!bson_iter_init_find(&iter, document, "q") || !BSON_ITER_HOLDS_DOCUMENT(&iter) ||
        !spill_iter_document(&iter, &q) || !bson_iter_init_find(&update, document, "u") ||
        !spill_iter_document(&update, &u) ||
        !spill_statement_read(translation->at, &q, &u, BSON_ITER_HOLDS_ARRAY(&update), statement))
        return spill_translation_fail(translation, SPILL_SERVER_INVALID_BSON,
                                      "spillway: a statement has no q or no u, or is malformed");
    bson_init_static(&statement->whole, bson_get_data(document), document->len);
    statement->upsert = flag(document, "upsert");
    statement->multi = flag(document, "multi");
    statement->has_filters = bson_iter_init_find(&iter, document, "arrayFilters");
    statement->has_sort = bson_iter_init_find(&iter, document, "sort");
    statement->has_context = bson_iter_init_find(&iter, document, "collation") ||
                             spill_translation_find(translation, "let", &iter);
    return true;
}

static bool is_relayed(spill_translation_t *translation, const bson_t *document)
{
    spill_statement_t statement = {0};
    return spill_update_read(translation, document, &statement) &&
           spill_statement_is_relayed(&statement);
}

/* The owners are looked at one by one, and not in the order of a sort. */
static bool check_sort(spill_translation_t *translation, const spill_statement_t *statement)
{
    bson_iter_t id;
    return !statement->has_sort || spill_statement_is_relayed(statement) ||
           translation->at->array == NULL || spill_filter_find_id(&statement->q, &id) ||
           spill_translation_refuse(translation, translation->array, "sort",
                                    "give the _id, or use findAndModify, which has a sort");
}

static bool run(spill_translation_t *translation, const bson_t *document, spill_sums_t *sums)
{
    spill_statement_t statement = {0};
    spill_change_t change;
    bson_t nothing = BSON_INITIALIZER;
    if (!spill_update_read(translation, document, &statement) ||
        !spill_change_check_served(translation, &statement) || !check_sort(translation, &statement))
        return false;
    spill_change_init(&change, translation, &statement, &sums->numbers);
    change.attempt = attempt;
    change.rewrite = rewrite;
    change.context = sums;
    bool done = spill_statement_is_relayed(&statement) || translation->at->array == NULL
                    ? attempt(&change, &nothing, statement.upsert, statement.multi)
                : statement.multi ? spill_change_many(&change)
                                  : spill_change_one(&change);
    sums->n += change.n;
    sums->modified += change.modified;
    if (!bson_empty(&change.upserted))
        spill_sums_upserted(sums, &change.upserted);
    spill_change_release(&change);
    return done;
}

bool spill_translate_update(spill_translation_t *translation, bson_t *reply)
{
    if (spill_statements_all(translation, "updates", is_relayed))
        return spill_translation_forward(translation, reply);
    return spill_statements_run(translation, "updates", run, reply);
}
