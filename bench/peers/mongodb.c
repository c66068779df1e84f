/*
 * The commands that applications send to a MongoDB-compatible server without Spillway:
 *
 *   $push            all elements in one document, without bounds
 *   racy, safe       the outlier pattern as commonly published: a head and overflow pages. A page's
 *                    number is computed from a count that was read before.
 *   a document each  one document per element, with an index on {owner, seq}; seq is an ObjectId
 *   bucket by hand   documents of a fixed number of elements; one upsert finds the last document
 * and pushes to it
 *
 * With write concern majority, like the store, and j: true if appends must survive a power loss.
 */
#include "../measure.h"
#include "peer.h"

#include <mongoc/mongoc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct server {
    mongoc_client_pool_t *pool;
    char *database;
    int capacity;
} server_t;

typedef struct connection {
    server_t *server;
    mongoc_client_t *client;
    mongoc_collection_t *heads, *pages;
} connection_t;

static void check(bool good, const bson_error_t *error)
{
    if (!good)
        measure_stop("mongodb: %s", error->message);
}

static void *join(void *peer)
{
    connection_t *connection = calloc(1, sizeof *connection);
    connection->server = peer;
    connection->client = mongoc_client_pool_pop(connection->server->pool);
    connection->heads =
        mongoc_client_get_collection(connection->client, connection->server->database, "heads");
    connection->pages =
        mongoc_client_get_collection(connection->client, connection->server->database, "pages");
    return connection;
}

static void leave(void *at)
{
    connection_t *connection = at;
    mongoc_collection_destroy(connection->heads);
    mongoc_collection_destroy(connection->pages);
    mongoc_client_pool_push(connection->server->pool, connection->client);
    free(connection);
}

static void make_index(connection_t *connection, const char *second)
{
    bson_error_t error;
    char name[64];
    snprintf(name, sizeof name, "userId_1_%s_1", second);
    bson_t *command =
        BCON_NEW("createIndexes", "pages", "indexes", "[", "{", "key", "{", "userId", BCON_INT32(1),
                 second, BCON_INT32(1), "}", "name", BCON_UTF8(name), "}", "]");
    check(mongoc_client_write_command_with_opts(connection->client, connection->server->database,
                                                command, NULL, NULL, &error),
          &error);
    bson_destroy(command);
}

static server_t *open_server(const peer_place_t *place, const char *indexed)
{
    bson_error_t error;
    server_t *server = calloc(1, sizeof *server);
    mongoc_init();
    mongoc_uri_t *uri = mongoc_uri_new_with_error(place->mongodb, &error);
    check(uri != NULL, &error);
    mongoc_write_concern_t *concern = mongoc_write_concern_new();
    mongoc_write_concern_set_w(concern, MONGOC_WRITE_CONCERN_W_MAJORITY);
    if (place->durable)
        mongoc_write_concern_set_journal(concern, true);
    mongoc_uri_set_write_concern(uri, concern);
    mongoc_write_concern_destroy(concern);
    server->database = bson_strdup(mongoc_uri_get_database(uri));
    server->pool = mongoc_client_pool_new(uri);
    server->capacity = place->capacity;
    mongoc_uri_destroy(uri);
    if (place->fresh) {
        connection_t *connection = join(server);
        mongoc_collection_drop(connection->heads, NULL);
        mongoc_collection_drop(connection->pages, NULL);
        if (indexed)
            make_index(connection, indexed);
        leave(connection);
    }
    return server;
}

static void *open_unmanaged(const peer_place_t *place)
{
    return open_server(place, NULL);
}

static void *open_paged(const peer_place_t *place)
{
    return open_server(place, "page");
}

static void *open_referenced(const peer_place_t *place)
{
    return open_server(place, "_id");
}

static void close_server(void *peer)
{
    server_t *server = peer;
    mongoc_client_pool_destroy(server->pool);
    bson_free(server->database);
    free(server);
}

/* ---- disk space ------------------------------------------------------------------------------ */

