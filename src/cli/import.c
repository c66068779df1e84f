/* import: append the records of a file as elements. */
#include "tools/import/import.h"

#include "cli/cli.h"
#include "cli/process.h"
#include "store/raw_reader.h"
#include "util/error.h"
#include "util/estimate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct import_options {
    const char *owner;
    const char *id;
    const char *format;
    const char *as;
    const char *elements;
    const char *entries_as;
    const char *owner_inner;
    const char *collection;
    int64_t skip_bad;
    bool fields;
    bool again;
    bool strings;
    bool new_numbers;
} import_options_t;

static const import_options_t DEFAULTS = {0};

/* The result of the import. */
typedef struct import_run {
    spill_import_result_t result;
    spill_code_t code;
    bool elements;    /* the records are elements of documents */
    const char *path; /* FILE */
} import_run_t;

static void show_bad(void *context, const char *message)
{
    spill_cli_progress_break(context);
    fprintf(stderr, "spillway: skipped: %s\n", message);
}

/* The input may have bytes or a server's documents, so print only the part of it that was read. */
static void show_elements(spill_cli_progress_t *shown, const spill_import_progress_t *progress)
{
    double rate = (double)progress->records / spill_cli_progress_seconds(shown);
    spill_cli_progress_part(shown, progress->bytes_done, progress->bytes_total,
                            "%" PRId64 " elements, %.0f/s", progress->records, rate);
}

static void show_progress(void *context, const spill_import_progress_t *progress)
{
    if (progress->checks)
        spill_cli_progress_print(context, "%" PRId64 " %s checked", progress->records,
                                 progress->elements ? "documents" : "records");
    else if (progress->elements)
        show_elements(context, progress);
    else
        spill_cli_progress_show(context, progress->records, progress->bytes_done,
                                progress->bytes_total);
}

#define RESULT(member, ...) SPILL_FIELD(INT64, spill_import_result_t, member, #member, __VA_ARGS__)
static const spill_field_t result_fields[] = {RESULT(records, .flags = 0),
                                              RESULT(repeated, .flags = 0),
                                              RESULT(skipped, .flags = 0),
                                              RESULT(before, .flags = 0),
                                              RESULT(dropped, .flags = SPILL_FIELD_SPARSE),
                                              RESULT(duplicates, .flags = SPILL_FIELD_SPARSE),
                                              RESULT(renumbered, .flags = SPILL_FIELD_SPARSE),
                                              RESULT(documents, .flags = SPILL_FIELD_SPARSE),
                                              RESULT(missing, .flags = SPILL_FIELD_SPARSE),
                                              RESULT(updates, .flags = SPILL_FIELD_SPARSE)};
static const spill_record_t result_record =
    SPILL_RECORD("result", spill_import_result_t, result_fields);

static void print_result(const spill_invocation_t *invocation, const import_run_t *run)
{
    const import_options_t *options = invocation->options;
    const spill_import_result_t *result = &run->result;
    if (invocation->json) {
        spill_cli_print_record(&result_record, result);
        return;
    }
    if (run->elements)
        printf("%" PRId64 " %s of %" PRId64 " %s imported", result->records,
               spill_cli_plural(result->records, "element", "elements"), result->documents,
               spill_cli_plural(result->documents, "document", "documents"));
    else
        printf("%" PRId64 " %s imported", result->records,
               spill_cli_plural(result->records, "record", "records"));
    if (result->repeated > 0)
        printf(", %" PRId64 " of them imported before", result->repeated);
    if (result->duplicates > 0)
        printf(", %" PRId64 " of them left out because the set has their ids", result->duplicates);
    if (result->dropped > 0)
        printf(", %" PRId64 " of them %s", result->dropped,
               options->owner || options->elements ? "not kept by the cap"
                                                   : "trimmed, or not kept by the cap");
    if (result->renumbered > 0)
        printf(", %" PRId64 " of them with new numbers", result->renumbered);
    if (result->skipped > 0)
        printf(", %" PRId64 " bad %sskipped", result->skipped,
               !run->elements ? "ones "
                              : spill_cli_plural(result->skipped, "document ", "documents "));
    if (result->missing > 0)
        printf(", %" PRId64 " %s without the array", result->missing,
               spill_cli_plural(result->missing, "document", "documents"));
    if (result->updates > 0)
        printf(", other fields kept in %" PRId64 " %s", result->updates,
               spill_cli_plural(result->updates, "head", "heads"));
    if (result->before > 0)
        printf(", after %" PRId64 " in earlier runs", result->before);
    putchar('\n');
}

/* "records" or "elements", with "is" or "are". */
static const char *counted(const import_run_t *run, int64_t count, bool verb)
{
    if (run->elements)
        return verb ? spill_cli_plural(count, "element is", "elements are")
                    : spill_cli_plural(count, "element", "elements");
    return verb ? spill_cli_plural(count, "record is", "records are")
                : spill_cli_plural(count, "record", "records");
}

