/*
 * What the gateway's relay costs:
 *
 *   bench_gateway DIRECT_PORT GATEWAY_PORT [ROUNDS [PROCESS]]
 *
 * Both are ports of 127.0.0.1, without TLS and without users: a server, and a gateway in front of
 * it (bench/gateway starts both). It prints the p50 of a ping, each on one connection in turns, and
 * the pings per second of 8 and of 64 connections, in rounds of a second in turns. With the
 * gateway's process id also its processor time for each ping. Only the ratios of one run say
 * something.
 */
#include "wire_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, LATENCIES = 4000, WARM = 200 };

typedef struct pinger {
    pthread_t thread;
    int socket;
    atomic_bool *ending;
    long count;
} pinger_t;

static bson_t request = BSON_INITIALIZER;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void ping(int socket)
{
    bson_t reply;
    wire_call(socket, &request, &reply);
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

static void measure_latency(char **ports)
{
    static int64_t durations_ns[2][LATENCIES];
    int sockets[2] = {wire_connect(ports[0]), wire_connect(ports[1])};
    for (int i = -WARM; i < LATENCIES; i++) {
        for (int side = 0; side < 2; side++) {
            int64_t started_ns = now_ns();
            ping(sockets[side]);
            if (i >= 0)
                durations_ns[side][i] = now_ns() - started_ns;
        }
    }
    double direct_us = median_us(durations_ns[0]), relayed_us = median_us(durations_ns[1]);
    printf("ping, p50: direct %.0f us, relayed %.0f us, added %.0f us\n", direct_us, relayed_us,
           relayed_us - direct_us);
    close(sockets[0]);
    close(sockets[1]);
}

/* ---- throughput ------------------------------------------------------------------------------ */

static void *ping_on(void *context)
{
    pinger_t *pinger = context;
    while (!atomic_load(pinger->ending)) {
        ping(pinger->socket);
        pinger->count++;
    }
    return NULL;
}

/* The pings per second of so many connections. */
static double measure_side(const char *port, int connections)
{
    static pinger_t pingers[CONNECTIONS_MAX];
    atomic_bool ending = false;
    long count = 0;
    for (int i = 0; i < connections; i++) {
        pingers[i] = (pinger_t){.socket = wire_connect(port), .ending = &ending};
        ping(pingers[i].socket);
    }
    int64_t started_ns = now_ns();
    for (int i = 0; i < connections; i++)
        pthread_create(&pingers[i].thread, NULL, ping_on, &pingers[i]);
    sleep(1);
    atomic_store(&ending, true);
    for (int i = 0; i < connections; i++) {
        pthread_join(pingers[i].thread, NULL);
        count += pingers[i].count;
        close(pingers[i].socket);
    }
    return (double)count * 1e9 / (double)(now_ns() - started_ns);
}

static void measure_throughput(char **ports, int connections, int rounds, int gateway)
{
    double best[2] = {0}, pings = 0, started_us = wire_processor_us(gateway);
    for (int round = 0; round < rounds; round++) {
        for (int side = 0; side < 2; side++) {
            double rate = measure_side(ports[side], connections);
            best[side] = rate > best[side] ? rate : best[side];
            pings += side == 1 ? rate : 0; /* a round takes a second */
        }
    }
    printf("%d connections, best of %d: direct %.0f/s, relayed %.0f/s, ratio %.2f\n", connections,
           rounds, best[0], best[1], best[1] / best[0]);
    if (gateway > 0)
        printf("  the gateway's processor time for a ping: %.1f us\n",
               (wire_processor_us(gateway) - started_us) / pings);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_gateway DIRECT_PORT GATEWAY_PORT [ROUNDS [PROCESS]]\n");
        return 2;
    }
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    BCON_APPEND(&request, "ping", BCON_INT32(1), "$db", BCON_UTF8("admin"));
    int gateway = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    measure_latency(argv + 1);
    measure_throughput(argv + 1, 8, rounds, gateway);
    measure_throughput(argv + 1, CONNECTIONS_MAX, rounds, gateway);
    bson_destroy(&request);
    return 0;
}
