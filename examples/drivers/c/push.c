/* Push an array past 16 MB with libmongoc. Usage: push URI [--pause] */
#include <mongoc/mongoc.h>
#include <openssl/evp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 44, PAYLOAD = 1000000 };

static void check(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "push: %s\n", what);
        exit(1);
    }
}

/* Append element `number` to `parent` under `key`, with `bytes` bytes of payload. */
static void append_element(bson_t *parent, const char *key, int number, size_t bytes)
{
    char *payload = bson_malloc(bytes + 1);
    memset(payload, 'a' + number % 26, bytes);
    payload[bytes] = '\0';
    bson_t element;
    BSON_APPEND_DOCUMENT_BEGIN(parent, key, &element);
    BSON_APPEND_INT32(&element, "n", number);
    bson_append_utf8(&element, "payload", -1, payload, (int)bytes);
    bson_append_document_end(parent, &element);
    bson_free(payload);
}

/* {$push: {events: <element>}}, with $set: {title} if it is not NULL. */
static bson_t *push_update(int number, const char *title)
{
    bson_t *update = bson_new();
    bson_t push;
    BSON_APPEND_DOCUMENT_BEGIN(update, "$push", &push);
    append_element(&push, "events", number, PAYLOAD);
    bson_append_document_end(update, &push);
    if (title != NULL)
        BCON_APPEND(update, "$set", "{", "title", BCON_UTF8(title), "}");
    return update;
}

static void push(mongoc_collection_t *feeds, int first, int end)
{
    bson_t *filter = BCON_NEW("_id", "long");
    bson_t *upsert = BCON_NEW("upsert", BCON_BOOL(true));
    for (int number = first; number < end; number++) {
        bson_error_t error;
        bson_t *update = push_update(number, NULL);
        if (!mongoc_collection_update_one(feeds, filter, update, upsert, NULL, &error)) {
            fprintf(stderr, "push: element %d: %s\n", number, error.message);
            exit(1);
        }
        bson_destroy(update);
    }
    bson_destroy(filter);
    bson_destroy(upsert);
}

/* Read a document; NULL if there is none. The caller destroys it. */
static bson_t *read_one(mongoc_collection_t *feeds, const char *id)
{
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(id));
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(feeds, filter, NULL, NULL);
    const bson_t *found = NULL;
    bson_error_t error;
    bson_t *copy = mongoc_cursor_next(cursor, &found) ? bson_copy(found) : NULL;
    if (mongoc_cursor_error(cursor, &error)) {
        fprintf(stderr, "push: reading %s: %s\n", id, error.message);
        exit(1);
    }
    mongoc_cursor_destroy(cursor);
    bson_destroy(filter);
    return copy;
}

