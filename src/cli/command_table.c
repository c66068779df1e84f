/* The table of the program's commands, in the groups and the order of the help. */
#include "cli/command.h"

static const spill_command_t *const find_commands[] = {
    &spill_command_scan, &spill_command_report, &spill_command_plan, &spill_command_plan_set, NULL};

static const spill_command_t *const change_commands[] = {
    &spill_command_migrate, &spill_command_sweep, &spill_command_consolidate,
    &spill_command_control, NULL};

static const spill_command_t *const array_commands[] = {&spill_command_define,
                                                        &spill_command_append,
                                                        &spill_command_read,
                                                        &spill_command_count,
                                                        &spill_command_contains,
                                                        &spill_command_update,
                                                        &spill_command_edit,
                                                        &spill_command_remove,
                                                        &spill_command_trim,
                                                        &spill_command_drop,
                                                        NULL};

static const spill_command_t *const transfer_commands[] = {
    &spill_command_import, &spill_command_export, &spill_command_copy, &spill_command_convert,
    NULL};

static const spill_command_t *const look_commands[] = {&spill_command_status,
                                                       &spill_command_stats,
                                                       &spill_command_owners,
                                                       &spill_command_explain,
                                                       &spill_command_threshold,
                                                       &spill_command_bench,
                                                       NULL};

static const spill_command_t *const safe_commands[] = {&spill_command_verify, &spill_command_repair,
                                                       &spill_command_backup,
                                                       &spill_command_restore, NULL};

static const spill_command_t *const other_commands[] = {&spill_command_serve,
                                                        &spill_command_completion, NULL};

const spill_command_group_t spill_command_groups[] = {
    {"Find arrays that grow, and plan", find_commands},
    {"Change a collection that is in use", change_commands},
    {"Use arrays", array_commands},
    {"Move arrays", transfer_commands},
    {"Look into a store", look_commands},
    {"Keep a store safe", safe_commands},
    {"Serve, and the shell", other_commands},
    {0}};

const spill_command_t *spill_command_next(size_t *group, size_t *at)
{
    while (spill_command_groups[*group].title) {
        const spill_command_t *command = spill_command_groups[*group].commands[(*at)++];
        if (command)
            return command;
        ++*group;
        *at = 0;
    }
    return NULL;
}
