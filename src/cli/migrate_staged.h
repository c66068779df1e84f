/* migrate's two stages: in place under the original's name, and from there to what is planned. */
#ifndef SPILL_CLI_MIGRATE_STAGED_H
#define SPILL_CLI_MIGRATE_STAGED_H

#include "cli/migrate_run.h"
#include "tools/staged.h"

/*
 * Of run->planned; each sets run->definition. Look says what would be done; bring does both stages;
 * finish does them once more, and settles it. Each prints what it did, a line of JSON.
 */
spill_code_t spill_cli_staged_look(spill_cli_migrate_t *run, spill_error_t *error);
spill_code_t spill_cli_staged_catch_up(spill_cli_migrate_t *run, spill_error_t *error);
spill_code_t spill_cli_staged_finish(spill_cli_migrate_t *run, spill_error_t *error);

typedef spill_code_t (*spill_cli_undo_fn)(const spill_staged_t *staged,
                                          const spill_migrate_options_t *options,
                                          spill_migrate_result_t *result, spill_error_t *error);

/* `undo` is spill_staged_undo, or what checks whether it can be; `step` is what is printed of it.
 */
spill_code_t spill_cli_staged_undo(spill_cli_migrate_t *run, spill_cli_undo_fn undo,
                                   const char *step, spill_error_t *error);

/*
 * Check an entry before any entry of the plan is migrated. *begins: its originals are still to be
 * laid out, all or in part.
 */
spill_code_t spill_cli_staged_check(spill_cli_migrate_t *run, bool execute, bool finish,
                                    bool *begins, spill_error_t *error);

#endif
