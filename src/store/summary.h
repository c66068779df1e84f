/*
 * What a document shows of its elements: sums, the statistics of a bucket, and the highest-ranked
 * elements.
 */
#ifndef SPILL_STORE_SUMMARY_H
#define SPILL_STORE_SUMMARY_H

#include "store/content.h"

#include <spillway/bucket.h>
#include <spillway/definition.h>
#include <spillway/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The statistics of a bucket: a left fold over the values of a document's elements, in their order.
 * An append continues the fold. An edit or a removal computes it again from the elements of the one
 * document. So the elements determine the statistics to the bit, and the verifier compares them.
 * Zeroed: statistics of no values.
 */
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

/* Append {values, whole (not if `real`), run, min, max} under a name; nothing if no values. */
void spill_window_stats_append(const spill_window_stats_t *window_stats, const char *name,
                               bson_t *document);
bool spill_window_stats_read(const spill_value_t *value, spill_window_stats_t *window_stats);

/* Append the definition's statistics fields to a document. */
void spill_window_stats_render(const spill_window_stats_t *window_stats, int64_t count,
                               const spill_definition_t *definition, bson_t *document);

/* ---- sums ------------------------------------------------------------------------------------ */

/*
 * The sum of the values of an array's elements, to which values are added and from which they are
 * subtracted. Integers are summed exactly, as an int64. Doubles, and integers that do not fit, are
 * summed as an unevaluated pair of doubles. Adding and subtracting the same values then restores
 * the sum exactly, if about 30 decimal digits cover the largest and the smallest value. Zeroed: of
 * no values.
 */
typedef struct spill_sum {
    int64_t values; /* how many */
    int64_t whole;  /* of integers */
    double high;    /* the rest is high + low */
    double low;
} spill_sum_t;

/*
 * The value of one element as a sum: the definition's value_field, if it is an int32, an int64 or a
 * double of at most 1e300; else a sum of no values.
 */
spill_sum_t spill_sum_of(const spill_definition_t *definition, const spill_value_t *element);

void spill_sum_add(spill_sum_t *sum, const spill_sum_t *other);
void spill_sum_subtract(spill_sum_t *sum, const spill_sum_t *other);

/* Compare all four fields. None of them is NaN. */
bool spill_sum_equal(const spill_sum_t *left, const spill_sum_t *right);

/*
 * May both be sums of the same values in another order? Integers must be equal. With doubles the
 * totals may differ by 1e-12 of `size`, the sum of the absolute values.
 */
bool spill_sum_close(const spill_sum_t *left, const spill_sum_t *right, double size);
/* The absolute value of the sum of one element. */
double spill_sum_size(const spill_sum_t *value);

double spill_sum_total(const spill_sum_t *sum);
double spill_sum_average(const spill_sum_t *sum); /* 0 if there are no values */

/* Append {values, whole; high and low if one is not 0} under a name; and read it. */
void spill_sum_append(const spill_sum_t *sum, const char *name, bson_t *document);
bool spill_sum_read(const spill_value_t *value, spill_sum_t *sum);

/* Most bytes of the appended value, without the name. */
enum { SPILL_SUM_BYTES = 5 + (2 + 6 + 8) + (2 + 5 + 8) + (2 + 4 + 8) + (2 + 3 + 8) };

/* ---- the highest-ranked elements ------------------------------------------------------------- */

/*
 * Layout subset: the highest-ranked elements of an array, and how many of them its summary shows
 * (top.c).
 *
 * Elements rank by the value at the definition's sort_field, as documents are sorted, then by their
 * number, the newer one higher. Classes of values in ascending order: no value, numbers, dates. An
 * int64 and a double are compared exactly.
 */

typedef enum spill_rank_class {
    SPILL_RANK_NONE,   /* no value, or one of another type: NaN, a decimal, a text, an array */
    SPILL_RANK_NUMBER, /* int32, int64, double */
    SPILL_RANK_DATE
} spill_rank_class_t;

/*
 * A value to sort by, `value` + `rest`: `value` is the greatest double that is not above it.
 * `rest`, 0 to 2047, is 0 except for some large integers. Zeroed: class none.
 */
typedef struct spill_rank {
    double value;
    uint16_t rest;
    uint8_t class; /* spill_rank_class_t */
} spill_rank_t;

typedef struct spill_top_entry {
    int64_t seq;
    uint32_t size_bytes; /* of the element */
    spill_rank_t rank;
} spill_top_entry_t;

/* Zeroed: empty. */
typedef struct spill_top {
    spill_top_entry_t *at; /* the highest first */
    size_t count;
    size_t capacity;
    size_t shown;        /* the document has the first `shown` elements themselves */
    int64_t shown_bytes; /* sum of their sizes */
} spill_top_t;

spill_rank_t spill_rank_of(const spill_definition_t *definition, const spill_value_t *element);
spill_rank_t spill_rank_of_value(const spill_value_t *value);

/* Append a value of that rank under `key`; nothing for class none. */
void spill_rank_append(const spill_rank_t *rank, bson_t *document, const char *key);

/* Bytes that order as ranks do, the highest first. */
enum { SPILL_RANK_KEY_BYTES = 1 + 8 + 2 };
void spill_rank_key(const spill_rank_t *rank, uint8_t key[SPILL_RANK_KEY_BYTES]);

spill_top_entry_t spill_top_entry_of(const spill_definition_t *definition, int64_t seq,
                                     const spill_value_t *element);

/* Above 0: the left one ranks higher. */
int spill_top_compare(const spill_top_entry_t *left, const spill_top_entry_t *right);

/* Add the entry, if it is new, and keep the `most` highest-ranked entries. O(count). */
void spill_top_add(spill_top_t *top, size_t most, const spill_top_entry_t *entry);
/* Add each entry of `others`. */
void spill_top_add_all(spill_top_t *top, size_t most, const spill_top_t *others);

/* Add all elements of a run, without a bound. */
void spill_top_note(spill_top_t *top, const spill_definition_t *definition, const spill_run_t *run);

/* Is element `seq` in the top, or among the shown elements? O(count). */
bool spill_top_contains(const spill_top_t *top, int64_t seq);
bool spill_top_shows(const spill_top_t *top, int64_t seq);
void spill_top_remove(spill_top_t *top, int64_t seq);
void spill_top_drop_below(spill_top_t *top, int64_t seq); /* remove elements with numbers < seq */

/* Show the first elements that fit into the definition's room for them, and at most `most`. */
void spill_top_show(spill_top_t *top, const spill_definition_t *definition, size_t most);

bool spill_top_equal(const spill_top_t *left, const spill_top_t *right);
void spill_top_copy(const spill_top_t *from, spill_top_t *to); /* `to` is empty or zeroed */
void spill_top_clear(spill_top_t *top);                        /* empty, memory kept */
void spill_top_release(spill_top_t *top);                      /* free, zero */

/* The room for the shown elements, as the bytes of an array; 0 for other layouts. */
int64_t spill_top_room(const spill_definition_t *definition);

/* Most bytes of an entry in a document: {seq, size, key}. */
enum { SPILL_TOP_ENTRY_BYTES = 5 + (2 + 3 + 8) + (2 + 4 + 8) + (2 + 3 + 8) };

/*
 * Append [{seq, size, key}, ...] under `name`; and read it from `value`, an array. The document has
 * the first `shown` elements.
 */
void spill_top_append(const spill_top_t *top, const char *name, bson_t *document);
bool spill_top_read(const spill_value_t *value, size_t shown, spill_top_t *top);

#endif
