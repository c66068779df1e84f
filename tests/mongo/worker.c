#include "worker.h"

#include "operations.h"
#include "support/server.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

const char *const worker_array_names[WORKER_ARRAYS] = {"newest", "oldest"};

typedef struct process {
    worker_plan_t plan;
    spill_array_t *arrays[WORKER_ARRAYS];
} process_t;

/* One thread of the process. */
typedef struct thread {
    const process_t *process;
    worker_t worker;
    pthread_t id;
} thread_t;

void worker_define(spill_store_t *store)
{
    for (int i = 0; i < WORKER_ARRAYS; i++) {
        spill_definition_t definition;
        spill_error_t error;
        const char *name = worker_array_names[i];
        spill_definition_init(&definition, name);
        snprintf(definition.collection, sizeof definition.collection, "%s", name);
        snprintf(definition.page_collection, sizeof definition.page_collection, "%s.pages", name);
        definition.keep = i == 0 ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST;
        definition.bounds.threshold = OPERATIONS_THRESHOLD;
        definition.bounds.page_capacity = OPERATIONS_PAGE_CAPACITY;
        definition.op_window = OPERATIONS_WINDOW;
        spill_code_t code = spill_store_define(store, &definition, &error);
        if (code != SPILL_OK)
            operation_failed("define", code, &error);
    }
}

static spill_store_t *open_store(const char *uri)
{
    spill_store_t *store;
    spill_error_t error;
    spill_code_t code;
    while ((code = spill_store_open(uri, NULL, &store, &error)) != SPILL_OK)
        if (!operation_may_repeat(code, &error))
            operation_failed("open", code, &error);
    return store;
}

static spill_array_t *open_array(spill_store_t *store, const char *name)
{
    spill_array_t *array;
    spill_error_t error;
    spill_code_t code;
    while ((code = spill_array_open(store, name, &array, &error)) != SPILL_OK)
        if (!operation_may_repeat(code, &error))
            operation_failed("open an array", code, &error);
    return array;
}

/* Initialize the place that a history names. */
static void named_place(const process_t *process, const char *name, place_t *place)
{
    const char *slash = strchr(name, '/');
    size_t length = slash != NULL ? (size_t)(slash - name) : 0;
    int array = 0;
    while (array < WORKER_ARRAYS && (strlen(worker_array_names[array]) != length ||
                                     strncmp(worker_array_names[array], name, length) != 0))
        array++;
    if (array == WORKER_ARRAYS) {
        fprintf(stderr, "worker: unknown array in '%s'\n", name);
        _exit(3);
    }
    place_init(place, process->arrays[array], slash + 1);
}

/*
 * Choose an owner: most often the owner that all workers share in this round, sometimes the owner
 * with removals, otherwise this worker's own owner of the round.
 */
static void draw_place(thread_t *thread, place_t *place, bool *changes)
{
    char owner[HISTORY_OWNER_SIZE - 8];
    const worker_plan_t *plan = &thread->process->plan;
    int64_t round = (history_now() - plan->began) / plan->round;
    int array = sim_random_below(&thread->worker.random, WORKER_ARRAYS);
    int drawn = sim_random_below(&thread->worker.random, 100);
    *changes = drawn >= 55 && drawn < 80;
    if (drawn < 55)
        snprintf(owner, sizeof owner, "hot-%" PRId64, round);
    else if (*changes)
        snprintf(owner, sizeof owner, WORKER_CHANGED "%" PRId64, round);
    else
        snprintf(owner, sizeof owner, "own-%d-%" PRId64, thread->worker.number, round / 4);
    place_init(place, thread->process->arrays[array], owner);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void work_once(thread_t *thread)
{
    place_t place;
    bool changes;
    draw_place(thread, &place, &changes);
    int drawn = sim_random_below(&thread->worker.random, 100);
    if (changes && drawn < 45)
        operation_change(&thread->worker, &place);
    else if (drawn < 65)
        operation_append(&thread->worker, &place);
    else if (changes || drawn < 80)
        operation_count(&thread->worker, &place);
    else
        operation_read(&thread->worker, &place);
    place_release(&place);
}

static void *work_until_end(void *argument)
{
    thread_t *thread = argument;
    const process_t *process = thread->process;
    worker_t *worker = &thread->worker;
    history_append_t open;
    if (history_open(&worker->history, process->plan.folder, worker->number, &open)) {
        place_t place;
        named_place(process, open.owner, &place);
        operation_append_again(worker, &place, &open);
        place_release(&place);
    }
    while (history_now() < process->plan.ends)
        work_once(thread);
    history_close(&worker->history);
    return NULL;
}

static void run_threads(const process_t *process, int number, sim_random_t *random)
{
    thread_t threads[WORKER_THREADS];
    for (int i = 0; i < WORKER_THREADS; i++) {
        threads[i] = (thread_t){.process = process,
                                .worker = {.number = number * WORKER_THREADS + i,
                                           .random.state = sim_random_next(random)}};
        if (pthread_create(&threads[i].id, NULL, work_until_end, &threads[i]) != 0)
            _exit(3);
    }
    for (int i = 0; i < WORKER_THREADS; i++)
        pthread_join(threads[i].id, NULL);
}

pid_t worker_start(const worker_plan_t *plan, int number, uint64_t seed)
{
    char numbers[5][24];
    int64_t values[5] = {plan->began, plan->ends, plan->round, number, (int64_t)seed};
    char *arguments[] = {
        (char *)"concurrent", (char *)"worker", (char *)plan->uri, (char *)plan->folder, numbers[0],
        numbers[1],           numbers[2],       numbers[3],        numbers[4],           NULL};
    for (int i = 0; i < 5; i++)
        snprintf(numbers[i], sizeof numbers[i], "%" PRId64, values[i]);
    /* A killed process would leave the driver's shared memory behind. */
    setenv("MONGOC_DISABLE_SHM", "1", 1);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no process behind */
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    return pid;
}

void worker_run_if_asked(int argument_count, char **arguments)
{
    if (argument_count != 9 || strcmp(arguments[1], "worker") != 0)
        return;
    process_t process = {.plan = {.uri = arguments[2],
                                  .folder = arguments[3],
                                  .began = strtoll(arguments[4], NULL, 10),
                                  .ends = strtoll(arguments[5], NULL, 10),
                                  .round = strtoll(arguments[6], NULL, 10)}};
    sim_random_t random = {.state = (uint64_t)strtoll(arguments[8], NULL, 10)};
    mongoc_log_set_handler(NULL, NULL); /* it would report every connection that the proxy cuts */
    spill_store_t *store = open_store(process.plan.uri);
    for (int i = 0; i < WORKER_ARRAYS; i++)
        process.arrays[i] = open_array(store, worker_array_names[i]);
    run_threads(&process, atoi(arguments[7]), &random);
    for (int i = 0; i < WORKER_ARRAYS; i++)
        spill_array_close(process.arrays[i]);
    server_close(store);
    exit(0);
}
