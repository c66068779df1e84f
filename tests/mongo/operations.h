/* What a worker does: one operation at a time, each told to its history before and after. */
#ifndef TESTS_MONGO_OPERATIONS_H
#define TESTS_MONGO_OPERATIONS_H

#include "history.h"
#include "simulation/random.h"

#include <spillway/spillway.h>

/* Of every array: elements in a head and in a page, and the window of operations. */
enum { OPERATIONS_THRESHOLD = 5, OPERATIONS_PAGE_CAPACITY = 3, OPERATIONS_WINDOW = 60 };

/* One thread that works. */
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

/* May a call be made again after this error? */
bool operation_may_repeat(spill_code_t code, const spill_error_t *error);

/* End the process: `what` failed in a way that it must not. */
void operation_failed(const char *what, spill_code_t code, const spill_error_t *error);

/* Append with an id until it is acknowledged; where that is unknown it may be given up. */
void operation_append(worker_t *worker, const place_t *place);

/* Repeat one that the history has no outcome of. */
void operation_append_again(worker_t *worker, const place_t *place, const history_append_t *append);

void operation_count(worker_t *worker, const place_t *place);

/* A page: the newest elements, and perhaps those before it; or from some place on, upwards. */
void operation_read(worker_t *worker, const place_t *place);

/* Remove an element, or put it in its own place again, or (seldom) trim what lies below it. */
void operation_change(worker_t *worker, const place_t *place);

#endif
