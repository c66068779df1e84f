/* The cards of a report: problems, each with what to do. */
#include "tools/report/axis.h"
#include "tools/report/report.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

enum { EXAMPLES = 5 };

/* Begin a part that phones fold. The caller closes it: </details>. */
static void put_fold(FILE *to, const char *title)
{
    fprintf(to, "<details class=\"fold\"><summary>%s</summary>\n", title);
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void put_owner_name(FILE *to, const spill_large_owner_t *owner)
{
    if (owner->value.data)
        spill_html_value(to, &owner->value);
    else
        fprintf(to, "the document at %" PRId64, owner->place);
}

/* Is there a forecast, which gives no date at all? */
static bool is_beyond(const spill_growth_forecast_t *growth, const spill_when_t *when)
{
    return when->elements > 0 && (growth->timed || growth->elapsed_ms > 0) &&
           when->likely_ms == SPILL_WHEN_UNKNOWN && when->earliest_ms == SPILL_WHEN_UNKNOWN;
}

/* Does put_when print an interval? */
static bool has_interval(const spill_growth_forecast_t *growth, const spill_when_t *when)
{
    return spill_when_has_interval(growth, when) && when->likely_ms != SPILL_WHEN_UNKNOWN;
}

/* The date, or the number of elements still to come. */
static void put_when(FILE *to, const char *label, const spill_growth_forecast_t *growth,
                     const spill_when_t *when, int64_t scanned_ms)
{
    char far[64];
    if (when->elements == 0) {
        spill_html_cell(to, label, "reached");
    } else if (is_beyond(growth, when)) {
        spill_html_cell(to, label, "-");
    } else if ((growth->timed || growth->elapsed_ms > 0) && when->likely_ms == SPILL_WHEN_UNKNOWN) {
        snprintf(far, sizeof far, "not before %s", spill_day_text(when->earliest_ms).text);
        spill_html_cell(to, label, far);
    } else if (growth->timed || growth->elapsed_ms > 0) {
        spill_html_cell(to, label, spill_when_text(when, scanned_ms).text);
    } else {
        snprintf(far, sizeof far, "in %s %s", spill_count_text((double)when->elements).text,
                 spill_plural(when->elements, "element", "elements"));
        spill_html_cell(to, label, far);
    }
}

/* The same for the threshold, which is elements or bytes: 0 more elements, or its bytes. */
static void put_threshold(FILE *to, const spill_large_owner_t *owner, int64_t bytes_max,
                          int64_t scanned_ms)
{
    char text[64];
    const spill_when_t *when = &owner->growth_forecast.threshold;
    snprintf(text, sizeof text, "%s reached", spill_size_text(bytes_max).text);
    if (when->elements > 0 && owner->bytes > bytes_max)
        spill_html_cell(to, "Threshold", text);
    else
        put_when(to, "Threshold", &owner->growth_forecast, when, scanned_ms);
}

static void put_owners(const spill_report_t *report, const spill_scan_path_t *path)
{
    FILE *to = report->to;
    const int64_t scanned_ms = report->result->scanned_ms;
    const int64_t bytes_max = report->result->limits.bytes;
    const char *length = path->map ? "Keys" : "Elements";
    bool beyond = false, intervals = false;
    put_fold(to, "The largest documents");
    fprintf(to,
            "<table><thead><tr><th>Largest, by _id</th><th>%s</th>"
            "<th>Bytes</th><th>Document</th><th>Threshold</th><th>Document full</th></tr></thead>"
            "<tbody>\n",
            length);
    for (size_t i = 0; i < path->owners.count && i < SPILL_REPORT_OWNERS; i++) {
        const spill_large_owner_t *owner = &path->owners.items[i];
        fputs("<tr><td>", to);
        put_owner_name(to, owner);
        fputs("</td>", to);
        spill_html_cell(to, length, spill_count_text((double)owner->length).text);
        spill_html_cell(to, "Bytes", spill_size_text(owner->bytes).text);
        spill_html_cell(to, "Document", spill_size_text(owner->document_bytes).text);
        const bool below = owner->bytes <= bytes_max;
        put_threshold(to, owner, bytes_max, scanned_ms);
        put_when(to, "Document full", &owner->growth_forecast, &owner->growth_forecast.limit,
                 scanned_ms);
        beyond = beyond ||
                 (below && is_beyond(&owner->growth_forecast, &owner->growth_forecast.threshold)) ||
                 is_beyond(&owner->growth_forecast, &owner->growth_forecast.limit);
        intervals =
            intervals ||
            (below && has_interval(&owner->growth_forecast, &owner->growth_forecast.threshold)) ||
            has_interval(&owner->growth_forecast, &owner->growth_forecast.limit);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table>\n", to);
    if (beyond)
        fputs("<p class=\"names\">-: no date. It is further ahead than the known past is long, or "
              "there are too few elements to learn from. Scan again when there are more days of "
              "data; `spillway scan' prints how many are needed.</p>\n",
              to);
    if (intervals)
        fputs("<p class=\"names\">" SPILL_INTERVAL_MEANING "</p>\n", to);
    fputs("</details>\n", to);
}

static void put_largest(const spill_report_t *report, const spill_scan_collection_t *collection)
{
    FILE *to = report->to;
    char share[16];
    put_fold(to, "The largest documents");
    fputs("<table><thead><tr><th>Largest, by _id</th><th>Bytes</th>"
          "<th>Of the limit</th></tr></thead><tbody>\n",
          to);
    for (size_t i = 0; i < collection->largest.count && i < SPILL_REPORT_OWNERS; i++) {
        const spill_large_owner_t *owner = &collection->largest.items[i];
        fputs("<tr><td>", to);
        put_owner_name(to, owner);
        snprintf(share, sizeof share, "%.1f %%",
                 100.0 * (double)owner->bytes / (double)report->result->limits.document_bytes);
        fputs("</td>", to);
        spill_html_cell(to, "Bytes", spill_size_text(owner->bytes).text);
        spill_html_cell(to, "Of the limit", share);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></details>\n", to);
}

/* ---- what to do ------------------------------------------------------------------------------ */

/* The options of the scan that the plan needs as well, where they are not the default. */
static void put_limits(const spill_report_t *report)
{
    const spill_scan_limits_t *limits = &report->result->limits;
    const struct {
        const char *option;
        int64_t value, usual;
    } options[] = {
        {"max-elements", limits->elements, SPILL_SCAN_ELEMENTS},
        {"max-bytes", limits->bytes, SPILL_SCAN_BYTES},
        {"document-limit", limits->document_bytes, SPILL_SCAN_DOCUMENT_LIMIT},
        {"max-share", limits->paid_per_cent, SPILL_SCAN_PAID_PER_CENT},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].value != options[i].usual)
            fprintf(report->to, " <span>--%s</span> %" PRId64, options[i].option, options[i].value);
}

/*
 * The command that follows, with the source as an argument of a shell. A connection string may have
 * a password, so it stays in a file.
 */
static void put_commands(const spill_report_t *report, const char *command)
{
    FILE *to = report->to;
    const spill_scan_result_t *result = report->result;
    /* The source of a scan of a server is "HOST:PORT/DATABASE". */
    bool server = result->qualified && strchr(report->source, ':') &&
                  result->collection_count > 0 && result->collections[0].input &&
                  strcmp(result->collections[0].input, report->source) == 0;
    fputs("<pre>spillway plan ", to);
    if (server) {
        fputs("@server.uri", to);
    } else {
        char *quoted = spill_shell_word(report->source);
        spill_html_text(to, quoted);
        bson_free(quoted);
    }
    put_limits(report);
    fputs(" <span>--output</span> plan.json\n", to);
    if (command)
        fprintf(to, "spillway %s @server.uri plan.json", command);
    fputs("</pre>\n", to);
    if (command || server)
        fprintf(to, "<p class=\"names\">server.uri is a file with the connection string.%s</p>\n",
                command ? " The second command only prints what it would do; add --execute to act."
                        : "");
    if (command)
        fputs("<p class=\"names\">Without a change of the application: the gateway "
              "<code>spillway serve</code> (docs/how-to/run-gateway.md).</p>\n",
              to);
}

static const spill_plan_item_t *item_of(const spill_plan_t *plan, const spill_scan_path_t *path)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].path == path)
            return &plan->items[i];
    return NULL;
}

