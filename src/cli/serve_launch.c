/* serve, in the program `spillway`: replace the process by spillway-serve. */
#include "cli/cli.h"
#include "cli/serve.h"
#include "util/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "spillway-serve"

/* The folder of this program, with a slash at its end. False: unknown. */
static bool own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = '\0';
    return slash != NULL;
}

/* The program stands beside this one in the build's folder, and in libexec when it is installed. */
static bool find_program(char path[PATH_MAX])
{
    static const char *const places[] = {PROGRAM, SPILLWAY_LIBEXEC "/" PROGRAM};
    char folder[PATH_MAX];
    if (!own_folder(folder))
        return false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int length = snprintf(path, PATH_MAX, "%s%s", folder, places[i]);
        if (length > 0 && length < PATH_MAX && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Lists of processes show the command line as the user gave it: spillway serve URI. */
static void start_program(const char *path, char **words)
{
    char name[] = "spillway";
    size_t count = 0;
    while (words[count])
        count++;
    char **all = bson_malloc0((count + 2) * sizeof *all);
    all[0] = name;
    memcpy(all + 1, words, count * sizeof *all);
    execv(path, all);
    int cause = errno;
    bson_free(all);
    errno = cause;
}

spill_exit_t spill_cli_serve(const spill_invocation_t *invocation)
{
    char path[PATH_MAX];
    spill_error_t error;
    if (!find_program(path)) {
        spill_fail(&error, SPILL_NOT_FOUND,
                   "the program " PROGRAM " is not installed beside this one or in its folder "
                   "libexec: install Spillway completely");
        return spill_cli_fail(&error);
    }
    fflush(NULL);
    start_program(path, invocation->words);
    spill_fail_errno(&error, errno, "%s cannot be started", path);
    return spill_cli_fail(&error);
}
