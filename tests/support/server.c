#include "support/server.h"

#include "store/store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77 };

const char *server_uri(void)
{
    const char *uri = getenv("SPILLWAY_TEST_URI");
    if (!uri || uri[0] == '\0') {
        fprintf(stderr, "SPILLWAY_TEST_URI is not set: run this under tools/test-server\n");
        exit(SKIPPED);
    }
    return uri;
}

char *server_new_database(const char *options)
{
    static atomic_int number;
    mongoc_init();
    bson_error_t error;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(server_uri(), &error);
    if (!uri) {
        fprintf(stderr, "SPILLWAY_TEST_URI: %s\n", error.message);
        exit(1);
    }
    char *name = bson_strdup_printf("spillway_%lx_%d_%d", (long)time(NULL), (int)getpid(),
                                    atomic_fetch_add(&number, 1));
    /* The driver renders a URI as it was given: with another database it is put together. */
    const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri);
    bson_string_t *text = bson_string_new("mongodb://");
    if (mongoc_uri_get_username(uri))
        bson_string_append_printf(text, "%s:%s@", mongoc_uri_get_username(uri),
                                  mongoc_uri_get_password(uri));
    for (const mongoc_host_list_t *at = host; at; at = at->next)
        bson_string_append_printf(text, "%s%s", at == host ? "" : ",", at->host_and_port);
    bson_string_append_printf(text, "/%s?", name);
    const char *replica_set = mongoc_uri_get_replica_set(uri);
    if (replica_set)
        bson_string_append_printf(text, "replicaSet=%s&", replica_set);
    if (mongoc_uri_get_username(uri))
        bson_string_append(text, "authSource=admin&");
    if (options)
        bson_string_append(text, options);
    bson_free(name);
    mongoc_uri_destroy(uri);
    return bson_string_free(text, false);
}

spill_store_t *server_open(const char *uri)
{
    spill_store_t *store;
    spill_error_t error;
    if (spill_store_open(uri, NULL, &store, &error) != SPILL_OK) {
        fprintf(stderr, "cannot open a store: %s\n", error.message);
        exit(1);
    }
    return store;
}

/* Give the definition's collection an index on `name`, and one on the array. */
static void make_indexes(const char *database_name, const bson_t *document)
{
    spill_definition_t definition;
    bson_error_t error;
    if (spill_definition_from_bson(&definition, document, NULL) != SPILL_OK)
        return; /* a test saves damaged definitions */
    mongoc_client_t *client = server_client(server_uri(), NULL);
    mongoc_database_t *database = mongoc_client_get_database(client, database_name);
    bson_t *command = BCON_NEW("createIndexes", BCON_UTF8(definition.collection), "indexes", "[",
                               "{", "key", "{", "name", BCON_INT32(1), "}", "name",
                               "of the application", "}", "{", "key", "{", definition.array,
                               BCON_INT32(1), "}", "name", BCON_UTF8(definition.array), "}", "]");
    if (!mongoc_database_write_command_with_opts(database, command, NULL, NULL, &error)) {
        fprintf(stderr, "cannot create an index: %s\n", error.message);
        exit(1);
    }
    bson_destroy(command);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}

static const spill_store_ops_t *server_ops;

static spill_code_t put_and_index(spill_store_t *store, spill_catalog_t kind, const char *name,
                                  const bson_t *expected, const bson_t *document, bool *done,
                                  spill_error_t *error)
{
    spill_code_t code = server_ops->catalog_put(store, kind, name, expected, document, done, error);
    if (code == SPILL_OK && *done && kind == SPILL_CATALOG_DEFINITION && expected == NULL)
        make_indexes(strrchr(store->uri, '/') + 1, document);
    return code;
}

spill_store_t *server_open_indexed(const char *uri)
{
    static spill_store_ops_t ops;
    spill_store_t *store = server_open(uri);
    if (server_ops == NULL) {
        server_ops = store->ops;
        ops = *server_ops;
        ops.catalog_put = put_and_index;
    }
    store->ops = &ops;
    return store;
}

void server_close(spill_store_t *store)
{
    spill_error_t error;
    if (spill_store_close(store, &error) != SPILL_OK) {
        fprintf(stderr, "cannot close a store: %s\n", error.message);
        exit(1);
    }
}

mongoc_client_t *server_client(const char *uri, mongoc_database_t **database)
{
    mongoc_init();
    mongoc_client_t *client = mongoc_client_new(uri);
    if (!client) {
        fprintf(stderr, "cannot use %s\n", uri);
        exit(1);
    }
    mongoc_client_set_error_api(client, MONGOC_ERROR_API_VERSION_2);
    if (database)
        *database = mongoc_client_get_default_database(client);
    return client;
}

void server_drop(const char *uri)
{
    mongoc_database_t *database;
    bson_error_t error;
    mongoc_client_t *client = server_client(uri, &database);
    if (!mongoc_database_drop(database, &error)) {
        fprintf(stderr, "cannot drop a database: %s\n", error.message);
        exit(1);
    }
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}
