/* Stores on a MongoDB-compatible server for tests: each in a database of its own. */
#ifndef TESTS_SUPPORT_SERVER_H
#define TESTS_SUPPORT_SERVER_H

#include <spillway/store.h>

#include <mongoc/mongoc.h>

/*
 * The URI of the server that tests use: SPILLWAY_TEST_URI, which tools/test-server sets. Without it
 * the program ends with 77: its tests are passed over.
 */
const char *server_uri(void);

/* The server's URI with a database that no other test uses, and `options` ("a=b&c=d", or NULL). */
char *server_new_database(const char *options); /* free with bson_free */

/* Stops the program where something fails. */
spill_store_t *server_open(const char *uri);
void server_close(spill_store_t *store);

/*
 * As server_open. The collection of each definition that is saved through this store gets two
 * indexes, on the field `name` and on the array, because the collections of applications have
 * indexes, too.
 */
spill_store_t *server_open_indexed(const char *uri);

/* Drop the database that a URI names. */
void server_drop(const char *uri);

/* A client of the driver, with the URI's database in *database (may be NULL). */
mongoc_client_t *server_client(const char *uri, mongoc_database_t **database);

#endif
