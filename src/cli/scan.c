/* scan: find arrays that grow without a bound. */
#include "cli/cli.h"
#include "cli/scan_options.h"
#include "cli/scan_print.h"

#include <string.h>

typedef struct scan_options {
    spill_cli_scan_options_t scan;
    const char *fail_on;
} scan_options_t;

static const scan_options_t DEFAULTS = {.scan = SPILL_CLI_SCAN_DEFAULTS};

/* ---- --fail-on ------------------------------------------------------------------------------- */

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(word, name, length) == 0;
}

static bool matches(const char *word, size_t length, const spill_scan_finding_t *finding)
{
    return is_word(word, length, "any") ||
           (finding->critical && is_word(word, length, "critical")) ||
           is_word(word, length, spill_scan_finding_name(finding->kind)) ||
           is_word(word, length, spill_scan_finding_atlas(finding->kind));
}

static bool is_known(const char *word, size_t length)
{
    for (int kind = 0; kind < SPILL_SCAN_FINDING_KINDS; kind++) {
        spill_scan_finding_t finding = {.kind = (spill_scan_finding_kind_t)kind, .critical = true};
        if (matches(word, length, &finding))
            return true;
    }
    return false;
}

/* The next word of a list separated by commas; NULL at the end. */
static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list;
    if (!word || *word == '\0')
        return NULL;
    *length = strcspn(word, ",");
    *list = word + *length + (word[*length] == ',');
    return word;
}

static bool fails(const char *list, const spill_scan_result_t *result)
{
    size_t length;
    for (const char *word; (word = next_word(&list, &length)) != NULL;)
        for (size_t i = 0; i < result->finding_count; i++)
            if (matches(word, length, &result->findings[i]))
                return true;
    return false;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Report what is wrong with the options, or return SPILL_EXIT_DONE. */
static spill_exit_t check_options(const spill_invocation_t *invocation)
{
    const scan_options_t *given = invocation->options;
    const char *list = given->fail_on;
    size_t length;
    for (const char *word; (word = next_word(&list, &length)) != NULL;)
        if (!is_known(word, length))
            return spill_cli_usage(invocation,
                                   "--fail-on: there is no finding '%.*s'; give any, critical "
                                   "and names of findings, separated by commas",
                                   (int)length, word);
    return SPILL_EXIT_DONE;
}

static spill_exit_t print_result(const spill_invocation_t *invocation,
                                 const spill_scan_result_t *result)
{
    const scan_options_t *given = invocation->options;
    spill_error_t error;
    if (invocation->json)
        spill_scan_write_json(result, spill_cli_shown_source(invocation, result), stdout);
    else
        spill_cli_print_scan(result);
    spill_cli_print_problems(result);
    if (spill_cli_flush(&error) != SPILL_OK)
        return spill_cli_fail(&error);
    spill_exit_t status = spill_cli_scan_exit(result);
    if (status == SPILL_EXIT_DONE && fails(given->fail_on, result))
        status = SPILL_EXIT_FOUND;
    return status;
}

static spill_exit_t run_scan(const spill_invocation_t *invocation)
{
    const scan_options_t *given = invocation->options;
    spill_exit_t wrong = check_options(invocation);
    if (wrong != SPILL_EXIT_DONE)
        return wrong;
    spill_scan_result_t result;
    spill_exit_t status = spill_cli_scan(invocation, &given->scan, &result);
    if (status == SPILL_EXIT_DONE)
        status = print_result(invocation, &result);
    spill_scan_release(&result);
    return status;
}

static const spill_option_t OPTIONS[] = {
    SPILL_CLI_SCAN_OPTIONS(scan_options_t, scan),
    {"fail-on", "LIST", SPILL_OPTION_TEXT, offsetof(scan_options_t, fail_on),
     "Exit code 1 if there is one of these: any, critical, or names of findings, with commas"},
    {0}};

const spill_command_t spill_command_scan = {
    .name = "scan",
    .arguments = "SOURCE|-",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Find the arrays that grow without a bound",
    .text = "SOURCE is a folder or an archive that mongodump made; or a file of .bson, NDJSON or "
            "Extended JSON, all uncompressed, .gz or .zst; or a server's database, "
            "mongodb://HOST/DATABASE, or @FILE for a file with that in it; or an embedded store. "
            "Each document is read once, and only a few megabytes are kept in memory.\n"
            "\n"
            "For each array, nested ones too, and for each sub-document that grows by its keys, "
            "reports the lengths, the sizes of elements, the share of all bytes, "
            "the number of documents over the thresholds, and the largest owners by their _id. "
            "Percentiles are within 1 %; everything else is exact. Findings: "
            "unbounded-array and unbounded-map (over a threshold, and with different "
            "lengths), overgrown-index (with an entry for each element of a long array), "
            "paid-by-array (most of a large document), large-document (over half of "
            "the limit), collection-sprawl (the same fields, and names that "
            "differ only by an identifier).\n"
            "\n"
            "Input that cannot be read is reported with its place and skipped; then the exit code "
            "is 3. Ctrl-C ends the scan and prints its results so far; then the exit code is "
            "130.\n"
            "\n"
            "Examples:\n"
            "  spillway scan dump/\n"
            "  spillway scan dump/shop/products.bson.gz --max-elements 1000\n"
            "  spillway scan products.ndjson.gz --json --fail-on any >scan.json\n"
            "  spillway scan mongodb://localhost/shop --rate 5000 --read-preference secondary",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_scan};
