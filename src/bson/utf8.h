/* The check of UTF-8 (RFC 3629). For ASCII it is as fast as memory. */
#ifndef SPILL_BSON_UTF8_H
#define SPILL_BSON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NUL is valid; surrogates and overlong forms are not. O(size). */
bool spill_utf8_valid(const uint8_t *text, size_t size);

#endif
