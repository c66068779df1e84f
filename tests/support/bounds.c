#include "support/bounds.h"

#include "layout/document_limits.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, BATCH = 7, TEXT_BYTES = 100 };

/* Up and down again; the bytes of a document hold more than its elements, or fewer. */
static const spill_bounds_t changes[] = {
    {3, 4, 1 << 20, 1 << 20},       {40, 60, 1 << 14, 1 << 14}, {1, 1, 1 << 20, 1 << 20},
    {200, 5, 1 << 15, 1 << 14},     {2, 300, 1 << 14, 1 << 16}, {7, 3, 1 << 20, 1 << 20},
    {1000, 1000, 1 << 14, 1 << 14}, {5, 2, 1 << 20, 1 << 20},
};
enum { CHANGES = sizeof changes / sizeof *changes };

typedef struct play {
    spill_store_t *store;
    spill_definition_t definition;
    int appends;
    atomic_int done[THREADS];
    atomic_int change; /* the last that is in force */
    atomic_bool failed;
} play_t;

typedef struct worker {
    play_t *play;
    int number;
    spill_array_t *old; /* opened before the first change */
    spill_array_t *now; /* opened again after each */
    int seen;
    int made; /* elements in the thread's own owner */
    char message[SPILL_ERROR_MESSAGE_SIZE + 64];
} worker_t;

/* ---- one thread ------------------------------------------------------------------------------ */

static bool holds(worker_t *worker, spill_code_t code, const spill_error_t *error, const char *what)
{
    if (code != SPILL_OK)
        snprintf(worker->message, sizeof worker->message, "%s: %s", what, error->message);
    return code == SPILL_OK;
}

static bool wrong(worker_t *worker, const char *what)
{
    snprintf(worker->message, sizeof worker->message, "%s", what);
    return false;
}

/* {t: thread, i: number, text} */
static bson_t *make_element(int thread, int number)
{
    char text[TEXT_BYTES + 1];
    memset(text, 'a' + thread, TEXT_BYTES);
    text[number % TEXT_BYTES] = '\0';
    return BCON_NEW("t", BCON_INT32(thread), "i", BCON_INT32(number), "text", text);
}

static int32_t number_in(const spill_value_t *value, const char *field)
{
    bson_t document;
    bson_iter_t iter;
    if (!bson_init_static(&document, value->data, value->size_bytes) ||
        !bson_iter_init_find(&iter, &document, field))
        return -1;
    return bson_iter_int32(&iter);
}

/* The handle of this step: the one of before everything, or one that knows the newest bounds. */
static bool choose(worker_t *worker, int step, spill_array_t **array)
{
    spill_error_t error;
    int change = atomic_load(&worker->play->change);
    if (change != worker->seen) {
        spill_array_close(worker->now);
        worker->now = NULL;
        spill_code_t code = spill_array_open(worker->play->store, worker->play->definition.name,
                                             &worker->now, &error);
        worker->seen = change;
        if (!holds(worker, code, &error, "open"))
            return false;
    }
    *array = step % 2 == 0 ? worker->old : worker->now;
    return true;
}

/* One element to the owner that all share. */
static bool append_shared(worker_t *worker, spill_array_t *array, int step)
{
    bson_t storage = BSON_INITIALIZER;
    spill_error_t error;
    spill_value_t owner = spill_value_from_utf8(&storage, "shared");
    bson_t *document = make_element(worker->number, step);
    spill_value_t element = spill_value_from_document(document);
    spill_code_t code = spill_array_append(array, &owner, &element, 1, NULL, NULL, &error);
    bson_destroy(document);
    bson_destroy(&storage);
    return holds(worker, code, &error, "append");
}

