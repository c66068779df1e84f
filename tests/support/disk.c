#include "support/disk.h"

#include "store/embedded/kv.h"
#include "util/error.h"

#include <bson/bson.h>
#include <pthread.h>
#include <string.h>

/*
 * The value that a key had before an unsynced batch; a crash restores it. The undos of a batch end
 * with one without a key.
 */
typedef struct undo {
    uint8_t *key;
    size_t key_bytes;
    uint8_t *value;
    size_t value_bytes;
    bool existed;
} undo_t;

struct disk {
    spill_kv_t *kv;
    pthread_mutex_t lock; /* of all that follows, except `damaged` */
    undo_t *undos;
    size_t undo_count;
    size_t undo_capacity;
    size_t unsynced;
    size_t fail_after;
    size_t fail_count;
    spill_code_t fail_code;
    spill_buffer_t damaged; /* no thread may read while it changes */
};

disk_t *disk_new(void)
{
    disk_t *disk = bson_malloc0(sizeof *disk);
    disk->kv = spill_kv_memory_new();
    pthread_mutex_init(&disk->lock, NULL);
    return disk;
}

static void discard_undos(disk_t *disk)
{
    for (size_t i = 0; i < disk->undo_count; i++) {
        bson_free(disk->undos[i].key);
        bson_free(disk->undos[i].value);
    }
    disk->undo_count = 0;
    disk->unsynced = 0;
}

void disk_free(disk_t *disk)
{
    if (!disk)
        return;
    discard_undos(disk);
    bson_free(disk->undos);
    disk->kv->ops->close(disk->kv, NULL);
    spill_buffer_release(&disk->damaged);
    pthread_mutex_destroy(&disk->lock);
    bson_free(disk);
}

/* ---- crashes --------------------------------------------------------------------------------- */

static undo_t *add_undo(disk_t *disk)
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

static void record_undo(disk_t *disk, const uint8_t *key, size_t key_bytes)
{
    undo_t *undo = add_undo(disk);
    spill_buffer_t value = SPILL_BUFFER_INIT;
    undo->key = copy_bytes(key, key_bytes);
    undo->key_bytes = key_bytes;
    disk->kv->ops->get(disk->kv, key, key_bytes, &value, &undo->existed, NULL);
    undo->value = copy_bytes(value.data, value.size);
    undo->value_bytes = value.size;
    spill_buffer_release(&value);
}

static int compare(const uint8_t *left, size_t left_bytes, const uint8_t *right, size_t right_bytes)
{
    int order = memcmp(left, right, left_bytes < right_bytes ? left_bytes : right_bytes);
    return order != 0 ? order : (left_bytes > right_bytes) - (left_bytes < right_bytes);
}

static void record_undos_of_range(disk_t *disk, const uint8_t *from, size_t from_bytes,
                                  const uint8_t *to, size_t to_bytes)
{
    spill_kv_iter_t *iter = disk->kv->ops->iterate(disk->kv);
    iter->ops->seek(iter, from, from_bytes);
    for (; iter->valid && compare(iter->key, iter->key_bytes, to, to_bytes) < 0;
         iter->ops->next(iter))
        record_undo(disk, iter->key, iter->key_bytes);
    iter->ops->free(iter);
}

/* Before the batch is written. */
static void record_undos(disk_t *disk, const spill_batch_t *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const spill_change_t *change = &batch->changes[i];
        const uint8_t *key = spill_batch_key(batch, change);
        if (change->kind == SPILL_CHANGE_DELETE_RANGE)
            record_undos_of_range(disk, key, change->key_bytes, spill_batch_value(batch, change),
                                  change->value_bytes);
        else
            record_undo(disk, key, change->key_bytes);
    }
    add_undo(disk);
    disk->unsynced++;
}

static void undo_last(disk_t *disk, spill_batch_t *batch)
{
    undo_t *undo = &disk->undos[--disk->undo_count];
    if (undo->existed)
        spill_batch_put(batch, undo->key, undo->key_bytes, undo->value, undo->value_bytes);
    else
        spill_batch_delete(batch, undo->key, undo->key_bytes);
    bson_free(undo->key);
    bson_free(undo->value);
}

size_t disk_unsynced(const disk_t *disk)
{
    return disk->unsynced;
}

void disk_crash(disk_t *disk, size_t kept)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    pthread_mutex_lock(&disk->lock);
    while (disk->unsynced > kept) {
        disk->undo_count--; /* the end of the batch */
        while (disk->undo_count > 0 && disk->undos[disk->undo_count - 1].key)
            undo_last(disk, &batch);
        disk->unsynced--;
    }
    discard_undos(disk);
    disk->kv->ops->write(disk->kv, &batch, true, NULL);
    pthread_mutex_unlock(&disk->lock);
    spill_batch_release(&batch);
}

/* ---- failures -------------------------------------------------------------------------------- */

