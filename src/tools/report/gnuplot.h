/* gnuplot, as a program: a script goes in, a picture comes out. */
#ifndef SPILL_TOOLS_REPORT_GNUPLOT_H
#define SPILL_TOOLS_REPORT_GNUPLOT_H

#include "util/buffer.h"

#include <spillway/error.h>

/* Without an answer for so long it is ended. */
#define SPILL_GNUPLOT_MS 60000

/*
 * Append what gnuplot writes for the script to `out`. It reads no files of the user's, and the
 * script has its data in it. Some 30 ms. SPILL_NOT_FOUND: it is not installed, and the message says
 * what to install. SPILL_IO: it failed, and the message has its own words.
 */
spill_code_t spill_gnuplot(const char *script, size_t size_bytes, spill_buffer_t *out,
                           spill_error_t *error);

#endif
