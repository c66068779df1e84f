/*
 * Read-ahead of heads and pages. A walk lists owners and reads the head of each. So the READ of one
 * of them also fetches the heads behind it in the listing, with the same projection, and their
 * READs need no command. READs of pages do the same (ahead_pages.c).
 *
 * An answer that was fetched is like the answer of a slow server: it shows the document at a moment
 * after the walk has listed its owner. `seen` keeps the answers of one owner in the order of time,
 * and a change of the owner by this store ends its read-ahead. (docs/internals/mongodb.md)
 */
#include "store/mongo/ahead.h"

#include "bson/value.h"
#include "util/error.h"

#include <string.h>

/* ---- passes ---------------------------------------------------------------------------------- */

spill_mongo_ahead_t *spill_mongo_ahead_new(void)
{
    spill_mongo_ahead_t *ahead = bson_malloc0(sizeof *ahead);
    pthread_mutex_init(&ahead->lock, NULL);
    return ahead;
}

void spill_ahead_forget(spill_ahead_answer_t *answer)
{
    bson_destroy(answer->head);
    for (int64_t i = 0; answer->pages && i < answer->count; i++)
        bson_destroy(answer->pages[i]);
    bson_free(answer->pages);
    answer->head = NULL;
    answer->pages = NULL;
    answer->count = 0;
    answer->held = false;
}

static void end_pass(spill_ahead_pass_t *pass)
{
    for (size_t i = 0; i < SPILL_AHEAD_COLUMNS; i++) {
        spill_ahead_column_t *column = &pass->columns[i];
        for (size_t k = 0; column->projection && k < pass->owners.count; k++)
            spill_ahead_forget(&column->answers[k]);
        bson_destroy(column->projection);
        bson_free(column->answers);
    }
    bson_free(pass->seen);
    spill_listing_release(&pass->owners);
    *pass = (spill_ahead_pass_t){0};
}

void spill_mongo_ahead_free(spill_mongo_ahead_t *ahead)
{
    if (!ahead)
        return;
    for (size_t i = 0; i < SPILL_AHEAD_PASSES; i++)
        end_pass(&ahead->passes[i]);
    pthread_mutex_destroy(&ahead->lock);
    bson_free(ahead);
}

/* The thread's pass over the definition, or NULL. The lock is held. */
spill_ahead_pass_t *spill_ahead_pass(spill_mongo_ahead_t *ahead, const char *definition)
{
    for (size_t i = 0; i < SPILL_AHEAD_PASSES; i++) {
        spill_ahead_pass_t *pass = &ahead->passes[i];
        if (pass->began > 0 && pthread_equal(pass->thread, pthread_self()) &&
            strcmp(pass->definition, definition) == 0)
            return pass;
    }
    return NULL;
}

/* A free one, or the oldest. */
static spill_ahead_pass_t *take_pass(spill_mongo_ahead_t *ahead, const char *definition)
{
    spill_ahead_pass_t *pass = spill_ahead_pass(ahead, definition);
    for (size_t i = 0; !pass && i < SPILL_AHEAD_PASSES; i++)
        if (ahead->passes[i].began == 0)
            pass = &ahead->passes[i];
    if (pass)
        return pass;
    pass = ahead->passes;
    for (size_t i = 1; i < SPILL_AHEAD_PASSES; i++)
        if (ahead->passes[i].began < pass->began)
            pass = &ahead->passes[i];
    return pass;
}

void spill_mongo_ahead_list(spill_mongo_ahead_t *ahead, const spill_definition_t *definition,
                            const spill_listing_t *listing)
{
    pthread_mutex_lock(&ahead->lock);
    spill_ahead_pass_t *pass = take_pass(ahead, definition->name);
    size_t before[SPILL_AHEAD_COLUMNS] = {0};
    for (size_t i = 0; pass == spill_ahead_pass(ahead, definition->name) && i < SPILL_AHEAD_COLUMNS;
         i++)
        before[i] = pass->columns[i].ahead;
    end_pass(pass);
    memcpy(pass->ahead_before, before, sizeof before);
    pass->thread = pthread_self();
    pass->began = ++ahead->moment;
    bson_strncpy(pass->definition, definition->name, sizeof pass->definition);
    for (size_t i = 0; i < listing->count; i++) {
        spill_item_t item = spill_listing_item(listing, i);
        spill_listing_add_owner(&pass->owners, &item.owner);
    }
    pass->seen = bson_malloc0((listing->count + 1) * sizeof *pass->seen);
    atomic_store(&ahead->any, true);
    pthread_mutex_unlock(&ahead->lock);
}