static void put_texts(FILE *to, const spill_plan_texts_t *texts, const char *before)
{
    for (size_t i = 0; i < texts->count; i++) {
        fprintf(to, "<li>%s", before);
        spill_html_text(to, texts->at[i]);
        fputs("</li>\n", to);
    }
}

static void put_savings(FILE *to, const spill_plan_item_t *item)
{
    fprintf(to, "<li>An append to the largest rewrites %s now, then at most %s; ",
            spill_size_text(item->bytes_now).text,
            spill_size_text(item->bytes_then + item->element_then).text);
    fprintf(to, "a query for its other fields reads %s now, then at most %s.</li>\n",
            spill_size_text(item->bytes_now).text, spill_size_text(item->bytes_then).text);
}

/* What a person reads who wants to know more. */
static void put_others(FILE *to, const spill_plan_item_t *item)
{
    if (!item->others && item->alternatives.count == 0 && !item->detection)
        return;
    put_fold(to, "Other layouts, and how to check this");
    fputs("<ul>\n", to);
    if (item->others) {
        fputs("<li>", to);
        spill_html_text(to, item->others);
        fputs("</li>\n", to);
    }
    put_texts(to, &item->alternatives, "Or ");
    fputs("</ul>\n", to);
    if (item->detection) {
        fputs("<p>To check it in the shell:</p><pre>", to);
        spill_html_text(to, item->detection);
        fputs("</pre>\n", to);
    }
    fputs("</details>\n", to);
}

