/*
 * Read-ahead of pages. A walk over small owners reads few pages of each, with low numbers: the
 * pages that a head counts, those behind them, documents of referenced elements. So such a READ
 * also fetches the pages with these numbers, and some more, of the next owners, by their _ids.
 *
 * The pages of an owner are fetched together, and answer READs in the order of their numbers: a
 * page that is read twice is read from the server again. As for heads, `seen` keeps the answers of
 * one owner in the order of time.
 */
#include "store/mongo/ahead.h"

#include "bson/value.h"
#include "definition/stored_names.h"
#include "util/error.h"

enum {
    NUMBERS_MAX = 64, /* pages of an owner with higher numbers are read alone */
    IDS_MAX = 1024,   /* of a fetch */
    RESTS = 64        /* READs that are sent alone after two owners were too large for a fetch */
};

/* A command that asks for the first pages of the owners from index `from` on. */
typedef struct fetch {
    const spill_mongo_document_t *document;
    uint64_t began, moment; /* of the pass, and of the fetch */
    size_t from, count;     /* owners */
    int64_t numbers;        /* pages of each */
    bson_t **pages;         /* `numbers` of each owner; or NULL */
    size_t bytes, at;
    bool all;
    spill_listing_t listing;
} fetch_t;

static void release_fetch(fetch_t *fetch)
{
    for (size_t i = 0; fetch->pages && i < fetch->count * (size_t)fetch->numbers; i++)
        bson_destroy(fetch->pages[i]);
    bson_free(fetch->pages);
    spill_listing_release(&fetch->listing);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Split the _id of a page. A window's owner is a document in `memory`. False: it is another _id. */
static bool split_id(const spill_definition_t *definition, const bson_t *page, bson_t *memory,
                     spill_value_t *owner, int64_t *number)
{
    bool windows = spill_schema_of(definition)->has_windows;
    bson_iter_t id, field;
    const uint8_t *data;
    uint32_t size;
    bson_t whole;
    if (!bson_iter_init_find(&id, page, "_id") || !BSON_ITER_HOLDS_DOCUMENT(&id))
        return false;
    bson_iter_document(&id, &size, &data);
    if (!bson_init_static(&whole, data, size) ||
        !bson_iter_init_find(&field, &whole, windows ? SPILL_STORED_ID_PART : SPILL_STORED_ID_PAGE))
        return false;
    *number = spill_iter_int64(&field) - (windows ? 1 : 0);
    if (windows) {
        bson_copy_to_excluding_noinit(&whole, memory, SPILL_STORED_ID_PART, NULL);
        *owner = spill_value_from_document(memory);
        return true;
    }
    if (!bson_iter_init_find(&field, &whole, SPILL_STORED_ID_OWNER))
        return false;
    *owner = spill_value_from_iter(&field);
    return true;
}

/* The index of an owner of the fetch. Documents of one owner often come one after another. */
static size_t index_in(fetch_t *fetch, const spill_value_t *owner)
{
    for (size_t i = 0; i < fetch->count; i++) {
        size_t index = (fetch->at + i) % fetch->count;
        spill_item_t item = spill_listing_item(&fetch->listing, index);
        if (!spill_value_equal(&item.owner, owner))
            continue;
        fetch->at = index;
        return index;
    }
    return fetch->count;
}

static bool keep_page(void *context, const bson_t *page)
{
    fetch_t *fetch = context;
    SPILL_SCOPED(bson_destroy) bson_t memory = BSON_INITIALIZER;
    spill_value_t owner;
    int64_t number = -1;
    bool split = split_id(fetch->document->request->definition, page, &memory, &owner, &number);
    size_t index = split ? index_in(fetch, &owner) : fetch->count;
    /* An owner may be equal, with a number of another type, as the server compares. */
    fetch->all = index < fetch->count && number >= 0 && number < fetch->numbers;
    if (!fetch->all)
        return false;
    bson_t **place = &fetch->pages[index * (size_t)fetch->numbers + (size_t)number];
    bson_destroy(*place);
    *place = bson_copy(page);
    fetch->bytes += page->len;
    fetch->all = fetch->bytes < SPILL_AHEAD_BYTES;
    return fetch->all;
}

static void run_fetch(spill_mongo_t *store, const bson_t *projection, fetch_t *fetch)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t fields = BSON_INITIALIZER;
    const spill_definition_t *definition = fetch->document->request->definition;
    bson_t id, ids;
    uint32_t place = 0;
    spill_error_t error;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &id);
    BSON_APPEND_ARRAY_BEGIN(&id, "$in", &ids);
    for (size_t i = 0; i < fetch->count; i++)
        for (int64_t number = 0; number < fetch->numbers; number++) {
            char buffer[16];
            const char *key;
            spill_item_t item = spill_listing_item(&fetch->listing, i);
            bson_uint32_to_string(place++, &key, buffer, sizeof buffer);
            spill_mongo_append_id(definition, &item.owner, number, key, &ids);
        }
    bson_append_array_end(&id, &ids);
    bson_append_document_end(&filter, &id);
    bson_copy_to_excluding_noinit(projection, &fields, "_id", NULL);
    fetch->all = true;
    const spill_mongo_query_t query = {.filter = &filter, .projection = &fields};
    spill_code_t code = spill_mongo_find(store, fetch->document->collection, &query, false,
                                         keep_page, fetch, &error);
    fetch->all = fetch->all && code == SPILL_OK;
}

