/* CRC-32C (Castagnoli), the checksum of the engine's logs. */
#ifndef SPILL_UTIL_CRC32C_H
#define SPILL_UTIL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of these bytes. Any thread. Cost: about 1 ns a byte. */
uint32_t spill_crc32c(const void *data, size_t size);

#endif
