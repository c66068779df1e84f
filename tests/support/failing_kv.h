/*
 * A key-value engine around another one. One of its calls fails, in one of three ways. For tests
 * that fail call 0, 1, 2, ... of a piece of work until the work ends before that call.
 */
#ifndef TESTS_SUPPORT_FAILING_KV_H
#define TESTS_SUPPORT_FAILING_KV_H

#include "store/embedded/kv.h"

typedef enum failing_kv_way {
    FAILING_KV_ERROR,   /* SPILL_IO; a write is not applied */
    FAILING_KV_LOST,    /* a write is applied and returns SPILL_UNKNOWN; a read returns SPILL_IO */
    FAILING_KV_CORRUPT, /* a read returns SPILL_CORRUPT; a write SPILL_IO, and is not applied */
    FAILING_KV_WAYS
} failing_kv_way_t;

/* Zero it. The caller owns it, and it has to live as long as the engine. */
typedef struct failing_kv_plan {
    bool armed;
    failing_kv_way_t way;
    int64_t at;       /* the call that fails, counted from 0 */
    int64_t calls;    /* get, write, iterator steps, checkpoint; the caller sets it to 0 */
    bool struck;      /* did that call come? */
    int64_t look_ups; /* get, seek and seek_before, also if it is not armed */
    int64_t steps;    /* next, also if it is not armed */
} failing_kv_plan_t;

/* The inner engine becomes the wrapper's: closing the wrapper closes it. For one thread. */
spill_kv_t *failing_kv_open(spill_kv_t *inner, failing_kv_plan_t *plan);

#endif
