/* The elements of the benchmark. */
#ifndef SPILL_TOOLS_BENCH_ELEMENT_H
#define SPILL_TOOLS_BENCH_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

enum { SPILL_BENCH_ELEMENT_MIN = 100, SPILL_BENCH_ELEMENT_MAX = 1 << 20 };

/*
 * Write a BSON document of exactly `size_bytes` (SPILL_BENCH_ELEMENT_MIN to _MAX): an activity
 * {type, actor, at, text}, as applications store them. Each number has its own time, a second after
 * the one before. Engines that compress reduce it to about a half.
 */
void spill_bench_element(uint8_t *document, size_t size_bytes, uint64_t number);

#endif