/* Walks go from each owner to the next. */
size_t spill_ahead_index(const spill_ahead_pass_t *pass, const spill_value_t *owner)
{
    size_t count = pass->owners.count;
    for (size_t i = 0; i < count; i++) {
        size_t index = (pass->at + i) % count;
        spill_item_t item = spill_listing_item(&pass->owners, index);
        if (spill_value_equal(&item.owner, owner))
            return index;
    }
    return count;
}

void spill_mongo_ahead_changed(spill_mongo_ahead_t *ahead, const spill_value_t *owner)
{
    if (!atomic_load(&ahead->any))
        return;
    pthread_mutex_lock(&ahead->lock);
    for (size_t i = 0; i < SPILL_AHEAD_PASSES; i++) {
        spill_ahead_pass_t *pass = &ahead->passes[i];
        size_t index = spill_ahead_index(pass, owner);
        if (index < pass->owners.count)
            pass->seen[index] = SPILL_AHEAD_NEVER;
    }
    pthread_mutex_unlock(&ahead->lock);
}

/* ---- one READ -------------------------------------------------------------------------------- */

spill_ahead_column_t *spill_ahead_column(spill_ahead_pass_t *pass, const bson_t *projection,
                                         bool pages)
{
    for (size_t i = 0; i < SPILL_AHEAD_COLUMNS; i++) {
        spill_ahead_column_t *column = &pass->columns[i];
        if (!column->projection) {
            column->projection = bson_copy(projection);
            column->pages = pages;
            column->answers = bson_malloc0((pass->owners.count + 1) * sizeof *column->answers);
            column->ahead = pass->ahead_before[i] > 0 ? pass->ahead_before[i] : SPILL_AHEAD_FIRST;
            return column;
        }
        if (column->pages == pages && bson_equal(column->projection, projection))
            return column;
    }
    return NULL;
}

void spill_ahead_adapt(spill_ahead_column_t *column, bool complete, size_t bytes)
{
    if (!complete)
        column->ahead = column->ahead > SPILL_AHEAD_FIRST ? column->ahead / 4 : 2;
    else if (bytes < SPILL_AHEAD_BYTES / 4 && column->ahead < SPILL_AHEAD_MAX)
        column->ahead *= 2;
}

/* A command that asks for the heads of the owners from index `from` on. */
typedef struct fetch {
    const spill_mongo_document_t *document;
    uint64_t began, moment; /* of the pass, and of the fetch */
    size_t from, count;
    bson_t ids;     /* {"0": owner, ...} */
    bson_t **heads; /* of each of them, or NULL */
    size_t found, bytes;
    bool all; /* no owner without an answer has a head */
} fetch_t;

static bool keep_head(void *context, const bson_t *head)
{
    fetch_t *fetch = context;
    bson_iter_t id, iter;
    size_t at = 0;
    if (!bson_iter_init_find(&id, head, "_id"))
        return false;
    spill_value_t owner = spill_value_from_iter(&id);
    bson_iter_init(&iter, &fetch->ids);
    for (; bson_iter_next(&iter); at++) {
        spill_value_t wanted = spill_value_from_iter(&iter);
        if (fetch->heads[at] || !spill_value_equal(&wanted, &owner))
            continue;
        fetch->heads[at] = bson_copy(head);
        fetch->bytes += head->len;
        fetch->all = ++fetch->found == fetch->count || fetch->bytes < SPILL_AHEAD_BYTES;
        return fetch->bytes < SPILL_AHEAD_BYTES;
    }
    fetch->all = false; /* an equal _id with a number of another type, as the server compares */
    return false;
}

static void run_fetch(spill_mongo_t *store, const bson_t *projection, const bson_t *excluded,
                      fetch_t *fetch)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t fields = BSON_INITIALIZER;
    const char *collection = fetch->document->collection;
    spill_error_t error;
    spill_code_t code;
    BCON_APPEND(&filter, "_id", "{", "$in", BCON_ARRAY(&fetch->ids), "}");
    bson_copy_to_excluding_noinit(projection, &fields, "_id", NULL);
    fetch->all = true;
    if (excluded) {
        SPILL_SCOPED(spill_mongo_destroy)
        bson_t *stages = BCON_NEW("0", "{", "$match", BCON_DOCUMENT(&filter), "}", "1", "{",
                                  "$project", BCON_DOCUMENT(&fields), "}", "2", "{", "$project",
                                  BCON_DOCUMENT(excluded), "}");
        code = spill_mongo_each(store, collection, stages, false, keep_head, fetch, &error);
    } else {
        const spill_mongo_query_t query = {.filter = &filter, .projection = &fields};
        code = spill_mongo_find(store, collection, &query, false, keep_head, fetch, &error);
    }
    fetch->all = fetch->all && code == SPILL_OK;
}

