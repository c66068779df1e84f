/* Progress of a command that walks over all owners of definitions, and its message on Ctrl-C. */
#ifndef SPILL_CLI_WALK_H
#define SPILL_CLI_WALK_H

#include "cli/command.h"
#include "cli/progress.h"

typedef struct spill_cli_walk {
    spill_cli_progress_t progress;
    const spill_command_t *command;
    const char *done;           /* what is done with an owner: "verified" */
    char name[SPILL_NAME_SIZE]; /* of the definition that is walked; "" before the first */
    int64_t owners;             /* of it, so far */
    int64_t before;             /* of the definitions before it */
    int64_t lines;              /* printed so far; -1: only owners are counted */
    int64_t all;                /* owners of the definition; -1: not counted yet, 0: unknown */
} spill_cli_walk_t;

/*
 * If `done` is not NULL, show the progress of walks over owners of this store from now on, and end
 * them on Ctrl-C. Once a walk takes long enough for a line, its owners are counted by a walk that
 * reads no element. `done` is borrowed. End it in every case.
 */
void spill_cli_walk_start(spill_cli_walk_t *walk, const spill_invocation_t *invocation,
                          spill_store_t *store, const char *done);

/*
 * End the walks with the result `code`: erase the line. If Ctrl-C ended one, set a message with
 * the numbers of owners and of lines, and with what the command's row says about continuing.
 * Returns `code`.
 */
spill_code_t spill_cli_walk_end(spill_cli_walk_t *walk, spill_store_t *store, spill_code_t code,
                                spill_error_t *error);

/*
 * Count the owners of an array, for a total in a progress line. -1: that would take longer than
 * some seconds, or failed. For layout bucket: the windows.
 */
int64_t spill_cli_count_owners(spill_cli_progress_t *progress, spill_array_t *array);

#endif
