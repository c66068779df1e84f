/*
 * What the gateway has seen of late: the owners with the most commands, and refusals by reason. For
 * the status page, metrics and the log. Any thread.
 *
 * It has no data of users: an owner is a hash under a key of the process, unless the operator asks
 * for its _id. Reasons are names of commands and operators.
 */
#ifndef SPILL_GATEWAY_ACTIVITY_H
#define SPILL_GATEWAY_ACTIVITY_H

#include "bson/value.h"

#include <spillway/definition.h>

#define SPILL_ACTIVITY_OWNERS 64   /* that are counted at a time */
#define SPILL_ACTIVITY_REFUSALS 64 /* reasons; further ones count as the last */
#define SPILL_ACTIVITY_OWNER_BYTES 96

typedef struct spill_activity spill_activity_t;

/* `shows_owners`: keep the _ids, too. */
spill_activity_t *spill_activity_new(bool shows_owners);
void spill_activity_free(spill_activity_t *activity); /* NULL is allowed */
bool spill_activity_shows_owners(const spill_activity_t *activity);

/*
 * Count a command that the library carried out on an owner's managed array. `activity` may be NULL.
 * If the table is full, a new owner takes the place of the one with the fewest commands, and begins
 * with its count. So no hot owner is missed, and a count is too high by at most the table's lowest.
 * Counts are halved every 5 minutes.
 */
void spill_activity_owner(spill_activity_t *activity, const char *collection,
                          const spill_value_t *owner);

/* Count an array that became a managed one. `activity` may be NULL. */
void spill_activity_adopted(spill_activity_t *activity);
int64_t spill_activity_adoptions(spill_activity_t *activity);

/*
 * Count a refusal, and log the first ones of each reason and then each hundredth. `operation` (may
 * be NULL) is shown if it is an operator, a command or a phrase of the gateway. `activity` may be
 * NULL.
 */
void spill_activity_refused(spill_activity_t *activity, const char *command, const char *collection,
                            int code, const char *operation);

/* Commands and statements that failed, other than by a refusal. What the operator does differs. */
typedef enum spill_activity_error {
    SPILL_ACTIVITY_UNAVAILABLE, /* the server was away, or its answer is not known */
    SPILL_ACTIVITY_DENIED,      /* the client, or the gateway's own user, lacks a right */
    SPILL_ACTIVITY_INVALID,     /* the server finds the statement wrong */
    SPILL_ACTIVITY_TOO_LARGE,
    SPILL_ACTIVITY_TIME,     /* maxTimeMS */
    SPILL_ACTIVITY_CONFLICT, /* other clients, a unique index, or a repetition */
    SPILL_ACTIVITY_OVERLOAD,
    SPILL_ACTIVITY_OTHER,
    SPILL_ACTIVITY_ERRORS
} spill_activity_error_t;

const char *spill_activity_error_name(spill_activity_error_t class);
spill_activity_error_t spill_activity_error_of(int code);

/* Count an error by its code, and log the first ones of each class. `activity` may be NULL. */
void spill_activity_failed(spill_activity_t *activity, const char *command, int code);
int64_t spill_activity_errors(spill_activity_t *activity, spill_activity_error_t class);

typedef struct spill_activity_owner_row {
    uint64_t key; /* of collection and owner */
    int64_t commands;
    char collection[SPILL_NAME_SIZE];
    char owner[SPILL_ACTIVITY_OWNER_BYTES]; /* its _id as JSON, or a hash */
} spill_activity_owner_row_t;

typedef struct spill_activity_refusal_row {
    int code;
    char command[24];
    char operation[40];
    int64_t count;
} spill_activity_refusal_row_t;

/* Copy the rows, most first. They return the number of rows. */
size_t spill_activity_owners(spill_activity_t *activity,
                             spill_activity_owner_row_t rows[SPILL_ACTIVITY_OWNERS]);
size_t spill_activity_refusals(spill_activity_t *activity,
                               spill_activity_refusal_row_t rows[SPILL_ACTIVITY_REFUSALS]);

#endif
