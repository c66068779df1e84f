/* Real activity streams: the expected result of importing one, and checks of a store against it. */
#ifndef TESTS_CLI_REAL_DATA_H
#define TESTS_CLI_REAL_DATA_H

#include <spillway/spillway.h>

#define REAL_DATA_SKIPPED 77
#define REAL_DATA_TABLE_SIZE (1 << 14) /* more than twice the owners of any field */

/* An owner and its lines, in order. */
typedef struct feed {
    const char *owner;
    size_t *lines;
    size_t count;
    size_t capacity;
    size_t seen; /* the number of elements read back */
} feed_t;

typedef struct real_data {
    bson_t **documents;
    size_t count;
    size_t capacity;
    feed_t feeds[REAL_DATA_TABLE_SIZE]; /* a hash table: entries without an owner are free */
    size_t feed_count;
} real_data_t;

/* End the program: a test failed. */
_Noreturn void real_data_stop(const char *what, const char *detail);
void real_data_check(spill_code_t code, const spill_error_t *error);

/*
 * The path of openstack_updates/events.ndjson.gz in SPILLWAY_DATA (free with bson_free). If the
 * file does not exist, the program ends with 77.
 */
char *real_data_path(void);

/* The lines of an NDJSON file, plain or .gz, grouped by the value of `field`. */
real_data_t *real_data_read(const char *path, const char *field);
void real_data_free(real_data_t *data);

/* The owner with the most lines. */
const feed_t *real_data_largest(const real_data_t *data);

/* Copy the first lines of the file to a new file. Returns its path; free with bson_free. */
char *real_data_cut(const char *path, int lines);

/* Copy the feed's lines of the file to a new file. Returns its path; free with bson_free. */
char *real_data_cut_feed(const char *path, const feed_t *feed);

/* Which end the head keeps, and the bounds. */
typedef struct shape {
    spill_keep_t keep;
    int64_t threshold;
    int64_t page;
} shape_t;

/*
 * Define an array of that shape in `store`, import the file into it, read every element back from
 * the oldest, read again from the newest, and verify. If pages are small and SPILLWAY_LONG is not
 * set, the second read is only of each owner's newest elements. Prints how long that took.
 */
void real_data_try(real_data_t *data, spill_store_t *store, const char *path, const char *field,
                   shape_t shape);

#endif