/* If an import that failed has imported records, print how many, and how to continue. */
static void explain_failure(const import_run_t *run)
{
    const spill_import_result_t *result = &run->result;
    int64_t records = result->before + result->records;
    bool is_final = run->code == SPILL_OK || run->code == SPILL_INVALID ||
                    run->code == SPILL_REFUSED || run->code == SPILL_CANCELLED;
    if (is_final || (records == 0 && !result->resumable))
        return;
    bool certain = run->code != SPILL_UNKNOWN;
    fprintf(stderr, "spillway: %s%" PRId64 " %s imported",
            certain && !result->at_least ? "" : "at least ", records, counted(run, records, true));
    if (!result->resumable) {
        fputs("; an import of stdin without --as cannot be resumed\n", stderr);
    } else if (certain) {
        fputs("; after removing the cause, run the same command to continue\n", stderr);
    } else {
        fputs("; the same command finds out which others are, and continues, if that is known\n",
              stderr);
    }
}

static spill_code_t fail_interrupted(const import_run_t *run, const import_options_t *given,
                                     const char *path, spill_error_t *error)
{
    int64_t records = run->result.before + run->result.records;
    bool named = given->as || strcmp(path, "-") != 0;
    return spill_fail(error, SPILL_CANCELLED, "interrupted after %" PRId64 " %s: %s", records,
                      counted(run, records, false),
                      named ? "run the same command to continue"
                            : "an import of stdin without --as cannot be continued");
}

static spill_code_t import_file(spill_cli_session_t *session, spill_error_t *error)
{
    const spill_invocation_t *invocation = session->invocation;
    import_run_t *run = session->context;
    const import_options_t *given = invocation->options;
    spill_cli_progress_t progress;
    spill_cli_progress_start(&progress, invocation->quiet);
    spill_import_options_t options = {
        .path = run->path,
        .elements = given->elements,
        .entries_as = given->entries_as,
        .owner_inner = given->owner_inner,
        .collection = given->collection,
        .fields = given->fields,
        .as = given->as,
        .format = given->format,
        .owner = !given->owner && given->elements ? "_id" : given->owner,
        .id = given->id,
        .again = given->again,
        .strings = given->strings,
        .new_numbers = given->new_numbers,
        .skip_max = given->skip_bad,
        .bad = show_bad,
        .progress = show_progress,
        .context = &progress,
    };
    spill_cli_stop_on_interrupt(session->store);
    run->code = spill_import(session->store, session->array, &options, &run->result, error);
    spill_cli_progress_break(&progress);
    if (run->code == SPILL_CANCELLED)
        return fail_interrupted(run, given, options.path, error);
    if (run->code != SPILL_OK)
        return run->code;
    double seconds = spill_cli_progress_seconds(&progress);
    if (!invocation->quiet && run->result.records > 0 && seconds >= SPILL_CLI_LONG_S)
        fprintf(stderr, "%s, %.0f %s/s\n", spill_duration_text(seconds).text,
                (double)run->result.records / seconds, counted(run, 2, false));
    print_result(invocation, run);
    return SPILL_OK;
}

/* Before the store is opened, which may be a server that does not answer. */
static spill_code_t check_file(const char *path, spill_error_t *error)
{
    if (strcmp(path, "-") == 0 || spill_raw_reader_serves(path) || access(path, R_OK) == 0)
        return SPILL_OK;
    return spill_fail_errno(error, errno, "cannot open %s, which should be imported", path);
}

static spill_exit_t run_import(const spill_invocation_t *invocation)
{
    const import_options_t *options = invocation->options;
    char uri[SPILL_CLI_URI];
    if (!options->owner && !options->elements && options->id)
        return spill_cli_usage(invocation, "--id needs --owner");
    if ((options->owner || options->elements) && options->new_numbers)
        return spill_cli_usage(invocation, "--new-numbers is for an export, without --owner");
    import_run_t import_run = {
        .code = SPILL_OK, .elements = options->elements != NULL, .path = invocation->arguments[2]};
    spill_error_t error;
    if (options->elements && spill_cli_names_uri(import_run.path)) {
        if (spill_cli_store_uri(import_run.path, uri, &error) != SPILL_OK)
            return spill_cli_fail(&error);
        import_run.path = uri;
    }
    if (check_file(import_run.path, &error) != SPILL_OK)
        return spill_cli_fail(&error);
    spill_exit_t result =
        spill_cli_with_file(invocation, SPILL_CLI_WRITE, import_file, &import_run);
    explain_failure(&import_run);
    return result;
}

