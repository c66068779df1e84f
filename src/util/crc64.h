/* The checksum of mongodump's archives: CRC-64 by the polynomial of ECMA-182, as Go and xz have it.
 */
#ifndef SPILL_UTIL_CRC64_H
#define SPILL_UTIL_CRC64_H

#include <stddef.h>
#include <stdint.h>

/* Of what `crc` is of, followed by these bytes; 0 is that of nothing. Any thread. */
uint64_t spill_crc64(uint64_t crc, const void *data, size_t size);

#endif
