/* The format of an input, from its name or an option. */
#ifndef SPILL_TOOLS_IMPORT_FORMAT_H
#define SPILL_TOOLS_IMPORT_FORMAT_H

#include "tools/import_records.h"

/*
 * Parse "ndjson.gz", or, with `is_path`, a file name that ends in ".ndjson.gz". False: the text
 * names no format.
 */
bool spill_import_format(const char *text, bool is_path, spill_format_t *format,
                         spill_codec_t *codec);

#endif