/* A batch to the thread's own owner, and the same again by the other handle: it is known. */
static bool append_batch(worker_t *worker, int step)
{
    spill_array_t *arrays[] = {step % 4 < 2 ? worker->old : worker->now,
                               step % 4 < 2 ? worker->now : worker->old};
    bson_t storage = BSON_INITIALIZER;
    bson_t *documents[BATCH];
    spill_value_t elements[BATCH];
    spill_append_result_t results[2];
    spill_append_options_t options;
    spill_error_t error;
    char id[16];
    spill_op_t op = {.id = id};
    op.id_bytes = (size_t)snprintf(id, sizeof id, "step-%d", step);
    spill_append_options_init(&options);
    options.op = &op;
    for (int i = 0; i < BATCH; i++) {
        documents[i] = make_element(worker->number, worker->made + i);
        elements[i] = spill_value_from_document(documents[i]);
    }
    spill_value_t owner = spill_value_from_int64(&storage, worker->number);
    spill_code_t code = spill_array_op_base(arrays[0], &owner, &op.base, &error);
    for (int i = 0; code == SPILL_OK && i < 2; i++)
        code =
            spill_array_append(arrays[i], &owner, elements, BATCH, &options, &results[i], &error);
    for (int i = 0; i < BATCH; i++)
        bson_destroy(documents[i]);
    bson_destroy(&storage);
    if (!holds(worker, code, &error, "batch"))
        return false;
    if (!results[1].repeated || results[0].first != worker->made ||
        results[1].first != results[0].first || results[1].count != BATCH)
        return wrong(worker, "a batch that was repeated is not known, or has other numbers");
    worker->made += BATCH;
    return true;
}

/* A page has no gap, and of each thread the elements stand in order. */
static bool read_page(worker_t *worker, spill_array_t *array, int step)
{
    bson_t storage = BSON_INITIALIZER;
    spill_read_options_t options;
    spill_slice_t *slice = NULL;
    spill_error_t error;
    int last[THREADS] = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    bool right = true;
    spill_read_options_init(&options);
    options.skip = step % 3 == 0 ? 30 : 0;
    options.limit = 25;
    spill_value_t owner = spill_value_from_utf8(&storage, "shared");
    spill_code_t code = spill_array_read(array, &owner, &options, &slice, &error);
    for (size_t i = 0; code == SPILL_OK && i < slice->count; i++) {
        int32_t thread = number_in(&slice->elements[i].value, "t");
        int32_t number = number_in(&slice->elements[i].value, "i");
        right = right && thread >= 0 && thread < THREADS && number < last[thread] &&
                (i == 0 || slice->elements[i].seq == slice->elements[i - 1].seq - 1);
        if (right)
            last[thread] = number;
    }
    spill_slice_free(slice);
    bson_destroy(&storage);
    return holds(worker, code, &error, "read") &&
           (right || wrong(worker, "a page has a gap or is out of order"));
}

static bool take_step(worker_t *worker, int step)
{
    spill_array_t *array;
    if (!choose(worker, step, &array) || !append_shared(worker, array, step))
        return false;
    if (step % 5 == 0 && !append_batch(worker, step))
        return false;
    return step % 3 != 0 || read_page(worker, array, step);
}

