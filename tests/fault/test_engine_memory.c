/*
 * The engine runs out of memory at its k-th allocation, for many k: every call then returns an
 * error, nothing aborts or hangs, and no acknowledged element is lost.
 */
#include "support/embedded.h"
#include "support/fail_new.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 40, ELEMENTS = 6, SECONDS_MAX = 60 };

/* What a child reports: elements acknowledged, and allocations of a run without a failure. */
typedef struct outcome {
    int64_t acknowledged;
    long calls;
    bool wrong; /* a call failed with a code that is not of lost memory */
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

/* Open, append and count, where allocation `failing` fails (0: none); then close. */
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

/* Elements 0, 1, ...: at least those acknowledged, and at most one more, whose answer was lost. */
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

/* In a process of its own: a forked process has none of the threads that the engine started. */
static void work_in_child(work_fn work, const char *folder, long failing, outcome_t *outcome)
{
    int ends[2];
    int status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(SECONDS_MAX); /* a hang kills the child */
        work(folder, failing, outcome);
        ssize_t wrote = write(ends[1], outcome, sizeof *outcome);
        _exit(wrote == sizeof *outcome ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], outcome, sizeof *outcome);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("allocation %ld: the process ended with status %#x", failing, (unsigned)status);
    assert_int_equal(got, sizeof *outcome);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    int interrupted = 0;
    outcome_t sound = {0};
    const char *folder = embedded_new_folder();
    work_in_child(make_store, folder, 0, &sound);
    work_in_child(use_store, folder, 0, &sound);
    assert_int_equal(sound.acknowledged, ELEMENTS);
    assert_true(sound.calls > STEPS);
    for (int step = 0; step < STEPS; step++) {
        /* Each of the first, where the engine opens; then some of all the others. */
        long failing = step < STEPS / 4 ? step + 1 : 1 + (sound.calls - 1) * step / STEPS;
        outcome_t outcome = {0};
        embedded_remove_folder(folder);
        work_in_child(make_store, folder, failing, &outcome);
        work_in_child(use_store, folder, failing, &outcome);
        if (outcome.wrong)
            fail_msg("allocation %ld: a call failed, and not with NO_MEMORY or UNKNOWN", failing);
        interrupted += outcome.acknowledged < ELEMENTS;
        work_in_child(check_store, folder, failing, &outcome);
        if (outcome.wrong)
            fail_msg("allocation %ld: of %lld acknowledged elements some are missing", failing,
                     (long long)outcome.acknowledged);
    }
    assert_true(interrupted > STEPS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
