/*
 * Numbers and names in a form for people, and a check of UTF-8. Numbers are returned in structs,
 * without memory.
 */
#ifndef SPILL_UTIL_TEXT_H
#define SPILL_UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "999 B", "10.3 KB", "1 MB": three digits, units of 1000. */
typedef struct spill_size_text {
    char text[16];
} spill_size_text_t;
spill_size_text_t spill_size_text(int64_t bytes);

/* A day in UTC, "2026-11-22"; "?" if there is no such day. */
typedef struct spill_day_text {
    char text[16];
} spill_day_text_t;
spill_day_text_t spill_day_text(int64_t time_ms);

/*
 * Return the text with invisible characters written out: control characters and characters that
 * change the direction of writing as \u00XX, bytes that are not UTF-8 as \xXX. Free with bson_free.
 */
char *spill_visible_text(const char *text);

/*
 * Are the bytes UTF-8 (RFC 3629)? NUL is valid; surrogates and overlong forms are not. O(size), and
 * for ASCII as fast as memory.
 */
bool spill_utf8_valid(const uint8_t *text, size_t size);

#endif
