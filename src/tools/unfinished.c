/* status: the unfinished work that a store's catalog records. */
#include "tools/unfinished.h"

#include "bson/record.h"
#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "layout/adoption.h"
#include "store/job.h"
#include "store/listing.h"
#include "tools/definition_jobs.h"
#include "tools/import/import_given.h"
#include "util/error.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

const char *spill_status_kind_name(spill_status_kind_t kind)
{
    static const char *const names[SPILL_STATUS_KINDS] = {"migration", "conversion",
                                                          "consolidation", "import", "unknown"};
    return names[kind];
}

/* ---- fields of an entry ---------------------------------------------------------------------- */

/* The fields of all kinds that a person wants to know. An entry lacks those of other kinds. */
typedef struct entry {
    const char *definition, *original, *as, *phase;
    const char *source, *format;
    spill_import_given_t given;
    bool undoing, emptied, applied, finished;
    bool is_import; /* it has an offset in its source */
    int64_t records, before;
    spill_bytes_t after; /* of a pass: the place; empty: the beginning */
    const char *host;    /* of an adopter */
    int64_t pid, ends_ms;
    int64_t saved_ms;
} entry_t;

#define FIELD(type, member, name)                                                                  \
    SPILL_FIELD(type, entry_t, member, name, .flags = SPILL_FIELD_OPTIONAL | SPILL_FIELD_LENIENT)
#define GIVEN(type, member, name) FIELD(type, given.member, name),
static const spill_field_t entry_fields[] = {FIELD(TEXT, definition, "definition"),
                                             FIELD(TEXT, original, "original"),
                                             FIELD(TEXT, as, "as"),
                                             FIELD(TEXT, phase, "phase"),
                                             FIELD(TEXT, source, "source"),
                                             FIELD(TEXT, format, "format"),
                                             FIELD(BOOL, undoing, "undoing"),
                                             FIELD(BOOL, emptied, "emptied"),
                                             FIELD(BOOL, applied, "applied"),
                                             FIELD(BOOL, finished, "finished"),
                                             SPILL_IMPORT_GIVEN(GIVEN, GIVEN)
                                                 FIELD(NUMBER, records, "records"),
                                             FIELD(NUMBER, before, "before"),
                                             FIELD(BYTES, after, "after"),
                                             FIELD(TEXT, host, "host"),
                                             FIELD(NUMBER, pid, "pid"),
                                             FIELD(DATE, ends_ms, "ends"),
                                             FIELD(DATE, saved_ms, SPILL_JOB_SAVED)};
static const spill_record_t entry_record = SPILL_RECORD("job", entry_t, entry_fields);

/* Texts borrow from the document. */
static entry_t read_entry(const bson_t *document)
{
    entry_t entry = {.definition = "",
                     .original = "",
                     .as = "",
                     .phase = "",
                     .source = "",
                     .format = "",
                     .host = "",
                     .given = spill_import_given_none(),
                     .is_import = bson_has_field(document, "endOffset"),
                     .saved_ms = SPILL_DATE_UNKNOWN};
    spill_record_read(&entry_record, document, &entry, NULL); /* whatever is wrong stays as above */
    return entry;
}

/* ---- words for the shell --------------------------------------------------------------------- */

/* Append an option's name, or "", and the text as one word for the shell. */
static void append_word(bson_string_t *command, const char *option, const char *text)
{
    char *quoted = spill_shell_quoted(text);
    bson_string_append_printf(command, " %s%s", option, quoted);
    bson_free(quoted);
}

/* ---- one entry ------------------------------------------------------------------------------- */

/* Texts of a job; owned. */
typedef struct described {
    char *name, *state, *finish;
    spill_status_kind_t kind;
    bool unfinished;
    bool adopts; /* an adopter's entry (layout/adoption.h) */
    bool passes; /* a pass's entry */
} described_t;

static void release(described_t *job)
{
    bson_free(job->name);
    bson_free(job->state);
    bson_free(job->finish);
}

