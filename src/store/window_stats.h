/*
 * The statistics of a bucket: a left fold over the values of a document's elements, in their order.
 * An append continues the fold. An edit or a removal computes it again from the elements of the one
 * document. So the elements determine the statistics to the bit, and the verifier compares them.
 */
#ifndef SPILL_STORE_WINDOW_STATS_H
#define SPILL_STORE_WINDOW_STATS_H

#include <spillway/bucket.h>

/* Zeroed: statistics of no values. */
typedef struct spill_window_stats {
    int64_t values;
    bool real;     /* a value is a double, or the sum of integers did not fit */
    int64_t whole; /* the sum of integers, while not `real` */
    double run;    /* the sum of doubles, from the first value to the last */
    spill_amount_t min, max;
} spill_window_stats_t;

/* Add the element's value, if it has one. */
void spill_window_stats_add(spill_window_stats_t *window_stats,
                            const spill_definition_t *definition, const spill_value_t *element);

/* Equal to the bit? */
bool spill_window_stats_equal(const spill_window_stats_t *left, const spill_window_stats_t *right);

/* Statistics of a document of `count` elements; and append those of the next document to them. */
void spill_window_stats_derive(const spill_window_stats_t *window_stats, int64_t count,
                               spill_statistics_t *statistics);
void spill_statistics_join(spill_statistics_t *statistics, const spill_statistics_t *next);

/* Append an int32 if an integer fits, else an int64; or a double. */
void spill_amount_append(const spill_amount_t *amount, const char *name, bson_t *document);
/* Read any int32, int64 or double; return false for another type. */
bool spill_amount_read(const spill_value_t *value, spill_amount_t *amount);

/*
 * The number at the definition's value_field: an int32, an int64 or a double up to 1e300. Return
 * false if the element has no such number or the definition has no value_field.
 */
bool spill_amount_of(const spill_definition_t *definition, const spill_value_t *element,
                     spill_amount_t *amount);

/* Append {values, whole (not if `real`), run, min, max} under a name; nothing if no values. */
void spill_window_stats_append(const spill_window_stats_t *window_stats, const char *name,
                               bson_t *document);
bool spill_window_stats_read(const spill_value_t *value, spill_window_stats_t *window_stats);

/* Append the definition's statistics fields to a document. */
void spill_window_stats_render(const spill_window_stats_t *window_stats, int64_t count,
                               const spill_definition_t *definition, bson_t *document);

#endif
