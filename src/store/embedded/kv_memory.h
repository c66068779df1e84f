/*
 * An ordered engine in memory, for stores named "memory:". Its data ends when it is closed.
 *
 * An iterator holds a lock until it is freed: writers wait meanwhile. So the thread that created it
 * frees it, and does not write before that.
 */
#ifndef SPILL_STORE_EMBEDDED_KV_MEMORY_H
#define SPILL_STORE_EMBEDDED_KV_MEMORY_H

#include "store/embedded/kv.h"

spill_kv_t *spill_kv_memory_new(void);

#endif
