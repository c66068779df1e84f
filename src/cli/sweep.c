/* sweep: move what other programs push to heads into pages, repeatedly. */
#include "cli/operate.h"
#include "cli/process.h"
#include "core/array.h"
#include "core/building.h"
#include "definition/difference.h"
#include "service/retry_schedule.h"
#include "service/service_manager.h"
#include "store/store.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/staged.h"
#include "tools/migrate/undoing.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/redact.h"
#include "util/text.h"

#include <inttypes.h>
#include <time.h>

typedef struct sweep_options {
    spill_cli_operate_given_t operate;
    bool watch;
    int64_t interval_s;
    int64_t give_up_s;
} sweep_options_t;

static const sweep_options_t SWEEP_DEFAULTS = {
    .operate.execute = true, .interval_s = 60, .give_up_s = 900};

/* Wait in small steps, to notice Ctrl-C. False: it came. */
static bool pause_between(spill_cli_migrate_t *run, int64_t interval_s)
{
    const struct timespec step = {.tv_nsec = 200 * 1000 * 1000};
    spill_job_metrics_next(&run->operate.metrics,
                           spill_clock_now_us(NULL) + interval_s * 1000 * 1000);
    for (int64_t i = 0; i < interval_s * 5 && !spill_cli_operate_stops(&run->operate); i++)
        nanosleep(&step, NULL);
    spill_job_metrics_next(&run->operate.metrics, 0);
    return !spill_cli_operate_stops(&run->operate);
}

/* Report whether a later pass may succeed, because the store is only unreachable or busy now. */
static bool may_succeed_later(spill_code_t code, const spill_error_t *error)
{
    return code == SPILL_UNKNOWN || ((code == SPILL_IO || code == SPILL_BUSY) && error->retryable);
}

/* After a pass that ended with `code`: the seconds to wait for the next one; 0: there is none. */
static int64_t next_pause_s(spill_cli_migrate_t *run, spill_code_t code, const spill_error_t *error,
                            spill_retry_schedule_t *schedule)
{
    const sweep_options_t *given = run->invocation->options;
    int64_t pause_s = given->interval_s;
    if (!given->watch || (code != SPILL_OK && !may_succeed_later(code, error)))
        return 0;
    if (code == SPILL_OK)
        spill_retry_schedule_reset(schedule);
    else
        pause_s = spill_retry_schedule_failed(schedule, spill_clock_now_us(NULL));
    spill_job_metrics_gives_up(&run->operate.metrics, schedule->gives_up_us);
    return pause_s;
}

/*
 * Find the definition to sweep: the named one or, if that is still building, its original; `target`
 * is then the one that is building.
 */
static spill_code_t find_swept(spill_cli_migrate_t *run, spill_definition_t *definition,
                               spill_definition_t *target, bool *building, spill_error_t *error)
{
    SPILL_SCOPED(spill_building_release) spill_building_t checkpoint = {0};
    *building = false;
    SPILL_TRY(spill_store_definition(run->store, run->name, target, error));
    SPILL_TRY(spill_undoing_check(run->store, run->name, error));
    *definition = *target;
    SPILL_TRY(spill_building_load(run->store, run->name, &checkpoint, error));
    *building = checkpoint.stored != NULL;
    if (!*building)
        return SPILL_OK;
    SPILL_TRY(spill_undoing_check(run->store, checkpoint.original, error));
    SPILL_TRY(spill_catch_up_check(run->store, checkpoint.original, run->name, error));
    return spill_store_definition(run->store, checkpoint.original, definition, error);
}

/* A pass over a collection that is missing sweeps nothing. A watch waits for the collection. */
static spill_code_t check_swept(const spill_cli_migrate_t *run, const char *collection,
                                spill_error_t *error)
{
    const sweep_options_t *given = run->invocation->options;
    return run->uri[0] == '\0' || given->watch
               ? SPILL_OK
               : spill_migrate_check_collection(run->uri, collection, error);
}

/* ---- what operators see of a watch ----------------------------------------------------------- */

/* A watch's settings, for the log and for people. */
static void report_begin(spill_cli_migrate_t *run)
{
    const sweep_options_t *given = run->invocation->options;
    const spill_definition_t *definition = run->definition;
    bson_t line = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&line, "name", run->name);
    BSON_APPEND_UTF8(&line, "collection", definition->collection);
    BSON_APPEND_UTF8(&line, "array", definition->array);
    BSON_APPEND_INT64(&line, "threshold", definition->bounds.threshold);
    BSON_APPEND_INT64(&line, "intervalSeconds", given->interval_s);
    BSON_APPEND_INT64(&line, "giveUpSeconds", given->give_up_s);
    spill_cli_operate_log(&run->operate, "watch", &line);
    bson_destroy(&line);
    if (!run->invocation->quiet)
        spill_cli_say("watching '%s' (%s.%s), a pass every %s", run->name, definition->collection,
                      definition->array,
                      spill_counted_text(given->interval_s, "second", "seconds").text);
}

