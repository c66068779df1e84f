/* A worker's operations: one at a time, each logged to the worker's history before and after. */
#ifndef TESTS_MONGO_OPERATIONS_H
#define TESTS_MONGO_OPERATIONS_H

#include "history.h"
#include "simulation/random.h"

#include <spillway/spillway.h>

/* The bounds of every array: elements in a head, elements in a page, operation ids. */
enum { OPERATIONS_THRESHOLD = 5, OPERATIONS_PAGE_CAPACITY = 3, OPERATIONS_WINDOW = 60 };

/* The state of one worker thread. */
typedef struct worker {
    int number;
    sim_random_t random;
    history_t history;
} worker_t;

/* An owner of one of the arrays. */
typedef struct place {
    spill_array_t *array;
    char name[HISTORY_OWNER_SIZE]; /* "array/owner" */
    bson_t storage;
    spill_value_t owner;
} place_t;

/* `owner` is copied. Release it. */
void place_init(place_t *place, spill_array_t *array, const char *owner);
void place_release(place_t *place);

/* Whether the worker may retry a call after this error. */
bool operation_may_repeat(spill_code_t code, const spill_error_t *error);

/* End the process: `what` failed with an error that this test does not allow. */
void operation_failed(const char *what, spill_code_t code, const spill_error_t *error);

/* Append with an id, and retry. If the outcome is unknown, the worker may stop retrying. */
void operation_append(worker_t *worker, const place_t *place);

/* Retry an append that has no outcome in the history. */
void operation_append_again(worker_t *worker, const place_t *place, const history_append_t *append);

void operation_count(worker_t *worker, const place_t *place);

/* Read the newest elements and perhaps the elements before them, or elements upwards from a place.
 */
void operation_read(worker_t *worker, const place_t *place);

/* Remove an element, replace it by itself, or (rarely) trim all elements below it. */
void operation_change(worker_t *worker, const place_t *place);

#endif
