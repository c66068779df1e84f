/* Commands that move data on a store in use: what all share, and a run of migrate or sweep. */
#include "cli/operate.h"

#include "cli/process.h"
#include "cli/server_away.h"
#include "service/service_manager.h"
#include "store/raw_reader.h"
#include "store/store.h"
#include "tools/migrate/staged.h"
#include "tools/migrate/undoing.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/redact.h"
#include "util/text.h"

#include <spillway/version.h>

#include <inttypes.h>
#include <unistd.h>

/* ---- all of them ----------------------------------------------------------------------------- */

/* Log that the job was asked to stop, once. */
static void log_stop(spill_cli_operate_t *operate)
{
    if (!atomic_exchange(&operate->stops, true))
        spill_cli_operate_log(operate, "stop", NULL);
}

bool spill_cli_operate_stops(spill_cli_operate_t *operate)
{
    if (!spill_cli_interrupted())
        return false;
    log_stop(operate);
    return true;
}

static bool must_stop(void *context)
{
    return spill_cli_operate_stops(context);
}

static void print_notice(void *context, bool waits, const char *text)
{
    spill_cli_operate_t *operate = context;
    bson_t fields = BSON_INITIALIZER;
    atomic_store(&operate->metrics.waits, waits);
    spill_cli_progress_wait(&operate->progress, waits);
    spill_cli_append_message(&fields, "text", text);
    spill_cli_operate_log(operate, waits ? "wait" : "continue", &fields);
    bson_destroy(&fields);
    if (operate->invocation->quiet)
        return;
    spill_cli_progress_lock();
    spill_cli_progress_break(&operate->progress);
    fprintf(stderr, "%s\n", text);
    spill_cli_progress_unlock();
}

/* ---- the lag of secondaries ------------------------------------------------------------------ */

/* Between two measurements. The throttle asks before every chunk. */
enum { LAG_EVERY_US = 500000 };

static double measure_lag(void *context)
{
    spill_cli_operate_t *operate = context;
    spill_error_t ignored;
    int64_t now_us = spill_clock_now_us(NULL);
    if (now_us - operate->lag_at_us < LAG_EVERY_US)
        return operate->lag_s;
    if (spill_replication_lag(operate->replication, &operate->lag_s, &ignored) != SPILL_OK)
        operate->lag_s = -1;
    operate->lag_at_us = now_us;
    return operate->lag_s;
}

/* Connect, and measure once, so that a server that cannot be asked is reported at the start. */
static spill_code_t start_lag(spill_cli_operate_t *operate, const spill_cli_operate_given_t *given,
                              spill_throttle_options_t *throttle, spill_error_t *error)
{
    char uri[SPILL_CLI_URI];
    if (given->lag_s == 0)
        return SPILL_OK;
    SPILL_TRY(spill_cli_store_uri(operate->invocation->arguments[0], uri, error));
    if (!spill_raw_reader_serves(uri))
        return spill_fail(error, SPILL_INVALID, "--max-lag is for a replica set");
    spill_code_t code = spill_replication_open(uri, &operate->replication, error);
    if (code == SPILL_OK)
        code = spill_replication_lag(operate->replication, &operate->lag_s, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code,
                                 "--max-lag needs a replica set and the right to "
                                 "replSetGetStatus (role clusterMonitor)");
    throttle->lag = measure_lag;
    throttle->lag_max_s = (double)given->lag_s;
    return SPILL_OK;
}

/* ---- the log --------------------------------------------------------------------------------- */

void spill_cli_operate_log(spill_cli_operate_t *operate, const char *event, const bson_t *fields)
{
    spill_cli_job_log_write(&operate->log, event, fields);
}

void spill_cli_append_message(bson_t *fields, const char *name, const char *message)
{
    char *redacted = spill_redact(message), *visible = spill_visible_text(redacted);
    bson_append_utf8(fields, name, -1, visible, -1);
    bson_free(visible);
    bson_free(redacted);
}

void spill_cli_operate_log_pass(spill_cli_operate_t *operate, const spill_record_t *type,
                                const void *result)
{
    bson_t fields = BSON_INITIALIZER;
    spill_record_write(type, result, &fields);
    spill_cli_operate_log(operate, "pass", &fields);
    bson_destroy(&fields);
}

