#include "cli/operate.h"

#include "util/error.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool interrupted;

/* The first one ends the work behind the chunk that is under way; a second one the program. */
static void on_interrupt(int signal_number)
{
    atomic_store(&interrupted, true);
    signal(signal_number, SIG_DFL);
}

bool spill_cli_operate_interrupted(void)
{
    return atomic_load(&interrupted);
}

static bool stop(void *context)
{
    (void)context;
    return spill_cli_operate_interrupted();
}

static void notice(void *context, const char *text)
{
    spill_cli_operate_t *operate = context;
    if (operate->invocation->quiet)
        return;
    spill_cli_progress_break(&operate->progress);
    fprintf(stderr, "%s\n", text);
}

spill_code_t spill_cli_operate_start(spill_cli_operate_t *operate,
                                     const spill_invocation_t *invocation,
                                     const spill_cli_operate_given_t *given,
                                     spill_throttle_options_t *throttle, spill_error_t *error)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    *operate = (spill_cli_operate_t){.invocation = invocation};
    spill_cli_progress_start(&operate->progress, invocation->quiet);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    throttle->rate_per_s = given->rate;
    throttle->latency_max_s = (double)given->latency_ms / 1e3;
    throttle->chunk_s = (double)given->chunk_ms / 1e3;
    throttle->pause_file = given->pause_file;
    throttle->stop = stop;
    throttle->notice = notice;
    throttle->context = operate;
    if (!given->log || !given->execute)
        return SPILL_OK;
    operate->log = fopen(given->log, "a");
    return operate->log ? SPILL_OK : spill_fail_errno(error, errno, "%s", given->log);
}

void spill_cli_operate_log(spill_cli_operate_t *operate, const bson_t *document)
{
    char *text = operate->log ? bson_as_relaxed_extended_json(document, NULL) : NULL;
    if (text) {
        fprintf(operate->log, "%s\n", text);
        fflush(operate->log);
    }
    bson_free(text);
}

spill_code_t spill_cli_operate_end(spill_cli_operate_t *operate, spill_error_t *error)
{
    int problem = 0;
    spill_cli_progress_break(&operate->progress);
    if (operate->log) {
        problem = ferror(operate->log) ? EIO : 0;
        if (fclose(operate->log) != 0)
            problem = errno;
        operate->log = NULL;
    }
    return problem ? spill_fail_errno(error, problem, "the log") : SPILL_OK;
}