static void describe_migration(const char *shown, const entry_t *entry, described_t *job)
{
    bool undoing = entry->undoing;
    job->kind = SPILL_STATUS_MIGRATION;
    job->unfinished = true;
    job->state = undoing
                     ? bson_strdup_printf("the copies of '%s' are being dropped", entry->original)
                     : bson_strdup_printf("arrays of '%s' are copied to '%s', which takes no "
                                          "changes yet. Once they have caught up, stop all "
                                          "programs that write, and add --finish",
                                          entry->original, job->name);
    job->finish =
        bson_strdup_printf("spillway migrate %s PLAN --execute%s", shown, undoing ? " --undo" : "");
}

static void describe_conversion(const char *shown, const entry_t *entry, described_t *job)
{
    job->kind = SPILL_STATUS_CONVERSION;
    job->unfinished = !entry->emptied; /* then the entry stays, and only says what became of it */
    job->state =
        bson_strdup_printf("'%s' is being dropped: '%s' has its arrays", job->name, entry->as);
    SPILL_SCOPED(spill_free_text) char *name = spill_shell_word(job->name);
    SPILL_SCOPED(spill_free_text) char *as = spill_shell_word(entry->as);
    job->finish = bson_strdup_printf("spillway convert %s %s --as %s --finish", shown, name, as);
}

static void describe_consolidation(const char *shown, const entry_t *entry, described_t *job)
{
    const char *phase = entry->phase;
    job->kind = SPILL_STATUS_CONSOLIDATION;
    job->unfinished = strcmp(phase, "finished") != 0;
    job->state = bson_strdup_printf("collections are merged into '%s': %s", job->name, phase);
    SPILL_SCOPED(spill_free_text) char *into = spill_shell_word(job->name);
    bool undoing = strcmp(phase, "undoing") == 0 || strcmp(phase, "restoring") == 0;
    job->finish = bson_strdup_printf("spillway consolidate %s PLAN --only %s --execute%s", shown,
                                     into, undoing ? " --undo" : "");
}

/*
 * An import is named after its file's absolute path, or by --as. A name by --as that begins with a
 * slash is taken for a path: the command then lacks FILE --as.
 */
static void describe_import(const char *shown, const entry_t *entry, described_t *job)
{
    const char *definition = entry->definition, *source = entry->source;
    int64_t records = entry->before + (entry->applied ? entry->records : 0);
    job->kind = SPILL_STATUS_IMPORT;
    job->unfinished = !entry->finished;
    job->state =
        bson_strdup_printf("%" PRId64 " %s of %s have been imported so far", records,
                           entry->given.elements[0] != '\0' ? "elements" : "records", source);
    bson_string_t *finish = bson_string_new("");
    SPILL_SCOPED(spill_free_text) char *name = spill_shell_word(definition);
    bson_string_append_printf(finish, "spillway import %s %s", shown, name);
    append_word(finish, source[0] == '/' ? "" : "FILE --as ", source);
    if (entry->format[0] != '\0')
        append_word(finish, "--format ", entry->format);
    spill_import_given_append(&entry->given, true, finish);
    job->finish = bson_string_free(finish, false);
    bson_free(job->name);
    job->name = bson_strdup(definition);
}

/* The entry of a pass that reshapes arrays (tools/migrate/migrate_place.h). */
#define PASS_SUFFIX ":migrate.at"

/* A pass that reshapes arrays. It has not ended. */
static void describe_pass(const char *shown, const entry_t *entry, described_t *job)
{
    const char *done = entry->after.size_bytes > 0 ? "It continues behind the owners that are done"
                                                   : "Its first owners are not done yet";
    job->kind = SPILL_STATUS_MIGRATION;
    job->unfinished = true;
    job->passes = true;
    job->state = bson_strdup_printf(
        "a pass over the owners of '%s' was interrupted, or is running. %s", job->name, done);
    job->finish = bson_strdup_printf("spillway migrate %s PLAN --execute", shown);
}

/*
 * The entry of a program that adopts arrays: `migrate', `sweep' or a gateway. Its state depends on
 * the time (look_at_adopted).
 */
