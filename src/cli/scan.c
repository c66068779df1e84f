/* scan: which arrays grow without a bound. */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/scan_print.h"

#include "tools/scan/feed.h"
#include "util/clock.h"
#include "util/error.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

typedef struct scan_options {
    const char *format;
    const char *fail_on;
    const char *since;
    int64_t max_elements;
    int64_t max_bytes;
    int64_t max_share;
    int64_t collection_limit;
    int64_t document_limit;
    int64_t threads;
    const char *collections;
    const char *read_preference;
    int64_t sample;
    int64_t rate;
} scan_options_t;

static const scan_options_t DEFAULTS = {.max_elements = SPILL_SCAN_ELEMENTS,
                                        .max_bytes = SPILL_SCAN_BYTES,
                                        .max_share = SPILL_SCAN_PAID_PER_CENT,
                                        .collection_limit = SPILL_SCAN_COLLECTIONS,
                                        .document_limit = SPILL_SCAN_DOCUMENT_LIMIT,
                                        .threads = 2};

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static atomic_bool stop;

/* The first one ends the scan with what is known; a second one ends the program. */
static void on_interrupt(int signal_number)
{
    atomic_store(&stop, true);
    signal(signal_number, SIG_DFL);
}

static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- --fail-on ------------------------------------------------------------------------------- */

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(word, name, length) == 0;
}

static bool matches(const char *word, size_t length, const spill_scan_finding_t *finding)
{
    return is_word(word, length, "any") ||
           (finding->critical && is_word(word, length, "critical")) ||
           is_word(word, length, spill_scan_finding_name(finding->kind)) ||
           is_word(word, length, spill_scan_finding_atlas(finding->kind));
}

static bool is_known(const char *word, size_t length)
{
    for (int kind = 0; kind < SPILL_SCAN_FINDING_KINDS; kind++) {
        spill_scan_finding_t finding = {.kind = (spill_scan_finding_kind_t)kind, .critical = true};
        if (matches(word, length, &finding))
            return true;
    }
    return false;
}

/* The next word between commas; NULL at the end. */
static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list;
    if (!word || *word == '\0')
        return NULL;
    *length = strcspn(word, ",");
    *list = word + *length + (word[*length] == ',');
    return word;
}

