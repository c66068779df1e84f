/*
 * verify, repair, backup and restore: check the invariants of definitions, complete what clients
 * left half done, correct counts, copy an embedded store, and copy it back.
 */
#include "cli/cli.h"
#include "cli/drop_orphans.h"
#include "cli/process.h"
#include "definition/schema.h"
#include "store/store.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

/* ---- verify ---------------------------------------------------------------------------------- */

typedef struct verification {
    const spill_invocation_t *invocation;
    spill_verify_summary_t total;
    int64_t owners_found; /* owners with findings */
    bool has_windows;     /* the current definition has layout bucket */
    bson_t last;          /* the owner of the last finding, under an empty name */
} verification_t;

#define SUMMARY(member, name, ...) SPILL_FIELD(INT64, verification_t, member, name, __VA_ARGS__)
static const spill_field_t summary_fields[] = {
    SUMMARY(total.owners, "owners", .flags = 0), SUMMARY(total.pages, "pages", .flags = 0),
    SUMMARY(total.elements, "elements", .flags = 0),
    SUMMARY(total.findings, "findings", .flags = 0),
    SUMMARY(owners_found, "ownersWithFindings", .flags = SPILL_FIELD_SPARSE)};
static const spill_record_t summary_record =
    SPILL_RECORD("summary", verification_t, summary_fields);

/* The findings of an owner follow one another; in a bucket those of its windows do. */
static void report_finding(void *context, const spill_finding_t *finding)
{
    verification_t *verification = context;
    spill_value_t owner, last;
    const char *window;
    bson_iter_t iter;
    bool same = !finding->owner;
    spill_cli_print_finding((void *)(uintptr_t)verification->invocation, finding);
    if (!same &&
        !(verification->has_windows && spill_window_split(finding->owner, &owner, &window)))
        owner = *finding->owner;
    if (!same && bson_iter_init_find(&iter, &verification->last, "")) {
        last = spill_value_from_iter(&iter);
        same = spill_value_same_owner(&owner, &last);
    }
    if (same)
        return;
    verification->owners_found++;
    bson_reinit(&verification->last);
    spill_value_append(&owner, &verification->last, "");
}

static spill_code_t verify_array(spill_cli_session_t *session, spill_error_t *error)
{
    verification_t *verification = session->context;
    spill_verify_summary_t *total = &verification->total, summary = {0};
    verification->has_windows = spill_cli_is_bucket(session);
    bson_reinit(&verification->last); /* another definition may have an equal owner */
    spill_code_t code =
        spill_array_verify(session->array, NULL, report_finding, verification, &summary, error);
    total->owners += summary.owners;
    total->pages += summary.pages;
    total->elements += summary.elements;
    total->findings += summary.findings;
    if (code == SPILL_CANCELLED && spill_cli_interrupted())
        spill_fail(error, code,
                   "interrupted after %" PRId64 " %s with %" PRId64
                   " %s: the same command starts again with the first owner",
                   total->owners, spill_cli_plural(total->owners, "owner", "owners"),
                   total->findings, spill_cli_plural(total->findings, "finding", "findings"));
    return code;
}

/* What a damaged file hides is a finding, and the check continues with the rest of the store. */
static void report_damage(const spill_cli_session_t *session)
{
    verification_t *verification = session->context;
    const char *damage = spill_store_damage(session->store);
    const spill_store_t *store = session->store;
    spill_error_t label = {.code = SPILL_OK};
    if (store->ops->check_label)
        store->ops->check_label(store, &label);
    if (damage)
        spill_cli_print_store_finding(session->invocation, damage);
    if (label.code != SPILL_OK)
        spill_cli_print_store_finding(session->invocation, label.message);
    verification->total.findings += (damage != NULL) + (label.code != SPILL_OK);
}

