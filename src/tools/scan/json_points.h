/* The points of plots in a scan's JSON document: lists of lists of numbers. */
#ifndef SPILL_TOOLS_SCAN_JSON_POINTS_H
#define SPILL_TOOLS_SCAN_JSON_POINTS_H

#include "tools/scan/scan.h"

#include <stdio.h>

/* Write the values of the fields "histogram" and "course". */
void spill_json_put_histogram(FILE *to, const spill_scan_histogram_t *histogram);
void spill_json_put_course(FILE *to, const spill_course_t *course);

/* Read them. Unexpected values are left out: no bins, no course (NULL). */
spill_scan_histogram_t spill_json_read_histogram(const bson_iter_t *from);
spill_course_t *spill_json_read_course(const bson_iter_t *from);

#endif
