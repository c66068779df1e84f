/* bench: the cost of appends and newest pages on a store, by length and layout, and its tables. */
#include "tools/bench/bench.h"
#include "cli/cli.h"
#include "cli/process.h"
#include "tools/bench/samples.h"
#include "util/redact.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

/* A store's name for output: its URI without user, password and options, or its path. */
static void store_name(const char *uri, char *place, size_t size)
{
    char *shown = spill_redact(uri);
    const char *rest = strstr(shown, "://");
    const char *at = rest ? strrchr(rest, '@') : NULL;
    const char *hosts = at ? at + 1 : rest ? rest + 3 : NULL;
    if (hosts)
        snprintf(place, size, "%.*s%.*s", (int)(rest + 3 - shown), shown, (int)strcspn(hosts, "?"),
                 hosts);
    else
        snprintf(place, size, "%s", shown);
    bson_free(shown);
}

static void print_bytes(double bytes)
{
    if (bytes < 0)
        printf(" %9s", "-");
    else
        printf(" %9s", spill_size_text((int64_t)bytes).text);
}

/* ---- the main table -------------------------------------------------------------------------- */

static void print_settings(const spill_bench_options_t *options, const spill_bench_result_t *result)
{
    fputs("store      ", stdout);
    spill_cli_print_name(options->made);
    printf(", %s\nelements   %" PRId64 " bytes each; threshold %" PRId64 ", pages of %" PRId64
           "\nmachine    %d processors, load %.1f before and %.1f after; %.0f s\n",
           options->durability == SPILL_DURABILITY_FSYNC ? "fsync" : "log durability",
           options->element_bytes, options->threshold, options->page, result->processors,
           result->load_before, result->load_after, result->seconds);
}

static void print_row(const spill_bench_row_t *row)
{
    printf("%-10s %8" PRId64 " %4d", spill_bench_kind_name(row->kind), row->length, row->threads);
    if (row->over) {
        puts("   does not fit a document");
        return;
    }
    printf(" %9.1f %8.1f-%-8.1f %8.1f %8.1f %8.1f %9.0f", row->append.us.median, row->append.us.low,
           row->append.us.high, row->append.p50_us, row->append.p90_us, row->append.p99_us,
           row->append.per_second);
    print_bytes(row->append.bytes_written);
    print_bytes(row->append.bytes_read);
    printf(" %9.1f %8.1f", row->newest.us.median, row->newest.p99_us);
    print_bytes((double)row->document_bytes);
    if (row->given != row->found)
        printf("  %" PRId64 " elements of %" PRId64 " found", row->found, row->given);
    putchar('\n');
}

/* ---- the comparison table -------------------------------------------------------------------- */

/* An estimate of how many elements fill a document, from its size now. */
static int64_t full_at(const spill_bench_row_t *row)
{
    return row->document_bytes > 0 ? (int64_t)((double)row->bytes_max * (double)row->length /
                                               (double)row->document_bytes)
                                   : 0;
}

static void print_proof(const spill_bench_options_t *options, const spill_bench_result_t *result)
{
    int64_t length = spill_bench_proof_length(result);
    const spill_bench_row_t *base = spill_bench_find(result, SPILL_BENCH_UNBOUNDED, length, 1);
    printf("\nComparison at %" PRId64 " elements of %" PRId64 " bytes, one thread\n\n", length,
           options->element_bytes);
    printf("%-10s %10s %8s %10s %10s  %s\n", "layout", "append us", "times", "page us", "document",
           "distance to the limit of a document");
    for (int kind = 0; kind < SPILL_BENCH_KINDS; kind++) {
        const spill_bench_row_t *row =
            spill_bench_find(result, (spill_bench_kind_t)kind, length, 1);
        if (!row || row->over)
            continue;
        printf("%-10s %10.1f", spill_bench_kind_name(row->kind), row->append.us.median);
        if (base && !base->over)
            printf(" %8.1f", base->append.us.median / row->append.us.median);
        else
            printf(" %8s", "-");
        printf(" %10.1f %10s  ", row->newest.us.median, spill_size_text(row->document_bytes).text);
        if (row->kind == SPILL_BENCH_UNBOUNDED)
            printf("full at about %" PRId64 " elements\n", full_at(row));
        else
            printf("never reached: at most %s\n", spill_size_text(row->bytes_max).text);
    }
    puts("\ntimes: how many times less than an append to the unbounded array");
}

