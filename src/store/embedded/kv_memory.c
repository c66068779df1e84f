/* The engine of stores in memory: an ordered map with a lock. */
#include "store/embedded/kv.h"
#include "util/buffer.h"

#include <bson/bson.h>
#include <pthread.h>
#include <string.h>

/* ---- an ordered map: a skip list ------------------------------------------------------------- */

enum { HEIGHT_MAX = 16 };

typedef struct node {
    uint8_t *value;
    size_t value_bytes;
    size_t key_bytes;
    uint8_t *key;
    int height;
    struct node *next[];
} node_t;

typedef struct map {
    node_t *head;
    uint64_t seed;
} map_t;

static node_t *new_node(int height, const uint8_t *key, size_t key_bytes)
{
    node_t *node = bson_malloc0(sizeof *node + (size_t)height * sizeof(node_t *));
    node->height = height;
    node->key_bytes = key_bytes;
    node->key = bson_malloc(key_bytes + 1);
    if (key_bytes > 0)
        memcpy(node->key, key, key_bytes);
    return node;
}

static void free_node(node_t *node)
{
    bson_free(node->key);
    bson_free(node->value);
    bson_free(node);
}

/* Find the first node at or after the key; before[] gets the last node before it on each level. */
static node_t *find(const map_t *map, const uint8_t *key, size_t key_bytes, node_t **before)
{
    node_t *at = map->head;
    for (int level = HEIGHT_MAX - 1; level >= 0; level--) {
        while (at->next[level] &&
               spill_bytes_compare(at->next[level]->key, at->next[level]->key_bytes, key,
                                   key_bytes) < 0)
            at = at->next[level];
        if (before)
            before[level] = at;
    }
    return at->next[0];
}

static bool is_key(const node_t *node, const uint8_t *key, size_t key_bytes)
{
    return node && node->key_bytes == key_bytes && memcmp(node->key, key, key_bytes) == 0;
}

static int random_height(map_t *map)
{
    map->seed = map->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    int height = 1;
    for (uint64_t bits = map->seed >> 32; (bits & 3) == 0 && height < HEIGHT_MAX; bits >>= 2)
        height++;
    return height;
}

static void set_value(node_t *node, const uint8_t *value, size_t value_bytes)
{
    bson_free(node->value);
    node->value = bson_malloc(value_bytes + 1);
    node->value_bytes = value_bytes;
    if (value_bytes > 0)
        memcpy(node->value, value, value_bytes);
}

static void map_put(map_t *map, const uint8_t *key, size_t key_bytes, const uint8_t *value,
                    size_t value_bytes)
{
    node_t *before[HEIGHT_MAX];
    node_t *node = find(map, key, key_bytes, before);
    if (!is_key(node, key, key_bytes)) {
        node = new_node(random_height(map), key, key_bytes);
        for (int level = 0; level < node->height; level++) {
            node->next[level] = before[level]->next[level];
            before[level]->next[level] = node;
        }
    }
    set_value(node, value, value_bytes);
}

static void map_delete(map_t *map, const uint8_t *key, size_t key_bytes)
{
    node_t *before[HEIGHT_MAX];
    node_t *node = find(map, key, key_bytes, before);
    if (!is_key(node, key, key_bytes))
        return;
    for (int level = 0; level < node->height; level++)
        before[level]->next[level] = node->next[level];
    free_node(node);
}

static void map_free(map_t *map)
{
    for (node_t *node = map->head; node;) {
        node_t *next = node->next[0];
        free_node(node);
        node = next;
    }
}

/* ---- the engine ------------------------------------------------------------------------------ */

typedef struct memory_kv {
    spill_kv_t base;
    pthread_mutex_t
        turn; /* a waiting writer holds it: threads that begin to read queue behind it */
    pthread_rwlock_t lock;
    map_t map;
} memory_kv_t;

typedef struct memory_iter {
    spill_kv_iter_t base;
    memory_kv_t *kv;
    const node_t *at;
} memory_iter_t;

/* How many locks for reading this thread holds. A thread that has one may not wait for a turn. */
static _Thread_local int reading;

static void lock_for_reading(memory_kv_t *kv)
{
    if (reading++ == 0) {
        pthread_mutex_lock(&kv->turn);
        pthread_mutex_unlock(&kv->turn);
    }
    pthread_rwlock_rdlock(&kv->lock);
}

static void unlock_after_reading(memory_kv_t *kv)
{
    reading--;
    pthread_rwlock_unlock(&kv->lock);
}

