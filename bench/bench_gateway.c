/*
 * What the gateway's relay costs:
 *
 *   bench_gateway DIRECT_PORT GATEWAY_PORT [ROUNDS [PROCESS]]
 *
 * Both are ports of 127.0.0.1, without TLS and without users: a server, and a gateway in front of
 * it (bench/gateway starts both). It prints the p50 of a ping, each on one connection in turns. For
 * ping, find, update and insert it prints the commands per second of 8 and of 64 connections, in
 * rounds in turns. With the gateway's process id also its processor time for each command. Only the
 * ratios of one run say something. docs/internals/benchmarks/gateway.md has the bars.
 */
#include "measure.h"
#include "wire_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, LATENCIES = 4000, WARM = 200, ROUND_US = 500000 };
enum { ADDED_US = 60 };               /* the bar of a ping */
static const double throughput = 0.9; /* the bar of each command */

typedef struct caller {
    pthread_t thread;
    int socket;
    bson_t *request;
    atomic_bool *ending;
    long count;
} caller_t;

/* ---- commands -------------------------------------------------------------------------------- */

/* The document of find and update: each connection has its own. */
static bson_t *make_request(const char *command, int number)
{
    if (strcmp(command, "find") == 0)
        return BCON_NEW("find", "relayed", "filter", "{", "_id", BCON_INT32(number), "}", "limit",
                        BCON_INT32(1), "singleBatch", BCON_BOOL(true), "$db", "bench");
    if (strcmp(command, "update") == 0)
        return BCON_NEW("update", "relayed", "updates", "[", "{", "q", "{", "_id",
                        BCON_INT32(number), "}", "u", "{", "$inc", "{", "n", BCON_INT32(1), "}",
                        "}", "upsert", BCON_BOOL(true), "}", "]", "$db", "bench");
    if (strcmp(command, "insert") == 0)
        return BCON_NEW("insert", "relayed", "documents", "[", "{", "text",
                        "some words of a comment", "}", "]", "$db", "bench");
    return BCON_NEW("ping", BCON_INT32(1), "$db", "admin");
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void call(int socket, const bson_t *request)
{
    bson_t reply;
    wire_call(socket, request, &reply);
    bson_destroy(&reply);
}

/* ---- latency --------------------------------------------------------------------------------- */

static int compare_numbers(const void *left, const void *right)
{
    int64_t one = *(const int64_t *)left, other = *(const int64_t *)right;
    return (one > other) - (one < other);
}

static double median_us(int64_t *durations_ns)
{
    qsort(durations_ns, LATENCIES, sizeof *durations_ns, compare_numbers);
    int64_t median_ns = durations_ns[LATENCIES / 2];
    return (double)median_ns / 1000;
}

static void measure_latency(measure_report_t *report, char **ports)
{
    static int64_t durations_ns[2][LATENCIES];
    int sockets[2] = {wire_connect(ports[0]), wire_connect(ports[1])};
    bson_t *ping = make_request("ping", 0);
    for (int i = -WARM; i < LATENCIES; i++) {
        for (int side = 0; side < 2; side++) {
            int64_t started_ns = now_ns();
            call(sockets[side], ping);
            if (i >= 0)
                durations_ns[side][i] = now_ns() - started_ns;
        }
    }
    double direct_us = median_us(durations_ns[0]), relayed_us = median_us(durations_ns[1]);
    printf("ping, p50: direct %.0f us, relayed %.0f us, added %.0f us", direct_us, relayed_us,
           relayed_us - direct_us);
    measure_print_bar(report, relayed_us - direct_us, ADDED_US, true);
    printf("\n");
    bson_destroy(ping);
    close(sockets[0]);
    close(sockets[1]);
}

/* ---- throughput ------------------------------------------------------------------------------ */

static void *call_on(void *context)
{
    caller_t *caller = context;
    for (; !atomic_load(caller->ending); caller->count++)
        call(caller->socket, caller->request);
    return NULL;
}

/* The commands per second of so many connections. Adds their number to *all. */
static double measure_side(const char *port, const char *command, int connections, double *all)
{
    static caller_t callers[CONNECTIONS_MAX];
    atomic_bool ending = false;
    long count = 0;
    for (int i = 0; i < connections; i++) {
        callers[i] = (caller_t){
            .socket = wire_connect(port), .request = make_request(command, i), .ending = &ending};
        call(callers[i].socket, callers[i].request);
    }
    int64_t started_ns = now_ns();
    for (int i = 0; i < connections; i++)
        pthread_create(&callers[i].thread, NULL, call_on, &callers[i]);
    usleep((useconds_t)measure_count(ROUND_US, ROUND_US / 10));
    atomic_store(&ending, true);
    for (int i = 0; i < connections; i++) {
        pthread_join(callers[i].thread, NULL);
        count += callers[i].count;
        bson_destroy(callers[i].request);
        close(callers[i].socket);
    }
    *all += (double)count;
    return (double)count * 1e9 / (double)(now_ns() - started_ns);
}

static void measure_throughput(measure_report_t *report, char **ports, const char *command,
                               int connections, int rounds, int gateway)
{
    static double rates[2][ROUNDS_MAX];
    double counts[2] = {0}, started_us = wire_processor_us(gateway);
    for (int round = 0; round < rounds; round++)
        for (int side = 0; side < 2; side++)
            rates[side][round] = measure_side(ports[side], command, connections, &counts[side]);
    double direct = measure_median(rates[0], (size_t)rounds);
    double relayed = measure_median(rates[1], (size_t)rounds);
    printf("%s, %d connections, median of %d: direct %.0f/s, relayed %.0f/s, ratio %.2f", command,
           connections, rounds, direct, relayed, relayed / direct);
    measure_print_bar(report, relayed / direct, throughput, false);
    if (gateway > 0)
        printf("; the gateway's processor time: %.1f us",
               (wire_processor_us(gateway) - started_us) / counts[1]);
    printf("\n");
}

int main(int argc, char **argv)
{
    static const char *const commands[] = {"ping", "find", "update", "insert"};
    measure_report_t report = {0};
    if (argc < 3)
        measure_stop("usage: bench_gateway DIRECT_PORT GATEWAY_PORT [ROUNDS [PROCESS]]");
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    int gateway = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        measure_stop("ROUNDS is 1 to %d", ROUNDS_MAX);
    measure_latency(&report, argv + 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (int connections = 8; connections <= CONNECTIONS_MAX; connections *= 8)
            measure_throughput(&report, argv + 1, commands[i], connections, rounds, gateway);
    return report.failed;
}
