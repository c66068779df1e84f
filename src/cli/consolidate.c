/* consolidate: merge many collections of one shape into one. */
#include "cli/operate.h"
#include "cli/server_away.h"

#include "bson/value.h"
#include "tools/consolidate/consolidate.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

typedef struct consolidate_options {
    spill_cli_operate_given_t operate;
    const char *only;
    int64_t passes;
    bool cut_over;
    bool views;
    bool finish;
    bool undo;
    bool yes;
    int64_t max_pause; /* seconds */
} consolidate_options_t;

static const consolidate_options_t DEFAULTS = {0};

typedef struct consolidate_run {
    const spill_invocation_t *invocation;
    spill_cli_operate_t operate;
    spill_raw_admin_t *admin;
    spill_consolidations_t plan;
    spill_consolidate_options_t options;
    int64_t pass;      /* shown last */
    double pass_began; /* seconds */
    int64_t moved;     /* collections that were copied or compared */
    bool refused;      /* a dry run found something that would be refused */
    bool missing;      /* a dry run found that a collection of the plan does not exist */
    bool changing;     /* a copy ended before all collections were equal */
} consolidate_run_t;

/* ---- progress and log ------------------------------------------------------------------------ */

/* "12 of 40 documents", or "52 documents" if the estimate is too small: a cut-over compares often.
 */
static void describe_documents(const spill_consolidate_progress_t *progress, char *text,
                               size_t size)
{
    int64_t done = progress->documents, all = progress->documents_all;
    if (done <= all)
        snprintf(text, size, "%" PRId64 " of %" PRId64 " documents", done, all);
    else
        snprintf(text, size, "%s", spill_counted_text(done, "document", "documents").text);
}

static void show_progress(void *context, const spill_consolidate_progress_t *progress)
{
    consolidate_run_t *run = context;
    spill_cli_progress_t *shown = &run->operate.progress;
    double now = spill_cli_progress_seconds(shown);
    spill_job_metrics_progress(&run->operate.metrics, progress->documents, progress->documents_all);
    if (progress->pass != run->pass) {
        run->pass = progress->pass;
        run->pass_began = now;
        spill_cli_progress_restart(shown, 0);
    }
    double seconds = now - run->pass_began;
    char documents[64];
    describe_documents(progress, documents, sizeof documents);
    spill_cli_progress_part(shown, progress->documents, progress->documents_all,
                            "pass %" PRId64 ": %zu of %zu collections, %s, %.0f/s", progress->pass,
                            progress->collections, progress->collections_all, documents,
                            seconds > 0 ? (double)progress->documents / seconds : 0);
}

static void note_work(void *context, const char *collection)
{
    consolidate_run_t *run = context;
    bson_t storage = BSON_INITIALIZER;
    if (collection) {
        spill_value_t name = spill_value_from_utf8(&storage, collection);
        spill_job_metrics_owner_begins(&run->operate.metrics, &name);
    } else {
        spill_job_metrics_owner_ends(&run->operate.metrics);
    }
    bson_destroy(&storage);
}

static void log_moved(void *context, const spill_consolidate_moved_t *moved)
{
    consolidate_run_t *run = context;
    bson_t line = BSON_INITIALIZER;
    char digest[SPILL_DIGEST_TEXT];
    spill_job_metrics_documents(&run->operate.metrics,
                                moved->inserted + moved->replaced + moved->deleted);
    BSON_APPEND_INT64(&line, "pass", moved->pass);
    BSON_APPEND_UTF8(&line, "collection", moved->member->collection);
    spill_value_append(&moved->member->value, &line, "value");
    run->moved++;
    if (moved->compared) {
        spill_digest_text(&moved->digest, digest);
        BSON_APPEND_INT64(&line, "documents", moved->digest.documents);
        BSON_APPEND_UTF8(&line, "hash", digest);
        BSON_APPEND_BOOL(&line, "equal", moved->equal);
    }
    BSON_APPEND_INT64(&line, "inserted", moved->inserted);
    BSON_APPEND_INT64(&line, "replaced", moved->replaced);
    BSON_APPEND_INT64(&line, "deleted", moved->deleted);
    if (moved->compared)
        BSON_APPEND_DOUBLE(&line, "estimatedPauseSeconds", (double)moved->pause_us / 1e6);
    spill_cli_operate_log(&run->operate, "collection", &line);
    bson_destroy(&line);
}