void disk_fail_writes(disk_t *disk, size_t after, size_t count, spill_code_t code)
{
    pthread_mutex_lock(&disk->lock);
    disk->fail_after = after;
    disk->fail_count = count;
    disk->fail_code = code;
    pthread_mutex_unlock(&disk->lock);
}

/* The injected result of the next write. The lock is held. */
static spill_code_t next_outcome(disk_t *disk)
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

void disk_damage(disk_t *disk, const uint8_t *key, size_t key_bytes)
{
    spill_buffer_clear(&disk->damaged);
    if (key)
        spill_buffer_append(&disk->damaged, key, key_bytes);
}

static bool is_damaged(const disk_t *disk, const uint8_t *key, size_t key_bytes)
{
    return disk->damaged.size > 0 && disk->damaged.size == key_bytes &&
           memcmp(disk->damaged.data, key, key_bytes) == 0;
}

static spill_code_t fail_damaged(spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT, "a record in memory was declared damaged");
}

/* ---- the engine ------------------------------------------------------------------------------ */

typedef struct disk_kv {
    spill_kv_t base;
    disk_t *disk;
} disk_kv_t;

typedef struct disk_iter {
    spill_kv_iter_t base;
    spill_kv_iter_t *inner;
    const disk_t *disk;
    bool damaged;
} disk_iter_t;

static spill_code_t get(spill_kv_t *kv, const uint8_t *key, size_t key_bytes, spill_buffer_t *value,
                        bool *found, spill_error_t *error)
{
    const disk_t *disk = ((disk_kv_t *)kv)->disk;
    spill_code_t code = disk->kv->ops->get(disk->kv, key, key_bytes, value, found, error);
    if (!is_damaged(disk, key, key_bytes))
        return code;
    spill_buffer_clear(value);
    *found = false;
    return fail_damaged(error);
}

static spill_code_t write_batch(spill_kv_t *kv, const spill_batch_t *batch, bool sync,
                                spill_error_t *error)
{
    disk_t *disk = ((disk_kv_t *)kv)->disk;
    pthread_mutex_lock(&disk->lock);
    spill_code_t code = next_outcome(disk);
    if (code == SPILL_OK || code == SPILL_UNKNOWN) {
        record_undos(disk, batch);
        disk->kv->ops->write(disk->kv, batch, sync, NULL);
        if (sync)
            discard_undos(disk);
    }
    pthread_mutex_unlock(&disk->lock);
    if (code == SPILL_OK)
        return SPILL_OK;
    return spill_fail(error, code, "a write to memory was made to fail");
}

/* Show the inner iterator's record, unless it is damaged. */
static void show_position(disk_iter_t *iter)
{
    const spill_kv_iter_t *inner = iter->inner;
    iter->damaged = inner->valid && is_damaged(iter->disk, inner->key, inner->key_bytes);
    iter->base.valid = inner->valid && !iter->damaged;
    if (!iter->base.valid)
        return;
    iter->base.key = inner->key;
    iter->base.key_bytes = inner->key_bytes;
    iter->base.value = inner->value;
    iter->base.value_bytes = inner->value_bytes;
}

static void seek(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    disk_iter_t *iter = (disk_iter_t *)base;
    iter->inner->ops->seek(iter->inner, key, key_bytes);
    show_position(iter);
}

static void next(spill_kv_iter_t *base)
{
    disk_iter_t *iter = (disk_iter_t *)base;
    iter->inner->ops->next(iter->inner);
    show_position(iter);
}

static void seek_before(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    disk_iter_t *iter = (disk_iter_t *)base;
    iter->inner->ops->seek_before(iter->inner, key, key_bytes);
    show_position(iter);
}

static spill_code_t status(spill_kv_iter_t *base, spill_error_t *error)
{
    return ((disk_iter_t *)base)->damaged ? fail_damaged(error) : SPILL_OK;
}

static void iter_free(spill_kv_iter_t *base)
{
    disk_iter_t *iter = (disk_iter_t *)base;
    iter->inner->ops->free(iter->inner);
    bson_free(iter);
}

static spill_kv_iter_t *iterate(spill_kv_t *kv)
{
    static const spill_kv_iter_ops_t ops = {.seek = seek,
                                            .next = next,
                                            .seek_before = seek_before,
                                            .status = status,
                                            .free = iter_free};
    disk_iter_t *iter = bson_malloc0(sizeof *iter);
    iter->base.ops = &ops;
    iter->disk = ((disk_kv_t *)kv)->disk;
    iter->inner = iter->disk->kv->ops->iterate(iter->disk->kv);
    return &iter->base;
}

static spill_code_t close_engine(spill_kv_t *kv, spill_error_t *error)
{
    (void)error;
    bson_free(kv);
    return SPILL_OK;
}

spill_kv_t *disk_open(disk_t *disk)
{
    static const spill_kv_ops_t ops = {
        .get = get, .write = write_batch, .iterate = iterate, .close = close_engine};
    disk_kv_t *kv = bson_malloc0(sizeof *kv);
    kv->base.ops = &ops;
    kv->disk = disk;
    return &kv->base;
}
