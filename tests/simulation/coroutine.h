/*
 * Coroutines: each simulated client runs in one, on its own stack, and only one runs at a time.
 * Every switch is announced to the address and thread sanitizers.
 */
#ifndef SIM_COROUTINE_H
#define SIM_COROUTINE_H

#include <stdbool.h>

typedef struct sim_coroutine sim_coroutine_t;
typedef void (*sim_body_fn)(void *context);

/* Create a stack with nothing to run yet. */
sim_coroutine_t *sim_coroutine_new(void);

/* Free the stack. Only while no body is active. NULL is allowed. */
void sim_coroutine_free(sim_coroutine_t *coroutine);

/* The next resume enters `body`. Only while no body is active. */
void sim_coroutine_start(sim_coroutine_t *coroutine, sim_body_fn body, void *context);

/* Called from outside: run the body until it yields or returns. */
void sim_coroutine_resume(sim_coroutine_t *coroutine);

/* Called from inside: return to the caller of resume. */
void sim_coroutine_yield(sim_coroutine_t *coroutine);

/* Is a body active, that is, started and not returned? */
bool sim_coroutine_active(const sim_coroutine_t *coroutine);

#endif
