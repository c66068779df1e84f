/* A table of entries in order of (id, key): what the memory store finds owners, fields and names
 * by. */
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

/* Position of the first entry that is not below (id, key); count when all are. O(log count). */
size_t spill_memory_table_seek(const spill_memory_table_t *table, uint32_t id, const void *key,
                               size_t key_bytes);

/* NULL when there is none. */
void *spill_memory_table_find(const spill_memory_table_t *table, uint32_t id, const void *key,
                              size_t key_bytes);

/* A new zeroed entry of `entry_bytes`, with a copy of the key. There must be none of that key. */
void *spill_memory_table_add(spill_memory_table_t *table, uint32_t id, const void *key,
                             size_t key_bytes, size_t entry_bytes);

/* Frees the entry and its key; what else it points to is the caller's to free first. */
void spill_memory_table_remove(spill_memory_table_t *table, void *entry);

/* Frees all that is left, likewise. */
void spill_memory_table_release(spill_memory_table_t *table);

#endif
