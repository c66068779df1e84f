/*
 * Eight processes append, count and read on a server at the same time, through a proxy that cuts
 * connections, delays requests and truncates answers. The test kills processes at random and
 * replaces them. Afterwards the verifier must find nothing, every acknowledged element must exist
 * exactly once, and the processes' histories must be linearizable: an independent checker searches
 * for one order of all operations in which a plain list would have given the same answers.
 * docs/internals/linearizability.md explains what that shows.
 *
 * SPILLWAY_SEED determines the faults, the kills and the operations, but not how the processes
 * interleave. SPILLWAY_LONG=1 runs for ten minutes.
 */
#include "history.h"
#include "outcome.h"
#include "worker.h"

#include "simulation/random.h"
#include "support/effort.h"
#include "support/proxy.h"
#include "support/server.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    PROCESSES = 8,
    WORKERS = PROCESSES * WORKER_THREADS,
    SECONDS = 8,
    SECONDS_LONG = 600,
    ROUND_MS = 2000
};

static const proxy_plan_t faults = {
    .rate = {[PROXY_CUT_BEFORE] = 8,
             [PROXY_CUT_REQUEST] = 8,
             [PROXY_CUT_AFTER] = 10,
             [PROXY_CUT_REPLY] = 10,
             [PROXY_LATE] = 10,
             [PROXY_DELAY] = 500},
    .delay_us = 30000,
    .late_us = 1500000, /* longer than the driver needs to reconnect and retry */
};

typedef struct run {
    sim_random_t random;
    char *uri;     /* direct, to the server */
    char *through; /* by way of the proxy */
    char folder[64];
    spill_store_t *store;
    proxy_t *proxy;
    worker_plan_t plan;
    pid_t processes[PROCESSES];
    int kills;
    outcome_t outcome;
} run_t;

static uint64_t chosen_seed(void)
{
    const char *text = getenv("SPILLWAY_SEED");
    return text != NULL ? strtoull(text, NULL, 10) : 1;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void start_process(run_t *run, int number)
{
    run->processes[number] = worker_start(&run->plan, number, sim_random_next(&run->random));
    assert_true(run->processes[number] > 0);
}

/* Wait for a process. Fails the test if the process did not end as expected. */
static void wait_for_worker(run_t *run, int number, bool killed)
{
    int status;
    assert_int_equal(waitpid(run->processes[number], &status, 0), run->processes[number]);
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well && !(killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        fail_msg("process %d ended by itself with status %x; see its output above", number,
                 (unsigned)status);
}

static void kill_and_replace(run_t *run)
{
    int number = sim_random_below(&run->random, PROCESSES);
    kill(run->processes[number], SIGKILL);
    wait_for_worker(run, number, true);
    run->kills++;
    start_process(run, number);
}

static void run_until_end(run_t *run)
{
    run->plan = (worker_plan_t){.uri = run->through,
                                .folder = run->folder,
                                .began = history_now(),
                                .round = ROUND_MS * INT64_C(1000000)};
    run->plan.ends = run->plan.began + effort(SECONDS_LONG, SECONDS, SECONDS) * 1000000000;
    for (int i = 0; i < PROCESSES; i++)
        start_process(run, i);
    while (history_now() < run->plan.ends) {
        usleep((useconds_t)sim_random_between(&run->random, 50000, 400000));
        kill_and_replace(run);
    }
    for (int i = 0; i < PROCESSES; i++)
        wait_for_worker(run, i, false);
}

static void print_counts(const run_t *run)
{
    proxy_counts_t counts = proxy_counts(run->proxy);
    print_message("%d processes killed, %" PRId64 " requests on %" PRId64 " connections:",
                  run->kills, counts.requests, counts.connections);
    for (int i = 0; i < PROXY_FAULT_COUNT; i++)
        print_message("%s %" PRId64 " %s", i == 0 ? "" : ",", counts.faults[i],
                      proxy_fault_name((proxy_fault_t)i));
    print_message("\n");
    for (int i = 0; i < PROXY_FAULT_COUNT; i++)
        assert_true(counts.faults[i] > 0);
}

static int run_workers(void **state)
{
    run_t *run = bson_malloc0(sizeof *run);
    *state = run;
    proxy_plan_t plan = faults;
    plan.seed = run->random.state = chosen_seed();
    print_message("SPILLWAY_SEED=%" PRIu64 "\n", chosen_seed());
    snprintf(run->folder, sizeof run->folder, "/tmp/spillway-concurrent-XXXXXX");
    assert_non_null(mkdtemp(run->folder));
    run->uri = server_new_database(NULL);
    run->store = server_open(run->uri);
    worker_define(run->store);
    run->proxy = proxy_start(server_uri());
    run->through = proxy_uri(run->proxy, run->uri);
    proxy_set_plan(run->proxy, &plan);
    run_until_end(run);
    print_counts(run);
    proxy_stop(run->proxy);
    outcome_read(&run->outcome, run->store, run->folder, WORKERS);
    return 0;
}

static int release_run(void **state)
{
    run_t *run = *state;
    server_close(run->store);
    server_drop(run->uri);
    outcome_release(&run->outcome);
    bson_free(run->through);
    bson_free(run->uri);
    bson_free(run);
    return 0;
}

/* ---- what must be true afterwards ------------------------------------------------------------ */

static void test_verifies(void **state)
{
    run_t *run = *state;
    outcome_verify(run->store);
}

static void test_acknowledged_exactly_once(void **state)
{
    run_t *run = *state;
    outcome_check(&run->outcome, run->folder, WORKERS);
    const outcome_t *outcome = &run->outcome;
    print_message("%" PRId64 " appends to %zu owners, %" PRId64 " with unknown outcome, %" PRId64
                  " of them stored; %" PRId64 " removals and trims\n",
                  outcome->appends, outcome->owner_count, outcome->unknown, outcome->stood,
                  outcome->removals);
    assert_true(outcome->appends > outcome->unknown && outcome->removals > 0);
}

/* The histories are kept if they are not linearizable. */
static void test_linearizable(void **state)
{
    run_t *run = *state;
    int code = history_check(run->folder);
    if (code != 0)
        fail_msg("not linearizable, or not checked (%d): see above, and the histories in %s", code,
                 run->folder);
    char *command = bson_strdup_printf("rm -r %s", run->folder);
    assert_int_equal(system(command), 0);
    bson_free(command);
}

int main(int count, char **arguments)
{
    worker_run_if_asked(count, arguments);
    server_uri();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verifies),
        cmocka_unit_test(test_acknowledged_exactly_once),
        cmocka_unit_test(test_linearizable),
    };
    return cmocka_run_group_tests(tests, run_workers, release_run);
}
