/* verify: the invariants of one definition, or of all. */
#include "cli/cli.h"
#include "cli/process.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdint.h>

#define SUMMARY(member) SPILL_FIELD(INT64, spill_verify_summary_t, member, #member)
static const spill_field_t summary_fields[] = {SUMMARY(owners), SUMMARY(pages), SUMMARY(elements),
                                               SUMMARY(findings)};
static const spill_record_t summary_record =
    SPILL_RECORD("summary", spill_verify_summary_t, summary_fields);

static spill_code_t verify_array(spill_cli_session_t *session, spill_error_t *error)
{
    spill_verify_summary_t *total = session->context, summary = {0};
    spill_cli_stop_on_interrupt(session->store);
    spill_code_t code = spill_array_verify(session->array, NULL, spill_cli_print_finding,
                                           (void *)(uintptr_t)session->invocation, &summary, error);
    total->owners += summary.owners;
    total->pages += summary.pages;
    total->elements += summary.elements;
    total->findings += summary.findings;
    if (code == SPILL_CANCELLED && spill_cli_interrupted())
        spill_fail(error, code,
                   "interrupted after %" PRId64 " %s with %" PRId64
                   " %s: the same command starts again with the first owner",
                   total->owners, spill_cli_plural(total->owners, "owner", "owners"),
                   total->findings, spill_cli_plural(total->findings, "finding", "findings"));
    return code;
}

/* What a damaged file hides is a finding, and the check continues with the rest of the store. */
static void report_damage(const spill_cli_session_t *session)
{
    spill_verify_summary_t *total = session->context;
    const char *damage = spill_store_damage(session->store);
    if (!damage)
        return;
    spill_cli_print_store_finding(session->invocation, damage);
    total->findings++;
}

static spill_exit_t run_verify(const spill_invocation_t *invocation)
{
    spill_verify_summary_t total = {0};
    spill_error_t error;
    spill_invocation_t partial = *invocation;
    spill_cli_session_t session = {.invocation = invocation, .context = &total};
    partial.partial = true;
    spill_code_t code = spill_cli_open_store(&partial, SPILL_CLI_READ, &session.store, &error);
    if (code == SPILL_OK) {
        report_damage(&session);
        code = spill_cli_work_on_arrays(&session, verify_array, &error);
    }
    spill_exit_t result = spill_cli_close(NULL, session.store, code, &error);
    if (result != SPILL_EXIT_DONE)
        return result;
    spill_cli_print_record(&summary_record, &total);
    return total.findings > 0 ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}

const spill_command_t spill_command_verify = {
    .name = "verify",
    .arguments = "STORE [NAME]",
    .arguments_min = 1,
    .arguments_max = 2,
    .summary = "Check every document against the invariants",
    .text = "Reads every document and checks bounds, order, sequence numbers and counts from the "
            "elements themselves. Findings are printed one per line with owner, page and the "
            "number of the invariant; the summary comes last, as JSON. The exit code is 1 if there "
            "are findings.\n"
            "\n"
            "If files of an embedded store are damaged, that is a finding about the store, and "
            "the rest of the store is checked. `spillway repair' makes a store with a damaged log "
            "writable again.\n"
            "\n"
            "Examples:\n"
            "  spillway verify feeds.db\n"
            "  spillway verify feeds.db events --json",
    .common = SPILL_COMMON_JSON,
    .run = run_verify};
