/* report: what a scan found, as a page. */
#include "cli/cli.h"
#include "cli/scan_options.h"
#include "cli/scan_print.h"

#include "tools/report/report.h"
#include "util/file.h"

#include <stdlib.h>

typedef struct report_options {
    spill_cli_scan_options_t scan;
    const char *output;
    int64_t target;
} report_options_t;

static const report_options_t DEFAULTS = {.scan = SPILL_CLI_SCAN_DEFAULTS,
                                          .target = SPILL_SCAN_BYTES};

static spill_code_t write_page(const spill_invocation_t *invocation,
                               const spill_scan_result_t *result, spill_error_t *error)
{
    const report_options_t *given = invocation->options;
    char *page = NULL;
    size_t size = 0;
    spill_plan_t plan = spill_plan_make(result, given->target);
    FILE *to = open_memstream(&page, &size);
    const char *shown = spill_cli_shown_source(invocation, result);
    spill_code_t code =
        spill_report_write(result, &plan, result->source ? result->source : shown, to, error);
    fclose(to);
    if (code == SPILL_OK && given->output)
        code = spill_file_replace(given->output, page, size, error);
    else if (code == SPILL_OK)
        fwrite(page, 1, size, stdout);
    free(page);
    spill_plan_release(&plan);
    return code == SPILL_OK ? spill_cli_flush(error) : code;
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    const report_options_t *given = invocation->options;
    return spill_cli_with_scan(invocation, &given->scan, given->target, write_page);
}

static const spill_option_t OPTIONS[] = {
    {"output", "FILE", SPILL_OPTION_TEXT, offsetof(report_options_t, output),
     "Write the page to this file, when all of it is there; otherwise it goes to stdout"},
    SPILL_CLI_SCAN_OPTIONS(report_options_t, scan),
    {"target", "SIZE", SPILL_OPTION_SIZE, offsetof(report_options_t, target),
     "Bytes that a head is meant to have, of what is proposed (200KB)"},
    {0}};

const spill_command_t spill_command_report = {
    .name = "report",
    .arguments = "SCAN.json|SOURCE|-",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Show what a scan found, as a page with plots",
    .text =
        "SCAN.json is what `spillway scan --json' printed, and so is stdin (-) where --format does "
        "not say what it is; anything else is "
        "scanned first, by "
        "scan's options. The page is one HTML file that needs nothing else, no network and no "
        "script: findings with what to do, how long arrays are, how the largest grew and how they "
        "may go on, how large documents are, and where the bytes are. It reads on a phone and on "
        "paper.\n"
        "\n"
        "Plots are drawn by gnuplot, which has to be installed (on Debian: gnuplot-nox).\n"
        "\n"
        "Examples:\n"
        "  spillway report dump/ -o report.html\n"
        "  spillway scan dump/ --json >scan.json; spillway report scan.json -o report.html\n"
        "  spillway scan @server.uri --json | spillway report - -o report.html",
    .common = SPILL_COMMON_QUIET | SPILL_COMMON_MODE | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run};
