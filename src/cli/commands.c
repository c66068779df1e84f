#include "cli/command.h"

#include <string.h>

const spill_command_t *const spill_commands[] = {&spill_command_define, &spill_command_import,
                                                 &spill_command_append, &spill_command_read,
                                                 &spill_command_count,  &spill_command_edit,
                                                 &spill_command_remove, &spill_command_trim,
                                                 &spill_command_export, &spill_command_explain,
                                                 &spill_command_verify, &spill_command_repair,
                                                 &spill_command_stats,  &spill_command_threshold,
                                                 &spill_command_scan,   &spill_command_plan,
                                                 &spill_command_report, &spill_command_migrate,
                                                 &spill_command_sweep,  &spill_command_consolidate,
                                                 &spill_command_drop,   &spill_command_convert,
                                                 &spill_command_copy,   &spill_command_backup,
                                                 &spill_command_bench,  NULL};

const spill_command_t *spill_command_find(const char *name)
{
    for (size_t i = 0; spill_commands[i]; i++)
        if (strcmp(spill_commands[i]->name, name) == 0)
            return spill_commands[i];
    return NULL;
}

#define NEAR_NAME_SIZE 32

/* How many letters to insert, delete or replace between two short words (Levenshtein, one row). */
static size_t edit_distance(const char *left, const char *right)
{
    size_t row[NEAR_NAME_SIZE + 1];
    size_t columns = strlen(right);
    for (size_t j = 0; j <= columns; j++)
        row[j] = j;
    for (size_t i = 0; left[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            size_t replaced = diagonal + (left[i] != right[j]);
            size_t moved = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < moved ? replaced : moved;
        }
    }
    return row[columns];
}

const spill_command_t *spill_command_nearest(const char *name)
{
    const spill_command_t *nearest = NULL;
    size_t best = 3; /* beyond two letters it is another word */
    if (strlen(name) > NEAR_NAME_SIZE)
        return NULL;
    for (size_t i = 0; spill_commands[i]; i++) {
        size_t distance = edit_distance(name, spill_commands[i]->name);
        if (distance < best) {
            best = distance;
            nearest = spill_commands[i];
        }
    }
    return nearest;
}
