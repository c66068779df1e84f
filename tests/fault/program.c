#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGUMENTS_MAX = 24, SKIPPED = 77 };

void program_needed(void)
{
    if (getenv("SPILLWAY") == NULL) {
        fprintf(stderr, "SKIPPED: SPILLWAY does not name the program\n");
        exit(SKIPPED);
    }
}

static void redirect(const char *path, int flags, int to)
{
    int file = open(path, flags | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, to) < 0)
        _exit(126);
}

/* Empty the output file: a process that is killed at once might not get to truncate it. */
static void empty_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_true(unlink(path) == 0 || errno == ENOENT);
}

pid_t program_start(const char *folder, const char *input, const char *const *arguments)
{
    char *program = getenv("SPILLWAY");
    if (program == NULL)
        exit(SKIPPED);
    char *list[ARGUMENTS_MAX] = {program};
    size_t count = 0;
    for (; arguments[count] != NULL; count++) {
        assert_true(count + 2 < ARGUMENTS_MAX);
        list[count + 1] = (char *)arguments[count];
    }
    empty_file(folder, "out");
    empty_file(folder, "err");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    if (chdir(folder) != 0)
        _exit(126);
    redirect(input != NULL ? input : "/dev/null", O_RDONLY, STDIN_FILENO);
    redirect("out", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect("err", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    execv(program, list);
    _exit(127);
}

static char *read_file(const char *folder, const char *name)
{
    char path[256];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    size_t size = file != NULL && fstat(fileno(file), &status) == 0 ? (size_t)status.st_size : 0;
    char *text = malloc(size + 1);
    assert_non_null(text);
    text[file != NULL ? fread(text, 1, size, file) : 0] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

program_end_t program_wait(const char *folder, pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    program_end_t end = {.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                         .status = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
    end.out = read_file(folder, "out");
    end.err = read_file(folder, "err");
    return end;
}

void program_end_release(program_end_t *end)
{
    free(end->out);
    free(end->err);
}

char *program_run(const char *folder, const char *const *arguments)
{
    program_end_t end = program_wait(folder, program_start(folder, NULL, arguments));
    if (end.status != 0)
        fail_msg("%s %s ended with %d: %s", arguments[0], arguments[1], end.status, end.err);
    free(end.err);
    return end.out;
}
