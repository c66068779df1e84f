/*
 * What a push through the gateway costs, beside the same push that goes to the server directly:
 *
 *   bench_gateway_push DIRECT_PORT GATEWAY_PORT [ROUNDS [PROCESS]]
 *
 * Database `bench` must have definitions of array f of the collections `served` and `hot`, and
 * owner "long" of `served` a long array (bench/gateway makes them). It prints
 *
 *   plain  a push to a short array that no definition has touched
 *   long   a push to "long", beside a direct one to an empty array; with the pushes that spill
 *   hot    the pushes per second of 32 connections to one owner
 *
 * and with the gateway's process id its processor time for each push. Only the ratios of one run
 * say something. docs/internals/benchmarks/gateway.md has the bars.
 */
#include "measure.h"
#include "wire_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PUSHES = 1500,
    WARM = 50,
    PLAIN_LENGTH = 10,
    HOT = 32,
    HOT_SECONDS = 2,
    DIRECT = 0,
    GATEWAY = 1,
    SIDES = 2
};
enum { OWNER_SIZE = 48 };

/* The bars: ratios of the p50 of a push, and of pushes per second, to direct pushes. */
static const double plain_bar = 1.1, long_bar = 1.4, hot_bar = 6;

static const char *const collections[SIDES] = {"direct", "served"};
static const char *const hot_collections[SIDES] = {"direct", "hot"};

/* ---- commands -------------------------------------------------------------------------------- */

static void insert(int socket, const char *collection, const char *owner)
{
    bson_t reply;
    bson_t *command =
        BCON_NEW("insert", BCON_UTF8(collection), "documents", "[", "{", "_id", BCON_UTF8(owner),
                 "f", "[", "]", "}", "]", "$db", BCON_UTF8("bench"));
    wire_call(socket, command, &reply);
    bson_destroy(&reply);
    bson_destroy(command);
}

static bson_t *make_push(const char *collection, const char *owner)
{
    return BCON_NEW("update", BCON_UTF8(collection), "updates", "[", "{", "q", "{", "_id",
                    BCON_UTF8(owner), "}", "u", "{", "$push", "{", "f", "{", "n", BCON_INT32(1),
                    "text", BCON_UTF8("some words of a comment"), "}", "}", "}", "}", "]", "$db",
                    BCON_UTF8("bench"));
}

/* Push one element. Returns the seconds. */
static double push(int socket, const bson_t *command)
{
    bson_t reply;
    double started = measure_now();
    wire_call(socket, command, &reply);
    double seconds = measure_now() - started;
    if (wire_number(&reply, "n") != 1)
        measure_stop("a push finds no document");
    bson_destroy(&reply);
    return seconds;
}

/* ---- one connection -------------------------------------------------------------------------- */

static int compare_seconds(const void *left, const void *right)
{
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

/* The fastest tenth is nearly free of other processes' noise; the mean includes spills. */
static int push_count(void)
{
    return measure_count(PUSHES, PUSHES / 10);
}

static void print_costs(measure_report_t *report, const char *what, double bar,
                        double seconds[SIDES][PUSHES])
{
    double mean[SIDES] = {0}, ratio = 0;
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; i < push_count(); i++)
            mean[side] += seconds[side][i] / push_count();
        qsort(seconds[side], (size_t)push_count(), sizeof(double), compare_seconds);
    }
    printf("%s:", what);
    for (int tenths = 1; tenths <= 5; tenths += 4) {
        double direct = seconds[DIRECT][push_count() * tenths / 10];
        double through = seconds[GATEWAY][push_count() * tenths / 10];
        ratio = through / direct;
        printf(" p%d0 direct %.0f us, gateway %.0f us, ratio %.2f%s", tenths, direct * 1e6,
               through * 1e6, ratio, tenths == 1 ? ";" : "");
    }
    measure_print_bar(report, ratio, bar, true);
    printf("; mean ratio %.2f", mean[GATEWAY] / mean[DIRECT]);
}

/* `pushes`: that the gateway has carried out since it had used `before_us`. */
static void print_processor(int gateway, double before_us, double pushes)
{
    if (gateway > 0)
        printf("; the gateway's processor time: %.1f us",
               (wire_processor_us(gateway) - before_us) / pushes);
    printf("\n");
}

/* A name that no earlier run on the same server has used. */
static void name_owner(char name[OWNER_SIZE], const char *kind, int number)
{
    snprintf(name, OWNER_SIZE, "%s %d of %d", kind, number, (int)getpid());
}

