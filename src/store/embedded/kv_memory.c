#include "store/embedded/kv_memory.h"

#include "util/error.h"

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

static int compare(const uint8_t *left, size_t left_bytes, const uint8_t *right, size_t right_bytes)
{
    size_t common = left_bytes < right_bytes ? left_bytes : right_bytes;
    int order = memcmp(left, right, common);
    if (order != 0)
        return order;
    return (left_bytes > right_bytes) - (left_bytes < right_bytes);
}

/* Find the first node at or after the key; before[] gets the last node before it on each level. */
static node_t *find(const map_t *map, const uint8_t *key, size_t key_bytes, node_t **before)
{
    node_t *at = map->head;
    for (int level = HEIGHT_MAX - 1; level >= 0; level--) {
        while (at->next[level] &&
               compare(at->next[level]->key, at->next[level]->key_bytes, key, key_bytes) < 0)
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

/* ---- the disk -------------------------------------------------------------------------------- */

/*
 * The old value of a key that an unsynced change replaced; a crash restores it. The undos of a
 * batch end with one without a key.
 */
typedef struct undo {
    uint8_t *key;
    size_t key_bytes;
    uint8_t *value;
    size_t value_bytes;
    bool existed;
} undo_t;

struct spill_disk {
    pthread_rwlock_t lock;
    map_t map;
    undo_t *undos;
    size_t undo_count;
    size_t undo_capacity;
    size_t unsynced;
    size_t fail_after;
    size_t fail_count;
    spill_code_t fail_code;
    spill_buffer_t damaged;
};

spill_disk_t *spill_disk_new(void)
{
    spill_disk_t *disk = bson_malloc0(sizeof *disk);
    pthread_rwlock_init(&disk->lock, NULL);
    disk->map = (map_t){.head = new_node(HEIGHT_MAX, NULL, 0), .seed = 1};
    return disk;
}

static void discard_undos(spill_disk_t *disk)
{
    for (size_t i = 0; i < disk->undo_count; i++) {
        bson_free(disk->undos[i].key);
        bson_free(disk->undos[i].value);
    }
    disk->undo_count = 0;
    disk->unsynced = 0;
}

void spill_disk_free(spill_disk_t *disk)
{
    if (!disk)
        return;
    discard_undos(disk);
    bson_free(disk->undos);
    map_free(&disk->map);
    spill_buffer_release(&disk->damaged);
    pthread_rwlock_destroy(&disk->lock);
    bson_free(disk);
}

static undo_t *add_undo(spill_disk_t *disk)
{
    if (disk->undo_count == disk->undo_capacity) {
        disk->undo_capacity = disk->undo_capacity == 0 ? 64 : disk->undo_capacity * 2;
        disk->undos = bson_realloc(disk->undos, disk->undo_capacity * sizeof *disk->undos);
    }
    undo_t *undo = &disk->undos[disk->undo_count++];
    *undo = (undo_t){0};
    return undo;
}

static uint8_t *copy_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = bson_malloc(size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void record_undo(spill_disk_t *disk, const uint8_t *key, size_t key_bytes)
{
    undo_t *undo = add_undo(disk);
    undo->key = copy_bytes(key, key_bytes);
    undo->key_bytes = key_bytes;
    const node_t *node = find(&disk->map, key, key_bytes, NULL);
    if (!is_key(node, key, key_bytes))
        return;
    undo->existed = true;
    undo->value = copy_bytes(node->value, node->value_bytes);
    undo->value_bytes = node->value_bytes;
}

static void delete_range(spill_disk_t *disk, const uint8_t *from, size_t from_bytes,
                         const uint8_t *to, size_t to_bytes)
{
    node_t *node = find(&disk->map, from, from_bytes, NULL);
    while (node && compare(node->key, node->key_bytes, to, to_bytes) < 0) {
        node_t *next = node->next[0];
        record_undo(disk, node->key, node->key_bytes);
        map_delete(&disk->map, node->key, node->key_bytes);
        node = next;
    }
}

static void apply_change(spill_disk_t *disk, const spill_batch_t *batch,
                         const spill_change_t *change)
{
    const uint8_t *key = spill_batch_key(batch, change);
    const uint8_t *value = spill_batch_value(batch, change);
    switch (change->kind) {
    case SPILL_CHANGE_PUT:
        record_undo(disk, key, change->key_bytes);
        map_put(&disk->map, key, change->key_bytes, value, change->value_bytes);
        break;
    case SPILL_CHANGE_DELETE:
        record_undo(disk, key, change->key_bytes);
        map_delete(&disk->map, key, change->key_bytes);
        break;
    case SPILL_CHANGE_DELETE_RANGE:
        delete_range(disk, key, change->key_bytes, value, change->value_bytes);
        break;
    }
}

static void undo_last(spill_disk_t *disk)
{
    undo_t *undo = &disk->undos[--disk->undo_count];
    if (undo->existed)
        map_put(&disk->map, undo->key, undo->key_bytes, undo->value, undo->value_bytes);
    else
        map_delete(&disk->map, undo->key, undo->key_bytes);
    bson_free(undo->key);
    bson_free(undo->value);
}

size_t spill_disk_unsynced(const spill_disk_t *disk)
{
    return disk->unsynced;
}

void spill_disk_crash(spill_disk_t *disk, size_t kept)
{
    pthread_rwlock_wrlock(&disk->lock);
    while (disk->unsynced > kept) {
        disk->undo_count--; /* the end of the batch */
        while (disk->undo_count > 0 && disk->undos[disk->undo_count - 1].key)
            undo_last(disk);
        disk->unsynced--;
    }
    discard_undos(disk);
    pthread_rwlock_unlock(&disk->lock);
}

void spill_disk_fail_writes(spill_disk_t *disk, size_t after, size_t count, spill_code_t code)
{
    pthread_rwlock_wrlock(&disk->lock);
    disk->fail_after = after;
    disk->fail_count = count;
    disk->fail_code = code;
    pthread_rwlock_unlock(&disk->lock);
}

void spill_disk_damage(spill_disk_t *disk, const uint8_t *key, size_t key_bytes)
{
    pthread_rwlock_wrlock(&disk->lock);
    spill_buffer_clear(&disk->damaged);
    if (key)
        spill_buffer_append(&disk->damaged, key, key_bytes);
    pthread_rwlock_unlock(&disk->lock);
}

/* ---- the engine ------------------------------------------------------------------------------ */

typedef struct memory_kv {
    spill_kv_t base;
    spill_disk_t *disk;
} memory_kv_t;

typedef struct memory_iter {
    spill_kv_iter_t base;
    spill_disk_t *disk;
    const node_t *at;
    bool damaged;
} memory_iter_t;

static bool is_damaged(const spill_disk_t *disk, const uint8_t *key, size_t key_bytes)
{
    return disk->damaged.size > 0 && disk->damaged.size == key_bytes &&
           memcmp(disk->damaged.data, key, key_bytes) == 0;
}

static spill_code_t fail_damaged(spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT, "a record in memory was declared damaged");
}

static spill_code_t memory_get(spill_kv_t *kv, const uint8_t *key, size_t key_bytes,
                               spill_buffer_t *value, bool *found, spill_error_t *error)
{
    spill_disk_t *disk = ((memory_kv_t *)kv)->disk;
    spill_buffer_clear(value);
    pthread_rwlock_rdlock(&disk->lock);
    bool damaged = is_damaged(disk, key, key_bytes);
    const node_t *node = find(&disk->map, key, key_bytes, NULL);
    *found = !damaged && is_key(node, key, key_bytes);
    if (*found)
        spill_buffer_append(value, node->value, node->value_bytes);
    pthread_rwlock_unlock(&disk->lock);
    return damaged ? fail_damaged(error) : SPILL_OK;
}

/* The injected result of the next write. The lock is held. */
static spill_code_t next_outcome(spill_disk_t *disk)
{
    if (disk->fail_count == 0)
        return SPILL_OK;
    if (disk->fail_after > 0) {
        disk->fail_after--;
        return SPILL_OK;
    }
    disk->fail_count--;
    return disk->fail_code;
}

static spill_code_t memory_write(spill_kv_t *kv, const spill_batch_t *batch, bool sync,
                                 spill_error_t *error)
{
    spill_disk_t *disk = ((memory_kv_t *)kv)->disk;
    pthread_rwlock_wrlock(&disk->lock);
    spill_code_t code = next_outcome(disk);
    if (code == SPILL_OK || code == SPILL_UNKNOWN) {
        for (size_t i = 0; i < batch->count; i++)
            apply_change(disk, batch, &batch->changes[i]);
        add_undo(disk);
        disk->unsynced++;
        if (sync)
            discard_undos(disk);
    }
    pthread_rwlock_unlock(&disk->lock);
    if (code == SPILL_OK)
        return SPILL_OK;
    return spill_fail(error, code, "a write to memory was made to fail");
}

static void set_position(memory_iter_t *iter, const node_t *node)
{
    iter->at = node;
    iter->damaged = node && is_damaged(iter->disk, node->key, node->key_bytes);
    iter->base.valid = node && !iter->damaged;
    if (!iter->base.valid)
        return;
    iter->base.key = node->key;
    iter->base.key_bytes = node->key_bytes;
    iter->base.value = node->value;
    iter->base.value_bytes = node->value_bytes;
}

static void memory_seek(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    memory_iter_t *iter = (memory_iter_t *)base;
    set_position(iter, find(&iter->disk->map, key, key_bytes, NULL));
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
    find(&iter->disk->map, key, key_bytes, before);
    set_position(iter, before[0] == iter->disk->map.head ? NULL : before[0]);
}

static spill_code_t memory_status(spill_kv_iter_t *base, spill_error_t *error)
{
    return ((memory_iter_t *)base)->damaged ? fail_damaged(error) : SPILL_OK;
}

static void memory_iter_free(spill_kv_iter_t *base)
{
    memory_iter_t *iter = (memory_iter_t *)base;
    pthread_rwlock_unlock(&iter->disk->lock);
    bson_free(iter);
}

/* An iterator holds the lock until it is freed, so it reads a snapshot. */
static spill_kv_iter_t *memory_iterate(spill_kv_t *kv)
{
    static const spill_kv_iter_ops_t ops = {.seek = memory_seek,
                                            .next = memory_next,
                                            .seek_before = memory_seek_before,
                                            .status = memory_status,
                                            .free = memory_iter_free};
    memory_iter_t *iter = bson_malloc0(sizeof *iter);
    iter->base.ops = &ops;
    iter->disk = ((memory_kv_t *)kv)->disk;
    pthread_rwlock_rdlock(&iter->disk->lock);
    return &iter->base;
}

static spill_code_t memory_close(spill_kv_t *kv, spill_error_t *error)
{
    (void)error;
    bson_free(kv);
    return SPILL_OK;
}

spill_kv_t *spill_kv_memory_open(spill_disk_t *disk)
{
    static const spill_kv_ops_t ops = {
        .get = memory_get,
        .write = memory_write,
        .iterate = memory_iterate,
        .checkpoint = NULL,
        .close = memory_close,
    };
    memory_kv_t *kv = bson_malloc0(sizeof *kv);
    kv->base.ops = &ops;
    kv->disk = disk;
    return &kv->base;
}
