/*
 * Coroutines: each simulated client runs in one, on a stack of its own, and only one runs at a
 * time. The address and thread sanitizers are told of every switch.
 */
#ifndef SIM_COROUTINE_H
#define SIM_COROUTINE_H

#include <stdbool.h>

typedef struct sim_coroutine sim_coroutine_t;
typedef void (*sim_body_fn)(void *context);

/* A stack with nothing to run yet. */
sim_coroutine_t *sim_coroutine_new(void);

/* Only while its body is not under way. NULL is allowed. */
void sim_coroutine_free(sim_coroutine_t *coroutine);

/* The next resume enters `body`. Only while no body is under way. */
void sim_coroutine_start(sim_coroutine_t *coroutine, sim_body_fn body, void *context);

/* From outside: run it until it yields or its body returns. */
void sim_coroutine_resume(sim_coroutine_t *coroutine);

/* From inside: back to whoever resumed it. */
void sim_coroutine_yield(sim_coroutine_t *coroutine);

/* Is a body under way (started, not returned)? */
bool sim_coroutine_active(const sim_coroutine_t *coroutine);

#endif
