/*
 * What the gateway's relay costs:
 *
 *   bench_gateway DIRECT_PORT GATEWAY_PORT [ROUNDS]
 *
 * Both are ports of 127.0.0.1, without TLS and without users: a server, and a gateway in front of
 * it (bench/gateway starts both). It prints the p50 of a ping, each on one connection in turns, and
 * the pings per second of 8 and of 64 connections, in rounds of a second in turns. Only the ratios
 * of one run say something.
 */
#include "gateway/wire.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, LATENCIES = 4000, WARM = 200 };

typedef struct pinger {
    pthread_t thread;
    int socket;
    atomic_bool *ending;
    long count;
} pinger_t;

static spill_buffer_t request = SPILL_BUFFER_INIT;

static void stop(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int connect_to(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, made = socket(AF_INET, SOCK_STREAM, 0);
    if (made < 0 || connect(made, (struct sockaddr *)&address, sizeof address) != 0)
        stop(port);
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
}

static void ping(int socket)
{
    uint8_t reply[4096];
    spill_wire_header_t header;
    size_t got = 0, wanted = SPILL_WIRE_HEADER_BYTES;
    if (send(socket, request.data, request.size, 0) != (ssize_t)request.size)
        stop("send");
    while (got < wanted) {
        ssize_t part = recv(socket, reply + got, sizeof reply - got, 0);
        if (part <= 0)
            stop("recv");
        got += (size_t)part;
        if (got < SPILL_WIRE_HEADER_BYTES)
            continue;
        if (spill_wire_read_header(reply, sizeof reply, &header, NULL) != SPILL_OK)
            stop("reply");
        wanted = (size_t)header.length;
    }
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
    int sockets[2] = {connect_to(ports[0]), connect_to(ports[1])};
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
    static pinger_t pingers[THREADS_MAX];
    atomic_bool ending = false;
    long count = 0;
    for (int i = 0; i < connections; i++) {
        pingers[i] = (pinger_t){.socket = connect_to(port), .ending = &ending};
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

static void measure_throughput(char **ports, int connections, int rounds)
{
    double best[2] = {0};
    for (int round = 0; round < rounds; round++) {
        for (int side = 0; side < 2; side++) {
            double rate = measure_side(ports[side], connections);
            best[side] = rate > best[side] ? rate : best[side];
        }
    }
    printf("%d connections, best of %d: direct %.0f/s, relayed %.0f/s, ratio %.2f\n", connections,
           rounds, best[0], best[1], best[1] / best[0]);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_gateway DIRECT_PORT GATEWAY_PORT [ROUNDS]\n");
        return 2;
    }
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    bson_t *body = BCON_NEW("ping", BCON_INT32(1), "$db", BCON_UTF8("admin"));
    spill_wire_write(&request, 1, 0, 0, body, NULL, 0);
    bson_destroy(body);
    measure_latency(argv + 1);
    measure_throughput(argv + 1, 8, rounds);
    measure_throughput(argv + 1, THREADS_MAX, rounds);
    spill_buffer_release(&request);
    return 0;
}