static void compact(const connection_t *connection)
{
    mongoc_database_t *database =
        mongoc_client_get_database(connection->client, connection->server->database);
    char **names = mongoc_database_get_collection_names_with_opts(database, NULL, NULL);
    for (char **name = names; name && *name; name++) { /* some servers do not have the command */
        bson_t *command = BCON_NEW("compact", BCON_UTF8(*name), "force", BCON_BOOL(true));
        mongoc_database_command_simple(database, command, NULL, NULL, NULL);
        bson_destroy(command);
    }
    bson_strfreev(names);
    mongoc_database_destroy(database);
}

int64_t peer_mongodb_bytes(const peer_place_t *place, bool compacted)
{
    peer_place_t as_it_is = *place;
    bson_error_t error;
    bson_iter_t storage, indexes;
    bson_t reply, *command = BCON_NEW("dbStats", BCON_INT32(1));
    as_it_is.fresh = false;
    server_t *server = open_server(&as_it_is, NULL);
    connection_t *connection = join(server);
    if (compacted)
        compact(connection);
    check(mongoc_client_command_simple(connection->client, server->database, command, NULL, &reply,
                                       &error),
          &error);
    if (!bson_iter_init_find(&storage, &reply, "storageSize") ||
        !bson_iter_init_find(&indexes, &reply, "indexSize"))
        measure_stop("mongodb: dbStats has no sizes");
    int64_t bytes = bson_iter_as_int64(&storage) + bson_iter_as_int64(&indexes);
    bson_destroy(command);
    bson_destroy(&reply);
    leave(connection);
    close_server(server);
    return bytes;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Destroys all arguments. Returns whether a document was found or inserted. */
static bool update(mongoc_collection_t *collection, bson_t *filter, bson_t *change, bool upsert)
{
    bson_error_t error;
    bson_t reply;
    bson_iter_t iter;
    bson_t *options = upsert ? BCON_NEW("upsert", BCON_BOOL(true)) : NULL;
    check(mongoc_collection_update_one(collection, filter, change, options, &reply, &error),
          &error);
    bool found = bson_iter_init_find(&iter, &reply, "matchedCount") && bson_iter_as_int64(&iter);
    bson_destroy(&reply);
    bson_destroy(options);
    bson_destroy(filter);
    bson_destroy(change);
    return found;
}

static bson_t as_document(const uint8_t *element)
{
    bson_t document;
    bson_init_static(&document, element, ELEMENT_BYTES);
    return document;
}

/* Read the head's count with one command; 0 if the head does not exist. */
static int64_t read_count(connection_t *connection, const char *owner)
{
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(owner));
    bson_t *options = BCON_NEW("limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    const bson_t *head;
    bson_iter_t iter;
    bson_error_t error;
    int64_t count = 0;
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(connection->heads, filter, options, NULL);
    if (mongoc_cursor_next(cursor, &head) && bson_iter_init_find(&iter, head, "activityCount"))
        count = bson_iter_as_int64(&iter);
    check(!mongoc_cursor_error(cursor, &error), &error);
    mongoc_cursor_destroy(cursor);
    bson_destroy(options);
    bson_destroy(filter);
    return count;
}

/* Visit the elements of a cursor's documents, in order, and destroy the cursor. */
static int visit_arrays(mongoc_cursor_t *cursor, peer_visit_fn visit, void *context)
{
    const bson_t *document;
    bson_error_t error;
    bson_iter_t iter, at;
    int count = 0;
    while (mongoc_cursor_next(cursor, &document)) {
        if (!bson_iter_init_find(&iter, document, "activities") || !bson_iter_recurse(&iter, &at))
            continue;
        for (; bson_iter_next(&at); count++) {
            const uint8_t *data;
            uint32_t size;
            bson_iter_document(&at, &size, &data);
            if (visit)
                visit(context, data, size);
        }
    }
    check(!mongoc_cursor_error(cursor, &error), &error);
    mongoc_cursor_destroy(cursor);
    return count;
}

static int visit_head(connection_t *connection, const char *owner, peer_visit_fn visit,
                      void *context)
{
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(owner));
    int count = visit_arrays(
        mongoc_collection_find_with_opts(connection->heads, filter, NULL, NULL), visit, context);
    bson_destroy(filter);
    return count;
}

