/* The folder of a store on disk: recognize it, lock it, compare it with its last close. */
#include "store/embedded/folder.h"

#include "util/buffer.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#include <bson/bson.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK "SPILLWAY"
#define MARK_BEGIN "A Spillway store."
#define MARK_LINE MARK_BEGIN " The other files belong to RocksDB; do not change any.\n"

/* RocksDB writes it before CURRENT. Alone, it is the rest of a process that died in between. */
#define FIRST_MANIFEST "MANIFEST-000001"

/* ---- recognizing a store --------------------------------------------------------------------- */

typedef struct contents {
    bool mark;
    bool current; /* RocksDB begins with the file CURRENT */
    bool engine;  /* files that RocksDB makes after CURRENT, so there was a store */
    bool other;
} contents_t;

static void count_entry(const char *name, contents_t *contents)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return;
    if (strcmp(name, MARK) == 0)
        contents->mark = true;
    else if (strcmp(name, "CURRENT") == 0)
        contents->current = true;
    else if (strcmp(name, FIRST_MANIFEST) != 0 &&
             (strncmp(name, "MANIFEST-", 9) == 0 || spill_text_ends_with(name, ".sst") ||
              spill_text_ends_with(name, ".blob") || spill_text_ends_with(name, ".log")))
        contents->engine = true;
    else
        contents->other = true;
}

/* A file that the store or the engine opens by this name. */
static bool belongs_to_store(const char *name)
{
    static const char *const names[] = {MARK, "CURRENT", "IDENTITY", "LOCK", "LOG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strncmp(name, "MANIFEST-", 9) == 0 || strncmp(name, "OPTIONS-", 8) == 0 ||
           strncmp(name, "LOG.old.", 8) == 0 || spill_text_ends_with(name, ".sst") ||
           spill_text_ends_with(name, ".blob") || spill_text_ends_with(name, ".log") ||
           spill_text_ends_with(name, ".dbtmp");
}

/* A link is not: its target may be another user's file. A file that was just deleted counts. */
static bool is_regular(int folder, const struct dirent *entry)
{
    struct stat about;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_REG;
    return fstatat(folder, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
           S_ISREG(about.st_mode);
}

spill_code_t spill_folder_look(const char *folder, spill_folder_kind_t *kind, spill_error_t *error)
{
    *kind = SPILL_FOLDER_MISSING;
    DIR *entries = opendir(folder);
    if (!entries) {
        if (errno == ENOENT)
            return SPILL_OK;
        if (errno == ENOTDIR)
            return spill_fail(error, SPILL_NOT_FOUND,
                              "%s: is not a folder; a store is a folder of its own", folder);
        return spill_fail_errno(error, errno, "%s: cannot look into the folder", folder);
    }
    contents_t contents = {0};
    char odd[256] = "";
    int problem;
    for (const struct dirent *entry; (entry = spill_file_next_entry(entries, &problem)) != NULL;) {
        count_entry(entry->d_name, &contents);
        if (belongs_to_store(entry->d_name) && !is_regular(dirfd(entries), entry))
            snprintf(odd, sizeof odd, "%s", entry->d_name);
    }
    closedir(entries);
    if (problem != 0)
        return spill_fail_errno(error, problem, "%s: cannot look into the folder", folder);
    if (odd[0])
        return spill_fail(error, SPILL_NOT_FOUND,
                          "%s/%s: is not a regular file, so the folder is not used as a store; "
                          "name another folder, or remove what is in that file's place",
                          folder, odd);
    if (contents.mark && contents.current)
        *kind = SPILL_FOLDER_STORE;
    else if (contents.mark && contents.engine)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s/CURRENT: is missing from this store; restore a backup", folder);
    else if (!contents.mark && (contents.current || contents.engine || contents.other))
        return spill_fail(error, SPILL_NOT_FOUND,
                          "%s: is not a Spillway store (it has no file " MARK
                          " and is not empty); name a folder that is new, empty or a store",
                          folder);
    return SPILL_OK;
}

/* The number in the name of an engine's log; -1 for any other name. */
static long log_number(const char *name)
{
    char *end;
    long number = strtol(name, &end, 10);
    return end != name && strcmp(end, ".log") == 0 ? number : -1;
}

/* The next log among a folder's entries, or NULL. */
static const char *next_log(DIR *entries)
{
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL && log_number(entry->d_name) < 0)
        continue;
    return entry ? entry->d_name : NULL;
}

void spill_folder_logs(const char *folder, char *text, size_t size)
{
    DIR *entries = opendir(folder);
    text[0] = '\0';
    if (!entries)
        return;
    for (const char *name; (name = next_log(entries)) != NULL;) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    }
    closedir(entries);
}

