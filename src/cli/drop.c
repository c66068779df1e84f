/* drop: an owner's array, or a definition with all its data. */
#include "cli/bucket.h"

#include "tools/definition_jobs.h"

typedef struct drop_options {
    bool yes;
} drop_options_t;

static const drop_options_t DEFAULTS = {0};

static spill_code_t drop_data(spill_cli_session_t *session, spill_error_t *error)
{
    const char *name = session->invocation->arguments[1];
    if (session->owner && spill_cli_is_bucket(session))
        return spill_bucket_drop_before(session->array, session->owner, NULL, NULL, error);
    if (session->owner)
        return spill_array_drop_owner(session->array, session->owner, error);
    return spill_drop_definition(session->store, name, error);
}

static spill_exit_t confirm(const spill_invocation_t *invocation)
{
    const char *name = invocation->arguments[1];
    return invocation->argument_count == 3
               ? spill_cli_confirm(invocation, "Drop the array of %s in '%s'?",
                                   invocation->arguments[2], name)
               : spill_cli_confirm(invocation,
                                   "Drop definition '%s' with the arrays of all its owners?", name);
}

static spill_exit_t run_drop(const spill_invocation_t *invocation)
{
    const drop_options_t *options = invocation->options;
    spill_exit_t refused = options->yes ? SPILL_EXIT_DONE : confirm(invocation);
    if (refused != SPILL_EXIT_DONE)
        return refused;
    return spill_cli_with_array(invocation, SPILL_CLI_WRITE, drop_data);
}

static const spill_option_t OPTIONS[] = {{"yes", NULL, SPILL_OPTION_FLAG,
                                          offsetof(drop_options_t, yes),
                                          "Do not ask; needed if stdin is not a terminal"},
                                         {0}};

const spill_command_t spill_command_drop = {
    .name = "drop",
    .arguments = "STORE NAME [OWNER]",
    .arguments_min = 2,
    .arguments_max = 3,
    .summary = "Drop an owner's array, or a definition with its data",
    .text = "With OWNER, drops that owner's elements and pages; other fields of its head stay. "
            "Without OWNER, drops the definition, the arrays of all its owners and the "
            "checkpoints of its imports. After a crash, run it again. A definition that `spillway "
            "migrate' is still copying to another layout is refused if it may be the only copy.\n"
            "\n"
            "Examples:\n"
            "  spillway drop feeds.db events alice\n"
            "  spillway drop feeds.db events --yes",
    .common = SPILL_COMMON_DURABILITY,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_drop};
