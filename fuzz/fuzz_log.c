/*
 * A log of the embedded store's engine, as repair reads it. The first byte of the input chooses
 * whether the checksums of the parts are corrected first; otherwise few inputs would have a record.
 * Records must be in ascending order and inside the file, and each step must advance. A truncated
 * log must have the first records of the whole one. Each record is also read as a batch of changes,
 * and as a record of the list of files.
 */
#include "bson/key.h"
#include "fuzz.h"
#include "store/embedded/logs.h"
#include "util/buffer.h"

#include <bson/bson.h>
#include <string.h>

enum { HEADER_BYTES = 7, OFFSETS_MAX = 64 };

static void set_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + HEADER_BYTES <= size;) {
        size_t left = SPILL_LOG_BLOCK_BYTES - at % SPILL_LOG_BLOCK_BYTES;
        size_t length = data[at + 4] + ((size_t)data[at + 5] << 8);
        left = left < size - at ? left : size - at;
        if (left < HEADER_BYTES || length > left - HEADER_BYTES) {
            at += left;
            continue;
        }
        uint32_t crc = spill_crc32c(data + at + 6, length + 1);
        crc = ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
        for (int i = 0; i < 4; i++)
            data[at + (size_t)i] = (uint8_t)(crc >> (8 * i));
        at += HEADER_BYTES + length;
    }
}

static void check_losses(const spill_log_losses_t *losses)
{
    for (size_t i = 0; i < losses->count; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner;
        const spill_log_owner_t *lost = &losses->owners[i];
        REQUIRE(lost->key + lost->key_bytes <= losses->bytes.size);
        REQUIRE(lost->elements >= 0 && lost->deleted >= 0);
        spill_owner_from_key(losses->bytes.data + lost->key, lost->key_bytes, &storage, &owner);
        bson_destroy(&storage);
    }
}

/* Read a log. Sets the offsets of the records before the first break, and returns their number. */
static size_t read_log(const uint8_t *data, size_t size, int64_t *offsets)
{
    static spill_log_reader_t reader;
    spill_log_losses_t losses = SPILL_LOG_LOSSES_INIT;
    spill_manifest_t manifest = {.bytes = 0};
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    REQUIRE(file != NULL);
    spill_log_reader_open(&reader, file);
    int64_t last = -1;
    size_t count = 0;
    bool broken = false;
    spill_log_step_t step;
    while ((step = spill_log_reader_next(&reader)) != SPILL_LOG_END) {
        REQUIRE(reader.offset >= 0 && reader.offset < (int64_t)size);
        broken = broken || step == SPILL_LOG_BREAK;
        if (step != SPILL_LOG_RECORD)
            continue;
        REQUIRE(reader.offset > last && reader.record_bytes <= size);
        last = reader.offset;
        if (!broken && count < OFFSETS_MAX)
            offsets[count++] = reader.offset;
        spill_log_losses_add(&losses, reader.record, reader.record_bytes);
        spill_manifest_apply(&manifest, reader.record, reader.record_bytes);
    }
    REQUIRE(reader.failed == 0);
    check_losses(&losses);
    spill_log_losses_release(&losses);
    spill_log_reader_close(&reader);
    fclose(file);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t whole[OFFSETS_MAX], cut[OFFSETS_MAX];
    if (size < 3)
        return 0;
    size_t log_size = size - 1;
    uint8_t *log = malloc(log_size);
    memcpy(log, data + 1, log_size);
    if (data[0] & 1)
        set_checksums(log, log_size);
    size_t count = read_log(log, log_size, whole);
    size_t fewer = read_log(log, log_size - log_size / 3, cut);
    REQUIRE(fewer <= count);
    REQUIRE(memcmp(whole, cut, fewer * sizeof *cut) == 0);
    free(log);
    return 0;
}
