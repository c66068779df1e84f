/* Writing files whole, and text in memory as to a file. */
#ifndef SPILL_UTIL_FILE_H
#define SPILL_UTIL_FILE_H

#include <spillway/error.h>

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Replace a file's content atomically: write a temporary file in the same folder, then rename it. A
 * symbolic link stays; its target is replaced. A pipe or a terminal is written to directly.
 * SPILL_NOT_FOUND, SPILL_DENIED, SPILL_NO_SPACE, SPILL_IO.
 */
spill_code_t spill_file_replace(const char *path, const void *data, size_t size_bytes,
                                spill_error_t *error);

/*
 * The same for a name that the program chooses: a symbolic link of that name is replaced, not
 * followed.
 */
spill_code_t spill_file_replace_itself(const char *path, const void *data, size_t size_bytes,
                                       spill_error_t *error);

/*
 * A text that is written with stdio and kept in memory. spill_text_open sets `to`. spill_text_close
 * closes it; then `text` ends with a NUL that `size_bytes` does not count. Either fails with
 * SPILL_NO_MEMORY; a close reports every write that failed before. Zero it, and release it in every
 * case. Memory: at most about twice the text.
 */
typedef struct spill_text {
    FILE *to;
    char *text;
    size_t size_bytes;
} spill_text_t;

spill_code_t spill_text_open(spill_text_t *text, spill_error_t *error);
spill_code_t spill_text_close(spill_text_t *text, spill_error_t *error);
void spill_text_release(spill_text_t *text);

/*
 * Write all bytes to a file descriptor; continue after a signal and after a partial write. Returns
 * 0 or the error number: then some of the bytes may be written.
 */
int spill_write_all(int file, const void *data, size_t size_bytes);

/*
 * Open a regular file for reading. A symbolic link is not followed, and a pipe is not waited for:
 * -1, with ELOOP or EINVAL in errno; else as open(2).
 */
int spill_file_open_regular(const char *path);

/*
 * readdir(3) that distinguishes an error from the end: NULL with *problem 0 is the end, else
 * *problem is the error number. Without the last entries, files would be missing without a message.
 */
const struct dirent *spill_file_next_entry(DIR *folder, int *problem);

/* Is there a folder at the path, or behind a symbolic link there? */
bool spill_file_is_folder(const char *path);

/* The same as a stream; NULL sets errno. */
FILE *spill_file_stream_regular(const char *path);

/*
 * Refuse a path that lies in a store's folder, at any depth, after all links and "..": the files
 * there belong to the store. The last part of `path` need not exist. SPILL_REFUSED.
 */
spill_code_t spill_file_refuse_in_store(const char *path, spill_error_t *error);

#endif
