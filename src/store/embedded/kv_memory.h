/*
 * An ordered engine in memory, for tests. Its data outlives the engine's handle, as a disk outlives
 * a process. It records which writes were not synced yet.
 */
#ifndef SPILL_STORE_EMBEDDED_KV_MEMORY_H
#define SPILL_STORE_EMBEDDED_KV_MEMORY_H

#include "store/embedded/kv.h"

#include <stddef.h>

typedef struct spill_disk spill_disk_t;

spill_disk_t *spill_disk_new(void);
void spill_disk_free(spill_disk_t *disk); /* NULL is allowed; close its engines first */

/*
 * Open an engine on the disk; closing it does not change the disk. Several may be open at once. For
 * threads see kv.h; writers wait while a thread has an iterator.
 */
spill_kv_t *spill_kv_memory_open(spill_disk_t *disk);

/* The number of batches since the last sync; a crash of the machine may lose the last of them. */
size_t spill_disk_unsynced(const spill_disk_t *disk);

/* Crash the machine: of the batches that were not synced, only the first `kept` survive. */
void spill_disk_crash(spill_disk_t *disk, size_t kept);

/*
 * Let `after` more writes succeed; then `count` writes fail with `code`. With SPILL_UNKNOWN they
 * are applied all the same, with any other code not.
 */
void spill_disk_fail_writes(spill_disk_t *disk, size_t after, size_t count, spill_code_t code);

/* Make reads (get, seek, next) of this key fail with SPILL_CORRUPT. NULL: end that. */
void spill_disk_damage(spill_disk_t *disk, const uint8_t *key, size_t key_bytes);

#endif
