/*
 * A log is a run of blocks of 32 KiB. A record stands whole in one block, or in parts in several; a
 * part is a header of 7 bytes (masked CRC-32C of type and content, two bytes of length, one of
 * type: whole, first, middle, last), and its content. What is left at the end of a block is zero.
 * The format is described in RocksDB's "Write Ahead Log File Format".
 */
#include "store/embedded/log_tail.h"

#include "store/embedded/folder.h"

#include <bson/bson.h>
#include <stdint.h>
#include <stdio.h>

enum { BLOCK_BYTES = 32 * 1024, HEADER_BYTES = 7, TYPE_WHOLE = 1, TYPE_LAST = 4 };

static uint32_t crc32c(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

/* The engine keeps sums turned and moved, so that sums of sums differ. */
static uint32_t masked(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

/* Length of the whole part that begins here, or 0. */
static size_t part_length(const uint8_t *data, size_t size)
{
    if (size < HEADER_BYTES || data[6] < TYPE_WHOLE || data[6] > TYPE_LAST)
        return 0;
    size_t length = data[4] + ((size_t)data[5] << 8);
    if (length > size - HEADER_BYTES)
        return 0;
    uint32_t sum =
        data[0] | ((uint32_t)data[1] << 8) | ((uint32_t)data[2] << 16) | ((uint32_t)data[3] << 24);
    return masked(crc32c(data + 6, length + 1)) == sum ? HEADER_BYTES + length : 0;
}

static bool goes_on(const uint8_t *block, size_t size)
{
    size_t at = 0;
    for (size_t length; (length = part_length(block + at, size - at)) > 0;)
        at += length;
    for (at++; at + HEADER_BYTES <= size; at++)
        if (part_length(block + at, size - at) > 0)
            return true;
    return false;
}

static FILE *open_newest_log(const char *folder)
{
    char *name = spill_folder_newest_log(folder);
    char *path = name ? bson_strdup_printf("%s/%s", folder, name) : NULL;
    FILE *log = path ? fopen(path, "rbe") : NULL;
    bson_free(path);
    bson_free(name);
    return log;
}

bool spill_log_goes_on(const char *folder)
{
    static const long LAST = BLOCK_BYTES;
    FILE *log = open_newest_log(folder);
    if (!log)
        return false;
    bool more = false;
    uint8_t *block = bson_malloc(BLOCK_BYTES);
    long size = fseek(log, 0, SEEK_END) == 0 ? ftell(log) : -1;
    if (size > 0 && fseek(log, (size - 1) / LAST * LAST, SEEK_SET) == 0)
        more = goes_on(block, fread(block, 1, BLOCK_BYTES, log));
    bson_free(block);
    fclose(log);
    return more;
}