static void put_item(const spill_report_t *report, const spill_plan_item_t *item)
{
    FILE *to = report->to;
    fputs("<h4>What to do</h4>\n", to);
    put_commands(report, item->migrate ? "migrate" : NULL);
    fputs("<ul>\n", to);
    put_texts(to, &item->why, "");
    if (item->possible && item->bytes_then < item->bytes_now)
        put_savings(to, item);
    if (item->possible)
        fputs("<li>The <dfn>head</dfn> is the document that keeps some of the elements; "
              "<dfn>pages</dfn> are documents with the others. All are bounded.</li>\n",
              to);
    fputs("</ul>\n", to);
    put_others(to, item);
}

/* ---- findings -------------------------------------------------------------------------------- */

static void put_array(const spill_report_t *report, const spill_scan_finding_t *finding)
{
    FILE *to = report->to;
    const spill_scan_path_t *path = finding->path;
    const spill_scan_limits_t *limits = &report->result->limits;
    const char *what = spill_plural(limits->elements, path->map ? "key" : "element",
                                    path->map ? "keys" : "elements");
    fprintf(to, "<p>%s %s more than ", spill_count_text((double)finding->documents).text,
            spill_plural(finding->documents, "document has", "documents have"));
    fprintf(to, "%s %s or ", spill_count_text((double)limits->elements).text, what);
    fprintf(to, "%s of it. Half of all %s have ", spill_size_text(limits->bytes).text,
            path->map ? "maps" : "arrays");
    fprintf(to, "%s or fewer, ", spill_count_text((double)path->lengths.p50).text);
    fprintf(to, "99 %% have %s or fewer, the longest has ",
            spill_count_text((double)path->lengths.p99).text);
    fprintf(to, "%s.", spill_count_text((double)path->lengths.max).text);
    if (path->set)
        fprintf(to, " The elements are scalars, and each occurs once in its array (%s checked).",
                spill_count_text((double)path->set_arrays).text);
    spill_later_text_t later = spill_later_text(&path->growth_forecast, path->map);
    if (later.text[0] != '\0')
        fprintf(to, " A%s.", later.text + 1); /* "About" */
    if (path->growth_forecast.elapsed_ms > 0)
        fprintf(to, " %+" PRId64 " %s come in %s days.", path->growth_forecast.added,
                path->map
                    ? spill_plural(path->growth_forecast.added, "key has", "keys have")
                    : spill_plural(path->growth_forecast.added, "element has", "elements have"),
                spill_number_text((double)path->growth_forecast.elapsed_ms / 86400e3).text);
    fputs("</p>\n", to);
}

