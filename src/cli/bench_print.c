#include "cli/bench_print.h"

#include "cli/cli.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

void spill_cli_bench_place(const char *uri, char *place, size_t size)
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

void spill_cli_print_bench(const spill_bench_options_t *options, const spill_bench_result_t *result)
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

void spill_cli_print_tuned(const spill_bench_options_t *options, const spill_bench_result_t *result)
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
