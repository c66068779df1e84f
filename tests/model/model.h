/*
 * A plain array with sequence numbers, and the answers that the library must give for it. Elements
 * have all BSON types.
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include <spillway/spillway.h>

typedef struct model {
    int *kinds; /* the kind of the element with each number; -1: removed */
    int64_t count;
    int64_t capacity;
    int64_t live;
    bool documents;    /* elements are documents with a value and a rating */
    int64_t cap;       /* of a capped array: the number of elements to keep; 0: all */
    int64_t watermark; /* live elements have at least this number */
    int64_t top;       /* of a subset: the number of elements in the summary; 0: no summary */
    const char *by;    /* of a subset: its rank field "rating", "value", or "" */
    bool top_n;        /* capped: keep the highest-ranked elements; `top` covers all of them */
} model_t;

/* Return the number of kinds of values, numbered from 0. The values stay valid. */
int model_kinds(void);
spill_value_t model_value(int kind);

void model_clear(model_t *model);
void model_push(model_t *model, int kind);

/* Return an element of the kind, in the form that this model uses. It stays valid. */
spill_value_t model_element(const model_t *model, int kind);

/* Choose elements of different kinds for the next append. model_appended adds them to the array. */
void model_next(const model_t *model, spill_value_t *elements, int count);
void model_appended(model_t *model, int count, const spill_append_result_t *result);

void model_set(model_t *model, int64_t seq, int kind);
void model_remove(model_t *model, int64_t seq);
void model_trim(model_t *model, int64_t below);

/*
 * Each function asks the library and compares its answer; a difference fails the test. An owner
 * that was never appended to has an empty model.
 */
void model_check_read(const model_t *model, spill_array_t *array, const spill_value_t *owner,
                      const spill_read_options_t *options);
/* With documents: also compares the statistics of their ratings. */
void model_check_count(const model_t *model, spill_array_t *array, const spill_value_t *owner);
/* Of a subset: compares the summary's elements, also with a lower limit. */
void model_check_top(const model_t *model, spill_array_t *array, const spill_value_t *owner);
void model_check_export(const model_t *model, spill_array_t *array, const spill_value_t *owner);
void model_check_verify(spill_array_t *array, const spill_value_t *owner);

#endif