/* Send the service manager a line for its status, without secrets and line ends. */
static void notify_status(const char *state, const char *text)
{
    char *redacted = spill_redact(text), *visible = spill_visible_text(redacted);
    char *message = bson_strdup_printf("%sSTATUS=%s", state, visible);
    spill_service_manager_notify(message);
    bson_free(message);
    bson_free(visible);
    bson_free(redacted);
}

static int64_t passes_of(spill_cli_migrate_t *run)
{
    return atomic_load(&run->operate.metrics.passes);
}

static void report_good_pass(spill_cli_migrate_t *run)
{
    char text[160];
    snprintf(text, sizeof text, "%s ended well, %s skipped",
             spill_counted_text(passes_of(run), "pass", "passes").text,
             spill_counted_text((int64_t)run->skipped.count, "owner", "owners").text);
    notify_status("", text);
}

/* `pause_s` 0: there is no further try. */
static void report_failure(spill_cli_migrate_t *run, const spill_error_t *error, int64_t pause_s,
                           int64_t gives_up_us)
{
    bson_t line = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&line, "name", run->name);
    BSON_APPEND_UTF8(&line, "code", spill_code_name(error->code));
    spill_cli_append_message(&line, "message", error->message);
    BSON_APPEND_INT64(&line, "inARow", atomic_load(&run->operate.metrics.failures_in_a_row));
    if (pause_s > 0)
        BSON_APPEND_DATE_TIME(&line, "nextTry", spill_clock_now_us(NULL) / 1000 + pause_s * 1000);
    if (pause_s > 0)
        BSON_APPEND_DATE_TIME(&line, "givesUp", gives_up_us / 1000);
    spill_cli_operate_log(&run->operate, "failure", &line);
    bson_destroy(&line);
    if (pause_s == 0)
        return;
    char text[SPILL_ERROR_MESSAGE_SIZE + 80];
    snprintf(text, sizeof text, "%s; again in %" PRId64 " s", error->message, pause_s);
    spill_cli_say("%s", text);
    notify_status("", text);
}

/*
 * Say why a watch ends: on stderr or in the error, in the log, and to the service manager. Returns
 * the code: SPILL_CANCELLED if a signal came while the last pass had failed.
 */
static spill_code_t report_end(spill_cli_migrate_t *run, spill_code_t code, spill_error_t *error)
{
    const sweep_options_t *given = run->invocation->options;
    const char *text = "stopped by a signal";
    if (spill_cli_interrupted() && code != SPILL_OK)
        code = spill_fail_prefix(error, SPILL_CANCELLED, "%s, and the last pass failed", text);
    else if (code != SPILL_OK && may_succeed_later(code, error))
        spill_fail_prefix(error, code, "gave up, because every pass failed for %" PRId64 " s",
                          given->give_up_s);
    else if (code != SPILL_OK)
        spill_fail_prefix(error, code, "stopped, because a retry cannot help");
    if (code != SPILL_OK)
        text = error->message;
    if (spill_cli_interrupted() && !run->invocation->quiet)
        spill_cli_say("after %s: %s", spill_counted_text(passes_of(run), "pass", "passes").text,
                      text);
    bson_strncpy(run->operate.ended, text, sizeof run->operate.ended);
    notify_status("STOPPING=1\n", text);
    return code;
}