/* Print a line for the operator, or for a script that lets the collection's writers continue. */
static void report_opened(void *context, const spill_consolidate_opened_t *opened)
{
    consolidate_run_t *run = context;
    bson_t line = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&line, "collection", opened->member->collection);
    spill_value_append(&opened->member->value, &line, "value");
    BSON_APPEND_BOOL(&line, "open", true);
    if (!opened->before)
        BSON_APPEND_DOUBLE(&line, "pauseSeconds", (double)opened->pause_us / 1e6);
    spill_cli_progress_break(&run->operate.progress);
    spill_cli_print_result_document(run->invocation, &line);
    fflush(stdout);
    spill_cli_operate_log(&run->operate, "open", &line);
    bson_destroy(&line);
}

/* ---- a dry run ------------------------------------------------------------------------------- */

static void print_texts(const bson_t *report, const char *field, const char *before)
{
    bson_iter_t iter, inner;
    if (!bson_iter_init_find(&iter, report, field) || !bson_iter_recurse(&iter, &inner))
        return;
    while (bson_iter_next(&inner)) {
        spill_value_t value = spill_value_from_iter(&inner);
        char *text = value.type == BSON_TYPE_UTF8 ? bson_strdup(bson_iter_utf8(&inner, NULL))
                                                  : spill_value_to_json(&value, false);
        spill_cli_print("  %s%s\n", before, text ? text : "?");
        bson_free(text);
    }
}

static int64_t number_in(const bson_t *report, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, report, field) ? bson_iter_as_int64(&iter) : 0;
}

static bool has_any(const bson_t *report, const char *field)
{
    bson_iter_t iter, inner;
    return bson_iter_init_find(&iter, report, field) && bson_iter_recurse(&iter, &inner) &&
           bson_iter_next(&inner);
}

static void print_report(const bson_t *report, const spill_consolidation_t *group)
{
    spill_cli_print(
        "%s: %s, %s (%s)\n", group->into,
        spill_counted_text(number_in(report, "collections"), "collection", "collections").text,
        spill_counted_text(number_in(report, "documents"), "document", "documents").text,
        spill_document_text(report, "phase", ""));
    if (number_in(report, "open") > 0)
        spill_cli_print("  open: the first %" PRId64 " of them\n", number_in(report, "open"));
    spill_cli_print("  discriminator: %s; _id: %s\n", group->field,
                    group->keeps_ids ? "unchanged, and in no two collections"
                                     : "with the discriminator");
    print_texts(report, "indexes", "index: ");
    print_texts(report, "missing", "missing: ");
    print_texts(report, "notInPlan", "not in the plan: ");
    print_texts(report, "notes", "note: ");
    print_texts(report, "refused", "refused: ");
}

static void print_undo(const bson_t *report, const spill_consolidation_t *group)
{
    spill_cli_print("%s: %s\n", group->into, spill_document_text(report, "phase", ""));
    if (!has_any(report, "goesBack") && !has_any(report, "refused"))
        spill_cli_print("  nothing was written to it that the old collections do not have\n");
    print_texts(report, "goesBack", "goes back: ");
    print_texts(report, "refused", "refused: ");
}

static spill_code_t print_dry_run(consolidate_run_t *run, const spill_consolidation_t *group,
                                  spill_error_t *error)
{
    const consolidate_options_t *given = run->invocation->options;
    SPILL_SCOPED(bson_destroy) bson_t report = BSON_INITIALIZER;
    spill_code_t code = given->undo ? spill_consolidate_report_undo(run->admin, group,
                                                                    &run->options, &report, error)
                                    : spill_consolidate_report(run->admin, group, &report, error);
    spill_cli_progress_break(&run->operate.progress);
    SPILL_TRY(code);
    run->refused = run->refused || has_any(&report, "refused");
    run->missing = run->missing || has_any(&report, "missing");
    if (run->invocation->json)
        spill_cli_print_document(&report, false);
    else if (given->undo)
        print_undo(&report, group);
    else
        print_report(&report, group);
    return SPILL_OK;
}

/* ---- acting ---------------------------------------------------------------------------------- */

typedef struct result_line {
    const char *into, *step;
    spill_consolidate_result_t result;
} result_line_t;

#define RESULT(member, name) SPILL_FIELD(INT64, result_line_t, result.member, name)
static const spill_field_t result_fields[] = {
    SPILL_FIELD(TEXT, result_line_t, into, "into"),
    SPILL_FIELD(TEXT, result_line_t, step, "step"),
    SPILL_FIELD(BOOL, result_line_t, result.done, "before"),
    RESULT(passes, "passes"),
    RESULT(inserted, "inserted"),
    RESULT(replaced, "replaced"),
    RESULT(deleted, "deleted"),
    RESULT(documents, "documents"),
    RESULT(changing, "changing")};
