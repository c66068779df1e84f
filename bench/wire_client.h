/* A client of one socket that speaks the wire protocol: for benchmarks of the gateway. */
#ifndef BENCH_WIRE_CLIENT_H
#define BENCH_WIRE_CLIENT_H

#include <bson/bson.h>

/* Connect to the port of the loopback address. All functions end the program on an error. */
int wire_connect(const char *port);

/* Send a command and read its reply. The caller destroys `body`'s reply with bson_destroy. */
void wire_call(int socket, const bson_t *body, bson_t *reply);

/* The field of a reply as a number; 0: it is absent. */
int64_t wire_number(const bson_t *reply, const char *field);

/* The processor time that a process has used, with all its threads. 0: there is no such process. */
double wire_processor_us(int process);

#endif
