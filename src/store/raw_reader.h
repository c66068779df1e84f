/*
 * A server's database as it is: its collections and their documents, whoever made them. For tools
 * that look at data which no definition is of. Reads only.
 *
 * Threads: a browser and its cursor are one thread's at a time.
 */
#ifndef SPILL_STORE_RAW_READER_H
#define SPILL_STORE_RAW_READER_H

#include <spillway/store.h>

typedef struct spill_raw_reader spill_raw_reader_t;

/* Is this the URI of a server that can be browsed? */
bool spill_raw_reader_serves(const char *uri);

/*
 * Open a database by its URI, which names it. `preference` is "primary", "primaryPreferred",
 * "secondary", "secondaryPreferred" or "nearest", or NULL: the URI's. SPILL_INVALID, and what
 * opening a store fails with. Close in every case.
 */
spill_code_t spill_raw_reader_open(const char *uri, const char *preference,
                                   spill_raw_reader_t **reader, spill_error_t *error);
void spill_raw_reader_close(spill_raw_reader_t *reader); /* NULL is allowed */

/* "localhost:27017/shop": without user or password. Borrowed. */
const char *spill_raw_reader_place(const spill_raw_reader_t *reader);
const char *spill_raw_reader_database(const spill_raw_reader_t *reader);

/*
 * The names of its collections, sorted, without views and the server's own. Free with
 * bson_strfreev. One command.
 */
spill_code_t spill_raw_reader_collections(spill_raw_reader_t *reader, char ***names,
                                          spill_error_t *error);

/* How many documents the server believes a collection has; -1: it does not say. One command. */
int64_t spill_raw_reader_count(spill_raw_reader_t *reader, const char *collection);

/* Called for an index as the server describes it, {"key", "name", ...}; bytes -1: not known. */
typedef void (*spill_raw_reader_index_fn)(void *context, const bson_t *description, int64_t bytes);

/*
 * The indexes of a collection. What the server does not tell (it needs no more than the right to
 * read) is left out. Two commands.
 */
void spill_raw_reader_indexes(spill_raw_reader_t *reader, const char *collection,
                              spill_raw_reader_index_fn index, void *context);

/*
 * Begin to read a collection, in no order, in the place of what was read before: all of it, or with
 * `sample` > 0 so many documents of the server's choice ($sample).
 */
void spill_raw_reader_begin(spill_raw_reader_t *reader, const char *collection, int64_t sample);

/*
 * The next document, borrowed until the next call; *data is NULL at the end. An error ends the
 * collection.
 */
spill_code_t spill_raw_reader_next(spill_raw_reader_t *reader, const uint8_t **data,
                                   uint32_t *size_bytes, spill_error_t *error);

#endif
