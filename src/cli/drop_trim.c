/* drop and trim: remove an array, a definition with all its data, or the oldest elements. */
#include "cli/cli.h"
#include "store/raw_reader.h"
#include "tools/definition_jobs.h"
#include "util/clock.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- drop ------------------------------------------------------------------------------------ */

typedef struct drop_options {
    bool yes;
} drop_options_t;

static const drop_options_t DROP_DEFAULTS = {0};

static spill_code_t drop_definition(const spill_cli_session_t *session, const char *name,
                                    spill_error_t *error)
{
    char uri[SPILL_CLI_URI];
    SPILL_TRY(spill_cli_store_uri(session->invocation->arguments[0], uri, error));
    return spill_drop_definition(session->store, spill_raw_reader_serves(uri) ? uri : NULL, name,
                                 error);
}

static spill_code_t drop_data(spill_cli_session_t *session, spill_error_t *error)
{
    const char *name = session->invocation->arguments[1];
    if (session->owner && spill_cli_is_bucket(session))
        SPILL_TRY(spill_bucket_drop_before(session->array, session->owner, NULL, NULL, error));
    else if (session->owner)
        SPILL_TRY(spill_array_drop_owner(session->array, session->owner, error));
    else
        SPILL_TRY(drop_definition(session, name, error));
    spill_cli_print_done(session, NULL, "dropped",
                         session->owner ? 1 : session->walk.before + session->walk.owners);
    return SPILL_OK;
}

static spill_exit_t confirm(const spill_invocation_t *invocation)
{
    const char *name = invocation->arguments[1];
    return invocation->argument_count == 3
               ? spill_cli_confirm(invocation, "Drop the array of %s in '%s'?",
                                   invocation->arguments[2], name)
               : spill_cli_confirm(
                     invocation, "Drop definition '%s', and delete all elements of all its owners?",
                     name);
}

static spill_exit_t run_drop(const spill_invocation_t *invocation)
{
    const drop_options_t *options = invocation->options;
    spill_exit_t refused = options->yes ? SPILL_EXIT_DONE : confirm(invocation);
    if (refused != SPILL_EXIT_DONE)
        return refused;
    return spill_cli_with_array(invocation, SPILL_CLI_WRITE, drop_data);
}

static const spill_option_t DROP_OPTIONS[] = {{"yes", NULL, SPILL_OPTION_FLAG,
                                               offsetof(drop_options_t, yes),
                                               "Do not ask; needed if stdin is not a terminal"},
                                              {0}};

const spill_command_t spill_command_drop = {
    .name = "drop",
    .arguments = "STORE NAME [OWNER]",
    .arguments_min = 2,
    .arguments_max = 3,
    .summary = "Drop an owner's array, or a definition with its data",
    .text = "With OWNER, drops that owner's elements and pages; other fields of its head stay. A "
            "head without other fields is deleted. Without OWNER, drops the definition, the arrays "
            "of all its owners and the "
            "checkpoints of its imports. After a crash, run it again. A definition that `spillway "
            "migrate' is still copying to another layout is refused if it may be the only copy.\n"
            "\n"
            "Examples:\n"
            "  spillway drop feeds.db events alice\n"
            "  spillway drop feeds.db events --yes",
    .common = SPILL_COMMON_DURABILITY,
    .walked = "dropped",
    .interrupted = "run the same command to continue",
    .options = DROP_OPTIONS,
    .defaults = &DROP_DEFAULTS,
    .options_bytes = sizeof DROP_DEFAULTS,
    .run = run_drop};

/* ---- trim ------------------------------------------------------------------------------------ */

typedef struct trim_options {
    int64_t below;
    int64_t keep;
    const char *older_than;
    const char *windows; /* layout bucket */
} trim_options_t;

static const trim_options_t TRIM_DEFAULTS = {.below = -1, .keep = -1};

static bool parse_older(const trim_options_t *options, int64_t *time_ms)
{
    return spill_cli_parse_time(options->older_than, spill_clock_now_us(NULL) / 1000, time_ms);
}

/* Windows are dropped whole, except the one in which the trim ends. */
static spill_code_t trim_windows(const spill_cli_session_t *session, spill_error_t *error)
{
    const trim_options_t *options = session->invocation->options;
    int64_t time_ms;
    if (!spill_cli_is_bucket(session))
        return spill_fail(error, SPILL_INVALID, "--windows-before is for the layout bucket");
    SPILL_TRY(spill_cli_bucket_exists(session, error));
    if (options->windows)
        return spill_bucket_drop_before(session->array, session->owner, options->windows, NULL,
                                        error);
    if (options->keep >= 0)
        return spill_bucket_trim_keep(session->array, session->owner, options->keep, error);
    if (!options->older_than || !parse_older(options, &time_ms))
        return spill_fail(error, SPILL_INVALID,
                          "the layout is bucket, where each window has its own numbers: give "
                          "--keep, --older-than or --windows-before");
    return spill_bucket_trim_older(session->array, session->owner, time_ms, error);
}

