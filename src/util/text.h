/* Figures and names as people read them. Figures come in structs, and need no memory. */
#ifndef SPILL_UTIL_TEXT_H
#define SPILL_UTIL_TEXT_H

#include <stdint.h>

/* "999 B", "10.3 KB", "1 MB": three digits, units of 1000. */
typedef struct spill_size_text {
    char text[16];
} spill_size_text_t;
spill_size_text_t spill_size_text(int64_t bytes);

/* A day in UTC, "2026-11-22"; "?" where there is no such day. */
typedef struct spill_day_text {
    char text[16];
} spill_day_text_t;
spill_day_text_t spill_day_text(int64_t time_ms);

/*
 * The text with what a reader would not see as it is written out: control characters and those that
 * change the direction of writing as \u00XX, bytes that are not UTF-8 as \xXX. Free with bson_free.
 */
char *spill_visible_text(const char *text);

#endif
