/* Read the documents of any collection; and one document with an array that nothing bounds. */
#include "store/raw_reader.h"

#include "store/mongo/mongo.h"
#include "util/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spill_raw_reader {
    spill_mongo_t *store;
    mongoc_client_t *client;
    mongoc_read_prefs_t *preference; /* NULL: the URI's */
    mongoc_collection_t *collection;
    spill_mongo_cursor_t documents;
};

bool spill_raw_reader_serves(const char *uri)
{
    return strncmp(uri, "mongodb://", 10) == 0 || strncmp(uri, "mongodb+srv://", 14) == 0;
}

static spill_code_t parse_preference(const char *text, mongoc_read_prefs_t **preference,
                                     spill_error_t *error)
{
    static const struct {
        const char *name;
        mongoc_read_mode_t mode;
    } modes[] = {{"primary", MONGOC_READ_PRIMARY},
                 {"primaryPreferred", MONGOC_READ_PRIMARY_PREFERRED},
                 {"secondary", MONGOC_READ_SECONDARY},
                 {"secondaryPreferred", MONGOC_READ_SECONDARY_PREFERRED},
                 {"nearest", MONGOC_READ_NEAREST}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(text, modes[i].name) == 0) {
            *preference = mongoc_read_prefs_new(modes[i].mode);
            return SPILL_OK;
        }
    }
    return spill_fail(error, SPILL_INVALID,
                      "a read preference is primary, primaryPreferred, secondary, "
                      "secondaryPreferred or nearest, not '%s'",
                      text);
}

spill_code_t spill_raw_reader_open(const char *uri, const char *preference,
                                   spill_raw_reader_t **reader, spill_error_t *error)
{
    spill_store_options_t options;
    spill_store_t *store = NULL;
    *reader = NULL;
    SPILL_TRY(spill_driver_load(error));
    spill_raw_reader_t *made = bson_malloc0(sizeof *made);
    *reader = made;
    spill_store_options_init(&options);
    options.read_only = true;
    if (preference)
        SPILL_TRY(parse_preference(preference, &made->preference, error));
    SPILL_TRY(spill_mongo_open(uri, &options, &store, error));
    made->store = (spill_mongo_t *)store;
    made->client = mongoc_client_pool_pop(made->store->pool);
    return SPILL_OK;
}

static void end(spill_raw_reader_t *reader)
{
    spill_mongo_cursor_end(&reader->documents);
    mongoc_collection_destroy(reader->collection);
    reader->collection = NULL;
}

void spill_raw_reader_close(spill_raw_reader_t *reader)
{
    if (!reader)
        return;
    end(reader);
    if (reader->client)
        mongoc_client_pool_push(reader->store->pool, reader->client);
    if (reader->store)
        spill_store_close(&reader->store->base, NULL);
    mongoc_read_prefs_destroy(reader->preference);
    bson_free(reader);
}

const char *spill_raw_reader_place(const spill_raw_reader_t *reader)
{
    return reader->store->place;
}

const char *spill_raw_reader_database(const spill_raw_reader_t *reader)
{
    return reader->store->database;
}

/* ---- collections ----------------------------------------------------------------------------- */

/* The collection's name; NULL for a view and for the server's own collections. */
static const char *name_in(const bson_t *description)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, description, "type") && BSON_ITER_HOLDS_UTF8(&iter) &&
        strcmp(bson_iter_utf8(&iter, NULL), "collection") != 0)
        return NULL;
    if (!bson_iter_init_find(&iter, description, "name") || !BSON_ITER_HOLDS_UTF8(&iter))
        return NULL;
    const char *name = bson_iter_utf8(&iter, NULL);
    return strncmp(name, "system.", 7) == 0 ? NULL : name;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

spill_code_t spill_raw_reader_collections(spill_raw_reader_t *reader, char ***names,
                                          spill_error_t *error)
{
    mongoc_database_t *database =
        mongoc_client_get_database(reader->client, reader->store->database);
    mongoc_cursor_t *cursor = mongoc_database_find_collections_with_opts(database, NULL);
    spill_mongo_cursor_t documents = spill_mongo_cursor(reader->store, NULL, cursor, true);
    const bson_t *document;
    size_t count = 0;
    *names = bson_malloc0(sizeof **names);
    spill_code_t code = spill_mongo_cursor_next(&documents, &document, error);
    for (; document; code = spill_mongo_cursor_next(&documents, &document, error)) {
        const char *name = name_in(document);
        if (!name)
            continue;
        *names = bson_realloc(*names, (count + 2) * sizeof **names);
        (*names)[count++] = bson_strdup(name);
        (*names)[count] = NULL;
    }
    if (count > 0)
        qsort(*names, count, sizeof **names, compare_names);
    spill_mongo_cursor_end(&documents);
    mongoc_database_destroy(database);
    return code;
}