static spill_code_t trim_numbers(const spill_cli_session_t *session, spill_error_t *error)
{
    const trim_options_t *options = session->invocation->options;
    const spill_value_t *owner = session->owner;
    int64_t time_ms = INT64_MIN;
    spill_code_t code;
    if (options->below >= 0) {
        code = spill_array_trim(session->array, owner, options->below, error);
    } else if (options->keep >= 0) {
        code = spill_array_trim_keep(session->array, owner, options->keep, NULL, error);
    } else {
        parse_older(options, &time_ms);
        code = spill_array_trim_older(session->array, owner, time_ms, NULL, error);
    }
    return code;
}

static void free_slice(spill_slice_t **slice)
{
    spill_slice_free(*slice);
}

/* Print the address of the oldest element that is left. */
static spill_code_t print_oldest(const spill_cli_session_t *session, spill_error_t *error)
{
    if (spill_cli_is_bucket(session))
        return spill_cli_bucket_oldest(session, error);
    spill_read_options_t options;
    SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = 1;
    SPILL_TRY(spill_array_read(session->array, session->owner, &options, &slice, error));
    spill_cli_print_done(session, NULL, "oldest", slice->count > 0 ? slice->elements[0].seq : -1);
    if (slice->count > 0 && !session->invocation->json)
        printf("%" PRId64 "\n", slice->elements[0].seq);
    return SPILL_OK;
}

static spill_code_t trim_array(spill_cli_session_t *session, spill_error_t *error)
{
    const trim_options_t *options = session->invocation->options;
    bool windows = spill_cli_is_bucket(session) || options->windows;
    SPILL_TRY(windows ? trim_windows(session, error) : trim_numbers(session, error));
    return print_oldest(session, error);
}

static spill_exit_t run_trim(const spill_invocation_t *invocation)
{
    const trim_options_t *options = invocation->options;
    int64_t time_ms;
    if ((options->below >= 0) + (options->keep >= 0) + (options->older_than != NULL) +
            (options->windows != NULL) !=
        1)
        return spill_cli_usage(invocation, "give one of --below, --keep, --older-than and "
                                           "--windows-before");
    if (options->older_than && !parse_older(options, &time_ms))
        return spill_cli_usage(invocation,
                               "--older-than: '%s' is neither a duration such as 30d or 12h nor a "
                               "time such as 2025-01-31 or 2025-01-31T12:00:00Z",
                               options->older_than);
    return spill_cli_with_array(invocation, SPILL_CLI_WRITE, trim_array);
}

static const spill_option_t TRIM_OPTIONS[] = {
    {"below", "S", SPILL_OPTION_NUMBER, offsetof(trim_options_t, below),
     "Remove every element with a sequence number below S"},
    {"keep", "N", SPILL_OPTION_NUMBER, offsetof(trim_options_t, keep),
     "Remove all but the newest N elements"},
    {"older-than", "TIME", SPILL_OPTION_TEXT, offsetof(trim_options_t, older_than),
     "Remove the oldest elements, up to the first younger one: a duration (90s, 30m, 12h, "
     "30d, 2w) or a time (2025-01-31, 2025-01-31T12:00:00Z)"},
    {"windows-before", "WINDOW", SPILL_OPTION_TEXT, offsetof(trim_options_t, windows),
     "Layout bucket: drop every window before this one"},
    {0}};

const spill_command_t spill_command_trim = {
    .name = "trim",
    .arguments = "STORE NAME OWNER",
    .arguments_min = 3,
    .arguments_max = 3,
    .summary = "Remove an owner's oldest elements",
    .text =
        "Prints the sequence number of the oldest element that is left, or nothing if none is.\n"
        "\n"
        "With layout bucket, whole windows are dropped. In the window in which the trim ends, "
        "elements of the first part are removed one by one, and later parts as a whole. So up to "
        "one part's elements may be left over.\n"
        "\n"
        "With layout capped and --sort-by too, --keep N keeps the newest N, not the highest "
        "ranking.\n"
        "\n"
        "Examples:\n"
        "  spillway trim feeds.db events alice --keep 10000\n"
        "  spillway trim feeds.db events alice --below 5000\n"
        "  spillway trim feeds.db events alice --older-than 90d\n"
        "  spillway trim shop.db reviews bike-7 --windows-before 2026-03",
    .common = SPILL_COMMON_DURABILITY,
    .options = TRIM_OPTIONS,
    .defaults = &TRIM_DEFAULTS,
    .options_bytes = sizeof TRIM_DEFAULTS,
    .run = run_trim};
