/* How an input is written, as its name or an option tells. */
#ifndef SPILL_TOOLS_IMPORT_FORMAT_H
#define SPILL_TOOLS_IMPORT_FORMAT_H

#include "tools/import_records.h"

/*
 * "ndjson.gz", or, with `is_path`, a file's name that ends in ".ndjson.gz". False where it tells
 * no format.
 */
bool spill_import_format(const char *text, bool is_path, spill_format_t *format,
                         spill_codec_t *codec);

#endif
