/* status: show unfinished work in a store, and the command that finishes it. */
#include "cli/cli.h"
#include "cli/process.h"
#include "cli/server_notes.h"
#include "tools/unfinished.h"
#include "tools/unfinished_owners.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/redact.h"
#include "util/text.h"

#include <inttypes.h>

typedef struct status_options {
    bool owners;
} status_options_t;

static const status_options_t DEFAULTS = {0};

typedef struct status_line {
    const char *kind, *name;
    const char *owner; /* Extended JSON; NULL: not of one owner */
    const char *state;
    const char *finish; /* or NULL */
    int64_t saved_ms;
} status_line_t;

#define LINE(type, member, name, ...) SPILL_FIELD(type, status_line_t, member, name, __VA_ARGS__)
static const spill_field_t line_fields[] = {
    LINE(TEXT, kind, "kind", .flags = 0),
    LINE(TEXT, name, "name", .flags = SPILL_FIELD_REPAIRED),
    LINE(TEXT, owner, "owner", .flags = SPILL_FIELD_SPARSE | SPILL_FIELD_REPAIRED),
    LINE(TEXT, state, "state", .flags = SPILL_FIELD_REPAIRED),
    LINE(TEXT, finish, "finish", .flags = SPILL_FIELD_REDACTED | SPILL_FIELD_REPAIRED),
    LINE(DATE, saved_ms, "saved", .flags = 0)};
static const spill_record_t line_record = SPILL_RECORD("job", status_line_t, line_fields);

typedef struct status {
    const spill_invocation_t *invocation;
    int64_t now_ms;
    int64_t count;
} status_t;

/* "3 days", "5 hours", "12 minutes": how long ago it was; nothing if it has no time. */
static void print_age(int64_t saved_ms, int64_t now_ms)
{
    static const struct {
        int64_t ms;
        const char *one, *many;
    } units[] = {
        {86400000, "day", "days"}, {3600000, "hour", "hours"}, {60000, "minute", "minutes"}};
    int64_t age_ms = now_ms > saved_ms ? now_ms - saved_ms : 0;
    size_t unit = 0;
    if (saved_ms == SPILL_DATE_UNKNOWN)
        return;
    while (unit < 2 && age_ms < 2 * units[unit].ms)
        unit++;
    int64_t count = age_ms / units[unit].ms;
    printf("  last changed %" PRId64 " %s ago, at %s\n", count,
           spill_cli_plural(count, units[unit].one, units[unit].many),
           spill_time_text(saved_ms).text);
}

static void print_line(const status_t *status, const status_line_t *line)
{
    if (status->invocation->json) {
        spill_cli_print_record(&line_record, line);
        return;
    }
    spill_cli_print("%s of %s%s%s: %s\n", line->kind, line->name, line->owner ? ", owner " : "",
                    line->owner ? line->owner : "", line->state);
    print_age(line->saved_ms, status->now_ms);
    if (line->finish) {
        char *redacted = spill_redact(line->finish);
        spill_cli_print("  continue with: %s\n", redacted);
        bson_free(redacted);
    }
}

static bool print_job(void *context, const spill_status_job_t *job)
{
    status_t *status = context;
    const status_line_t line = {.kind = spill_status_kind_name(job->kind),
                                .name = job->name,
                                .state = job->state,
                                .finish = job->finish,
                                .saved_ms = job->saved_ms};
    status->count++;
    print_line(status, &line);
    return true;
}

/* ---- --owners -------------------------------------------------------------------------------- */

/* Owners of a definition that are printed. Of the others only the number is. */
#define ROWS_MAX 20

static void print_owner(void *context, const spill_status_owner_t *owner)
{
    const spill_cli_session_t *session = context;
    status_t *status = session->context;
    const status_line_t line = {.kind = owner->kind,
                                .name = spill_array_get_definition(session->array)->name,
                                .owner = owner->owner,
                                .state = owner->state,
                                .finish = owner->finish,
                                .saved_ms = owner->began_ms};
    print_line(status, &line);
}

/* Pages without a head are not always half done: another program may have deleted the document. */
static char *describe_owners(const spill_status_owners_t *owners)
{
    int64_t half_done = owners->count - owners->headless;
    if (owners->headless == 0)
        return bson_strdup_printf("%" PRId64 " that killed programs left half done", half_done);
    const char *headless = "pages without a head: another program has deleted or replaced the "
                           "document, or a drop or `migrate' ended early";
    if (half_done == 0)
        return bson_strdup_printf("%" PRId64 " %s %s", owners->headless,
                                  spill_cli_plural(owners->headless, "owner has", "owners have"),
                                  headless);
    return bson_strdup_printf(
        "%" PRId64 " that killed programs left half done; %" PRId64 " %s %s", half_done,
        owners->headless, spill_cli_plural(owners->headless, "owner has", "owners have"), headless);
}

