/* Print the result of a scan as text for people: findings first. */
#include "cli/scan_options.h"

#include "cli/cli.h"
#include "cli/process.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATHS_SHOWN = 8, OWNERS_SHOWN = 3, COLLECTIONS_SHOWN = 20, EXAMPLES_SHOWN = 3 };

static double per_cent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static int64_t mean_of(const spill_scan_numbers_t *numbers)
{
    return numbers->count > 0 ? (numbers->sum + numbers->count / 2) / numbers->count : 0;
}

/* Print a document's name: its _id, or its place. */
static void print_owner(const spill_large_owner_t *owner)
{
    char *json = owner->value.data ? spill_value_to_json(&owner->value, false) : NULL;
    if (json)
        spill_cli_print_name(json);
    else
        printf("the document at %" PRId64, owner->place);
    bson_free(json);
}

/* ---- findings -------------------------------------------------------------------------------- */

static void print_since(const spill_scan_path_t *path)
{
    const spill_growth_forecast_t *growth = &path->growth_forecast;
    const char *sign = growth->added < 0 ? "" : "+";
    if (growth->elapsed_ms > 0)
        printf("    since:   %s%" PRId64 " %s in %.3g days, in all documents\n", sign,
               growth->added, path->map ? "keys" : "elements",
               (double)growth->elapsed_ms / 86400e3);
}

static void print_growth(const spill_scan_path_t *path, int64_t scanned_ms)
{
    const spill_large_owner_t *owner = spill_owners_first_at_limit(&path->owners);
    const spill_growth_forecast_t *growth = &owner->growth_forecast;
    const char *what = path->map ? "keys" : "elements";
    if (path->owners.items[0].growth_forecast.timed && owner != &path->owners.items[0])
        printf("    its newest element is of %s, when %.3g a day came\n",
               spill_day_text(path->owners.items[0].growth_forecast.newest_ms).text,
               path->owners.items[0].growth_forecast.pace.per_day);
    printf("    limit:   ");
    if (owner != &path->owners.items[0]) {
        print_owner(owner);
        printf(" first, with ");
    }
    printf("%" PRId64 " more %s", growth->limit.elements, what);
    if (growth->timed || growth->elapsed_ms > 0)
        printf(" at %.3g a day: %s", growth->pace.per_day,
               spill_when_text(&growth->limit, scanned_ms).text);
    putchar('\n');
}

/* If another document has more bytes of the path than the one with the longest array, print it. */
static void print_heaviest(const spill_scan_path_t *path)
{
    if (path->heaviest.count == 0 || path->heaviest.items[0].bytes <= path->owners.items[0].bytes)
        return;
    printf("    largest: %s, ", spill_size_text(path->heaviest.items[0].bytes).text);
    print_owner(&path->heaviest.items[0]);
    putchar('\n');
}

static void print_longest(const spill_scan_path_t *path, int64_t scanned_ms)
{
    if (!path || path->owners.count == 0)
        return;
    const spill_large_owner_t *owner = &path->owners.items[0];
    printf("    longest: %" PRId64 " %s, %s of a document of %s, _id ", owner->length,
           path->map ? "keys" : "elements", spill_size_text(owner->bytes).text,
           spill_size_text(owner->document_bytes).text);
    print_owner(owner);
    printf("\n    lengths: half have %" PRId64 " or fewer, 99 %% %" PRId64 " or fewer",
           path->lengths.p50, path->lengths.p99);
    if (path->threshold > 0)
        printf("; a head of 200 KiB holds %" PRId64, path->threshold);
    putchar('\n');
    for (size_t i = 1; i < path->owners.count && i < OWNERS_SHOWN; i++) {
        printf("    next:    %" PRId64 ", ", path->owners.items[i].length);
        print_owner(&path->owners.items[i]);
        putchar('\n');
    }
    print_heaviest(path);
    print_since(path);
    print_growth(path, scanned_ms);
}

static void print_largest(const spill_scan_result_t *result,
                          const spill_scan_collection_t *collection)
{
    if (collection->largest.count == 0)
        return;
    const spill_large_owner_t *owner = &collection->largest.items[0];
    printf("    largest: %s, %.1f %% of the limit, _id ", spill_size_text(owner->bytes).text,
           per_cent(owner->bytes, result->limits.document_bytes));
    print_owner(owner);
    putchar('\n');
}

