/* The inputs of a source on disk: one file, or the files of a dump, one per collection. */
#ifndef SPILL_TOOLS_SCAN_INPUTS_H
#define SPILL_TOOLS_SCAN_INPUTS_H

#include "tools/import_records.h"

typedef struct spill_scan_input {
    char *path;
    char *collection; /* "shop.products" of a dump, "products" of a file; owned */
    spill_format_t format;
    spill_codec_t codec;
    bool archive;       /* of mongodump; `format` is not used */
    char *metadata;     /* path of the collection's description, or NULL; owned */
    int64_t size_bytes; /* of the file; -1: unknown */
} spill_scan_input_t;

typedef struct spill_scan_inputs {
    spill_scan_input_t *items;
    size_t count;
    int64_t size_bytes; /* of all; -1: unknown */
} spill_scan_inputs_t;

/* Report whether it is an embedded store: its folder, or "rocksdb:" and its path. */
bool spill_scan_is_store(const char *source);

/* Called for a file that should exist, or should not be empty. */
typedef void (*spill_scan_missing_fn)(void *context, const char *path, const char *text);

/*
 * Find the inputs of a path: a file, "-", or a folder as mongodump makes it, in the order of
 * collections' names. `format` (or NULL) is as import's --format. SPILL_NOT_FOUND, SPILL_INVALID:
 * it cannot be scanned. Release in every case.
 */
spill_code_t spill_scan_inputs(const char *path, const char *format, spill_scan_inputs_t *inputs,
                               spill_scan_missing_fn missing, void *context, spill_error_t *error);
/* Read an input's whole metadata; free with bson_free. NULL: it cannot be read. */
char *spill_scan_metadata(const spill_scan_input_t *input, size_t *size_bytes);
void spill_scan_inputs_release(spill_scan_inputs_t *inputs);

#endif
