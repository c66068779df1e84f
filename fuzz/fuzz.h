/* Helpers shared by the fuzz targets. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Run one input. Ends the program if a property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An assertion that no build turns off. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A file in memory with these bytes, for code that reads files by name. Close it with fuzz_close.
 */
typedef struct fuzz_file {
    int descriptor;
    char path[40];
} fuzz_file_t;

static inline fuzz_file_t fuzz_open(const void *data, size_t size)
{
    fuzz_file_t file = {.descriptor = memfd_create("fuzz", 0)};
    REQUIRE(file.descriptor >= 0);
    REQUIRE(write(file.descriptor, data, size) == (ssize_t)size);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    return file;
}

static inline void fuzz_close(const fuzz_file_t *file)
{
    close(file->descriptor);
}

#endif
