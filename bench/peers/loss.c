/*
 * Works that count lost, duplicated and misordered elements while threads append to one owner, and
 * after such a process is killed. After the kill another process does what a restarted application
 * would: it repeats each thread's append that was begun and not acknowledged.
 */
#include "../measure.h"
#include "works.h"

#include <bson/bson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RACERS_MAX = 64, COUNT_MAX = 1 << 20, POLL_US = 200, ID_SIZE = 32 };

static const char owner[] = "owner-000000";

/* A thread's begun and acknowledged appends, in memory shared between processes. */
typedef struct racer {
    _Atomic int64_t begun; /* appends begun; the last one may not be acknowledged */
    _Atomic int64_t acknowledged;
    _Atomic int64_t base; /* of the last append begun */
} racer_t;

typedef struct race {
    const peer_t *peer;
    void *opened;
    racer_t *racers; /* shared memory */
} race_t;

static int64_t number_of(int racer, int64_t count)
{
    return (int64_t)racer * COUNT_MAX + count;
}

/* The racer's last begun operation. */
static int64_t append_begun(race_t *race, void *connection, int racer)
{
    racer_t *progress = &race->racers[racer];
    int64_t count = progress->begun - 1;
    uint8_t element[ELEMENT_BYTES];
    char id[ID_SIZE];
    peer_op_t op = {.id = id, .base = progress->base};
    snprintf(id, sizeof id, "%d-%lld", racer, (long long)count);
    measure_element(element, (uint64_t)number_of(racer, count));
    return race->peer->append(connection, owner, element, &op);
}

static void append_in_turn(void *context, int thread, int count)
{
    race_t *race = context;
    racer_t *progress = &race->racers[thread];
    void *connection = race->peer->join(race->opened);
    int64_t base = 0;
    for (int i = 0; i < count; i++) {
        progress->base = base;
        progress->begun = i + 1;
        base = append_begun(race, connection, thread);
        progress->acknowledged = i + 1;
    }
    race->peer->leave(connection);
}

/* ---- counting -------------------------------------------------------------------------------- */

typedef struct losses {
    const racer_t *racers;
    int count;                /* of racers */
    int64_t last[RACERS_MAX]; /* the count in each racer's last element; -1: none so far */
    uint8_t *seen[RACERS_MAX];
    int64_t lost, doubled, disordered, unknown;
} losses_t;

static void count_element(void *context, const uint8_t *data, size_t size)
{
    losses_t *losses = context;
    bson_t element;
    bson_iter_t at;
    if (!bson_init_static(&element, data, size) || !bson_iter_init_find(&at, &element, "at"))
        measure_stop("an element was never appended");
    int64_t number = (bson_iter_date_time(&at) - INT64_C(1600000000000)) / 1000;
    int64_t racer = number / COUNT_MAX, count = number % COUNT_MAX;
    if (racer < 0 || racer >= losses->count || count >= losses->racers[racer].begun) {
        losses->unknown++;
        return;
    }
    uint8_t *seen = &losses->seen[racer][count];
    losses->doubled += *seen;
    *seen = 1;
    losses->disordered += count < losses->last[racer];
    losses->last[racer] = count > losses->last[racer] ? count : losses->last[racer];
}

static void count_losses(race_t *race, void *connection, int racers, row_t *row)
{
    losses_t losses = {.racers = race->racers, .count = racers};
    int64_t acknowledged = 0;
    for (int i = 0; i < racers; i++) {
        losses.last[i] = -1;
        losses.seen[i] = calloc(COUNT_MAX, 1);
    }
    race->peer->all(connection, owner, count_element, &losses);
    for (int i = 0; i < racers; i++) {
        for (int64_t count = 0; count < race->racers[i].acknowledged; count++)
            losses.lost += !losses.seen[i][count];
        acknowledged += race->racers[i].acknowledged;
        free(losses.seen[i]);
    }
    row_add(row, (double)acknowledged);
    row_add(row, (double)losses.lost);
    row_add(row, (double)losses.doubled);
    row_add(row, (double)losses.disordered);
    row_add(row, (double)losses.unknown);
}

