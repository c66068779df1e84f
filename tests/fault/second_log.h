/* A second log in a store's folder, as a writer leaves it that died after it began a new one. */
#ifndef SPILL_TESTS_FAULT_SECOND_LOG_H
#define SPILL_TESTS_FAULT_SECOND_LOG_H

/*
 * Open the store's database with an option that keeps its logs, write a change to a second log, and
 * end this process with SIGKILL. Call it in a child process.
 */
_Noreturn void second_log_add(const char *folder);

#endif