static const spill_record_t result_record = SPILL_RECORD("result", result_line_t, result_fields);

static const char *step_name(const consolidate_options_t *given)
{
    if (given->undo)
        return "undone";
    if (given->finish)
        return "finished";
    return given->cut_over ? "cut over" : "copied";
}

static spill_code_t act_on_group(consolidate_run_t *run, const spill_consolidation_t *group,
                                 spill_error_t *error)
{
    const consolidate_options_t *given = run->invocation->options;
    spill_consolidate_result_t result;
    spill_code_t code = SPILL_OK;
    spill_job_metrics_begin(&run->operate.metrics, group->into);
    if (given->undo)
        code = spill_consolidate_undo(run->admin, group, &run->options, &result, error);
    else if (given->finish)
        code = spill_consolidate_finish(run->admin, group, &run->options, &result, error);
    else if (given->cut_over)
        code = spill_consolidate_cut_over(run->admin, group, &run->options, &result, error);
    else
        code = spill_consolidate_copy(run->admin, group, &run->options, &result, error);
    spill_cli_progress_break(&run->operate.progress);
    spill_job_metrics_end(&run->operate.metrics, code, error);
    SPILL_TRY(code);
    run->changing = run->changing || result.changing > 0;
    const result_line_t line = {group->into, step_name(given), result};
    spill_cli_operate_print(&run->operate, &result_record, &line);
    if (result.changing > 0 && !run->invocation->quiet)
        fprintf(stderr,
                "%zu of %zu collections had changed in the last pass: run the same command to "
                "continue; it ends with all equal after their writers have stopped\n",
                result.changing, group->count);
    return SPILL_OK;
}

static spill_code_t work_on_groups(consolidate_run_t *run, spill_error_t *error)
{
    const consolidate_options_t *given = run->invocation->options;
    char uri[SPILL_CLI_URI];
    size_t matched = 0;
    SPILL_TRY(spill_cli_store_uri(run->invocation->arguments[0], uri, error));
    SPILL_TRY(spill_consolidations_read(run->invocation->arguments[1], &run->plan, error));
    SPILL_TRY(spill_raw_admin_open(uri, &run->admin, error));
    for (size_t i = 0; i < run->plan.count; i++) {
        const spill_consolidation_t *group = &run->plan.items[i];
        if (given->only && strcmp(given->only, group->into) != 0)
            continue;
        matched++;
        SPILL_TRY(given->operate.execute ? act_on_group(run, group, error)
                                         : print_dry_run(run, group, error));
    }
    if (matched == 0)
        return spill_fail(error, SPILL_INVALID, "the plan consolidates nothing into '%s'",
                          given->only);
    return SPILL_OK;
}

static spill_exit_t check_options(const spill_invocation_t *invocation)
{
    const consolidate_options_t *given = invocation->options;
    if (invocation->dry_run && given->operate.execute)
        return spill_cli_usage(invocation, "--dry-run cannot be combined with --execute");
    if (given->cut_over + given->finish + given->undo > 1)
        return spill_cli_usage(invocation, "one of --cut-over, --finish and --undo");
    if (given->max_pause && !given->cut_over && !given->finish)
        return spill_cli_usage(invocation, "--max-pause goes with --cut-over, or --finish");
    if (given->views && !given->cut_over && !given->finish)
        return spill_cli_usage(invocation, "--views goes with --cut-over, or --finish");
    if (given->finish && given->operate.execute && !given->yes)
        return spill_cli_confirm(invocation, "Drop the old collections that '%s' names?",
                                 invocation->arguments[1]);
    return SPILL_EXIT_DONE;
}

