/* CRC-64 with the polynomial of ECMA-182, as in Go and xz: the checksum of mongodump's archives. */
#ifndef SPILL_UTIL_CRC64_H
#define SPILL_UTIL_CRC64_H

#include <stddef.h>
#include <stdint.h>

/* Continue the checksum `crc` (0 at the start) with these bytes. Any thread. */
uint64_t spill_crc64(uint64_t crc, const void *data, size_t size);

#endif
