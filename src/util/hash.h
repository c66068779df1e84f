/* A hash for tables and locks (FNV-1a, 64 bits). Do not use it for keys that an attacker chooses.
 */
#ifndef SPILL_UTIL_HASH_H
#define SPILL_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t spill_hash(const void *data, size_t size);

#endif
