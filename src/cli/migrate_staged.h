/* The two stages of migrate: in place under the original's name, then into the planned definition.
 */
#ifndef SPILL_CLI_MIGRATE_STAGED_H
#define SPILL_CLI_MIGRATE_STAGED_H

#include "cli/migrate_run.h"
#include "tools/staged.h"

/*
 * All work on run->planned and set run->definition. look prints what would be done; catch_up does
 * both stages; finish does them once more, and drops the original. Each prints a line of JSON.
 */
spill_code_t spill_cli_staged_look(spill_cli_migrate_t *run, spill_error_t *error);
spill_code_t spill_cli_staged_catch_up(spill_cli_migrate_t *run, spill_error_t *error);
spill_code_t spill_cli_staged_finish(spill_cli_migrate_t *run, spill_error_t *error);

typedef spill_code_t (*spill_cli_undo_fn)(const spill_staged_t *staged,
                                          const spill_migrate_options_t *options,
                                          spill_migrate_result_t *result, spill_error_t *error);

/* `undo`: spill_staged_undo, or the check before it; `step` is the word printed for it. */
spill_code_t spill_cli_staged_undo(spill_cli_migrate_t *run, spill_cli_undo_fn undo,
                                   const char *step, spill_error_t *error);

/*
 * Check an entry before any entry of the plan is migrated. *begins: some of its arrays still have
 * to be reshaped in place.
 */
spill_code_t spill_cli_staged_check(spill_cli_migrate_t *run, bool execute, bool finish,
                                    bool *begins, spill_error_t *error);

#endif