static int visit_pages(connection_t *connection, const char *owner, peer_visit_fn visit,
                       void *context)
{
    bson_t *filter = BCON_NEW("userId", BCON_UTF8(owner));
    bson_t *options = BCON_NEW("sort", "{", "page", BCON_INT32(1), "}");
    int count = visit_arrays(
        mongoc_collection_find_with_opts(connection->pages, filter, options, NULL), visit, context);
    bson_destroy(options);
    bson_destroy(filter);
    return count;
}

/* ---- $push ----------------------------------------------------------------------------------- */

static int64_t push_append(void *at, const char *owner, const uint8_t *element, const peer_op_t *op)
{
    connection_t *connection = at;
    bson_t document = as_document(element);
    (void)op;
    update(connection->heads, BCON_NEW("_id", BCON_UTF8(owner)),
           BCON_NEW("$push", "{", "activities", BCON_DOCUMENT(&document), "}"), true);
    return 0;
}

/* Append elements `from` to `to` - 1. */
static void append_elements(bson_t *document, int from, int to)
{
    uint8_t bytes[ELEMENT_BYTES];
    bson_t elements;
    BSON_APPEND_ARRAY_BEGIN(document, "activities", &elements);
    for (int i = from; i < to; i++) {
        char key[16];
        measure_element(bytes, (uint64_t)i);
        bson_t element = as_document(bytes);
        snprintf(key, sizeof key, "%d", i - from);
        BSON_APPEND_DOCUMENT(&elements, key, &element);
    }
    bson_append_array_end(document, &elements);
}

static void insert(mongoc_collection_t *collection, bson_t *document)
{
    bson_error_t error;
    check(mongoc_collection_insert_one(collection, document, NULL, NULL, &error), &error);
    bson_destroy(document);
}

static void push_fill(void *at, const char *owner, int count)
{
    connection_t *connection = at;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "_id", owner);
    append_elements(&document, 0, count);
    insert(connection->heads, &document);
}

static bool push_add(void *at, const char *owner, int64_t id, const uint8_t *element)
{
    connection_t *connection = at;
    bson_t document = as_document(element);
    return update(
        connection->heads,
        BCON_NEW("_id", BCON_UTF8(owner), "activities.at", "{", "$ne", BCON_DATE_TIME(id), "}"),
        BCON_NEW("$push", "{", "activities", BCON_DOCUMENT(&document), "}"), false);
}

static int push_page(void *at, const char *owner, int64_t skip, int limit)
{
    connection_t *connection = at;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(owner));
    bson_t *options = BCON_NEW("projection", "{", "activities", "{", "$slice", "[",
                               BCON_INT64(-skip - limit), BCON_INT32(limit), "]", "}", "}");
    int count = visit_arrays(
        mongoc_collection_find_with_opts(connection->heads, filter, options, NULL), NULL, NULL);
    bson_destroy(options);
    bson_destroy(filter);
    return count;
}

static void push_all(void *at, const char *owner, peer_visit_fn visit, void *context)
{
    visit_head(at, owner, visit, context);
}

/* ---- the outlier pattern, as published ------------------------------------------------------- */

static void push_to_page(connection_t *connection, const char *owner, int64_t page,
                         const bson_t *document)
{
    update(connection->pages, BCON_NEW("userId", BCON_UTF8(owner), "page", BCON_INT64(page)),
           BCON_NEW("$push", "{", "activities", BCON_DOCUMENT(document), "}", "$inc", "{", "count",
                    BCON_INT32(1), "}"),
           true);
    update(connection->heads, BCON_NEW("_id", BCON_UTF8(owner)),
           BCON_NEW("$set", "{", "hasOverflow", BCON_BOOL(true), "}", "$inc", "{", "activityCount",
                    BCON_INT32(1), "}", "$max", "{", "overflowPages", BCON_INT64(page + 1), "}"),
           false);
}

