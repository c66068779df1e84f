#include "gateway/status_page.h"

#include "tools/report/report.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 10 }; /* rows of a table of owners */

/* Light and dark, for a desktop and for a phone. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--pale:#555;--line:#ccc;"
    "--bar:#9cc4e4;--bad:#a40000}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#161616;--pale:#aaa;"
    "--line:#444;--bar:#2c5573;--bad:#ff8a80}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1rem 1.25rem 3rem;max-width:64rem;background:var(--paper);"
    "color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif}\n"
    "h1{font-size:1.5rem;margin:.25rem 0}h2{font-size:1.15rem;margin:1.75rem 0 .25rem}\n"
    "p{margin:.3rem 0}.note,footer{color:var(--pale);font-size:.9rem}a{color:inherit}\n"
    "code{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:.92em;"
    "overflow-wrap:anywhere}\n"
    "ul{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;"
    "margin:1rem 0;padding:0;list-style:none}\n"
    "li{border:1px solid var(--line);border-radius:.4rem;padding:.35rem .8rem}\n"
    "li b{display:block;font-size:1.3rem;line-height:1.3;overflow-wrap:anywhere}"
    "li.bad b{color:var(--bad)}\n"
    "table{border-collapse:collapse;width:100%;font-size:.94rem}\n"
    "th,td{text-align:right;padding:.3rem 0 .3rem .75rem;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-weight:600;color:var(--pale)}\n"
    "th:first-child,td:first-child{text-align:left;padding-left:0}\n"
    ".text{text-align:left;overflow-wrap:anywhere}\n"
    ".bar{background:linear-gradient(var(--bar),var(--bar)) no-repeat left/var(--share) 100%}\n"
    "footer{border-top:1px solid var(--line);margin-top:2rem;padding-top:.5rem}\n"
    "@media(max-width:30rem){body{padding:.75rem .75rem 2rem}table{font-size:.86rem}"
    "th,td{padding-left:.4rem}.mean{display:none}"
    "td:not(:first-child):not(.text){white-space:nowrap}}\n";

/* ---- the parts ------------------------------------------------------------------------------- */

static void print_tile(FILE *to, bool bad, const char *value, const char *label)
{
    fprintf(to, "<li%s><b>%s</b>%s</li>\n", bad ? " class=\"bad\"" : "", value, label);
}

static void print_count(FILE *to, bool bad, int64_t value, const char *label)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    print_tile(to, bad, text, label);
}

/* "3 d 4 h", "5 h 6 min" or "7 min" */
static void print_uptime(FILE *to, int64_t uptime_us)
{
    const int64_t minute = 60000000, hour = 60 * minute, day = 24 * hour;
    char text[48];
    if (uptime_us >= day)
        snprintf(text, sizeof text, "%" PRId64 " d %" PRId64 " h", uptime_us / day,
                 uptime_us % day / hour);
    else if (uptime_us >= hour)
        snprintf(text, sizeof text, "%" PRId64 " h %" PRId64 " min", uptime_us / hour,
                 uptime_us % hour / minute);
    else
        snprintf(text, sizeof text, "%" PRId64 " min", uptime_us / minute);
    print_tile(to, false, text, "since the start");
}

static void print_tiles(FILE *to, spill_metrics_t *metrics, const spill_metrics_state_t *state)
{
    int64_t failures = atomic_load(&metrics->failures),
            overloads = atomic_load(&metrics->overloaded), lost = atomic_load(&state->log->lines);
    fputs("<ul>\n", to);
    print_tile(to, !state->primary, state->primary ? "yes" : "no", "the server has a primary");
    print_count(to, false, state->connections, "connections");
    print_tile(to, false, spill_size_text(state->memory_bytes).text, "held for messages");
    print_count(to, false, spill_activity_adoptions(state->activity), "arrays adopted");
    print_count(to, false, state->spills, "spills to pages");
    print_count(to, failures > 0, failures, "upstream failures");
    print_count(to, overloads > 0, overloads, "refused for memory");
    if (lost > 0)
        print_count(to, true, lost, "lines missing in the log");
    print_uptime(to, state->uptime_us);
    fputs("</ul>\n", to);
}