/* Another program may change the definition, or drop it and save another one of its name. */
static void report_change(spill_cli_migrate_t *run, const spill_definition_t *before,
                          const spill_definition_t *now)
{
    SPILL_SCOPED(spill_free_text) char *change = spill_definition_difference(before, now);
    if (!change)
        return;
    bson_t line = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&line, "name", run->name);
    spill_cli_append_message(&line, "change", change);
    spill_cli_operate_log(&run->operate, "definition", &line);
    bson_destroy(&line);
    spill_cli_say("'%s': the definition has changed: %s", run->name, change);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static spill_code_t sweep_all(spill_cli_migrate_t *run, spill_error_t *error)
{
    const sweep_options_t *given = run->invocation->options;
    spill_definition_t definition, target, before;
    spill_retry_schedule_t schedule = {.interval_s = given->interval_s,
                                       .give_up_s = given->give_up_s};
    int64_t pause_s = 1;
    bool building;
    run->name = run->invocation->arguments[1];
    spill_code_t code = SPILL_OK;
    SPILL_TRY(find_swept(run, &definition, &target, &building, error));
    run->definition = &definition;
    spill_job_metrics_begin(&run->operate.metrics, run->name);
    run->watches = given->watch;
    if (given->watch)
        report_begin(run);
    notify_status("READY=1\n", "the first pass runs");
    while (pause_s > 0) {
        run->survey = (spill_migrate_result_t){0};
        run->owners = 0;
        run->done = 0;
        before = definition;
        code = find_swept(run, &definition, &target, &building, error);
        if (code == SPILL_OK)
            report_change(run, &before, &definition);
        else
            definition = before;
        run->target = code == SPILL_OK && building ? &target : NULL;
        if (code == SPILL_OK)
            code = spill_cli_migrate_pass(run, spill_migrate, "swept", error);
        if (code == SPILL_OK && building)
            code = spill_cli_migrate_catch_up(run, definition.name, run->name, error);
        spill_job_metrics_end(&run->operate.metrics, code, error);
        if (code == SPILL_OK)
            spill_cli_migrate_end_pass(run);
        pause_s = next_pause_s(run, code, error, &schedule);
        if (code == SPILL_OK && pause_s > 0)
            report_good_pass(run);
        if (code != SPILL_OK)
            run->idle_us[0] = run->idle_us[1] = 0;
        if (code != SPILL_OK && code != SPILL_CANCELLED)
            report_failure(run, error, pause_s, schedule.gives_up_us);
        if (pause_s > 0 && !pause_between(run, pause_s))
            pause_s = 0;
    }
    run->definition = NULL;
    run->target = NULL;
    if (given->watch)
        code = report_end(run, code, error);
    return code == SPILL_OK ? check_swept(run, definition.collection, error) : code;
}

static spill_exit_t run_sweep(const spill_invocation_t *invocation)
{
    enum { GIVE_UP_MAX_S = 365 * 86400 };
    const sweep_options_t *given = invocation->options;
    if (given->interval_s < 1)
        return spill_cli_usage(invocation, "--interval must be at least 1 second");
    if (given->give_up_s > GIVE_UP_MAX_S)
        return spill_cli_usage(invocation, "--give-up must be at most %d seconds", GIVE_UP_MAX_S);
    return spill_cli_migrate_operate(invocation, &given->operate, SPILL_CLI_WRITE, sweep_all);
}

static const spill_option_t SWEEP_OPTIONS[] = {
    SPILL_CLI_PACE_OPTIONS(sweep_options_t, operate, SPILL_CLI_RATE_OF_OWNERS),
    SPILL_CLI_THREADS_OPTION(sweep_options_t, operate, "Migrate owners,"),
    {"watch", NULL, SPILL_OPTION_FLAG, offsetof(sweep_options_t, watch),
     "Repeat until it is interrupted, or every pass failed for the time of --give-up"},
    {"interval", "SECONDS", SPILL_OPTION_NUMBER, offsetof(sweep_options_t, interval_s),
     "With --watch: seconds between two passes (60)"},
    {"give-up", "SECONDS", SPILL_OPTION_NUMBER, offsetof(sweep_options_t, give_up_s),
     "With --watch: end if every pass failed for this long, from the first failure on (900)"},
    {0}};

const spill_command_t spill_command_sweep = {
    .name = "sweep",
    .arguments = "STORE NAME",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Move what other programs have pushed to heads into pages",
    .text = "For applications that continue to push to the documents with their own driver. Sweep "
            "moves excess elements of heads to pages, adopts new documents, and corrects counts, "
            "which a push does not update. Programs with Spillway's library may run at the same "
            "time. If `spillway migrate' has copied arrays to a definition of another layout and "
            "not finished, sweep works on the original, and copies the changes. Once a document "
            "has pages, other programs may only push to it: an edit by position, or a pull, would "
            "hit other elements than intended.\n"
            "\n"
            "A watch prints and logs a pass that has done nothing only if the pass before did "
            "something or failed, and then once an hour; with -v, each pass. `spillway control` "
            "and the metrics show the number of passes.\n"
            "\n"
            "Examples:\n"
            "  spillway sweep mongodb://localhost/shop orders\n"
            "  spillway sweep mongodb://localhost/shop orders --watch --interval 10 --rate 2000",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_QUIET | SPILL_COMMON_DURABILITY | SPILL_COMMON_MODE,
    .options = SWEEP_OPTIONS,
    .defaults = &SWEEP_DEFAULTS,
    .options_bytes = sizeof SWEEP_DEFAULTS,
    .run = run_sweep};
