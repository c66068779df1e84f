/*
 * Text for people: numbers and names, and a check of UTF-8. Numbers are returned in structs,
 * without memory.
 */
#ifndef SPILL_UTIL_TEXT_H
#define SPILL_UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* "999 B", "10.3 KiB", "1 MiB": three digits, units of 1024, as databases count. */
typedef struct spill_size_text {
    char text[16];
} spill_size_text_t;
spill_size_text_t spill_size_text(int64_t bytes);

/* "1437", "144", "14.4", "0.0144": three digits, without an exponent; whole from 100 on. */
typedef struct spill_number_text {
    char text[32];
} spill_number_text_t;
spill_number_text_t spill_number_text(double number);

/* Return `one` if the count is 1, else `many`. */
const char *spill_plural(int64_t count, const char *one, const char *many);

/* Are these names equal? Most names differ in the first letter, so no function is called for them.
 */
static inline bool spill_same_name(const char *left, const char *right)
{
    return left[0] == right[0] && strcmp(left, right) == 0;
}

/* Does the text end with `end`, with something before it? */
bool spill_text_ends_with(const char *text, const char *end);

/* A count with its noun: "1 element", "2 elements". Nouns have at most 40 bytes. */
typedef struct spill_counted_text {
    char text[64];
} spill_counted_text_t;
spill_counted_text_t spill_counted_text(int64_t count, const char *one, const char *many);

/* A day in UTC, "2026-11-22"; "?" if there is no such day. */
typedef struct spill_day_text {
    char text[16];
} spill_day_text_t;
spill_day_text_t spill_day_text(int64_t time_ms);

/* A second in UTC, "2026-11-22T10:11:12Z"; "?" if there is no such second. */
typedef struct spill_time_text {
    char text[32];
} spill_time_text_t;
spill_time_text_t spill_time_text(int64_t time_ms);

/*
 * Return the text with invisible characters written out: control characters and characters that
 * change the direction of writing as \u00XX, bytes that are not UTF-8 as \xXX. Free with bson_free.
 */
char *spill_visible_text(const char *text);

/* Return the text as one word for a shell: in quotes, or only if it needs them. bson_free. */
char *spill_shell_quoted(const char *text);
char *spill_shell_word(const char *text);

/* Has it only visible characters of ASCII? Then spill_visible_text would return a copy. */
bool spill_text_is_visible(const char *text);

/*
 * Are the bytes UTF-8 (RFC 3629)? NUL is valid; surrogates and overlong forms are not. O(size), and
 * for ASCII as fast as memory.
 */
bool spill_utf8_valid(const uint8_t *text, size_t size);

/* The bytes before the first one that is not UTF-8; `size` if all are. The same cost. */
size_t spill_utf8_prefix(const uint8_t *text, size_t size);

#endif
