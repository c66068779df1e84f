/*
 * One client's random operations, compared with a plain array: page capacity x threshold x keep x
 * order, and threshold x order for capped arrays, with elements of every BSON type.
 */
#ifndef TESTS_MODEL_MATRIX_H
#define TESTS_MODEL_MATRIX_H

#include <spillway/spillway.h>

#define MATRIX_SIZES 6 /* of thresholds and of page capacities: 1 to 1000 */
#define MATRIX_CELLS (4 * MATRIX_SIZES * MATRIX_SIZES + 2 * MATRIX_SIZES)

/*
 * Each function fails the test if an answer differs from the plain array. One definition per cell.
 */
typedef struct matrix_cell {
    spill_layout_t layout;
    spill_keep_t keep;
    spill_array_order_t order;
    int64_t threshold;
    int64_t page; /* unused by a capped array */
} matrix_cell_t;

void matrix_play_cell(spill_store_t *store, const matrix_cell_t *cell);
/* Layout reference, with the statistics of its elements, which are documents. */
#define MATRIX_REFERENCED 16 /* number of cells */
void matrix_play_referenced(spill_store_t *store, int64_t threshold, int64_t page);
/* Layout subset, with `top` elements by `by`: "rating", "value" or "". */
#define MATRIX_SUBSETS 12 /* number of cells */
void matrix_play_subset(spill_store_t *store, int64_t top, const char *by, int64_t threshold);
/* Layout capped with a top-N by "rating" or "value". */
#define MATRIX_TOP_N 8 /* number of cells */
void matrix_play_best(spill_store_t *store, int64_t cap, const char *by, spill_array_order_t order);
void matrix_play(spill_store_t *store); /* all cells */

#endif
