#include "on_server.h"

#include "measure.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

void on_server_open(on_server_t *on, const char *server)
{
    mongoc_init();
    on->database = bson_strdup_printf("spillway_bench_%ld_%d", (long)time(NULL), (int)getpid());
    size_t length = strlen(server);
    while (length > 0 && server[length - 1] == '/')
        length--;
    on->uri = bson_strdup_printf("%.*s/%s", (int)length, server, on->database);
    on->client = mongoc_client_new(on->uri);
    if (!on->client)
        measure_stop("%s is no connection string", on->uri);
}

void on_server_empty(const on_server_t *on)
{
    mongoc_database_t *database = mongoc_client_get_database(on->client, on->database);
    mongoc_database_drop(database, NULL);
    mongoc_database_destroy(database);
}

void on_server_close(on_server_t *on)
{
    on_server_empty(on);
    mongoc_client_destroy(on->client);
    bson_free(on->uri);
    bson_free(on->database);
}

double on_server_insert(const on_server_t *on, const char *collection, bson_t *const *documents,
                        size_t count)
{
    enum { BATCH = 25000 }; /* the most that FerretDB accepts, although it reports more */
    mongoc_collection_t *to = mongoc_client_get_collection(on->client, on->database, collection);
    bson_t *opts = BCON_NEW("ordered", BCON_BOOL(false));
    bson_error_t error;
    double began = measure_now();
    for (size_t at = 0; at < count; at += BATCH) {
        size_t some = count - at < BATCH ? count - at : BATCH;
        if (!mongoc_collection_insert_many(to, (const bson_t **)documents + at, some, opts, NULL,
                                           &error))
            measure_stop("%s", error.message);
    }
    double seconds = measure_now() - began;
    bson_destroy(opts);
    mongoc_collection_destroy(to);
    return seconds;
}

void on_server_drop(const on_server_t *on, const char *collection)
{
    mongoc_collection_t *from = mongoc_client_get_collection(on->client, on->database, collection);
    mongoc_collection_drop(from, NULL);
    mongoc_collection_destroy(from);
}
