/*
 * Run the program on stores with one malformed record, of each kind in turn. It must end with an
 * exit code and a message, never by a signal. tests/unit/test_embedded_malformed.c changes every
 * byte; this test uses the real engine.
 */
#include "store/embedded/embedded_codec.h"
#include "store/embedded/folder.h"
#include "store/embedded/kv_rocksdb.h"
#include "support/embedded.h"
#include "support/exercise.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- records --------------------------------------------------------------------------------- */

/* Write all records directly to the engine, one of them with another value. */
static void write_store(const char *folder, const exercise_store_t *store, size_t changed,
                        const char *value, size_t value_bytes)
{
    spill_error_t error;
    spill_folder_lock_t lock;
    spill_kv_t *kv;
    bool made;
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_rocksdb_options_t options = {.synced = true, .cache_bytes = 1 << 20};
    assert_int_equal(spill_folder_make(folder, 0600, &made, &error), SPILL_OK);
    assert_int_equal(spill_folder_lock(folder, 0600, &lock, &error), SPILL_OK);
    if (spill_kv_rocksdb_open(folder, &options, &kv, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < store->count; i++) {
        const exercise_record_t *record = &store->records[i];
        if (i == changed)
            spill_batch_put(&batch, record->key, record->key_bytes, value, value_bytes);
        else
            spill_batch_put(&batch, record->key, record->key_bytes, record->value,
                            record->value_bytes);
    }
    assert_int_equal(kv->ops->write(kv, &batch, true, &error), SPILL_OK);
    spill_batch_release(&batch);
    assert_int_equal(kv->ops->close(kv, &error), SPILL_OK);
    spill_folder_unlock(folder, &lock, true);
}

/* ---- the program ----------------------------------------------------------------------------- */

static int exit_code_of(const char *folder, const char *const *arguments, char *message,
                        size_t size)
{
    char *all[12] = {getenv("SPILLWAY"), (char *)arguments[0], (char *)folder};
    int status, pipes[2];
    for (size_t i = 1; arguments[i] != NULL; i++)
        all[2 + i] = (char *)arguments[i];
    assert_non_null(all[0]);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, 0);
        dup2(nothing, 1);
        dup2(pipes[1], 2);
        execv(all[0], all);
        _exit(127);
    }
    close(pipes[1]);
    ssize_t length, used = 0;
    while ((length = read(pipes[0], message + used, size - 1 - (size_t)used)) > 0)
        used += length;
    message[used] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("%s: signal %d: %s", arguments[0], WTERMSIG(status), message);
    return WEXITSTATUS(status);
}

static const char *const commands[][6] = {
    {"verify", NULL},
    {"export", "feed", NULL},
    {"explain", "feed", "ada", NULL},
    {"repair", "--dry-run", NULL},
    {"stats", NULL},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Returns how many of the commands failed. Each failed command must print a message. */
static int run_commands(const char *folder)
{
    int failed = 0;
    for (size_t i = 0; i < COMMANDS; i++) {
        char message[4096];
        int code = exit_code_of(folder, commands[i], message, sizeof message);
        if (code != 0 && code != 1 && code != 3)
            fail_msg("%s: exit code %d: %s", commands[i][0], code, message);
        if (code == 3 && strstr(message, "spillway: ") == NULL)
            fail_msg("%s: exit code 3 without a message", commands[i][0]);
        failed += code != 0;
    }
    return failed;
}

static void change_each_kind(int layout)
{
    exercise_store_t store;
    int kinds = 0, unnoticed = 0;
    exercise_store_make(&store, layout);
    const char *sound = embedded_new_folder();
    write_store(sound, &store, SIZE_MAX, NULL, 0);
    char message[4096];
    assert_int_equal(exit_code_of(sound, commands[0], message, sizeof message), 0);
    for (size_t i = 0; i < store.count; i++) {
        if (store.records[i].value_bytes == 0 || !exercise_is_new_kind(&store, i))
            continue;
        const char *folder = embedded_new_folder();
        write_store(folder, &store, i, kinds % 2 == 0 ? "" : "\3", (size_t)(kinds % 2));
        unnoticed += run_commands(folder) == 0;
        embedded_remove_folder(folder);
        kinds++;
    }
    /* Only other commands read two of the numbers and the checkpoints. */
    assert_true(kinds > 8 && unnoticed <= 6);
    exercise_store_release(&store);
}

static void keep_newest(void **state)
{
    (void)state;
    change_each_kind(0);
}

static void subset(void **state)
{
    (void)state;
    change_each_kind(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_newest),
        cmocka_unit_test(subset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
