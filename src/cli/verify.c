/* verify: the invariants of one definition, or of all. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>

static void print_finding_json(const spill_finding_t *finding)
{
    fputs("{\"definition\":", stdout);
    spill_cli_print_text(finding->definition);
    fputs(",\"owner\":", stdout);
    if (finding->owner)
        spill_cli_print_value(finding->owner, false);
    else
        fputs("null", stdout);
    printf(",\"page\":%" PRId64 ",\"invariant\":%d,\"text\":", finding->page, finding->invariant);
    spill_cli_print_text(finding->text);
    puts("}");
}

static void print_finding(void *context, const spill_finding_t *finding)
{
    const spill_invocation_t *invocation = context;
    if (invocation->json) {
        print_finding_json(finding);
        return;
    }
    printf("%s: owner ", finding->definition);
    if (finding->owner)
        spill_cli_print_value(finding->owner, false);
    else
        putchar('-');
    if (finding->page < 0)
        fputs(", head", stdout);
    else
        printf(", page %" PRId64, finding->page);
    printf(", I%d: %s\n", finding->invariant, finding->text);
}

static spill_code_t verify_one(const spill_invocation_t *invocation, spill_store_t *store,
                               const char *name, spill_verify_summary_t *total,
                               spill_error_t *error)
{
    spill_array_t *array = NULL;
    spill_code_t code = spill_array_open(store, name, &array, error);
    if (code != SPILL_OK)
        return code;
    spill_verify_summary_t summary = {0};
    code = spill_array_verify(array, NULL, print_finding, (void *)(uintptr_t)invocation, &summary,
                              error);
    total->owners += summary.owners;
    total->pages += summary.pages;
    total->elements += summary.elements;
    total->findings += summary.findings;
    spill_array_close(array);
    return code;
}

static spill_code_t verify_all(const spill_invocation_t *invocation, spill_store_t *store,
                               spill_verify_summary_t *total, spill_error_t *error)
{
    spill_definition_t *definitions = NULL;
    size_t count = 0;
    spill_code_t code = spill_store_definitions(store, &definitions, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        code = verify_one(invocation, store, definitions[i].name, total, error);
    bson_free(definitions);
    return code;
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    spill_error_t error;
    spill_store_t *store = NULL;
    spill_verify_summary_t total = {0};
    spill_code_t code = spill_cli_open_store(invocation, SPILL_CLI_READ, &store, &error);
    if (code == SPILL_OK)
        code = invocation->argument_count > 1
                   ? verify_one(invocation, store, invocation->arguments[1], &total, &error)
                   : verify_all(invocation, store, &total, &error);
    if (code == SPILL_OK)
        printf("{\"owners\":%" PRId64 ",\"pages\":%" PRId64 ",\"elements\":%" PRId64
               ",\"findings\":%" PRId64 "}\n",
               total.owners, total.pages, total.elements, total.findings);
    spill_exit_t result = spill_cli_close(NULL, store, code, &error);
    return result == SPILL_EXIT_DONE && total.findings > 0 ? SPILL_EXIT_FOUND : result;
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