static void safe_fill(void *at, const char *owner, int count)
{
    connection_t *connection = at;
    int capacity = connection->server->capacity, head = count < capacity ? count : capacity;
    int pages = (count - head + capacity - 1) / capacity;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "_id", owner);
    BSON_APPEND_INT32(&document, "activityCount", count);
    BSON_APPEND_BOOL(&document, "hasOverflow", pages > 0);
    BSON_APPEND_INT32(&document, "overflowPages", pages);
    append_elements(&document, 0, head);
    insert(connection->heads, &document);
    for (int i = 0; i < pages; i++) {
        int from = head + i * capacity, to = from + capacity < count ? from + capacity : count;
        bson_t page = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&page, "userId", owner);
        BSON_APPEND_INT64(&page, "page", i);
        BSON_APPEND_INT32(&page, "count", to - from);
        append_elements(&page, from, to);
        insert(connection->pages, &page);
    }
}

static bson_t *push_and_count(const bson_t *document)
{
    return BCON_NEW("$push", "{", "activities", BCON_DOCUMENT(document), "}", "$inc", "{",
                    "activityCount", BCON_INT32(1), "}");
}

/* Read the count, then decide by it. */
static int64_t racy_append(void *at, const char *owner, const uint8_t *element, const peer_op_t *op)
{
    connection_t *connection = at;
    bson_t document = as_document(element);
    int64_t count = read_count(connection, owner), capacity = connection->server->capacity;
    (void)op;
    if (count < capacity)
        update(connection->heads, BCON_NEW("_id", BCON_UTF8(owner)), push_and_count(&document),
               true);
    else
        push_to_page(connection, owner, count / capacity, &document);
    return 0;
}

/* The count guards the head. The page's number is computed from a count that is read afterwards. */
static int64_t safe_append(void *at, const char *owner, const uint8_t *element, const peer_op_t *op)
{
    connection_t *connection = at;
    bson_t document = as_document(element);
    int64_t capacity = connection->server->capacity;
    (void)op;
    bson_t *filter =
        BCON_NEW("_id", BCON_UTF8(owner), "activityCount", "{", "$lt", BCON_INT64(capacity), "}");
    if (update(connection->heads, filter, push_and_count(&document), false))
        return 0;
    push_to_page(connection, owner, (read_count(connection, owner) - capacity) / capacity,
                 &document);
    return 0;
}

/* The pattern's getActivities: read the head and, if that is not enough, all pages; then sort. */
static int safe_page(void *at, const char *owner, int64_t skip, int limit)
{
    connection_t *connection = at;
    int count = visit_head(connection, owner, NULL, NULL);
    if (skip + limit > count)
        count += visit_pages(connection, owner, NULL, NULL);
    return count > skip + limit ? limit : (int)(count - skip);
}

/* Compare the numbers of elements in the documents with their stored counts. */
static void safe_faults(void *at, const char *owner, char *text, size_t size)
{
    connection_t *connection = at;
    bson_t *filter = BCON_NEW("userId", BCON_UTF8(owner));
    bson_t *options = BCON_NEW("sort", "{", "page", BCON_INT32(1), "}");
    const bson_t *document;
    int64_t last = -1, overfull = 0, twice = 0,
            elements = visit_head(connection, owner, NULL, NULL);
    int64_t capacity = connection->server->capacity, head = elements;
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(connection->pages, filter, options, NULL);
    while (mongoc_cursor_next(cursor, &document)) {
        bson_iter_t page, count;
        if (!bson_iter_init_find(&page, document, "page") ||
            !bson_iter_init_find(&count, document, "count"))
            measure_stop("a page without its number or its count");
        elements += bson_iter_as_int64(&count);
        overfull += bson_iter_as_int64(&count) > capacity;
        twice += bson_iter_as_int64(&page) == last;
        last = bson_iter_as_int64(&page);
    }
    mongoc_cursor_destroy(cursor);
    bson_destroy(options);
    bson_destroy(filter);
    snprintf(text, size,
             "head of %lld, %lld pages over %lld, %lld page numbers twice, count off by %lld",
             (long long)head, (long long)overfull, (long long)capacity, (long long)twice,
             (long long)(read_count(connection, owner) - elements));
}

