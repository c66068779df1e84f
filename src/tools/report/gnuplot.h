/* Runs gnuplot as a program: it reads a script and writes a picture. */
#ifndef SPILL_TOOLS_REPORT_GNUPLOT_H
#define SPILL_TOOLS_REPORT_GNUPLOT_H

#include "util/buffer.h"

#include <spillway/error.h>

/* Without output for this long, gnuplot is ended. */
#define SPILL_GNUPLOT_MS 60000

/*
 * Append gnuplot's output for the script to `out`. gnuplot reads no files of the user's: the script
 * contains its data. About 30 ms. SPILL_NOT_FOUND: gnuplot is not installed; the message says what
 * to install. SPILL_IO: it failed; the message quotes gnuplot's own.
 */
spill_code_t spill_gnuplot(const char *script, size_t size_bytes, spill_buffer_t *out,
                           spill_error_t *error);

#endif