static const spill_option_t OPTIONS[] = {
    {"owner", "FIELD", SPILL_OPTION_TEXT, offsetof(import_options_t, owner),
     "The field that names a record's owner; dots reach into sub-documents. Without it, FILE must "
     "be what `export' writes"},
    {"elements", "PATH", SPILL_OPTION_TEXT, offsetof(import_options_t, elements),
     "The records are documents: import the elements of the array at PATH. The owner is _id unless "
     "--owner names another field. FILE may also be a folder or an archive of mongodump, or a "
     "server's mongodb://HOST/DATABASE.COLLECTION"},
    {"entries-as", "KEY", SPILL_OPTION_TEXT, offsetof(import_options_t, entries_as),
     "With --elements: PATH is a map; an entry becomes the element {KEY: key, ...value}"},
    {"owner-inner", "FIELD[=PATH]", SPILL_OPTION_TEXT, offsetof(import_options_t, owner_inner),
     "With --elements A.$.B: each document in A has its own owner {_id: owner, FIELD: inner}. "
     "The inner value is its position in A (in a map, its key), or its value at PATH"},
    {"fields", NULL, SPILL_OPTION_FLAG, offsetof(import_options_t, fields),
     "With --elements: keep the documents' other fields in the heads"},
    {"collection", "NAME", SPILL_OPTION_TEXT, offsetof(import_options_t, collection),
     "With --elements: the collection of a folder, an archive or a server's database"},
    {"id", "FIELD", SPILL_OPTION_TEXT, offsetof(import_options_t, id),
     "The field with a record's operation id: each record is then one append, and is skipped if "
     "its owner's window has the id already"},
    {"format", "F", SPILL_OPTION_TEXT, offsetof(import_options_t, format),
     "ndjson, json, csv or bson, with .gz or .zst; by default from the file's name"},
    {"as", "ID", SPILL_OPTION_TEXT, offsetof(import_options_t, as),
     "Name of this import, instead of the file's path"},
    {"skip-bad", "MAX", SPILL_OPTION_LIMIT, offsetof(import_options_t, skip_bad),
     "Skip bad records, at most MAX, and report each"},
    {"again", NULL, SPILL_OPTION_FLAG, offsetof(import_options_t, again),
     "Import from the start, even if it was imported before"},
    {"new-numbers", NULL, SPILL_OPTION_FLAG, offsetof(import_options_t, new_numbers),
     "An export: append its elements to what the owners have, with new numbers"},
    {"strings", NULL, SPILL_OPTION_FLAG, offsetof(import_options_t, strings),
     "CSV: every value stays a string"},
    {0}};

const spill_command_t spill_command_import = {
    .name = "import",
    .arguments = "STORE NAME FILE|-|SERVER",
    .arguments_min = 3,
    .arguments_max = 3,
    .summary = "Append the records of a file to their owners' arrays",
    .text =
        "Each complete record becomes an element of the owner in its --owner field, "
        "in the file's order. Formats: NDJSON and Extended JSON, CSV with a header, .bson as "
        "mongodump writes it; uncompressed, .gz or .zst. An unquoted CSV field becomes a "
        "number if the number's text is the same; all else is a string.\n"
        "\n"
        "After any interruption, run the same command to continue: "
        "nothing is appended twice and nothing is left out. So it "
        "writes with log durability by default; at the end everything is flushed. "
        "A file that was imported is not imported again (exit code 4), but records that were "
        "added to it are.\n"
        "\n"
        "A bad record stops the import (exit code 3, or 4 if it is too big): all records "
        "before it are imported. Repair it and run the same command, or use "
        "--skip-bad. For layouts reference and subset, a file (not a pipe) is first checked "
        "for fields that cannot be stored, before anything is written.\n"
        "\n"
        "With --elements each record is a document that carries an array. Its elements become "
        "elements of the owner, in order. Documents without the array are counted.\n"
        "\n"
        "With layout capped the summary counts the records that the cap dropped at once; "
        "later records may have pushed out others.\n"
        "\n"
        "Without --owner and --elements, the file must be what `export' writes. Its elements "
        "keep their numbers; numbers of layout bucket count within a window. Documents (`export "
        "--documents') also keep the other fields of heads, in a definition with the same "
        "layout and names. If an owner has another element under a number, the import ends "
        "with exit code 4 and writes nothing of that chunk.\n"
        "\n"
        "Examples:\n"
        "  spillway import feeds.db events events.ndjson.gz --owner user\n"
        "  spillway import feeds.db events dump/app/events.bson --owner user._id\n"
        "  spillway import feeds.db versions products.ndjson --elements releases --fields\n"
        "  spillway import feeds.db chats users.bson --elements 'chats.$.messages' \\\n"
        "    --owner-inner chat\n"
        "  zcat day.csv.gz | spillway import feeds.db events - --format csv \\\n"
        "    --owner user --as day-17",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_DURABILITY,
    .durability = SPILL_DURABILITY_LOG,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_import};
