/*
 * The times of an array's elements, from the elements themselves: from a date; or else a text that
 * is a date or a date with a time (util/clock.h); or else a timestamp; or else an ObjectId. The
 * first elements of a path decide on its field, so that all elements are read alike.
 */
#ifndef SPILL_TOOLS_SCAN_TIMES_H
#define SPILL_TOOLS_SCAN_TIMES_H

#include "bson/value.h"

/* Names on the way from an element to its time; none if the element is the time itself. */
#define SPILL_TIMES_DEPTH_MAX 3
#define SPILL_TIMES_NAMES_SIZE 96

/* Zero it to begin. */
typedef struct spill_times_rule {
    uint8_t type; /* BSON_TYPE_DATE_TIME, _UTF8, _TIMESTAMP or _OID; 0: none was found so far */
    uint8_t depth;
    uint8_t tries;                      /* arrays that were searched */
    char names[SPILL_TIMES_NAMES_SIZE]; /* `depth` names, each ended by NUL */
} spill_times_rule_t;

/* Report whether both are the same rule. */
bool spill_times_same(const spill_times_rule_t *left, const spill_times_rule_t *right);

/* Report whether the rule is still to be learned. */
bool spill_times_open(const spill_times_rule_t *rule);

/* Search the first elements of the array or map at `data`, which is well-formed, for a time. */
void spill_times_learn(spill_times_rule_t *rule, const uint8_t *data);

/* The elements' times in the order of the array. */
typedef struct spill_times {
    const spill_times_rule_t *rule;
    spill_fields_t elements;
} spill_times_t;

/* Begin with the array or map at `data`, which is well-formed; borrows both. */
spill_times_t spill_times_of(const spill_times_rule_t *rule, const uint8_t *data);

/*
 * Read the next element: false at the end. *known: it has a time, in *time_ms, in milliseconds
 * since 1970.
 */
bool spill_times_next(spill_times_t *times, bool *known, int64_t *time_ms);

/* "at", "meta.at", or "" for the elements themselves; cut to fit. */
void spill_times_field(const spill_times_rule_t *rule, char *text, size_t size);

#endif
