/* Lets the engine run out of memory: a chosen call of C++'s operator new throws. */
#ifndef TESTS_SUPPORT_FAIL_NEW_H
#define TESTS_SUPPORT_FAIL_NEW_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Of this thread's next calls of operator new, let call `number` (1 is the first) throw bad_alloc.
 * 0: none. Each program that calls this gets an operator new of its own.
 */
void fail_new_after(long number);

/* How many calls this thread made since fail_new_after. */
long fail_new_calls(void);

#ifdef __cplusplus
}
#endif

#endif