static bool fails(const char *list, const spill_scan_result_t *result)
{
    size_t length;
    for (const char *word; (word = next_word(&list, &length)) != NULL;)
        for (size_t i = 0; i < result->finding_count; i++)
            if (matches(word, length, &result->findings[i]))
                return true;
    return false;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* What is wrong with the options, or SPILL_EXIT_DONE. */
static spill_exit_t check(const spill_invocation_t *invocation)
{
    const scan_options_t *given = invocation->options;
    const char *list = given->fail_on;
    size_t length;
    for (const char *word; (word = next_word(&list, &length)) != NULL;)
        if (!is_known(word, length))
            return spill_cli_usage(invocation,
                                   "--fail-on: there is no finding '%.*s'; it takes any, critical "
                                   "and names of findings, with commas between",
                                   (int)length, word);
    if (given->threads < 1 || given->threads > 2)
        return spill_cli_usage(invocation, "--threads is 1 or 2");
    if (given->max_share < 1 || given->max_share > 100)
        return spill_cli_usage(invocation, "--max-share is a percentage from 1 to 100");
    if (given->document_limit < 1 || given->document_limit > SPILL_DOCUMENT_BYTES_MAX)
        return spill_cli_usage(invocation, "--document-limit is at most 24 MiB");
    return SPILL_EXIT_DONE;
}

static spill_exit_t check_source(const spill_invocation_t *invocation, const char *source)
{
    const scan_options_t *given = invocation->options;
    bool of_server = given->collections || given->read_preference || given->sample || given->rate;
    if (of_server && !spill_browse_serves(source))
        return spill_cli_usage(invocation, "--collections, --sample, --rate and --read-preference "
                                           "are for servers");
    return SPILL_EXIT_DONE;
}

/* The scan to compare with; none without the option. */
static spill_code_t read_earlier(const char *file, spill_scan_result_t *earlier,
                                 spill_error_t *error)
{
    if (!file)
        return SPILL_OK;
    spill_code_t code = spill_scan_read_json(file, earlier, error);
    if (code == SPILL_OK &&
        (earlier->scanned_ms <= 0 || earlier->scanned_ms >= spill_clock_now_us(NULL) / 1000))
        code = spill_fail(error, SPILL_INVALID,
                          "%s: it does not say when it was made, or a time to come", file);
    return code;
}

static spill_exit_t finish(const spill_invocation_t *invocation, const spill_scan_result_t *result)
{
    const scan_options_t *given = invocation->options;
    spill_error_t error;
    if (invocation->json)
        spill_scan_write_json(result, spill_cli_shown_source(invocation, result), stdout);
    else
        spill_cli_print_scan(result);
    spill_cli_print_problems(result);
    if (spill_cli_flush(&error) != SPILL_OK)
        return spill_cli_fail(&error);
    if (result->interrupted)
        return SPILL_EXIT_INTERRUPTED;
    if (result->problems_all > 0)
        return SPILL_EXIT_FAILED;
    return fails(given->fail_on, result) ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}

static spill_exit_t run(const spill_invocation_t *invocation)
{
    const scan_options_t *given = invocation->options;
    spill_exit_t wrong = check(invocation);
    if (wrong != SPILL_EXIT_DONE)
        return wrong;
    char uri[SPILL_CLI_URI];
    spill_error_t error;
    const char *source = invocation->arguments[0];
    if (source[0] == '@') {
        if (spill_cli_store_uri(source, uri, &error) != SPILL_OK)
            return spill_cli_fail(&error);
        source = uri;
    }
    wrong = check_source(invocation, source);
    if (wrong != SPILL_EXIT_DONE)
        return wrong;
    spill_cli_progress_t progress;
    spill_cli_progress_start(&progress, invocation->quiet);
    spill_scan_options_t options;
    spill_scan_options_init(&options);
    options.source = source;
    options.format = given->format;
    options.threads = (int)given->threads;
    options.limits = (spill_scan_limits_t){given->max_elements, given->max_bytes,
                                           given->document_limit, given->max_share};
    options.only = given->collections;
    options.sample = given->sample;
    options.rate = given->rate;
    options.preference = given->read_preference;
    options.collections_max = given->collection_limit;
    options.stop = &stop;
    options.progress = spill_cli_show_scan;
    options.context = &progress;
    catch_interrupts();
    spill_scan_result_t result, earlier = {0};
    spill_code_t code = read_earlier(given->since, &earlier, &error);
    if (code != SPILL_OK) {
        spill_scan_release(&earlier);
        return spill_cli_fail(&error);
    }
    code = spill_scan(&options, &result, &error);
    if (given->since)
        spill_scan_since(&result, &earlier);
    spill_scan_release(&earlier);
    spill_cli_progress_break(&progress);
    double seconds = spill_cli_progress_seconds(&progress);
    if (code == SPILL_OK && !invocation->quiet && result.documents > 0)
        fprintf(stderr, "%.1f s, %.0f MB/s\n", seconds, (double)result.bytes / 1e6 / seconds);
    spill_exit_t status = code == SPILL_OK ? finish(invocation, &result) : spill_cli_fail(&error);
    spill_scan_release(&result);
    return status;
}

static const spill_option_t OPTIONS[] = {
    {"format", "F", SPILL_OPTION_TEXT, offsetof(scan_options_t, format),
     "ndjson, json, bson or archive, with .gz or .zst; otherwise the file's name tells, or its "
     "first "
     "bytes"},
    {"max-elements", "N", SPILL_OPTION_NUMBER, offsetof(scan_options_t, max_elements),
     "Elements of an array, or keys of a map, from which on it is too long (10000)"},
    {"max-bytes", "SIZE", SPILL_OPTION_SIZE, offsetof(scan_options_t, max_bytes),
     "Bytes of an array or map in one document from which on it is too large (200KB)"},
    {"max-share", "PERCENT", SPILL_OPTION_NUMBER, offsetof(scan_options_t, max_share),
     "Share of a document from which on its other fields are paid for by an array (80)"},
    {"document-limit", "SIZE", SPILL_OPTION_SIZE, offsetof(scan_options_t, document_limit),
     "Most bytes of a document that the database takes (16MiB)"},
    {"collection-limit", "N", SPILL_OPTION_NUMBER, offsetof(scan_options_t, collection_limit),
     "Most collections that the database takes (1000)"},
    {"since", "FILE", SPILL_OPTION_TEXT, offsetof(scan_options_t, since),
     "Compare with an earlier scan, which --json printed to this file: what has come since"},
    {"fail-on", "LIST", SPILL_OPTION_TEXT, offsetof(scan_options_t, fail_on),
     "Exit code 1 where there is one of these: any, critical, or names of findings, with commas"},
    {"threads", "N", SPILL_OPTION_NUMBER, offsetof(scan_options_t, threads), "1 or 2 (2)"},
    {"collections", "LIST", SPILL_OPTION_TEXT, offsetof(scan_options_t, collections),
     "Of a server: these collections, with commas between, in the place of all"},
    {"sample", "N", SPILL_OPTION_NUMBER, offsetof(scan_options_t, sample),
     "Of a server: N documents of each collection, of the server's choice"},
    {"rate", "N", SPILL_OPTION_NUMBER, offsetof(scan_options_t, rate),
     "Of a server: at most N documents a second"},
    {"read-preference", "MODE", SPILL_OPTION_TEXT, offsetof(scan_options_t, read_preference),
     "Of a server: primary, primaryPreferred, secondary, secondaryPreferred or nearest"},
    {0}};

const spill_command_t spill_command_scan = {
    .name = "scan",
    .arguments = "SOURCE|-",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Find the arrays that grow without a bound",
    .text = "SOURCE is a folder or an archive that mongodump made, or a file: .bson, NDJSON or "
            "Extended JSON; all plain, .gz or .zst; or a server's database, "
            "mongodb://HOST/DATABASE, or @FILE for a "
            "file that holds that; or an embedded store. Each document is read once, and no more "
            "than a few "
            "megabytes are kept.\n"
            "\n"
            "For each array, nested ones too, and for each sub-document that grows by its keys: "
            "how long they are, how large their elements, what share of the documents they are, "
            "how many documents are over the thresholds, and the largest owners by their _id. "
            "Percentiles are within 1 % of themselves; everything else is exact. Findings: "
            "unbounded-array and unbounded-map (over a threshold, and not of one length "
            "everywhere), paid-by-array (most of a large document), large-document (over half of "
            "the limit).\n"
            "\n"
            "What cannot be read is reported with its place and passed over; the exit code is 3 "
            "then. Ctrl-C ends the scan and prints what is known so far; the exit code is 130 "
            "then.\n"
            "\n"
            "Examples:\n"
            "  spillway scan dump/\n"
            "  spillway scan dump/shop/products.bson.gz --max-elements 1000\n"
            "  spillway scan products.ndjson.gz --json --fail-on any >scan.json\n"
            "  spillway scan mongodb://localhost/shop --rate 5000 --read-preference secondary",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run};
