/* A table of entries sorted by (id, key), for the memory store's owners, fields and names. */
#ifndef SPILL_STORE_MEMORY_TABLE_H
#define SPILL_STORE_MEMORY_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The head of every entry's own struct. */
typedef struct spill_memory_entry {
    uint32_t id;
    uint8_t *key;
    size_t key_bytes;
} spill_memory_entry_t;

typedef struct spill_memory_table {
    spill_memory_entry_t **at;
    size_t count;
    size_t capacity;
} spill_memory_table_t;

/* Position of the first entry that is not below (id, key); `count` if all are. O(log count). */
size_t spill_memory_table_seek(const spill_memory_table_t *table, uint32_t id, const void *key,
                               size_t key_bytes);

/* NULL if there is none. */
void *spill_memory_table_find(const spill_memory_table_t *table, uint32_t id, const void *key,
                              size_t key_bytes);

/* Add a zeroed entry of `entry_bytes` with a copy of the key, which must be new. */
void *spill_memory_table_add(spill_memory_table_t *table, uint32_t id, const void *key,
                             size_t key_bytes, size_t entry_bytes);

/* Free the entry and its key. The caller first frees what else the entry points to. */
void spill_memory_table_remove(spill_memory_table_t *table, void *entry);

/* Free all entries in the same way. */
void spill_memory_table_release(spill_memory_table_t *table);

#endif