static void put_index(const spill_report_t *report, const spill_scan_finding_t *finding)
{
    FILE *to = report->to;
    const spill_scan_numbers_t *lengths = &finding->path->lengths;
    char *key = bson_as_relaxed_extended_json(finding->index->key, NULL);
    fputs("<p>The index ", to);
    spill_html_name(to, finding->index->name);
    fputs(", ", to);
    spill_html_name(to, key ? key : "?");
    bson_free(key);
    fprintf(to, ", has an entry for each element: up to %s of a document, ",
            spill_count_text((double)lengths->max).text);
    fprintf(to, "%s in all", spill_count_text((double)lengths->sum).text);
    if (finding->index->bytes >= 0)
        fprintf(to, ", in %s", spill_size_text(finding->index->bytes).text);
    fputs(". Inserting or dropping such a document changes as many entries. Drop the index if no "
          "query "
          "needs it. Otherwise bound the array: an index of pages has as many entries, but few for "
          "each document.</p>\n",
          to);
}

static void put_sprawl(const spill_report_t *report, const spill_sprawl_group_t *group)
{
    FILE *to = report->to;
    const spill_scan_result_t *result = report->result;
    fprintf(to, "<p>%zu collections with the same fields differ by their %s: ", group->count,
            spill_sprawl_kind_name(group->kind));
    for (size_t i = 0; i < group->count && i < EXAMPLES; i++) {
        fputs(i ? ", " : "", to);
        spill_html_name(to, result->collections[group->members[i]].name);
    }
    fprintf(to, "%s. There are %zu collections of at most %" PRId64 ".</p>\n",
            group->count > EXAMPLES ? " and others" : "", result->collection_count,
            result->collections_max);
    if (group->index_count > 0) {
        fprintf(to, "<p>They have %s %s", spill_count_text((double)group->index_count).text,
                spill_plural(group->index_count, "index", "indexes"));
        if (group->index_bytes > 0)
            fprintf(to, " of %s", spill_size_text(group->index_bytes).text);
        fprintf(to, ": %s tables in all. A server keeps each open and in memory.</p>\n",
                spill_count_text((double)group->index_count + (double)group->count).text);
    }
    fputs("<h4>What to do</h4>\n", to);
    put_commands(report, "consolidate");
    fprintf(to,
            "<ul><li>Merge them into one collection, with a field for the "
            "identifier: it has their %s %s, ",
            spill_count_text((double)group->documents).text,
            spill_plural(group->documents, "document", "documents"));
    fprintf(to, "%s, with one set of indexes that begin with that field.</li></ul>\n",
            spill_size_text(group->bytes).text);
}

/* `path`: the array or map that is most of the largest ones, or NULL. */
static void put_documents(const spill_report_t *report, const spill_scan_finding_t *finding,
                          const spill_scan_path_t *path)
{
    FILE *to = report->to;
    fprintf(to, "<p>%s %s larger than half of the limit of ",
            spill_count_text((double)finding->documents).text,
            spill_plural(finding->documents, "document is", "documents are"));
    fprintf(to, "%s.%s</p>\n", spill_size_text(report->result->limits.document_bytes).text,
            path ? path->map ? " This map is most of the largest."
                             : " This array is most of the largest."
                 : "");
    if (path)
        return;
    fputs("<h4>What to do</h4><ul><li>Find out which array or map is most of these documents: "
          "if it grows, it has a card of its own. A store for files suits files and texts of "
          "this size better.</li></ul>\n",
          to);
    put_largest(report, &report->result->collections[finding->collection]);
}

