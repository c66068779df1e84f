/*
 * Read a server's database without definitions: its collections and their documents. For tools that
 * examine data of any application. A reader never writes. Below it, the one array that the
 * benchmarks keep without Spillway.
 *
 * Threads: a reader and its cursor are used by one thread at a time.
 */
#ifndef SPILL_STORE_RAW_READER_H
#define SPILL_STORE_RAW_READER_H

#include <spillway/error.h>
#include <spillway/store.h>
#include <spillway/value.h>

#include <bson/bson.h>

typedef struct spill_raw_reader spill_raw_reader_t;

/* Is this the URI of a server that a raw reader can open? */
bool spill_raw_reader_serves(const char *uri);

/*
 * Open a database by its URI, which names it. `preference` is "primary", "primaryPreferred",
 * "secondary", "secondaryPreferred" or "nearest"; NULL: the URI's. Fails with SPILL_INVALID, and
 * with the errors of opening a store. Close the reader in every case.
 */
spill_code_t spill_raw_reader_open(const char *uri, const char *preference,
                                   spill_raw_reader_t **reader, spill_error_t *error);
void spill_raw_reader_close(spill_raw_reader_t *reader); /* NULL is allowed */

/*
 * Does a server that the URI's preference reads from answer a hello on a new connection? Waits at
 * most about timeout_ms, and longer for a slow DNS. Any thread. A URI that cannot be opened: true.
 */
bool spill_raw_reader_answers(const char *uri, int timeout_ms);

/* "localhost:27017/shop": without user or password. Borrowed. */
const char *spill_raw_reader_place(const spill_raw_reader_t *reader);
const char *spill_raw_reader_database(const spill_raw_reader_t *reader);

/*
 * List the names of its collections, sorted, without views and without the server's own
 * collections. Free them with bson_strfreev. One command.
 */
spill_code_t spill_raw_reader_collections(spill_raw_reader_t *reader, char ***names,
                                          spill_error_t *error);

/* The server's estimate of a collection's documents; -1: unknown. One command. */
int64_t spill_raw_reader_count(spill_raw_reader_t *reader, const char *collection);

/* Called for an index with the server's description, {"key", "name", ...}; bytes -1: unknown. */
typedef void (*spill_raw_reader_index_fn)(void *context, const bson_t *description, int64_t bytes);

/*
 * List the indexes of a collection. The right to read is enough; facts that the server withholds
 * are omitted. Two commands.
 */
void spill_raw_reader_indexes(spill_raw_reader_t *reader, const char *collection,
                              spill_raw_reader_index_fn index, void *context);

/*
 * Begin to read a collection, in no order, and end the read before it. With `sample` > 0 read only
 * that many documents, which the server chooses ($sample).
 */
void spill_raw_reader_begin(spill_raw_reader_t *reader, const char *collection, int64_t sample);

/* The same, in the order of _id, without the first `skip` documents. */
void spill_raw_reader_begin_by_id(spill_raw_reader_t *reader, const char *collection, int64_t skip);

/*
 * Return the next document, borrowed until the next call; *data is NULL at the end. After an error
 * there are no more documents.
 */
spill_code_t spill_raw_reader_next(spill_raw_reader_t *reader, const uint8_t **data,
                                   uint32_t *size_bytes, spill_error_t *error);

/* ---- collations ------------------------------------------------------------------------------ */

/*
 * A collection with a collation of its own cannot hold owners or pages. The server compares _ids by
 * the collation, so two owners may be equal. It also compares elements, so CUT may miss an edit.
 *
 * Return SPILL_REFUSED if `collection` has a collation other than "simple". `listing` is an array
 * of what the server lists for its collections.
 */
spill_code_t spill_collation_refuse(const bson_t *listing, const char *collection,
                                    spill_error_t *error);

/* ---- an unbounded array ---------------------------------------------------------------------- */

/*
 * An array without Spillway, for comparisons: an application keeps all of it in one document {_id,
 * <array>} of a server's collection and appends with $push. Only the server's limit bounds it. The
 * struct borrows. Threads: as store.h.
 */
typedef struct spill_unbounded {
    spill_store_t *store;
    const char *collection;
    const char *array; /* the field */
    const char *id;    /* the document's _id, a string */
} spill_unbounded_t;

/* Is the store a server? The functions below need one. */
bool spill_unbounded_serves(const spill_store_t *store);

/* Make the document with these elements (an array); replace an existing one. */
spill_code_t spill_unbounded_put(const spill_unbounded_t *unbounded, const bson_t *elements,
                                 spill_error_t *error);

/* $push, with upsert. One command. */
spill_code_t spill_unbounded_push(const spill_unbounded_t *unbounded, const spill_value_t *element,
                                  spill_error_t *error);

/* Read the last `limit` elements; *count is how many there were. One command, with $slice. */
spill_code_t spill_unbounded_newest(const spill_unbounded_t *unbounded, int64_t limit,
                                    int64_t *count, spill_error_t *error);

/* The number of elements and the bytes of the document, computed by the server. One command. */
spill_code_t spill_unbounded_measure(const spill_unbounded_t *unbounded, int64_t *elements,
                                     int64_t *size_bytes, spill_error_t *error);

#endif