void spill_cli_operate_print(spill_cli_operate_t *operate, const spill_record_t *type,
                             const void *result)
{
    spill_cli_print_result(operate->invocation, type, result);
    fflush(stdout);
    spill_cli_operate_log_pass(operate, type, result);
}

static void log_start(spill_cli_operate_t *operate)
{
    bson_t fields = BSON_INITIALIZER, words;
    char key[16];
    BSON_APPEND_UTF8(&fields, "version", spill_version());
    BSON_APPEND_INT64(&fields, "pid", getpid());
    BSON_APPEND_ARRAY_BEGIN(&fields, "command", &words);
    for (size_t i = 0; operate->invocation->words[i]; i++) {
        snprintf(key, sizeof key, "%zu", i);
        spill_cli_append_message(&words, key, operate->invocation->words[i]);
    }
    bson_append_array_end(&fields, &words);
    spill_cli_operate_log(operate, "start", &fields);
    bson_destroy(&fields);
}

static void log_end(spill_cli_operate_t *operate, spill_code_t code, const spill_error_t *error)
{
    const char *ended = operate->ended;
    bson_t fields = BSON_INITIALIZER;
    if (ended[0] == '\0')
        ended = code == SPILL_OK ? "done" : error->message;
    spill_cli_append_message(&fields, "ended", ended);
    BSON_APPEND_UTF8(&fields, "code", spill_code_name(code));
    BSON_APPEND_INT64(&fields, "passes", atomic_load(&operate->metrics.passes));
    spill_cli_operate_log(operate, "end", &fields);
    bson_destroy(&fields);
}

/* The process ends while a server is away (server_away.h). */
static void log_last(void *context, const char *reason)
{
    spill_cli_operate_t *operate = context;
    bson_strncpy(operate->ended, reason, sizeof operate->ended);
    log_stop(operate);
    log_end(operate, SPILL_CANCELLED, NULL);
    if (operate->control.started)
        unlink(operate->control.path);
    char *status = bson_strdup_printf("STOPPING=1\nSTATUS=%s", reason);
    spill_service_manager_notify(status);
    bson_free(status);
}

/* ---- start and end --------------------------------------------------------------------------- */

/* An operator has changed the pace, in a pass or between two. */
static void note_command(void *context, const char *command, const int64_t *value)
{
    spill_cli_operate_t *operate = context;
    bson_t fields = BSON_INITIALIZER;
    atomic_store(&operate->metrics.paused, atomic_load(&operate->pace.paused));
    BSON_APPEND_UTF8(&fields, "command", command);
    if (value)
        BSON_APPEND_INT64(&fields, "value", *value);
    spill_cli_operate_log(operate, "control", &fields);
    bson_destroy(&fields);
}

/* Settings that may change exist only if something can change them. */
static spill_code_t start_control(spill_cli_operate_t *operate,
                                  const spill_cli_operate_given_t *given,
                                  spill_throttle_options_t *throttle, spill_error_t *error)
{
    int threads = 1;
    if (!given->control)
        return SPILL_OK;
    spill_cli_operate_threads(operate->invocation, given, &threads);
    atomic_init(&operate->pace.rate_per_s, given->rate);
    atomic_init(&operate->pace.latency_max_us, given->latency_ms * 1000);
    atomic_init(&operate->pace.threads, threads);
    throttle->pace = &operate->pace;
    operate->control = (spill_cli_control_t){.path = given->control,
                                             .job = operate->invocation->command->name,
                                             .pace = &operate->pace,
                                             .pause_file = given->pause_file,
                                             .progress = &operate->progress,
                                             .metrics = &operate->metrics,
                                             .changed = note_command,
                                             .context = operate};
    return spill_cli_control_start(&operate->control, error);
}

static spill_code_t start_metrics(spill_cli_operate_t *operate,
                                  const spill_cli_operate_given_t *given, spill_error_t *error)
{
    if (!given->metrics)
        return SPILL_OK;
    SPILL_TRY(spill_http_start(given->metrics, spill_job_metrics_answer, &operate->metrics,
                               &operate->metrics_server, error));
    if (!operate->invocation->quiet)
        fprintf(stderr, "metrics on %s\n",
                spill_http_url(operate->metrics_server, "/metrics").text);
    return SPILL_OK;
}