static spill_exit_t run_verify(const spill_invocation_t *invocation)
{
    verification_t verification = {.invocation = invocation};
    spill_error_t error;
    spill_invocation_t partial = *invocation;
    spill_cli_session_t session = {.invocation = invocation, .context = &verification};
    bson_init(&verification.last);
    partial.partial = true;
    spill_code_t code = spill_cli_open_store(&partial, SPILL_CLI_READ, &session.store, &error);
    if (code == SPILL_OK) {
        report_damage(&session);
        code = spill_cli_work_on_arrays(&session, verify_array, &error);
    }
    spill_exit_t result = spill_cli_close(NULL, session.store, code, &error);
    bson_destroy(&verification.last);
    if (result != SPILL_EXIT_DONE)
        return result;
    spill_cli_print_result(invocation, &summary_record, &verification);
    return verification.total.findings > 0 ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}

const spill_command_t spill_command_verify = {
    .name = "verify",
    .arguments = "STORE [NAME]",
    .arguments_min = 1,
    .arguments_max = 2,
    .summary = "Check every document against the invariants",
    .text = "Reads every document and checks bounds, order, sequence numbers and counts from the "
            "elements themselves. Findings are printed one per line with owner, page and the "
            "number of the invariant; the summary comes last, with the number of owners that have "
            "findings. The exit code is 1 if there are findings.\n"
            "\n"
            "If files of an embedded store are damaged, that is a finding about the store, and "
            "the rest of the store is checked. `spillway repair' makes a store with a damaged log "
            "writable again.\n"
            "\n"
            "Examples:\n"
            "  spillway verify feeds.db\n"
            "  spillway verify feeds.db events --json",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON,
    .walked = "verified",
    .run = run_verify};

/* ---- repair ---------------------------------------------------------------------------------- */

typedef struct repair_options {
    bool yes;
    bool drop_orphans;
} repair_options_t;

static const repair_options_t DEFAULTS = {0};

typedef struct work {
    const spill_value_t *owner; /* NULL: all */
    spill_repair_summary_t total;
} work_t;

/* Repair the session's owner, which may be a window, or all owners. */
static spill_code_t repair_owners(spill_cli_session_t *session, spill_error_t *error)
{
    const spill_invocation_t *invocation = session->invocation;
    work_t *work = session->context;
    spill_repair_summary_t summary;
    spill_code_t code =
        spill_array_repair(session->array, session->owner, invocation->dry_run,
                           spill_cli_print_finding, (void *)(uintptr_t)invocation, &summary, error);
    work->total.owners += summary.owners;
    work->total.findings += summary.findings;
    work->total.left += summary.left;
    return code;
}

static spill_code_t repair_any(spill_cli_session_t *session, spill_error_t *error)
{
    const work_t *work = session->context;
    session->owner = work->owner;
    if (session->owner != NULL && spill_cli_is_bucket(session))
        return spill_cli_each_window(session, repair_owners, error);
    spill_code_t code = repair_owners(session, error);
    return code == SPILL_OK && session->owner != NULL &&
                   work->total.findings + work->total.left == 0
               ? spill_cli_check_owner(session, error)
               : code;
}

/* ---- a damaged log --------------------------------------------------------------------------- */

typedef struct log_report {
    const spill_invocation_t *invocation;
    spill_log_cut_t cut;
    bool begun; /* the first line is printed */
} log_report_t;

#define CUT(type, member, ...) SPILL_FIELD(type, spill_log_cut_t, member, __VA_ARGS__)
static const spill_field_t damage_fields[] = {CUT(CHARS, file, "log"), CUT(INT64, offset, "offset"),
                                              CUT(CHARS, reason, "reason")};
static const spill_record_t damage_record = SPILL_RECORD("damage", spill_log_cut_t, damage_fields);

static bool is_kept(const void *record)
{
    return ((const spill_log_cut_t *)record)->kept[0] != '\0';
}

static const spill_field_t cut_fields[] = {
    CUT(CHARS, file, "log"),
    CUT(INT64, offset, "offset"),
    CUT(INT64, bytes, "bytes"),
    CUT(INT64, records, "records"),
    CUT(INT64, owners, "owners"),
    CUT(INT64, elements, "elements"),
    CUT(CHARS, kept, "kept", .flags = SPILL_FIELD_NULL_UNLESS, .when = is_kept)};
static const spill_record_t cut_record = SPILL_RECORD("cut", spill_log_cut_t, cut_fields);

