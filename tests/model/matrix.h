/*
 * One client's random operations against a plain array: page capacity x threshold x keep, with
 * elements of every kind of BSON value.
 */
#ifndef TESTS_MODEL_MATRIX_H
#define TESTS_MODEL_MATRIX_H

#include <spillway/spillway.h>

#define MATRIX_SIZES 6 /* of threshold, and of page capacity: 1 to 1000 */

/* Each fails the test where an answer is not the plain array's. A definition for each cell. */
void matrix_play_cell(spill_store_t *store, spill_keep_t keep, int64_t threshold, int64_t page);
void matrix_play(spill_store_t *store); /* every cell */

#endif
