#include "store/embedded/table_footer.h"

#include "util/buffer.h"

#include <stddef.h>

enum {
    HANDLES_AT = 1,
    HANDLES_BYTES = 40,
    FORMAT_AT = HANDLES_AT + HANDLES_BYTES,
    MAGIC_AT = FORMAT_AT + 4,
    TRAILER_BYTES = 5, /* behind each block: its compression and its checksum */
    CHECKSUMS = 4,
    FORMAT_FIRST = 2, /* with formats 0 and 1 a compressed block has no varint for its size */
    FORMAT_LAST = 5,
};

static uint64_t little_endian(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = count; i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}

const char *spill_table_footer_problem(const uint8_t footer[SPILL_TABLE_FOOTER_BYTES],
                                       uint64_t file_bytes)
{
    static const uint64_t magic = UINT64_C(0x88e241b785f4cff7);
    const uint64_t format = little_endian(footer + FORMAT_AT, 4);
    if (little_endian(footer + MAGIC_AT, 8) != magic || format > FORMAT_LAST)
        return NULL;
    if (format < FORMAT_FIRST)
        return "the format in its footer is not one that Spillway writes";
    if (footer[0] == 0 || footer[0] > CHECKSUMS)
        return "its footer names no checksum that Spillway writes";
    spill_reader_t reader = spill_reader_of(footer + HANDLES_AT, HANDLES_BYTES);
    for (int block = 0; block < 2; block++) {
        uint64_t offset = spill_reader_varint(&reader);
        uint64_t size = spill_reader_varint(&reader);
        uint64_t end = file_bytes - SPILL_TABLE_FOOTER_BYTES;
        if (reader.bad || offset > end || size > end - offset ||
            TRAILER_BYTES > end - offset - size)
            return "its footer names a block that is not in the file";
    }
    return NULL;
}
