/* Open the files of a store's folder as of one moment, and read them. */
#include "store/embedded/folder.h"

#include "util/clock.h"
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
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 256 * 1024, PAUSE_US = 1000, PAUSE_MAX_US = 50000, WAIT_US = 10000000 };

/* ---- the files ------------------------------------------------------------------------------- */

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const spill_pinned_file_t *)left)->name,
                  ((const spill_pinned_file_t *)right)->name);
}

const spill_pinned_file_t *spill_pinned_find(const spill_pinned_t *pinned, const char *name)
{
    spill_pinned_file_t key = {.name = (char *)(uintptr_t)name};
    if (pinned->count == 0)
        return NULL;
    return bsearch(&key, pinned->files, pinned->count, sizeof *pinned->files, compare_names);
}

static void close_files(spill_pinned_t *pinned)
{
    for (size_t i = 0; i < pinned->count; i++) {
        close(pinned->files[i].fd);
        bson_free(pinned->files[i].name);
    }
    bson_free(pinned->files);
    pinned->files = NULL;
    pinned->count = 0;
}

void spill_pinned_free(spill_pinned_t *pinned)
{
    if (!pinned)
        return;
    close_files(pinned);
    bson_free(pinned->folder);
    bson_free(pinned);
}

/* The engine's other files are locks, messages, and files that it is still writing. */
static bool belongs_to_view(const char *name)
{
    return strcmp(name, "CURRENT") == 0 || strcmp(name, "IDENTITY") == 0 ||
           strncmp(name, "MANIFEST-", 9) == 0 || strncmp(name, "OPTIONS-", 8) == 0 ||
           spill_text_ends_with(name, ".sst") || spill_text_ends_with(name, ".blob") ||
           spill_text_ends_with(name, ".log");
}

/*
 * Is it a file that the list of files need not name? Without a log the view lacks its elements, and
 * nothing would report that.
 */
static bool is_found_by_name(const char *name)
{
    return strcmp(name, "CURRENT") == 0 || strncmp(name, "MANIFEST-", 9) == 0 ||
           spill_text_ends_with(name, ".log");
}

/*
 * Add a file of the folder, without its size. Skip one that a writer has just deleted. Skip a table
 * that cannot be opened: the engine reports it if it needs it. Returns 0, or the error number.
 */
static int add_file(spill_pinned_t *pinned, int folder, const char *name)
{
    struct stat about;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT && is_found_by_name(name)) {
        int problem = errno;
        snprintf(pinned->unopened, sizeof pinned->unopened, "/%.60s", name);
        return problem;
    }
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : 0;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(fd);
        return 0;
    }
    if ((pinned->count & (pinned->count + 1)) == 0) /* 0, 1, 3, 7, ...: room for twice as many */
        pinned->files =
            bson_realloc(pinned->files, (2 * pinned->count + 1) * sizeof *pinned->files);
    pinned->files[pinned->count++] = (spill_pinned_file_t){.name = bson_strdup(name), .fd = fd};
    return 0;
}

static int add_files(spill_pinned_t *pinned, int folder)
{
    int problem = 0;
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;
    if (!entries) {
        problem = errno;
        if (again >= 0)
            close(again);
        return problem;
    }
    for (const struct dirent *entry;
         problem == 0 && (entry = spill_file_next_entry(entries, &problem)) != NULL;)
        if (belongs_to_view(entry->d_name))
            problem = add_file(pinned, folder, entry->d_name);
    closedir(entries);
    if (pinned->count > 0)
        qsort(pinned->files, pinned->count, sizeof *pinned->files, compare_names);
    return problem;
}

/*
 * After the last file was opened: a log is complete when the next one exists, and the newest one
 * ends, for the view, where it ends now.
 */
static void measure_files(spill_pinned_t *pinned)
{
    for (size_t i = 0; i < pinned->count; i++) {
        struct stat about;
        if (fstat(pinned->files[i].fd, &about) == 0)
            pinned->files[i].size_bytes = (uint64_t)about.st_size;
    }
}

/* ---- a consistent set of files --------------------------------------------------------------- */

/* The list of files that CURRENT names, and its length. `name` is empty if there is none. */
typedef struct list_state {
    char name[64];
    ino_t inode;
    off_t size_bytes;
} list_state_t;