static void print_bench(const spill_bench_options_t *options, const spill_bench_result_t *result)
{
    print_settings(options, result);
    printf("rounds     %d, one more to warm up; [ ]: contains the true median with a confidence "
           "of %.1f %%\n\n",
           options->rounds,
           result->row_count > 0 ? 100 * result->rows[result->row_count - 1].append.us.confidence
                                 : 0);
    printf("%-10s %8s %4s %9s %17s %8s %8s %8s %9s %9s %9s %9s %8s %9s\n", "layout", "length",
           "thr", "append us", "[median]", "p50", "p90", "p99", "appends/s", "written", "received",
           "page us", "p99", "document");
    for (size_t i = 0; i < result->row_count; i++)
        print_row(&result->rows[i]);
    print_proof(options, result);
}

/* ---- tuning ---------------------------------------------------------------------------------- */

static void print_tuned(const spill_bench_options_t *options, const spill_bench_result_t *result)
{
    print_settings(options, result);
    printf("\n%9s %6s %12s %17s %9s %12s\n", "threshold", "page", "append us", "[median]",
           "page us", "together us");
    for (size_t i = 0; i < result->tuned_count; i++) {
        const spill_bench_tuned_t *tuned = &result->tuned[i];
        if (i > 0 && !tuned->final && result->tuned[i - 1].final)
            puts("  the other pairs, measured in three rounds");
        bool told_apart = tuned->append.us.low > result->tuned[0].append.us.high;
        printf("%9" PRId64 " %6" PRId64 " %12.1f %8.1f-%-8.1f %9.1f %12.1f%s\n", tuned->threshold,
               tuned->page, tuned->append.us.median, tuned->append.us.low, tuned->append.us.high,
               tuned->newest.us.median, tuned->cost_us,
               i > 0 && tuned->final && !told_apart ? "  may equal the first" : "");
    }
    if (result->tuned_count > 0)
        printf("\nleast cost on this store: --threshold %" PRId64 " --page %" PRId64 "\n",
               result->tuned[0].threshold, result->tuned[0].page);
}

/* ---- the command ----------------------------------------------------------------------------- */

enum { LENGTH_MAX = 10000000, ROUNDS_MAX = 99, PAGE_MAX = 100000 };

typedef struct bench_options {
    const char *lengths;
    const char *layouts;
    const char *plots;
    int64_t threads, rounds, element, threshold, page;
    bool large, tune, clean;
} bench_options_t;

static const bench_options_t DEFAULTS = {
    .threads = 4, .rounds = 9, .element = 200, .threshold = 100, .page = 100};

/* ---- options --------------------------------------------------------------------------------- */

