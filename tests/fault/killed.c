#include "killed.h"

#include "support/child.h"
#include "support/definition.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = KILLED_THREADS, ALL_CLOSED = -1, FIRST_START = 6 };

/* Threads 0 and 1 share the owner of the first array, 2 and 3 that of the second. */
static const char *const array_names[] = {"newest", "oldest"};

/* A worker's message to the test. It is shorter than PIPE_BUF, so that the pipe keeps it whole. */
typedef struct message {
    int64_t thread; /* ALL_CLOSED: the worker closed the store after all earlier messages */
    int64_t counter;
    int64_t base; /* before the first try; -1 in an answer */
    int64_t seq;  /* in an answer */
} message_t;

typedef killed_start_t start_t;
typedef killed_ledger_t ledger_t;

static void die(const char *what, const spill_error_t *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, spill_code_name(error->code), error->message);
    exit(3);
}

static spill_store_t *open_store(const char *path, spill_durability_t durability)
{
    spill_store_options_t options;
    spill_error_t error;
    spill_store_t *store;
    spill_store_options_init(&options);
    options.durability = durability;
    if (spill_store_open(path, &options, &store, &error) != SPILL_OK)
        die("open", &error);
    return store;
}

/* In the environment of workers whose arrays have paths. */
static const char PATHS[] = "SPILLWAY_KILLED_PATHS";

bool killed_use_paths(unsigned seed)
{
    bool paths = seed % 3 == 2;
    if (paths)
        setenv(PATHS, "1", 1);
    else
        unsetenv(PATHS);
    return paths;
}

static spill_array_t *open_array(spill_store_t *store, const char *name)
{
    spill_error_t error;
    spill_array_t *array;
    spill_definition_t definition;
    spill_definition_init(&definition, name);
    snprintf(definition.collection, sizeof definition.collection, "%s", name);
    snprintf(definition.page_collection, sizeof definition.page_collection, "%s.pages", name);
    definition.keep = strcmp(name, "newest") == 0 ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST;
    definition.bounds.threshold = 3;
    definition.bounds.page_capacity = 4;
    definition.op_window = 2000; /* a thread may sleep while another appends */
    if (getenv(PATHS) != NULL)
        definition_put_in_document(&definition, "stats");
    if (spill_store_define(store, &definition, &error) != SPILL_OK)
        die("define", &error);
    if (spill_array_open(store, name, &array, &error) != SPILL_OK)
        die("open array", &error);
    return array;
}

/* ---- the worker process ---------------------------------------------------------------------- */

typedef struct worker {
    spill_array_t *array;
    int64_t thread;
    start_t start; /* the next counter to append */
    int64_t end;   /* the worker stops before this counter */
    const char *padding;
    pthread_barrier_t *barrier;
} worker_t;

static void send_message(message_t message)
{
    if (write(STDOUT_FILENO, &message, sizeof message) != sizeof message)
        exit(4);
}

/* Append one counter. If its operation has no base yet, read the base and report it first. */
static void append_counter(const worker_t *worker, const spill_value_t *owner, int64_t counter,
                           int64_t base)
{
    spill_error_t error;
    char id[48];
    int id_bytes = snprintf(id, sizeof id, "%" PRId64 ":%" PRId64, worker->thread, counter);
    if (base < 0) {
        if (spill_array_op_base(worker->array, owner, &base, &error) != SPILL_OK)
            die("base", &error);
        send_message((message_t){.thread = worker->thread, .counter = counter, .base = base});
    }
    bson_t element = BSON_INITIALIZER;
    BSON_APPEND_INT64(&element, "thread", worker->thread);
    BSON_APPEND_INT64(&element, "counter", counter);
    BSON_APPEND_UTF8(&element, "padding", worker->padding);
    spill_value_t value = spill_value_from_document(&element);
    spill_op_t op = {.id = id, .id_bytes = (size_t)id_bytes, .base = base};
    spill_append_options_t options;
    spill_append_result_t result;
    spill_append_options_init(&options);
    options.op = &op;
    if (spill_array_append(worker->array, owner, &value, 1, &options, &result, &error) != SPILL_OK)
        die("append", &error);
    send_message(
        (message_t){.thread = worker->thread, .counter = counter, .base = -1, .seq = result.first});
    bson_destroy(&element);
}

static void *append_counters(void *argument)
{
    worker_t *worker = argument;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "hot");
    /*
     * Every thread retries its unacknowledged operation before any thread appends more: the
     * operation window must still have the ids.
     */
    if (worker->start.base >= 0)
        append_counter(worker, &owner, worker->start.counter++, worker->start.base);
    worker->start.base = -1;
    pthread_barrier_wait(worker->barrier);
    while (worker->start.counter < worker->end)
        append_counter(worker, &owner, worker->start.counter++, -1);
    bson_destroy(&storage);
    return NULL;
}

