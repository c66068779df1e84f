/* An axis of a plot: its range, and marks with texts as people expect. */
#ifndef SPILL_TOOLS_REPORT_AXIS_H
#define SPILL_TOOLS_REPORT_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPILL_AXIS_MARKS_MAX = 32 };

typedef struct spill_mark {
    double value;
    char text[32];
} spill_mark_t;

typedef struct spill_axis {
    const char *title; /* or NULL */
    double from, to;   /* finite, from < to; above 0 if logarithmic */
    bool logarithmic;
    spill_mark_t marks[SPILL_AXIS_MARKS_MAX]; /* in ascending order */
    size_t mark_count;
} spill_axis_t;

/* "12 000" with spaces that do not break, "1.2 M" from a million on. */
typedef struct spill_count_text {
    char text[32];
} spill_count_text_t;
spill_count_text_t spill_count_text(double count);

/* Each sets range and marks; `title` is kept. */

/* Logarithmic: powers of ten; with few of them also twice and five times these. */
spill_axis_t spill_axis_log(const char *title, double from, double to);

/* Logarithmic, in bytes: powers of two. */
spill_axis_t spill_axis_log_bytes(const char *title, double from, double to);

/* From 0 to `top`, in steps of 1, 2 or 5 times a power of ten. */
spill_axis_t spill_axis_linear(const char *title, double top);

/* Days, months or years in UTC; the unit of the axis is seconds since 1970. */
spill_axis_t spill_axis_time(int64_t from_ms, int64_t to_ms);

/* Add a mark of the caller's behind the others, or before them. A full axis ignores it. */
void spill_axis_mark(spill_axis_t *axis, double value, const char *text);
void spill_axis_mark_first(spill_axis_t *axis, double value, const char *text);

/* The place of a value on the axis: 0 at its beginning, 1 at its end, and in between. */
double spill_axis_place(const spill_axis_t *axis, double value);

#endif
