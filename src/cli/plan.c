/* plan: how to lay out the arrays that a scan found. */
#include "cli/cli.h"
#include "cli/draw.h"
#include "cli/progress.h"
#include "cli/scan_print.h"

#include "tools/scan/plan.h"
#include "util/error.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

typedef struct plan_options {
    const char *output;
    int64_t target;
} plan_options_t;

static const plan_options_t DEFAULTS = {.target = SPILL_SCAN_BYTES};

/* ---- telling --------------------------------------------------------------------------------- */

static const char *layout_name(spill_layout_t layout)
{
    return layout == SPILL_LAYOUT_REFERENCE ? "reference" : "outlier";
}

static void print_item(const spill_plan_item_t *item)
{
    printf("\n%s: %s -> ", item->collection->name, item->path->path);
    if (!item->possible)
        printf("not as it is\n");
    else if (item->definition.layout == SPILL_LAYOUT_OUTLIER)
        printf("layout outlier, threshold %" PRId64 ", pages of %" PRId64 "%s\n",
               item->definition.bounds.threshold, item->definition.bounds.page_capacity,
               item->definition.order == SPILL_ARRAY_NEWEST_FIRST ? ", newest first" : "");
    else
        printf("layout %s\n", layout_name(item->definition.layout));
    for (size_t i = 0; i < item->why.count; i++)
        printf("  %s\n", item->why.at[i]);
    for (size_t i = 0; i < item->alternatives.count; i++)
        printf("  or: %s\n", item->alternatives.at[i]);
    if (item->possible)
        printf("  saves: an append to the largest rewrites %s now, then at most %s\n",
               spill_cli_size_text(item->bytes_now).text,
               spill_cli_size_text(item->bytes_then).text);
    if (item->detection)
        printf("  see:   %s\n", item->detection);
}

static void print_plan(const spill_plan_t *plan)
{
    if (plan->count == 0)
        printf("nothing to plan: no array is over a threshold\n");
    for (size_t i = 0; i < plan->count; i++)
        print_item(&plan->items[i]);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Read what a scan wrote, or scan. */
static spill_code_t look(const spill_invocation_t *invocation, spill_scan_result_t *result,
                         spill_error_t *error)
{
    const char *source = invocation->arguments[0];
    spill_cli_progress_t progress;
    spill_scan_options_t options;
    if (spill_scan_is_json(source))
        return spill_scan_read_json(source, result, error);
    spill_cli_progress_start(&progress, invocation->quiet);
    spill_scan_options_init(&options);
    options.source = source;
    options.progress = spill_cli_show_scan;
    options.context = &progress;
    spill_code_t code = spill_scan(&options, result, error);
    spill_cli_progress_break(&progress);
    return code;
}

static spill_code_t write_file(const spill_plan_t *plan, const char *source, const char *file,
                               spill_error_t *error)
{
    FILE *to = fopen(file, "w");
    if (!to)
        return spill_fail_errno(error, errno, "%s", file);
    spill_plan_write_json(plan, source, to);
    int problem = ferror(to) ? EIO : 0;
    if (fclose(to) != 0)
        problem = errno;
    return problem ? spill_fail_errno(error, problem, "%s", file) : SPILL_OK;
}

static spill_code_t tell(const spill_invocation_t *invocation, const spill_scan_result_t *result,
                         spill_error_t *error)
{
    const plan_options_t *given = invocation->options;
    const char *source = spill_cli_shown_source(invocation, result);
    spill_code_t code = SPILL_OK;
    spill_plan_t plan = spill_plan_make(result, given->target);
    if (given->output)
        code = write_file(&plan, source, given->output, error);
    if (invocation->json)
        spill_plan_write_json(&plan, source, stdout);
    else
        print_plan(&plan);
    spill_plan_release(&plan);
    return code == SPILL_OK ? spill_cli_flush(error) : code;
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    const plan_options_t *given = invocation->options;
    spill_scan_result_t result;
    spill_error_t error;
    if (given->target < 1000)
        return spill_cli_usage(invocation, "--target is at least 1 KB");
    spill_code_t code = look(invocation, &result, &error);
    if (code == SPILL_OK)
        code = tell(invocation, &result, &error);
    int64_t problems = result.problems_all;
    spill_scan_release(&result);
    if (code != SPILL_OK)
        return spill_cli_fail(&error);
    if (problems > 0)
        fprintf(stderr, "spillway: %" PRId64 " %s in the input; `spillway scan' has the places\n",
                problems, spill_cli_plural(problems, "problem", "problems"));
    return problems > 0 ? SPILL_EXIT_FAILED : SPILL_EXIT_DONE;
}

static const spill_option_t OPTIONS[] = {
    {"target", "SIZE", SPILL_OPTION_SIZE, offsetof(plan_options_t, target),
     "Bytes that a head is meant to have (200KB)"},
    {"output", "FILE", SPILL_OPTION_TEXT, offsetof(plan_options_t, output),
     "Write the plan to this file, too, to be edited"},
    {0}};

const spill_command_t spill_command_plan = {
    .name = "plan",
    .arguments = "SCAN.json|SOURCE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Propose layouts for the arrays that a scan found",
    .text =
        "SCAN.json is what `spillway scan --json' printed; anything else is scanned first, "
        "with scan's default thresholds. For each array or map that a finding names: the "
        "layout that fits and why, with threshold and page size from the measured size of "
        "elements, which end it grows at, what would fit better if, what it saves, and an "
        "aggregation for the shell to look for oneself.\n"
        "\n"
        "Nothing is changed. The file that --output writes is JSON with a field a line, so that "
        "it can be edited and compared.\n"
        "\n"
        "Examples:\n"
        "  spillway plan dump/\n"
        "  spillway scan dump/ --json >scan.json; spillway plan scan.json --output plan.json",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run};
