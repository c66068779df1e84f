#include "store/embedded/kv_rocksdb.h"

#include "store/embedded/engine_error.h"
#include "util/clock.h"
#include "util/error.h"

#include <bson/bson.h>
#include <rocksdb/c.h>
#include <string.h>

/*
 * Memory: at most BUFFERS memtables, the block cache (which also holds index and filter blocks, so
 * that they do not grow with the data), and blocks in flight. docs/benchmarks.md has the sum.
 */
enum {
    BUFFER_BYTES = 32 * 1024 * 1024,
    BUFFERS = 3,
    LOG_BYTES_MAX = 96 * 1024 * 1024,
    BLOCK_BYTES = 8 * 1024,
    FILTER_BITS = 10,
    OPEN_FILES_MAX = 512,
    BACKGROUND_JOBS = 2,
    SYNC_BYTES = 1024 * 1024,
    MESSAGES_BYTES_MAX = 1024 * 1024,
    MESSAGES_KEPT = 4,
    LEVEL_WARN = 2
};

/*
 * How the log is replayed (docs/format.md has what was tried). Writing: an incomplete last record
 * is what a power loss leaves; anything else that is damaged is an error, for it may have been
 * acknowledged. Read-only, when that fails: whatever can be read.
 */
enum { REPLAY_TOLERATE_TAIL = 0, REPLAY_SKIP_DAMAGED = 3 };

typedef struct rocksdb_kv {
    spill_kv_t base;
    rocksdb_t *db;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write;
    rocksdb_writeoptions_t *write_sync;
    rocksdb_writebatch_t *batch; /* the one writer's */
    bool read_only;
    char *folder;
} rocksdb_kv_t;

typedef struct rocksdb_iter {
    spill_kv_iter_t base;
    rocksdb_iterator_t *at;
    const char *folder;
} rocksdb_iter_t;

static spill_code_t fail(spill_error_t *error, const char *place, char *message)
{
    spill_code_t code = spill_engine_fail(error, place, message);
    rocksdb_free(message);
    return code;
}

/* ---- reading and writing --------------------------------------------------------------------- */

static spill_code_t get(spill_kv_t *base, const uint8_t *key, size_t key_bytes,
                        spill_buffer_t *value, bool *found, spill_error_t *error)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    char *message = NULL;
    spill_buffer_clear(value);
    *found = false;
    rocksdb_pinnableslice_t *slice =
        rocksdb_get_pinned(kv->db, kv->read, (const char *)key, key_bytes, &message);
    if (message)
        return fail(error, kv->folder, message);
    if (!slice)
        return SPILL_OK;
    size_t size;
    const char *data = rocksdb_pinnableslice_value(slice, &size);
    spill_buffer_append(value, data, size);
    rocksdb_pinnableslice_destroy(slice);
    *found = true;
    return SPILL_OK;
}

static void gather(rocksdb_writebatch_t *to, const spill_batch_t *from)
{
    rocksdb_writebatch_clear(to);
    for (size_t i = 0; i < from->count; i++) {
        const spill_change_t *change = &from->changes[i];
        const char *key = (const char *)spill_batch_key(from, change);
        const char *value = (const char *)spill_batch_value(from, change);
        if (change->kind == SPILL_CHANGE_PUT)
            rocksdb_writebatch_put(to, key, change->key_bytes, value, change->value_bytes);
        else if (change->kind == SPILL_CHANGE_DELETE)
            rocksdb_writebatch_delete(to, key, change->key_bytes);
        else
            rocksdb_writebatch_delete_range(to, key, change->key_bytes, value, change->value_bytes);
    }
}

static spill_code_t write_batch(spill_kv_t *base, const spill_batch_t *batch, bool sync,
                                spill_error_t *error)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    char *message = NULL;
    gather(kv->batch, batch);
    rocksdb_write(kv->db, sync ? kv->write_sync : kv->write, kv->batch, &message);
    if (!message)
        return SPILL_OK;
    bool unclear = spill_engine_sync_failed(message);
    spill_code_t code = fail(error, kv->folder, message);
    if (unclear && error)
        error->code = SPILL_UNKNOWN;
    return unclear ? SPILL_UNKNOWN : code;
}

/* ---- iterators ------------------------------------------------------------------------------- */

static void stand(rocksdb_iter_t *iter)
{
    iter->base.valid = rocksdb_iter_valid(iter->at) != 0;
    if (!iter->base.valid)
        return;
    iter->base.key = (const uint8_t *)rocksdb_iter_key(iter->at, &iter->base.key_bytes);
    iter->base.value = (const uint8_t *)rocksdb_iter_value(iter->at, &iter->base.value_bytes);
}

static void seek(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    rocksdb_iter_t *iter = (rocksdb_iter_t *)base;
    rocksdb_iter_seek(iter->at, (const char *)key, key_bytes);
    stand(iter);
}

static void next(spill_kv_iter_t *base)
{
    rocksdb_iter_t *iter = (rocksdb_iter_t *)base;
    rocksdb_iter_next(iter->at);
    stand(iter);
}