static void safe_all(void *at, const char *owner, peer_visit_fn visit, void *context)
{
    visit_head(at, owner, visit, context);
    visit_pages(at, owner, visit, context);
}

/* The pattern assumes that the user's document exists. */
static void begin(void *at, const char *owner)
{
    connection_t *connection = at;
    update(
        connection->heads, BCON_NEW("_id", BCON_UTF8(owner)),
        BCON_NEW("$setOnInsert", "{", "activities", "[", "]", "activityCount", BCON_INT32(0), "}"),
        true);
}

/* ---- a document an element ------------------------------------------------------------------- */

static int64_t referenced_append(void *at, const char *owner, const uint8_t *element,
                                 const peer_op_t *op)
{
    connection_t *connection = at;
    bson_t element_document = as_document(element), document = BSON_INITIALIZER;
    bson_error_t error;
    bson_oid_t id;
    (void)op;
    bson_oid_init(&id, NULL);
    BSON_APPEND_OID(&document, "_id", &id);
    BSON_APPEND_UTF8(&document, "userId", owner);
    BSON_APPEND_DOCUMENT(&document, "activity", &element_document);
    check(mongoc_collection_insert_one(connection->pages, &document, NULL, NULL, &error), &error);
    bson_destroy(&document);
    return 0;
}

static void referenced_fill(void *at, const char *owner, int count)
{
    connection_t *connection = at;
    bson_error_t error;
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(connection->pages, NULL);
    for (int i = 0; i < count; i++) {
        uint8_t bytes[ELEMENT_BYTES];
        bson_t document = BSON_INITIALIZER;
        bson_oid_t id;
        measure_element(bytes, (uint64_t)i);
        bson_t element = as_document(bytes);
        bson_oid_init(&id, NULL);
        BSON_APPEND_OID(&document, "_id", &id);
        BSON_APPEND_UTF8(&document, "userId", owner);
        BSON_APPEND_DOCUMENT(&document, "activity", &element);
        mongoc_bulk_operation_insert(bulk, &document);
        bson_destroy(&document);
    }
    check(mongoc_bulk_operation_execute(bulk, NULL, &error) != 0, &error);
    mongoc_bulk_operation_destroy(bulk);
}

static int referenced_read(connection_t *connection, const char *owner, const bson_t *options,
                           peer_visit_fn visit, void *context)
{
    bson_t *filter = BCON_NEW("userId", BCON_UTF8(owner));
    const bson_t *document;
    bson_error_t error;
    bson_iter_t iter;
    int count = 0;
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(connection->pages, filter, options, NULL);
    for (; mongoc_cursor_next(cursor, &document); count++) {
        const uint8_t *data;
        uint32_t size;
        if (!visit || !bson_iter_init_find(&iter, document, "activity"))
            continue;
        bson_iter_document(&iter, &size, &data);
        visit(context, data, size);
    }
    check(!mongoc_cursor_error(cursor, &error), &error);
    mongoc_cursor_destroy(cursor);
    bson_destroy(filter);
    return count;
}

/*
 * Without the hint, the test server searches for the owner along the index of _id if there are many
 * owners: two seconds a page.
 */
static int referenced_page(void *at, const char *owner, int64_t skip, int limit)
{
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(-1), "}", "skip", BCON_INT64(skip),
                               "limit", BCON_INT64(limit), "hint", BCON_UTF8("userId_1__id_1"));
    int count = referenced_read(at, owner, options, NULL, NULL);
    bson_destroy(options);
    return count;
}

static void referenced_all(void *at, const char *owner, peer_visit_fn visit, void *context)
{
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}");
    referenced_read(at, owner, options, visit, context);
    bson_destroy(options);
}

/* ---- a bucket by hand ------------------------------------------------------------------------ */

