/*
 * Import a real activity stream, by person, into a MongoDB-compatible server. The largest owner has
 * more elements than a document can hold, as a plain $push shows; the store accepts all of them.
 * Every element must be read back in order, with the same BSON as libbson's parse of its line, and
 * then again page by page from the newest. Verify must find nothing. The matrix has both keeps and
 * bounds 1, 2, 3, 7, 100 and 1000. With SPILLWAY_LONG every cell imports the whole stream;
 * otherwise some cells import its first lines, and one cell all lines of the largest owner.
 *
 * Runs if SPILLWAY_DATA names a folder with openstack_updates/events.ndjson.gz.
 */
#include "cli/real_data.h"
#include "support/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUSH_AT_ONCE = 1000 };

/* A shape, and how many lines from the start. */
typedef struct cell {
    shape_t shape;
    int lines;
} cell_t;

static void try_shape(real_data_t *data, const char *path, shape_t shape)
{
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    real_data_try(data, store, path, "by", shape);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

/* ---- the problem ----------------------------------------------------------------------------- */

/* {$push: {events: {$each: [...]}}} with up to PUSH_AT_ONCE of the feed's elements, from `from`. */
static bson_t *push_of(const real_data_t *data, const feed_t *feed, size_t from)
{
    bson_t push, events, each;
    bson_t *update = bson_new();
    BSON_APPEND_DOCUMENT_BEGIN(update, "$push", &push);
    BSON_APPEND_DOCUMENT_BEGIN(&push, "events", &events);
    BSON_APPEND_ARRAY_BEGIN(&events, "$each", &each);
    for (size_t i = 0; i < PUSH_AT_ONCE && from + i < feed->count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%zu", i);
        BSON_APPEND_DOCUMENT(&each, key, data->documents[feed->lines[from + i]]);
    }
    bson_append_array_end(&events, &each);
    bson_append_document_end(&push, &events);
    bson_append_document_end(update, &push);
    return update;
}

/* Push until the server refuses, because the document would be larger than 16 MiB. */
static void push_until_refused(const real_data_t *data)
{
    const feed_t *feed = real_data_largest(data);
    char *uri = server_new_database(NULL);
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    mongoc_collection_t *collection = mongoc_database_get_collection(database, "plain");
    bson_t filter = BSON_INITIALIZER, opts = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id", feed->owner);
    BSON_APPEND_BOOL(&opts, "upsert", true);
    bson_error_t error;
    size_t pushed = 0;
    bool good = true;
    while (good && pushed < feed->count) {
        bson_t *update = push_of(data, feed, pushed);
        good = mongoc_collection_update_one(collection, &filter, update, &opts, NULL, &error);
        if (good)
            pushed += PUSH_AT_ONCE;
        bson_destroy(update);
    }
    if (good)
        real_data_stop("a plain $push accepted every element", feed->owner);
    bool too_large = error.code == 10334 || error.code == 17419 ||
                     strstr(error.message, "larger than MaxDocumentSize") != NULL;
    if (!too_large)
        real_data_stop("a plain $push failed with another error", error.message);
    printf("$push to %s: refused after %zu of %zu elements: %s\n", feed->owner, pushed, feed->count,
           error.message);
    fflush(stdout);
    bson_destroy(&opts);
    bson_destroy(&filter);
    mongoc_collection_destroy(collection);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    server_drop(uri);
    bson_free(uri);
}

/* ---- the matrix ------------------------------------------------------------------------------ */

static void try_matrix(real_data_t *data, const char *path)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 100, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        try_shape(data, path, (shape_t){SPILL_KEEP_NEWEST, sizes[i], sizes[i]});
        try_shape(data, path, (shape_t){SPILL_KEEP_OLDEST, sizes[i], sizes[i]});
    }
}

/* Try these lines, and delete their file. */
static void try_lines(char *lines, shape_t shape)
{
    real_data_t *data = real_data_read(lines, "by");
    try_shape(data, lines, shape);
    real_data_free(data);
    remove(lines);
    bson_free(lines);
}

static void try_cells(const char *path)
{
    static const cell_t cells[] = {
        {{SPILL_KEEP_OLDEST, 1, 1}, 200},     {{SPILL_KEEP_NEWEST, 1, 1}, 200},
        {{SPILL_KEEP_NEWEST, 1, 1000}, 200},  {{SPILL_KEEP_OLDEST, 3, 2}, 400},
        {{SPILL_KEEP_NEWEST, 2, 2}, 400},     {{SPILL_KEEP_OLDEST, 100, 7}, 800},
        {{SPILL_KEEP_NEWEST, 7, 100}, 800},   {{SPILL_KEEP_OLDEST, 100, 100}, 2000},
        {{SPILL_KEEP_NEWEST, 100, 100}, 2000}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        try_lines(real_data_cut(path, cells[i].lines), cells[i].shape);
}

int main(void)
{
    server_uri();
    char *path = real_data_path();
    real_data_t *data = real_data_read(path, "by");
    printf("%zu lines, %zu owners\n", data->count, data->feed_count);
    fflush(stdout);
    push_until_refused(data);
    if (getenv("SPILLWAY_LONG")) {
        try_matrix(data, path);
    } else {
        try_lines(real_data_cut_feed(path, real_data_largest(data)),
                  (shape_t){SPILL_KEEP_NEWEST, 1000, 1000});
        try_cells(path);
    }
    real_data_free(data);
    bson_free(path);
    return EXIT_SUCCESS;
}