static void measure_plain(measure_report_t *report, const int *sockets, int gateway)
{
    double before_us = wire_processor_us(gateway);
    static double seconds[SIDES][PUSHES];
    char owner[OWNER_SIZE];
    for (int i = -WARM; i < push_count(); i++) {
        name_owner(owner, "plain", i < 0 ? -1 : i / PLAIN_LENGTH);
        for (int side = 0; side < SIDES; side++) {
            if (i == -WARM || (i >= 0 && i % PLAIN_LENGTH == 0))
                insert(sockets[side], collections[side], owner);
            bson_t *command = make_push(collections[side], owner);
            double took = push(sockets[side], command);
            if (i >= 0)
                seconds[side][i] = took;
            bson_destroy(command);
        }
    }
    print_costs(report, "plain", plain_bar, seconds);
    print_processor(gateway, before_us, push_count() + WARM);
}

static void measure_long(measure_report_t *report, const int *sockets, int gateway)
{
    double before_us = wire_processor_us(gateway);
    static double seconds[SIDES][PUSHES];
    char owner[OWNER_SIZE];
    bson_t *own = make_push(collections[GATEWAY], "long");
    for (int i = -WARM; i < push_count(); i++) {
        name_owner(owner, "empty", i);
        insert(sockets[DIRECT], collections[DIRECT], owner);
        bson_t *command = make_push(collections[DIRECT], owner);
        double direct = push(sockets[DIRECT], command), through = push(sockets[GATEWAY], own);
        if (i >= 0) {
            seconds[DIRECT][i] = direct;
            seconds[GATEWAY][i] = through;
        }
        bson_destroy(command);
    }
    bson_destroy(own);
    print_costs(report, "long", long_bar, seconds);
    print_processor(gateway, before_us, push_count() + WARM);
}

/* ---- a hot owner ----------------------------------------------------------------------------- */

typedef struct pusher {
    pthread_t thread;
    int socket;
    const bson_t *command;
    atomic_bool *ending;
    long count;
} pusher_t;

static void *push_on(void *context)
{
    pusher_t *pusher = context;
    for (; !atomic_load(pusher->ending); pusher->count++)
        push(pusher->socket, pusher->command);
    return NULL;
}

/* The pushes per second to a new owner. */
static double measure_hot_side(const char *port, const char *collection, const char *owner)
{
    static pusher_t pushers[HOT];
    atomic_bool ending = false;
    long count = 0;
    bson_t *command = make_push(collection, owner);
    for (int i = 0; i < HOT; i++)
        pushers[i] =
            (pusher_t){.socket = wire_connect(port), .command = command, .ending = &ending};
    insert(pushers[0].socket, collection, owner);
    for (int i = 0; i < HOT; i++)
        push(pushers[i].socket, command);
    double started = measure_now();
    for (int i = 0; i < HOT; i++)
        pthread_create(&pushers[i].thread, NULL, push_on, &pushers[i]);
    sleep((unsigned)measure_count(HOT_SECONDS, 1));
    atomic_store(&ending, true);
    for (int i = 0; i < HOT; i++) {
        pthread_join(pushers[i].thread, NULL);
        count += pushers[i].count;
        close(pushers[i].socket);
    }
    bson_destroy(command);
    return (double)count / (measure_now() - started);
}

static void measure_hot(measure_report_t *report, char **ports, int rounds, int gateway)
{
    double pushes = 0, before_us = wire_processor_us(gateway);
    static double rates[SIDES][ROUNDS_MAX];
    char owner[OWNER_SIZE];
    for (int round = 0; round < rounds; round++) {
        name_owner(owner, "hot", round);
        for (int side = 0; side < SIDES; side++)
            rates[side][round] = measure_hot_side(ports[side], hot_collections[side], owner);
        pushes += rates[GATEWAY][round] * measure_count(HOT_SECONDS, 1);
    }
    double direct = measure_median(rates[DIRECT], (size_t)rounds);
    double through = measure_median(rates[GATEWAY], (size_t)rounds);
    printf("hot, %d connections, median of %d: direct %.0f/s, gateway %.0f/s, ratio %.1f", HOT,
           rounds, direct, through, through / direct);
    measure_print_bar(report, through / direct, hot_bar, false);
    print_processor(gateway, before_us, pushes);
}

int main(int argc, char **argv)
{
    measure_report_t report = {0};
    if (argc < 3)
        measure_stop("usage: bench_gateway_push DIRECT_PORT GATEWAY_PORT [ROUNDS [PROCESS]]");
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        measure_stop("ROUNDS is 1 to %d", ROUNDS_MAX);
    int gateway = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    int sockets[SIDES] = {wire_connect(argv[1]), wire_connect(argv[2])};
    measure_plain(&report, sockets, gateway);
    measure_long(&report, sockets, gateway);
    measure_hot(&report, argv + 1, rounds, gateway);
    close(sockets[DIRECT]);
    close(sockets[GATEWAY]);
    return report.failed;
}