int64_t spill_raw_reader_count(spill_raw_reader_t *reader, const char *collection)
{
    bson_error_t ignored;
    mongoc_collection_t *counted =
        mongoc_client_get_collection(reader->client, reader->store->database, collection);
    int64_t count = mongoc_collection_estimated_document_count(counted, NULL, reader->preference,
                                                               NULL, &ignored);
    mongoc_collection_destroy(counted);
    return count < SPILL_MONGO_NUMBER_MAX / 1000 ? count : -1;
}

/* ---- indexes --------------------------------------------------------------------------------- */

/* The size of an index in the answer of collStats, or -1. */
static int64_t index_bytes(const bson_t *stats, const char *name)
{
    bson_iter_t iter, sizes;
    if (!bson_iter_init_find(&iter, stats, "indexSizes") || !BSON_ITER_HOLDS_DOCUMENT(&iter) ||
        !bson_iter_recurse(&iter, &sizes) || !bson_iter_find(&sizes, name) ||
        !BSON_ITER_HOLDS_NUMBER(&sizes))
        return -1;
    return spill_iter_int64(&sizes);
}

void spill_raw_reader_indexes(spill_raw_reader_t *reader, const char *collection,
                              spill_raw_reader_index_fn index, void *context)
{
    bson_error_t ignored;
    bson_t stats;
    bson_t *command = BCON_NEW("collStats", BCON_UTF8(collection));
    mongoc_collection_t *described =
        mongoc_client_get_collection(reader->client, reader->store->database, collection);
    mongoc_client_command_simple(reader->client, reader->store->database, command,
                                 reader->preference, &stats, &ignored);
    mongoc_cursor_t *cursor = mongoc_collection_find_indexes_with_opts(described, NULL);
    spill_mongo_cursor_t documents = spill_mongo_cursor(reader->store, collection, cursor, true);
    const bson_t *description;
    bson_iter_t iter;
    spill_error_t failure; /* ignored: the server may not list indexes */
    while (spill_mongo_cursor_next(&documents, &description, &failure) == SPILL_OK && description) {
        bool named = bson_iter_init_find(&iter, description, "name") && BSON_ITER_HOLDS_UTF8(&iter);
        index(context, description, named ? index_bytes(&stats, bson_iter_utf8(&iter, NULL)) : -1);
    }
    spill_mongo_cursor_end(&documents);
    mongoc_collection_destroy(described);
    bson_destroy(&stats);
    bson_destroy(command);
}

/* ---- documents ------------------------------------------------------------------------------- */

void spill_raw_reader_begin(spill_raw_reader_t *reader, const char *collection, int64_t sample)
{
    mongoc_cursor_t *cursor;
    end(reader);
    reader->collection =
        mongoc_client_get_collection(reader->client, reader->store->database, collection);
    if (sample > 0) {
        bson_t *pipeline = BCON_NEW("pipeline", "[", "{", "$sample", "{", "size",
                                    BCON_INT64(sample), "}", "}", "]");
        cursor = mongoc_collection_aggregate(reader->collection, MONGOC_QUERY_NONE, pipeline, NULL,
                                             reader->preference);
        bson_destroy(pipeline);
    } else {
        bson_t filter = BSON_INITIALIZER;
        cursor =
            mongoc_collection_find_with_opts(reader->collection, &filter, NULL, reader->preference);
    }
    reader->documents = spill_mongo_cursor(
        reader->store, mongoc_collection_get_name(reader->collection), cursor, sample <= 0);
}

void spill_raw_reader_begin_by_id(spill_raw_reader_t *reader, const char *collection, int64_t skip)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}", "skip", BCON_INT64(skip));
    end(reader);
    reader->collection =
        mongoc_client_get_collection(reader->client, reader->store->database, collection);
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(reader->collection, &filter, options, reader->preference);
    reader->documents = spill_mongo_cursor(
        reader->store, mongoc_collection_get_name(reader->collection), cursor, true);
    bson_destroy(options);
}

