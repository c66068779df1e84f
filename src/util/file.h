/* Writing files whole. */
#ifndef SPILL_UTIL_FILE_H
#define SPILL_UTIL_FILE_H

#include <spillway/error.h>

#include <stddef.h>

/*
 * Put the bytes in the place of the file: it is as before until all of them are there. They go to a
 * temporary file beside it, which then takes its name. A symbolic link stays one; what is no plain
 * file (a pipe, a terminal) is written to. SPILL_NOT_FOUND, SPILL_DENIED, SPILL_NO_SPACE, SPILL_IO.
 */
spill_code_t spill_file_replace(const char *path, const void *data, size_t size_bytes,
                                spill_error_t *error);

#endif
