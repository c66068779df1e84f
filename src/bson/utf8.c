#include "bson/utf8.h"

#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Length of the character of two or more bytes at `text`; 0 if there is none. */
static size_t character(const uint8_t *text, size_t size)
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
            size_t length = character(text + at, size - at);
            if (length == 0)
                return false;
            at += length;
        }
    }
    return true;
}