/* Open the store, append from all threads, close it. Each thread appends `count` elements (0: no
 * end). */
static void work_together(const char *path, spill_durability_t durability, int64_t count,
                          worker_t workers[THREADS])
{
    spill_store_t *store = open_store(path, durability);
    spill_array_t *arrays[] = {open_array(store, array_names[0]),
                               open_array(store, array_names[1])};
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i].array = arrays[i / 2];
        workers[i].barrier = &barrier;
        workers[i].end = count > 0 ? workers[i].start.counter + count : INT64_MAX;
        if (pthread_create(&threads[i], NULL, append_counters, &workers[i]) != 0)
            exit(5);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    spill_array_close(arrays[0]);
    spill_array_close(arrays[1]);
    spill_error_t error;
    if (spill_store_close(store, &error) != SPILL_OK)
        die("close", &error);
    send_message((message_t){.thread = ALL_CLOSED});
}

/*
 * The arguments are: "worker" STORE DURABILITY BEFORE_CLOSE PADDING, then counter and base of each
 * thread. Never returns.
 */
static void run_worker(char **arguments)
{
    spill_durability_t durability = (spill_durability_t)strtol(arguments[3], NULL, 10);
    int64_t before_close = strtoll(arguments[4], NULL, 10);
    size_t padding_bytes = strtoul(arguments[5], NULL, 10);
    char *padding = bson_malloc0(padding_bytes + 1);
    memset(padding, '.', padding_bytes);
    worker_t workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.thread = i, .padding = padding};
        workers[i].start.counter = strtoll(arguments[FIRST_START + 2 * i], NULL, 10);
        workers[i].start.base = strtoll(arguments[FIRST_START + 1 + 2 * i], NULL, 10);
    }
    if (before_close > 0)
        work_together(arguments[2], durability, before_close, workers);
    work_together(arguments[2], durability, 0, workers);
}

/* ---- the ledger ------------------------------------------------------------------------------ */

static void record_close(ledger_t *ledger)
{
    for (int i = 0; i < THREADS; i++)
        ledger->kept[i] = ledger->next[i].counter;
    ledger->closes++;
}

static void record_message(ledger_t *ledger, const message_t *message)
{
    if (message->thread == ALL_CLOSED) {
        record_close(ledger);
        return;
    }
    assert_in_range(message->thread, 0, THREADS - 1);
    start_t *next = &ledger->next[message->thread];
    assert_int_equal(message->counter, next->counter);
    if (message->base >= 0) {
        next->base = message->base;
        return;
    }
    size_t index = (size_t)message->counter;
    if (index >= ledger->capacity[message->thread]) {
        ledger->capacity[message->thread] = 2 * index + 64;
        ledger->seqs[message->thread] = bson_realloc(
            ledger->seqs[message->thread], ledger->capacity[message->thread] * sizeof(int64_t));
    }
    ledger->seqs[message->thread][index] = message->seq;
    ledger->answers++;
    *next = (start_t){.counter = message->counter + 1, .base = -1};
}

static void drain(ledger_t *ledger, int pipe_end)
{
    message_t message;
    ssize_t got;
    while ((got = read(pipe_end, &message, sizeof message)) == (ssize_t)sizeof message)
        record_message(ledger, &message);
    assert_int_equal(got, 0);
}

static pid_t start_worker(const ledger_t *ledger, const char *path, const killed_plan_t *plan,
                          int out)
{
    const int64_t plain[] = {plan->durability, plan->before_close, plan->padding};
    enum { COUNT = FIRST_START + 2 * THREADS };
    char numbers[COUNT][24];
    char *arguments[COUNT + 1] = {(char *)"killed", (char *)"worker", (char *)path};
    for (int i = 3; i < COUNT; i++) {
        const start_t *start = &ledger->next[i < FIRST_START ? 0 : (i - FIRST_START) / 2];
        int64_t number = (i - FIRST_START) % 2 ? start->base : start->counter;
        snprintf(numbers[i], sizeof numbers[i], "%" PRId64,
                 i < FIRST_START ? plain[i - 3] : number);
        arguments[i] = numbers[i];
    }
    arguments[COUNT] = NULL;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    return pid;
}

/* Record the first message, or, if `close` is set, all messages until the store is closed. */
static void await_message(ledger_t *ledger, int pipe_end, bool close)
{
    message_t message;
    bool more = true;
    while (more && read(pipe_end, &message, sizeof message) == (ssize_t)sizeof message) {
        record_message(ledger, &message);
        more = close && message.thread != ALL_CLOSED;
    }
}

void killed_round(killed_ledger_t *ledger, const char *path, const killed_plan_t *plan,
                  unsigned *random)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = start_worker(ledger, path, plan, ends[1]);
    close(ends[1]);
    if (!plan->at_once)
        await_message(ledger, ends[0], plan->before_close > 0);
    usleep((useconds_t)(rand_r(random) % plan->longest_us));
    assert_int_equal(kill(pid, SIGKILL), 0);
    drain(ledger, ends[0]);
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status))
        fail_msg("the worker ended by itself with status %d", WEXITSTATUS(status));
}