/* Print how many tables a server keeps open for the group. */
static void print_tables(const spill_sprawl_group_t *group)
{
    if (group->index_count == 0)
        return;
    printf("    they have %" PRId64 " indexes", group->index_count);
    if (group->index_bytes > 0)
        printf(" of %s", spill_size_text(group->index_bytes).text);
    printf(": %" PRId64 " tables in all; a server keeps each open and in memory\n",
           group->index_count + (int64_t)group->count);
}

static void print_group(const spill_scan_result_t *result, const spill_sprawl_group_t *group)
{
    printf("    %zu collections with the same fields differ by their %s (", group->count,
           spill_sprawl_kind_name(group->kind));
    for (size_t i = 0; i < group->count && i < EXAMPLES_SHOWN; i++) {
        fputs(i ? ", " : "", stdout);
        spill_cli_print_name(result->collections[group->members[i]].name);
    }
    printf("%s)\n    one collection with a field for that would have their %" PRId64
           " documents, %s; %zu collections of at most %" PRId64 "\n",
           group->count > EXAMPLES_SHOWN ? ", ..." : "", group->documents,
           spill_size_text(group->bytes).text, result->collection_count, result->collections_max);
    print_tables(group);
}

static void print_index(const spill_scan_finding_t *finding)
{
    const spill_scan_numbers_t *lengths = &finding->path->lengths;
    fputs("    index ", stdout);
    spill_cli_print_name(finding->index->name);
    printf(": an entry for each element, up to %" PRId64 " of a document and %" PRId64 " in all",
           lengths->max, lengths->sum);
    if (finding->index->bytes >= 0)
        printf("; it has %s", spill_size_text(finding->index->bytes).text);
    putchar('\n');
}

static void print_what(const spill_scan_result_t *result, const spill_scan_finding_t *finding)
{
    const spill_scan_limits_t *limits = &result->limits;
    const char *documents = spill_cli_plural(finding->documents, "document", "documents");
    switch (finding->kind) {
    case SPILL_SCAN_FINDING_ARRAY:
    case SPILL_SCAN_FINDING_MAP:
        printf("    %" PRId64 " %s with more than %" PRId64 " %s or %s of it\n", finding->documents,
               documents, limits->elements,
               finding->kind == SPILL_SCAN_FINDING_MAP ? "keys" : "elements",
               spill_size_text(limits->bytes).text);
        print_longest(finding->path, result->scanned_ms);
        break;
    case SPILL_SCAN_FINDING_PAID:
        printf("    every read of another field of %" PRId64 " %s reads this too: it is %" PRId64
               " %% of them or more\n",
               finding->documents, documents, limits->paid_per_cent);
        break;
    case SPILL_SCAN_FINDING_INDEX:
        if (finding->path && finding->index)
            print_index(finding);
        break;
    case SPILL_SCAN_FINDING_SPRAWL:
        if (finding->group)
            print_group(result, finding->group);
        break;
    default:
        printf("    %" PRId64 " %s larger than half of the limit of %s\n", finding->documents,
               documents, spill_size_text(limits->document_bytes).text);
        print_largest(result, &result->collections[finding->collection]);
        break;
    }
}

static void print_finding(const spill_scan_result_t *result, const spill_scan_finding_t *finding)
{
    printf("%s  %s (%s)  ", finding->critical ? "CRITICAL" : "WARNING",
           spill_scan_finding_name(finding->kind), spill_scan_finding_atlas(finding->kind));
    spill_cli_print_name(finding->group ? finding->group->pattern
                                        : result->collections[finding->collection].name);
    if (finding->path) {
        fputs(": ", stdout);
        spill_cli_print_name(finding->path->path);
    }
    putchar('\n');
    print_what(result, finding);
}

/* ---- collections ----------------------------------------------------------------------------- */

static void print_path(const spill_scan_collection_t *collection, const spill_scan_path_t *path)
{
    char *name = spill_visible_text(path->path);
    printf("  %-28s %9" PRId64 " %7" PRId64 " %7" PRId64 " %7" PRId64 " %9s %5.1f %%\n", name,
           path->lengths.count, path->lengths.p50, path->lengths.p99, path->lengths.max,
           spill_size_text(mean_of(&path->elements)).text,
           per_cent(path->bytes, collection->bytes));
    bson_free(name);
}

