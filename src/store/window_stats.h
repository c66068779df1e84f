/*
 * What a bucket's statistics are made of: a left fold over the values of a document's elements, in
 * their order. An append goes on with the fold; where an element changes or goes, the fold is made
 * anew over the elements of the one document. So statistics follow from the elements alone, to the
 * bit, and the verifier can say so.
 */
#ifndef SPILL_STORE_WINDOW_STATS_H
#define SPILL_STORE_WINDOW_STATS_H

#include <spillway/bucket.h>

/* Zeroed: of no values. */
typedef struct spill_window_stats {
    int64_t values;
    bool real;     /* a value is a double, or the sum of integers did not fit */
    int64_t whole; /* the sum of integers, while not `real` */
    double run;    /* the sum of doubles, from the first value to the last */
    spill_amount_t min, max;
} spill_window_stats_t;

/* Does the definition's layout have statistics? */
bool spill_window_stats_wanted(const spill_definition_t *definition);

/* Go on with an element; no effect where it has no value. */
void spill_window_stats_add(spill_window_stats_t *window_stats,
                            const spill_definition_t *definition, const spill_value_t *element);

/* To the bit. */
bool spill_window_stats_equal(const spill_window_stats_t *left, const spill_window_stats_t *right);

/* Statistics of a document of `count` elements, and those of one more document behind others. */
void spill_window_stats_derive(const spill_window_stats_t *window_stats, int64_t count,
                               spill_statistics_t *statistics);
void spill_statistics_join(spill_statistics_t *statistics, const spill_statistics_t *next);

/* An integer as int32 while it fits, else int64; a double. */
void spill_amount_append(const spill_amount_t *amount, const char *name, bson_t *document);
/* And back, also from other numbers; false where it is none of the three types. */
bool spill_amount_read(const spill_value_t *value, spill_amount_t *amount);

/*
 * The number at the definition's value_field: an int32, an int64 or a double up to 1e300. False
 * where the element has none of these, or the definition names no field.
 */
bool spill_amount_of(const spill_definition_t *definition, const spill_value_t *element,
                     spill_amount_t *amount);

/* {values, whole (or nothing where `real`), run, min, max} under a name; nothing without values. */
void spill_window_stats_append(const spill_window_stats_t *window_stats, const char *name,
                               bson_t *document);
bool spill_window_stats_read(const spill_value_t *value, spill_window_stats_t *window_stats);

/* The fields of a definition's statistics into a document. */
void spill_window_stats_render(const spill_window_stats_t *window_stats, int64_t count,
                               const spill_definition_t *definition, bson_t *document);

#endif
