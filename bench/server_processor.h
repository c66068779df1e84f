/* The processor time of a server that tools/test-server has started. */
#ifndef BENCH_SERVER_PROCESSOR_H
#define BENCH_SERVER_PROCESSOR_H

/*
 * Seconds of processor time that the server's processes have used so far, with their children.
 * `home` is DIR/spillway-test-server; NULL: returns 0. `process` is the name of one of its
 * processes ("ferretdb", "postgresql"); NULL: all of them. Ends the program if `home` cannot be
 * read.
 */
double server_processor(const char *home, const char *process);

#endif
