/* The text format in which Prometheus reads metrics. */
#include "service/exposition.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spill_exposition_print(spill_buffer_t *out, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    spill_buffer_append(out, line, strlen(line));
}

void spill_exposition_begin(spill_buffer_t *out, const char *name, const char *type,
                            const char *help)
{
    spill_exposition_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void spill_exposition_label(spill_buffer_t *out, const char *value)
{
    spill_buffer_append_byte(out, '"');
    for (; *value; value++) {
        if (*value == '\n') {
            spill_buffer_append(out, "\\n", 2);
            continue;
        }
        if (*value == '"' || *value == '\\')
            spill_buffer_append_byte(out, '\\');
        spill_buffer_append_byte(out, (uint8_t)*value);
    }
    spill_buffer_append_byte(out, '"');
}