static void find_faults(const race_t *race, void *connection, row_t *row)
{
    if (race->peer->faults)
        race->peer->faults(connection, owner, row->note, sizeof row->note);
}

static racer_t *shared_racers(void)
{
    racer_t *racers = mmap(NULL, RACERS_MAX * sizeof *racers, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (racers == MAP_FAILED)
        measure_stop("no memory");
    return racers;
}

static void open_race(race_t *race, const peer_place_t *place)
{
    race->opened = race->peer->open(place);
    if (race->peer->begin && place->fresh) {
        void *connection = race->peer->join(race->opened);
        race->peer->begin(connection, owner);
        race->peer->leave(connection);
    }
}

/* ---- a race ---------------------------------------------------------------------------------- */

static void run_race(const peer_t *peer, const peer_place_t *place, const works_options_t *options,
                     row_t *row)
{
    race_t race = {.peer = peer, .racers = shared_racers()};
    open_race(&race, place);
    double seconds = measure_threads(append_in_turn, &race, options->racers, options->race_count);
    void *connection = peer->join(race.opened);
    count_losses(&race, connection, options->racers, row);
    row_add(row, options->racers * options->race_count / seconds);
    find_faults(&race, connection, row);
    peer->leave(connection);
    peer->close(race.opened);
}

/* ---- a kill ---------------------------------------------------------------------------------- */

static int64_t acknowledged_by(const race_t *race, int racers)
{
    int64_t sum = 0;
    for (int i = 0; i < racers; i++)
        sum += race->racers[i].acknowledged;
    return sum;
}

/* Start a process that appends, and kill it when half of all appends are acknowledged. */
static void append_and_be_killed(race_t *race, const peer_place_t *place,
                                 const works_options_t *options)
{
    pid_t child = fork();
    if (child == 0) {
        open_race(race, place);
        measure_threads(append_in_turn, race, options->racers, options->race_count);
        pause(); /* all appends done: wait for the kill */
    }
    int64_t half = (int64_t)options->racers * options->race_count / 2;
    int status = 0;
    while (acknowledged_by(race, options->racers) < half && waitpid(child, &status, WNOHANG) == 0)
        usleep(POLL_US);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    if (acknowledged_by(race, options->racers) < half)
        measure_stop("%s: the process ended before it was killed", race->peer->name);
}

static void run_kill(const peer_t *peer, const peer_place_t *place, const works_options_t *options,
                     row_t *row)
{
    race_t race = {.peer = peer, .racers = shared_racers()};
    peer_place_t again = *place;
    again.fresh = false;
    append_and_be_killed(&race, place, options);
    open_race(&race, &again);
    void *connection = peer->join(race.opened);
    int64_t retried = 0;
    for (int i = 0; i < options->racers; i++) {
        racer_t *progress = &race.racers[i];
        if (progress->begun == progress->acknowledged)
            continue;
        append_begun(&race, connection, i);
        progress->acknowledged = (int64_t)progress->begun;
        retried++;
    }
    count_losses(&race, connection, options->racers, row);
    row_add(row, (double)retried);
    find_faults(&race, connection, row);
    peer->leave(connection);
    peer->close(race.opened);
}

#define LOSS_COLUMNS                                                                               \
    {"acknowledged", "acknowl.", 0}, {"lost", "lost", 0}, {"doubled", "doubled", 0},               \
        {"disordered", "disordered", 0},                                                           \
    {                                                                                              \
        "unknown", "unknown", 0                                                                    \
    }

const work_t work_race = {.name = "race",
                          .columns = {LOSS_COLUMNS, {"perSecond", "appends/s", 0}},
                          .counts_loss = true,
                          .run = run_race};
const work_t work_kill = {.name = "kill",
                          .columns = {LOSS_COLUMNS, {"retried", "retried", 0}},
                          .counts_loss = true,
                          .run = run_kill};
