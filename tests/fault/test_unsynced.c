/*
 * A power loss, as far as it can be played without pulling the plug: the worker is killed, and then
 * every file of the store is cut back to the length that it had when it was last synced.
 *
 * What was acknowledged with durability fsync is there all the same. With durability log the disk
 * may have got a part of what was not synced: the logs keep a random part of it, from its start on.
 * The store then opens with what was acknowledged before it was last closed, and with some of the
 * appends that came next, in order.
 *
 * This program has its own fsync and fdatasync, which the engine's library is bound to as well.
 * They sync, and write down which file was synced at which length. A file is told by its inode and
 * its birth, because numbers of inodes are used again.
 */
#include "killed.h"
#include "support/effort.h"

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
    int64_t birth_ns; /* 0 where the file system does not tell */
    int64_t size_bytes;
} synced_t;

/* What the file's note would say now; false: it is not a regular one. `path` may be "". */
static bool describe(int folder, const char *path, synced_t *file)
{
    struct statx status;
    int flags = AT_SYMLINK_NOFOLLOW | (path[0] == '\0' ? AT_EMPTY_PATH : 0);
    if (statx(folder, path, flags, STATX_TYPE | STATX_INO | STATX_SIZE | STATX_BTIME, &status) != 0)
        abort();
    *file = (synced_t){.inode = status.stx_ino, .size_bytes = (int64_t)status.stx_size};
    if (status.stx_mask & STATX_BTIME)
        file->birth_ns = status.stx_btime.tv_sec * 1000000000 + status.stx_btime.tv_nsec;
    return S_ISREG(status.stx_mode);
}

