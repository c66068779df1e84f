/* backup: a consistent copy of an embedded store. */
#include "cli/cli.h"

static spill_exit_t run_backup(const spill_invocation_t *invocation)
{
    spill_error_t error;
    spill_store_t *store = NULL;
    spill_code_t code = spill_cli_open_store(invocation, SPILL_CLI_READ, &store, &error);
    if (code == SPILL_OK)
        code = spill_store_backup(store, invocation->arguments[1], &error);
    if (code == SPILL_OK && !invocation->quiet)
        fprintf(stderr, "the copy is in %s\n", invocation->arguments[1]);
    return spill_cli_close(NULL, store, code, &error);
}

const spill_command_t spill_command_backup = {
    .name = "backup",
    .arguments = "STORE FOLDER",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Copy an embedded store while it is in use",
    .text = "FOLDER must not exist; the copy is complete or absent, and is a store itself. A "
            "database on a server is copied with the server's own tools.\n"
            "\n"
            "Example:\n"
            "  spillway backup feeds.db /backup/feeds-2026-02-01",
    .common = SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL | SPILL_COMMON_MODE,
    .run = run_backup};