static void *work(void *context)
{
    worker_t *worker = context;
    play_t *play = worker->play;
    int steps = play->appends * CHANGES;
    for (int step = 0; step < steps && !atomic_load(&play->failed); step++) {
        if (!take_step(worker, step))
            atomic_store(&play->failed, true);
        atomic_fetch_add(&play->done[worker->number], 1);
    }
    return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Wait until every thread has come as far as the next change. */
static void wait_for(play_t *play, int steps)
{
    for (int i = 0; i < THREADS; i++)
        while (atomic_load(&play->done[i]) < steps && !atomic_load(&play->failed))
            sched_yield();
}

static void change_bounds(play_t *play, int change)
{
    spill_error_t error;
    play->definition.bounds = changes[change];
    if (spill_store_define(play->store, &play->definition, &error) != SPILL_OK)
        fail_msg("define: %s", error.message);
    atomic_store(&play->change, change);
}

static bool check_shared(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int *next = context; /* of each thread, and last the number */
    int32_t thread = number_in(&element->value, "t");
    (void)owner;
    assert_in_range(thread, 0, THREADS - 1);
    assert_int_equal(number_in(&element->value, "i"), next[thread]++);
    assert_int_equal(element->seq, next[THREADS]++);
    return true;
}

static bool check_own(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int *next = context;
    (void)owner;
    assert_int_equal(number_in(&element->value, "i"), *next);
    assert_int_equal(element->seq, *next);
    ++*next;
    return true;
}

/* No document has more elements or bytes than the largest bounds allow. */
static bool check_document(void *context, const char *collection, const bson_t *document)
{
    const spill_definition_t *definition = context;
    bool head = strcmp(collection, definition->collection) == 0;
    spill_limits_t limits = head ? spill_head_limits(definition, &definition->largest)
                                 : spill_page_limits(&definition->largest);
    bson_iter_t iter, elements;
    int64_t count = 0;
    const char *array = head ? definition->array : definition->page_array;
    assert_true(bson_iter_init_find(&iter, document, array));
    assert_true(bson_iter_recurse(&iter, &elements));
    while (bson_iter_next(&elements))
        count++;
    assert_true(count <= limits.slots_max);
    assert_true((int64_t)document->len <= limits.bytes_max);
    return true;
}

static void report(void *context, const spill_finding_t *finding)
{
    (void)context;
    print_error("page %lld, I%d: %s\n", (long long)finding->page, finding->invariant,
                finding->text);
}

static void check(const play_t *play, const worker_t *workers)
{
    int next[THREADS + 1] = {0};
    bson_t storage = BSON_INITIALIZER;
    spill_array_t *array;
    spill_definition_t stored;
    spill_verify_summary_t summary;
    assert_int_equal(spill_array_open(play->store, play->definition.name, &array, NULL), SPILL_OK);
    spill_value_t owner = spill_value_from_utf8(&storage, "shared");
    assert_int_equal(spill_array_export(array, &owner, check_shared, next, NULL), SPILL_OK);
    for (int i = 0; i < THREADS; i++) {
        int own = 0;
        assert_int_equal(next[i], play->appends * CHANGES);
        owner = spill_value_from_int64(&storage, i);
        assert_int_equal(spill_array_export(array, &owner, check_own, &own, NULL), SPILL_OK);
        assert_int_equal(own, workers[i].made);
        assert_true(own > 0);
    }
    assert_int_equal(spill_array_verify(array, NULL, report, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, 0);
    assert_int_equal(summary.owners, THREADS + 1);
    assert_int_equal(spill_store_definition(play->store, play->definition.name, &stored, NULL),
                     SPILL_OK);
    assert_int_equal(stored.largest.threshold, 1000);
    assert_int_equal(stored.bounds.threshold, changes[CHANGES - 1].threshold);
    assert_int_equal(spill_array_documents(array, NULL, false, check_document, &stored, NULL),
                     SPILL_OK);
    spill_array_close(array);
    bson_destroy(&storage);
}

void bounds_play(spill_store_t *store, spill_keep_t keep, int appends)
{
    play_t play = {.store = store, .appends = appends};
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    bool newest = keep == SPILL_KEEP_NEWEST;
    spill_definition_init(&play.definition, newest ? "changing-newest" : "changing-oldest");
    play.definition.keep = keep;
    strcpy(play.definition.collection, newest ? "newest" : "oldest");
    strcpy(play.definition.page_collection, newest ? "newestPages" : "oldestPages");
    change_bounds(&play, 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.play = &play, .number = i};
        assert_int_equal(spill_array_open(store, play.definition.name, &workers[i].old, NULL),
                         SPILL_OK);
        assert_int_equal(spill_array_open(store, play.definition.name, &workers[i].now, NULL),
                         SPILL_OK);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int change = 1; change < CHANGES; change++) {
        wait_for(&play, change * appends);
        change_bounds(&play, change);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].message[0] != '\0')
            fail_msg("thread %d: %s", i, workers[i].message);
        spill_array_close(workers[i].old);
        spill_array_close(workers[i].now);
    }
    check(&play, workers);
}
