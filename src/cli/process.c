/* The process of the program: its descriptors, limits and signals, and lines of stdin. */
#include "cli/process.h"

#include "cli/command.h"
#include "store/store.h"
#include "util/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- preparation ----------------------------------------------------------------------------- */

/* Opened in the wrong direction, so that using a stdin or stdout that was closed fails. */
static void open_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(SPILL_EXIT_FAILED);
    }
}

/* A reader keeps all files of a store open, and the usual limit is 1024. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void spill_cli_prepare_process(void)
{
    open_standard_descriptors();
    raise_open_files();
}

/*
 * Runs before the libraries are initialized: the server's driver then creates a file, which a small
 * limit (ulimit -f) would forbid.
 */
static void ignore_file_size_signal(void)
{
    signal(SIGXFSZ, SIG_IGN);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(void) = ignore_file_size_signal;

/* ---- interrupts ------------------------------------------------------------------------------ */

static atomic_bool interrupted;
static sem_t interrupts; /* counts them */

static void on_interrupt(int signal_number)
{
    int problem = errno;
    atomic_store(&interrupted, true);
    signal(signal_number, SIG_DFL);
    sem_post(&interrupts);
    errno = problem;
}

static void init_interrupts(void)
{
    sem_init(&interrupts, 0, 0);
}

static void prepare_interrupts(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_interrupts);
}

void spill_cli_await_interrupt(void)
{
    prepare_interrupts();
    while (sem_wait(&interrupts) != 0)
        continue; /* EINTR */
}

atomic_bool *spill_cli_catch_interrupts(void)
{
    prepare_interrupts();
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}

bool spill_cli_interrupted(void)
{
    return atomic_load(&interrupted);
}

void spill_cli_stop_on_interrupt(spill_store_t *store)
{
    store->stop = spill_cli_catch_interrupts();
}

/* ---- the reader of stdout ----------------------------------------------------------------- */

static atomic_bool reader_may_leave;

static void *await_reader(void *unused)
{
    (void)unused;
    struct pollfd output = {.fd =
                                STDOUT_FILENO}; /* a closed pipe is reported without being asked */
    while (poll(&output, 1, -1) < 0 && errno == EINTR)
        continue;
    if (!(output.revents & (POLLERR | POLLHUP)) || atomic_load(&reader_may_leave))
        return NULL;
    raise(SIGPIPE);
    atomic_store(&interrupted, true); /* whoever started the program ignores the signal */
    return NULL;
}

void spill_cli_stop_without_reader(void)
{
    struct stat about;
    pthread_t thread;
    sigset_t all, before;
    atomic_store(&reader_may_leave, false);
    if (fstat(STDOUT_FILENO, &about) != 0 || (!S_ISFIFO(about.st_mode) && !S_ISSOCK(about.st_mode)))
        return;
    sigfillset(&all);
    sigdelset(&all, SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, await_reader, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void spill_cli_reader_may_leave(void)
{
    atomic_store(&reader_may_leave, true);
}

/* ---- lines of stdin -------------------------------------------------------------------------- */

enum { READ_BYTES = 64 * 1024 };

/* The next line in the buffer; after the end of the input, the rest is the last line. */
static bool next_line(spill_cli_lines_t *lines, const char **line, size_t *size)
{
    const char *data = (const char *)lines->bytes.data;
    size_t left = lines->bytes.size - lines->scanned;
    const char *end = left > 0 ? memchr(data + lines->scanned, '\n', left) : NULL;
    lines->scanned = lines->bytes.size;
    if (!end && (!lines->ended || lines->start == lines->bytes.size))
        return false;
    *line = data + lines->start;
    *size = (end ? (size_t)(end - data) : lines->bytes.size) - lines->start;
    lines->start += *size + (end ? 1 : 0);
    lines->scanned = lines->start;
    return true;
}

/* Read more bytes behind the unfinished line, which moves to the buffer's front. */
static spill_code_t read_more(spill_cli_lines_t *lines, spill_error_t *error)
{
    size_t rest = lines->bytes.size - lines->start;
    if (lines->start > 0)
        memmove(lines->bytes.data, lines->bytes.data + lines->start, rest);
    lines->scanned -= lines->start;
    lines->bytes.size = rest;
    lines->start = 0;
    ssize_t count = read(STDIN_FILENO, spill_buffer_reserve(&lines->bytes, READ_BYTES), READ_BYTES);
    if (count < 0 && errno != EINTR && errno != EAGAIN)
        return spill_fail_errno(error, errno, "cannot read stdin");
    lines->bytes.size += count > 0 ? (size_t)count : 0;
    lines->ended = count == 0;
    return SPILL_OK;
}

spill_code_t spill_cli_lines_next(spill_cli_lines_t *lines, int wait_ms,
                                  spill_cli_lines_state_t *state, const char **line, size_t *size,
                                  spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    *state = SPILL_CLI_LINES_ONE;
    *line = NULL;
    *size = 0;
    while (code == SPILL_OK) {
        if (next_line(lines, line, size))
            return SPILL_OK;
        if (lines->ended || spill_cli_interrupted())
            break;
        if (poll(&ready, 1, wait_ms) == 0) {
            *state = SPILL_CLI_LINES_NONE;
            return SPILL_OK;
        }
        if (!spill_cli_interrupted())
            code = read_more(lines, error);
    }
    *state = SPILL_CLI_LINES_END;
    return code;
}

void spill_cli_lines_release(spill_cli_lines_t *lines)
{
    spill_buffer_release(&lines->bytes);
    *lines = (spill_cli_lines_t){0};
}
