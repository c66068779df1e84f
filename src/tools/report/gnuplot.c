/* Run gnuplot as a program: it reads a script and writes a picture. */
#include "tools/report/svg.h"

#include "util/error.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The running program: `socket` is its input and output, `words` its error messages. */
typedef struct plotter {
    pid_t pid;
    int socket;
    int words;
} plotter_t;

static int spawn(plotter_t *plotter, int theirs)
{
    static char name[] = "gnuplot", defaults[] = "--default-settings", from_input[] = "-";
    char *arguments[] = {name, defaults, from_input, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, plotter->words, STDERR_FILENO);
    int problem = posix_spawnp(&plotter->pid, name, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return problem;
}

static spill_code_t start(plotter_t *plotter, spill_error_t *error)
{
    int ends[2];
    plotter->words = memfd_create("gnuplot", MFD_CLOEXEC);
    if (plotter->words < 0)
        return spill_fail_errno(error, errno, "gnuplot");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        int problem = errno;
        close(plotter->words);
        return spill_fail_errno(error, problem, "gnuplot");
    }
    plotter->socket = ends[0];
    int problem = spawn(plotter, ends[1]);
    close(ends[1]);
    if (problem == 0)
        return SPILL_OK;
    close(plotter->socket);
    close(plotter->words);
    if (problem == ENOENT)
        return spill_fail(error, SPILL_NOT_FOUND,
                          "gnuplot, which draws the plots, is not installed; on Debian: apt "
                          "install gnuplot-nox");
    return spill_fail_errno(error, problem, "gnuplot");
}

/* Send as much of the rest as the socket accepts; after the last byte, close the input. */
static void send_some(const plotter_t *plotter, const char **script, size_t *size)
{
    ssize_t sent = send(plotter->socket, *script, *size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        *size = 0; /* it has ended; its exit status tells why */
    *script += sent > 0 ? sent : 0;
    *size -= sent > 0 ? (size_t)sent : 0;
    if (*size == 0)
        shutdown(plotter->socket, SHUT_WR);
}

/* Receive output; false at its end. */
static bool receive_some(const plotter_t *plotter, spill_buffer_t *out)
{
    enum { PIECE = 65536 };
    uint8_t *room = spill_buffer_reserve(out, PIECE);
    ssize_t got = recv(plotter->socket, room, PIECE, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    out->size += (size_t)got;
    return got > 0;
}

/* Send the script and receive the output. False: no output for too long. */
static bool exchange(const plotter_t *plotter, const char *script, size_t size, spill_buffer_t *out)
{
    for (bool more = true; more;) {
        struct pollfd ready = {.fd = plotter->socket,
                               .events = (short)(size > 0 ? POLLIN | POLLOUT : POLLIN)};
        int count = poll(&ready, 1, SPILL_GNUPLOT_MS);
        if (count == 0)
            return false;
        if (count < 0)
            continue; /* a signal */
        if (size > 0 && (ready.revents & (POLLOUT | POLLERR)))
            send_some(plotter, &script, &size);
        if (ready.revents & (POLLIN | POLLHUP | POLLERR))
            more = receive_some(plotter, out);
    }
    return true;
}

/* The first line of its error messages that has letters. */
static void first_words(const plotter_t *plotter, char *words, size_t size)
{
    char text[1024];
    ssize_t got = pread(plotter->words, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    const char *line = text + strspn(text, " \t\r\n^");
    snprintf(words, size, "%.*s", (int)strcspn(line, "\n"), line);
}

spill_code_t spill_gnuplot(const char *script, size_t size_bytes, spill_buffer_t *out,
                           spill_error_t *error)
{
    plotter_t plotter = {.socket = -1, .words = -1};
    char words[256];
    int status = 0;
    spill_code_t code = start(&plotter, error);
    if (code != SPILL_OK)
        return code;
    bool answered = exchange(&plotter, script, size_bytes, out);
    if (!answered)
        kill(plotter.pid, SIGKILL);
    while (waitpid(plotter.pid, &status, 0) < 0 && errno == EINTR)
        ;
    first_words(&plotter, words, sizeof words);
    close(plotter.socket);
    close(plotter.words);
    if (!answered)
        return spill_fail(error, SPILL_IO, "gnuplot did not answer for %d s",
                          SPILL_GNUPLOT_MS / 1000);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return spill_fail(error, SPILL_IO, "gnuplot failed: %s",
                          words[0] ? words : "it says nothing");
    return SPILL_OK;
}
