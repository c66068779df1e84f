/*
 * A simulated power loss: kill the worker, then truncate every file of the store to the length that
 * it had at its last sync.
 *
 * With durability fsync every acknowledged element must survive. With durability log the disk may
 * have a part of the unsynced data: the logs keep a random part of it, from its start. The store
 * must then open with every element acknowledged before the last close, and with some of the
 * appends that followed, in order.
 *
 * This program defines its own fsync and fdatasync, which the engine's library uses too. They sync,
 * and note which file was synced at which length. Inode and birth time together identify a file,
 * because inode numbers are reused.
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
    int64_t birth_ns; /* 0 if the file system does not report it */
    int64_t size_bytes;
} synced_t;

/* Fill the file's current note. Returns false if it is not a regular file. `path` may be "". */
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
    /* Take the length before the sync: data written during the sync may not reach the disk. */
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

/* The length of the file at its last sync; 0 if it was never synced. */
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
    int64_t synced_bytes; /* at most the size */
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

/* List the folder's files by name: logs are in the order of their six-digit numbers. */
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

/* Choose how many of the logs' unsynced bytes the disk has: often none or all. */
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
 * Truncate every file of the folder. If `random` is not NULL, the logs keep a part of their
 * unsynced bytes. Returns how many bytes were dropped.
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
    char log[64]; /* notes which files were synced */
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
    print_message("seed %u%s\n", seed, killed_use_paths(seed) ? ", paths" : "");
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
    int rounds = (int)effort(300, 10, 10);
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

/* Use one store for a few rounds only, so that each full check is cheap. Returns bytes dropped. */
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

static void log_keeps_a_prefix_of_appends(void **state)
{
    (void)state;
    int stores = (int)effort(40, 6, 6);
    int rounds = 0;
    int64_t dropped = 0;
    killed_ledger_t sum = {0};
    for (int i = 0; i < stores; i++) {
        scene_t scene;
        open_scene(&scene, killed_seed() + (unsigned)i);
        bool large = i % 6 == 5; /* so that the engine begins new logs during the round */
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
                                       cmocka_unit_test(log_keeps_a_prefix_of_appends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