/* ---- checks ---------------------------------------------------------------------------------- */

typedef struct check {
    const ledger_t *ledger;
    int64_t next[THREADS]; /* the counter expected next */
    int64_t elements;
} check_t;

static bool check_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    check_t *check = context;
    bson_t document;
    bson_iter_t iter;
    assert_true(bson_init_static(&document, element->value.data, element->value.size_bytes));
    assert_true(bson_iter_init_find(&iter, &document, "thread"));
    int64_t thread = bson_iter_int64(&iter);
    assert_true(bson_iter_init_find(&iter, &document, "counter"));
    int64_t counter = bson_iter_int64(&iter);
    assert_in_range(thread, 0, THREADS - 1);
    assert_int_equal(counter, check->next[thread]);
    if (counter < check->ledger->next[thread].counter)
        assert_int_equal(element->seq, check->ledger->seqs[thread][counter]);
    else /* the append that was not acknowledged when the worker was killed */
        assert_int_equal(counter, check->ledger->next[thread].counter);
    check->next[thread]++;
    check->elements++;
    return true;
}

static void report(void *context, const spill_finding_t *finding)
{
    (void)context;
    print_error("%s page %" PRId64 " I%d: %s\n", finding->definition, finding->page,
                finding->invariant, finding->text);
}

/* Open the store, verify it, count the elements of each thread, and close it. */
static void check_store(const ledger_t *ledger, const char *path, spill_durability_t durability,
                        int64_t found[THREADS])
{
    spill_store_t *store = open_store(path, durability);
    check_t check = {.ledger = ledger};
    spill_error_t error;
    for (int i = 0; i < 2; i++) {
        spill_array_t *array = open_array(store, array_names[i]);
        spill_verify_summary_t summary;
        assert_int_equal(spill_array_verify(array, NULL, report, NULL, &summary, &error), SPILL_OK);
        assert_int_equal(summary.findings, 0);
        int64_t before = check.elements;
        if (spill_array_export(array, NULL, check_element, &check, &error) != SPILL_OK)
            fail_msg("export: %s", error.message);
        assert_int_equal(check.elements - before, summary.elements);
        spill_array_close(array);
    }
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
    memcpy(found, check.next, sizeof check.next);
}

/* Check in a child process: this process forks again later, and must not hold an open store. */
static void check_store_in_child(const ledger_t *ledger, const char *path,
                                 spill_durability_t durability, int64_t found[THREADS])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int64_t counted[THREADS];
        check_store(ledger, path, durability, counted);
        child_end(write(ends[1], counted, sizeof counted) == sizeof counted ? 0 : 4);
    }
    close(ends[1]);
    size_t bytes = THREADS * sizeof *found;
    ssize_t got = read(ends[0], found, bytes);
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(got, bytes);
}

void killed_check(const killed_ledger_t *ledger, const char *path)
{
    int64_t found[THREADS];
    check_store_in_child(ledger, path, SPILL_DURABILITY_FSYNC, found);
    for (int i = 0; i < THREADS; i++)
        assert_true(found[i] >= ledger->next[i].counter);
}

void killed_check_prefix(killed_ledger_t *ledger, const char *path)
{
    int64_t found[THREADS];
    check_store_in_child(ledger, path, SPILL_DURABILITY_LOG, found);
    for (int i = 0; i < THREADS; i++) {
        start_t *next = &ledger->next[i];
        if (found[i] < ledger->kept[i])
            fail_msg("thread %d: the store has %" PRId64 " elements, but %" PRId64
                     " were acknowledged before it was closed",
                     i, found[i], ledger->kept[i]);
        if (found[i] <= next->counter) {
            /* A base that was read before the power loss may count lost elements. */
            ledger->lost += next->counter - found[i];
            *next = (start_t){.counter = found[i], .base = -1};
        }
        ledger->kept[i] = found[i]; /* the check closed the store */
    }
}

void killed_ledger_init(killed_ledger_t *ledger)
{
    *ledger = (killed_ledger_t){0};
    for (int i = 0; i < THREADS; i++)
        ledger->next[i].base = -1;
}

void killed_ledger_release(killed_ledger_t *ledger)
{
    for (int i = 0; i < THREADS; i++)
        bson_free(ledger->seqs[i]);
}

void killed_run_if_worker(int count, char **arguments)
{
    if (count == FIRST_START + 2 * THREADS && strcmp(arguments[1], "worker") == 0) {
        run_worker(arguments);
        exit(6); /* unreachable: the worker runs until it is killed */
    }
}

unsigned killed_seed(void)
{
    const char *seed = getenv("SPILLWAY_SEED");
    return seed != NULL ? (unsigned)strtoul(seed, NULL, 10) : 20130725u;
}