/* ---- the answers ----------------------------------------------------------------------------- */

/* Begin to fetch pages of the owner of that index, and of the next ones. The lock is held. */
static void plan_fetch(spill_mongo_ahead_t *ahead, const spill_ahead_pass_t *pass,
                       const spill_ahead_column_t *column, size_t index, int64_t end,
                       fetch_t *fetch)
{
    fetch->began = pass->began;
    fetch->moment = ++ahead->moment;
    fetch->from = index;
    fetch->numbers = end + end / 2 + 1; /* the next owners may have some more */
    fetch->count = pass->owners.count - index;
    if (fetch->count > column->ahead)
        fetch->count = column->ahead;
    if (fetch->count > (size_t)(IDS_MAX / fetch->numbers))
        fetch->count = (size_t)(IDS_MAX / fetch->numbers);
    fetch->pages = bson_malloc0((fetch->count * (size_t)fetch->numbers + 1) * sizeof(bson_t *));
    for (size_t i = 0; i < fetch->count; i++) {
        spill_item_t item = spill_listing_item(&pass->owners, index + i);
        spill_listing_add_owner(&fetch->listing, &item.owner);
    }
}

/* Keep what was fetched. The lock is held; the pass may have ended meanwhile. */
static void keep_fetched(spill_mongo_ahead_t *ahead, const bson_t *projection, fetch_t *fetch)
{
    const char *definition = fetch->document->request->definition->name;
    spill_ahead_pass_t *pass = spill_ahead_pass(ahead, definition);
    if (!pass || pass->began != fetch->began)
        return;
    spill_ahead_column_t *column = spill_ahead_column(pass, projection, true);
    if (!column)
        return;
    for (size_t i = 0; i < fetch->from; i++)
        spill_ahead_forget(&column->answers[i]);
    for (size_t i = 0; fetch->all && i < fetch->count; i++) {
        spill_ahead_answer_t *answer = &column->answers[fetch->from + i];
        bson_t **from = fetch->pages + i * (size_t)fetch->numbers;
        if (answer->next > 0)
            continue;
        spill_ahead_forget(answer);
        answer->held = true;
        answer->moment = fetch->moment;
        answer->count = fetch->numbers;
        answer->pages = bson_malloc0((size_t)fetch->numbers * sizeof(bson_t *));
        for (int64_t number = 0; number < fetch->numbers; number++) {
            answer->pages[number] = from[number];
            from[number] = NULL;
        }
    }
    if (!fetch->all && column->ahead <= 2)
        column->rest = RESTS;
    spill_ahead_adapt(column, fetch->all, fetch->bytes);
}

/* The lock is held. */
static spill_ahead_way_t find_answer(spill_mongo_ahead_t *ahead,
                                     const spill_mongo_document_t *document,
                                     const bson_t *projection, int64_t from, int64_t end,
                                     fetch_t *fetch, bson_t **pages)
{
    spill_ahead_pass_t *pass = spill_ahead_pass(ahead, document->request->definition->name);
    size_t index = pass ? spill_ahead_index(pass, document->request->owner) : 0;
    if (!pass || index == pass->owners.count || end > NUMBERS_MAX)
        return SPILL_AHEAD_ALONE;
    pass->at = index;
    spill_ahead_column_t *column =
        pass->seen[index] == SPILL_AHEAD_NEVER ? NULL : spill_ahead_column(pass, projection, true);
    spill_ahead_answer_t *answer = column ? &column->answers[index] : NULL;
    if (answer && answer->held && answer->moment >= pass->seen[index] && end <= answer->count &&
        from >= answer->next) {
        for (int64_t number = from; number < end; number++) {
            pages[number - from] = answer->pages[number];
            answer->pages[number] = NULL;
        }
        answer->next = end;
        pass->seen[index] = answer->moment;
        return SPILL_AHEAD_ANSWERED;
    }
    if (answer && column->rest > 0)
        column->rest--;
    else if (answer && answer->next == 0 && !fetch->pages) {
        plan_fetch(ahead, pass, column, index, end, fetch);
        return SPILL_AHEAD_FETCH;
    }
    return SPILL_AHEAD_ALONE;
}

bool spill_mongo_ahead_pages(spill_mongo_t *store, const spill_mongo_document_t *document,
                             const bson_t *projection, int64_t from, int64_t end, bson_t **pages)
{
    spill_mongo_ahead_t *ahead = store->ahead;
    SPILL_SCOPED(release_fetch)
    fetch_t fetch = {.document = document, .listing = SPILL_LISTING_INIT};
    if (from < 0 || end <= from)
        return false;
    pthread_mutex_lock(&ahead->lock);
    spill_ahead_way_t way = find_answer(ahead, document, projection, from, end, &fetch, pages);
    pthread_mutex_unlock(&ahead->lock);
    if (way == SPILL_AHEAD_FETCH) {
        run_fetch(store, projection, &fetch);
        pthread_mutex_lock(&ahead->lock);
        keep_fetched(ahead, projection, &fetch);
        way = find_answer(ahead, document, projection, from, end, &fetch, pages);
        pthread_mutex_unlock(&ahead->lock);
    }
    return way == SPILL_AHEAD_ANSWERED;
}