#define LOSS(type, member) SPILL_FIELD(type, spill_log_loss_t, member, #member)
static const spill_field_t loss_fields[] = {LOSS(TEXT, definition), LOSS(POINTER, owner),
                                            LOSS(INT64, elements), LOSS(INT64, deleted)};
static const spill_record_t loss_record = SPILL_RECORD("loss", spill_log_loss_t, loss_fields);

static void print_cut(log_report_t *report)
{
    const spill_log_cut_t *cut = &report->cut;
    if (report->begun)
        return;
    report->begun = true;
    if (!report->invocation->json) {
        printf("%s: cannot be read from byte %" PRId64 " on: %s\n", cut->file, cut->offset,
               cut->reason);
        return;
    }
    spill_cli_print_record(&damage_record, cut);
}

static void print_loss(void *context, const spill_log_loss_t *loss)
{
    log_report_t *report = context;
    char number[32];
    print_cut(report);
    snprintf(number, sizeof number, "array %" PRIu32, loss->array_id);
    spill_log_loss_t named = *loss;
    named.definition = loss->definition ? loss->definition : number;
    if (report->invocation->json) {
        spill_cli_print_record(&loss_record, &named);
        return;
    }
    spill_cli_print_name(named.definition);
    fputs(": owner ", stdout);
    if (loss->owner)
        spill_cli_print_value(loss->owner, false);
    else
        fputs("null", stdout);
    printf(", behind the cut: %s written, %s\n",
           spill_counted_text(loss->elements, "element", "elements").text,
           spill_counted_text(loss->deleted, "deletion", "deletions").text);
}

static spill_exit_t cut_log(log_report_t *report, const char *uri)
{
    const spill_invocation_t *invocation = report->invocation;
    const repair_options_t *options = invocation->options;
    spill_error_t error;
    if (!options->yes) {
        fflush(stdout);
        spill_exit_t refused = spill_cli_confirm(
            invocation, "Cut %s at byte %" PRId64 "? The uncut log is kept beside it.",
            report->cut.file, report->cut.offset);
        if (refused != SPILL_EXIT_DONE)
            return refused;
    }
    if (spill_store_cut_log(uri, false, NULL, NULL, &report->cut, &error) != SPILL_OK)
        return spill_cli_fail(&error);
    if (report->cut.needed)
        spill_cli_print_result(invocation, &cut_record, &report->cut);
    return SPILL_EXIT_DONE;
}

/* Report a damaged log, and cut it. SPILL_EXIT_DONE: the store can be repaired further. */
static spill_exit_t repair_log(const spill_invocation_t *invocation)
{
    log_report_t report = {.invocation = invocation};
    char uri[SPILL_CLI_URI];
    spill_error_t error;
    spill_code_t code = spill_cli_store_uri(invocation->arguments[0], uri, &error);
    if (code == SPILL_OK)
        code = spill_store_cut_log(uri, true, print_loss, &report, &report.cut, &error);
    if (code != SPILL_OK)
        return spill_cli_fail(&error);
    if (!report.cut.needed)
        return SPILL_EXIT_DONE;
    print_cut(&report);
    if (!invocation->dry_run)
        return cut_log(&report, uri);
    spill_cli_print_result(invocation, &cut_record, &report.cut);
    return SPILL_EXIT_FOUND;
}

/* ---- the command ----------------------------------------------------------------------------- */

typedef struct result {
    int64_t owners, findings, finished, left;
} result_t;

#define RESULT(member) SPILL_FIELD(INT64, result_t, member, #member)
static const spill_field_t result_fields[] = {RESULT(owners), RESULT(findings), RESULT(finished),
                                              RESULT(left)};
static const spill_record_t result_record = SPILL_RECORD("result", result_t, result_fields);