static void put_finding(const spill_report_t *report, const spill_report_card_t *card,
                        const spill_scan_finding_t *finding)
{
    FILE *to = report->to;
    switch (finding->kind) {
    case SPILL_SCAN_FINDING_ARRAY:
    case SPILL_SCAN_FINDING_MAP:
        if (finding->path)
            put_array(report, finding);
        break;
    case SPILL_SCAN_FINDING_PAID:
        fprintf(to,
                "<p>Every read of another field of %s %s reads this too: it is %" PRId64
                " %% of them or more.</p>\n",
                spill_count_text((double)finding->documents).text,
                spill_plural(finding->documents, "document", "documents"),
                report->result->limits.paid_per_cent);
        break;
    case SPILL_SCAN_FINDING_INDEX:
        if (finding->path && finding->index)
            put_index(report, finding);
        break;
    case SPILL_SCAN_FINDING_SPRAWL:
        if (finding->group)
            put_sprawl(report, finding->group);
        break;
    default:
        put_documents(report, finding, card->path);
        break;
    }
}

/* ---- cards ----------------------------------------------------------------------------------- */

void spill_report_place(const spill_report_t *report, const spill_report_card_t *card)
{
    if (card->group)
        spill_html_name(report->to, card->group->pattern);
    else
        spill_html_place(report->to, report->result->collections[card->collection].name,
                         card->path ? card->path->path : NULL);
}

/* Atlas has one name for several kinds. */
static void put_names(const spill_report_t *report, const spill_report_card_t *card)
{
    FILE *to = report->to;
    const char *atlas = NULL;
    fputs("<p class=\"names\">", to);
    for (size_t i = 0; i < card->count; i++) {
        const spill_scan_finding_t *finding = card->findings[i];
        const char *name = spill_scan_finding_atlas(finding->kind);
        fprintf(to, "%s%s", i ? " &middot; " : "", spill_scan_finding_name(finding->kind));
        if (!atlas || strcmp(atlas, name) != 0)
            fprintf(to, " (MongoDB Atlas: %s)", name);
        atlas = name;
    }
    fputs("</p>\n", to);
}

static void put_card(const spill_report_t *report, size_t index)
{
    FILE *to = report->to;
    const spill_report_card_t *card = &report->cards[index];
    const spill_plan_item_t *item = card->path ? item_of(report->plan, card->path) : NULL;
    fprintf(to, "<article id=\"card-%zu\" class=\"%s\">\n<h3><span class=\"badge\">%s</span> ",
            index + 1, card->critical ? "critical" : "warning",
            card->critical ? "Critical" : "Warning");
    spill_report_place(report, card);
    fputs("</h3>\n", to);
    put_names(report, card);
    for (size_t i = 0; i < card->count; i++)
        put_finding(report, card, card->findings[i]);
    if (card->left_out > 0)
        fprintf(to, "<p>%zu more are in the scan's JSON.</p>\n", card->left_out);
    if (item)
        put_item(report, item);
    if (card->path) {
        put_owners(report, card->path);
        if (index < SPILL_REPORT_PLOTTED) {
            put_fold(to, "Plots");
            spill_report_path_figures(report, card->path);
            fputs("</details>\n", to);
        }
    }
    fputs("</article>\n", to);
}

void spill_report_problems(const spill_report_t *report)
{
    FILE *to = report->to;
    fputs("<section id=\"problems\"><h2>Problems</h2>\n", to);
    if (report->card_count == 0)
        fputs("<p>None: no array and no map is over a threshold and differs in length, no "
              "document is over half of the limit, and no collections differ only by an "
              "identifier.</p>\n",
              to);
    for (size_t i = 0; i < report->card_count && i < SPILL_REPORT_CARDS; i++)
        put_card(report, i);
    if (report->card_count > SPILL_REPORT_CARDS)
        fprintf(to, "<p>%zu more are in the scan's JSON.</p>\n",
                report->card_count - SPILL_REPORT_CARDS);
    fputs("</section>\n", to);
}