static spill_code_t reach_store(const spill_cli_operate_t *operate, spill_error_t *error)
{
    char uri[SPILL_CLI_URI];
    SPILL_TRY(spill_cli_store_uri(operate->invocation->arguments[0], uri, error));
    return spill_cli_reach_server(uri, NULL, error);
}

spill_code_t spill_cli_operate_start(spill_cli_operate_t *operate,
                                     const spill_invocation_t *invocation,
                                     const spill_cli_operate_given_t *given,
                                     spill_throttle_options_t *throttle, spill_error_t *error)
{
    *operate = (spill_cli_operate_t){.invocation = invocation};
    spill_job_metrics_init(&operate->metrics, invocation->command->name);
    operate->metrics.log = &operate->log.losses;
    spill_cli_progress_start(&operate->progress, invocation->quiet);
    spill_cli_catch_interrupts();
    throttle->rate_per_s = given->rate;
    throttle->latency_max_s = (double)given->latency_ms / 1e3;
    throttle->chunk_s = (double)given->chunk_ms / 1e3;
    throttle->pause_file = given->pause_file;
    throttle->stop = must_stop;
    throttle->notice = print_notice;
    throttle->context = operate;
    SPILL_TRY(spill_cli_job_log_open(&operate->log, given->execute ? given->log : NULL, error));
    log_start(operate);
    spill_cli_before_end(log_last, operate);
    SPILL_TRY(reach_store(operate, error));
    if (!given->execute)
        return SPILL_OK;
    SPILL_TRY(start_lag(operate, given, throttle, error));
    SPILL_TRY(start_control(operate, given, throttle, error));
    return start_metrics(operate, given, error);
}

spill_exit_t spill_cli_operate_threads(const spill_invocation_t *invocation,
                                       const spill_cli_operate_given_t *given, int *threads)
{
    /* Owners at the same time: enough to keep a small server busy; one if latency must stay low. */
    enum { THREADS = 4, THREADS_WITH_LATENCY = 1 };
    int64_t wanted = given->threads;
    if (wanted == 0)
        wanted = given->latency_ms > 0 ? THREADS_WITH_LATENCY : THREADS;
    if (wanted < 1 || wanted > SPILL_PARALLEL_MAX)
        return spill_cli_usage(invocation, "--threads must be from 1 to %d", SPILL_PARALLEL_MAX);
    *threads = (int)wanted;
    return SPILL_EXIT_DONE;
}