static spill_exit_t run_repair(const spill_invocation_t *invocation)
{
    const repair_options_t *options = invocation->options;
    if (options->drop_orphans && invocation->argument_count > 2)
        return spill_cli_usage(invocation, "--drop-orphans is for all owners: to remove the pages "
                                           "of one, use 'spillway drop'");
    if (options->drop_orphans)
        return spill_cli_drop_orphans(invocation, options->yes);
    spill_exit_t log_result = repair_log(invocation);
    if (log_result != SPILL_EXIT_DONE)
        return log_result;
    spill_cli_mode_t mode = invocation->dry_run ? SPILL_CLI_READ : SPILL_CLI_WRITE;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner;
    work_t work = {0};
    spill_exit_t result = SPILL_EXIT_USAGE;
    bool named = invocation->argument_count > 2;
    if (!named || spill_cli_parse_owner(invocation, invocation->arguments[2], &storage, &owner)) {
        work.owner = named ? &owner : NULL;
        result = spill_cli_with_arrays(invocation, mode, repair_any, &work);
    }
    bson_destroy(&storage);
    if (result != SPILL_EXIT_DONE)
        return result;
    int64_t finished = invocation->dry_run ? 0 : work.total.findings;
    const result_t line = {work.total.owners, work.total.findings, finished, work.total.left};
    spill_cli_print_result(invocation, &result_record, &line);
    return work.total.findings > finished || work.total.left > 0 ? SPILL_EXIT_FOUND
                                                                 : SPILL_EXIT_DONE;
}

static const spill_option_t OPTIONS[] = {
    {"yes", NULL, SPILL_OPTION_FLAG, offsetof(repair_options_t, yes),
     "Cut a damaged log, or delete pages, without asking; needed if stdin is not a terminal"},
    {"drop-orphans", NULL, SPILL_OPTION_FLAG, offsetof(repair_options_t, drop_orphans),
     "On a server: only delete the pages of owners whose documents were deleted by another "
     "program or by a TTL index; with --dry-run, list them"},
    {0}};

const spill_command_t spill_command_repair = {
    .name = "repair",
    .arguments = "STORE [NAME [OWNER]]",
    .arguments_min = 1,
    .arguments_max = 3,
    .summary = "Complete what killed programs left half done",
    .text = "Completes removals and edits that were begun, seals without a page after them, pages "
            "that a trim did not empty, and unfinished drops. The next writer of an owner "
            "completes them too; repair is for owners without a writer. Findings are printed one "
            "per line; the summary comes last. Other programs may continue to write: "
            "operations that they have in progress may be found and completed as well.\n"
            "\n"
            "Wrong sizes, statistics and counts are rebuilt from the elements, if everything else "
            "about the owner is valid. Wrong sequence numbers of a document are rebuilt too, if "
            "its elements and the neighbouring documents show them. "
            "Indexes of an embedded store are rebuilt in any case.\n"
            "\n"
            "Other findings of `spillway verify' are printed too, and stay: what is missing is "
            "unknown. The summary counts them as `left'. This includes pages of a head that "
            "another program has deleted or replaced on a server. If no document has the owner's "
            "_id, `repair --drop-orphans' deletes them, for all owners at once. If the document "
            "was replaced or written again, check the pages, then drop the owner.\n"
            "\n"
            "If the log of an embedded store is damaged, the store opens for writing only after "
            "the log is cut before the first byte that cannot be read. Repair prints the cut, and "
            "for each owner how many elements the readable records behind it write. Then it asks "
            "(not with --yes), keeps the uncut log under another name in the store's "
            "folder, cuts, and continues with the repair above. With --dry-run it prints the same "
            "and cuts nothing.\n"
            "\n"
            "The exit code is 1 if something is left, with --dry-run also if "
            "something would be completed.\n"
            "\n"
            "Examples:\n"
            "  spillway repair feeds.db --dry-run\n"
            "  spillway repair feeds.db --yes\n"
            "  spillway repair feeds.db events\n"
            "  spillway repair feeds.db events alice\n"
            "  spillway repair mongodb://localhost/shop posts.comments --drop-orphans --dry-run",
    .common =
        SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_DURABILITY | SPILL_COMMON_DRY_RUN,
    .walked = "checked",
    .interrupted = "what was found in them is complete; run the same command for the others",
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_repair};

/* ---- backup ---------------------------------------------------------------------------------- */

typedef struct backup_line {
    const char *folder;
} backup_line_t;

static const spill_field_t backup_fields[] = {
    SPILL_FIELD(TEXT, backup_line_t, folder, "folder", .flags = SPILL_FIELD_REPAIRED)};
static const spill_record_t backup_record = SPILL_RECORD("backup", backup_line_t, backup_fields);

