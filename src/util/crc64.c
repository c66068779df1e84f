#include "util/crc64.h"

#include <pthread.h>

/* The polynomial with its bits in reverse, as bytes come with their lowest bit first. */
#define POLYNOMIAL UINT64_C(0xC96C5795D7870F42)

enum { SLICES = 8 };

/* [i][byte]: what the byte adds when i more bytes follow it. */
static uint64_t tables[SLICES][256];

static void make_tables(void)
{
    for (uint64_t byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
        tables[0][byte] = crc;
    }
    for (int i = 1; i < SLICES; i++)
        for (int byte = 0; byte < 256; byte++) {
            uint64_t before = tables[i - 1][byte];
            tables[i][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
}

/* Add eight bytes. The eight table reads do not depend on each other. */
static uint64_t add_eight(uint64_t crc, const uint8_t *data)
{
    uint64_t sum = 0;
    for (int i = 0; i < SLICES; i++)
        sum ^= tables[SLICES - 1 - i][data[i] ^ (uint8_t)(crc >> (8 * i))];
    return sum;
}

uint64_t spill_crc64(uint64_t crc, const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *bytes = data;
    pthread_once(&once, make_tables);
    crc = ~crc;
    for (; size >= SLICES; size -= SLICES, bytes += SLICES)
        crc = add_eight(crc, bytes);
    for (; size > 0; size--, bytes++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 0xFF];
    return ~crc;
}
