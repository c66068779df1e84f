/*
 * makecontext creates each coroutine's stack once; many bodies use it, one after another. Switches
 * use _setjmp and _longjmp, which make no system call. Under a sanitizer they use swapcontext and
 * announce each switch to it.
 */
#undef _FORTIFY_SOURCE /* its longjmp rejects a jump to another stack */

#include "coroutine.h"

#include <assert.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define SIM_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SIM_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define SIM_THREAD_SANITIZER
#endif

#ifdef SIM_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIM_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_BYTES (128 * 1024)

struct sim_coroutine {
    sim_body_fn body;
    void *context;
    bool active;
    bool entered; /* did it ever run? */
    void *memory; /* a guard page, then the stack */
    size_t memory_bytes;
    void *stack;
    ucontext_t inside;
    ucontext_t outside;
#if defined(SIM_ADDRESS_SANITIZER)
    void *inside_fake;
    void *outside_fake;
    const void *outside_stack;
    size_t outside_stack_bytes;
#elif defined(SIM_THREAD_SANITIZER)
    void *inside_fiber;
    void *outside_fiber;
#else
    jmp_buf inside_jump;
    jmp_buf outside_jump;
#endif
};

#if defined(SIM_ADDRESS_SANITIZER)

static void switch_in(sim_coroutine_t *coroutine)
{
    __sanitizer_start_switch_fiber(&coroutine->outside_fake, coroutine->stack, STACK_BYTES);
    swapcontext(&coroutine->outside, &coroutine->inside);
    __sanitizer_finish_switch_fiber(coroutine->outside_fake, NULL, NULL);
}

static void arrived_inside(sim_coroutine_t *coroutine)
{
    __sanitizer_finish_switch_fiber(coroutine->inside_fake, &coroutine->outside_stack,
                                    &coroutine->outside_stack_bytes);
}

static void switch_out(sim_coroutine_t *coroutine)
{
    __sanitizer_start_switch_fiber(&coroutine->inside_fake, coroutine->outside_stack,
                                   coroutine->outside_stack_bytes);
    swapcontext(&coroutine->inside, &coroutine->outside);
    arrived_inside(coroutine);
}

#elif defined(SIM_THREAD_SANITIZER)

static void switch_in(sim_coroutine_t *coroutine)
{
    coroutine->outside_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(coroutine->inside_fiber, 0);
    swapcontext(&coroutine->outside, &coroutine->inside);
}

static void arrived_inside(sim_coroutine_t *coroutine)
{
    (void)coroutine;
}

static void switch_out(sim_coroutine_t *coroutine)
{
    __tsan_switch_to_fiber(coroutine->outside_fiber, 0);
    swapcontext(&coroutine->inside, &coroutine->outside);
}

#else

static void switch_in(sim_coroutine_t *coroutine)
{
    if (_setjmp(coroutine->outside_jump) != 0)
        return;
    if (coroutine->entered)
        _longjmp(coroutine->inside_jump, 1);
    swapcontext(&coroutine->outside, &coroutine->inside);
}

static void arrived_inside(sim_coroutine_t *coroutine)
{
    (void)coroutine;
}

static void switch_out(sim_coroutine_t *coroutine)
{
    if (_setjmp(coroutine->inside_jump) == 0)
        _longjmp(coroutine->outside_jump, 1);
}

#endif

/* Run one body after another. makecontext passes ints, so the pointer comes in two halves. */
static void enter(unsigned high, unsigned low)
{
    sim_coroutine_t *coroutine =
        (sim_coroutine_t *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);
    arrived_inside(coroutine);
    for (;;) {
        coroutine->body(coroutine->context);
        coroutine->active = false;
        switch_out(coroutine);
    }
}

sim_coroutine_t *sim_coroutine_new(void)
{
    sim_coroutine_t *coroutine = calloc(1, sizeof *coroutine);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert(coroutine != NULL);
    coroutine->memory_bytes = STACK_BYTES + page;
    coroutine->memory = mmap(NULL, coroutine->memory_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (coroutine->memory == MAP_FAILED || mprotect(coroutine->memory, page, PROT_NONE) != 0) {
        perror("a coroutine's stack");
        abort();
    }
    coroutine->stack = (char *)coroutine->memory + page;
    getcontext(&coroutine->inside);
    coroutine->inside.uc_stack.ss_sp = coroutine->stack;
    coroutine->inside.uc_stack.ss_size = STACK_BYTES;
    coroutine->inside.uc_link = NULL;
    uintptr_t self = (uintptr_t)coroutine;
    makecontext(&coroutine->inside, (void (*)(void))enter, 2, (unsigned)(self >> 16 >> 16),
                (unsigned)self);
#ifdef SIM_THREAD_SANITIZER
    coroutine->inside_fiber = __tsan_create_fiber(0);
#endif
    return coroutine;
}

void sim_coroutine_free(sim_coroutine_t *coroutine)
{
    if (coroutine == NULL)
        return;
    assert(!coroutine->active);
#ifdef SIM_THREAD_SANITIZER
    __tsan_destroy_fiber(coroutine->inside_fiber);
#endif
    munmap(coroutine->memory, coroutine->memory_bytes);
    free(coroutine);
}

void sim_coroutine_start(sim_coroutine_t *coroutine, sim_body_fn body, void *context)
{
    assert(!coroutine->active);
    coroutine->body = body;
    coroutine->context = context;
    coroutine->active = true;
}

void sim_coroutine_resume(sim_coroutine_t *coroutine)
{
    assert(coroutine->active);
    switch_in(coroutine);
    coroutine->entered = true;
}

void sim_coroutine_yield(sim_coroutine_t *coroutine)
{
    switch_out(coroutine);
}

bool sim_coroutine_active(const sim_coroutine_t *coroutine)
{
    return coroutine->active;
}