static void print_duration(FILE *to, const char *class, int64_t duration_us)
{
    const double us_per_ms = 1000;
    if (duration_us == INT64_MAX)
        fprintf(to, "<td%s>over 10 s</td>", class);
    else if (duration_us >= 1000000)
        fprintf(to, "<td%s>%.3g s</td>", class, (double)duration_us / us_per_ms / us_per_ms);
    else
        fprintf(to, "<td%s>%.3g ms</td>", class, (double)duration_us / us_per_ms);
}

static void print_latencies(FILE *to, spill_metrics_t *metrics)
{
    static const char *const labels[] = {[SPILL_METRICS_RELAYED] = "relayed unchanged",
                                         [SPILL_METRICS_READ] = "reads of served arrays",
                                         [SPILL_METRICS_WRITE] = "writes to served arrays",
                                         [SPILL_METRICS_OTHER] = "other on served collections"};
    fputs(
        "<h2>Latency by class</h2>\n<table><thead><tr><th>commands</th><th>number</th>"
        "<th class=\"mean\">mean</th><th>50 %</th><th>95 %</th><th>99 %</th></tr></thead><tbody>\n",
        to);
    for (spill_metrics_class_t class = 0; class < SPILL_METRICS_CLASSES; class ++) {
        spill_metrics_summary_t summary = spill_metrics_summary(metrics, class);
        fprintf(to, "<tr><td>%s</td><td>%" PRId64 "</td>", labels[class], summary.count);
        if (summary.count > 0) {
            print_duration(to, " class=\"mean\"", summary.mean_us);
            print_duration(to, "", summary.median_us);
            print_duration(to, "", summary.later_us);
            print_duration(to, "", summary.late_us);
        } else {
            fputs("<td class=\"mean\"></td><td></td><td></td><td></td>", to);
        }
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table>\n<p class=\"note\">Since the start, with the server's time. 50, 95 and "
          "99 % of the commands took at most this long.</p>\n",
          to);
}

/* What was refused, if the refusal has no operation. The first row that fits counts. */
static const struct {
    const char *command; /* NULL: any */
    int code;            /* 0: any */
    const char *text;
} unnamed_operations[] = {
    {"getMore", 43, "a cursor that this gateway does not have"},
    {NULL, 67, "a unique, text, geospatial or TTL index"},
    {"create", 0, "a view of a served collection"},
    {"renameCollection", 0, "a collection with a definition"},
    {"aggregate", 0, "a pipeline that uses the array"},
    {"distinct", 0, "elements of the array"},
    {NULL, 2, "a statement that is not valid"},
    {NULL, 13, "a change of a page collection"},
};

/* In words if the operation says no more than the command. */
static const char *operation_text(const spill_activity_refusal_row_t *row)
{
    if (strcmp(row->operation, "other") == 0)
        return "a field or a path of the command, such as a projection of elements";
    if (row->operation[0] != '\0' && strcmp(row->operation, row->command) != 0)
        return row->operation;
    for (size_t i = 0; i < sizeof unnamed_operations / sizeof *unnamed_operations; i++)
        if ((unnamed_operations[i].code == 0 || unnamed_operations[i].code == row->code) &&
            (!unnamed_operations[i].command ||
             strcmp(unnamed_operations[i].command, row->command) == 0))
            return unnamed_operations[i].text;
    return "the whole command, or the field spill";
}

static void print_errors(FILE *to, spill_activity_t *activity)
{
    int64_t all = 0;
    for (spill_activity_error_t class = 0; class < SPILL_ACTIVITY_ERRORS; class ++)
        all += spill_activity_errors(activity, class);
    fputs("<h2>Errors by class</h2>\n", to);
    if (all == 0) {
        fputs("<p>No command on a served collection failed.</p>\n", to);
        return;
    }
    fputs("<table><thead><tr><th>class</th><th>number</th></tr></thead><tbody>\n", to);
    for (spill_activity_error_t class = 0; class < SPILL_ACTIVITY_ERRORS; class ++)
        if (spill_activity_errors(activity, class) > 0)
            fprintf(to, "<tr><td>%s</td><td>%" PRId64 "</td></tr>\n",
                    spill_activity_error_name(class), spill_activity_errors(activity, class));
    fputs("</tbody></table>\n<p class=\"note\">docs/how-to/run-gateway.md explains the "
          "classes.</p>\n",
          to);
}

