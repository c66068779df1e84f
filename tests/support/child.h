/* The end of a forked process of a test. */
#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H

/*
 * End this process as _exit does: without the handlers of exit, which remove what the parent still
 * uses. A coverage build keeps the counts of the lines and branches that ran.
 */
_Noreturn void child_end(int status);

#endif
