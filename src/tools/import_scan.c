#include "tools/import_scan.h"

#include <stdbool.h>
#include <string.h>

spill_scan_t spill_scan_line(const uint8_t *data, size_t size, size_t *length)
{
    const uint8_t *newline = memchr(data, '\n', size);
    *length = newline ? (size_t)(newline - data) + 1 : size;
    return newline ? SPILL_SCAN_WHOLE : SPILL_SCAN_MORE;
}

spill_scan_t spill_scan_csv(const uint8_t *data, size_t size, size_t *length)
{
    bool quoted = false;
    bool may_open = true; /* at a field's start, or after a quote: two quotes stand for one */
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = data[i];
        if (quoted) {
            quoted = byte != '"';
            may_open = true;
        } else if (byte == '\n') {
            *length = i + 1;
            return SPILL_SCAN_WHOLE;
        } else {
            quoted = byte == '"' && may_open;
            may_open = byte == ',';
        }
    }
    *length = size;
    return SPILL_SCAN_MORE;
}

spill_scan_t spill_scan_document(const uint8_t *data, size_t size, size_t *length)
{
    bool quoted = false;
    int64_t depth = 0;
    *length = size;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = data[i];
        if (quoted) {
            i += byte == '\\';
            quoted = byte != '"';
        } else if (byte == '"') {
            quoted = true;
        } else if (byte == '{' || byte == '[') {
            depth++;
        } else if ((byte == '}' || byte == ']') && --depth == 0) {
            *length = i + 1;
            return SPILL_SCAN_WHOLE;
        } else if (depth == 0) {
            *length = i;
            return SPILL_SCAN_BAD;
        }
    }
    return SPILL_SCAN_MORE;
}
