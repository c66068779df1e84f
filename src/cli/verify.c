/* verify: the invariants of one definition, or of all. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdint.h>

static spill_code_t verify(spill_cli_session_t *session, spill_error_t *error)
{
    spill_verify_summary_t *total = session->context, summary = {0};
    spill_code_t code = spill_array_verify(session->array, NULL, spill_cli_print_finding,
                                           (void *)(uintptr_t)session->invocation, &summary, error);
    total->owners += summary.owners;
    total->pages += summary.pages;
    total->elements += summary.elements;
    total->findings += summary.findings;
    return code;
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    spill_verify_summary_t total = {0};
    spill_exit_t result = spill_cli_with_arrays(invocation, SPILL_CLI_READ, verify, &total);
    if (result != SPILL_EXIT_DONE)
        return result;
    printf("{\"owners\":%" PRId64 ",\"pages\":%" PRId64 ",\"elements\":%" PRId64
           ",\"findings\":%" PRId64 "}\n",
           total.owners, total.pages, total.elements, total.findings);
    return total.findings > 0 ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}

const spill_command_t spill_command_verify = {
    .name = "verify",
    .arguments = "STORE [NAME]",
    .arguments_min = 1,
    .arguments_max = 2,
    .summary = "Check every document against the invariants",
    .text = "Reads every document and checks bounds, order, sequence numbers and counts from the "
            "elements themselves. Findings are printed one a line with owner, page and the "
            "number of the invariant; the summary comes last, as JSON. Exit code 1 when there "
            "are findings.\n"
            "\n"
            "Examples:\n"
            "  spillway verify feeds.db\n"
            "  spillway verify feeds.db events --json",
    .common = SPILL_COMMON_JSON,
    .run = run};