/* Push to {userId, count < capacity}, or upsert a new bucket, as in MongoDB's pattern. */
static int64_t bucket_append(void *at, const char *owner, const uint8_t *element,
                             const peer_op_t *op)
{
    connection_t *connection = at;
    bson_t document = as_document(element);
    bson_oid_t id;
    (void)op;
    bson_oid_init(&id, NULL);
    update(connection->pages,
           BCON_NEW("userId", BCON_UTF8(owner), "count", "{", "$lt",
                    BCON_INT32(connection->server->capacity), "}"),
           BCON_NEW("$push", "{", "activities", BCON_DOCUMENT(&document), "}", "$inc", "{", "count",
                    BCON_INT32(1), "}", "$setOnInsert", "{", "page", BCON_OID(&id), "}"),
           true);
    return 0;
}

static void bucket_fill(void *at, const char *owner, int count)
{
    connection_t *connection = at;
    int capacity = connection->server->capacity;
    for (int from = 0; from < count; from += capacity) {
        int to = from + capacity < count ? from + capacity : count;
        bson_t document = BSON_INITIALIZER;
        bson_oid_t id;
        bson_oid_init(&id, NULL);
        BSON_APPEND_UTF8(&document, "userId", owner);
        BSON_APPEND_OID(&document, "page", &id);
        BSON_APPEND_INT32(&document, "count", to - from);
        append_elements(&document, from, to);
        insert(connection->pages, &document);
    }
}

/* Read buckets from the newest until there are enough elements: their counts are not known before.
 */
static int bucket_page(void *at, const char *owner, int64_t skip, int limit)
{
    connection_t *connection = at;
    int64_t documents = (skip + limit) / connection->server->capacity + 2;
    bson_t *filter = BCON_NEW("userId", BCON_UTF8(owner));
    bson_t *options =
        BCON_NEW("sort", "{", "page", BCON_INT32(-1), "}", "limit", BCON_INT64(documents));
    int64_t count = visit_arrays(
        mongoc_collection_find_with_opts(connection->pages, filter, options, NULL), NULL, NULL);
    bson_destroy(options);
    bson_destroy(filter);
    return count > skip + limit ? limit : (int)(count - skip);
}

static void bucket_all(void *at, const char *owner, peer_visit_fn visit, void *context)
{
    visit_pages(at, owner, visit, context);
}

#define SERVER                                                                                     \
    .home = PEER_MONGODB, .close = close_server, .leave = leave, .bytes = peer_mongodb_bytes

const peer_t peer_push = {.name = "$push, unbounded",
                          .id = "push",
                          SERVER,
                          .open = open_unmanaged,
                          .join = join,
                          .begin = begin,
                          .fill = push_fill,
                          .append = push_append,
                          .add = push_add,
                          .page = push_page,
                          .all = push_all};
const peer_t peer_racy = {.name = "sources, racy",
                          .id = "racy",
                          SERVER,
                          .racy = true,
                          .open = open_paged,
                          .join = join,
                          .begin = begin,
                          .fill = safe_fill,
                          .append = racy_append,
                          .page = safe_page,
                          .faults = safe_faults,
                          .all = safe_all};
const peer_t peer_safe = {.name = "sources, \"safe\"",
                          .id = "safe",
                          SERVER,
                          .open = open_paged,
                          .join = join,
                          .begin = begin,
                          .fill = safe_fill,
                          .append = safe_append,
                          .page = safe_page,
                          .faults = safe_faults,
                          .all = safe_all};
const peer_t peer_referenced = {.name = "a document each",
                                .id = "apart",
                                SERVER,
                                .open = open_referenced,
                                .join = join,
                                .fill = referenced_fill,
                                .append = referenced_append,
                                .page = referenced_page,
                                .all = referenced_all};
const peer_t peer_bucket = {.name = "bucket by hand",
                            .id = "bucket",
                            SERVER,
                            .open = open_paged,
                            .join = join,
                            .fill = bucket_fill,
                            .append = bucket_append,
                            .page = bucket_page,
                            .all = bucket_all};