/* Print the first owners with an unfinished operation, and the total. */
static spill_code_t look_at_owners(spill_cli_session_t *session, spill_error_t *error)
{
    status_t *status = session->context;
    const char *shown = session->invocation->arguments[0];
    const char *name = spill_array_get_definition(session->array)->name;
    spill_status_owners_t owners;
    SPILL_TRY(
        spill_status_owners(session->array, shown, ROWS_MAX, print_owner, session, &owners, error));
    if (owners.count == 0)
        return SPILL_OK;
    char *state = describe_owners(&owners);
    char *store = spill_shell_word(shown);
    char *quoted = spill_shell_word(name);
    char *finish = bson_strdup_printf("spillway repair %s %s", store, quoted);
    const status_line_t line = {.kind = "operations",
                                .name = name,
                                .state = state,
                                .finish = finish,
                                .saved_ms = SPILL_DATE_UNKNOWN};
    status->count++;
    print_line(status, &line);
    bson_free(state);
    bson_free(finish);
    bson_free(quoted);
    bson_free(store);
    return SPILL_OK;
}

static spill_code_t look(status_t *status, spill_store_t *store, spill_error_t *error)
{
    const spill_invocation_t *invocation = status->invocation;
    const status_options_t *options = invocation->options;
    spill_cli_session_t session = {.invocation = invocation, .store = store, .context = status};
    SPILL_TRY(spill_status_jobs(store, invocation->arguments[0], print_job, status, error));
    spill_cli_warn_of_ttl_in_store(invocation, store);
    if (options->owners)
        SPILL_TRY(spill_cli_work_on_arrays(&session, look_at_owners, error));
    if (status->count == 0 && !invocation->json)
        puts(options->owners ? "no work is unfinished"
                             : "no job is unfinished; --owners also reads every owner");
    return SPILL_OK;
}

static spill_exit_t run_status(const spill_invocation_t *invocation)
{
    status_t status = {.invocation = invocation, .now_ms = spill_clock_now_us(NULL) / 1000};
    spill_error_t error;
    spill_store_t *store = NULL;
    spill_code_t code = spill_cli_open_store(invocation, SPILL_CLI_READ, &store, &error);
    if (code == SPILL_OK)
        code = look(&status, store, &error);
    spill_exit_t result = spill_cli_close(NULL, store, code, &error);
    return result == SPILL_EXIT_DONE && status.count > 0 ? SPILL_EXIT_FOUND : result;
}

static const spill_option_t OPTIONS[] = {
    {"owners", NULL, SPILL_OPTION_FLAG, offsetof(status_options_t, owners),
     "Also read every owner, for removals, edits and drops that killed programs left half done"},
    {0}};

const spill_command_t spill_command_status = {
    .name = "status",
    .arguments = "STORE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Show unfinished work, and the command that finishes it",
    .text =
        "Lists migrations in two stages, conversions that are being finished, consolidations "
        "and imports that have begun and not ended, with the time of their last step. Each has "
        "the command that continues it. A job may also be running now. With --json, one line "
        "for each: {\"kind\", \"name\", \"state\", \"finish\", \"saved\"}.\n"
        "\n"
        "With --owners, each unfinished operation of an owner is listed too: a removal or an edit "
        "(an intent in the head), pages that a migration has copied from a full document (a "
        "lease), pages without a head, and others. At most 20 of a definition are listed; the "
        "line \"operations\" has their number. Only a lease has a time. With --json these lines "
        "also have \"owner\".\n"
        "\n"
        "A migration in place is listed if a run was interrupted after some owners, and if an undo "
        "has begun and not ended. A program that adopts arrays (migrate, sweep, a gateway) is "
        "listed while it does. If it was killed on this host, the line says so; on another host, "
        "the line says when that will be certain; "
        "`spillway migrate STORE PLAN' prints what is left. "
        "The exit code is 1 if something is unfinished.\n"
        "\n"
        "Examples:\n"
        "  spillway status feeds.db\n"
        "  spillway status mongodb://localhost/shop --owners",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON,
    .walked = "checked",
    .interrupted = "the same command starts again with the first owner",
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_status};
