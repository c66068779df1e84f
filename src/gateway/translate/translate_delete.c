/* delete: unmanaged owners by the client's statement, managed ones one by one. */
#include "bson/value.h"
#include "gateway/relay/classify.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/removal.h"
#include "gateway/translate/statements.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* One statement. Borrows from the command. */
typedef struct deletion {
    spill_translation_t *translation;
    bson_t whole, q; /* static */
    unsigned mentions;
    bool many;
    int64_t n;
    spill_sums_t *sums;
} deletion_t;

static bool read_deletion(spill_translation_t *translation, const bson_t *document,
                          deletion_t *deletion)
{
    bson_iter_t iter;
    *deletion = (deletion_t){.translation = translation, .many = true};
    bson_init_static(&deletion->whole, bson_get_data(document), document->len);
    if (!bson_iter_init_find(&iter, document, "q") || !spill_iter_document(&iter, &deletion->q) ||
        !bson_validate(&deletion->q, BSON_VALIDATE_NONE, NULL))
        return spill_translation_fail(translation, SPILL_SERVER_INVALID_BSON,
                                      "spillway: a statement has no q, or is malformed");
    if (bson_iter_init_find(&iter, document, "limit"))
        deletion->many = !spill_iter_is_true(&iter);
    deletion->mentions = spill_mentions_in_filter(&deletion->q, translation->array);
    if ((deletion->mentions & SPILL_MENTIONS_SPILL) && deletion->mentions != SPILL_MENTIONS_ANY)
        return spill_translation_refuse_spill(translation, "delete");
    return true;
}

/* Send the statement with another filter. `only`: it is for one document, and waits. */
static bool send(deletion_t *deletion, const bson_t *query, bool only, int64_t *n)
{
    static const char *const except[] = {"deletes", "ordered", NULL};
    static const char *const except_concern[] = {"deletes", "ordered", "writeConcern", NULL};
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    bson_t list, statement, reply, nothing = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_translation_t *translation = deletion->translation;
    spill_translation_copy_body(translation, only ? except_concern : except, &body);
    BSON_APPEND_ARRAY_BEGIN(&body, "deletes", &list);
    BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &statement);
    spill_statement_guard(&deletion->whole, query, &nothing, &statement);
    BSON_APPEND_INT32(&statement, "limit", deletion->many && !only ? 0 : 1);
    bson_append_document_end(&list, &statement);
    bson_append_array_end(&body, &list);
    if (only)
        BCON_APPEND(&body, "writeConcern", "{", "w", "majority", "}");
    if (!spill_sums_call(translation, deletion->sums, &body, &reply))
        return false;
    spill_reply_rest(&reply, &deletion->sums->rest);
    *n = bson_iter_init_find(&iter, &reply, "n") ? bson_iter_as_int64(&iter) : 0;
    bool done = spill_translation_keep_write_error(translation, &reply, false);
    bson_destroy(&reply);
    return done;
}

/*
 * Delete unmanaged owners. A managed head without pages is not among them: a client that has begun
 * to spill it may put a page after the head is gone, and only removal.c leaves a note of it.
 */
static bool delete_unmanaged(deletion_t *deletion)
{
    SPILL_SCOPED(bson_destroy) bson_t query = BSON_INITIALIZER;
    int64_t n = 0;
    bson_concat(&query, &deletion->q);
    spill_guard_unmanaged(deletion->translation, &query);
    bool done = send(deletion, &query, false, &n);
    deletion->n += n;
    return done;
}

static bool delete_head(void *context, const bson_t *query, bool *removed)
{
    int64_t n = 0;
    bool done = send(context, query, true, &n);
    *removed = n > 0;
    return done;
}

static bool refuse(const deletion_t *deletion)
{
    return spill_translation_refuse(deletion->translation, deletion->translation->array, "a filter",
                                    "the server does not search the pages: give the _id alone, or "
                                    "conditions on other fields");
}

/* Delete one managed owner that q finds. *found: there was one, deleted or changed meanwhile. */
static bool delete_managed(deletion_t *deletion, bool *found)
{
    char path[SPILL_BOOK_PATH_SIZE];
    spill_look_t look;
    bool removed = false;
    bson_t managed = BSON_INITIALIZER, filter = BSON_INITIALIZER;
    spill_translation_book_path(deletion->translation, "", path);
    BCON_APPEND(&managed, path, "{", "$exists", BCON_BOOL(true), "}");
    BCON_APPEND(&filter, "$and", "[", BCON_DOCUMENT(&deletion->q), BCON_DOCUMENT(&managed), "]");
    bool done = spill_look(deletion->translation, &deletion->whole, &filter, NULL, &look);
    *found = done && look.found;
    if (*found)
        done = deletion->mentions != 0 && look.pages > 0
                   ? refuse(deletion)
                   : spill_removal_run(deletion->translation, &look, &deletion->q, delete_head,
                                       deletion, &removed);
    if (done || *found)
        spill_look_release(&look);
    deletion->n += removed;
    bson_destroy(&managed);
    bson_destroy(&filter);
    return done;
}

static bool run(spill_translation_t *translation, const bson_t *document, spill_sums_t *sums)
{
    deletion_t deletion;
    bool found = true, any = false;
    if (!read_deletion(translation, document, &deletion))
        return false;
    /* A filter on F of several documents: pages may have elements that match. */
    if (deletion.mentions != 0 &&
        !spill_translation_find_pages(translation, &deletion.whole, &deletion.q, &any))
        return false;
    if (any)
        return refuse(&deletion);
    deletion.sums = sums;
    bool done = delete_unmanaged(&deletion);
    while (done && found && (deletion.many || deletion.n == 0))
        done = delete_managed(&deletion, &found);
    sums->n += deletion.n;
    return done;
}

/* 0 or 1, of any type; servers take true and false, too. */
static bool is_limit(const bson_iter_t *iter)
{
    int64_t limit;
    spill_value_t value = spill_value_from_iter(iter);
    if (BSON_ITER_HOLDS_BOOL(iter))
        return true;
    if (!spill_is_number(value.type))
        return false;
    spill_number_t number = spill_number_of(&value);
    return spill_number_to_int64(&number, &limit) && (limit == 0 || limit == 1);
}

/* A statement without a limit is an error of servers, and not a delete of all that it finds. */
static bool check_limits(spill_translation_t *translation)
{
    bson_t document;
    bson_iter_t iter;
    spill_statement_source_t source = spill_statement_source(translation, "deletes");
    while (spill_statement_next(&source, &document))
        if (!bson_iter_init_find(&iter, &document, "limit") || !is_limit(&iter))
            return spill_translation_fail(translation, SPILL_SERVER_FAILED_TO_PARSE,
                                          "spillway: each statement of a delete needs a limit of 0 "
                                          "(all that it finds) or 1");
    return true;
}

bool spill_translate_delete(spill_translation_t *translation, bson_t *reply)
{
    const spill_served_collection_t *at = translation->at;
    if (at->array != NULL)
        return check_limits(translation) &&
               spill_statements_run(translation, "deletes", run, reply);
    for (size_t i = 0; at->definitions[i] != NULL; i++)
        if (at->definitions[i]->page_collection[0] != '\0')
            return spill_translation_refuse(translation, at->definitions[i]->array, "delete",
                                            at->reason);
    return spill_translation_forward(translation, reply);
}
