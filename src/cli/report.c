/* report: the result of a scan as a page. */
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

static spill_exit_t run_report(const spill_invocation_t *invocation)
{
    const report_options_t *given = invocation->options;
    return spill_cli_with_scan(invocation, &given->scan, given->target, write_page);
}

static const spill_option_t OPTIONS[] = {
    {"output", "FILE", SPILL_OPTION_TEXT, offsetof(report_options_t, output),
     "Write the page to this file once it is complete; by default it goes to stdout"},
    SPILL_CLI_SCAN_OPTIONS(report_options_t, scan),
    {"target", "SIZE", SPILL_OPTION_SIZE, offsetof(report_options_t, target),
     "Bytes that a head is meant to have in proposed layouts (200KB)"},
    {0}};

const spill_command_t spill_command_report = {
    .name = "report",
    .arguments = "SCAN.json|SOURCE|-",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Show what a scan found, as a page with plots",
    .text =
        "SCAN.json is the output of `spillway scan --json'; stdin (-) is read as such output "
        "unless --format is given. Anything else is scanned first, with scan's options. The page "
        "is one HTML file that needs no network, no script and no other file: findings with what "
        "to do, the lengths of arrays, how the largest grew and how they may continue, the sizes "
        "of documents, and the largest arrays by bytes. It suits phones and paper.\n"
        "\n"
        "gnuplot draws the plots, and must be installed (on Debian: gnuplot-nox).\n"
        "\n"
        "Examples:\n"
        "  spillway report dump/ -o report.html\n"
        "  spillway scan dump/ --json >scan.json; spillway report scan.json -o report.html\n"
        "  spillway scan @server.uri --json | spillway report - -o report.html",
    .common = SPILL_COMMON_QUIET | SPILL_COMMON_MODE | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_report};