/* The next part of a list separated by commas; NULL at the end. */
static const char *next_part(const char **list, char *part, size_t size)
{
    if (!*list || **list == '\0')
        return NULL;
    size_t length = strcspn(*list, ",");
    snprintf(part, size, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return part;
}

static spill_exit_t add_length(const spill_invocation_t *invocation, const char *text,
                               spill_bench_options_t *options)
{
    int64_t length;
    if (!spill_cli_parse_number(text, &length) || length < SPILL_BENCH_PAGE || length > LENGTH_MAX)
        return spill_cli_usage(invocation, "--lengths: '%s' is not a number from %d to %d", text,
                               SPILL_BENCH_PAGE, LENGTH_MAX);
    if (options->length_count == SPILL_BENCH_LENGTHS_MAX)
        return spill_cli_usage(invocation, "--lengths takes at most %d", SPILL_BENCH_LENGTHS_MAX);
    for (size_t i = 0; i < options->length_count; i++)
        if (options->lengths[i] == length)
            return spill_cli_usage(invocation, "--lengths: '%s' is given twice", text);
    options->lengths[options->length_count++] = length;
    return SPILL_EXIT_DONE;
}

static spill_exit_t read_lengths(const spill_invocation_t *invocation, const bench_options_t *given,
                                 spill_bench_options_t *options)
{
    char part[32];
    const char *list = given->lengths;
    spill_exit_t status = SPILL_EXIT_DONE;
    if (list)
        options->length_count = 0;
    while (status == SPILL_EXIT_DONE && next_part(&list, part, sizeof part))
        status = add_length(invocation, part, options);
    if (status == SPILL_EXIT_DONE && given->large)
        status = add_length(invocation, "100000", options);
    if (status == SPILL_EXIT_DONE && given->large)
        status = add_length(invocation, "1000000", options);
    if (status == SPILL_EXIT_DONE && options->length_count == 0)
        status = spill_cli_usage(invocation, "--lengths names no length");
    return status;
}

static spill_exit_t read_layouts(const spill_invocation_t *invocation, const char *list,
                                 spill_bench_options_t *options)
{
    char part[32];
    for (int kind = 0; list && kind < SPILL_BENCH_KINDS; kind++)
        options->kinds[kind] = false;
    bool any = !list;
    while (next_part(&list, part, sizeof part)) {
        int kind = 0;
        while (kind < SPILL_BENCH_KINDS &&
               strcmp(part, spill_bench_kind_name((spill_bench_kind_t)kind)) != 0)
            kind++;
        if (kind == SPILL_BENCH_KINDS)
            return spill_cli_usage(invocation,
                                   "--layouts: unknown '%s'; known are unbounded, newest, "
                                   "oldest, subset, reference, bucket and capped",
                                   part);
        options->kinds[kind] = any = true;
    }
    return any ? SPILL_EXIT_DONE : spill_cli_usage(invocation, "--layouts names none");
}

static spill_exit_t read_options(const spill_invocation_t *invocation, const bench_options_t *given,
                                 spill_bench_options_t *options)
{
    if (given->threads < 1 || given->threads > SPILL_CREW_MAX)
        return spill_cli_usage(invocation, "--threads must be from 1 to %d", SPILL_CREW_MAX);
    if (given->rounds < 1 || given->rounds > ROUNDS_MAX)
        return spill_cli_usage(invocation, "--rounds must be from 1 to %d", ROUNDS_MAX);
    if (given->element < SPILL_BENCH_ELEMENT_MIN || given->element > SPILL_BENCH_ELEMENT_MAX)
        return spill_cli_usage(invocation, "--element must be from %d B to 1 MiB",
                               SPILL_BENCH_ELEMENT_MIN);
    if (given->threshold < 1 || given->threshold > PAGE_MAX || given->page < 1 ||
        given->page > PAGE_MAX)
        return spill_cli_usage(invocation, "--threshold and --page must be from 1 to %d", PAGE_MAX);
    options->durability = invocation->durability;
    options->file_mode = invocation->mode;
    options->threads = (int)given->threads;
    options->rounds = (int)given->rounds;
    options->element_bytes = given->element;
    options->threshold = given->threshold;
    options->page = given->page;
    spill_exit_t status = read_lengths(invocation, given, options);
    return status == SPILL_EXIT_DONE ? read_layouts(invocation, given->layouts, options) : status;
}

/* ---- running --------------------------------------------------------------------------------- */

static void show_progress(void *context, const spill_bench_progress_t *progress)
{
    spill_cli_progress_t *shown = context;
    if (progress->kind[0] != '\0')
        spill_cli_progress_part(shown, progress->done, progress->whole, "%s %s at %" PRId64,
                                progress->what, progress->kind, progress->length);
    else
        spill_cli_progress_print(shown, "%s the benchmark's data", progress->what);
}

static spill_code_t print_result(const spill_invocation_t *invocation,
                                 const spill_bench_options_t *options,
                                 const spill_bench_result_t *result, spill_error_t *error)
{
    const bench_options_t *given = invocation->options;
    spill_code_t code = SPILL_OK;
    if (invocation->json) {
        bson_t document;
        spill_bench_to_bson(options, result, &document);
        spill_cli_print_document(&document, false);
        bson_destroy(&document);
    } else if (given->tune) {
        print_tuned(options, result);
    } else {
        print_bench(options, result);
    }
    if (given->plots && !given->tune)
        code = spill_bench_plots(options, result, given->plots, error);
    return code == SPILL_OK ? spill_cli_flush(error) : code;
}

static spill_exit_t run_bench(const spill_invocation_t *invocation, spill_bench_options_t *options)
{
    const bench_options_t *given = invocation->options;
    spill_cli_progress_t progress;
    spill_bench_result_t result;
    spill_error_t error;
    spill_cli_progress_start(&progress, invocation->quiet);
    options->stop = spill_cli_catch_interrupts();
    options->progress = show_progress;
    options->context = &progress;
    spill_code_t code = given->tune ? spill_bench_tune(options, &result, &error)
                                    : spill_bench_run(options, &result, &error);
    spill_cli_progress_break(&progress);
    if (code == SPILL_OK)
        code = print_result(invocation, options, &result, &error);
    spill_bench_release(&result);
    if (code == SPILL_OK)
        return SPILL_EXIT_DONE;
    spill_exit_t status = spill_cli_fail(&error);
    return code == SPILL_CANCELLED ? SPILL_EXIT_INTERRUPTED : status;
}

static spill_exit_t bench_command(const spill_invocation_t *invocation)
{
    const bench_options_t *given = invocation->options;
    char uri[SPILL_CLI_URI], place[SPILL_CLI_URI];
    spill_bench_options_t options;
    spill_error_t error;
    spill_bench_options_init(&options);
    spill_exit_t wrong = read_options(invocation, given, &options);
    if (wrong != SPILL_EXIT_DONE)
        return wrong;
    if (spill_cli_store_uri(invocation->arguments[0], uri, &error) != SPILL_OK)
        return spill_cli_fail(&error);
    store_name(uri, place, sizeof place);
    options.uri = uri;
    options.made = place;
    if (!given->clean)
        return run_bench(invocation, &options);
    return spill_bench_clean(&options, &error) == SPILL_OK ? SPILL_EXIT_DONE
                                                           : spill_cli_fail(&error);
}

static const spill_option_t OPTIONS[] = {
    {"lengths", "LIST", SPILL_OPTION_TEXT, offsetof(bench_options_t, lengths),
     "Lengths of the arrays, separated by commas (100,1000,5000,10000)"},
    {"large", NULL, SPILL_OPTION_FLAG, offsetof(bench_options_t, large),
     "Also 100000 and 1000000: on a server, this takes hours"},
    {"layouts", "LIST", SPILL_OPTION_TEXT, offsetof(bench_options_t, layouts),
     "Some of unbounded, newest, oldest, subset, reference, bucket and capped (all)"},
    {"threads", "N", SPILL_OPTION_NUMBER, offsetof(bench_options_t, threads),
     "Threads that work on one array at the same time; one thread alone is measured too (4)"},
    {"rounds", "N", SPILL_OPTION_NUMBER, offsetof(bench_options_t, rounds),
     "Measured rounds; one more warms up (9)"},
    {"element", "SIZE", SPILL_OPTION_SIZE, offsetof(bench_options_t, element),
     "Bytes of an element (200B)"},
    {"threshold", "N", SPILL_OPTION_NUMBER, offsetof(bench_options_t, threshold),
     "Elements that a head is meant to hold (100)"},
    {"page", "N", SPILL_OPTION_NUMBER, offsetof(bench_options_t, page),
     "Most elements of a page (100)"},
    {"tune", NULL, SPILL_OPTION_FLAG, offsetof(bench_options_t, tune),
     "Find the threshold and page with the least cost on this store"},
    {"plots", "FOLDER", SPILL_OPTION_TEXT, offsetof(bench_options_t, plots),
     "Write append.svg, threads.svg and documents.svg there"},
    {"clean", NULL, SPILL_OPTION_FLAG, offsetof(bench_options_t, clean),
     "Measure nothing: drop what a killed run has left"},
    {0}};

const spill_command_t spill_command_bench = {
    .name = "bench",
    .arguments = "STORE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Measure appends and reads, by layout and by the arrays' length",
    .text =
        "Measures the cost of an append and of reading a newest page, in arrays of several "
        "lengths: in one unbounded document (on a server by $push, on an embedded store a document "
        "that is rewritten), and in each layout. The kinds take turns in each round. An append's "
        "cost is the mean of a round, over whole cycles of spills. The tables show the median of "
        "the rounds, an interval that contains the true median in 95 of 100 cases (order "
        "statistics), and percentiles of single operations. An unbounded array grows by at most "
        "5 % in a round, and is created again for each round.\n"
        "\n"
        "All names begin with spillway_bench, and everything is dropped at the end, also after "
        "Ctrl-C. If something exists under such a name, nothing is done: after a killed run, "
        "--clean drops it.\n"
        "\n"
        "Examples:\n"
        "  spillway bench ./bench.db --durability log\n"
        "  spillway bench mongodb://localhost/test --layouts unbounded,newest --plots plots\n"
        "  spillway bench mongodb://localhost/test --tune\n"
        "  spillway bench mongodb://localhost/test --json >bench.json",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET |
              SPILL_COMMON_DURABILITY | SPILL_COMMON_MODE,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = bench_command};
