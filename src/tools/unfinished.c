/* status: the unfinished work that a store's catalog records. */
#include "tools/unfinished.h"

#include "bson/record.h"
#include "store/job.h"
#include "store/listing.h"
#include "tools/import/import_given.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

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
                                          "changes yet",
                                          entry->original, job->name);
    job->finish = bson_strdup_printf("spillway migrate %s PLAN --execute --%s", shown,
                                     undoing ? "undo" : "finish");
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
    job->finish =
        bson_strdup_printf("spillway consolidate %s PLAN --only %s --execute", shown, into);
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

/* A pass that reshapes arrays, which was interrupted after some owners. */
static void describe_pass(const char *shown, const entry_t *entry, described_t *job)
{
    (void)entry;
    job->kind = SPILL_STATUS_MIGRATION;
    job->unfinished = true;
    job->state = bson_strdup_printf("a pass over the owners of '%s' was interrupted, and continues "
                                    "behind those that are done",
                                    job->name);
    job->finish = bson_strdup_printf("spillway migrate %s PLAN --execute", shown);
}

/* The kinds of job checkpoints (docs/internals/transfer.md), by the suffix of their names. */
static const struct {
    const char *suffix;
    void (*describe)(const char *shown, const entry_t *entry, described_t *job);
} SUFFIXES[] = {
    {":migrate", describe_migration},
    {":migrate.at", describe_pass},
    {":convert", describe_conversion},
    {":consolidate", describe_consolidation},
};

/* A consolidation stores its place in a second entry, which is not listed. */
#define PLACE_SUFFIX ":consolidate.at"

static bool ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), end = strlen(suffix);
    return length > end && strcmp(text + length - end, suffix) == 0;
}

static described_t describe(const char *shown, const char *name, const entry_t *entry)
{
    described_t job = {.kind = SPILL_STATUS_UNKNOWN, .unfinished = true};
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof SUFFIXES[0]; i++) {
        if (!ends_with(name, SUFFIXES[i].suffix))
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

/* ---- all entries ----------------------------------------------------------------------------- */

/* Visit one entry. *stop: the visitor ends the walk. */
static spill_code_t visit_entry(spill_store_t *store, const char *shown, const char *name,
                                spill_status_fn visit, void *context, bool *stop,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_JOB, name, &document, error));
    if (!document || ends_with(name, PLACE_SUFFIX))
        return SPILL_OK;
    const entry_t entry = read_entry(document);
    SPILL_SCOPED(release) described_t described = describe(shown, name, &entry);
    const spill_status_job_t job = {.kind = described.kind,
                                    .name = described.name,
                                    .state = described.state,
                                    .finish = described.finish,
                                    .saved_ms = entry.saved_ms};
    *stop = described.unfinished && !visit(context, &job);
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
    return SPILL_OK;
}
