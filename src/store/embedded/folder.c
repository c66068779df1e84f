#include "store/embedded/folder.h"

#include "util/error.h"

#include <bson/bson.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK "SPILLWAY"
#define MARK_LINE "A Spillway store. The other files belong to RocksDB; do not change any.\n"

/* ---- looking --------------------------------------------------------------------------------- */

typedef struct contents {
    bool mark;
    bool current; /* RocksDB begins with the file CURRENT */
    bool engine;  /* other files of RocksDB */
    bool other;
} contents_t;

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name);
    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

static void count_entry(const char *name, contents_t *contents)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return;
    if (strcmp(name, MARK) == 0)
        contents->mark = true;
    else if (strcmp(name, "CURRENT") == 0)
        contents->current = true;
    else if (strncmp(name, "MANIFEST-", 9) == 0 || ends_with(name, ".sst"))
        contents->engine = true;
    else
        contents->other = true;
}

spill_code_t spill_folder_look(const char *folder, spill_folder_kind_t *kind, spill_error_t *error)
{
    *kind = SPILL_FOLDER_MISSING;
    DIR *entries = opendir(folder);
    if (!entries) {
        if (errno == ENOENT)
            return SPILL_OK;
        if (errno == ENOTDIR)
            return spill_fail(error, SPILL_INVALID,
                              "%s: is not a folder; a store is a folder of its own", folder);
        return spill_fail_errno(error, errno, "%s: cannot look into the folder", folder);
    }
    contents_t contents = {0};
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count_entry(entry->d_name, &contents);
    closedir(entries);
    if (contents.mark && contents.current)
        *kind = SPILL_FOLDER_STORE;
    else if (contents.mark && contents.engine)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s/CURRENT: is missing from this store; restore a backup", folder);
    else if (!contents.mark && (contents.current || contents.engine || contents.other))
        return spill_fail(error, SPILL_INVALID,
                          "%s: is not a Spillway store (it has no file " MARK
                          " and is not empty); name a folder that is new, empty or a store",
                          folder);
    return SPILL_OK;
}

spill_code_t spill_folder_make(const char *folder, spill_error_t *error)
{
    if (mkdir(folder, 0777) == 0)
        return spill_folder_sync_parent(folder, error);
    if (errno == EEXIST)
        return SPILL_OK;
    return spill_fail_errno(error, errno, "%s: cannot make the folder", folder);
}

/* ---- the lock -------------------------------------------------------------------------------- */

/* "process 4711 on host (spillway), since 2025-01-31T12:00:00Z" */
static void describe_self(char *text, size_t size)
{
    char host[65] = "";
    char since[32];
    time_t now = time(NULL);
    struct tm parts;
    gethostname(host, sizeof host - 1);
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    snprintf(text, size, "process %ld on %s (%s), since %s\n", (long)getpid(), host,
             program_invocation_short_name, since);
}

static spill_code_t fail_busy(const char *folder, int mark, spill_error_t *error)
{
    char text[512] = "";
    ssize_t size = pread(mark, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    const char *holder = strchr(text, '\n');
    holder = holder && holder[1] ? holder + 1 : "another process";
    return spill_fail(error, SPILL_BUSY,
                      "%s: is being written to by %.*s; wait for it, or open the store read-only",
                      folder, (int)strcspn(holder, "\n"), holder);
}

static spill_code_t write_mark(const char *folder, int mark, const char *holder,
                               spill_error_t *error)
{
    char text[512];
    int size = snprintf(text, sizeof text, "%s%s", MARK_LINE, holder);
    if (pwrite(mark, text, (size_t)size, 0) != size || ftruncate(mark, size) != 0 ||
        fsync(mark) != 0)
        return spill_fail_errno(error, errno, "%s/" MARK ": cannot write", folder);
    return spill_folder_sync(folder, error);
}

static spill_code_t open_mark(const char *folder, int *mark, spill_error_t *error)
{
    char *path = bson_strdup_printf("%s/" MARK, folder);
    *mark = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int problem = errno;
    bson_free(path);
    if (*mark >= 0)
        return SPILL_OK;
    return spill_fail_errno(error, problem, "%s/" MARK ": cannot write to the store", folder);
}

spill_code_t spill_folder_lock(const char *folder, int *lock, spill_error_t *error)
{
    *lock = -1;
    int mark;
    spill_code_t code = open_mark(folder, &mark, error);
    if (code != SPILL_OK)
        return code;
    if (flock(mark, LOCK_EX | LOCK_NB) != 0) {
        code = errno == EWOULDBLOCK
                   ? fail_busy(folder, mark, error)
                   : spill_fail_errno(error, errno, "%s/" MARK ": cannot lock", folder);
    } else {
        char holder[256];
        describe_self(holder, sizeof holder);
        code = write_mark(folder, mark, holder, error);
    }
    if (code == SPILL_OK)
        *lock = mark;
    else
        close(mark);
    return code;
}

void spill_folder_unlock(int lock)
{
    if (lock < 0)
        return;
    /* Who wrote last is of no use any more; that it cannot be erased does no harm. */
    if (ftruncate(lock, (off_t)strlen(MARK_LINE)) != 0)
        errno = 0;
    close(lock);
}

spill_code_t spill_folder_mark(const char *folder, spill_error_t *error)
{
    int mark;
    spill_code_t code = open_mark(folder, &mark, error);
    if (code != SPILL_OK)
        return code;
    code = write_mark(folder, mark, "", error);
    close(mark);
    return code;
}

/* ---- the file system ------------------------------------------------------------------------- */

void spill_folder_remove(const char *folder)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    rmdir(folder);
}

spill_code_t spill_folder_sync(const char *folder, spill_error_t *error)
{
    int entries = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (entries < 0)
        return spill_fail_errno(error, errno, "%s: cannot open the folder", folder);
    int result = fsync(entries);
    int problem = errno;
    close(entries);
    if (result != 0 && problem != EINVAL) /* EINVAL: the file system does not sync folders */
        return spill_fail_errno(error, problem, "%s: cannot sync the folder", folder);
    return SPILL_OK;
}

spill_code_t spill_folder_sync_parent(const char *path, spill_error_t *error)
{
    char *parent = bson_strdup(path);
    size_t length = strlen(parent);
    while (length > 1 && parent[length - 1] == '/')
        length--;
    while (length > 0 && parent[length - 1] != '/')
        length--;
    parent[length] = '\0';
    spill_code_t code = spill_folder_sync(length == 0 ? "." : parent, error);
    bson_free(parent);
    return code;
}