/* The umask may remove too many bits from mkdir's mode. */
spill_code_t spill_folder_make(const char *folder, unsigned file_mode, bool *made,
                               spill_error_t *error)
{
    mode_t mode = file_mode | (file_mode & 0444U) >> 2U;
    *made = false;
    spill_code_t code = spill_file_refuse_in_store(folder, error);
    if (code != SPILL_OK)
        return code;
    *made = mkdir(folder, mode) == 0;
    if (*made && chmod(folder, mode) == 0)
        return spill_folder_sync_parent(folder, error);
    if (!*made && errno == EEXIST)
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

static void read_second_line(int mark, char *line, size_t size)
{
    char text[512] = "";
    ssize_t length = pread(mark, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    const char *second = strchr(text, '\n');
    snprintf(line, size, "%s", second ? second + 1 : "");
    /* A killed writer may have left the end of a longer line behind this one. */
    char *end = strchr(line, '\n');
    if (end)
        end[1] = '\0';
}

static spill_code_t fail_busy(const char *folder, int mark, spill_error_t *error)
{
    char line[256];
    read_second_line(mark, line, sizeof line);
    const char *holder = strncmp(line, "process ", 8) == 0 ? line : "another process";
    return spill_fail_retryable(
        error, SPILL_BUSY,
        "%s: is being written to by %.*s; wait for it, or open the store read-only", folder,
        (int)strcspn(holder, "\n"), holder);
}

/* Write the store's label, with the process that holds the store ("": none). */
static spill_code_t write_label(const char *folder, int mark, const char *holder,
                                spill_error_t *error)
{
    char text[512];
    int size = snprintf(text, sizeof text, "%s%s", MARK_LINE, holder);
    if (pwrite(mark, text, (size_t)size, 0) != size || ftruncate(mark, size) != 0 ||
        fsync(mark) != 0)
        return spill_fail_errno(error, errno, "%s/" MARK ": cannot write", folder);
    return spill_folder_sync(folder, error);
}

/* Is the file regular, and empty or a store's label? */
static bool is_label(int mark, bool *empty)
{
    char text[sizeof MARK_BEGIN] = "";
    struct stat about;
    *empty = false;
    if (fstat(mark, &about) != 0 || !S_ISREG(about.st_mode))
        return false;
    ssize_t length = pread(mark, text, sizeof MARK_BEGIN - 1, 0);
    *empty = length == 0;
    return *empty || (length > 0 && strncmp(text, MARK_BEGIN, (size_t)length) == 0);
}

/* No other file may be overwritten. An empty file is new, and gets its permissions here. */
static bool is_mark(int mark, unsigned file_mode)
{
    bool empty;
    return is_label(mark, &empty) && (!empty || fchmod(mark, file_mode) == 0);
}

/* Are the engine's files there? */
static bool has_list(const char *folder)
{
    char *path = bson_strdup_printf("%s/CURRENT", folder);
    bool there = access(path, F_OK) == 0;
    bson_free(path);
    return there;
}

static spill_code_t fail_overwritten(const char *folder, spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT,
                      "%s/" MARK ": does not begin with \"" MARK_BEGIN "\", and is left alone; the "
                      "store's other files can be read. If this is your store, empty that file "
                      "(truncate -s 0), and open the store again",
                      folder);
}

static spill_code_t open_mark(const char *folder, unsigned file_mode, int *mark,
                              spill_error_t *error)
{
    char *path = bson_strdup_printf("%s/" MARK, folder);
    *mark = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    int problem = errno;
    bson_free(path);
    if (*mark >= 0 && is_mark(*mark, file_mode))
        return SPILL_OK;
    if (*mark < 0 && problem != ELOOP && problem != ENXIO)
        return spill_fail_errno(error, problem, "%s/" MARK ": cannot write to the store", folder);
    bool opened = *mark >= 0;
    if (opened)
        close(*mark);
    *mark = -1;
    if (opened && has_list(folder))
        return fail_overwritten(folder, error);
    return spill_fail(error, SPILL_NOT_FOUND,
                      "%s/" MARK ": is not the file that marks a store, and is left alone; name "
                      "another folder",
                      folder);
}

/* Hash a file's first `size` bytes. False: they cannot be read. */
static bool hash_file(const char *path, size_t size, uint64_t *hash)
{
    FILE *file = spill_file_stream_regular(path);
    if (!file)
        return false;
    void *bytes = bson_malloc(size > 0 ? size : 1);
    bool whole = fread(bytes, 1, size, file) == size;
    *hash = spill_hash(bytes, size);
    bson_free(bytes);
    fclose(file);
    return whole;
}

/* The engine's list of files, as "closed: NAME SIZE HASH". False: it cannot be read. */
static bool describe_closed(const char *folder, char *text, size_t size)
{
    char name[64] = "";
    char *path = bson_strdup_printf("%s/CURRENT", folder);
    FILE *current = spill_file_stream_regular(path);
    bson_free(path);
    bool named = current && fgets(name, sizeof name, current) != NULL;
    if (current)
        fclose(current);
    name[strcspn(name, "\n")] = '\0';
    struct stat about;
    path = bson_strdup_printf("%s/%s", folder, name);
    uint64_t hash = 0;
    named = named && stat(path, &about) == 0 && hash_file(path, (size_t)about.st_size, &hash);
    if (named)
        snprintf(text, size, "closed: %s %lld %016llx\n", name, (long long)about.st_size,
                 (unsigned long long)hash);
    bson_free(path);
    return named;
}

/* Compare the second line of SPILLWAY with the folder. */
static spill_code_t compare(const char *folder, const char *was, spill_error_t *error)
{
    char is[128] = "";
    if (strncmp(was, "closed: ", 8) != 0)
        return SPILL_OK;
    /* A store that was closed by an earlier version has no hash. */
    size_t length = strcspn(was, "\n");
    bool described = describe_closed(folder, is, sizeof is);
    if (described && (strcmp(was, is) == 0 || (strncmp(was, is, length) == 0 && is[length] == ' ')))
        return SPILL_OK;
    const char *list = was + strlen("closed: ");
    int list_length = (int)strcspn(list, " \n");
    if (!described || strncmp(was, is, strlen("closed: ") + (size_t)list_length + 1) != 0)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s/CURRENT: does not name %.*s, the list of files when the store was "
                          "closed: CURRENT was changed (or " MARK "); restore a backup",
                          folder, list_length, list);
    return spill_fail(error, SPILL_CORRUPT,
                      "%s/%.*s: was another file when the store was closed: its size and its sum "
                      "are not those in " MARK "; restore a backup",
                      folder, list_length, list);
}