static int sync_and_note(int fd, long system_call)
{
    const char *path = getenv(SYNC_LOG);
    synced_t note;
    /* The length before the sync: what is written during it may not be on the disk after it. */
    bool known = path != NULL && describe(fd, "", &note);
    long result = syscall(system_call, fd);
    if (known && result == 0) {
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

/* The length at which the file was last synced; 0 when it never was. */
static int64_t synced_length(const synced_t *notes, size_t count, const synced_t *file)
{
    for (size_t i = count; i > 0; i--)
        if (notes[i - 1].inode == file->inode && notes[i - 1].birth_ns == file->birth_ns)
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

typedef struct file {
    char path[512];
    int64_t size_bytes;
    int64_t synced_bytes; /* not above the size */
} file_t;

enum { FILES_MAX = 64 };

static bool is_log(const file_t *file)
{
    const char *end = strrchr(file->path, '.');
    return end != NULL && strcmp(end, ".log") == 0;
}

static int by_path(const void *left, const void *right)
{
    return strcmp(((const file_t *)left)->path, ((const file_t *)right)->path);
}

/* The folder's files; logs are in the order of their numbers, which all have six digits. */
static size_t list_files(const char *folder, const char *log, file_t files[FILES_MAX])
{
    size_t count;
    size_t listed = 0;
    synced_t *notes = read_notes(log, &count);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        file_t file;
        synced_t now;
        snprintf(file.path, sizeof file.path, "%s/%s", folder, entry->d_name);
        if (!describe(AT_FDCWD, file.path, &now))
            continue;
        file.size_bytes = now.size_bytes;
        file.synced_bytes = synced_length(notes, count, &now);
        if (file.synced_bytes > file.size_bytes)
            file.synced_bytes = file.size_bytes;
        assert_true(listed < FILES_MAX);
        files[listed++] = file;
    }
    closedir(entries);
    free(notes);
    qsort(files, listed, sizeof *files, by_path);
    return listed;
}

/* How much of what the logs have unsynced the disk has got: often nothing or everything. */
static int64_t choose_part(const file_t *files, size_t count, unsigned *random)
{
    int64_t unsynced = 0;
    for (size_t i = 0; i < count; i++)
        if (is_log(&files[i]))
            unsynced += files[i].size_bytes - files[i].synced_bytes;
    switch (rand_r(random) % 8) {
    case 0:
        return 0;
    case 1:
        return unsynced;
    default:
        return (int64_t)((double)unsynced * rand_r(random) / RAND_MAX);
    }
}

/*
 * Cut every file of the folder back. Where `random` is given the logs keep a part of what was not
 * synced. Returns how many bytes were dropped.
 */
static int64_t drop_unsynced(const char *folder, const char *log, unsigned *random)
{
    file_t files[FILES_MAX];
    int64_t dropped = 0;
    size_t count = list_files(folder, log, files);
    int64_t left = random != NULL ? choose_part(files, count, random) : 0;
    for (size_t i = 0; i < count; i++) {
        int64_t unsynced = files[i].size_bytes - files[i].synced_bytes;
        int64_t kept = 0;
        if (is_log(&files[i])) {
            kept = unsynced < left ? unsynced : left;
            left -= kept;
        }
        if (kept < unsynced)
            assert_int_equal(truncate(files[i].path, files[i].synced_bytes + kept), 0);
        dropped += unsynced - kept;
    }
    return dropped;
}

typedef struct scene {
    char folder[48];
    char path[64];
    char log[64]; /* of what was synced */
    unsigned random;
    killed_ledger_t ledger;
} scene_t;

static void open_scene(scene_t *scene, unsigned seed)
{
    *scene = (scene_t){.folder = "/tmp/spillway-unsynced-XXXXXX", .random = seed};
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->path, sizeof scene->path, "%s/store", scene->folder);
    snprintf(scene->log, sizeof scene->log, "%s/synced", scene->folder);
    assert_int_equal(setenv(SYNC_LOG, scene->log, 1), 0);
    killed_ledger_init(&scene->ledger);
    print_message("seed %u\n", seed);
}

static void close_scene(scene_t *scene)
{
    killed_ledger_release(&scene->ledger);
    char remove_it[128];
    snprintf(remove_it, sizeof remove_it, "rm -rf '%s'", scene->folder);
    assert_int_equal(system(remove_it), 0);
}

static void synced_writes_survive(void **state)
{
    (void)state;
    scene_t scene;
    open_scene(&scene, killed_seed());
    int rounds = (int)effort(300, 40, 12);
    int64_t dropped = 0;
    for (int round = 0; round < rounds; round++) {
        killed_plan_t plan = {
            .durability = SPILL_DURABILITY_FSYNC, .at_once = round % 4 == 3, .longest_us = 40000};
        killed_round(&scene.ledger, scene.path, &plan, &scene.random);
        dropped += drop_unsynced(scene.path, scene.log, NULL);
        if (round % 10 == 9)
            killed_check(&scene.ledger, scene.path);
    }
    print_message("%d power losses, %" PRId64 " bytes dropped, %" PRId64 " appends acknowledged\n",
                  rounds, dropped, scene.ledger.answers);
    assert_true(dropped > 0);
    assert_true(scene.ledger.answers > rounds);
    killed_check(&scene.ledger, scene.path);
    close_scene(&scene);
}

/* One store for a few rounds, so that looking at all of it stays cheap. Returns bytes dropped. */
static int64_t lose_log_tails(scene_t *scene, int rounds, int padding)
{
    int64_t dropped = 0;
    for (int round = 0; round < rounds; round++) {
        killed_plan_t plan = {.durability = SPILL_DURABILITY_LOG,
                              .at_once = round % 4 == 3,
                              .before_close = round % 3 == 0 ? 20 : 0,
                              .padding = padding,
                              .longest_us = padding > 0 ? 600000 : 40000};
        killed_round(&scene->ledger, scene->path, &plan, &scene->random);
        dropped += drop_unsynced(scene->path, scene->log, &scene->random);
        killed_check_prefix(&scene->ledger, scene->path);
    }
    return dropped;
}

static void what_a_log_has_is_a_prefix(void **state)
{
    (void)state;
    int stores = (int)effort(40, 6, 6);
    int rounds = 0;
    int64_t dropped = 0;
    killed_ledger_t sum = {0};
    for (int i = 0; i < stores; i++) {
        scene_t scene;
        open_scene(&scene, killed_seed() + (unsigned)i);
        bool large = i % 6 == 5; /* so that the engine begins other logs meanwhile */
        int some = large ? 4 : 8;
        dropped += lose_log_tails(&scene, some, large ? 60000 : 0);
        rounds += some;
        sum.answers += scene.ledger.answers;
        sum.lost += scene.ledger.lost;
        sum.closes += scene.ledger.closes;
        close_scene(&scene);
    }
    print_message("%d power losses, %" PRId64 " bytes dropped, %" PRId64
                  " appends acknowledged, %" PRId64 " of them lost, closed %" PRId64 " times\n",
                  rounds, dropped, sum.answers, sum.lost, sum.closes);
    assert_true(sum.closes > 0);
    assert_true(sum.lost > 0);
    assert_true(sum.lost < sum.answers);
}

int main(int count, char **arguments)
{
    killed_run_if_worker(count, arguments);
    const struct CMUnitTest tests[] = {cmocka_unit_test(synced_writes_survive),
                                       cmocka_unit_test(what_a_log_has_is_a_prefix)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
