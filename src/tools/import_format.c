#include "tools/import_format.h"

#include <string.h>

static const struct {
    const char *name;
    spill_format_t format;
} FORMATS[] = {
    {"ndjson", SPILL_FORMAT_NDJSON}, {"jsonl", SPILL_FORMAT_NDJSON}, {"json", SPILL_FORMAT_JSON},
    {"csv", SPILL_FORMAT_CSV},       {"bson", SPILL_FORMAT_BSON},
};

static const struct {
    const char *suffix;
    spill_codec_t codec;
} CODECS[] = {{".gz", SPILL_CODEC_GZIP}, {".zst", SPILL_CODEC_ZSTD}, {"", SPILL_CODEC_PLAIN}};

bool spill_import_format(const char *text, bool is_path, spill_format_t *format,
                         spill_codec_t *codec)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof CODECS / sizeof CODECS[0]; i++) {
        size_t suffix = strlen(CODECS[i].suffix);
        if (length > suffix && strcmp(text + length - suffix, CODECS[i].suffix) == 0) {
            *codec = CODECS[i].codec;
            length -= suffix;
            break;
        }
    }
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        size_t size = strlen(FORMATS[i].name);
        bool ends = length >= size && memcmp(text + length - size, FORMATS[i].name, size) == 0;
        if (ends && (is_path ? length > size && text[length - size - 1] == '.' : length == size)) {
            *format = FORMATS[i].format;
            return true;
        }
    }
    return false;
}
