#include "util/file.h"

#include "util/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0, or errno. */
static int write_all(int file, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(file, data, size);
        if (wrote < 0 && errno != EINTR)
            return errno;
        data += wrote > 0 ? wrote : 0;
        size -= wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

static int close_file(int file, int problem)
{
    return close(file) != 0 && problem == 0 ? errno : problem;
}

/* What a file that is made anew may be read and written by; there is no asking without setting. */
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
    int problem = write_all(file, data, size);
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
    return file < 0 ? errno : close_file(file, write_all(file, data, size));
}

spill_code_t spill_file_replace(const char *path, const void *data, size_t size_bytes,
                                spill_error_t *error)
{
    struct stat status;
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
