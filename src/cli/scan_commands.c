/*
 * scan, plan and report: find arrays that grow without a bound, propose layouts for them, and show
 * the result as a page.
 */
#include "cli/cli.h"
#include "cli/process.h"
#include "cli/scan_options.h"
#include "tools/report/report.h"
#include "tools/scan/plan.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

/* ---- scan ------------------------------------------------------------------------------------ */

typedef struct scan_options {
    spill_cli_scan_options_t scan;
    const char *fail_on;
} scan_options_t;

static const scan_options_t SCAN_DEFAULTS = {.scan = SPILL_CLI_SCAN_DEFAULTS};

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
        spill_cli_print_scan(result, !invocation->quiet);
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

static const spill_option_t SCAN_OPTIONS[] = {
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
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .options = SCAN_OPTIONS,
    .defaults = &SCAN_DEFAULTS,
    .options_bytes = sizeof SCAN_DEFAULTS,
    .run = run_scan};

/* ---- plan ------------------------------------------------------------------------------------ */

typedef struct plan_options {
    spill_cli_scan_options_t scan;
    const char *output;
    int64_t target;
} plan_options_t;

static const plan_options_t PLAN_DEFAULTS = {.scan = SPILL_CLI_SCAN_DEFAULTS,
                                             .target = SPILL_SCAN_BYTES};

/* ---- text output ----------------------------------------------------------------------------- */

static const char *layout_name(spill_layout_t layout)
{
    return layout == SPILL_LAYOUT_REFERENCE ? "reference" : "outlier";
}

/* Print a sentence; names of fields and collections in it may have any characters. */
static void print_text(const char *before, const char *text)
{
    fputs(before, stdout);
    spill_cli_print_name(text);
    putchar('\n');
}

static void print_item(const spill_plan_item_t *item)
{
    putchar('\n');
    spill_cli_print_name(item->collection->name);
    fputs(": ", stdout);
    spill_cli_print_name(item->path->path);
    fputs(" -> ", stdout);
    if (!item->possible)
        printf("not in this form\n");
    else if (item->definition.layout == SPILL_LAYOUT_OUTLIER)
        printf("layout outlier, threshold %" PRId64 ", pages of %" PRId64 "%s\n",
               item->definition.bounds.threshold, item->definition.bounds.page_capacity,
               item->definition.order == SPILL_ARRAY_NEWEST_FIRST ? ", newest first" : "");
    else
        printf("layout %s\n", layout_name(item->definition.layout));
    for (size_t i = 0; i < item->why.count; i++)
        print_text("  ", item->why.at[i]);
    for (size_t i = 0; i < item->alternatives.count; i++)
        print_text("  or: ", item->alternatives.at[i]);
    if (item->possible && item->bytes_then < item->bytes_now)
        printf("  saves: an append to the largest rewrites %s now, then at most %s\n",
               spill_size_text(item->bytes_now).text,
               spill_size_text(item->bytes_then + item->element_then).text);
    if (item->others)
        print_text("  then:  ", item->others);
    if (item->detection)
        print_text("  see:   ", item->detection);
}

static void print_group(const spill_plan_group_t *group)
{
    putchar('\n');
    spill_cli_print_name(group->sprawl->pattern);
    printf(": %zu collections -> ", group->sprawl->count);
    if (group->possible) {
        fputs("one, ", stdout);
        spill_cli_print_name(group->into);
        print_text(", with the field ", group->field);
    } else
        printf("not in this form\n");
    for (size_t i = 0; i < group->why.count; i++)
        print_text("  ", group->why.at[i]);
}

static void print_plan(const spill_plan_t *plan, bool interrupted)
{
    if (plan->count + plan->group_count == 0 && interrupted)
        printf("nothing to plan in what was read before the interruption\n");
    else if (plan->count + plan->group_count == 0)
        printf("nothing to plan: no array is over a threshold, and no collections are sprawl\n");
    for (size_t i = 0; i < plan->count; i++)
        print_item(&plan->items[i]);
    for (size_t i = 0; i < plan->group_count; i++)
        print_group(&plan->groups[i]);
}

/* ---- the command ----------------------------------------------------------------------------- */

static spill_code_t write_file(const spill_invocation_t *invocation, const char *file,
                               const spill_text_t *text, spill_error_t *error)
{
    SPILL_TRY(spill_file_replace(file, text->text, text->size_bytes, error));
    if (!invocation->quiet)
        spill_cli_say("wrote %s", file);
    return SPILL_OK;
}

/* A plan of a part of the documents would replace a complete one. */
static spill_code_t write_plan(const spill_invocation_t *invocation,
                               const spill_scan_result_t *result, const spill_text_t *text,
                               spill_error_t *error)
{
    const plan_options_t *given = invocation->options;
    if (!given->output)
        return SPILL_OK;
    if (!result->interrupted || !spill_cli_interrupted())
        return write_file(invocation, given->output, text, error);
    spill_cli_say("interrupted: %s is unchanged", given->output);
    return SPILL_OK;
}