spill_code_t spill_folder_compare(const char *folder, spill_error_t *error)
{
    char was[128];
    char again[128];
    char *path = bson_strdup_printf("%s/" MARK, folder);
    int mark = spill_file_open_regular(path);
    int problem = errno;
    bson_free(path);
    if (mark < 0)
        return spill_fail_errno(error, problem, "%s/" MARK ": cannot read", folder);
    read_second_line(mark, was, sizeof was);
    spill_code_t code = compare(folder, was, error);
    read_second_line(mark, again, sizeof again);
    close(mark);
    return strcmp(was, again) == 0 ? code : SPILL_OK; /* else a writer has changed the file */
}

spill_code_t spill_folder_check_label(const char *folder, spill_error_t *error)
{
    bool empty, label = true;
    char *path = bson_strdup_printf("%s/" MARK, folder);
    int mark = spill_file_open_regular(path);
    bson_free(path);
    if (mark >= 0) {
        label = is_label(mark, &empty);
        close(mark);
    }
    return label ? SPILL_OK : fail_overwritten(folder, error);
}

spill_code_t spill_folder_lock(const char *folder, unsigned file_mode, spill_folder_lock_t *lock,
                               spill_error_t *error)
{
    lock->mark = -1;
    int mark;
    spill_code_t code = open_mark(folder, file_mode, &mark, error);
    if (code != SPILL_OK)
        return code;
    if (flock(mark, LOCK_EX | LOCK_NB) != 0) {
        code = errno == EWOULDBLOCK
                   ? fail_busy(folder, mark, error)
                   : spill_fail_errno(error, errno, "%s/" MARK ": cannot lock", folder);
    } else {
        char holder[256];
        read_second_line(mark, lock->before, sizeof lock->before);
        code = compare(folder, lock->before, error);
        describe_self(holder, sizeof holder);
        if (code == SPILL_OK)
            code = write_label(folder, mark, holder, error);
    }
    if (code == SPILL_OK)
        lock->mark = mark;
    else
        close(mark);
    return code;
}

/*
 * If the engine was not closed without error, keep the old second line while it still holds: the
 * store may only have failed to open. A failed write of the line does no harm: the next open then
 * has nothing to compare with.
 */
void spill_folder_unlock(const char *folder, spill_folder_lock_t *lock, bool closed)
{
    char text[128] = "";
    if (lock->mark < 0)
        return;
    bool described = describe_closed(folder, text, sizeof text);
    bool holds = described && (closed || strcmp(text, lock->before) == 0);
    write_label(folder, lock->mark, holds ? text : "", NULL);
    close(lock->mark);
    lock->mark = -1;
}

spill_code_t spill_folder_write_label(const char *folder, unsigned file_mode, spill_error_t *error)
{
    int mark;
    char text[256] = "";
    spill_code_t code = open_mark(folder, file_mode, &mark, error);
    if (code != SPILL_OK)
        return code;
    describe_closed(folder, text, sizeof text);
    code = write_label(folder, mark, text, error);
    close(mark);
    return code;
}

/* ---- the file system ------------------------------------------------------------------------- */

void spill_folder_remove(const char *folder)
{
    int itself = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = itself >= 0 ? fdopendir(itself) : NULL;
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
