/*
 * An ordered engine in memory, for tests: what it holds outlives the handle that is opened on it,
 * as a disk outlives a process, and it knows what was not synced yet.
 */
#ifndef SPILL_STORE_EMBEDDED_KV_MEMORY_H
#define SPILL_STORE_EMBEDDED_KV_MEMORY_H

#include "store/embedded/kv.h"

#include <stddef.h>

typedef struct spill_disk spill_disk_t;

spill_disk_t *spill_disk_new(void);
void spill_disk_free(spill_disk_t *disk); /* NULL is allowed; no engine may be open on it */

/*
 * Open an engine on the disk; closing it leaves the disk as it is. Any number may be open. Thread
 * rules as kv.h has them; while a thread has an iterator, writers wait.
 */
spill_kv_t *spill_kv_memory_open(spill_disk_t *disk);

/* Batches written since the last sync: a crash of the machine may lose the last of them. */
size_t spill_disk_unsynced(const spill_disk_t *disk);

/* A crash of the machine: of the batches not synced only the first `kept` survive. */
void spill_disk_crash(spill_disk_t *disk, size_t kept);

/*
 * After `after` more writes that succeed, `count` writes fail with `code`. With SPILL_UNKNOWN they
 * are applied all the same; with any other code they are not.
 */
void spill_disk_fail_writes(spill_disk_t *disk, size_t after, size_t count, spill_code_t code);

/* Reads (get, seek, next) that come to this key fail with SPILL_CORRUPT. NULL: none any more. */
void spill_disk_damage(spill_disk_t *disk, const uint8_t *key, size_t key_bytes);

#endif
