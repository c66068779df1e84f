/* Print the result of a scan as text for people: findings first. */
#include "cli/scan_options.h"

#include "cli/cli.h"
#include "cli/process.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATHS_SHOWN = 8, OWNERS_SHOWN = 3, COLLECTIONS_SHOWN = 20, EXAMPLES_SHOWN = 3 };

const char *spill_cli_shown_source(const spill_invocation_t *invocation,
                                   const spill_scan_result_t *result)
{
    const char *given = invocation->arguments[0];
    return spill_scan_shown_source(result, spill_cli_names_uri(given) ? NULL : given);
}

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

/* "1 key", "2 elements": of a map or an array. */
static spill_counted_text_t counted_of(bool map, int64_t count)
{
    return map ? spill_counted_text(count, "key", "keys")
               : spill_counted_text(count, "element", "elements");
}

static void print_since(const spill_scan_path_t *path)
{
    const spill_growth_forecast_t *growth = &path->growth_forecast;
    const char *sign = growth->added < 0 ? "" : "+";
    if (growth->elapsed_ms > 0)
        printf("    since:   %s%s in %s days, in all documents\n", sign,
               counted_of(path->map, growth->added).text,
               spill_number_text((double)growth->elapsed_ms / 86400e3).text);
}

/* Print the documents without room, and what to do. Of the largest owners only. */
static void print_full(const spill_scan_path_t *path)
{
    const spill_large_owner_t *full = NULL;
    size_t count = 0;
    for (size_t i = 0; i < path->owners.count; i++) {
        const spill_large_owner_t *owner = &path->owners.items[i];
        if (owner->growth_forecast.limit.elements > 0)
            continue;
        full = full ? full : owner;
        count++;
    }
    if (!full)
        return;
    printf("    full:    ");
    print_owner(full);
    if (count > 1)
        printf(" and %zu more have", count - 1);
    else
        printf(" has");
    printf(" no room for one more %s of the mean size: a write that adds one fails now\n"
           "    to do:   `spillway plan' says what helps%s\n",
           path->map ? "key" : "element",
           path->map ? "" : "; `spillway migrate' makes room in full documents, too");
}

