/* Pictures: ticks on axes, and the SVG that gnuplot makes of a script as part of a page. */
#include "tools/report/svg.h"

#include "tools/report/report.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- axes ------------------------------------------------------------------------------------ */

enum { LOG_MARKS_MAX = 7, LINEAR_STEPS = 5, TIME_MARKS_MAX = 4 };

#define THIN_SPACE "\u00A0"

spill_count_text_t spill_count_text(double count)
{
    static const char *const units[] = {"", "M", "G", "T"};
    spill_count_text_t text;
    size_t unit = 0;
    while (count >= 1e6 && unit < 3)
        count /= unit++ == 0 ? 1e6 : 1e3;
    if (unit > 0)
        snprintf(text.text, sizeof text.text, "%.3g" THIN_SPACE "%s", count, units[unit]);
    else if (count >= 1000)
        snprintf(text.text, sizeof text.text, "%d" THIN_SPACE "%03d", (int)count / 1000,
                 (int)count % 1000);
    else
        snprintf(text.text, sizeof text.text, "%.3g", count);
    return text;
}

/* ---- logarithmic ----------------------------------------------------------------------------- */

/* Powers of ten; if there are few, also twice and five times these. */
static void put_log(FILE *script, char axis, double least, double most, bool bytes)
{
    static const double parts[] = {1, 2, 5};
    double span = log10(most / least);
    int step = (int)(span / LOG_MARKS_MAX) + 1, first = (int)floor(log10(least));
    size_t fine = span < 2 ? 3 : 1;
    const char *before = "";
    fprintf(script, "set logscale %c 10\nset %ctics (", axis, axis);
    for (int power = first > 0 ? first : 0; pow(10, power) <= most; power += step)
        for (size_t i = 0; i < fine; i++) {
            double value = parts[i] * pow(10, power);
            if (value < least || value > most)
                continue;
            fprintf(script, "%s'%s' %g", before,
                    bytes ? spill_size_text((int64_t)value).text : spill_count_text(value).text,
                    value);
            before = ", ";
        }
    fputs(")\n", script);
}

void spill_axis_log(FILE *script, char axis, double least, double most)
{
    put_log(script, axis, least, most, false);
}

void spill_axis_log_bytes(FILE *script, char axis, double least, double most)
{
    put_log(script, axis, least, most, true);
}

/* ---- linear ---------------------------------------------------------------------------------- */

