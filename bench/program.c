#include "program.h"

#include "measure.h"

#include <bson/bson.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

char *program_beside(const char *self)
{
    const char *slash = strrchr(self, '/');
    return bson_strdup_printf("%.*s../spillway", slash ? (int)(slash - self + 1) : 0, self);
}

double program_run(char *const arguments[])
{
    pid_t process;
    int status;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    double start = measure_now();
    if (posix_spawn(&process, arguments[0], &actions, NULL, arguments, environ) != 0)
        measure_stop("%s: cannot be run", arguments[0]);
    if (waitpid(process, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        measure_stop("spillway %s failed", arguments[1]);
    double seconds = measure_now() - start;
    posix_spawn_file_actions_destroy(&actions);
    return seconds;
}
