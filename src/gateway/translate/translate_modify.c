/* findAndModify: an update or a delete of one document that returns the document. */
#include "gateway/translate/ending.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/modify.h"
#include "gateway/translate/removal.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <string.h>

enum { TRIES = 20 };

static void release(spill_modify_t *modify)
{
    spill_asked_release(&modify->asked);
    bson_destroy(&modify->query);
    bson_destroy(&modify->before);
    bson_destroy(&modify->made);
    if (modify->answered)
        bson_destroy(&modify->answer);
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool flag(const spill_translation_t *translation, const char *name)
{
    bson_iter_t iter;
    return spill_translation_find(translation, name, &iter) && spill_iter_is_true(&iter);
}

/* The client's query, and the document that sort chooses. */
static bool choose(spill_modify_t *modify, const bson_t *query)
{
    bson_t sort;
    bson_iter_t id;
    spill_look_t look;
    spill_translation_t *translation = modify->translation;
    bson_reinit(&modify->query);
    bson_concat(&modify->query, query);
    modify->chosen = false;
    if (!spill_translation_find_document(translation, "sort", &sort) ||
        spill_filter_find_id(query, &id))
        return true;
    if (spill_mentions_in_document(&sort, translation->array) != 0)
        return spill_translation_refuse(translation, translation->array, "sort",
                                        "sort by another field, or give the _id");
    if (!spill_look(translation, &translation->command->message->body, query, &sort, &look))
        return false;
    modify->chosen = look.found;
    if (look.found)
        bson_concat(&modify->query, &look.id);
    spill_look_release(&look);
    return true;
}

static bool read_statement(spill_modify_t *modify)
{
    static const uint8_t none[] = {5, 0, 0, 0, 0};
    spill_translation_t *translation = modify->translation;
    spill_statement_t *statement = &modify->statement;
    bson_iter_t iter;
    bson_t update;
    bool pipeline = false;
    if (modify->removes) {
        bson_init_static(&update, none, sizeof none);
    } else {
        if (!spill_translation_find(translation, "update", &iter) ||
            !spill_iter_document(&iter, &update))
            return spill_translation_fail(translation, SPILL_SERVER_BAD_VALUE,
                                          "spillway: findAndModify needs update or remove");
        pipeline = BSON_ITER_HOLDS_ARRAY(&iter);
    }
    if (!spill_statement_read(translation->at, &modify->query, &update, pipeline, statement))
        return spill_translation_fail(translation, SPILL_SERVER_INVALID_BSON,
                                      "spillway: the query or the update is malformed");
    if (modify->removes && statement->kind != SPILL_STATEMENT_SPILL)
        statement->kind = SPILL_STATEMENT_OTHER;
    statement->upsert = flag(translation, "upsert") && !modify->chosen;
    statement->has_filters = spill_translation_find(translation, "arrayFilters", &iter);
    statement->has_context = spill_translation_find(translation, "collation", &iter) ||
                             spill_translation_find(translation, "let", &iter);
    return spill_change_check_served(translation, statement);
}

static bool read_fields(spill_modify_t *modify)
{
    bson_t fields;
    spill_translation_t *translation = modify->translation;
    bool projects = spill_translation_find_document(translation, "fields", &fields);
    modify->removes = flag(translation, "remove");
    modify->returns_new = flag(translation, "new");
    if (!spill_asked_read(translation->array, projects ? &fields : NULL, &modify->asked))
        return spill_translation_refuse_spill(translation, "fields");
    modify->asked.filter = bson_new();
    modify->asked.options = bson_new();
    return true;
}

/* Remove the managed document that the query finds. *removed: it was made, with a reply. */
static bool remove_managed(spill_modify_t *modify, bool *found, bool *removed, bson_t *reply)
{
    spill_look_t look;
    spill_translation_t *translation = modify->translation;
    if (!spill_look(translation, &translation->command->message->body, &modify->query, NULL, &look))
        return false;
    bool has_pages = look.pages > 0;
    bool done = !look.managed || ((!has_pages || spill_modify_check_return(modify, &look)) &&
                                  spill_removal_run(translation, &look, &modify->query,
                                                    spill_modify_delete_head, modify, removed));
    *found = look.found;
    spill_look_release(&look);
    if (!done || !*removed)
        return done;
    return has_pages ? spill_modify_reply_old(modify, reply)
                     : spill_modify_reply_answer(modify, reply);
}

/*
 * The server has answered the removal of an unmanaged array. A managed one shows that it recognized
 * a repetition: the first try has removed the head, and perhaps not yet all pages.
 */
static bool reply_removed(spill_modify_t *modify, bson_t *reply)
{
    bson_iter_t value, id;
    bson_t document;
    spill_book_t book;
    bool done = spill_modify_reply_answer(modify, reply);
    if (!bson_iter_init_find(&value, &modify->answer, "value") ||
        !spill_iter_document(&value, &document) || !bson_iter_init_find(&id, &document, "_id") ||
        !spill_book_read(&document, modify->translation->array, &book))
        return done;
    SPILL_SCOPED(bson_destroy) bson_t owner = BSON_INITIALIZER;
    bson_append_iter(&owner, "_id", -1, &id);
    const spill_ending_t ending = {modify->translation, &owner, book.epoch, book.rev};
    spill_ending_end(&ending, true, true);
    return done;
}

static bool run_removal(spill_modify_t *modify, bson_t *reply)
{
    spill_translation_t *translation = modify->translation;
    bool any = false, removed = false, found = true;
    SPILL_SCOPED(bson_destroy) bson_t query = BSON_INITIALIZER;
    if (modify->statement.q_mentions != 0 &&
        !spill_translation_find_pages(translation, NULL, &modify->query, &any))
        return false;
    if (any)
        return spill_change_refuse(translation, &modify->statement);
    bson_concat(&query, &modify->query);
    spill_guard_unmanaged(translation, &query);
    for (int tries = 0; tries < TRIES && found; tries++) {
        if (!spill_modify_send(modify, &query, false))
            return false;
        modify->done = spill_modify_found(modify);
        if (modify->done)
            return reply_removed(modify, reply);
        if (!remove_managed(modify, &found, &removed, reply))
            return false;
        modify->done = removed;
        if (removed)
            return true;
    }
    if (!found)
        return spill_modify_reply_answer(modify, reply);
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
    spill_modify_t *modify = change->context;
    spill_translation_t *translation = modify->translation;
    const spill_statement_t *statement = change->statement;
    bson_t nothing = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t guards = BSON_INITIALIZER;
    if (modify->asked.kind <= SPILL_ASKED_STRIP)
        return spill_modify_attempt(change, &nothing, statement->upsert, false);
    spill_guard_no_pages(translation, &guards);
    if (!spill_modify_attempt(change, &guards, false, false))
        return false;
    if (change->n > 0)
        return true;
    if (!spill_look(translation, &translation->command->message->body, &modify->query, NULL, &look))
        return false;
    bool done = look.pages == 0 || spill_modify_check_return(modify, &look);
    spill_look_release(&look);
    return done && spill_modify_attempt(change, &nothing, statement->upsert, false);
}

/* Not served: refuse a sort by an array, and a returned document with one. */
static bool leaves_parts_out(spill_modify_t *modify)
{
    bson_t fields, sort;
    spill_translation_t *translation = modify->translation;
    const char *const *parts = translation->at->parts;
    bool projects = spill_translation_find_document(translation, "fields", &fields);
    bool sorts = spill_translation_find_document(translation, "sort", &sort);
    for (size_t i = 0; parts[i] != NULL; i++) {
        spill_asked_release(&modify->asked);
        if (!spill_asked_read(parts[i], projects ? &fields : NULL, &modify->asked))
            return spill_translation_refuse_spill(translation, "fields");
        if (modify->asked.kind != SPILL_ASKED_PASS ||
            (sorts && spill_mentions_in_document(&sort, parts[i]) != 0))
            return spill_translation_refuse(translation, parts[i], "findAndModify",
                                            translation->at->reason);
    }
    return true;
}

static bool forward_unserved(spill_modify_t *modify, bson_t *reply)
{
    static const char *const except[] = {"fields", NULL};
    spill_translation_t *translation = modify->translation;
    if (modify->asked.projection == NULL)
        return spill_translation_forward(translation, reply);
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_copy_body(translation, except, &body);
    BSON_APPEND_DOCUMENT(&body, "fields", modify->asked.projection);
    return spill_translation_call(translation, &body, reply);
}

static bool run_unserved(spill_modify_t *modify, const bson_t *query, bson_t *reply)
{
    spill_translation_t *translation = modify->translation;
    if (flag(translation, "remove"))
        return spill_translation_refuse(translation, translation->array, "findAndModify",
                                        translation->at->reason);
    bson_concat(&modify->query, query);
    return read_statement(modify) && leaves_parts_out(modify) && forward_unserved(modify, reply);
}

static bool prepare(spill_change_t *change, const spill_look_t *look)
{
    return spill_modify_check_return(change->context, look);
}

static bool run_update(spill_modify_t *modify, bson_t *reply)
{
    spill_change_t change;
    spill_statement_numbers_t numbers = {0};
    const spill_statement_t *statement = &modify->statement;
    spill_change_init(&change, modify->translation, statement, &numbers);
    change.attempt = spill_modify_attempt;
    change.rewrite = spill_modify_rewrite;
    change.prepare = prepare;
    change.context = modify;
    bool done =
        spill_statement_is_relayed(statement) ? run_relayed(&change) : spill_change_one(&change);
    if (done && change.repeated && !modify->returns_new)
        done = spill_modify_fail_repeated(modify->translation);
    else if (done)
        done = change.appended ? spill_modify_reply_appended(modify, &change, reply)
                               : spill_modify_reply_answer(modify, reply);
    modify->done = done && (change.appended || spill_modify_found(modify));
    spill_change_release(&change);
    spill_numbers_release(&numbers);
    return done;
}

bool spill_translate_modify(spill_translation_t *translation, bson_t *reply)
{
    bson_t query = BSON_INITIALIZER;
    SPILL_SCOPED(release) spill_modify_t modify = {.translation = translation};
    bson_init(&modify.query);
    bson_init(&modify.before);
    bson_init(&modify.made);
    spill_translation_find_document(translation, "query", &query);
    if (translation->at->array == NULL)
        return run_unserved(&modify, &query, reply);
    if (!read_fields(&modify))
        return false;
    for (int tries = 1;; tries++) {
        bool done = choose(&modify, &query) && read_statement(&modify) &&
                    (modify.removes ? run_removal(&modify, reply) : run_update(&modify, reply));
        /* The document that sort chose has changed: choose again. */
        if (!done || modify.done || !modify.chosen || tries == TRIES)
            return done;
        bson_destroy(reply);
    }
}