static void print_growth(const spill_scan_path_t *path, int64_t scanned_ms)
{
    const spill_large_owner_t *owner = spill_owners_first_at_limit(&path->owners);
    const spill_growth_forecast_t *growth = &owner->growth_forecast;
    print_full(path);
    if (growth->limit.elements == 0)
        return;
    if (path->owners.items[0].growth_forecast.timed && owner != &path->owners.items[0])
        printf("    its newest element is of %s, when %s a day came\n",
               spill_day_text(path->owners.items[0].growth_forecast.newest_ms).text,
               spill_number_text(path->owners.items[0].growth_forecast.pace.per_day).text);
    printf("    limit:   ");
    if (owner != &path->owners.items[0]) {
        print_owner(owner);
        printf(" first, with ");
    }
    printf("%" PRId64 " more %s", growth->limit.elements,
           strchr(counted_of(path->map, growth->limit.elements).text, ' ') + 1);
    if (growth->timed || growth->elapsed_ms > 0)
        printf(" at %s a day: %s", spill_number_text(growth->pace.per_day).text,
               spill_when_text(&growth->limit, scanned_ms).text);
    putchar('\n');
    spill_no_date_text_t why = spill_no_date_text(growth, &growth->limit);
    if (why.text[0] != '\0')
        printf("             %s\n", why.text);
    spill_later_text_t later = spill_later_text(&path->growth_forecast, path->map);
    if (later.text[0] != '\0')
        printf("             %s\n", later.text);
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

/* Print that an index, not a walk, should find an element. */
static void print_set(const spill_scan_path_t *path)
{
    if (path->set)
        printf("    set:     scalars, each once in its array (checked: %" PRId64 "%s)\n",
               path->set_arrays, path->set_sampled ? ", long ones by a part of their values" : "");
}

static void print_longest(const spill_scan_path_t *path, int64_t scanned_ms)
{
    if (!path || path->owners.count == 0)
        return;
    const spill_large_owner_t *owner = &path->owners.items[0];
    printf("    longest: %s, %s of a document of %s, _id ",
           counted_of(path->map, owner->length).text, spill_size_text(owner->bytes).text,
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
    print_set(path);
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
    printf("    they have %s", spill_counted_text(group->index_count, "index", "indexes").text);
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
    printf("%s)\n    one collection with a field for that would have their %s"
           ", %s; %zu collections of at most %" PRId64 "\n",
           group->count > EXAMPLES_SHOWN ? ", ..." : "",
           spill_counted_text(group->documents, "document", "documents").text,
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
        printf("    %" PRId64 " %s with more than %s or %s of it\n", finding->documents, documents,
               counted_of(finding->kind == SPILL_SCAN_FINDING_MAP, limits->elements).text,
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
    printf("%s%s%s  %s (%s)  %s",
           spill_cli_color(finding->critical ? SPILL_CLI_RED : SPILL_CLI_YELLOW),
           finding->critical ? "CRITICAL" : "WARNING", spill_cli_color(SPILL_CLI_PLAIN),
           spill_scan_finding_name(finding->kind), spill_scan_finding_atlas(finding->kind),
           spill_cli_color(SPILL_CLI_BOLD));
    spill_cli_print_name(finding->group ? finding->group->pattern
                                        : result->collections[finding->collection].name);
    if (finding->path) {
        fputs(": ", stdout);
        spill_cli_print_name(finding->path->path);
    }
    puts(spill_cli_color(SPILL_CLI_PLAIN));
    print_what(result, finding);
}

/* ---- collections ----------------------------------------------------------------------------- */

enum { NUMBERS_COLUMNS = 52, NAME_COLUMNS_MIN = 4, NAME_COLUMNS_MAX = 26 };

/* The width of the first column, so that the numbers fit a narrow terminal. */
static int name_columns(void)
{
    int room = spill_cli_on_terminal() ? spill_cli_terminal_columns() - 2 - NUMBERS_COLUMNS
                                       : NAME_COLUMNS_MAX;
    room = room < NAME_COLUMNS_MAX ? room : NAME_COLUMNS_MAX;
    return room > NAME_COLUMNS_MIN ? room : NAME_COLUMNS_MIN;
}

/* A name that is too long for its column has a line of its own. */
static void print_path(const spill_scan_collection_t *collection, const spill_scan_path_t *path)
{
    char *name = spill_visible_text(path->path);
    int width = name_columns();
    bool fits = (int)strlen(name) <= width;
    if (!fits)
        printf("  %s\n", name);
    printf("  %-*s %9" PRId64 " %7" PRId64 " %7" PRId64 " %7" PRId64 " %9s %5.1f %%\n", width,
           fits ? name : "", path->lengths.count, path->lengths.p50, path->lengths.p99,
           path->lengths.max, spill_size_text(mean_of(&path->elements)).text,
           per_cent(path->bytes, collection->bytes));
    bson_free(name);
}

static void print_collection(const spill_scan_result_t *result,
                             const spill_scan_collection_t *collection)
{
    printf("\n%s", spill_cli_color(SPILL_CLI_BOLD));
    spill_cli_print_name(collection->name);
    printf("%s: %s, %s\n", spill_cli_color(SPILL_CLI_PLAIN),
           spill_counted_text(collection->documents, "document", "documents").text,
           spill_size_text(collection->bytes).text);
    if (collection->documents > 0)
        printf("  sizes: half %s or less, 99 %% %s, largest %s (%.1f %% of the limit)\n",
               spill_size_text(collection->sizes.p50).text,
               spill_size_text(collection->sizes.p99).text,
               spill_size_text(collection->sizes.max).text,
               per_cent(collection->sizes.max, result->limits.document_bytes));
    if (collection->path_count > 0)
        printf("  %-*s %9s %7s %7s %7s %9s %7s\n", name_columns(), "array", "number", "p50", "p99",
               "longest", "element", "share");
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

/* One row for all collections of a sprawl. */
static void print_sprawl(const spill_sprawl_group_t *group)
{
    printf("\n%s", spill_cli_color(SPILL_CLI_BOLD));
    spill_cli_print_name(group->pattern);
    printf("%s: %s of one shape, %s, %s\n", spill_cli_color(SPILL_CLI_PLAIN),
           spill_counted_text((int64_t)group->count, "collection", "collections").text,
           spill_counted_text(group->documents, "document", "documents").text,
           spill_size_text(group->bytes).text);
}

typedef struct listing {
    const spill_scan_result_t *result;
    bool *listed; /* of each collection */
    size_t rows;
    size_t unlisted; /* collections for which there was no row left */
} listing_t;

static const spill_sprawl_group_t *group_of(const spill_scan_result_t *result, size_t collection)
{
    for (size_t i = 0; i < result->sprawl.count; i++) {
        const spill_sprawl_group_t *group = &result->sprawl.groups[i];
        for (size_t j = 0; j < group->count && group->members[j] <= collection; j++)
            if (group->members[j] == collection)
                return group;
    }
    return NULL;
}

/* Print the row of a collection, or of its sprawl, unless it was printed before. */
static void list_collection(listing_t *listing, size_t collection)
{
    if (listing->listed[collection])
        return;
    const spill_sprawl_group_t *group = group_of(listing->result, collection);
    bool room = listing->rows++ < COLLECTIONS_SHOWN;
    listing->listed[collection] = true;
    for (size_t i = 0; group && i < group->count; i++)
        listing->listed[group->members[i]] = true;
    if (!room)
        listing->unlisted += group ? group->count : 1;
    else if (group)
        print_sprawl(group);
    else
        print_collection(listing->result, &listing->result->collections[collection]);
}

/* Those with findings come first, in the order of the findings. */
static void print_collections(const spill_scan_result_t *result)
{
    listing_t listing = {.result = result, .listed = bson_malloc0(result->collection_count + 1)};
    for (size_t i = 0; i < result->finding_count; i++)
        list_collection(&listing, result->findings[i].collection);
    for (size_t i = 0; i < result->collection_count; i++)
        list_collection(&listing, i);
    if (listing.unlisted > 0)
        printf("\nand %s (--json lists all)\n",
               spill_counted_text((int64_t)listing.unlisted, "more collection", "more collections")
                   .text);
    bson_free(listing.listed);
}

/* Does the finding print a forecast with an interval? */
static bool shows_interval(const spill_scan_finding_t *finding)
{
    bool of_array =
        finding->kind == SPILL_SCAN_FINDING_ARRAY || finding->kind == SPILL_SCAN_FINDING_MAP;
    if (!of_array || !finding->path || finding->path->owners.count == 0)
        return false;
    const spill_growth_forecast_t *growth =
        &spill_owners_first_at_limit(&finding->path->owners)->growth_forecast;
    return spill_when_has_interval(growth, &growth->limit);
}

static void print_interval_meaning(const spill_scan_result_t *result)
{
    bool any = false;
    for (size_t i = 0; i < result->finding_count; i++)
        any = any || shows_interval(&result->findings[i]);
    if (any)
        puts(SPILL_INTERVAL_MEANING);
}

/* The next command, and the way without it. The gateway serves arrays only. */
static void print_next(const spill_scan_result_t *result)
{
    bool any = false;
    for (size_t i = 0; i < result->finding_count; i++)
        any = any || result->findings[i].kind == SPILL_SCAN_FINDING_ARRAY;
    if (any)
        puts("\nnext: `spillway plan' proposes a layout for each of these arrays. Without a change "
             "of the\napplication: the gateway `spillway serve' (docs/how-to/run-gateway.md)");
}

void spill_cli_print_scan(const spill_scan_result_t *result, bool next)
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
    print_interval_meaning(result);
    if (next)
        print_next(result);
    print_collections(result);
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
        fprintf(stderr, "spillway: and %" PRId64 " more %s\n", more,
                spill_plural(more, "problem", "problems"));
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
    spill_cli_progress_part(context, progress->documents, total,
                            "%" PRId64 " of about %" PRId64 " documents, %.0f/s",
                            progress->documents, total, (double)progress->documents / seconds);
}
