/* End a program that was asked to end while its server is away. */
#include "cli/server_away.h"

#include "cli/cli.h"
#include "cli/process.h"
#include "store/raw_reader.h"
#include "util/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum {
    SERVERS_MAX = 4,  /* a command names at most two */
    GRACE_MS = 500,   /* in which a command usually ends by itself */
    ANSWER_MS = 2000, /* in which a server must answer, also a distant one with TLS */
    ASK_AGAIN_MS = 1000,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the following */
static char *servers[SERVERS_MAX];
static size_t server_count;
static bool watches;
static spill_cli_last_fn last_call;
static void *last_context;

static atomic_bool keeps_waiting;

/* A copy of a server's URI, or NULL. */
static char *copy_server(size_t i)
{
    pthread_mutex_lock(&lock);
    char *uri = i < server_count ? bson_strdup(servers[i]) : NULL;
    pthread_mutex_unlock(&lock);
    return uri;
}

static bool all_answer(void)
{
    bool all = true;
    char *uri;
    for (size_t i = 0; all && (uri = copy_server(i)); i++) {
        all = spill_raw_reader_answers(uri, ANSWER_MS);
        bson_free(uri);
    }
    return all;
}

/* End the process. The lock is kept, so that the command's own end does not overlap. */
static _Noreturn void end_process(void)
{
    static const char reason[] = "stopped by a signal, without waiting for the server, which does "
                                 "not answer: the outcome of requests on their way is unknown";
    pthread_mutex_lock(&lock);
    if (last_call)
        last_call(last_context, reason);
    spill_cli_say("%s; run the same command to continue", reason);
    fflush(stdout);
    _exit(SPILL_EXIT_INTERRUPTED);
}

static void *watch(void *unused)
{
    spill_cli_await_interrupt();
    spill_clock_sleep_us(NULL, GRACE_MS * 1000);
    while (atomic_load(&keeps_waiting) || all_answer())
        spill_clock_sleep_us(NULL, ASK_AGAIN_MS * 1000);
    end_process();
    return unused;
}

/*
 * Start the thread once, with all signals blocked: they are for the others. If it cannot be
 * started, the program ends later.
 */
static void start_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    if (watches)
        return;
    watches = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void spill_cli_note_server(const char *uri)
{
    if (!spill_raw_reader_serves(uri))
        return;
    pthread_mutex_lock(&lock);
    bool is_known = server_count == SERVERS_MAX;
    for (size_t i = 0; i < server_count; i++)
        is_known = is_known || strcmp(servers[i], uri) == 0;
    if (!is_known)
        servers[server_count++] = bson_strdup(uri);
    start_thread();
    pthread_mutex_unlock(&lock);
}

void spill_cli_before_end(spill_cli_last_fn last, void *context)
{
    pthread_mutex_lock(&lock);
    last_call = last;
    last_context = context;
    pthread_mutex_unlock(&lock);
}

void spill_cli_keep_waiting(void)
{
    atomic_store(&keeps_waiting, true);
}
