/* A hash for tables and locks, and the checksums of two file formats. */
#ifndef SPILL_UTIL_HASH_H
#define SPILL_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits, for tables and locks. Do not use it for keys that an attacker chooses. */
uint64_t spill_hash(const void *data, size_t size);

/* CRC-32C (Castagnoli), the checksum of the engine's logs. Any thread. About 1 ns a byte. */
uint32_t spill_crc32c(const void *data, size_t size);

/*
 * Continue the checksum `crc` (0 at the start) with these bytes: CRC-64 with the polynomial of
 * ECMA-182, as in Go and xz and in mongodump's archives. Any thread.
 */
uint64_t spill_crc64(uint64_t crc, const void *data, size_t size);

#endif