spill_code_t spill_cli_operate_end(spill_cli_operate_t *operate, spill_code_t code,
                                   spill_error_t *error)
{
    spill_error_t closing;
    spill_cli_before_end(NULL, NULL);
    spill_cli_control_stop(&operate->control);
    spill_http_stop(operate->metrics_server);
    operate->metrics_server = NULL;
    spill_replication_close(operate->replication);
    operate->replication = NULL;
    spill_cli_progress_break(&operate->progress);
    log_end(operate, code, error);
    spill_code_t closed = spill_cli_job_log_close(&operate->log, &closing);
    if (code != SPILL_OK || closed == SPILL_OK)
        return code;
    *error = closing;
    return closed;
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* The smallest read: of an entry that does not exist. */
static bool read_probe(void *context)
{
    const spill_cli_migrate_t *run = context;
    bson_t *nothing = NULL;
    spill_error_t error;
    spill_code_t code = run->store->ops->catalog_get(run->store, SPILL_CATALOG_DEFINITION,
                                                     "probe:latency", &nothing, &error);
    bson_destroy(nothing);
    return code == SPILL_OK;
}

static double latency_s(void *context)
{
    spill_cli_migrate_t *run = context;
    return spill_probe_latency(&run->probe);
}

/* The rate counts what a migration moves, and all elements of an undo. */
static int64_t paced_elements(const spill_cli_migrate_t *run, const spill_migrate_result_t *result)
{
    return run->undoes ? result->elements : result->moved;
}

/* The seconds that the rate needs for the elements that are left; 0: not limited, or not known. */
static double least_seconds(const spill_cli_migrate_t *run)
{
    int64_t rate = spill_throttle_rate(&run->throttle);
    int64_t left = paced_elements(run, &run->survey) - paced_elements(run, &run->shown);
    return rate > 0 && left > 0 ? run->delay_s + (double)left / (double)rate : 0;
}

/* "12 of 40 owners", or "12 owners" if the whole number is not known, or was too small. */
static void describe_owners(const spill_cli_migrate_t *run, char *text, size_t size)
{
    int64_t done = run->shown.owners, all = run->survey.owners;
    if (all > 0 && done <= all)
        snprintf(text, size, "%" PRId64 " of %" PRId64 " owners", done, all);
    else
        snprintf(text, size, "%" PRId64 " %s", done, spill_cli_plural(done, "owner", "owners"));
}

/* In shorter waits the speed says more. */
#define LONG_DELAY_S 1.0

/* Print run->shown. */
static void print_progress(spill_cli_migrate_t *run)
{
    spill_cli_progress_t *progress = &run->operate.progress;
    const spill_migrate_result_t *shown = &run->shown;
    char owners[64], speed[64] = "waiting for --rate", pages[64] = "";
    int64_t elements = paced_elements(run, shown);
    describe_owners(run, owners, sizeof owners);
    if (run->delay_s < LONG_DELAY_S)
        snprintf(speed, sizeof speed, "%.0f elements/s",
                 (double)elements / spill_cli_progress_seconds(progress));
    if (!run->undoes)
        snprintf(pages, sizeof pages, " to %" PRId64 " pages", shown->pages);
    spill_cli_progress_at_least(progress, least_seconds(run));
    spill_cli_progress_part(progress, shown->elements, run->survey.elements,
                            "%s, %s, '%s', %" PRId64 " elements %s%s", owners, speed, run->name,
                            elements, run->undoes ? "unmanaged" : "moved", pages);
}

static void show_progress(void *context, const spill_migrate_result_t *result)
{
    spill_cli_migrate_t *run = context;
    spill_job_metrics_progress(&run->operate.metrics, result->elements, run->survey.elements);
    spill_cli_progress_lock();
    run->shown = *result;
    run->shows = true;
    print_progress(run);
    spill_cli_progress_unlock();
}

/* The throttle calls it from any thread, also while another one reports an owner. */
static void show_delay(void *context, int64_t left_us)
{
    spill_cli_migrate_t *run = context;
    spill_cli_progress_lock();
    spill_cli_progress_wait(&run->operate.progress, left_us > 0);
    run->delay_s = (double)left_us / 1e6;
    if (run->shows && left_us > 0)
        print_progress(run);
    spill_cli_progress_unlock();
}

static void show_measured(void *context, const spill_migrate_result_t *all)
{
    spill_cli_migrate_t *run = context;
    run->survey = *all;
    spill_cli_progress_restart(&run->operate.progress, 0);
}

static void show_caught_up(void *context, const spill_copy_result_t *result)
{
    spill_cli_migrate_t *run = context;
    run->shows = false;
    spill_cli_progress_print(&run->operate.progress,
                             "%" PRId64 " owners caught up, '%s', %" PRId64 " elements, %" PRId64
                             " compared",
                             result->owners, run->name, result->elements, result->verified);
}

static void log_owner(spill_cli_migrate_t *run, const spill_migrated_t *migrated)
{
    bson_t line = BSON_INITIALIZER;
    char hash[20];
    BSON_APPEND_UTF8(&line, "name", run->name);
    spill_value_append(migrated->owner, &line, "owner");
    BSON_APPEND_INT64(&line, "elements", migrated->elements);
    if (migrated->failed) {
        spill_cli_append_message(&line, "failed", migrated->failed->message);
    } else if (migrated->unmanaged) {
        BSON_APPEND_BOOL(&line, "unmanaged", true);
    } else if (migrated->deleted) {
        BSON_APPEND_BOOL(&line, "deleted", true);
    } else if (migrated->caught_up) {
        BSON_APPEND_BOOL(&line, "caughtUp", true);
        BSON_APPEND_BOOL(&line, "recopied", migrated->recopied);
    } else {
        BSON_APPEND_BOOL(&line, "adopted", migrated->adopted);
        if (migrated->full)
            BSON_APPEND_BOOL(&line, "full", true);
        BSON_APPEND_INT64(&line, "moved", migrated->moved);
        BSON_APPEND_INT64(&line, "pages", migrated->pages);
    }
    if (migrated->pages > 0 || migrated->caught_up) {
        snprintf(hash, sizeof hash, "%016" PRIx64, migrated->hash);
        BSON_APPEND_UTF8(&line, "hash", hash);
    }
    spill_cli_operate_log(&run->operate, "owner", &line);
    bson_destroy(&line);
}

/* A pass prints at most this number of owners that it skips. The file of --log has all. */
enum { PRINTED_MAX = 10 };

static void report_owner(void *context, const spill_migrated_t *migrated)
{
    spill_cli_migrate_t *run = context;
    spill_job_metrics_owner(&run->operate.metrics, migrated);
    run->owners++;
    run->done += migrated->failed ? 0 : 1;
    bool is_news =
        !migrated->failed || spill_cli_skipped_note(&run->skipped, run->name, migrated->owner,
                                                    migrated->failed->message);
    if (is_news)
        log_owner(run, migrated);
    if (!is_news || !migrated->failed || ++run->printed > PRINTED_MAX)
        return;
    spill_cli_progress_break(&run->operate.progress);
    fprintf(stderr, "spillway: skipped: %s\n", migrated->failed->message);
}

static void note_work(void *context, const spill_value_t *owner)
{
    spill_cli_migrate_t *run = context;
    if (owner)
        spill_job_metrics_owner_begins(&run->operate.metrics, owner);
    else
        spill_job_metrics_owner_ends(&run->operate.metrics);
}

static void log_recovered(void *context, const char *name, const spill_value_t *owner)
{
    bson_t line = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&line, "name", name);
    spill_value_append(owner, &line, "owner");
    spill_cli_operate_log(context, "recovered", &line);
    bson_destroy(&line);
}