static bool describe_adopter(const char *shown, const char *entry_name, described_t *job)
{
    char name[SPILL_NAME_SIZE];
    if (!spill_adopter_split(entry_name, name))
        return false;
    job->kind = SPILL_STATUS_MIGRATION;
    job->adopts = true;
    job->name = bson_strdup(name);
    SPILL_SCOPED(spill_free_text) char *word = spill_shell_word(name);
    job->finish = bson_strdup_printf("spillway sweep %s %s", shown, word);
    return true;
}

/* The kinds of job checkpoints (docs/internals/transfer.md), by the suffix of their names. */
static const struct {
    const char *suffix;
    void (*describe)(const char *shown, const entry_t *entry, described_t *job);
} SUFFIXES[] = {
    {":migrate", describe_migration},
    {PASS_SUFFIX, describe_pass},
    {":convert", describe_conversion},
    {":consolidate", describe_consolidation},
};

/* A consolidation stores its place in a second entry, which is not listed. */
#define PLACE_SUFFIX ":consolidate.at"

static described_t describe(const char *shown, const char *name, const entry_t *entry)
{
    described_t job = {.kind = SPILL_STATUS_UNKNOWN, .unfinished = true};
    if (describe_adopter(shown, name, &job))
        return job;
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof SUFFIXES[0]; i++) {
        if (!spill_text_ends_with(name, SUFFIXES[i].suffix))
            continue;
        job.name = bson_strndup(name, strlen(name) - strlen(SUFFIXES[i].suffix));
        SUFFIXES[i].describe(shown, entry, &job);
        return job;
    }
    job.name = bson_strdup(name);
    if (entry->is_import)
        describe_import(shown, entry, &job);
    else
        job.state = bson_strdup("a job of a kind that this version does not know");
    return job;
}

/* ---- entries that say less than the definition ----------------------------------------------- */

/* *empty: there is a definition of this name, without an owner. */
static spill_code_t is_empty(spill_store_t *store, const char *name, bool *empty,
                             spill_error_t *error)
{
    spill_array_t *array;
    bool any = false;
    *empty = false;
    spill_code_t code = spill_array_open(store, name, &array, error);
    if (code == SPILL_NOT_FOUND)
        return SPILL_OK;
    if (code == SPILL_OK)
        code = spill_array_has_owner(array, &any, error);
    spill_array_close(array);
    *empty = code == SPILL_OK && !any;
    return code;
}

/*
 * A conversion that was killed before it dropped the empty definition. A definition with owners is
 * a new one of the old name. If the arrays were migrated in place, the migration has an entry.
 */
static spill_code_t look_at_emptied(spill_store_t *store, described_t *job, spill_error_t *error)
{
    char planned[SPILL_NAME_SIZE];
    SPILL_TRY(is_empty(store, job->name, &job->unfinished, error));
    if (!job->unfinished)
        return SPILL_OK;
    SPILL_TRY(spill_building_of_original(store, job->name, planned, error));
    job->unfinished = planned[0] == '\0';
    char *state = bson_strdup_printf("%s. '%s' is empty, and only its definition is left",
                                     job->state, job->name);
    bson_free(job->state);
    job->state = state;
    return SPILL_OK;
}

/* Did the program of an entry run on this host, and has ended? */
static bool is_dead(const entry_t *entry)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return strcmp(host, entry->host) == 0 && entry->pid > 0 && kill((pid_t)entry->pid, 0) != 0 &&
           errno == ESRCH;
}

/* Was the adopter of an entry killed? `left_us` is how long the entry counts. */
static bool was_killed(const entry_t *entry, int64_t left_us)
{
    return left_us <= 0 || is_dead(entry);
}

/*
 * `left_us` is how long the entry counts: its updates may still be on their way to the server. If
 * the program may run, its entry has no command yet.
 */
