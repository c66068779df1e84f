/*
 * Every operation of the library on arrays of every layout, while one call of the store below it
 * fails: call 0, then call 1, and so on until the operation ends before the call comes.
 *
 * After each failure the test checks that:
 *   - the operation returned the failure's code with a message, or made up for the failure itself;
 *   - the same operation, called again, gives the result of a run without a failure;
 *   - the array then holds what it holds after a run without a failure, each element once;
 *   - the verifier finds nothing.
 */
#ifndef TESTS_SUPPORT_INTERRUPTED_H
#define TESTS_SUPPORT_INTERRUPTED_H

#include <spillway/spillway.h>

/* A store in which a test makes calls fail. */
typedef struct interrupted {
    void *context;
    spill_store_t *store;

    /* The names of the ways in which a call can fail, ended by NULL. */
    const char *const *ways;

    int way_of_writes; /* the way in which only writes fail; -1: none */

    /* From now on, call `at` (from 0) fails in way number `way`. */
    void (*arm)(void *context, int way, int64_t at);

    /* Let every call pass. True: the call to fail has come. */
    bool (*disarm)(void *context);

    /*
     * `keep` remembers what the store holds. `renew` closes the store and returns one that holds
     * what was kept. Both NULL: the test makes a new owner for each run instead.
     */
    void (*keep)(void *context);
    spill_store_t *(*renew)(void *context);

    /* Calls are slow: fail each call in one of the ways, by turns, on fewer arrays. */
    bool slow;
} interrupted_t;

/* How many runs had a failure; the caller asserts that they were many. */
int64_t interrupted_play(interrupted_t *interrupted);

/* ---- for interrupted*.c only ----------------------------------------------------------------- */

enum { INTERRUPTED_TEXT_MAX = 64 };

/* Elements that every owner has before an operation, and numbers that lie where they say. */
enum { IN_PAGE = 4, IN_PAGE_TOO = 6, NEWEST = 11, NEXT = 12, MISSING = 900, BATCH_MAX = 8 };

typedef enum shape_set {
    ON_NEWEST = 1,
    ON_OLDEST = 2,
    ON_RETAINED = 4,
    ON_REFERENCE = 8,
    ON_SUBSET = 16,
    ON_CAPPED = 32,
    ON_TOP_N = 64,
    ON_BUCKET = 128,
    ON_OUTLIER = ON_NEWEST | ON_OLDEST | ON_RETAINED,
    ON_REFERENCED = ON_REFERENCE | ON_SUBSET,
    ON_PAGED = ON_OUTLIER | ON_REFERENCED,
    ON_OWNERS = ON_PAGED | ON_CAPPED | ON_TOP_N, /* an owner is an array */
    ON_ALL = ON_OWNERS | ON_BUCKET
} shape_set_t;

/* The array of one run. */
typedef struct stage {
    interrupted_t *interrupted;
    spill_store_t *store;
    spill_definition_t definition;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    int64_t base;               /* for an operation id */
    spill_bucket_base_t *bases; /* layout bucket: the same for each window */
    size_t base_count;
    bool drops; /* the definition is this run's alone */
} stage_t;

/* What an operation read, as text, goes to `out`. */
typedef spill_code_t (*stage_fn)(stage_t *stage, bson_string_t *out, spill_error_t *error);

typedef struct operation {
    const char *name;
    unsigned shapes;
    stage_fn half; /* a client died half way through this; NULL: no client died */
    stage_fn run;
    bool deleted; /* may find, when called again, that the first call did the work: NOT_FOUND */
    bool ends;    /* it ends the array, so that nothing is left to compare */
    bool reports; /* it may report a failed read as a finding, and return SPILL_OK */
    bool reads;   /* it changes nothing */
    bool whole;   /* it goes through all owners of the array */
} operation_t;

/* Each ends with one that has no name. */
extern const operation_t array_operations[];
extern const operation_t window_operations[];

/* The array's elements; the element with number `number` has n = number. Destroy it. */
bson_t *interrupted_element(int64_t number);
int64_t interrupted_time(int64_t number); /* in milliseconds since 1970 */

typedef struct batch {
    bson_t *documents[BATCH_MAX];
    spill_value_t values[BATCH_MAX];
    size_t count;
} batch_t;

/* The elements first, first + 1, ...; at most BATCH_MAX of them. */
void interrupted_make_batch(batch_t *batch, int64_t first, size_t count);
void interrupted_free_batch(batch_t *batch);

/* Borrows the number. */
spill_value_t interrupted_id(const int64_t *id);

/* Append a line: a number and a value as JSON. */
void interrupted_print(bson_string_t *out, int64_t seq, const spill_value_t *value);

#endif
