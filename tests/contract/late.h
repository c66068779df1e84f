/* Random numbers, and a queue of requests to be delivered late. */
#ifndef TESTS_CONTRACT_LATE_H
#define TESTS_CONTRACT_LATE_H

#include "store/request.h"

/* Return a number in [0, bound). A state of `random` determines the sequence. */
int64_t dice_below(uint64_t *random, int64_t bound);

typedef struct late {
    size_t array, owner;
    spill_request_t *request; /* a clone, owned by the queue */
} late_t;

/* Zeroed: empty. Empty it with late_take_random. */
typedef struct late_queue {
    late_t late[24];
    size_t count;
} late_queue_t;

/* Queue a clone of the request; no effect if `most` (at most 24) are queued. */
void late_add(late_queue_t *queue, size_t most, size_t array, size_t owner,
              const spill_request_t *request);

/* Take one by chance; false: the queue is empty. The caller frees its request. */
bool late_take_random(late_queue_t *queue, uint64_t *random, late_t *late);

#endif