static void describe_adopted(const entry_t *entry, int64_t now_us, int64_t left_us,
                             described_t *job)
{
    const spill_time_text_t ends = spill_time_text((now_us + left_us) / 1000 + 1000);
    bson_string_t *state = bson_string_new(NULL);
    bson_string_append_printf(state, "process %" PRId64 " on %s ", entry->pid, entry->host);
    if (left_us <= 0) {
        bson_string_append_printf(state, "was killed while it adopted arrays of '%s'", job->name);
    } else if (is_dead(entry)) {
        bson_string_append_printf(state,
                                  "was killed while it adopted arrays of '%s'; a sweep after %s "
                                  "removes this entry",
                                  job->name, ends.text);
    } else {
        bson_string_append_printf(state,
                                  "adopts arrays of '%s'; if it was killed, this entry ends at %s: "
                                  "`spillway status' then prints how to continue",
                                  job->name, ends.text);
        bson_free(job->finish);
        job->finish = NULL;
    }
    job->state = bson_string_free(state, false);
}

/* *passes: a pass over the owners of this definition has not ended. */
static spill_code_t has_pass(spill_store_t *store, const char *name, bool *passes,
                             spill_error_t *error)
{
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    SPILL_SCOPED(spill_free_text) char *entry = bson_strdup_printf("%s" PASS_SUFFIX, name);
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_JOB, entry, &document, error));
    *passes = document != NULL;
    return SPILL_OK;
}

/*
 * The entry may have stayed when the definition was dropped. If a pass has not ended, its state
 * names the killed adopter (look_at_pass): one job has one line, and one command.
 */
static spill_code_t look_at_adopted(spill_store_t *store, const entry_t *entry, described_t *job,
                                    spill_error_t *error)
{
    spill_definition_t definition;
    int64_t now_us;
    SPILL_TRY(spill_store_now(store, &now_us, error));
    int64_t left_us = spill_adopter_left_us(store, entry->ends_ms, now_us);
    bool passes = false;
    describe_adopted(entry, now_us, left_us, job);
    if (was_killed(entry, left_us))
        SPILL_TRY(has_pass(store, job->name, &passes, error));
    spill_code_t code = spill_store_definition(store, job->name, &definition, error);
    job->unfinished = code == SPILL_OK && !passes;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/* Append to the pass's state that the adopter of this entry was killed. *killed: it was. */
static spill_code_t add_killed(spill_store_t *store, const char *entry_name, described_t *job,
                               bool *killed, spill_error_t *error)
{
    int64_t now_us;
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_JOB, entry_name, &document, error));
    if (!document)
        return SPILL_OK;
    const entry_t entry = read_entry(document);
    SPILL_TRY(spill_store_now(store, &now_us, error));
    *killed = was_killed(&entry, spill_adopter_left_us(store, entry.ends_ms, now_us));
    if (!*killed)
        return SPILL_OK;
    char *state =
        bson_strdup_printf("%s. Process %" PRId64 " on %s was killed while it adopted arrays",
                           job->state, entry.pid, entry.host);
    bson_free(job->state);
    job->state = state;
    return SPILL_OK;
}

/* Each process that was killed while it adopted arrays on a server has left an entry: name one. */
static spill_code_t look_at_pass(spill_store_t *store, described_t *job, spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t entries = SPILL_LISTING_INIT;
    char name[SPILL_NAME_SIZE];
    bool killed = false;
    SPILL_TRY(spill_adopters_list(store, &entries, error));
    for (size_t i = 0; i < entries.count && !killed; i++) {
        const char *entry_name = spill_listing_item(&entries, i).text;
        if (spill_adopter_split(entry_name, name) && strcmp(name, job->name) == 0)
            SPILL_TRY(add_killed(store, entry_name, job, &killed, error));
    }
    return SPILL_OK;
}

/*
 * The conversion that drops the original of a migration in two stages is the last step of the
 * migration, whose entry says so.
 */
static spill_code_t look_at_dropped(spill_store_t *store, described_t *job, spill_error_t *error)
{
    char planned[SPILL_NAME_SIZE];
    SPILL_TRY(spill_building_of_original(store, job->name, planned, error));
    job->unfinished = planned[0] == '\0';
    return SPILL_OK;
}

/* Has --finish begun to drop the original? */
static spill_code_t look_at_migration(spill_store_t *store, const entry_t *entry, described_t *job,
                                      spill_error_t *error)
{
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    SPILL_TRY(spill_convert_checkpoint_load(store, entry->original, &checkpoint, error));
    if (entry->undoing || strcmp(checkpoint.as, job->name) != 0)
        return SPILL_OK;
    bson_free(job->state);
    job->state = bson_strdup_printf("'%s' is being dropped: '%s' has its arrays", entry->original,
                                    job->name);
    char *copying = job->finish;
    job->finish = bson_strdup_printf("%s --finish", copying);
    bson_free(copying);
    return SPILL_OK;
}

