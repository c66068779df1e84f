/* One call to a store fails; a delayed request arrives `delay` calls later. */
#ifndef TESTS_MODEL_TROUBLE_H
#define TESTS_MODEL_TROUBLE_H

#include "support/fault_store.h"

typedef struct trouble {
    int64_t at;
    int64_t delay;
    fault_t fault;
    spill_store_t *store; /* the wrapper, from fault_wrap with these hooks */
} trouble_t;

/* The trouble is the hooks' context and must live as long as the wrapper is called. */
fault_hooks_t trouble_hooks(trouble_t *trouble);

#endif