static spill_code_t memory_get(spill_kv_t *base, const uint8_t *key, size_t key_bytes,
                               spill_buffer_t *value, bool *found, spill_error_t *error)
{
    (void)error;
    memory_kv_t *kv = (memory_kv_t *)base;
    spill_buffer_clear(value);
    lock_for_reading(kv);
    const node_t *node = find(&kv->map, key, key_bytes, NULL);
    *found = is_key(node, key, key_bytes);
    if (*found)
        spill_buffer_append(value, node->value, node->value_bytes);
    unlock_after_reading(kv);
    return SPILL_OK;
}

static void delete_range(map_t *map, const uint8_t *from, size_t from_bytes, const uint8_t *to,
                         size_t to_bytes)
{
    node_t *node = find(map, from, from_bytes, NULL);
    while (node && spill_bytes_compare(node->key, node->key_bytes, to, to_bytes) < 0) {
        node_t *next = node->next[0];
        map_delete(map, node->key, node->key_bytes);
        node = next;
    }
}

static void apply_change(map_t *map, const spill_batch_t *batch, const spill_change_t *change)
{
    const uint8_t *key = spill_batch_key(batch, change);
    const uint8_t *value = spill_batch_value(batch, change);
    switch (change->kind) {
    case SPILL_CHANGE_PUT:
        map_put(map, key, change->key_bytes, value, change->value_bytes);
        break;
    case SPILL_CHANGE_DELETE:
        map_delete(map, key, change->key_bytes);
        break;
    case SPILL_CHANGE_DELETE_RANGE:
        delete_range(map, key, change->key_bytes, value, change->value_bytes);
        break;
    }
}

static spill_code_t memory_write(spill_kv_t *base, const spill_batch_t *batch, bool sync,
                                 spill_error_t *error)
{
    (void)sync;
    (void)error;
    memory_kv_t *kv = (memory_kv_t *)base;
    pthread_mutex_lock(&kv->turn);
    pthread_rwlock_wrlock(&kv->lock);
    pthread_mutex_unlock(&kv->turn);
    for (size_t i = 0; i < batch->count; i++)
        apply_change(&kv->map, batch, &batch->changes[i]);
    pthread_rwlock_unlock(&kv->lock);
    return SPILL_OK;
}

static void set_position(memory_iter_t *iter, const node_t *node)
{
    iter->at = node;
    iter->base.valid = node != NULL;
    if (!node)
        return;
    iter->base.key = node->key;
    iter->base.key_bytes = node->key_bytes;
    iter->base.value = node->value;
    iter->base.value_bytes = node->value_bytes;
}

static void memory_seek(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    memory_iter_t *iter = (memory_iter_t *)base;
    set_position(iter, find(&iter->kv->map, key, key_bytes, NULL));
}

static void memory_next(spill_kv_iter_t *base)
{
    memory_iter_t *iter = (memory_iter_t *)base;
    set_position(iter, iter->at->next[0]);
}

static void memory_seek_before(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    memory_iter_t *iter = (memory_iter_t *)base;
    node_t *before[HEIGHT_MAX];
    find(&iter->kv->map, key, key_bytes, before);
    set_position(iter, before[0] == iter->kv->map.head ? NULL : before[0]);
}

static spill_code_t memory_status(spill_kv_iter_t *base, spill_error_t *error)
{
    (void)base;
    (void)error;
    return SPILL_OK;
}

static void memory_iter_free(spill_kv_iter_t *base)
{
    memory_iter_t *iter = (memory_iter_t *)base;
    unlock_after_reading(iter->kv);
    bson_free(iter);
}

static spill_kv_iter_t *memory_iterate(spill_kv_t *base)
{
    static const spill_kv_iter_ops_t ops = {.seek = memory_seek,
                                            .next = memory_next,
                                            .seek_before = memory_seek_before,
                                            .status = memory_status,
                                            .free = memory_iter_free};
    memory_iter_t *iter = bson_malloc0(sizeof *iter);
    iter->base.ops = &ops;
    iter->kv = (memory_kv_t *)base;
    lock_for_reading(iter->kv);
    return &iter->base;
}

static spill_code_t memory_close(spill_kv_t *base, spill_error_t *error)
{
    (void)error;
    memory_kv_t *kv = (memory_kv_t *)base;
    map_free(&kv->map);
    pthread_rwlock_destroy(&kv->lock);
    pthread_mutex_destroy(&kv->turn);
    bson_free(kv);
    return SPILL_OK;
}

spill_kv_t *spill_kv_memory_new(void)
{
    static const spill_kv_ops_t ops = {
        .get = memory_get,
        .write = memory_write,
        .iterate = memory_iterate,
        .close = memory_close,
    };
    memory_kv_t *kv = bson_malloc0(sizeof *kv);
    kv->base.ops = &ops;
    kv->map = (map_t){.head = new_node(HEIGHT_MAX, NULL, 0), .seed = 1};
    pthread_mutex_init(&kv->turn, NULL);
    pthread_rwlock_init(&kv->lock, NULL);
    return &kv->base;
}