static spill_code_t look_at_definition(spill_store_t *store, const entry_t *entry, described_t *job,
                                       spill_error_t *error)
{
    if (job->kind == SPILL_STATUS_CONVERSION && entry->emptied)
        return look_at_emptied(store, job, error);
    if (job->kind == SPILL_STATUS_CONVERSION)
        return look_at_dropped(store, job, error);
    if (job->kind == SPILL_STATUS_MIGRATION && entry->original[0] != '\0')
        return look_at_migration(store, entry, job, error);
    if (job->passes)
        return look_at_pass(store, job, error);
    return job->adopts ? look_at_adopted(store, entry, job, error) : SPILL_OK;
}

/* ---- all entries ----------------------------------------------------------------------------- */

/* Visit one entry. *stop: the visitor ends the walk. */
static spill_code_t visit_entry(spill_store_t *store, const char *shown, const char *name,
                                spill_status_fn visit, void *context, bool *stop,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_JOB, name, &document, error));
    if (!document || spill_text_ends_with(name, PLACE_SUFFIX))
        return SPILL_OK;
    const entry_t entry = read_entry(document);
    SPILL_SCOPED(release) described_t described = describe(shown, name, &entry);
    SPILL_TRY(look_at_definition(store, &entry, &described, error));
    const spill_status_job_t job = {.kind = described.kind,
                                    .name = described.name,
                                    .state = described.state,
                                    .finish = described.finish,
                                    .saved_ms = entry.saved_ms};
    *stop = described.unfinished && !visit(context, &job);
    return SPILL_OK;
}

/* Visit the definition if its migration is being undone. */
static spill_code_t visit_undone(spill_store_t *store, const char *shown, const char *name,
                                 spill_status_fn visit, void *context, bool *stop,
                                 spill_error_t *error)
{
    spill_stored_definition_t stored;
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, name, &document, error));
    if (!document || spill_stored_definition_from_bson(&stored, document, NULL) != SPILL_OK ||
        stored.undoing == 0) /* `verify' reports a definition that cannot be read */
        return SPILL_OK;
    char building[SPILL_NAME_SIZE];
    SPILL_TRY(spill_building_of_original(store, name, building, error));
    SPILL_SCOPED(spill_free_text) char *quoted = spill_shell_word(name);
    SPILL_SCOPED(spill_free_text) /* the original of two stages is undone with the plan */
    char *finish = bson_strdup_printf("spillway migrate %s %s --execute --undo", shown,
                                      building[0] != '\0' ? "PLAN" : quoted);
    const spill_status_job_t job = {.kind = SPILL_STATUS_MIGRATION,
                                    .name = name,
                                    .state = "it is being undone; until that has ended, no array "
                                             "is adopted",
                                    .finish = finish,
                                    .saved_ms = stored.undoing / 1000};
    *stop = !visit(context, &job);
    return SPILL_OK;
}

static spill_code_t visit_all_undone(spill_store_t *store, const char *shown, spill_status_fn visit,
                                     void *context, bool *stop, spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_DEFINITION, &names, error));
    for (size_t i = 0; i < names.count && !*stop; i++)
        SPILL_TRY(visit_undone(store, shown, spill_listing_item(&names, i).text, visit, context,
                               stop, error));
    return SPILL_OK;
}

spill_code_t spill_status_jobs(spill_store_t *store, const char *shown, spill_status_fn visit,
                               void *context, spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_SCOPED(spill_free_text) char *word = spill_shell_word(shown);
    bool stop = false;
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_JOB, &names, error));
    for (size_t i = 0; i < names.count && !stop; i++)
        SPILL_TRY(visit_entry(store, word, spill_listing_item(&names, i).text, visit, context,
                              &stop, error));
    return visit_all_undone(store, word, visit, context, &stop, error);
}
