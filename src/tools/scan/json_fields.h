/* What the files of a scan's JSON document share: forms of fields, tables, values and plots. */
#ifndef SPILL_TOOLS_SCAN_JSON_FIELDS_H
#define SPILL_TOOLS_SCAN_JSON_FIELDS_H

#include "bson/record.h"
#include "tools/scan/scan.h"

#include <stdio.h>

/* ---- forms of fields ------------------------------------------------------------------------- */

#define OPTIONAL .flags = SPILL_FIELD_OPTIONAL
#define LENIENT .flags = SPILL_FIELD_LENIENT
#define UNREAD .flags = SPILL_FIELD_UNREAD
#define UNLESS(condition) .flags = SPILL_FIELD_OMIT_UNLESS, .when = (condition)
#define RANGE .least = -SPILL_SCAN_NUMBER_MAX, .most = SPILL_SCAN_NUMBER_MAX

/* A member: its type, its struct, and its name in JSON. */
#define NUMBER(struct_, member, ...) SPILL_FIELD(NUMBER, struct_, member, __VA_ARGS__, RANGE)
#define DATE(struct_, member, name) SPILL_FIELD(DATE, struct_, member, name, RANGE, LENIENT)
#define REAL(struct_, member, name, digits_)                                                       \
    SPILL_FIELD(DOUBLE, struct_, member, name, .digits = (digits_), LENIENT)
#define TEXT(struct_, member, name, ...)                                                           \
    SPILL_FIELD(COPY, struct_, member, name, .flags = SPILL_FIELD_REPAIRED | (__VA_ARGS__))
/* An object of members of the struct itself. */
#define PART(record_, name_, ...)                                                                  \
    {                                                                                              \
        .type = SPILL_FIELD_RECORD, .of = &(record_), .name = (name_), __VA_ARGS__                 \
    }
#define CUSTOM(name_, ...)                                                                         \
    {                                                                                              \
        .type = SPILL_FIELD_CUSTOM, .name = (name_), __VA_ARGS__                                   \
    }

/* ---- tables (json_paths.c) ------------------------------------------------------------------- */

extern const spill_record_t spill_json_distribution_record; /* of spill_scan_numbers_t */
extern const spill_record_t spill_json_path_record;         /* of spill_scan_path_t */

/* The largest documents of a collection: a list that has each document's _id, size and place. */
void spill_json_print_largest(const spill_owners_t *largest, FILE *to);
spill_code_t spill_json_read_largest(const bson_iter_t *iter, spill_owners_t *largest,
                                     spill_error_t *error);

/* ---- values (json_values.c) ------------------------------------------------------------------ */

/* Write as relaxed Extended JSON; null if there is no value, or if JSON cannot express it. */
void spill_json_put_value(FILE *to, const spill_value_t *value);

/* Write as a string; null for NULL. */
void spill_json_put_text(FILE *to, const char *text);

/* The points of plots are lists of lists of numbers: the values of "histogram" and "course". */
void spill_json_put_histogram(FILE *to, const spill_scan_histogram_t *histogram);
void spill_json_put_course(FILE *to, const spill_course_t *course);

/* Read them. Unexpected values are left out: no bins, no course (NULL). */
spill_scan_histogram_t spill_json_read_histogram(const bson_iter_t *from);
spill_course_t *spill_json_read_course(const bson_iter_t *from);

#endif
