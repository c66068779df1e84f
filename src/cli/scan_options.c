/* The options that scan, plan and report share, and the scan itself. */
#include "cli/scan_options.h"

#include "cli/cli.h"
#include "cli/process.h"

#include "store/raw_reader.h"
#include "tools/scan/document_source.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/estimate.h"
#include "util/text.h"

#include <string.h>

/* ---- options --------------------------------------------------------------------------------- */

/* Report what is wrong with the options, or return SPILL_EXIT_DONE. */
static spill_exit_t check_options(const spill_invocation_t *invocation,
                                  const spill_cli_scan_options_t *given)
{
    if (given->threads < 1 || given->threads > 2)
        return spill_cli_usage(invocation, "--threads is 1 or 2");
    if (given->max_share < 1 || given->max_share > 100)
        return spill_cli_usage(invocation, "--max-share is a percentage from 1 to 100");
    if (given->document_limit < 1 || given->document_limit > SPILL_SCAN_DOCUMENT_BYTES_MAX)
        return spill_cli_usage(invocation, "--document-limit is at most 24 MiB");
    return SPILL_EXIT_DONE;
}

static spill_exit_t check_source(const spill_invocation_t *invocation,
                                 const spill_cli_scan_options_t *given, const char *source)
{
    bool of_server = given->collections || given->read_preference || given->sample || given->rate;
    if (of_server && !spill_raw_reader_serves(source))
        return spill_cli_usage(invocation, "--collections, --sample, --rate and --read-preference "
                                           "are for servers");
    return SPILL_EXIT_DONE;
}

static bool are_defaults(const spill_cli_scan_options_t *given)
{
    static const spill_cli_scan_options_t usual = SPILL_CLI_SCAN_DEFAULTS;
    return !given->format && !given->since && !given->collections && !given->read_preference &&
           given->max_elements == usual.max_elements && given->max_bytes == usual.max_bytes &&
           given->max_share == usual.max_share && given->document_limit == usual.document_limit &&
           given->collection_limit == usual.collection_limit && given->threads == usual.threads &&
           given->sample == usual.sample && given->rate == usual.rate;
}

/* ---- scanning -------------------------------------------------------------------------------- */

/* Read the scan to compare with; without the option, none. */
static spill_code_t read_earlier(const char *file, spill_scan_result_t *earlier,
                                 spill_error_t *error)
{
    if (!file)
        return SPILL_OK;
    SPILL_TRY(spill_scan_read_json(file, earlier, error));
    if (earlier->scanned_ms <= 0 || earlier->scanned_ms >= spill_clock_now_us(NULL) / 1000)
        return spill_fail(error, SPILL_INVALID, "%s: its time is missing or in the future", file);
    return SPILL_OK;
}

static spill_code_t run_scan(const spill_invocation_t *invocation,
                             const spill_cli_scan_options_t *given, const char *source,
                             spill_scan_result_t *result, spill_error_t *error)
{
    spill_cli_progress_t progress;
    spill_scan_options_t options;
    spill_cli_progress_start(&progress, invocation->quiet);
    spill_scan_options_init(&options);
    options.source = source;
    options.format = given->format;
    options.threads = (int)given->threads;
    options.limits = (spill_scan_limits_t){given->max_elements, given->max_bytes,
                                           given->document_limit, given->max_share};
    options.only = given->collections;
    options.sample = given->sample;
    options.rate = given->rate;
    options.preference = given->read_preference;
    options.partial = invocation->partial;
    options.log = spill_cli_print_log;
    options.collections_max = given->collection_limit;
    options.stop = spill_cli_catch_interrupts();
    options.progress = spill_cli_show_scan;
    options.context = &progress;
    spill_code_t code = spill_scan(&options, result, error);
    spill_cli_progress_break(&progress);
    double seconds = spill_cli_progress_seconds(&progress);
    if (code == SPILL_OK && !invocation->quiet && seconds >= SPILL_CLI_LONG_S)
        fprintf(stderr, "%s, %s/s\n", spill_duration_text(seconds).text,
                spill_size_text((int64_t)((double)result->bytes / seconds)).text);
    return code;
}

spill_exit_t spill_cli_scan(const spill_invocation_t *invocation,
                            const spill_cli_scan_options_t *given, spill_scan_result_t *result)
{
    char uri[SPILL_CLI_URI];
    spill_error_t error;
    spill_scan_result_t earlier = {0};
    const char *source = invocation->arguments[0];
    *result = (spill_scan_result_t){0};
    spill_exit_t wrong = check_options(invocation, given);
    if (wrong != SPILL_EXIT_DONE)
        return wrong;
    if (spill_cli_names_uri(source)) {
        if (spill_cli_store_uri(source, uri, &error) != SPILL_OK)
            return spill_cli_fail(&error);
        source = uri;
    }
    wrong = check_source(invocation, given, source);
    if (wrong != SPILL_EXIT_DONE)
        return wrong;
    spill_code_t code = read_earlier(given->since, &earlier, &error);
    if (code == SPILL_OK)
        code = spill_cli_reach_server(source, given->read_preference, &error);
    if (code == SPILL_OK)
        code = run_scan(invocation, given, source, result, &error);
    if (code == SPILL_OK && given->since)
        spill_scan_since(result, &earlier);
    spill_scan_release(&earlier);
    return code == SPILL_OK ? SPILL_EXIT_DONE : spill_cli_fail(&error);
}

spill_exit_t spill_cli_scan_exit(const spill_scan_result_t *result)
{
    if (result->interrupted)
        return SPILL_EXIT_INTERRUPTED;
    return result->problems_all > 0 ? SPILL_EXIT_FAILED : SPILL_EXIT_DONE;
}

/* ---- a new scan or a stored one -------------------------------------------------------------- */

static spill_exit_t scan_or_read(const spill_invocation_t *invocation,
                                 const spill_cli_scan_options_t *given, spill_scan_result_t *result)
{
    const char *source = invocation->arguments[0];
    bool from_stdin = strcmp(source, "-") == 0 && !given->format;
    spill_error_t error;
    if (!from_stdin && !spill_scan_is_json(source))
        return spill_cli_scan(invocation, given, result);
    *result = (spill_scan_result_t){0};
    if (!are_defaults(given))
        return spill_cli_usage(invocation,
                               "%s is the result of a scan with its own options: scan options are "
                               "for sources%s",
                               source, from_stdin ? "; for a source on stdin give --format" : "");
    return spill_scan_read_json(source, result, &error) == SPILL_OK ? SPILL_EXIT_DONE
                                                                    : spill_cli_fail(&error);
}

spill_exit_t spill_cli_with_scan(const spill_invocation_t *invocation,
                                 const spill_cli_scan_options_t *given, int64_t target,
                                 spill_cli_use_scan_fn use)
{
    spill_scan_result_t result;
    spill_error_t error;
    if (target < 1000)
        return spill_cli_usage(invocation, "--target is at least 1 KB");
    spill_exit_t status = scan_or_read(invocation, given, &result);
    if (status == SPILL_EXIT_DONE)
        status = use(invocation, &result, &error) == SPILL_OK ? spill_cli_scan_exit(&result)
                                                              : spill_cli_fail(&error);
    spill_cli_remark_problems(&result);
    spill_scan_release(&result);
    return status;
}
