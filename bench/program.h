/* Run the program `spillway`, for benchmarks of whole processes. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

/*
 * The path of the program in the build folder; free it with bson_free. `self` is argv[0] of a
 * benchmark, which is in the folder bench of the build folder.
 */
char *program_beside(const char *self);

/*
 * Run a program with its output in /dev/null. `arguments` begin with its path and end with NULL.
 * Return the seconds from its start until its end. It must succeed.
 */
double program_run(char *const arguments[]);

#endif