static spill_exit_t run_consolidate(const spill_invocation_t *invocation)
{
    const consolidate_options_t *given = invocation->options;
    consolidate_run_t run = {.invocation = invocation};
    spill_error_t error;
    spill_exit_t refused = check_options(invocation);
    if (refused == SPILL_EXIT_DONE)
        refused = spill_cli_operate_threads(invocation, &given->operate, &run.options.threads);
    if (refused != SPILL_EXIT_DONE)
        return refused;
    if (given->cut_over || given->finish || given->undo)
        spill_cli_keep_waiting(); /* a collection that is aside gets its name back */
    run.options.passes = given->passes;
    run.options.views = given->views;
    run.options.pause_s = given->max_pause;
    run.options.moved = log_moved;
    run.options.progress = show_progress;
    run.options.works = note_work;
    run.options.opened = report_opened;
    run.options.context = &run;
    spill_code_t code = spill_cli_operate_start(&run.operate, invocation, &given->operate,
                                                &run.options.throttle, &error);
    if (code == SPILL_OK)
        code = work_on_groups(&run, &error);
    if (code == SPILL_CANCELLED && spill_cli_interrupted())
        spill_fail(&error, code, "interrupted after %s: run the same command to continue",
                   spill_counted_text(run.moved, "collection", "collections").text);
    spill_raw_admin_close(run.admin);
    spill_consolidations_release(&run.plan);
    code = spill_cli_operate_end(&run.operate, code, &error);
    if (code == SPILL_OK)
        code = spill_cli_flush(&error);
    if (code != SPILL_OK) {
        spill_exit_t status = spill_cli_fail(&error);
        return code == SPILL_CANCELLED ? SPILL_EXIT_INTERRUPTED : status;
    }
    if (!given->operate.execute && !invocation->quiet)
        fprintf(stderr, "nothing was changed: act with --execute\n");
    if (run.missing)
        return SPILL_EXIT_FAILED;
    if (run.refused)
        return SPILL_EXIT_REFUSED;
    return run.changing ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}

#define TEXT(field) SPILL_OPTION_TEXT, offsetof(consolidate_options_t, field)
#define NUMBER(field) SPILL_OPTION_NUMBER, offsetof(consolidate_options_t, field)
#define FLAG(field) SPILL_OPTION_FLAG, offsetof(consolidate_options_t, field)

static const spill_option_t OPTIONS[] = {
    SPILL_CLI_OPERATE_OPTIONS(consolidate_options_t, operate, "documents per second"),
    SPILL_CLI_CHUNK_OPTION(consolidate_options_t, operate),
    SPILL_CLI_THREADS_OPTION(consolidate_options_t, operate,
                             "Copy chunks, or compare collections,"),
    {"only", "NAME", TEXT(only), "Only the group of the plan that goes into this collection"},
    {"into", "only", SPILL_OPTION_OLD_NAME, 0, NULL},
    {"passes", "N", NUMBER(passes), "Most passes while other programs write (10)"},
    {"cut-over", NULL, FLAG(cut_over),
     "Put the old collections aside, one after another, and compare each"},
    {"max-pause", "SECONDS", NUMBER(max_pause),
     "With that: how long a collection may be aside before it is equal (60); then it is renamed "
     "back"},
    {"views", NULL, FLAG(views), "With that: put views under the old names"},
    {"finish", NULL, FLAG(finish), "Drop the old collections; cut over first, if not done yet"},
    {"undo", NULL, FLAG(undo),
     "Copy later writes back to the old collections, and rename them back"},
    {"yes", NULL, FLAG(yes), "With --finish: do not ask"},
    {0}};

const spill_command_t spill_command_consolidate = {
    .name = "consolidate",
    .arguments = "STORE PLAN",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Merge many collections of one shape into one",
    .text =
        "PLAN is what `spillway plan --output' writes if a scan found collection sprawl: which "
        "collections to merge, which field tells their documents apart, and its value for each "
        "collection. It may be edited. STORE is a server's database.\n"
        "\n"
        "Without --execute, prints what would be done. With it, every document is copied in its "
        "new form to the new collection, while the application continues to use the old ones. "
        "Passes are repeated until one finds every collection equal, by number and hashes. It may "
        "be killed: run the same command to continue.\n"
        "\n"
        "Then --cut-over, with running writers or after they stop: one after another, the old "
        "collections are put aside under names that begin with spillway_kept_. The last writes "
        "are copied, and each collection is compared. A collection that is not equal within "
        "--max-pause seconds is renamed back. A line on stdout reports each collection that is "
        "open: its writers may write to the new collection while the others are cut over. --undo "
        "reverts all of it, and keeps what was written since. --finish drops "
        "the old collections for good.\n"
        "\n"
        "Examples:\n"
        "  spillway plan mongodb://localhost/chat --output plan.json\n"
        "  spillway consolidate mongodb://localhost/chat plan.json\n"
        "  spillway consolidate mongodb://localhost/chat plan.json --execute --rate 5000\n"
        "  spillway consolidate mongodb://localhost/chat plan.json --execute --cut-over --views\n"
        "  spillway consolidate mongodb://localhost/chat plan.json --execute --finish",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_MODE |
              SPILL_COMMON_DRY_RUN,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_consolidate};
