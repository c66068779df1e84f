#include "worker.h"

#include "history.h"
#include "simulation/random.h"
#include "support/server.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THRESHOLD = 5, PAGE_CAPACITY = 3, OP_WINDOW = 100 };

const char *const worker_array_names[WORKER_ARRAYS] = {"newest", "oldest"};

typedef struct process {
    worker_plan_t plan;
    spill_array_t *arrays[WORKER_ARRAYS];
} process_t;

/* One thread of it. */
typedef struct worker {
    const process_t *process;
    int number;
    sim_random_t random;
    history_t history;
} worker_t;

/* An owner of one of the arrays. */
typedef struct place {
    spill_array_t *array;
    char name[HISTORY_OWNER_SIZE]; /* "array/owner" */
    bson_t storage;
    spill_value_t owner;
} place_t;

static void die(const char *what, spill_code_t code, const spill_error_t *error)
{
    fprintf(stderr, "worker: %s: %s: %s\n", what, spill_code_name(code), error->message);
    _exit(3);
}

static bool may_try_again(spill_code_t code, const spill_error_t *error)
{
    return error->retryable || code == SPILL_CONFLICT;
}

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
        definition.bounds.threshold = THRESHOLD;
        definition.bounds.page_capacity = PAGE_CAPACITY;
        definition.op_window = OP_WINDOW;
        spill_code_t code = spill_store_define(store, &definition, &error);
        if (code != SPILL_OK)
            die("define", code, &error);
    }
}

static spill_store_t *open_store(const char *uri)
{
    spill_store_t *store;
    spill_error_t error;
    spill_code_t code;
    while ((code = spill_store_open(uri, NULL, &store, &error)) != SPILL_OK)
        if (!may_try_again(code, &error))
            die("open", code, &error);
    return store;
}

static spill_array_t *open_array(spill_store_t *store, const char *name)
{
    spill_array_t *array;
    spill_error_t error;
    spill_code_t code;
    while ((code = spill_array_open(store, name, &array, &error)) != SPILL_OK)
        if (!may_try_again(code, &error))
            die("open an array", code, &error);
    return array;
}

static void place_init(place_t *place, const worker_t *worker, int array, const char *owner)
{
    place->array = worker->process->arrays[array];
    snprintf(place->name, sizeof place->name, "%s/%s", worker_array_names[array], owner);
    bson_init(&place->storage);
    place->owner = spill_value_from_utf8(&place->storage, owner);
}

/* The place that a history names. */
static void place_init_named(place_t *place, const worker_t *worker, const char *name)
{
    const char *slash = strchr(name, '/');
    size_t length = slash != NULL ? (size_t)(slash - name) : 0;
    int array = 0;
    while (array < WORKER_ARRAYS && (strlen(worker_array_names[array]) != length ||
                                     strncmp(worker_array_names[array], name, length) != 0))
        array++;
    if (array == WORKER_ARRAYS) {
        fprintf(stderr, "worker: there is no array of '%s'\n", name);
        _exit(3);
    }
    place_init(place, worker, array, slash + 1);
}

/* Most often the owner that all share at this time, otherwise the worker's own of this time. */
static void place_draw(place_t *place, worker_t *worker)
{
    char owner[HISTORY_OWNER_SIZE - 8];
    int64_t round = (history_now() - worker->process->plan.began) / worker->process->plan.round;
    int array = sim_random_below(&worker->random, WORKER_ARRAYS);
    if (sim_random_chance(&worker->random, 700))
        snprintf(owner, sizeof owner, "hot-%" PRId64, round);
    else
        snprintf(owner, sizeof owner, "own-%d-%" PRId64, worker->number, round / 4);
    place_init(place, worker, array, owner);
}

