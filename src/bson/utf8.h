/* Is it UTF-8, as RFC 3629 has it? At the speed of memory where the text is ASCII. */
#ifndef SPILL_BSON_UTF8_H
#define SPILL_BSON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NUL is a character like others; surrogates and long forms are none. O(size). */
bool spill_utf8_valid(const uint8_t *text, size_t size);

#endif
