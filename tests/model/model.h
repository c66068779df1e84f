/*
 * A plain array with sequence numbers, and what the library has to answer for it. Elements are of
 * every kind of BSON value.
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include <spillway/spillway.h>

typedef struct model {
    int *kinds; /* of the element with each number; -1: it is gone */
    int64_t count;
    int64_t capacity;
    int64_t live;
    bool documents;    /* elements are documents with the value and a rating */
    int64_t cap;       /* of a capped array: how many elements stay; 0: all */
    int64_t watermark; /* where the live ones begin, at the earliest */
    int64_t top;       /* of a subset: elements in the summary; 0: none are */
    const char *by;    /* ... and what they rank by: "rating", "value", or "" */
    bool top_n;        /* capped: those that rank highest by it stay, and `top` is all of them */
} model_t;

/* Values of every kind, numbered from 0. They last. */
int model_kinds(void);
spill_value_t model_value(int kind);

void model_clear(model_t *model);
void model_push(model_t *model, int kind);

/* An element of the kind, as this model has them. It lasts. */
spill_value_t model_element(const model_t *model, int kind);

/* Elements of different kinds to append next; they are in the array when the result says so. */
void model_next(const model_t *model, spill_value_t *elements, int count);
void model_appended(model_t *model, int count, const spill_append_result_t *result);

void model_set(model_t *model, int64_t seq, int kind);
void model_remove(model_t *model, int64_t seq);
void model_trim(model_t *model, int64_t below);

/*
 * Each of these makes the library's answer and compares it. They fail the test. An owner that has
 * never been appended to has an empty model.
 */
void model_check_read(const model_t *model, spill_array_t *array, const spill_value_t *owner,
                      const spill_read_options_t *options);
/* With documents: also their ratings' statistics. */
void model_check_count(const model_t *model, spill_array_t *array, const spill_value_t *owner);
/* Of a subset: the summary's elements, also with a lower limit. */
void model_check_top(const model_t *model, spill_array_t *array, const spill_value_t *owner);
void model_check_export(const model_t *model, spill_array_t *array, const spill_value_t *owner);
void model_check_verify(spill_array_t *array, const spill_value_t *owner);

#endif
