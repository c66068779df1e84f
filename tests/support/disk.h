/*
 * A simulated disk: the engine in memory (store/embedded/kv_memory.c) keeps its data after the
 * engine is closed, as a disk does after a process ends. It records which writes were not synced.
 */
#ifndef TESTS_SUPPORT_DISK_H
#define TESTS_SUPPORT_DISK_H

#include "store/embedded/kv.h"

#include <stddef.h>

typedef struct disk disk_t;

disk_t *disk_new(void);
void disk_free(disk_t *disk); /* NULL is allowed; close its engines first */

/*
 * Open an engine on the disk; closing it does not change the disk. Several may be open at once. For
 * threads see kv.h; writers wait while a thread has an iterator.
 */
spill_kv_t *disk_open(disk_t *disk);

/* The number of batches since the last sync; a crash of the machine may lose the last of them. */
size_t disk_unsynced(const disk_t *disk);

/* Crash the machine: of the batches that were not synced, only the first `kept` survive. */
void disk_crash(disk_t *disk, size_t kept);

/*
 * Let `after` more writes succeed; then `count` writes fail with `code`. With SPILL_UNKNOWN they
 * take effect nevertheless; with any other code they do not.
 */
void disk_fail_writes(disk_t *disk, size_t after, size_t count, spill_code_t code);

/* Make reads (get, seek, next) of this key fail with SPILL_CORRUPT. NULL: end that. */
void disk_damage(disk_t *disk, const uint8_t *key, size_t key_bytes);

#endif