void spill_cli_migrate_end_pass(spill_cli_migrate_t *run)
{
    spill_cli_skipped_end_pass(&run->skipped, log_recovered, &run->operate);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* What is printed of a step: its counts stand in one of the structs. */
typedef struct step_line {
    const char *name, *step;
    bool interrupted; /* before all owners were visited */
    spill_migrate_result_t migrated;
    int64_t owners;
    spill_copy_result_t copied;
    int64_t recopied, deleted, failed;
    char hash[17];
} step_line_t;

#define TEXT(member) SPILL_FIELD(TEXT, step_line_t, member, #member)
#define MIGRATED(member, name) SPILL_FIELD(INT64, step_line_t, migrated.member, name)
#define INTERRUPTED                                                                                \
    SPILL_FIELD(BOOL, step_line_t, interrupted, "interrupted", .flags = SPILL_FIELD_SPARSE)
#define COPIED(member) SPILL_FIELD(INT64, step_line_t, copied.member, #member)
static const spill_field_t survey_fields[] = {TEXT(name),
                                              MIGRATED(owners, "owners"),
                                              MIGRATED(unmanaged, "unmanaged"),
                                              MIGRATED(full, "full"),
                                              MIGRATED(elements, "elements"),
                                              MIGRATED(bytes, "bytes"),
                                              MIGRATED(moved, "toMove"),
                                              MIGRATED(pages, "toPages"),
                                              MIGRATED(failed, "toSkip")};
static const spill_field_t migrated_fields[] = {TEXT(name),
                                                TEXT(step),
                                                INTERRUPTED,
                                                MIGRATED(owners, "owners"),
                                                MIGRATED(unmanaged, "adopted"),
                                                MIGRATED(full, "full"),
                                                MIGRATED(elements, "elements"),
                                                MIGRATED(moved, "moved"),
                                                MIGRATED(pages, "pages"),
                                                MIGRATED(changed, "changed"),
                                                MIGRATED(failed, "failed")};
/* For people: an undo adopts and moves nothing. */
static const spill_field_t undone_fields[] = {TEXT(name),
                                              TEXT(step),
                                              INTERRUPTED,
                                              MIGRATED(owners, "owners"),
                                              MIGRATED(elements, "elements"),
                                              MIGRATED(failed, "failed")};
static const spill_field_t finished_fields[] = {TEXT(name), TEXT(step),
                                                SPILL_FIELD(INT64, step_line_t, owners, "owners"),
                                                COPIED(verified), COPIED(dropped)};
static const spill_field_t caught_up_fields[] = {
    TEXT(name),
    TEXT(step),
    INTERRUPTED,
    COPIED(owners),
    COPIED(elements),
    COPIED(before),
    COPIED(verified),
    COPIED(dropped),
    SPILL_FIELD(INT64, step_line_t, recopied, "recopied"),
    SPILL_FIELD(INT64, step_line_t, deleted, "deleted"),
    SPILL_FIELD(INT64, step_line_t, failed, "failed"),
    SPILL_FIELD(CHARS, step_line_t, hash, "hash")};
static const spill_record_t survey_record = SPILL_RECORD("survey", step_line_t, survey_fields);
static const spill_record_t migrated_record =
    SPILL_RECORD("migrated", step_line_t, migrated_fields);
static const spill_record_t undone_record = SPILL_RECORD("undone", step_line_t, undone_fields);
static const spill_record_t finished_record =
    SPILL_RECORD("finished", step_line_t, finished_fields);
static const spill_record_t caught_up_record =
    SPILL_RECORD("caught up", step_line_t, caught_up_fields);

void spill_cli_migrate_print_survey(const spill_cli_migrate_t *run)
{
    const spill_migrate_result_t *survey = &run->survey;
    const char *name = run->name;
    if (run->invocation->json) {
        spill_cli_print_record(&survey_record, &(step_line_t){.name = name, .migrated = *survey});
        return;
    }
    spill_cli_print(
        "%s: %s.%s, %" PRId64 " %s to reshape, of which %" PRId64 " %s unmanaged; %" PRId64
        " of %" PRId64 " elements go to about %" PRId64 " %s in %s\n",
        name, run->definition->collection, run->definition->array, survey->owners,
        spill_cli_plural(survey->owners, "array", "arrays"), survey->unmanaged,
        spill_cli_plural(survey->unmanaged, "is", "are"), survey->moved, survey->elements,
        survey->pages, spill_cli_plural(survey->pages, "page", "pages"),
        run->definition->page_collection);
    if (survey->unmanaged > 0)
        spill_cli_print("%s: each of %s gets bookkeeping of about 225 bytes, "
                        "also if its array is short\n",
                        name, spill_counted_text(survey->unmanaged, "document", "documents").text);
    if (survey->full > 0)
        spill_cli_print("%s: %s less than 1 KiB left to 16 MiB: pushes to %s fail, or soon will, "
                        "until the migration has adopted %s\n",
                        name,
                        spill_counted_text(survey->full, "document has", "documents have").text,
                        survey->full == 1 ? "it" : "them", survey->full == 1 ? "it" : "each");
    if (survey->failed > 0)
        printf("%s: %" PRId64 " %s will be skipped, for the reasons above%s\n", name,
               survey->failed, spill_cli_plural(survey->failed, "array", "arrays"),
               survey->failed > PRINTED_MAX ? "; the first ten are named there" : "");
}

/* A table of zeros in every interval of a watch would hide the passes that moved something. */
static bool is_idle(const step_line_t *line)
{
    return !line->interrupted && line->migrated.owners == 0 && line->migrated.failed == 0;
}

/*
 * A watch reports an idle pass if the pass before was not idle or failed, once an hour, and with
 * --verbose. Between two idle passes only the number of passes changes, which `control` and the
 * metrics show.
 */
static bool is_reported(const spill_cli_migrate_t *run, bool idle, int64_t *idle_us)
{
    const int64_t hour_us = INT64_C(3600) * 1000 * 1000;
    int64_t now_us = spill_clock_monotonic_us(NULL);
    bool again = *idle_us > 0 && now_us - *idle_us < hour_us;
    if (idle && run->watches && !run->invocation->verbose && again)
        return false;
    *idle_us = idle ? now_us : 0;
    return true;
}

void spill_cli_migrate_print_result(spill_cli_migrate_t *run, const char *step, spill_code_t code,
                                    const spill_migrate_result_t *result)
{
    const step_line_t line = {.name = run->name,
                              .step = step,
                              .interrupted = code == SPILL_CANCELLED,
                              .migrated = *result};
    if (!is_reported(run, is_idle(&line), &run->idle_us[0]))
        return;
    if (!spill_cli_prints_tables(run->invocation))
        spill_cli_print_record(&migrated_record, &line);
    else if (is_idle(&line))
        spill_cli_print("%s  %s: %s, nothing had to be done\n",
                        spill_time_text(spill_clock_now_us(NULL) / 1000).text, run->name, step);
    else
        spill_cli_print_result(run->invocation, run->undoes ? &undone_record : &migrated_record,
                               &line);
    fflush(stdout);
    spill_cli_operate_log_pass(&run->operate, &migrated_record, &line);
}

void spill_cli_migrate_print_finished(spill_cli_migrate_t *run, int64_t owners,
                                      const spill_copy_result_t *compared)
{
    const step_line_t line = {
        .name = run->name, .step = "finished", .owners = owners, .copied = *compared};
    spill_cli_operate_print(&run->operate, &finished_record, &line);
}

static void print_prediction(void *context, const spill_migrated_t *migrated)
{
    spill_cli_migrate_t *run = context;
    if (run->printed++ < PRINTED_MAX)
        fprintf(stderr, "spillway: will be skipped: %s\n", migrated->failed->message);
}

spill_migrate_options_t spill_cli_migrate_predictions(spill_cli_migrate_t *run)
{
    return (spill_migrate_options_t){.migrated = print_prediction, .context = run};
}

spill_migrate_options_t spill_cli_migrate_hooks(spill_cli_migrate_t *run)
{
    return (spill_migrate_options_t){.throttle = &run->throttle,
                                     .threads = run->threads,
                                     .resumes = run->resumes,
                                     .owner = run->owner,
                                     .migrated = report_owner,
                                     .progress = show_progress,
                                     .works = note_work,
                                     .caught_up = show_caught_up,
                                     .measured = show_measured,
                                     .context = run};
}

/* A pass has ended: print how many of its skipped owners were not printed. An undo has two passes.
 */
static void report_unprinted(spill_cli_migrate_t *run)
{
    if (run->printed > PRINTED_MAX && !run->undoes)
        spill_cli_say("%s: %" PRId64 " more %s skipped (--log FILE lists all)", run->name,
                      run->printed - PRINTED_MAX,
                      spill_cli_plural(run->printed - PRINTED_MAX, "owner was", "owners were"));
    if (!run->undoes)
        run->printed = 0;
}

static void report_resumed(const spill_cli_migrate_t *run, bool resumed)
{
    if (resumed && !run->invocation->quiet)
        fprintf(stderr,
                "spillway: '%s': the search began where the interrupted run ended; owners before "
                "that position that have changed since are left to the next run\n",
                run->definition->name);
}

spill_code_t spill_cli_migrate_cancel_undo(const spill_cli_migrate_t *run, const char *name,
                                           spill_error_t *error)
{
    bool was;
    SPILL_TRY(spill_undoing_cancel(run->store, name, &was, error));
    if (was && !run->invocation->quiet)
        spill_cli_say("'%s': an undo had begun and not ended; it is cancelled", name);
    return SPILL_OK;
}

spill_code_t spill_cli_migrate_pass(spill_cli_migrate_t *run, spill_cli_pass_fn pass,
                                    const char *step, spill_error_t *error)
{
    spill_migrate_options_t options = spill_cli_migrate_hooks(run);
    spill_migrate_result_t result = {0};
    spill_array_t *array;
    options.planned = run->target;
    SPILL_TRY(spill_array_open(run->store, run->definition->name, &array, error));
    run->shows = false;
    spill_cli_progress_restart(&run->operate.progress, 0);
    spill_code_t code = pass(array, &options, &result, error);
    spill_array_close(array);
    spill_cli_progress_break(&run->operate.progress);
    report_unprinted(run);
    run->failed += result.failed;
    run->last = result;
    report_resumed(run, result.resumed);
    if (code == SPILL_OK || code == SPILL_CANCELLED)
        spill_cli_migrate_print_result(run, step, code, &result);
    return code;
}

static void print_caught_up(spill_cli_migrate_t *run, spill_code_t code,
                            const spill_catch_up_result_t *result)
{
    step_line_t line = {.name = run->name,
                        .step = "caught up",
                        .interrupted = code == SPILL_CANCELLED,
                        .copied = result->copied,
                        .recopied = result->recopied,
                        .deleted = result->deleted,
                        .failed = result->failed};
    bool idle = !line.interrupted && result->copied.elements == 0 && result->recopied == 0 &&
                result->deleted == 0 && result->failed == 0;
    if (!is_reported(run, idle, &run->idle_us[1]))
        return;
    snprintf(line.hash, sizeof line.hash, "%016" PRIx64, result->hash);
    spill_cli_operate_print(&run->operate, &caught_up_record, &line);
}

spill_code_t spill_cli_migrate_catch_up(spill_cli_migrate_t *run, const char *original,
                                        const char *name, spill_error_t *error)
{
    spill_migrate_options_t options = spill_cli_migrate_hooks(run);
    spill_catch_up_result_t result = {0};
    run->shows = false;
    spill_code_t code = spill_catch_up(run->store, original, name, &options, &result, error);
    spill_cli_progress_break(&run->operate.progress);
    report_unprinted(run);
    run->failed += result.failed;
    report_resumed(run, result.resumed);
    if (code == SPILL_OK || code == SPILL_CANCELLED)
        print_caught_up(run, code, &result);
    return code;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* After a server went away, or a disk became full, in the middle. */
static void report_done(const spill_cli_migrate_t *run, spill_code_t code)
{
    bool later = code == SPILL_IO || code == SPILL_BUSY || code == SPILL_UNKNOWN ||
                 code == SPILL_NO_SPACE || code == SPILL_TIMED_OUT;
    if (!later || run->done == 0)
        return;
    fprintf(stderr,
            "spillway: %s done; after removing the cause, run the same command to continue\n",
            spill_counted_text(run->done, "owner is", "owners are").text);
}

spill_exit_t spill_cli_migrate_operate(const spill_invocation_t *invocation,
                                       const spill_cli_operate_given_t *given,
                                       spill_cli_mode_t mode, spill_cli_migrate_fn work)
{
    spill_cli_migrate_t run = {.invocation = invocation};
    spill_exit_t refused = spill_cli_operate_threads(invocation, given, &run.threads);
    if (refused != SPILL_EXIT_DONE)
        return refused;
    spill_throttle_options_t throttle = {0};
    spill_error_t error;
    spill_code_t code = spill_cli_operate_start(&run.operate, invocation, given, &throttle, &error);
    throttle.latency = latency_s;
    throttle.delayed = show_delay;
    spill_throttle_init(&run.throttle, &throttle);
    if (code == SPILL_OK)
        code = spill_cli_store_uri(invocation->arguments[0], run.uri, &error);
    if (code == SPILL_OK && !spill_raw_reader_serves(run.uri))
        run.uri[0] = '\0';
    if (code == SPILL_OK)
        code = spill_cli_open_store(invocation, mode, &run.store, &error);
    if (code == SPILL_OK && (given->latency_ms > 0 || given->control))
        code = spill_probe_start(&run.probe, read_probe, &run, &error);
    if (code == SPILL_OK)
        code = work(&run, &error);
    if (code == SPILL_CANCELLED && spill_cli_interrupted())
        spill_fail(&error, code, "interrupted after %s: run the same command to continue",
                   spill_counted_text(run.owners, "owner", "owners").text);
    spill_probe_stop(&run.probe);
    code = spill_cli_operate_end(&run.operate, code, &error);
    spill_cli_skipped_release(&run.skipped);
    report_done(&run, code); /* the last line is the reason, which the close prints */
    spill_exit_t status = spill_cli_close(NULL, run.store, code, &error);
    if (code == SPILL_CANCELLED)
        return SPILL_EXIT_INTERRUPTED;
    if (status != SPILL_EXIT_DONE)
        return status;
    if (run.unfinished && !invocation->quiet)
        fprintf(stderr, "the originals still exist, and programs continue to use them. To change "
                        "over, stop the writers, then: migrate ... --execute --finish\n");
    return run.failed > 0 ? SPILL_EXIT_FOUND : run.refused ? SPILL_EXIT_REFUSED : SPILL_EXIT_DONE;
}