static spill_exit_t run_backup(const spill_invocation_t *invocation)
{
    spill_error_t error;
    spill_store_t *store = NULL;
    spill_code_t code = spill_cli_open_store(invocation, SPILL_CLI_READ, &store, &error);
    if (code == SPILL_OK)
        code = spill_store_backup(store, invocation->arguments[1], &error);
    if (code == SPILL_OK && invocation->json)
        spill_cli_print_record(&backup_record, &(backup_line_t){invocation->arguments[1]});
    else if (code == SPILL_OK && !invocation->quiet)
        spill_cli_say("the copy is in %s", invocation->arguments[1]);
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
            "The copy is read once, and the checksums of all its files are compared. If a file is "
            "damaged, no copy is made, and the exit code is 3. With --partial the copy has the "
            "same damage, and a warning names the file.\n"
            "\n"
            "Example:\n"
            "  spillway backup feeds.db /backup/feeds-2026-02-01",
    .common = SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL | SPILL_COMMON_MODE,
    .run = run_backup};

/* ---- restore --------------------------------------------------------------------------------- */

/* Copy the backup, and compare the checksums of its files. */
static spill_code_t copy_backup(const spill_invocation_t *invocation, const char *folder,
                                spill_error_t *error)
{
    spill_store_t *backup = NULL;
    spill_error_t closing;
    spill_code_t code = spill_cli_open_store(invocation, SPILL_CLI_READ, &backup, error);
    if (code == SPILL_OK)
        code = spill_store_backup(backup, folder, error);
    if (spill_store_close(backup, &closing) != SPILL_OK && code == SPILL_OK) {
        *error = closing;
        code = closing.code;
    }
    return code;
}

/* Verify the restored store. Its folder stays if there are findings. */
static spill_exit_t verify_restored(const spill_invocation_t *invocation, char *folder)
{
    char *arguments[] = {folder, NULL};
    spill_invocation_t restored = *invocation;
    verification_t verification = {.invocation = &restored};
    const spill_verify_summary_t *total = &verification.total;
    restored.arguments = arguments;
    restored.argument_count = 1;
    bson_init(&verification.last);
    spill_exit_t result =
        spill_cli_with_arrays(&restored, SPILL_CLI_READ, verify_array, &verification);
    bson_destroy(&verification.last);
    if (result != SPILL_EXIT_DONE)
        return result;
    if (invocation->json)
        spill_cli_print_record(&summary_record, &verification);
    else if (!invocation->quiet)
        fprintf(stderr, "restored to %s: %s, %s, %s\n", folder,
                spill_counted_text(total->owners, "owner", "owners").text,
                spill_counted_text(total->elements, "element", "elements").text,
                spill_counted_text(total->findings, "finding", "findings").text);
    return total->findings > 0 ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}

static spill_exit_t run_restore(const spill_invocation_t *invocation)
{
    static const char scheme[] = "rocksdb:";
    char *folder = invocation->arguments[1];
    spill_error_t error;
    if (strstr(folder, "://"))
        return spill_cli_usage(invocation, "FOLDER is a new folder; to restore to a server's "
                                           "database, use 'spillway copy BACKUP STORE'");
    if (strncmp(folder, scheme, strlen(scheme)) == 0)
        folder += strlen(scheme);
    if (copy_backup(invocation, folder, &error) != SPILL_OK)
        return spill_cli_fail(&error);
    return verify_restored(invocation, folder);
}

const spill_command_t spill_command_restore = {
    .name = "restore",
    .arguments = "BACKUP FOLDER",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Copy a backup to a new folder, and check it",
    .text = "BACKUP is the folder that `spillway backup' made; it stays unchanged. FOLDER must not "
            "exist; the restored store is complete or absent. To restore to a server's database, "
            "use `spillway copy'.\n"
            "\n"
            "The checksums of all files are compared before the store appears. Then every document "
            "is checked as by `spillway verify': findings are printed, the exit code is 1, and the "
            "store stays.\n"
            "\n"
            "Example:\n"
            "  spillway restore /backup/feeds-2026-02-01 feeds.db",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_MODE,
    .walked = "verified",
    .run = run_restore};