static spill_code_t print_or_write(const spill_invocation_t *invocation,
                                   const spill_scan_result_t *result, spill_error_t *error)
{
    const plan_options_t *given = invocation->options;
    const char *source = spill_cli_shown_source(invocation, result);
    SPILL_SCOPED(spill_text_release) spill_text_t text = {0};
    SPILL_SCOPED(spill_plan_release) spill_plan_t plan = spill_plan_make(result, given->target);
    SPILL_TRY(spill_text_open(&text, error));
    SPILL_TRY(spill_plan_write_json(&plan, source, text.to, error));
    SPILL_TRY(spill_text_close(&text, error));
    spill_code_t code = write_plan(invocation, result, &text, error);
    if (invocation->json)
        fwrite(text.text, 1, text.size_bytes, stdout);
    else
        print_plan(&plan, result->interrupted);
    return code == SPILL_OK ? spill_cli_flush(error) : code;
}

static spill_exit_t run_plan(const spill_invocation_t *invocation)
{
    const plan_options_t *given = invocation->options;
    return spill_cli_with_scan(invocation, &given->scan, given->target, print_or_write);
}

static const spill_option_t PLAN_OPTIONS[] = {
    SPILL_CLI_SCAN_OPTIONS(plan_options_t, scan),
    {"target", "SIZE", SPILL_OPTION_SIZE, offsetof(plan_options_t, target),
     "Bytes that a head is meant to have (200KiB)"},
    {"output", "FILE", SPILL_OPTION_TEXT, offsetof(plan_options_t, output),
     "Also write the plan to this file, for editing; unchanged if the scan is interrupted"},
    {0}};

const spill_command_t spill_command_plan = {
    .name = "plan",
    .arguments = "SCAN.json|SOURCE|-",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Propose layouts for the arrays that a scan found",
    .text =
        "SCAN.json is the output of `spillway scan --json'; stdin (-) is read as such output "
        "unless --format is given. Anything else is scanned first, with scan's options. For each "
        "array or map that a finding names, prints the layout that fits and why, threshold and "
        "page size from the measured size of elements, the end at which it grows, alternatives "
        "and their conditions, what it saves, and an aggregation for the shell to check it.\n"
        "\n"
        "Nothing is changed. The file that --output writes is JSON with one field per line, so it "
        "can be edited and compared.\n"
        "\n"
        "Examples:\n"
        "  spillway plan dump/\n"
        "  spillway scan dump/ --json >scan.json; spillway plan scan.json --output plan.json",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_MODE |
              SPILL_COMMON_PARTIAL,
    .options = PLAN_OPTIONS,
    .defaults = &PLAN_DEFAULTS,
    .options_bytes = sizeof PLAN_DEFAULTS,
    .run = run_plan};

/* ---- report ---------------------------------------------------------------------------------- */

typedef struct report_options {
    spill_cli_scan_options_t scan;
    const char *output;
    int64_t target;
} report_options_t;

static const report_options_t REPORT_DEFAULTS = {.scan = SPILL_CLI_SCAN_DEFAULTS,
                                                 .target = SPILL_SCAN_BYTES};

static spill_code_t write_page(const spill_invocation_t *invocation,
                               const spill_scan_result_t *result, spill_error_t *error)
{
    const report_options_t *given = invocation->options;
    SPILL_SCOPED(spill_text_release) spill_text_t page = {0};
    SPILL_SCOPED(spill_plan_release) spill_plan_t plan = spill_plan_make(result, given->target);
    const char *shown = spill_cli_shown_source(invocation, result);
    SPILL_TRY(spill_text_open(&page, error));
    spill_report_write(result, &plan, result->source ? result->source : shown, page.to);
    SPILL_TRY(spill_text_close(&page, error));
    if (given->output)
        SPILL_TRY(write_file(invocation, given->output, &page, error));
    if (result->interrupted)
        spill_cli_say("the scan was interrupted: the page has its results up to then");
    if (invocation->json)
        spill_scan_write_json(result, shown, stdout);
    else if (!given->output)
        fwrite(page.text, 1, page.size_bytes, stdout);
    return spill_cli_flush(error);
}

static spill_exit_t run_report(const spill_invocation_t *invocation)
{
    const report_options_t *given = invocation->options;
    return spill_cli_with_scan(invocation, &given->scan, given->target, write_page);
}

static const spill_option_t REPORT_OPTIONS[] = {
    {"output", "FILE", SPILL_OPTION_TEXT, offsetof(report_options_t, output),
     "Write the page to this file once it is complete; by default it goes to stdout"},
    SPILL_CLI_SCAN_OPTIONS(report_options_t, scan),
    {"target", "SIZE", SPILL_OPTION_SIZE, offsetof(report_options_t, target),
     "Bytes that a head is meant to have in proposed layouts (200KiB)"},
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
        "Examples:\n"
        "  spillway report dump/ -o report.html\n"
        "  spillway scan dump/ --json >scan.json; spillway report scan.json -o report.html\n"
        "  spillway scan @server.uri --json | spillway report - -o report.html",
    .common = SPILL_COMMON_QUIET | SPILL_COMMON_MODE | SPILL_COMMON_PARTIAL,
    .options = REPORT_OPTIONS,
    .defaults = &REPORT_DEFAULTS,
    .options_bytes = sizeof REPORT_DEFAULTS,
    .run = run_report};
