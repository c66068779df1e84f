/* Text for people, and a fast check of UTF-8. */
#include "util/text.h"

#include "util/buffer.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

spill_size_text_t spill_size_text(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    spill_size_text_t size;
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1024;
    bool whole = unit == 0 || value >= 99.95;
    snprintf(size.text, sizeof size.text, "%.*f", whole ? 0 : 1, value);
    size_t length = strlen(size.text);
    if (length > 2 && strcmp(size.text + length - 2, ".0") == 0)
        length -= 2;
    snprintf(size.text + length, sizeof size.text - length, " %s", units[unit]);
    return size;
}

spill_number_text_t spill_number_text(double number)
{
    enum { DECIMALS_MAX = 6 };
    spill_number_text_t shown;
    double size = fabs(number);
    int decimals = 0;
    while (size > 0 && size < 99.95 && decimals < DECIMALS_MAX) {
        size *= 10;
        decimals++;
    }
    snprintf(shown.text, sizeof shown.text, "%.*f", decimals, number);
    char *end = shown.text + strlen(shown.text);
    while (decimals > 0 && end[-1] == '0')
        *--end = '\0';
    if (decimals > 0 && end[-1] == '.')
        end[-1] = '\0';
    return shown;
}

const char *spill_plural(int64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

bool spill_text_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

spill_counted_text_t spill_counted_text(int64_t count, const char *one, const char *many)
{
    spill_counted_text_t counted;
    snprintf(counted.text, sizeof counted.text, "%" PRId64 " %.40s", count,
             spill_plural(count, one, many));
    return counted;
}

/* The second in which the time lies, also before 1970. */
static time_t second_of(int64_t time_ms)
{
    return (time_t)(time_ms / 1000 - (time_ms % 1000 < 0));
}

spill_day_text_t spill_day_text(int64_t time_ms)
{
    spill_day_text_t day = {"?"};
    struct tm parts;
    time_t second = second_of(time_ms);
    if (gmtime_r(&second, &parts))
        strftime(day.text, sizeof day.text, "%Y-%m-%d", &parts);
    return day;
}

spill_time_text_t spill_time_text(int64_t time_ms)
{
    spill_time_text_t time = {"?"};
    struct tm parts;
    time_t second = second_of(time_ms);
    if (gmtime_r(&second, &parts))
        strftime(time.text, sizeof time.text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return time;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Decode the character at `text` and return its bytes; 0 if it is not UTF-8. */
static size_t decode(const unsigned char *text, uint32_t *character)
{
    size_t size = text[0] < 0x80 ? 1 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *character = size == 1 ? text[0] : text[0] & (0x7FU >> size);
    if ((text[0] >= 0x80 && text[0] < 0xC2) || text[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80) /* the terminator, too */
            return 0;
        *character = *character << 6 | (text[i] & 0x3FU);
    }
    bool surrogate = *character >= 0xD800 && *character < 0xE000;
    return *character < least[size] || surrogate || *character > 0x10FFFF ? 0 : size;
}

static bool is_hidden(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x061C ||
           character == 0x200E || character == 0x200F ||
           (character >= 0x2028 && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069);
}

char *spill_shell_quoted(const char *text)
{
    bson_string_t *quoted = bson_string_new("'");
    for (; *text; text++)
        if (*text == '\'')
            bson_string_append(quoted, "'\\''");
        else
            bson_string_append_c(quoted, *text);
    bson_string_append_c(quoted, '\'');
    return bson_string_free(quoted, false);
}

char *spill_shell_word(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_@%+=:,./-";
    bool is_plain = text[0] != '\0' && text[strspn(text, plain)] == '\0';
    return is_plain ? bson_strdup(text) : spill_shell_quoted(text);
}

bool spill_text_is_visible(const char *text)
{
    while (*text >= 0x20 && *text < 0x7F)
        text++;
    return *text == '\0';
}

char *spill_visible_text(const char *text)
{
    spill_buffer_t visible = SPILL_BUFFER_INIT;
    char piece[16];
    uint32_t character;
    const unsigned char *at = (const unsigned char *)text, *copied = at;
    while (*at) {
        bool ascii = *at >= 0x20 && *at < 0x7F;
        size_t size = ascii ? 1 : decode(at, &character);
        if (ascii || (size > 0 && !is_hidden(character))) {
            at += size;
            continue;
        }
        if (size == 0)
            snprintf(piece, sizeof piece, "\\x%02X", at[0]);
        else
            snprintf(piece, sizeof piece, "\\u%04X", character);
        spill_buffer_append(&visible, copied, (size_t)(at - copied));
        spill_buffer_append(&visible, piece, strlen(piece));
        at += size > 0 ? size : 1;
        copied = at;
    }
    spill_buffer_append(&visible, copied, (size_t)(at - copied));
    spill_buffer_append_byte(&visible, '\0');
    return (char *)visible.data;
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Length of the character of two or more bytes at `text`; 0 if there is none. */
static size_t character_length(const uint8_t *text, size_t size)
{
    uint8_t first = text[0];
    if (first >= 0xC2 && first <= 0xDF)
        return size >= 2 && is_continuation(text[1]) ? 2 : 0;
    if ((first & 0xF0) == 0xE0) {
        if (size < 3 || !is_continuation(text[1]) || !is_continuation(text[2]))
            return 0;
        bool shorter = first == 0xE0 && text[1] < 0xA0;
        bool surrogate = first == 0xED && text[1] > 0x9F;
        return shorter || surrogate ? 0 : 3;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (size < 4 || !is_continuation(text[1]) || !is_continuation(text[2]) ||
            !is_continuation(text[3]))
            return 0;
        bool shorter = first == 0xF0 && text[1] < 0x90;
        bool beyond = first == 0xF4 && text[1] > 0x8F;
        return shorter || beyond ? 0 : 4;
    }
    return 0;
}

size_t spill_utf8_prefix(const uint8_t *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        uint64_t word;
        while (size - at >= sizeof word) {
            memcpy(&word, text + at, sizeof word);
            if (word & HIGH_BITS)
                break;
            at += sizeof word;
        }
        while (at < size && text[at] < 0x80)
            at++;
        if (at < size) {
            size_t length = character_length(text + at, size - at);
            if (length == 0)
                return at;
            at += length;
        }
    }
    return size;
}

bool spill_utf8_valid(const uint8_t *text, size_t size)
{
    return spill_utf8_prefix(text, size) == size;
}
