/* plan: propose layouts for the arrays that a scan found. */
#include "cli/cli.h"
#include "cli/scan_options.h"
#include "cli/scan_print.h"

#include "tools/scan/plan.h"
#include "util/file.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan_options {
    spill_cli_scan_options_t scan;
    const char *output;
    int64_t target;
} plan_options_t;

static const plan_options_t DEFAULTS = {.scan = SPILL_CLI_SCAN_DEFAULTS,
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

static void print_plan(const spill_plan_t *plan)
{
    if (plan->count + plan->group_count == 0)
        printf("nothing to plan: no array is over a threshold, and no collections are sprawl\n");
    for (size_t i = 0; i < plan->count; i++)
        print_item(&plan->items[i]);
    for (size_t i = 0; i < plan->group_count; i++)
        print_group(&plan->groups[i]);
}

/* ---- the command ----------------------------------------------------------------------------- */

static spill_code_t print_or_write(const spill_invocation_t *invocation,
                                   const spill_scan_result_t *result, spill_error_t *error)
{
    const plan_options_t *given = invocation->options;
    const char *source = spill_cli_shown_source(invocation, result);
    spill_code_t code = SPILL_OK;
    char *text = NULL;
    size_t size = 0;
    spill_plan_t plan = spill_plan_make(result, given->target);
    FILE *to = open_memstream(&text, &size);
    spill_plan_write_json(&plan, source, to);
    fclose(to);
    if (given->output)
        code = spill_file_replace(given->output, text, size, error);
    if (invocation->json)
        fwrite(text, 1, size, stdout);
    else
        print_plan(&plan);
    free(text);
    spill_plan_release(&plan);
    return code == SPILL_OK ? spill_cli_flush(error) : code;
}

static spill_exit_t run_plan(const spill_invocation_t *invocation)
{
    const plan_options_t *given = invocation->options;
    return spill_cli_with_scan(invocation, &given->scan, given->target, print_or_write);
}

static const spill_option_t OPTIONS[] = {
    SPILL_CLI_SCAN_OPTIONS(plan_options_t, scan),
    {"target", "SIZE", SPILL_OPTION_SIZE, offsetof(plan_options_t, target),
     "Bytes that a head is meant to have (200KB)"},
    {"output", "FILE", SPILL_OPTION_TEXT, offsetof(plan_options_t, output),
     "Also write the plan to this file, for editing"},
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
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_MODE | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_plan};
