#include "util/file.h"

#include "util/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

spill_code_t spill_text_open(spill_text_t *text, spill_error_t *error)
{
    *text = (spill_text_t){0};
    text->to = open_memstream(&text->text, &text->size_bytes);
    return text->to ? SPILL_OK : spill_fail(error, SPILL_NO_MEMORY, "no memory for a text");
}

spill_code_t spill_text_close(spill_text_t *text, spill_error_t *error)
{
    bool failed = ferror(text->to) != 0;
    failed = fclose(text->to) != 0 || failed;
    text->to = NULL;
    if (failed)
        return spill_fail(error, SPILL_NO_MEMORY, "no memory for a text of more than %zu bytes",
                          text->size_bytes);
    return SPILL_OK;
}

void spill_text_release(spill_text_t *text)
{
    if (text->to)
        fclose(text->to);
    free(text->text);
    *text = (spill_text_t){0};
}

int spill_write_all(int file, const void *data, size_t size_bytes)
{
    const char *at = data;
    while (size_bytes > 0) {
        ssize_t wrote = write(file, at, size_bytes);
        if (wrote < 0 && errno != EINTR)
            return errno;
        at += wrote > 0 ? wrote : 0;
        size_bytes -= wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

static int close_file(int file, int problem)
{
    return close(file) != 0 && problem == 0 ? errno : problem;
}

/* The permissions of a new file. The umask can only be read by setting it. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(022);
    umask(mask);
    return 0666 & ~mask;
}

static int replace(const char *path, mode_t mode, const void *data, size_t size)
{
    char temporary[PATH_MAX + 16];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0)
        return errno;
    int problem = spill_write_all(file, data, size);
    if (problem == 0 && (fchmod(file, mode) != 0 || fsync(file) != 0))
        problem = errno;
    problem = close_file(file, problem);
    if (problem == 0 && rename(temporary, path) != 0)
        problem = errno;
    if (problem != 0)
        unlink(temporary);
    return problem;
}

static int write_into(const char *path, const void *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    return file < 0 ? errno : close_file(file, spill_write_all(file, data, size));
}

/* ---- stores ---------------------------------------------------------------------------------- */

static bool has_file(const char *folder, const char *name)
{
    char path[PATH_MAX + 16];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &status) == 0;
}

/* Remove the last part of a path without a trailing slash; "" is the root. */
static bool cut_to_parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

spill_code_t spill_file_refuse_in_store(const char *path, spill_error_t *error)
{
    char given[PATH_MAX];
    char folder[PATH_MAX];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= sizeof given)
        return spill_fail_errno(error, ENAMETOOLONG, "%s", path);
    snprintf(given, sizeof given, "%.*s", (int)length, path);
    /* An existing path may be a link into a store; of a new path, its folder counts. */
    bool exists = realpath(given, folder) != NULL;
    if (exists && !cut_to_parent(folder))
        return SPILL_OK;
    if (!exists) {
        if (!cut_to_parent(given))
            snprintf(given, sizeof given, ".");
        if (!realpath(given[0] ? given : "/", folder))
            return SPILL_OK; /* opening the path reports it */
    }
    do {
        if (has_file(folder, "SPILLWAY") && has_file(folder, "CURRENT"))
            return spill_fail(error, SPILL_REFUSED,
                              "%s: lies in the store %s, whose files belong to the store alone; "
                              "name a place outside of it",
                              path, folder);
    } while (cut_to_parent(folder));
    return SPILL_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

const struct dirent *spill_file_next_entry(DIR *folder, int *problem)
{
    errno = 0;
    const struct dirent *entry = readdir(folder);
    *problem = entry ? 0 : errno;
    return entry;
}

bool spill_file_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int spill_file_open_regular(const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return -1;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode))
        return file;
    close(file);
    errno = EINVAL;
    return -1;
}

FILE *spill_file_stream_regular(const char *path)
{
    int file = spill_file_open_regular(path);
    FILE *stream = file >= 0 ? fdopen(file, "rb") : NULL;
    if (file >= 0 && !stream)
        close(file);
    return stream;
}

/* ---- writing --------------------------------------------------------------------------------- */

spill_code_t spill_file_replace_itself(const char *path, const void *data, size_t size_bytes,
                                       spill_error_t *error)
{
    spill_code_t code = spill_file_refuse_in_store(path, error);
    if (code != SPILL_OK)
        return code;
    int problem = replace(path, usual_mode(), data, size_bytes);
    return problem ? spill_fail_errno(error, problem, "%s", path) : SPILL_OK;
}

spill_code_t spill_file_replace(const char *path, const void *data, size_t size_bytes,
                                spill_error_t *error)
{
    struct stat status;
    spill_code_t code = spill_file_refuse_in_store(path, error);
    if (code != SPILL_OK)
        return code;
    char target[PATH_MAX];
    int problem = 0;
    bool there = stat(path, &status) == 0;
    if (there && S_ISDIR(status.st_mode))
        problem = EISDIR;
    else if (there && !S_ISREG(status.st_mode))
        problem = write_into(path, data, size_bytes);
    else if (there && !realpath(path, target))
        problem = errno;
    else
        problem = replace(there ? target : path, there ? status.st_mode & 0777 : usual_mode(), data,
                          size_bytes);
    return problem ? spill_fail_errno(error, problem, "%s", path) : SPILL_OK;
}
