/*
 * A power loss, as far as it can be played without pulling the plug: the worker is killed, and then
 * every file of the store is cut back to the length that it had when it was last synced. What was
 * acknowledged with durability fsync is there all the same.
 *
 * This program has its own fsync and fdatasync, which the engine's library is bound to as well.
 * They sync, and write down which inode was synced at which length.
 */
#include "killed.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define SYNC_LOG "SPILLWAY_TEST_SYNC_LOG"

typedef struct synced {
    uint64_t inode;
    int64_t size_bytes;
} synced_t;

static int sync_and_note(int fd, long system_call)
{
    const char *path = getenv(SYNC_LOG);
    struct stat status;
    /* The length before the sync: what is written during it may not be on the disk after it. */
    bool known = path != NULL && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    long result = syscall(system_call, fd);
    if (known && result == 0) {
        synced_t note = {.inode = status.st_ino, .size_bytes = status.st_size};
        int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (log < 0 || write(log, &note, sizeof note) != (ssize_t)sizeof note)
            abort();
        close(log);
    }
    return (int)result;
}

int fsync(int fd)
{
    return sync_and_note(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_and_note(fd, SYS_fdatasync);
}

/* The length at which the inode was last synced; 0 when it never was. */
static int64_t synced_length(const synced_t *notes, size_t count, uint64_t inode)
{
    for (size_t i = count; i > 0; i--)
        if (notes[i - 1].inode == inode)
            return notes[i - 1].size_bytes;
    return 0;
}

static synced_t *read_notes(const char *path, size_t *count)
{
    FILE *log = fopen(path, "rb");
    assert_non_null(log);
    struct stat status;
    assert_int_equal(fstat(fileno(log), &status), 0);
    *count = (size_t)status.st_size / sizeof(synced_t);
    synced_t *notes = malloc(*count * sizeof *notes);
    assert_non_null(notes);
    assert_int_equal(fread(notes, sizeof *notes, *count, log), *count);
    fclose(log);
    return notes;
}

/* Cut every file of the folder back. Returns how many bytes were dropped. */
static int64_t drop_unsynced(const char *folder, const char *log)
{
    size_t count;
    int64_t dropped = 0;
    synced_t *notes = read_notes(log, &count);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        char path[512];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_int_equal(stat(path, &status), 0);
        if (!S_ISREG(status.st_mode))
            continue;
        int64_t length = synced_length(notes, count, status.st_ino);
        if (length < status.st_size) {
            assert_int_equal(truncate(path, length), 0);
            dropped += status.st_size - length;
        }
    }
    closedir(entries);
    free(notes);
    return dropped;
}

static void synced_writes_survive(void **state)
{
    (void)state;
    char folder[] = "/tmp/spillway-unsynced-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char path[64];
    char log[64];
    snprintf(path, sizeof path, "%s/store", folder);
    snprintf(log, sizeof log, "%s/synced", folder);
    assert_int_equal(setenv(SYNC_LOG, log, 1), 0);
    unsigned random = killed_seed();
    int rounds = getenv("SPILLWAY_LONG") != NULL ? 300 : 60;
    int64_t dropped = 0;
    killed_ledger_t ledger;
    killed_ledger_init(&ledger);
    for (int round = 0; round < rounds; round++) {
        killed_round(&ledger, path, SPILL_DURABILITY_FSYNC, round % 4 == 3, &random);
        dropped += drop_unsynced(path, log);
        if (round % 10 == 9)
            killed_check(&ledger, path);
    }
    print_message("%d power losses, %" PRId64 " bytes dropped, %" PRId64 " appends acknowledged\n",
                  rounds, dropped, ledger.answers);
    assert_true(dropped > 0);
    assert_true(ledger.answers > rounds);
    killed_check(&ledger, path);
    killed_ledger_release(&ledger);
    char remove_it[128];
    snprintf(remove_it, sizeof remove_it, "rm -rf '%s'", folder);
    assert_int_equal(system(remove_it), 0);
}

int main(int count, char **arguments)
{
    killed_run_if_worker(count, arguments);
    const struct CMUnitTest tests[] = {cmocka_unit_test(synced_writes_survive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