static void place_release(place_t *place)
{
    bson_destroy(&place->storage);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Append what the operation says, until it is acknowledged; now and then it is given up. */
static void append(worker_t *worker, const place_t *place, int64_t count, int64_t base)
{
    char id[SPILL_OP_ID_MAX];
    bson_t storage[HISTORY_BATCH_MAX];
    spill_value_t elements[HISTORY_BATCH_MAX];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    bool unknown = false;
    int64_t number = worker->history.number;
    spill_op_t op = {.id = id, .base = base};
    op.id_bytes = (size_t)snprintf(id, sizeof id, "%d/%" PRId64, worker->number, number);
    for (int64_t i = 0; i < count; i++) {
        bson_init(&storage[i]);
        elements[i] = spill_value_from_int64(&storage[i], history_label(worker->number, number, i));
    }
    spill_append_options_init(&options);
    options.op = &op;
    while (true) {
        spill_code_t code = spill_array_append(place->array, &place->owner, elements, (size_t)count,
                                               &options, &result, &error);
        unknown = unknown || code == SPILL_UNKNOWN;
        if (code == SPILL_OK) {
            history_appended(&worker->history, result.first);
            break;
        }
        bool stale = code == SPILL_UNKNOWN && !error.retryable;
        if (stale || (unknown && sim_random_chance(&worker->random, 300))) {
            history_unknown(&worker->history);
            break;
        }
        if (code != SPILL_UNKNOWN && !may_try_again(code, &error))
            die(place->name, code, &error);
    }
    for (int64_t i = 0; i < count; i++)
        bson_destroy(&storage[i]);
}

static void append_new(worker_t *worker, const place_t *place)
{
    spill_error_t error;
    spill_code_t code;
    int64_t base;
    while ((code = spill_array_op_base(place->array, &place->owner, &base, &error)) != SPILL_OK)
        if (!may_try_again(code, &error))
            die(place->name, code, &error);
    int64_t count = sim_random_between(&worker->random, 1, PAGE_CAPACITY);
    history_append(&worker->history, place->name, count, base);
    append(worker, place, count, base);
}

static void count(worker_t *worker, const place_t *place)
{
    spill_error_t error;
    spill_count_t found;
    spill_code_t code;
    history_count(&worker->history, place->name);
    while ((code = spill_array_count(place->array, &place->owner, &found, &error)) != SPILL_OK)
        if (!may_try_again(code, &error))
            die(place->name, code, &error);
    history_counted(&worker->history, found.count);
}

/* A run without a hole, from where it was asked for. */
static void check_run(const place_t *place, const spill_read_options_t *options,
                      const spill_slice_t *slice)
{
    int64_t step = options->order == SPILL_NEWEST_FIRST ? -1 : 1;
    bool good = (int64_t)slice->count <= options->limit;
    for (size_t i = 0; i < slice->count; i++)
        good = good && slice->elements[i].value.type == BSON_TYPE_INT64 &&
               slice->elements[i].seq == slice->elements[0].seq + step * (int64_t)i;
    if (good)
        return;
    fprintf(stderr, "worker: a read of %s is no run of %" PRId64 " at most:", place->name,
            options->limit);
    for (size_t i = 0; i < slice->count; i++)
        fprintf(stderr, " %" PRId64, slice->elements[i].seq);
    fprintf(stderr, "\n");
    _exit(3);
}

static spill_slice_t *read_run(worker_t *worker, const place_t *place,
                               const spill_read_options_t *options)
{
    spill_error_t error;
    spill_slice_t *slice;
    spill_code_t code;
    history_read(&worker->history, place->name, options);
    while ((code = spill_array_read(place->array, &place->owner, options, &slice, &error)) !=
           SPILL_OK)
        if (!may_try_again(code, &error))
            die(place->name, code, &error);
    check_run(place, options, slice);
    history_got(&worker->history, slice);
    return slice;
}

/* A page: the newest elements, and perhaps those before it; or from some place on, upwards. */
static void read_page(worker_t *worker, const place_t *place)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = sim_random_between(&worker->random, 1, 4 * PAGE_CAPACITY);
    if (sim_random_chance(&worker->random, 300)) {
        options.order = SPILL_OLDEST_FIRST;
        options.after = sim_random_between(&worker->random, -1, 60);
    }
    spill_slice_t *slice = read_run(worker, place, &options);
    if (options.order == SPILL_NEWEST_FIRST && slice->more &&
        sim_random_chance(&worker->random, 300)) {
        options.before = slice->next;
        spill_slice_free(slice);
        slice = read_run(worker, place, &options);
    }
    spill_slice_free(slice);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void *work(void *argument)
{
    worker_t *worker = argument;
    place_t place;
    history_append_t open;
    if (history_open(&worker->history, worker->process->plan.folder, worker->number, &open)) {
        place_init_named(&place, worker, open.owner);
        append(worker, &place, open.count, open.base);
        place_release(&place);
    }
    while (history_now() < worker->process->plan.ends) {
        place_draw(&place, worker);
        int drawn = sim_random_below(&worker->random, 100);
        if (drawn < 60)
            append_new(worker, &place);
        else if (drawn < 75)
            count(worker, &place);
        else
            read_page(worker, &place);
        place_release(&place);
    }
    history_close(&worker->history);
    return NULL;
}

static void run_threads(const process_t *process, int number, sim_random_t *random)
{
    pthread_t threads[WORKER_THREADS];
    worker_t workers[WORKER_THREADS];
    for (int i = 0; i < WORKER_THREADS; i++) {
        workers[i] = (worker_t){.process = process,
                                .number = number * WORKER_THREADS + i,
                                .random.state = sim_random_next(random)};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            _exit(3);
    }
    for (int i = 0; i < WORKER_THREADS; i++)
        pthread_join(threads[i], NULL);
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
    pid_t pid = fork();
    if (pid == 0) {
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
    setenv("MONGOC_DISABLE_SHM", "1", 1); /* it would stay behind when we are killed */
    mongoc_log_set_handler(NULL, NULL);   /* it would tell of every connection that is cut */
    spill_store_t *store = open_store(process.plan.uri);
    for (int i = 0; i < WORKER_ARRAYS; i++)
        process.arrays[i] = open_array(store, worker_array_names[i]);
    run_threads(&process, atoi(arguments[7]), &random);
    for (int i = 0; i < WORKER_ARRAYS; i++)
        spill_array_close(process.arrays[i]);
    server_close(store);
    exit(0);
}