/* Hash the array "events" of a document as "N:PAYLOAD" for each element; returns their number. */
static int digest(const bson_t *document, char hex[2 * EVP_MAX_MD_SIZE + 1])
{
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    EVP_DigestInit_ex(sha, EVP_sha256(), NULL);
    bson_iter_t events;
    bson_iter_t element;
    int count = 0;
    check(bson_iter_init_find(&events, document, "events") && bson_iter_recurse(&events, &element),
          "there is no array");
    for (; bson_iter_next(&element); count++) {
        bson_iter_t fields;
        char number[32];
        uint32_t bytes;
        check(bson_iter_recurse(&element, &fields) && bson_iter_find(&fields, "n"), "no n");
        int digits = snprintf(number, sizeof number, "%d:", bson_iter_int32(&fields));
        EVP_DigestUpdate(sha, number, (size_t)digits);
        check(bson_iter_recurse(&element, &fields) && bson_iter_find(&fields, "payload"),
              "no payload");
        const char *payload = bson_iter_utf8(&fields, &bytes);
        EVP_DigestUpdate(sha, payload, bytes);
    }
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned int bytes = 0;
    EVP_DigestFinal_ex(sha, hash, &bytes);
    EVP_MD_CTX_free(sha);
    for (unsigned int i = 0; i < bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    return count;
}

static void expect_digest(char hex[2 * EVP_MAX_MD_SIZE + 1])
{
    bson_t document = BSON_INITIALIZER;
    bson_t events;
    BSON_APPEND_ARRAY_BEGIN(&document, "events", &events);
    for (int number = 0; number < ELEMENTS; number++) {
        char key[16];
        snprintf(key, sizeof key, "%d", number);
        append_element(&events, key, number, PAYLOAD);
    }
    bson_append_array_end(&document, &events);
    digest(&document, hex);
    bson_destroy(&document);
}

static void bulk_write(mongoc_collection_t *feeds)
{
    bson_error_t error;
    bson_t *gone = BCON_NEW("_id", "gone");
    check(mongoc_collection_insert_one(feeds, gone, NULL, NULL, &error), error.message);

    bson_t *inserted = BCON_NEW("_id", "short", "events", "[", "]");
    bson_t *short_id = BCON_NEW("_id", "short");
    bson_t *long_id = BCON_NEW("_id", "long");
    bson_t *small = BCON_NEW("$push", "{", "events", "{", "$each", "[",                   //
                             "{", "n", BCON_INT32(0), "payload", BCON_UTF8(""), "}",      //
                             "{", "n", BCON_INT32(1), "payload", BCON_UTF8(""), "}",      //
                             "{", "n", BCON_INT32(2), "payload", BCON_UTF8(""), "}", "]", //
                             "}", "}");
    bson_t *last = push_update(ELEMENTS, "long");
    mongoc_bulk_operation_t *bulk = mongoc_collection_create_bulk_operation_with_opts(feeds, NULL);
    mongoc_bulk_operation_insert(bulk, inserted);
    mongoc_bulk_operation_update_one(bulk, short_id, small, false);
    mongoc_bulk_operation_update_one(bulk, long_id, last, false);
    mongoc_bulk_operation_remove_one(bulk, gone);
    bson_t reply;
    check(mongoc_bulk_operation_execute(bulk, &reply, &error) != 0, error.message);
    bson_iter_t iter;
    check(bson_iter_init_find(&iter, &reply, "nModified") && bson_iter_int32(&iter) == 2 &&
              bson_iter_init_find(&iter, &reply, "nInserted") && bson_iter_int32(&iter) == 1 &&
              bson_iter_init_find(&iter, &reply, "nRemoved") && bson_iter_int32(&iter) == 1,
          "the bulk write's counts differ");
    bson_destroy(&reply);
    mongoc_bulk_operation_destroy(bulk);
    bson_destroy(last);
    bson_destroy(small);
    bson_destroy(long_id);
    bson_destroy(short_id);
    bson_destroy(inserted);
    bson_destroy(gone);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: push URI [--pause]\n");
        return 2;
    }
    mongoc_init();
    mongoc_client_t *client = mongoc_client_new(argv[1]);
    check(client != NULL, "the URI is malformed");
    const char *database = mongoc_uri_get_database(mongoc_client_get_uri(client));
    check(database != NULL, "the URI names no database");
    mongoc_collection_t *feeds = mongoc_client_get_collection(client, database, "feeds");

    push(feeds, 0, ELEMENTS / 2);
    if (argc > 2 && strcmp(argv[2], "--pause") == 0) {
        puts("paused");
        fflush(stdout);
        getchar();
        bson_destroy(read_one(feeds, "none")); /* the driver repeats a read on a new connection */
    }
    push(feeds, ELEMENTS / 2, ELEMENTS);

    char expected[2 * EVP_MAX_MD_SIZE + 1];
    char seen[2 * EVP_MAX_MD_SIZE + 1];
    expect_digest(expected);
    bson_t *found = read_one(feeds, "long");
    check(found != NULL && digest(found, seen) == ELEMENTS && strcmp(seen, expected) == 0,
          "the elements read differ");
    bson_destroy(found);

    bulk_write(feeds);
    bson_t *small = read_one(feeds, "short");
    check(small != NULL && digest(small, seen) == 3, "the short array differs");
    bson_destroy(small);
    check(read_one(feeds, "gone") == NULL, "a deleted document is there");

    found = read_one(feeds, "long");
    bson_iter_t title;
    check(found != NULL && bson_iter_init_find(&title, found, "title") &&
              strcmp(bson_iter_utf8(&title, NULL), "long") == 0,
          "the title was not set");
    check(!bson_has_field(found, "spill"), "bookkeeping is visible");
    int count = digest(found, seen);
    printf("elements %d sha256 %s\n", count, seen);
    bson_destroy(found);
    mongoc_collection_destroy(feeds);
    mongoc_client_destroy(client);
    mongoc_cleanup();
    return 0;
}
