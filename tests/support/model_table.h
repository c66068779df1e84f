/* A table of entries sorted by (id, key), for the model store's owners, fields and names. */
#ifndef TESTS_SUPPORT_MODEL_TABLE_H
#define TESTS_SUPPORT_MODEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The head of every entry's own struct. */
typedef struct model_entry {
    uint32_t id;
    uint8_t *key;
    size_t key_bytes;
} model_entry_t;

typedef struct model_table {
    model_entry_t **at;
    size_t count;
    size_t capacity;
} model_table_t;

/* Position of the first entry that is not below (id, key); `count` if all are. O(log count). */
size_t model_table_seek(const model_table_t *table, uint32_t id, const void *key, size_t key_bytes);

/* NULL if there is none. */
void *model_table_find(const model_table_t *table, uint32_t id, const void *key, size_t key_bytes);

/* Add a zeroed entry of `entry_bytes` with a copy of the key, which must be new. */
void *model_table_add(model_table_t *table, uint32_t id, const void *key, size_t key_bytes,
                      size_t entry_bytes);

/* Free the entry and its key. The caller first frees what else the entry points to. */
void model_table_remove(model_table_t *table, void *entry);

/* Free all entries in the same way. */
void model_table_release(model_table_t *table);

#endif
