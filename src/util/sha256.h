/* SHA-256 (FIPS 180-4): a digest that stands for bytes which are too long to be a key. */
#ifndef SPILL_UTIL_SHA256_H
#define SPILL_UTIL_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SPILL_SHA256_BYTES 32

/* Compute the digest of `size` bytes. O(size), some 200 MB a second. Any thread. */
void spill_sha256(const void *data, size_t size, uint8_t digest[SPILL_SHA256_BYTES]);

#endif
