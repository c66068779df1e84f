#include "cli/operate.h"

#include "cli/process.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#include <errno.h>
#include <string.h>

static bool must_stop(void *context)
{
    (void)context;
    return spill_cli_interrupted();
}

static void print_notice(void *context, const char *text)
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
    *operate = (spill_cli_operate_t){.invocation = invocation};
    spill_cli_progress_start(&operate->progress, invocation->quiet);
    spill_cli_catch_interrupts();
    throttle->rate_per_s = given->rate;
    throttle->latency_max_s = (double)given->latency_ms / 1e3;
    throttle->chunk_s = (double)given->chunk_ms / 1e3;
    throttle->pause_file = given->pause_file;
    throttle->stop = must_stop;
    throttle->notice = print_notice;
    throttle->context = operate;
    if (!given->log || !given->execute)
        return SPILL_OK;
    spill_code_t code = spill_file_refuse_in_store(given->log, error);
    if (code != SPILL_OK)
        return code;
    operate->log = fopen(given->log, "ae");
    return operate->log ? SPILL_OK : spill_fail_errno(error, errno, "%s", given->log);
}

void spill_cli_operate_log(spill_cli_operate_t *operate, const bson_t *document)
{
    char *text = operate->log ? bson_as_relaxed_extended_json(document, NULL) : NULL;
    if (text) {
        char *visible = spill_visible_text(text);
        fprintf(operate->log, "%s\n", visible);
        bson_free(visible);
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
