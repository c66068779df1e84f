/* plan-set: complete the definition of one entry of a plan. */
#include "bson/record.h"
#include "cli/define_options.h"
#include "definition/schema.h"
#include "tools/scan/plan_edit.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

typedef struct plan_set_options {
    spill_cli_define_options_t define;
    bool migrate, leave;
} plan_set_options_t;

static const plan_set_options_t DEFAULTS = {.define = SPILL_CLI_DEFINE_DEFAULTS};

/* ---- output ---------------------------------------------------------------------------------- */

typedef struct edit_line {
    const char *entry;
    bool written;
    const spill_plan_change_t *changes;
    size_t change_count;
} edit_line_t;

#define CHANGE(type, member) SPILL_FIELD(type, spill_plan_change_t, member, #member)
static const spill_field_t change_fields[] = {CHANGE(COPY, field), CHANGE(JSON, before),
                                              CHANGE(JSON, after)};
static const spill_record_t change_record =
    SPILL_RECORD("change", spill_plan_change_t, change_fields);
static const spill_field_t edit_fields[] = {
    SPILL_FIELD(TEXT, edit_line_t, entry, "entry"),
    SPILL_FIELD(BOOL, edit_line_t, written, "written"),
    SPILL_FIELD(LIST, edit_line_t, changes, "changes", .of = &change_record,
                .count_offset = offsetof(edit_line_t, change_count))};
static const spill_record_t edit_record = SPILL_RECORD("edit", edit_line_t, edit_fields);

/* A value that does not fit beside the field has a line of its own. */
static void print_change(const spill_plan_change_t *change)
{
    enum { BESIDE_MAX = 60 };
    const char *before = change->before ? change->before : "(none)";
    const char *after = change->after ? change->after : "(none)";
    bool beside = strlen(before) + strlen(after) <= BESIDE_MAX;
    spill_cli_print(beside ? "%s: %s -> %s\n" : "%s:\n  - %s\n  + %s\n", change->field, before,
                    after);
}

static void print_changes(const spill_invocation_t *invocation, const spill_plan_edit_t *edit,
                          bool written)
{
    if (invocation->json) {
        const edit_line_t line = {invocation->arguments[1], written, edit->changes,
                                  edit->change_count};
        spill_cli_print_record(&edit_record, &line);
        return;
    }
    if (invocation->quiet)
        return;
    for (size_t i = 0; i < edit->change_count; i++)
        print_change(&edit->changes[i]);
    if (edit->change_count == 0)
        puts("nothing changes");
    else if (!written)
        puts("nothing was written (--dry-run)");
}

/* ---- the command ----------------------------------------------------------------------------- */

/* The entry's definition, or a new one if the entry has none or a preset or layout is asked for. */
static spill_code_t starting_point(const plan_set_options_t *given, const spill_plan_edit_t *edit,
                                   spill_definition_t *definition, spill_error_t *error)
{
    const spill_cli_define_options_t *options = &given->define;
    spill_layout_t layout = edit->definition.layout;
    SPILL_TRY(spill_cli_layout(options->layout, &layout, error));
    if (edit->defined && !options->preset && layout == edit->definition.layout) {
        *definition = edit->definition;
        return SPILL_OK;
    }
    if (!edit->defined && !options->preset && !options->layout)
        return spill_fail(error, SPILL_INVALID,
                          "the entry has no definition yet: give --layout or --preset");
    SPILL_TRY(spill_cli_define_start(options, "plan", definition, error));
    if (options->layout && layout != definition->layout)
        spill_definition_set_layout(definition, layout);
    return spill_plan_edit_reshape(edit, definition, error);
}

static spill_code_t set_entry(const spill_invocation_t *invocation, spill_plan_edit_t *edit,
                              spill_error_t *error)
{
    const plan_set_options_t *given = invocation->options;
    const spill_plan_choices_t choices = {
        .order = given->define.order,
        .migrate = given->migrate || given->leave ? &given->migrate : NULL};
    spill_cli_define_options_t options = given->define;
    spill_definition_t definition;
    SPILL_TRY(
        spill_plan_edit_open(edit, invocation->arguments[0], invocation->arguments[1], error));
    SPILL_TRY(starting_point(given, edit, &definition, error));
    /* These layouts have no order: it describes the existing array, so only "original" gets it. */
    if (spill_schema_of(&definition)->has_referenced_elements)
        options.order = NULL;
    SPILL_TRY(spill_cli_define_apply(&options, &definition, error));
    SPILL_TRY(spill_plan_edit_set(edit, &definition, &choices, error));
    bool writes = edit->change_count > 0 && !invocation->dry_run;
    if (writes)
        SPILL_TRY(spill_plan_edit_write(edit, error));
    print_changes(invocation, edit, writes);
    return spill_cli_flush(error);
}

static spill_exit_t run_plan_set(const spill_invocation_t *invocation)
{
    const plan_set_options_t *given = invocation->options;
    if (given->migrate && given->leave)
        return spill_cli_usage(invocation, "give either --migrate or --leave");
    if (!spill_cli_define_given(&given->define) && !given->migrate && !given->leave)
        return spill_cli_usage(invocation, "nothing to set: give --layout or another option");
    spill_error_t error;
    spill_plan_edit_t edit = {0};
    spill_code_t code = set_entry(invocation, &edit, &error);
    spill_plan_edit_release(&edit);
    return code == SPILL_OK ? SPILL_EXIT_DONE : spill_cli_fail(&error);
}

static const spill_option_t OPTIONS[] = {
    {"migrate", NULL, SPILL_OPTION_FLAG, offsetof(plan_set_options_t, migrate),
     "Set \"migrate\" to true: `spillway migrate' reshapes this array"},
    {"leave", NULL, SPILL_OPTION_FLAG, offsetof(plan_set_options_t, leave),
     "Set \"migrate\" to false"},
    SPILL_CLI_DEFINE_OPTIONS(plan_set_options_t, define),
    {0}};

const spill_command_t spill_command_plan_set = {
    .name = "plan-set",
    .arguments = "FILE COLLECTION.PATH",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Choose another layout in a plan, and complete its definition",
    .text =
        "FILE was written by `spillway plan --output'. COLLECTION.PATH names one of its arrays as "
        "`plan' prints it, such as shop.users.events; the database may be left out. With another "
        "--layout, the definition gets all names and bounds that this layout needs, and "
        "\"original\" if the layout is reached in stages. The options of `define' "
        "change the definition. An entry that `spillway migrate' could not carry out is refused. "
        "With another layout or other bounds, the reasons, alternatives and the aggregation of the "
        "entry change too, and its savings, which need a scan, are removed.\n"
        "\n"
        "All other parts of the file stay, also keys that this version does not know, and the "
        "order of the keys. The file is replaced at once, or not at all.\n"
        "\n"
        "Examples:\n"
        "  spillway plan-set plan.json shop.users.events --order oldest-first\n"
        "  spillway plan-set plan.json products.reviews --layout subset --top 5 --migrate\n"
        "  spillway plan-set plan.json users.logins --layout capped --threshold 100 --dry-run",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_MODE |
              SPILL_COMMON_DRY_RUN,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_plan_set};
