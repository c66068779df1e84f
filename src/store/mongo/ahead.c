/*
 * Read-ahead of heads. A walk lists owners and reads the head of each. So the READ of one of them
 * also fetches the heads behind it in the listing, with the same projection, and their READs
 * need no command.
 *
 * An answer that was fetched is like the answer of a slow server: it shows the head at a moment
 * after the walk has listed it. `seen` keeps the answers of one owner in the order of time, and a
 * change of the owner by this store ends its read-ahead. (docs/internals/mongodb.md)
 */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "util/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    PASSES = 16, /* at a time; another one takes the place of the oldest */
    COLUMNS = 3, /* kinds of READs in a pass; others are not fetched ahead */
    AHEAD_FIRST = 8,
    AHEAD_MAX = 128,
    AHEAD_BYTES = 1 << 20 /* of a fetch: then it ends with the document that it has got */
};

/* No answer that was fetched ahead is used any longer. */
#define NEVER UINT64_MAX

typedef struct answer {
    bool held;       /* fetched, and not used */
    bool used;       /* a READ of this kind has been answered */
    uint64_t moment; /* of its fetch */
    bson_t *head;    /* NULL: there is none */
} answer_t;

/* The READs with one projection. */
typedef struct column {
    bson_t *projection;
    answer_t *answers; /* of each owner */
    size_t ahead;      /* how many heads a fetch asks for */
} column_t;

/* The owners that one thread has listed last. */
typedef struct pass {
    pthread_t thread;
    uint64_t began; /* 0: no pass */
    char definition[SPILL_NAME_SIZE];
    spill_listing_t owners;
    uint64_t *seen; /* of each owner: the moment of the answer that was used last, or NEVER */
    size_t at;      /* the owner of the last READ */
    column_t columns[COLUMNS];
    size_t ahead_before[COLUMNS]; /* column_t.ahead at the end of the thread's listing before */
} pass_t;

struct spill_mongo_ahead {
    pthread_mutex_t lock; /* guards the passes, but is not held during a command */
    atomic_bool any;      /* is there a pass? */
    uint64_t moment;      /* counts fetches and passes */
    pass_t passes[PASSES];
};

/* ---- passes ---------------------------------------------------------------------------------- */

spill_mongo_ahead_t *spill_mongo_ahead_new(void)
{
    spill_mongo_ahead_t *ahead = bson_malloc0(sizeof *ahead);
    pthread_mutex_init(&ahead->lock, NULL);
    return ahead;
}

static void forget(answer_t *answer)
{
    bson_destroy(answer->head);
    answer->head = NULL;
    answer->held = false;
}

static void end_pass(pass_t *pass)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        column_t *column = &pass->columns[i];
        for (size_t k = 0; column->projection && k < pass->owners.count; k++)
            forget(&column->answers[k]);
        bson_destroy(column->projection);
        bson_free(column->answers);
    }
    bson_free(pass->seen);
    spill_listing_release(&pass->owners);
    *pass = (pass_t){0};
}

void spill_mongo_ahead_free(spill_mongo_ahead_t *ahead)
{
    if (!ahead)
        return;
    for (size_t i = 0; i < PASSES; i++)
        end_pass(&ahead->passes[i]);
    pthread_mutex_destroy(&ahead->lock);
    bson_free(ahead);
}

/* The thread's pass over the definition, or NULL. The lock is held. */
static pass_t *find_pass(spill_mongo_ahead_t *ahead, const char *definition)
{
    for (size_t i = 0; i < PASSES; i++) {
        pass_t *pass = &ahead->passes[i];
        if (pass->began > 0 && pthread_equal(pass->thread, pthread_self()) &&
            strcmp(pass->definition, definition) == 0)
            return pass;
    }
    return NULL;
}

/* A free one, or the oldest. */
static pass_t *take_pass(spill_mongo_ahead_t *ahead, const char *definition)
{
    pass_t *pass = find_pass(ahead, definition);
    for (size_t i = 0; !pass && i < PASSES; i++)
        if (ahead->passes[i].began == 0)
            pass = &ahead->passes[i];
    if (pass)
        return pass;
    pass = ahead->passes;
    for (size_t i = 1; i < PASSES; i++)
        if (ahead->passes[i].began < pass->began)
            pass = &ahead->passes[i];
    return pass;
}

void spill_mongo_ahead_list(spill_mongo_ahead_t *ahead, const spill_definition_t *definition,
                            const spill_listing_t *listing)
{
    if (spill_schema_of(definition)->has_windows)
        return;
    pthread_mutex_lock(&ahead->lock);
    pass_t *pass = take_pass(ahead, definition->name);
    size_t before[COLUMNS] = {0};
    for (size_t i = 0; pass == find_pass(ahead, definition->name) && i < COLUMNS; i++)
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

/* The owner's index, or the number of owners. Walks go from each owner to the next. */
static size_t index_of(const pass_t *pass, const spill_value_t *owner)
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
    for (size_t i = 0; i < PASSES; i++) {
        pass_t *pass = &ahead->passes[i];
        size_t index = index_of(pass, owner);
        if (index < pass->owners.count)
            pass->seen[index] = NEVER;
    }
    pthread_mutex_unlock(&ahead->lock);
}

