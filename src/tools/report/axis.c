/* The marks of axes. */
#include "tools/report/axis.h"

#include "util/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOG_MARKS = 7, BYTE_MARKS = 5, LINEAR_STEPS = 5, TIME_MARKS = 4 };

#define NO_BREAK "\u00A0"

spill_count_text_t spill_count_text(double count)
{
    static const char *const units[] = {"", "M", "G", "T"};
    spill_count_text_t text;
    size_t unit = 0;
    while (count >= 1e6 && unit < 3)
        count /= unit++ == 0 ? 1e6 : 1e3;
    if (unit > 0)
        snprintf(text.text, sizeof text.text, "%.20s" NO_BREAK "%s", spill_number_text(count).text,
                 units[unit]);
    else if (count >= 1000)
        snprintf(text.text, sizeof text.text, "%d" NO_BREAK "%03d", (int)count / 1000,
                 (int)count % 1000);
    else
        snprintf(text.text, sizeof text.text, "%s", spill_number_text(count).text);
    return text;
}

void spill_axis_mark(spill_axis_t *axis, double value, const char *text)
{
    if (axis->mark_count == SPILL_AXIS_MARKS_MAX)
        return;
    spill_mark_t *mark = &axis->marks[axis->mark_count++];
    mark->value = value;
    snprintf(mark->text, sizeof mark->text, "%s", text);
}

void spill_axis_mark_first(spill_axis_t *axis, double value, const char *text)
{
    spill_axis_mark(axis, value, text);
    spill_mark_t first = axis->marks[axis->mark_count - 1];
    memmove(axis->marks + 1, axis->marks, (axis->mark_count - 1) * sizeof *axis->marks);
    axis->marks[0] = first;
}

double spill_axis_place(const spill_axis_t *axis, double value)
{
    double place = axis->logarithmic
                       ? log(fmax(value, axis->from) / axis->from) / log(axis->to / axis->from)
                       : (value - axis->from) / (axis->to - axis->from);
    return fmin(fmax(place, 0), 1);
}

/* ---- logarithmic ----------------------------------------------------------------------------- */

spill_axis_t spill_axis_log(const char *title, double from, double to)
{
    static const double parts[] = {1, 2, 5};
    spill_axis_t axis = {.title = title, .from = from, .to = to, .logarithmic = true};
    double span = log10(to / from);
    int step = (int)(span / LOG_MARKS) + 1, first = (int)floor(log10(from));
    size_t fine = span < 2 ? 3 : 1;
    for (int power = first > 0 ? first : 0; pow(10, power) <= to; power += step)
        for (size_t i = 0; i < fine; i++) {
            double value = parts[i] * pow(10, power);
            if (value >= from && value <= to)
                spill_axis_mark(&axis, value, spill_count_text(value).text);
        }
    return axis;
}

spill_axis_t spill_axis_log_bytes(const char *title, double from, double to)
{
    spill_axis_t axis = {.title = title, .from = from, .to = to, .logarithmic = true};
    int step = (int)(log2(to / from) / BYTE_MARKS) + 1, first = (int)ceil(log2(from));
    first = first > 0 ? first : 0;
    for (int power = (first + step - 1) / step * step; pow(2, power) <= to; power += step)
        spill_axis_mark(&axis, pow(2, power), spill_size_text((int64_t)pow(2, power)).text);
    return axis;
}

/* ---- linear ---------------------------------------------------------------------------------- */

spill_axis_t spill_axis_linear(const char *title, double top)
{
    spill_axis_t axis = {.title = title, .to = top};
    double step = pow(10, floor(log10(top / LINEAR_STEPS)));
    double steps = top / step;
    step *= steps > 5 * LINEAR_STEPS   ? 10
            : steps > 2 * LINEAR_STEPS ? 5
            : steps > LINEAR_STEPS     ? 2
                                       : 1;
    for (int i = 0; i <= 2 * LINEAR_STEPS && i * step <= top * (1 + 1e-9); i++)
        spill_axis_mark(&axis, i * step, spill_count_text(i * step).text);
    return axis;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The distance between marks: months, or seconds. */
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
    while (at < last && seconds / paces[at].seconds > TIME_MARKS)
        at++;
    return &paces[at];
}

/* The first mark at or after that second. */
static int64_t first_mark(const pace_t *pace, int64_t from)
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

static int64_t next_mark(const pace_t *pace, int64_t mark)
{
    return first_mark(pace, pace->months == 0 ? mark + pace->seconds : mark + 1);
}

spill_axis_t spill_axis_time(int64_t from_ms, int64_t to_ms)
{
    int64_t from = from_ms / 1000, to = to_ms / 1000;
    spill_axis_t axis = {.from = (double)from, .to = (double)(to > from ? to : from + 1)};
    const pace_t *pace = pace_of(to - from);
    int64_t mark = first_mark(pace, from);
    for (int i = 0; i < SPILL_AXIS_MARKS_MAX && mark <= to; i++, mark = next_mark(pace, mark)) {
        time_t second = (time_t)mark;
        struct tm parts;
        char text[32];
        if (gmtime_r(&second, &parts) && strftime(text, sizeof text, pace->format, &parts) > 0)
            spill_axis_mark(&axis, (double)mark, text);
    }
    return axis;
}