/* Begin to fetch the owner of that index, and those behind it. The lock is held. */
static void plan_fetch(spill_mongo_ahead_t *ahead, const spill_ahead_pass_t *pass,
                       const spill_ahead_column_t *column, size_t index, fetch_t *fetch)
{
    fetch->began = pass->began;
    fetch->moment = ++ahead->moment;
    fetch->from = index;
    fetch->count = pass->owners.count - index;
    if (fetch->count > column->ahead)
        fetch->count = column->ahead;
    fetch->heads = bson_malloc0((fetch->count + 1) * sizeof(bson_t *));
    for (size_t i = 0; i < fetch->count; i++) {
        char buffer[16];
        const char *key;
        spill_item_t item = spill_listing_item(&pass->owners, index + i);
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_mongo_append_id(fetch->document->request->definition, &item.owner, SPILL_HEAD, key,
                              &fetch->ids);
    }
}

/* Keep what was fetched. The lock is held; the pass may have ended meanwhile. */
static void keep_fetched(spill_mongo_ahead_t *ahead, const bson_t *projection, fetch_t *fetch)
{
    spill_ahead_pass_t *pass = spill_ahead_pass(ahead, fetch->document->request->definition->name);
    spill_ahead_column_t *column =
        pass && pass->began == fetch->began ? spill_ahead_column(pass, projection, false) : NULL;
    for (size_t i = 0; column && i < fetch->from; i++)
        spill_ahead_forget(&column->answers[i]);
    for (size_t i = 0; column && i < fetch->count; i++) {
        spill_ahead_answer_t *answer = &column->answers[fetch->from + i];
        if (answer->used || (!fetch->heads[i] && !fetch->all))
            continue;
        spill_ahead_forget(answer);
        *answer =
            (spill_ahead_answer_t){.held = true, .moment = fetch->moment, .head = fetch->heads[i]};
        fetch->heads[i] = NULL;
    }
    if (column)
        spill_ahead_adapt(column, fetch->all, fetch->bytes);
}

static void release_fetch(fetch_t *fetch)
{
    for (size_t i = 0; i < fetch->count; i++)
        bson_destroy(fetch->heads[i]);
    bson_free(fetch->heads);
    bson_destroy(&fetch->ids);
}

/* The lock is held. */
static spill_ahead_way_t find_answer(spill_mongo_ahead_t *ahead,
                                     const spill_mongo_document_t *document,
                                     const bson_t *projection, fetch_t *fetch, bson_t **head)
{
    spill_ahead_pass_t *pass = spill_ahead_pass(ahead, document->request->definition->name);
    size_t index = pass ? spill_ahead_index(pass, document->request->owner) : 0;
    if (!pass || index == pass->owners.count)
        return SPILL_AHEAD_ALONE;
    pass->at = index;
    spill_ahead_column_t *column =
        pass->seen[index] == SPILL_AHEAD_NEVER ? NULL : spill_ahead_column(pass, projection, false);
    spill_ahead_answer_t *answer = column ? &column->answers[index] : NULL;
    if (answer && answer->held && answer->moment >= pass->seen[index]) {
        *head = answer->head;
        pass->seen[index] = answer->moment;
        *answer = (spill_ahead_answer_t){.used = true};
        return SPILL_AHEAD_ANSWERED;
    }
    if (answer && !answer->used && !fetch->heads) {
        plan_fetch(ahead, pass, column, index, fetch);
        return SPILL_AHEAD_FETCH;
    }
    pass->seen[index] = SPILL_AHEAD_NEVER; /* the READ that follows sees a later moment */
    return SPILL_AHEAD_ALONE;
}

bool spill_mongo_ahead_read(spill_mongo_t *store, const spill_mongo_document_t *document,
                            const bson_t *projection, const bson_t *excluded, bson_t **head)
{
    spill_mongo_ahead_t *ahead = store->ahead;
    SPILL_SCOPED(release_fetch) fetch_t fetch = {.document = document, .ids = BSON_INITIALIZER};
    *head = NULL;
    pthread_mutex_lock(&ahead->lock);
    spill_ahead_way_t way = find_answer(ahead, document, projection, &fetch, head);
    pthread_mutex_unlock(&ahead->lock);
    if (way == SPILL_AHEAD_FETCH) {
        run_fetch(store, projection, excluded, &fetch);
        pthread_mutex_lock(&ahead->lock);
        keep_fetched(ahead, projection, &fetch);
        way = find_answer(ahead, document, projection, &fetch, head);
        pthread_mutex_unlock(&ahead->lock);
    }
    return way == SPILL_AHEAD_ANSWERED;
}