void spill_axis_linear(FILE *script, char axis, double top)
{
    double step = pow(10, floor(log10(top / LINEAR_STEPS)));
    double steps = top / step;
    step *= steps > 5 * LINEAR_STEPS   ? 10
            : steps > 2 * LINEAR_STEPS ? 5
            : steps > LINEAR_STEPS     ? 2
                                       : 1;
    fprintf(script, "set %ctics (", axis);
    for (int i = 0; i * step <= top * (1 + 1e-9); i++)
        fprintf(script, "%s'%s' %.15g", i ? ", " : "", spill_count_text(i * step).text, i * step);
    fputs(")\n", script);
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The distance between ticks: months, or seconds. */
typedef struct pace {
    int months;
    int64_t seconds;
    const char *format;
} pace_t;

static const pace_t paces[] = {
    {0, 60, "%H:%M"},          {0, 600, "%H:%M"},         {0, 3600, "%H:%M"},
    {0, 10800, "%m-%d %H:%M"}, {0, 43200, "%m-%d %H:%M"}, {0, 86400, "%Y-%m-%d"},
    {0, 172800, "%Y-%m-%d"},   {0, 604800, "%Y-%m-%d"},   {1, 2629746, "%Y-%m"},
    {3, 7889238, "%Y-%m"},     {6, 15778476, "%Y-%m"},    {12, 31556952, "%Y"},
    {24, 63113904, "%Y"},      {60, 157784760, "%Y"},     {120, 315569520, "%Y"},
    {600, 1577847600, "%Y"},   {1200, 3155695200, "%Y"}};

static const pace_t *pace_of(int64_t seconds)
{
    size_t at = 0, last = sizeof paces / sizeof paces[0] - 1;
    while (at < last && seconds / paces[at].seconds > TIME_MARKS_MAX)
        at++;
    return &paces[at];
}

/* The first tick at or after that second. */
static int64_t first_tick(const pace_t *pace, int64_t from)
{
    time_t second = (time_t)from;
    struct tm parts;
    if (pace->months == 0)
        return (from + pace->seconds - 1) / pace->seconds * pace->seconds;
    if (!gmtime_r(&second, &parts))
        return from;
    int month = parts.tm_year * 12 + parts.tm_mon;
    month = (month + pace->months) / pace->months * pace->months;
    struct tm start = {.tm_year = month / 12, .tm_mon = month % 12, .tm_mday = 1};
    return (int64_t)timegm(&start);
}

static int64_t next_tick(const pace_t *pace, int64_t tick)
{
    return first_tick(pace, pace->months == 0 ? tick + pace->seconds : tick + 1);
}

void spill_axis_time(FILE *script, int64_t from_ms, int64_t to_ms)
{
    int64_t from = from_ms / 1000, to = to_ms / 1000;
    const pace_t *pace = pace_of(to - from);
    const char *before = "";
    fputs("set xtics (", script);
    for (int64_t tick = first_tick(pace, from); tick <= to; tick = next_tick(pace, tick)) {
        char text[32] = "?";
        struct tm parts;
        time_t second = (time_t)tick;
        if (gmtime_r(&second, &parts))
            strftime(text, sizeof text, pace->format, &parts);
        fprintf(script, "%s'%s' %" PRId64, before, text, tick);
        before = ", ";
    }
    fputs(")\n", script);
}

/* ---- the picture ----------------------------------------------------------------------------- */

spill_code_t spill_svg_begin(spill_text_t *script, int height, spill_error_t *error)
{
    SPILL_TRY(spill_text_open(script, error));
    fprintf(script->to,
            "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,15' "
            "background '#ffffff'\n"
            "set encoding utf8\n"
            "set datafile separator '\\t'\n"
            "set border 3 linecolor rgb '#444444'\n"
            "set tics nomirror out scale 0.6 textcolor rgb '#111111'\n"
            "set grid ytics linetype 1 linewidth 0.7 linecolor rgb '#dddddd'\n"
            "unset key\n",
            SPILL_SVG_WIDTH, height);
    return SPILL_OK;
}

/* The place of the text, or the end. */
static const char *find_text(const char *at, const char *end, const char *text)
{
    const char *found = memmem(at, (size_t)(end - at), text, strlen(text));
    return found ? found : end;
}

static bool begins(const char *at, const char *end, const char *text)
{
    return (size_t)(end - at) >= strlen(text) && memcmp(at, text, strlen(text)) == 0;
}

/* The end of what must be skipped at `at`; `at` itself if nothing is. */
static const char *end_of_skipped(const char *at, const char *end)
{
    static const char *const pairs[][2] = {{"<title>", "</title>"},
                                           {"<desc>", "</desc>"},
                                           {"<defs>", "</defs>"},
                                           {" id=\"", "\""},
                                           {" xmlns:xlink=\"", "\""}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t opening = strlen(pairs[i][0]);
        if (!begins(at, end, pairs[i][0]))
            continue;
        const char *close = find_text(at + opening, end, pairs[i][1]);
        return close < end ? close + strlen(pairs[i][1]) : end;
    }
    return at;
}

/* Skip titles, unused markers, and ids that every picture would repeat. */
static void put_stripped(const char *at, const char *end, FILE *to)
{
    while (at < end) {
        const char *after = end_of_skipped(at, end);
        if (after == at)
            putc(*at++, to);
        at = after > at ? after : at;
    }
}

static spill_code_t put_embedded(const spill_buffer_t *out, const char *label, FILE *to,
                                 spill_error_t *error)
{
    static const char opening[] = "<svg", closing[] = "</svg>";
    const char *data = (const char *)out->data, *end = data + out->size;
    const char *from = find_text(data, end, opening);
    const char *until = find_text(from, end, closing);
    if (until == end)
        return spill_fail(error, SPILL_IO, "gnuplot wrote no picture");
    fprintf(to, "%s role=\"img\" aria-label=\"", opening);
    spill_html_text(to, label);
    fputs("\"", to);
    put_stripped(from + strlen(opening), until, to);
    fprintf(to, "%s\n", closing);
    return SPILL_OK;
}

spill_code_t spill_svg_end(spill_text_t *script, const char *label, FILE *to, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t out = SPILL_BUFFER_INIT;
    SPILL_TRY(spill_text_close(script, error));
    SPILL_TRY(spill_gnuplot(script->text, script->size_bytes, &out, error));
    return put_embedded(&out, label, to, error);
}