/* ---- one READ -------------------------------------------------------------------------------- */

/* The column of the projection; a new one if there is room; else NULL. */
static column_t *column_of(pass_t *pass, const bson_t *projection)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        column_t *column = &pass->columns[i];
        if (!column->projection) {
            column->projection = bson_copy(projection);
            column->answers = bson_malloc0((pass->owners.count + 1) * sizeof(answer_t));
            column->ahead = pass->ahead_before[i] > 0 ? pass->ahead_before[i] : AHEAD_FIRST;
            return column;
        }
        if (bson_equal(column->projection, projection))
            return column;
    }
    return NULL;
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
        fetch->all = ++fetch->found == fetch->count || fetch->bytes < AHEAD_BYTES;
        return fetch->bytes < AHEAD_BYTES;
    }
    return true;
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
        const spill_mongo_query_t query = {&filter, NULL, &fields, 0};
        code = spill_mongo_find(store, collection, &query, false, keep_head, fetch, &error);
    }
    fetch->all = fetch->all && code == SPILL_OK;
}

/* Begin to fetch the owner of that index, and those behind it. The lock is held. */
static void plan_fetch(spill_mongo_ahead_t *ahead, const pass_t *pass, const column_t *column,
                       size_t index, fetch_t *fetch)
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
        spill_value_append(&item.owner, &fetch->ids, key);
    }
}

/* Keep what was fetched. The lock is held; the pass may have ended meanwhile. */
static void keep_fetched(spill_mongo_ahead_t *ahead, const bson_t *projection, fetch_t *fetch)
{
    pass_t *pass = find_pass(ahead, fetch->document->request->definition->name);
    column_t *column = pass && pass->began == fetch->began ? column_of(pass, projection) : NULL;
    for (size_t i = 0; column && i < fetch->from; i++)
        forget(&column->answers[i]);
    for (size_t i = 0; column && i < fetch->count; i++) {
        answer_t *answer = &column->answers[fetch->from + i];
        if (answer->used || (!fetch->heads[i] && !fetch->all))
            continue;
        forget(answer);
        *answer = (answer_t){.held = true, .moment = fetch->moment, .head = fetch->heads[i]};
        fetch->heads[i] = NULL;
    }
    if (column && !fetch->all)
        column->ahead = column->ahead > AHEAD_FIRST ? column->ahead / 4 : 2;
    else if (column && fetch->bytes < AHEAD_BYTES / 4 && column->ahead < AHEAD_MAX)
        column->ahead *= 2;
}

static void release_fetch(fetch_t *fetch)
{
    for (size_t i = 0; i < fetch->count; i++)
        bson_destroy(fetch->heads[i]);
    bson_free(fetch->heads);
    bson_destroy(&fetch->ids);
}

/* What to do with a READ. */
typedef enum way {
    ANSWERED, /* *head has the answer */
    FETCH,    /* run the fetch first */
    ALONE     /* no answer was fetched, and none will be */
} way_t;

/* The lock is held. */
static way_t find_answer(spill_mongo_ahead_t *ahead, const spill_mongo_document_t *document,
                         const bson_t *projection, fetch_t *fetch, bson_t **head)
{
    pass_t *pass = find_pass(ahead, document->request->definition->name);
    size_t index = pass ? index_of(pass, document->request->owner) : 0;
    if (!pass || index == pass->owners.count)
        return ALONE;
    pass->at = index;
    column_t *column = pass->seen[index] == NEVER ? NULL : column_of(pass, projection);
    answer_t *answer = column ? &column->answers[index] : NULL;
    if (answer && answer->held && answer->moment >= pass->seen[index]) {
        *head = answer->head;
        pass->seen[index] = answer->moment;
        *answer = (answer_t){.used = true};
        return ANSWERED;
    }
    if (answer && !answer->used && !fetch->heads) {
        plan_fetch(ahead, pass, column, index, fetch);
        return FETCH;
    }
    pass->seen[index] = NEVER; /* the READ that follows sees a later moment */
    return ALONE;
}

bool spill_mongo_ahead_read(spill_mongo_t *store, const spill_mongo_document_t *document,
                            const bson_t *projection, const bson_t *excluded, bson_t **head)
{
    spill_mongo_ahead_t *ahead = store->ahead;
    SPILL_SCOPED(release_fetch) fetch_t fetch = {.document = document, .ids = BSON_INITIALIZER};
    *head = NULL;
    pthread_mutex_lock(&ahead->lock);
    way_t way = find_answer(ahead, document, projection, &fetch, head);
    pthread_mutex_unlock(&ahead->lock);
    if (way == FETCH) {
        run_fetch(store, projection, excluded, &fetch);
        pthread_mutex_lock(&ahead->lock);
        keep_fetched(ahead, projection, &fetch);
        way = find_answer(ahead, document, projection, &fetch, head);
        pthread_mutex_unlock(&ahead->lock);
    }
    return way == ANSWERED;
}
