/* Dice, and requests that are still on their way: for tests that send at random. */
#ifndef TESTS_CONTRACT_LATE_H
#define TESTS_CONTRACT_LATE_H

#include "store/request.h"

/* A number in [0, bound). Each state of `random` gives one sequence. */
int64_t dice_below(uint64_t *random, int64_t bound);

typedef struct late {
    size_t array, owner;
    spill_request_t *request; /* a clone; the holder's */
} late_t;

/* Zeroed: none. Empty it with late_adopt. */
typedef struct late_queue {
    late_t late[24];
    size_t count;
} late_queue_t;

/* A clone is to come later; no effect where `most` (at most 24) are on their way. */
void late_add(late_queue_t *queue, size_t most, size_t array, size_t owner,
              const spill_request_t *request);

/* One of them, by chance; false: there is none. The caller frees its request. */
bool late_adopt(late_queue_t *queue, uint64_t *random, late_t *late);

#endif