static spill_code_t status(spill_kv_iter_t *base, spill_error_t *error)
{
    rocksdb_iter_t *iter = (rocksdb_iter_t *)base;
    char *message = NULL;
    rocksdb_iter_get_error(iter->at, &message);
    return message ? fail(error, iter->folder, message) : SPILL_OK;
}

static void free_iter(spill_kv_iter_t *base)
{
    rocksdb_iter_t *iter = (rocksdb_iter_t *)base;
    rocksdb_iter_destroy(iter->at);
    bson_free(iter);
}

static spill_kv_iter_t *iterate(spill_kv_t *base)
{
    static const spill_kv_iter_ops_t ops = {
        .seek = seek, .next = next, .status = status, .free = free_iter};
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    rocksdb_iter_t *iter = bson_malloc0(sizeof *iter);
    iter->base.ops = &ops;
    iter->at = rocksdb_create_iterator(kv->db, kv->read);
    iter->folder = kv->folder;
    return &iter->base;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static spill_code_t checkpoint(spill_kv_t *base, const char *folder, spill_error_t *error)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    char *message = NULL;
    rocksdb_checkpoint_t *maker = rocksdb_checkpoint_object_create(kv->db, &message);
    if (message)
        return fail(error, kv->folder, message);
    rocksdb_checkpoint_create(maker, folder, 0, &message);
    rocksdb_checkpoint_object_destroy(maker);
    return message ? fail(error, folder, message) : SPILL_OK;
}

static void free_kv(rocksdb_kv_t *kv)
{
    if (kv->db)
        rocksdb_close(kv->db);
    rocksdb_readoptions_destroy(kv->read);
    rocksdb_writeoptions_destroy(kv->write);
    rocksdb_writeoptions_destroy(kv->write_sync);
    rocksdb_writebatch_destroy(kv->batch);
    bson_free(kv->folder);
    bson_free(kv);
}

/* What is in memory goes to a file, so that the next open has no log to replay. */
static spill_code_t close_kv(spill_kv_t *base, spill_error_t *error)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    char *message = NULL;
    if (!kv->read_only) {
        rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
        rocksdb_flushoptions_set_wait(flush, 1);
        rocksdb_flush(kv->db, flush, &message);
        rocksdb_flushoptions_destroy(flush);
    }
    spill_code_t code = message ? fail(error, kv->folder, message) : SPILL_OK;
    free_kv(kv);
    return code;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void set_table_options(rocksdb_options_t *options, int64_t cache_bytes)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru((size_t)cache_bytes);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom(FILTER_BITS));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache);
}

/* The log callback speaks for the store; the engine's own messages go to the folder's LOG. */
static void set_messages(rocksdb_options_t *options)
{
    rocksdb_options_set_info_log_level(options, LEVEL_WARN);
    rocksdb_options_set_max_log_file_size(options, MESSAGES_BYTES_MAX);
    rocksdb_options_set_keep_log_file_num(options, MESSAGES_KEPT);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
}

static rocksdb_options_t *make_options(const spill_rocksdb_options_t *from)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, !from->read_only);
    rocksdb_options_set_paranoid_checks(options, 1);
    rocksdb_options_set_wal_recovery_mode(options, REPLAY_TOLERATE_TAIL);
    rocksdb_options_set_write_buffer_size(options, BUFFER_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, BUFFERS);
    rocksdb_options_set_max_total_wal_size(options, LOG_BYTES_MAX);
    rocksdb_options_set_avoid_unnecessary_blocking_io(options, 1);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS);
    rocksdb_options_set_bytes_per_sync(options, SYNC_BYTES);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_bottommost_compression(options, rocksdb_zstd_compression);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    /* Table files are opened as they are needed, but by a reader, whose files may be deleted. */
    rocksdb_options_set_max_open_files(options, from->read_only ? -1 : OPEN_FILES_MAX);
    /* One thread writes: the combiner's leader. */
    rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
    rocksdb_options_set_enable_write_thread_adaptive_yield(options, 0);
    set_messages(options);
    set_table_options(options, from->cache_bytes);
    return options;
}

static rocksdb_kv_t *new_kv(rocksdb_t *db, const char *folder, bool read_only)
{
    static const spill_kv_ops_t ops = {
        .get = get,
        .write = write_batch,
        .iterate = iterate,
        .checkpoint = checkpoint,
        .close = close_kv,
    };
    rocksdb_kv_t *kv = bson_malloc0(sizeof *kv);
    kv->base.ops = &ops;
    kv->db = db;
    kv->read_only = read_only;
    kv->folder = bson_strdup(folder);
    kv->read = rocksdb_readoptions_create();
    kv->write = rocksdb_writeoptions_create();
    kv->write_sync = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(kv->write_sync, 1);
    kv->batch = rocksdb_writebatch_create();
    return kv;
}

spill_code_t spill_kv_rocksdb_open(const char *folder, const spill_rocksdb_options_t *from,
                                   spill_kv_t **kv, spill_error_t *error)
{
    *kv = NULL;
    char *message = NULL;
    rocksdb_options_t *options = make_options(from);
    rocksdb_t *db = rocksdb_open(options, folder, &message);
    rocksdb_options_destroy(options);
    if (message)
        return fail(error, folder, message);
    *kv = &new_kv(db, folder, from->read_only)->base;
    return SPILL_OK;
}
