/* trim: remove the oldest elements. */
#include "cli/cli.h"

#include <string.h>

typedef struct trim_options {
    int64_t below;
    int64_t keep;
} trim_options_t;

static const trim_options_t DEFAULTS = {.below = -1, .keep = -1};

/* The sequence number of the keep-th newest element; everything below it goes. */
static spill_code_t find_bound(spill_cli_session_t *session, int64_t keep, int64_t *below,
                               spill_error_t *error)
{
    spill_count_t count;
    spill_code_t code = spill_array_count(session->array, session->owner, &count, error);
    *below = keep == 0 ? count.next : 0;
    if (code != SPILL_OK || keep == 0 || keep >= count.count)
        return code;
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.skip = keep - 1;
    options.limit = 1;
    spill_slice_t *slice = NULL;
    code = spill_array_read(session->array, session->owner, &options, &slice, error);
    if (code == SPILL_OK && slice->count == 1)
        *below = slice->elements[0].seq;
    spill_slice_free(slice);
    return code;
}

static spill_code_t trim(spill_cli_session_t *session, spill_error_t *error)
{
    const trim_options_t *options = session->invocation->options;
    int64_t below = options->below;
    spill_code_t code = SPILL_OK;
    if (options->keep >= 0)
        code = find_bound(session, options->keep, &below, error);
    return code == SPILL_OK ? spill_array_trim(session->array, session->owner, below, error) : code;
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    const trim_options_t *options = invocation->options;
    if ((options->below < 0) == (options->keep < 0))
        return spill_cli_usage(invocation, "give either --below or --keep");
    return spill_cli_with_array(invocation, SPILL_CLI_WRITE, trim);
}

static const spill_option_t OPTIONS[] = {
    {"below", "S", SPILL_OPTION_NUMBER, offsetof(trim_options_t, below),
     "Remove every element with a sequence number below S"},
    {"keep", "N", SPILL_OPTION_NUMBER, offsetof(trim_options_t, keep),
     "Remove all but the newest N elements"},
    {0}};

const spill_command_t spill_command_trim = {
    .name = "trim",
    .arguments = "STORE NAME OWNER",
    .arguments_min = 3,
    .arguments_max = 3,
    .summary = "Remove an owner's oldest elements",
    .text = "Examples:\n"
            "  spillway trim feeds.db events alice --keep 10000\n"
            "  spillway trim feeds.db events alice --below 5000",
    .common = SPILL_COMMON_DURABILITY,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run};
