/*
 * The engine runs out of memory at its k-th allocation, for many k: every call then returns an
 * error, nothing hangs, and no acknowledged element is lost.
 */
#include "support/child.h"
#include "support/embedded.h"
#include "support/fail_new.h"

#include "store/embedded/kv_rocksdb.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 40, ELEMENTS = 6, SECONDS_MAX = 60 };

/* What a child reports: elements acknowledged, and allocations of a run without a failure. */
typedef struct outcome {
    int64_t acknowledged;
    long calls;
    bool wrong; /* a call failed with a code that does not mean lack of memory */
} outcome_t;

static bool is_expected(spill_code_t code)
{
    return code == SPILL_OK || code == SPILL_NO_MEMORY || code == SPILL_UNKNOWN;
}

static spill_value_t number_value(const int64_t *number)
{
    return (spill_value_t){(const uint8_t *)number, sizeof *number, BSON_TYPE_INT64};
}

static void append_all(spill_array_t *array, const spill_value_t *owner, outcome_t *outcome)
{
    for (int64_t i = 0; i < ELEMENTS; i++) {
        spill_append_result_t result;
        spill_value_t element = number_value(&i);
        spill_code_t code = spill_array_append(array, owner, &element, 1, NULL, &result, NULL);
        outcome->wrong |= !is_expected(code);
        if (code != SPILL_OK)
            return;
        outcome->acknowledged++;
    }
}

/* Open, append, count and close. Allocation number `failing` fails (0: none). */
static void use_store(const char *folder, long failing, outcome_t *outcome)
{
    spill_store_t *store = NULL;
    spill_array_t *array = NULL;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_count_t count;
    fail_new_after(failing);
    spill_code_t code = spill_store_open(folder, NULL, &store, NULL);
    outcome->wrong |= !is_expected(code);
    if (code == SPILL_OK)
        code = spill_array_open(store, "feed", &array, NULL);
    outcome->wrong |= !is_expected(code);
    if (code == SPILL_OK)
        append_all(array, &owner, outcome);
    if (code == SPILL_OK)
        outcome->wrong |= !is_expected(spill_array_count(array, &owner, &count, NULL));
    outcome->calls = fail_new_calls();
    fail_new_after(0); /* the engine's destructors end the process if they get no memory */
    spill_array_close(array);
    outcome->wrong |= !is_expected(spill_store_close(store, NULL));
    bson_destroy(&storage);
}

static void make_store(const char *folder, long failing, outcome_t *outcome)
{
    (void)failing;
    (void)outcome;
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_close(embedded_array(store, "feed", 2, 2));
    embedded_close(store);
}

/*
 * The store must hold elements 0, 1, ... up to the last acknowledged one, and may hold one more:
 * the element of the append that failed.
 */
static void check_store(const char *folder, long failing, outcome_t *outcome)
{
    (void)failing;
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 2, 2);
    outcome->wrong = embedded_holds(array, "ada", 0, outcome->acknowledged, NULL) != SPILL_OK &&
                     embedded_holds(array, "ada", 0, outcome->acknowledged + 1, NULL) != SPILL_OK;
    outcome->wrong |= embedded_findings(store, array, "ada") != 0;
    spill_array_close(array);
    embedded_close(store);
}

typedef void (*work_fn)(const char *folder, long failing, outcome_t *outcome);

/*
 * Run `work` in a child process, which has none of the engine's threads of this one. Returns false
 * if the engine ended the child.
 */
static bool work_in_child(work_fn work, const char *folder, long failing, outcome_t *outcome)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(SECONDS_MAX); /* a hang kills the child */
        work(folder, failing, outcome);
        child_end(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("allocation %ld: the process ended with status %#x", failing, (unsigned)status);
    return true;
}

/* RocksDB itself ends the process in a few places, if a function that must not throw does. */
static void each_allocation_may_fail(void **state)
{
    (void)state;
    int interrupted = 0;
    int ended = 0;
    const char *folder = embedded_new_folder();
    outcome_t *outcome =
        mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(outcome, MAP_FAILED);
    assert_true(work_in_child(make_store, folder, 0, outcome));
    assert_true(work_in_child(use_store, folder, 0, outcome));
    assert_int_equal(outcome->acknowledged, ELEMENTS);
    long calls = outcome->calls;
    assert_true(calls > STEPS);
    for (int step = 0; step < STEPS; step++) {
        /* First every early allocation, during the open; then a sample of all allocations. */
        long failing = step < STEPS / 4 ? step + 1 : 1 + (calls - 1) * step / STEPS;
        *outcome = (outcome_t){0};
        embedded_remove_folder(folder);
        assert_true(work_in_child(make_store, folder, failing, outcome));
        ended += !work_in_child(use_store, folder, failing, outcome);
        if (outcome->wrong)
            fail_msg("allocation %ld: a call failed, and not with NO_MEMORY or UNKNOWN", failing);
        interrupted += outcome->acknowledged < ELEMENTS;
        assert_true(work_in_child(check_store, folder, failing, outcome));
        if (outcome->wrong)
            fail_msg("allocation %ld: some of %lld acknowledged elements are missing", failing,
                     (long long)outcome->acknowledged);
    }
    printf("%d of %d failed allocations interrupted a call; the engine aborted at %d\n",
           interrupted, STEPS, ended);
    assert_true(interrupted > STEPS / 2);
    assert_true(ended <= STEPS / 8);
    munmap(outcome, sizeof *outcome);
}

/* ---- a broken engine ------------------------------------------------------------------------- */

static bool reports_broken(spill_kv_iter_t *iter)
{
    static const uint8_t key[] = "key";
    spill_error_t error;
    iter->ops->seek(iter, key, sizeof key);
    bool reported = !iter->valid && iter->ops->status(iter, &error) == SPILL_NO_MEMORY &&
                    strstr(error.message, "in a write before") != NULL;
    iter->ops->free(iter);
    return reported;
}

/*
 * An allocation fails in a write while an iterator is open. Afterwards a thread of the engine may
 * wait for a lock forever.
 */
static void break_engine(const char *folder, long failing, outcome_t *outcome)
{
    static const uint8_t key[] = "key";
    spill_rocksdb_options_t options = {.cache_bytes = 1 << 20};
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_kv_t *kv;
    outcome->wrong = spill_kv_rocksdb_open(folder, &options, &kv, NULL) != SPILL_OK;
    if (outcome->wrong)
        return;
    spill_batch_put(&batch, key, sizeof key, "value", 5);
    outcome->wrong = kv->ops->write(kv, &batch, false, NULL) != SPILL_OK;
    spill_kv_iter_t *before = kv->ops->iterate(kv);
    before->ops->seek(before, key, sizeof key);
    outcome->wrong |= !before->valid;
    fail_new_after(failing);
    outcome->wrong |= kv->ops->write(kv, &batch, false, NULL) != SPILL_UNKNOWN;
    fail_new_after(0);
    outcome->wrong |= !reports_broken(before);
    outcome->wrong |= !reports_broken(kv->ops->iterate(kv));
    outcome->wrong |= kv->ops->close(kv, NULL) != SPILL_NO_MEMORY;
    spill_batch_release(&batch);
}

static void a_broken_engine_has_no_iterator(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    outcome_t *outcome =
        mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(outcome, MAP_FAILED);
    assert_true(work_in_child(break_engine, folder, 1, outcome));
    assert_false(outcome->wrong);
    munmap(outcome, sizeof *outcome);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail),
                                       cmocka_unit_test(a_broken_engine_has_no_iterator)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
