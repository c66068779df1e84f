/* Shared by the benchmarks of servers: a run's own database on a server, filled with libmongoc. */
#ifndef BENCH_ON_SERVER_H
#define BENCH_ON_SERVER_H

#include <mongoc/mongoc.h>

#include <stddef.h>

typedef struct on_server {
    char *uri; /* with the database */
    char *database;
    mongoc_client_t *client;
} on_server_t;

/* `server` is a connection string that may end in a slash. */
void on_server_open(on_server_t *on, const char *server);
/* Drop the database, with all collections. */
void on_server_empty(const on_server_t *on);
/* The same; then disconnect. */
void on_server_close(on_server_t *on);

/* Seconds that one unordered insertMany takes. */
double on_server_insert(const on_server_t *on, const char *collection, bson_t *const *documents,
                        size_t count);
void on_server_drop(const on_server_t *on, const char *collection);

#endif
