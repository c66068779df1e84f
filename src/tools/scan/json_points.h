/* The points of plots in a scan's JSON document: lists of lists of numbers. */
#ifndef SPILL_TOOLS_SCAN_JSON_POINTS_H
#define SPILL_TOOLS_SCAN_JSON_POINTS_H

#include "tools/scan/scan.h"

#include <stdio.h>

/* As members of an object, after a comma. */
void spill_json_put_histogram(FILE *to, const spill_scan_histogram_t *histogram);
void spill_json_put_course(FILE *to, const spill_course_t *course); /* nothing for NULL */

/*
 * Back from the object that has them. What is missing or is not as it was written is left out: no
 * bins, no course.
 */
spill_scan_histogram_t spill_json_read_histogram(const bson_t *from);
spill_course_t *spill_json_read_course(const bson_t *from);

#endif
