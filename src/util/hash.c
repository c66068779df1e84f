/* A hash, and two checksums. The checksums read tables, eight bytes at a time. */
#include "util/hash.h"

#include <pthread.h>

uint64_t spill_hash(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* A checksum takes this many bytes at a time. */
enum { SLICES = 8 };

/* ---- CRC-32C --------------------------------------------------------------------------------- */

/* The polynomial with its bits reversed: the lowest bit of a byte comes first. */
#define POLYNOMIAL_32 UINT32_C(0x82f63b78)

/* [i][byte]: what the byte adds when i more bytes follow it. */
static uint32_t tables_32[SLICES][256];

static void make_tables_32(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL_32 : crc >> 1;
        tables_32[0][byte] = crc;
    }
    for (int i = 1; i < SLICES; i++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables_32[i - 1][byte];
            tables_32[i][byte] = (before >> 8) ^ tables_32[0][before & 0xFF];
        }
}

/* Add eight bytes. The eight table reads do not depend on each other. */
static uint32_t add_eight_32(uint32_t crc, const uint8_t *data)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum ^= tables_32[SLICES - 1 - i][data[i] ^ (uint8_t)(crc >> (8 * i))];
    for (int i = 4; i < SLICES; i++)
        sum ^= tables_32[SLICES - 1 - i][data[i]];
    return sum;
}

uint32_t spill_crc32c(const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *bytes = data;
    uint32_t crc = UINT32_MAX;
    pthread_once(&once, make_tables_32);
    for (; size >= SLICES; size -= SLICES, bytes += SLICES)
        crc = add_eight_32(crc, bytes);
    for (; size > 0; size--, bytes++)
        crc = (crc >> 8) ^ tables_32[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
}

/* ---- CRC-64 ---------------------------------------------------------------------------------- */

/* The polynomial with its bits in reverse, as bytes come with their lowest bit first. */
#define POLYNOMIAL_64 UINT64_C(0xC96C5795D7870F42)

/* [i][byte]: what the byte adds when i more bytes follow it. */
static uint64_t tables_64[SLICES][256];

static void make_tables_64(void)
{
    for (uint64_t byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL_64 : crc >> 1;
        tables_64[0][byte] = crc;
    }
    for (int i = 1; i < SLICES; i++)
        for (int byte = 0; byte < 256; byte++) {
            uint64_t before = tables_64[i - 1][byte];
            tables_64[i][byte] = (before >> 8) ^ tables_64[0][before & 0xFF];
        }
}

/* Add eight bytes. The eight table reads do not depend on each other. */
static uint64_t add_eight_64(uint64_t crc, const uint8_t *data)
{
    uint64_t sum = 0;
    for (int i = 0; i < SLICES; i++)
        sum ^= tables_64[SLICES - 1 - i][data[i] ^ (uint8_t)(crc >> (8 * i))];
    return sum;
}

uint64_t spill_crc64(uint64_t crc, const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *bytes = data;
    pthread_once(&once, make_tables_64);
    crc = ~crc;
    for (; size >= SLICES; size -= SLICES, bytes += SLICES)
        crc = add_eight_64(crc, bytes);
    for (; size > 0; size--, bytes++)
        crc = (crc >> 8) ^ tables_64[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
}