spill_code_t spill_raw_reader_next(spill_raw_reader_t *reader, const uint8_t **data,
                                   uint32_t *size_bytes, spill_error_t *error)
{
    const bson_t *document;
    *data = NULL;
    *size_bytes = 0;
    spill_code_t code = spill_mongo_cursor_next(&reader->documents, &document, error);
    if (document) {
        *data = bson_get_data(document);
        *size_bytes = document->len;
    }
    return code;
}

/* ---- an unbounded array ---------------------------------------------------------------------- */

static spill_mongo_t *mongo_of(const spill_unbounded_t *unbounded)
{
    return (spill_mongo_t *)unbounded->store;
}

bool spill_unbounded_serves(const spill_store_t *store)
{
    return strcmp(store->ops->name, "mongodb") == 0;
}

static spill_code_t fail_missing(const spill_unbounded_t *unbounded, spill_error_t *error)
{
    return spill_fail(error, SPILL_NOT_FOUND, "%s: there is no document \"%s\"",
                      unbounded->collection, unbounded->id);
}

spill_code_t spill_unbounded_put(const spill_unbounded_t *unbounded, const bson_t *elements,
                                 spill_error_t *error)
{
    spill_mongo_t *store = mongo_of(unbounded);
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    bool found, done;
    BSON_APPEND_UTF8(&filter, "_id", unbounded->id);
    BSON_APPEND_UTF8(&document, "_id", unbounded->id);
    BSON_APPEND_ARRAY(&document, unbounded->array, elements);
    SPILL_TRY(spill_mongo_replace(store, unbounded->collection, &filter, &document, &found, error));
    return found ? SPILL_OK
                 : spill_mongo_insert(store, unbounded->collection, &document, &done, error);
}

spill_code_t spill_unbounded_push(const spill_unbounded_t *unbounded, const spill_value_t *element,
                                  spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bson_t push;
    bool done;
    BSON_APPEND_UTF8(&filter, "_id", unbounded->id);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$push", &push);
    spill_value_append(element, &push, unbounded->array);
    bson_append_document_end(&update, &push);
    return spill_mongo_upsert(mongo_of(unbounded), unbounded->collection, &filter, &update, &done,
                              error);
}

/* Read a projection of the document, which is initialized here in every case. */
static spill_code_t project(const spill_unbounded_t *unbounded, const bson_t *projection,
                            bson_t *document, spill_error_t *error)
{
    bool found;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *pipeline = BCON_NEW("0", "{", "$match", "{", "_id", BCON_UTF8(unbounded->id), "}", "}",
                                "1", "{", "$project", BCON_DOCUMENT(projection), "}");
    SPILL_TRY(spill_mongo_first(mongo_of(unbounded), unbounded->collection, pipeline, document,
                                &found, error));
    return found ? SPILL_OK : fail_missing(unbounded, error);
}

/* "$<array>" */
static const char *array_ref(const spill_unbounded_t *unbounded, char ref[SPILL_NAME_SIZE + 1])
{
    snprintf(ref, SPILL_NAME_SIZE + 1, "$%s", unbounded->array);
    return ref;
}

spill_code_t spill_unbounded_newest(const spill_unbounded_t *unbounded, int64_t limit,
                                    int64_t *count, spill_error_t *error)
{
    char ref[SPILL_NAME_SIZE + 1];
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *projection = BCON_NEW("page", "{", "$slice", "[", BCON_UTF8(array_ref(unbounded, ref)),
                                  BCON_INT64(-limit), "]", "}");
    bson_iter_t iter, elements;
    *count = 0;
    SPILL_TRY(project(unbounded, projection, &document, error));
    if (bson_iter_init_find(&iter, &document, "page") && bson_iter_recurse(&iter, &elements))
        while (bson_iter_next(&elements))
            ++*count;
    return SPILL_OK;
}

spill_code_t spill_unbounded_measure(const spill_unbounded_t *unbounded, int64_t *elements,
                                     int64_t *size_bytes, spill_error_t *error)
{
    char ref[SPILL_NAME_SIZE + 1];
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *projection = BCON_NEW("bytes", "{", "$bsonSize", "$$ROOT", "}", "elements", "{",
                                  "$size", BCON_UTF8(array_ref(unbounded, ref)), "}");
    bson_iter_t iter;
    *elements = *size_bytes = 0;
    SPILL_TRY(project(unbounded, projection, &document, error));
    if (bson_iter_init_find(&iter, &document, "bytes"))
        *size_bytes = spill_iter_int64(&iter);
    if (bson_iter_init_find(&iter, &document, "elements"))
        *elements = spill_iter_int64(&iter);
    return SPILL_OK;
}