static void print_refusals(FILE *to, spill_activity_t *activity)
{
    spill_activity_refusal_row_t rows[SPILL_ACTIVITY_REFUSALS];
    size_t count = spill_activity_refusals(activity, rows);
    fputs("<h2>Refusals by reason</h2>\n", to);
    if (count == 0) {
        fputs("<p>Nothing was refused on served collections.</p>\n", to);
        return;
    }
    fputs("<table><thead><tr><th>command</th><th class=\"text\">operation</th><th>code</th>"
          "<th>number</th></tr></thead><tbody>\n",
          to);
    for (size_t i = 0; i < count; i++) {
        fputs("<tr><td>", to);
        spill_html_text(to, rows[i].command);
        fputs("</td><td class=\"text\">", to);
        spill_html_text(to, operation_text(&rows[i]));
        fprintf(to, "</td><td>%d</td><td>%" PRId64 "</td></tr>\n", rows[i].code, rows[i].count);
    }
    fputs("</tbody></table>\n<p class=\"note\">docs/reference/gateway.md explains the codes. An "
          "installation has it in share/doc/spillway.</p>\n",
          to);
}

static void print_owners(FILE *to, spill_activity_t *activity)
{
    spill_activity_owner_row_t *rows = bson_malloc(SPILL_ACTIVITY_OWNERS * sizeof *rows);
    size_t count = spill_activity_owners(activity, rows);
    bool shown = spill_activity_shows_owners(activity);
    fputs("<h2>Busiest owners</h2>\n", to);
    if (count == 0)
        fputs("<p>No command has used a managed array yet.</p>\n", to);
    else
        fprintf(to,
                "<table><thead><tr><th>collection</th><th class=\"text\">%s</th><th>commands</th>"
                "</tr></thead><tbody>\n",
                shown ? "_id" : "hash of the _id");
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        int64_t most = rows[0].commands > 0 ? rows[0].commands : 1;
        fputs("<tr><td class=\"text\">", to);
        spill_html_text(to, rows[i].collection);
        fprintf(to, "</td><td class=\"text bar\" style=\"--share:%" PRId64 "%%\"><code>",
                rows[i].commands * 100 / most);
        spill_html_text(to, rows[i].owner);
        fprintf(to, "</code></td><td>%" PRId64 "</td></tr>\n", rows[i].commands);
    }
    if (count > 0)
        fputs("</tbody></table>\n", to);
    fprintf(to,
            "<p class=\"note\">Pushes to managed arrays and reads of their pages; the counts are "
            "halved every 5 minutes. %s</p>\n",
            shown ? "--show-owners shows the _ids: treat this page as data of users."
                  : "The hash hides the _id, and changes when the gateway starts again; "
                    "--show-owners shows the _id instead.");
    bson_free(rows);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void print_page(FILE *to, spill_metrics_t *metrics, const spill_metrics_state_t *state)
{
    enum { REFRESH_SECONDS = 10 };
    fprintf(to,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
            "<meta http-equiv=\"refresh\" content=\"%d\">\n<title>Spillway gateway</title>\n"
            "<style>\n%s</style></head><body>\n<h1>Spillway gateway</h1>\n<p>",
            (int)REFRESH_SECONDS, style);
    spill_html_name(to, state->listen);
    fputs(" in front of ", to);
    spill_html_name(to, state->upstream);
    fputs("</p>\n", to);
    print_tiles(to, metrics, state);
    print_latencies(to, metrics);
    print_refusals(to, state->activity);
    print_errors(to, state->activity);
    print_owners(to, state->activity);
    fputs("<footer><p>The same figures for Prometheus: <a href=\"/metrics\">/metrics</a>. For "
          "load balancers: <a href=\"/healthz\">/healthz</a>.</p></footer>\n</body></html>\n",
          to);
}

void spill_status_page_print(spill_metrics_t *metrics, const spill_metrics_state_t *state,
                             spill_buffer_t *out)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return;
    print_page(to, metrics, state);
    fclose(to);
    spill_buffer_append(out, text, size);
    free(text);
}