static list_state_t read_list_state(int folder)
{
    list_state_t state = {.name = ""};
    struct stat about;
    int current = openat(folder, "CURRENT", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (current < 0)
        return state;
    ssize_t length = read(current, state.name, sizeof state.name - 1);
    close(current);
    state.name[length > 0 ? length : 0] = '\0';
    state.name[strcspn(state.name, "\n")] = '\0';
    if (strchr(state.name, '/') || fstatat(folder, state.name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        state.name[0] = '\0';
    else {
        state.inode = about.st_ino;
        state.size_bytes = about.st_size;
    }
    return state;
}

static bool same_list(const list_state_t *one, const list_state_t *other)
{
    return strcmp(one->name, other->name) == 0 && one->inode == other->inode &&
           one->size_bytes == other->size_bytes;
}

/*
 * The list did not change while the files were opened, so no file in it was deleted meanwhile: a
 * writer deletes a file after it wrote a list without it. Sets *unchanged to false if it did
 * change.
 */
static int pin_once(spill_pinned_t *pinned, int folder, bool *unchanged)
{
    list_state_t before = read_list_state(folder);
    int problem = add_files(pinned, folder);
    if (problem == 0)
        measure_files(pinned);
    list_state_t after = read_list_state(folder);
    *unchanged = problem == 0 && before.name[0] && same_list(&before, &after);
    return problem;
}

static spill_code_t pin_files(spill_pinned_t *pinned, int folder, spill_error_t *error)
{
    enum { MISSING_TRIES = 5 };
    int64_t pause_us = PAUSE_US;
    int64_t end_us = spill_clock_monotonic_us(NULL) + WAIT_US;
    for (int tries = 1;; tries++) {
        bool unchanged;
        int problem = pin_once(pinned, folder, &unchanged);
        if (problem != 0)
            return spill_fail_errno(
                error, problem, "%s%s: cannot open%s", pinned->folder, pinned->unopened,
                problem == EMFILE ? " (raise the limit of open files, ulimit -n)" : "");
        bool missing =
            !spill_pinned_find(pinned, "CURRENT") || read_list_state(folder).name[0] == 0;
        if (unchanged || (missing && tries >= MISSING_TRIES))
            return SPILL_OK;
        if (spill_clock_monotonic_us(NULL) >= end_us)
            return spill_fail_retryable(error, SPILL_BUSY,
                                        "%s: other processes change its list of files without a "
                                        "pause; try again",
                                        pinned->folder);
        close_files(pinned);
        spill_clock_sleep_us(NULL, pause_us);
        pause_us = pause_us * 2 < PAUSE_MAX_US ? pause_us * 2 : PAUSE_MAX_US;
    }
}

spill_code_t spill_pinned_open(const char *folder, spill_pinned_t **pinned, spill_error_t *error)
{
    *pinned = NULL;
    int entries = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (entries < 0)
        return spill_fail_errno(error, errno, "%s: cannot open the folder", folder);
    spill_pinned_t *made = bson_malloc0(sizeof *made);
    made->folder = bson_strdup(folder);
    spill_code_t code = pin_files(made, entries, error);
    close(entries);
    if (code == SPILL_OK)
        *pinned = made;
    else
        spill_pinned_free(made);
    return code;
}

/* ---- reading and copying --------------------------------------------------------------------- */

int64_t spill_pinned_read(const spill_pinned_file_t *file, uint64_t offset, void *bytes,
                          size_t size_bytes)
{
    if (offset >= file->size_bytes)
        return 0;
    size_t wanted =
        size_bytes < file->size_bytes - offset ? size_bytes : (size_t)(file->size_bytes - offset);
    size_t done = 0;
    while (done < wanted) {
        ssize_t got = pread(file->fd, (char *)bytes + done, wanted - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

typedef struct stream {
    const spill_pinned_file_t *file;
    uint64_t at;
} stream_t;

static ssize_t read_stream(void *cookie, char *bytes, size_t size)
{
    stream_t *stream = cookie;
    int64_t got = spill_pinned_read(stream->file, stream->at, bytes, size);
    stream->at += got > 0 ? (uint64_t)got : 0;
    return (ssize_t)got;
}

static int seek_stream(void *cookie, off64_t *offset, int whence)
{
    stream_t *stream = cookie;
    int64_t from = whence == SEEK_SET   ? 0
                   : whence == SEEK_CUR ? (int64_t)stream->at
                                        : (int64_t)stream->file->size_bytes;
    if (from + *offset < 0)
        return -1;
    *offset += from;
    stream->at = (uint64_t)*offset;
    return 0;
}

static int close_stream(void *cookie)
{
    bson_free(cookie);
    return 0;
}

FILE *spill_pinned_stream(const spill_pinned_file_t *file)
{
    static const cookie_io_functions_t functions = {
        .read = read_stream, .seek = seek_stream, .close = close_stream};
    stream_t *stream = bson_malloc0(sizeof *stream);
    stream->file = file;
    FILE *made = fopencookie(stream, "rb", functions);
    if (!made)
        bson_free(stream);
    return made;
}

static int copy_bytes(const spill_pinned_file_t *file, int to)
{
    char *block = bson_malloc(COPY_BYTES);
    int problem = 0;
    int64_t got = 0;
    for (uint64_t at = 0; problem == 0 && at < file->size_bytes; at += (uint64_t)got) {
        got = spill_pinned_read(file, at, block, COPY_BYTES);
        if (got <= 0)
            problem = got < 0 ? errno : EIO;
        else
            problem = spill_write_all(to, block, (size_t)got);
    }
    bson_free(block);
    return problem != 0 || fsync(to) == 0 ? problem : errno;
}

int spill_pinned_link(const spill_pinned_file_t *file, const char *path)
{
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", file->fd);
    if (linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    /* Another file system, a deleted file, a file of another user. */
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        return errno;
    int problem = copy_bytes(file, to);
    if (close(to) != 0 && problem == 0)
        problem = errno;
    if (problem != 0)
        unlink(path);
    return problem;
}