static void print_collection(const spill_scan_result_t *result,
                             const spill_scan_collection_t *collection)
{
    putchar('\n');
    spill_cli_print_name(collection->name);
    printf(": %" PRId64 " %s, %s\n", collection->documents,
           spill_cli_plural(collection->documents, "document", "documents"),
           spill_size_text(collection->bytes).text);
    if (collection->documents > 0)
        printf("  document sizes: half %s or less, 99 %% %s, largest %s (%.1f %% of the limit)\n",
               spill_size_text(collection->sizes.p50).text,
               spill_size_text(collection->sizes.p99).text,
               spill_size_text(collection->sizes.max).text,
               per_cent(collection->sizes.max, result->limits.document_bytes));
    if (collection->path_count > 0)
        printf("  %-28s %9s %7s %7s %7s %9s %7s\n", "array", "number", "p50", "p99", "longest",
               "element", "share");
    size_t shown = collection->path_count < PATHS_SHOWN ? collection->path_count : PATHS_SHOWN;
    for (size_t i = 0; i < shown; i++)
        print_path(collection, &collection->paths[i]);
    int64_t more = (int64_t)(collection->path_count - shown) + collection->paths_left_out;
    if (more > 0)
        printf("  and %" PRId64 " more with fewer bytes\n", more);
    if (collection->overflow > 0)
        printf("  %" PRId64 " arrays and documents are of paths beyond the limit of %d\n",
               collection->overflow, SPILL_PATHS_MAX);
}

void spill_cli_print_scan(const spill_scan_result_t *result)
{
    int64_t findings = (int64_t)result->finding_count;
    int64_t collections = (int64_t)result->collection_count;
    printf("%" PRId64 " %s in %" PRId64 " %s, %" PRId64 " %s, %s%s\n", findings,
           spill_cli_plural(findings, "finding", "findings"), collections,
           spill_cli_plural(collections, "collection", "collections"), result->documents,
           spill_cli_plural(result->documents, "document", "documents"),
           spill_size_text(result->bytes).text,
           result->interrupted ? " (interrupted: results up to then)" : "");
    for (size_t i = 0; i < result->finding_count; i++)
        print_finding(result, &result->findings[i]);
    size_t shown = result->collection_count;
    shown = shown < COLLECTIONS_SHOWN ? shown : COLLECTIONS_SHOWN;
    for (size_t i = 0; i < shown; i++)
        print_collection(result, &result->collections[i]);
    if (shown < result->collection_count)
        printf("\nand %zu more collections (--json lists all)\n", result->collection_count - shown);
}

void spill_cli_print_problems(const spill_scan_result_t *result)
{
    fflush(stdout);
    for (size_t i = 0; i < result->problem_count; i++) {
        const spill_scan_problem_t *problem = &result->problems[i];
        char *input = spill_visible_text(problem->input);
        fprintf(stderr, "spillway: %s", input);
        bson_free(input);
        if (problem->place >= 0 && problem->by_line)
            fprintf(stderr, ":%" PRId64, problem->place);
        else if (problem->place >= 0)
            fprintf(stderr, ": byte %" PRId64, problem->place);
        char *text = spill_visible_text(problem->text);
        fprintf(stderr, ": %s\n", text);
        bson_free(text);
    }
    int64_t more = result->problems_all - (int64_t)result->problem_count;
    if (more > 0)
        fprintf(stderr, "spillway: and %" PRId64 " more problems\n", more);
}

void spill_cli_remark_problems(const spill_scan_result_t *result)
{
    int64_t count = result->problems_all;
    if (count > 0)
        fprintf(stderr, "spillway: %" PRId64 " %s in the input; `spillway scan' has the places\n",
                count, spill_cli_plural(count, "problem", "problems"));
}

void spill_cli_show_scan(void *context, const spill_scan_progress_t *progress)
{
    int64_t total = progress->documents_total;
    if (total <= 0 || progress->documents > total) {
        spill_cli_progress_show(context, progress->documents, progress->bytes_done,
                                progress->bytes_total);
        return;
    }
    double seconds = spill_cli_progress_seconds(context);
    double part = (double)progress->documents / (double)total;
    spill_cli_progress_print(
        context, "%" PRId64 " of about %" PRId64 " documents, %.0f/s, %.0f %%, %.0f s left",
        progress->documents, total, (double)progress->documents / seconds, part * 100,
        part > 0 ? seconds / part - seconds : 0);
}
