/* The text format in which Prometheus reads metrics. */
#ifndef SPILL_SERVICE_EXPOSITION_H
#define SPILL_SERVICE_EXPOSITION_H

#include "util/buffer.h"

#include <stdint.h>

/* Append text, at most 399 bytes of it. */
void spill_exposition_print(spill_buffer_t *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append the lines that begin a metric. `type`: "counter", "gauge" or "histogram". */
void spill_exposition_begin(spill_buffer_t *out, const char *name, const char *type,
                            const char *help);

/* Append a label's value: in quotes, with backslashes, quotes and line ends escaped. */
void spill_exposition_label(spill_buffer_t *out, const char *value);

#endif
