#include "util/crc32c.h"

#include <pthread.h>

/* The polynomial with its bits reversed: the lowest bit of a byte comes first. */
#define POLYNOMIAL UINT32_C(0x82f63b78)

enum { SLICES = 8 };

/* [i][byte]: what the byte adds when i more bytes follow it. */
static uint32_t tables[SLICES][256];

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
        tables[0][byte] = crc;
    }
    for (int i = 1; i < SLICES; i++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[i - 1][byte];
            tables[i][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
}

/* Add eight bytes. The eight table reads do not depend on each other. */
static uint32_t add_eight(uint32_t crc, const uint8_t *data)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum ^= tables[SLICES - 1 - i][data[i] ^ (uint8_t)(crc >> (8 * i))];
    for (int i = 4; i < SLICES; i++)
        sum ^= tables[SLICES - 1 - i][data[i]];
    return sum;
}

uint32_t spill_crc32c(const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *bytes = data;
    uint32_t crc = UINT32_MAX;
    pthread_once(&once, make_tables);
    for (; size >= SLICES; size -= SLICES, bytes += SLICES)
        crc = add_eight(crc, bytes);
    for (; size > 0; size--, bytes++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
}
