/* Ticks on axes, with places and texts as people expect, few enough not to overlap. */
#ifndef SPILL_TOOLS_REPORT_AXES_H
#define SPILL_TOOLS_REPORT_AXES_H

#include <stdint.h>
#include <stdio.h>

/* "12 000" with spaces that do not break, "1.2 M" from a million on. */
typedef struct spill_count_text {
    char text[32];
} spill_count_text_t;
spill_count_text_t spill_count_text(double count);

/* A logarithmic axis, 'x' or 'y': powers of ten from `least` to `most`. */
void spill_axis_log(FILE *script, char axis, double least, double most);
void spill_axis_log_bytes(FILE *script, char axis, double least, double most);

/* From 0 to `top`, in steps of 1, 2 or 5 times a power of ten. */
void spill_axis_linear(FILE *script, char axis, double top);

/* Days, months or years on x, in UTC; the unit of the axis is seconds since 1970. */
void spill_axis_time(FILE *script, int64_t from_ms, int64_t to_ms);

#endif
