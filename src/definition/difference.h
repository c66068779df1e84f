/* What a program changes that saves a definition in place of another one. */
#ifndef SPILL_DEFINITION_DIFFERENCE_H
#define SPILL_DEFINITION_DIFFERENCE_H

#include <spillway/definition.h>

/*
 * Describe what changes if `next` is saved in place of `now`: "threshold 10 -> 80, array 'a' ->
 * 'b'". NULL: nothing. Bounds that the definition had before do not count. Release with bson_free.
 * Both are valid. Any thread.
 */
char *spill_definition_difference(const spill_definition_t *now, const spill_definition_t *next);

#endif
