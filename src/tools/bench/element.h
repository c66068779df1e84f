/* An element to measure with. */
#ifndef SPILL_TOOLS_BENCH_ELEMENT_H
#define SPILL_TOOLS_BENCH_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

enum { SPILL_BENCH_ELEMENT_MIN = 100, SPILL_BENCH_ELEMENT_MAX = 1 << 20 };

/*
 * A BSON document of exactly `size_bytes` (SPILL_BENCH_ELEMENT_MIN to _MAX) at `document`: an
 * activity {type, actor, at, text}, as an application has them, of its own time for each number, a
 * second apart. Engines that compress get it to about a half.
 */
void spill_bench_element(uint8_t *document, size_t size_bytes, uint64_t number);

#endif
