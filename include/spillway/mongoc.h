/**
 * \file
 * A store on a pool of libmongoc that the program has. The only header that includes the driver's.
 */
#ifndef SPILLWAY_MONGOC_H
#define SPILLWAY_MONGOC_H

#include <spillway/store.h>

#include <mongoc/mongoc.h>

/**
 * \defgroup spillway_mongoc Stores on a program's own pool
 * A program that uses libmongoc already lets Spillway use its pool: one set of connections, one
 * monitor, one place for TLS and credentials.
 *
 *     mongoc_client_pool_t *pool = mongoc_client_pool_new(uri);
 *     mongoc_client_pool_set_error_api(pool, MONGOC_ERROR_API_VERSION_2);
 *     spill_store_t *store;
 *     spill_code_t code = spill_store_open_pool(pool, "app", NULL, &store, &error);
 *     // ... both use the pool
 *     spill_store_close(store, NULL);
 *     mongoc_client_pool_destroy(pool);
 *
 * The pool stays the program's: Spillway changes no setting of it, and never destroys it. The
 * program destroys it after spill_store_close(). It is linked with the shared library
 * libmongoc-1.0.so.0, as Spillway uses that file, too.
 *
 * Settings of the pool:
 *
 * - error API: must be version 2, set before the pool's first client; else SPILL_INVALID
 * - waitQueueTimeoutMS: must not be set; else SPILL_INVALID
 * - maxPoolSize: a running call holds one client. A thread that holds a client during a call of
 *   Spillway needs one more.
 * - write concern: a `w` of the connection string applies; without one, Spillway's commands use
 *   majority. w=0 is SPILL_INVALID.
 * - read concern: the connection string has precedence; without one, Spillway's commands use
 *   majority
 * - read preference: applies to reads that may be old, as with a URI
 * - retryWrites, retryReads: apply
 * - serverSelectionTimeoutMS, socketTimeoutMS: apply. Spillway's own pools have 10 s and 300 s,
 *   the driver's defaults are 30 s and 300 s.
 * - APM callbacks: stay the program's, and see Spillway's commands. So
 *   spill_store_options_t::count_bytes is SPILL_INVALID, and an answer for another namespace is
 *   not detected.
 * - application name, compressors, TLS, credentials: apply
 * - server API: with `strict`, a server refuses commands that Spillway needs
 * - automatic encryption: applies; encrypted fields must not be fields of an array
 * \{
 */

SPILL_BEGIN_DECLS

/**
 * Open a store on a pool of libmongoc. The pool stays the program's.
 *
 * \param pool      the pool, which must outlive the store
 * \param database  the name of the database; NULL: the one that the pool's connection string names
 * \param options   initialized by spill_store_options_init(); NULL: the defaults
 * \param store     becomes the store, which the caller closes with spill_store_close(); NULL after
 *                  an error
 * \param error     filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `database`, `options` and `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID (a setting of the pool; there is no database; wrong options), SPILL_FORMAT
 *         (a server older than MongoDB 4.4.2), SPILL_NOT_FOUND (with must_exist: the database has
 *         no definitions), SPILL_DENIED, SPILL_IO (the server cannot be reached)
 * \cost loads libmongoc once for the process; two commands. Deadlines do not apply: the pool's
 *       serverSelectionTimeoutMS does.
 * \threads any number at once
 */
SPILL_API spill_code_t spill_store_open_pool(mongoc_client_pool_t *pool, const char *database,
                                             const spill_store_options_t *options,
                                             spill_store_t **store, spill_error_t *error);

SPILL_END_DECLS

/** \} */

#endif
