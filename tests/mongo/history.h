/*
 * One log for each worker of what it did: a line before each call and a line after it. Each line is
 * one write(2), so that a killed process has logged everything before the kill. The lines are
 *
 *     TIME WORKER NUMBER append OWNER COUNT BASE          before
 *     TIME WORKER NUMBER appended FIRST                   after: numbers FIRST, FIRST + 1, ...; -1:
 * the caller does not get them
 *     TIME WORKER NUMBER unknown                          after: the worker stopped retrying
 *     TIME WORKER NUMBER count OWNER
 *     TIME WORKER NUMBER counted COUNT
 *     TIME WORKER NUMBER read OWNER newest|oldest CURSOR LIMIT        CURSOR: -1 for none
 *     TIME WORKER NUMBER got FIRST MORE LABEL ...                     FIRST: the first element's
 * number
 *
 *     TIME WORKER NUMBER remove OWNER SEQ
 *     TIME WORKER NUMBER removed 1|0|-1       it existed, it did not, unknown
 *     TIME WORKER NUMBER trim OWNER BELOW
 *     TIME WORKER NUMBER trimmed
 *
 * and, for an array that keeps each id once, where ID is a number:
 *
 *     TIME WORKER NUMBER add OWNER ID
 *     TIME WORKER NUMBER added 1|0            it was new, it was a duplicate
 *     TIME WORKER NUMBER remove-id OWNER ID   answered by `removed`
 *     TIME WORKER NUMBER contains OWNER ID
 *     TIME WORKER NUMBER contained 1|0
 *
 * TIME is in nanoseconds of CLOCK_MONOTONIC, which processes share. NUMBER counts the worker's
 * operations. OWNER is "ARRAY/OWNER". LABEL is the element's value: it encodes the worker that
 * appended it, the operation, and the place in the batch. linearizable/ reads these files.
 */
#ifndef TESTS_MONGO_HISTORY_H
#define TESTS_MONGO_HISTORY_H

#include <spillway/spillway.h>

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_OWNER_SIZE = 48, HISTORY_BATCH_MAX = 9 };

/* An append and its outcome. */
typedef struct history_append {
    char owner[HISTORY_OWNER_SIZE];
    int64_t number;
    int64_t count;
    int64_t base;
    enum { HISTORY_OPEN, HISTORY_APPENDED, HISTORY_UNKNOWN } outcome;
    int64_t first; /* if the outcome is HISTORY_APPENDED */
} history_append_t;

/* A removal of one number or, with `below`, of all smaller numbers. */
typedef struct history_removal {
    char owner[HISTORY_OWNER_SIZE];
    int64_t seq;
    bool below;
    bool done; /* acknowledged; otherwise it may or may not have happened */
} history_removal_t;

/* The contents of a log. */
typedef struct history_book {
    history_append_t *appends; /* in order */
    size_t append_count;
    size_t append_capacity;
    history_removal_t *removals;
    size_t removal_count;
    size_t removal_capacity;
    int64_t number; /* of the last line */
} history_book_t;

/* A log open for writing. */
typedef struct history {
    int file;
    int worker;
    int64_t number; /* of the current operation, or of the last one */
} history_t;

int64_t history_now(void); /* nanoseconds of CLOCK_MONOTONIC */

/* The label of the i-th element of an append. */
int64_t history_label(int worker, int64_t number, int64_t i);

/*
 * Open the worker's log below `folder`, or create it, to append lines. Drop a last line that a kill
 * cut off. If the last append has no outcome, set *open to it and return true.
 */
bool history_open(history_t *history, const char *folder, int worker, history_append_t *open);
void history_close(history_t *history);

/* Log a call, before it is made. It gets the next number. `owner` is "ARRAY/OWNER". */
void history_append(history_t *history, const char *owner, int64_t count, int64_t base);
void history_count(history_t *history, const char *owner);
void history_read(history_t *history, const char *owner, const spill_read_options_t *options);

void history_remove(history_t *history, const char *owner, int64_t seq);
void history_trim(history_t *history, const char *owner, int64_t below);

/* Log the outcome of the call. `slice` has int64 elements. */
void history_appended(history_t *history, int64_t first);
void history_unknown(history_t *history);
void history_counted(history_t *history, int64_t count);
void history_got(history_t *history, const spill_slice_t *slice);

void history_removed(history_t *history, int existed);
void history_trimmed(history_t *history);

/* The same for one id of an array that keeps each id once. */
void history_add(history_t *history, const char *owner, int64_t id);
void history_remove_id(history_t *history, const char *owner, int64_t id);
void history_contains(history_t *history, const char *owner, int64_t id);
void history_added(history_t *history, bool added);
void history_contained(history_t *history, bool contained);

/* Read a worker's log. Release it. */
history_book_t history_book(const char *folder, int worker);
void history_book_release(history_book_t *book);

/*
 * Run the checker on all logs of `folder`. Return its exit code (linearizable/main.go): 0, the
 * histories are linearizable; 1, one is not. Then the folder has a page that shows it.
 */
int history_check(const char *folder);

/* The path of a worker's log; free with bson_free. */
char *history_path(const char *folder, int worker);

#endif
