/* Text for people, and a fast check of UTF-8. */
#include "util/text.h"

#include "util/buffer.h"

#include <bson/bson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

spill_size_text_t spill_size_text(int64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    spill_size_text_t size;
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1000;
    bool whole = unit == 0 || value >= 99.95;
    snprintf(size.text, sizeof size.text, "%.*f", whole ? 0 : 1, value);
    size_t length = strlen(size.text);
    if (length > 2 && strcmp(size.text + length - 2, ".0") == 0)
        length -= 2;
    snprintf(size.text + length, sizeof size.text - length, " %s", units[unit]);
    return size;
}

spill_day_text_t spill_day_text(int64_t time_ms)
{
    spill_day_text_t day = {"?"};
    struct tm parts;
    time_t seconds = (time_t)(time_ms / 1000);
    if (gmtime_r(&seconds, &parts))
        strftime(day.text, sizeof day.text, "%Y-%m-%d", &parts);
    return day;
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

bool spill_utf8_valid(const uint8_t *text, size_t size)
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
                return false;
            at += length;
        }
    }
    return true;
}
