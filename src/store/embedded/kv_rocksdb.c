/* The engine of stores on disk: calls RocksDB, and chooses its options. */
#include "store/embedded/kv_rocksdb.h"

#include "bson/key.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/engine_fork.h"
#include "store/embedded/folder.h"
#include "store/embedded/logs.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"

#include <bson/bson.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Memory: at most BUFFERS memtables, the block cache, and blocks in use. The cache also has index
 * and filter blocks, so they do not grow with the data. docs/internals/benchmarks/embedded.md has
 * the sum.
 */
enum {
    BUFFER_BYTES = 24 * 1024 * 1024,
    BUFFERS = 3,
    LOG_BYTES_MAX = 96 * 1024 * 1024,
    BLOCK_BYTES = 8 * 1024,
    LEVELS = 7, /* the engine's default */
    PART_BYTES = 4 * 1024,
    LARGE_VALUE_BYTES = 512 * 1024,
    FILTER_BITS = 10,
    MEMORY_FILTER_SHARE = 32, /* of a memtable: a filter of its keys, for reads of absent ones */
    OPEN_FILES_MAX = 512,
    BACKGROUND_JOBS = 2,
    SYNC_BYTES = 1024 * 1024,
    KEPT_BYTES_MAX = 4 * 1024 * 1024,
    TABLES_SLOW = 20,     /* more tables on the first level slow down writers */
    PENDING_SLOW_GIB = 64 /* more bytes that wait for compaction slow down writers */
};

/*
 * How logs are replayed (RocksDB's numbers; docs/internals/format.md has what each of them does).
 * The store checks the logs itself before (log_check.c) and chooses by what it finds: COMPLETE if
 * the logs are whole, UP_TO_HOLE if the newest one has a torn end, SKIP_DAMAGED for a partial open.
 */
enum { REPLAY_COMPLETE = 1, REPLAY_UP_TO_HOLE = 2, REPLAY_SKIP_DAMAGED = 3 };

/* A reader's engine cannot write messages: it may not write to the folder. */
#define NOWHERE "/dev/null/nowhere"

typedef struct rocksdb_kv {
    spill_kv_t base;
    rocksdb_t *db;
    rocksdb_readoptions_t *read;
    rocksdb_readoptions_t *read_all; /* for iterators that pass from owner to owner */
    rocksdb_writeoptions_t *write;
    rocksdb_writeoptions_t *write_sync;
    rocksdb_writebatch_t *batch; /* used by the only writer */
    bool read_only;
    spill_code_t write_failed; /* the code of the last failed write; SPILL_OK: none failed */
    char *folder;
    spill_pinned_t *pinned; /* a reader's files, and the engine's view of them; else NULL */
    spill_engine_files_t *files;
    spill_insert_hints_t *hints; /* a writer's; else NULL */
    spill_log_fn log;
    void *log_context;
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

/* By key; changes of one key stay in their order. */
static int compare_changes(const void *left, const void *right, void *context)
{
    const spill_batch_t *batch = context;
    const spill_change_t *a = *(const spill_change_t *const *)left;
    const spill_change_t *b = *(const spill_change_t *const *)right;
    int order = spill_bytes_compare(spill_batch_key(batch, a), a->key_bytes,
                                    spill_batch_key(batch, b), b->key_bytes);
    return order != 0 ? order : (a > b) - (a < b);
}

/*
 * The changes of the batch. If there are many, they are in the order of their keys: a memtable then
 * finds the place of each from the one before. Ranges keep them in the order of the batch.
 */
static const spill_change_t **order_changes(const spill_batch_t *from, bool *sorted)
{
    enum { SORTED_MIN = 16 };
    const spill_change_t **changes = bson_malloc(from->count * sizeof(void *));
    *sorted = from->count >= SORTED_MIN;
    for (size_t i = 0; i < from->count; i++) {
        changes[i] = &from->changes[i];
        *sorted = *sorted && changes[i]->kind != SPILL_CHANGE_DELETE_RANGE;
    }
    if (*sorted)
        qsort_r(changes, from->count, sizeof(void *), compare_changes, (void *)from);
    return changes;
}

static void gather(rocksdb_writebatch_t *to, const spill_batch_t *from, bool *sorted)
{
    const spill_change_t **changes = order_changes(from, sorted);
    rocksdb_writebatch_clear(to);
    for (size_t i = 0; i < from->count; i++) {
        const spill_change_t *change = changes[i];
        const char *key = (const char *)spill_batch_key(from, change);
        const char *value = (const char *)spill_batch_value(from, change);
        if (change->kind == SPILL_CHANGE_PUT)
            rocksdb_writebatch_put(to, key, change->key_bytes, value, change->value_bytes);
        else if (change->kind == SPILL_CHANGE_DELETE)
            rocksdb_writebatch_delete(to, key, change->key_bytes);
        else
            rocksdb_writebatch_delete_range(to, key, change->key_bytes, value, change->value_bytes);
    }
    bson_free(changes);
}

static spill_code_t write_batch(spill_kv_t *base, const spill_batch_t *batch, bool sync,
                                spill_error_t *error)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    char *message = NULL;
    bool sorted;
    gather(kv->batch, batch, &sorted);
    spill_insert_hints_set(kv->hints, !sorted);
    rocksdb_write(kv->db, sync ? kv->write_sync : kv->write, kv->batch, &message);
    if (batch->bytes.size > KEPT_BYTES_MAX) { /* else it keeps the memory */
        rocksdb_writebatch_destroy(kv->batch);
        kv->batch = rocksdb_writebatch_create();
    }
    if (!message)
        return SPILL_OK;
    bool unclear = spill_engine_sync_failed(message);
    spill_code_t code = fail(error, kv->folder, message);
    kv->write_failed = code;
    if (unclear && error)
        error->code = SPILL_UNKNOWN;
    return unclear ? SPILL_UNKNOWN : code;
}

/* ---- iterators ------------------------------------------------------------------------------- */

static void set_position(rocksdb_iter_t *iter)
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
    set_position(iter);
}

static void next(spill_kv_iter_t *base)
{
    rocksdb_iter_t *iter = (rocksdb_iter_t *)base;
    rocksdb_iter_next(iter->at);
    set_position(iter);
}

static void seek_before(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    rocksdb_iter_t *iter = (rocksdb_iter_t *)base;
    rocksdb_iter_seek_for_prev(iter->at, (const char *)key, key_bytes);
    set_position(iter);
    bool itself = iter->base.valid && iter->base.key_bytes == key_bytes &&
                  memcmp(iter->base.key, key, key_bytes) == 0;
    if (itself) {
        rocksdb_iter_prev(iter->at);
        set_position(iter);
    }
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

const spill_kv_iter_ops_t spill_rocksdb_iter_ops = {
    .seek = seek, .next = next, .seek_before = seek_before, .status = status, .free = free_iter};

static spill_kv_iter_t *iterate_with(rocksdb_kv_t *kv, const rocksdb_readoptions_t *options)
{
    rocksdb_iter_t *iter = bson_malloc0(sizeof *iter);
    iter->base.ops = &spill_rocksdb_iter_ops;
    iter->at = rocksdb_create_iterator(kv->db, options);
    iter->folder = kv->folder;
    return &iter->base;
}

static spill_kv_iter_t *iterate(spill_kv_t *base)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    return iterate_with(kv, kv->read_all);
}

static spill_kv_iter_t *iterate_owner(spill_kv_t *base)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    return iterate_with(kv, kv->read);
}

/* ---- checkpoint and close -------------------------------------------------------------------- */

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
    rocksdb_readoptions_destroy(kv->read_all);
    rocksdb_writeoptions_destroy(kv->write);
    rocksdb_writeoptions_destroy(kv->write_sync);
    rocksdb_writebatch_destroy(kv->batch);
    spill_engine_files_free(kv->files);
    bson_free(kv->hints);
    spill_pinned_free(kv->pinned);
    bson_free(kv->folder);
    bson_free(kv->base.damage);
    bson_free(kv);
}

static uint64_t property(const rocksdb_kv_t *kv, const char *name)
{
    char *text = rocksdb_property_value(kv->db, name);
    uint64_t value = text ? strtoull(text, NULL, 10) : 0;
    rocksdb_free(text);
    return value;
}

/*
 * May a flush be called? It waits for compactions if it would slow down writers. If compactions
 * fail because the disk is full, it would wait until an administrator frees space.
 */
static bool can_flush(const rocksdb_kv_t *kv)
{
    enum { PAUSE_US = 5000 };
    const uint64_t pending_slow = (uint64_t)PENDING_SLOW_GIB << 30;
    while (property(kv, "rocksdb.num-files-at-level0") +
                   property(kv, "rocksdb.num-immutable-mem-table") + 1 >=
               TABLES_SLOW ||
           property(kv, "rocksdb.estimate-pending-compaction-bytes") >= pending_slow) {
        if (property(kv, "rocksdb.background-errors") > 0)
            return false;
        spill_clock_sleep_us(NULL, PAUSE_US);
    }
    return true;
}

/* The engine aborts the process if it syncs a log after a failed write. */
static spill_code_t sync_log(rocksdb_kv_t *kv, spill_error_t *error)
{
    char *message = NULL;
    if (kv->write_failed != SPILL_OK)
        return spill_fail(error, kv->write_failed,
                          "%s: is closed after a write failed; what was written before may not "
                          "survive a power loss yet: make room and open the store again",
                          kv->folder);
    rocksdb_flush_wal(kv->db, 1, &message);
    return message ? fail(error, kv->folder, message) : SPILL_OK;
}

/*
 * Write the memtables to a file, so that the next open has no log to replay. If that is not
 * possible, sync the log, which is as safe.
 */
static spill_code_t flush(rocksdb_kv_t *kv, spill_error_t *error)
{
    char *message = NULL;
    if (!can_flush(kv)) {
        if (kv->log)
            kv->log(kv->log_context, SPILL_LOG_WARNING,
                    "there is no room to merge tables: what was written last stays in the log");
        return sync_log(kv, error);
    }
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 1);
    rocksdb_flush(kv->db, options, &message);
    rocksdb_flushoptions_destroy(options);
    return message ? fail(error, kv->folder, message) : SPILL_OK;
}

static spill_code_t close_kv(spill_kv_t *base, spill_error_t *error)
{
    rocksdb_kv_t *kv = (rocksdb_kv_t *)base;
    spill_code_t code = kv->read_only ? SPILL_OK : flush(kv, error);
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
    /* Partitioned: a partition fits into the cache next to data, the whole filter does not. */
    rocksdb_block_based_options_set_index_type(
        table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_metadata_block_size(table, PART_BYTES);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom(FILTER_BITS));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache);
}

/*
 * Store large values in separate files. Then flushes and compactions do not hold several of them in
 * memory, raw and compressed, and a compaction does not write them again.
 */
static void set_large_values(rocksdb_options_t *options)
{
    rocksdb_options_set_enable_blob_files(options, 1);
    rocksdb_options_set_min_blob_size(options, LARGE_VALUE_BYTES);
    rocksdb_options_set_blob_compression_type(options, rocksdb_lz4_compression);
    rocksdb_options_set_enable_blob_gc(options, 1);
}

/*
 * A read that is in no cache decompresses blocks: LZ4 takes a tenth of ZSTD's time. So only the
 * third level of merged tables has ZSTD. It is used from about 2.5 GiB on, and has most of the data
 * then. The first number is that of the tables that are not merged.
 */
static void set_levels(rocksdb_options_t *options)
{
    int compression[LEVELS];
    for (int i = 0; i < LEVELS; i++)
        compression[i] = i < 3 ? rocksdb_lz4_compression : rocksdb_zstd_compression;
    rocksdb_options_set_compression_per_level(options, compression, LEVELS);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
}

/* ---- the filter of owners -------------------------------------------------------------------- */

/*
 * The bytes of the key that the filters have: those that all records of an array's owner begin
 * with. An entry of the index of ids has all but its sequence number instead, because most searches
 * are for ids that no element has. 0: the key is none of an owner's record.
 */
static size_t owner_bytes(const char *key, size_t key_bytes)
{
    enum { ID_BYTES = 4, NUMBER_BYTES = 8 };
    if (key_bytes <= ID_BYTES)
        return 0;
    size_t length = spill_owner_key_length((const uint8_t *)key + ID_BYTES, key_bytes - ID_BYTES);
    size_t owner = ID_BYTES + length;
    if (length == 0 || owner >= key_bytes)
        return 0;
    bool entry = (uint8_t)key[owner] == SPILL_RECORD_ID && key_bytes > owner + 1 + 2 * NUMBER_BYTES;
    return entry ? key_bytes - NUMBER_BYTES : owner;
}

static char *owner_of(void *context, const char *key, size_t key_bytes, size_t *bytes)
{
    (void)context;
    *bytes = owner_bytes(key, key_bytes);
    return (char *)(uintptr_t)key;
}

static unsigned char has_owner(void *context, const char *key, size_t key_bytes)
{
    (void)context;
    return owner_bytes(key, key_bytes) > 0;
}

static unsigned char is_owner(void *context, const char *prefix, size_t bytes)
{
    (void)context;
    (void)prefix;
    return bytes > 0;
}

static const char *owner_filter_name(void *context)
{
    (void)context;
    return "spillway.owner-or-id"; /* tables with another name are searched without it */
}

static void free_nothing(void *context)
{
    (void)context;
}

/*
 * The filters of tables and memtables have the owners and the ids of elements, too. A read of an
 * owner does not search a table that has none of its records: after a bulk load there are many
 * tables. A search for an id that no element has finds that out from the filters.
 */
static void set_owner_filter(rocksdb_options_t *options)
{
    rocksdb_options_set_prefix_extractor(
        options, rocksdb_slicetransform_create(NULL, free_nothing, owner_of, has_owner, is_owner,
                                               owner_filter_name));
}

/* Errors reach the caller. Other messages of the engine are not kept: see engine_files.cpp. */
static void set_messages(rocksdb_options_t *options)
{
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
}

rocksdb_options_t *spill_kv_rocksdb_options(const spill_rocksdb_options_t *from)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, !from->read_only);
    rocksdb_options_set_write_buffer_size(options, BUFFER_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, BUFFERS);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 1.0 / MEMORY_FILTER_SHARE);
    rocksdb_options_set_memtable_whole_key_filtering(options, 1);
    rocksdb_options_set_max_total_wal_size(options, LOG_BYTES_MAX);
    rocksdb_options_set_level0_slowdown_writes_trigger(options, TABLES_SLOW);
    rocksdb_options_set_soft_pending_compaction_bytes_limit(options,
                                                            (size_t)PENDING_SLOW_GIB << 30);
    rocksdb_options_set_avoid_unnecessary_blocking_io(options, 1);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS);
    rocksdb_options_set_bytes_per_sync(options, SYNC_BYTES);
    set_levels(options);
    rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
    /* With more threads, the engine ends the process if one of them cannot be started. */
    rocksdb_options_set_max_file_opening_threads(options, 1);
    /* One thread writes: the leader of the group commit. */
    rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
    rocksdb_options_set_enable_write_thread_adaptive_yield(options, 0);
    set_messages(options);
    set_owner_filter(options);
    set_large_values(options);
    set_table_options(options, from->cache_bytes);
    return options;
}

static rocksdb_kv_t *new_kv(rocksdb_t *db, const char *folder, const spill_rocksdb_options_t *from)
{
    static const spill_kv_ops_t ops = {
        .get = get,
        .write = write_batch,
        .iterate = iterate,
        .iterate_owner = iterate_owner,
        .checkpoint = checkpoint,
        .close = close_kv,
    };
    rocksdb_kv_t *kv = bson_malloc0(sizeof *kv);
    kv->base.ops = &ops;
    kv->db = db;
    kv->read_only = from->read_only;
    kv->log = from->log;
    kv->log_context = from->log_context;
    kv->folder = bson_strdup(folder);
    kv->read = rocksdb_readoptions_create();
    kv->read_all = rocksdb_readoptions_create();
    rocksdb_readoptions_set_total_order_seek(kv->read_all, 1);
    kv->write = rocksdb_writeoptions_create();
    kv->write_sync = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(kv->write_sync, 1);
    kv->batch = rocksdb_writebatch_create();
    return kv;
}

/* The parameters of one attempt to open. */
typedef struct attempt {
    const char *folder;
    const spill_rocksdb_options_t *from;
    int replay;
    bool read_only;
    spill_engine_files_t *files;
    spill_insert_hints_t *hints; /* a writer's; else NULL */
    bool paranoid; /* a damaged table file makes the open fail, not only reads of it */
} attempt_t;

static rocksdb_t *try_open(attempt_t attempt, char **message)
{
    rocksdb_options_t *options = spill_kv_rocksdb_options(attempt.from);
    rocksdb_options_set_wal_recovery_mode(options, attempt.replay);
    rocksdb_options_set_paranoid_checks(options, attempt.paranoid);
    /*
     * A reader opens all table files at once, so that its open reports damage. A partial open must
     * not: the engine then opens a database of a single table in a way that crashes if that table
     * is damaged. A writer opens them when they are needed.
     */
    if (attempt.read_only && attempt.paranoid)
        rocksdb_options_set_max_open_files(options, -1);
    rocksdb_t *db = NULL;
    *message = NULL;
    if (!spill_engine_files_use(attempt.files, options, message) ||
        (attempt.hints && !spill_engine_hints_use(attempt.hints, options, message))) {
        rocksdb_options_destroy(options);
        return NULL;
    }
    if (attempt.read_only) {
        rocksdb_options_set_db_log_dir(options, NOWHERE);
        db = rocksdb_open_for_read_only(options, attempt.folder, 0, message);
    } else {
        db = rocksdb_open(options, attempt.folder, message);
    }
    rocksdb_options_destroy(options);
    return db;
}

/* Try again with another way to replay the log; *message is freed and set again. */
static rocksdb_t *try_replay(attempt_t attempt, int replay, char **message)
{
    rocksdb_free(*message);
    attempt.replay = replay;
    return try_open(attempt, message);
}

static void warn(const spill_rocksdb_options_t *from, const char *format, const char *text)
{
    if (!from->log)
        return;
    char *message = bson_strdup_printf(format, text);
    from->log(from->log_context, SPILL_LOG_WARNING, message);
    bson_free(message);
}

/* The damage, without the advice to read partially, which the caller follows already. */
static char *describe_damage(const spill_error_t *damage)
{
    const char *advice = strstr(damage->message, "; `spillway export --partial'");
    return advice ? bson_strndup(damage->message, (size_t)(advice - damage->message))
                  : bson_strdup(damage->message);
}

/* A partial open: show what can be read. The message stays if that fails, too. */
static rocksdb_t *open_partial(attempt_t attempt, const spill_pinned_t *pinned,
                               const spill_error_t *damage, char **found)
{
    char *message = NULL;
    rocksdb_t *db = NULL;
    attempt.paranoid = false;
    if (!spill_log_stalls_engine(pinned))
        db = try_replay(attempt, REPLAY_SKIP_DAMAGED, &message);
    if (!db) { /* RocksDB 7.8 may refuse a good record behind a damaged one that spans blocks */
        attempt.paranoid = true; /* otherwise the engine reads past the damage */
        db = try_replay(attempt, REPLAY_UP_TO_HOLE, &message);
    }
    rocksdb_free(message);
    if (!db)
        return NULL;
    *found = describe_damage(damage);
    warn(
        attempt.from,
        "showing only what can be read; what the damaged bytes held is missing from the output: %s",
        *found);
    return db;
}

/* The engine's message about a log names no file. */
static spill_code_t fail_open(spill_error_t *error, const char *folder, char *message)
{
    char place[256];
    char logs[128];
    spill_folder_logs(folder, logs, sizeof logs);
    bool names_file = strstr(message, folder) != NULL || strstr(message, "CURRENT") != NULL;
    if (names_file || spill_engine_code(message) != SPILL_CORRUPT)
        return fail(error, folder, message);
    snprintf(place, sizeof place, "%.100s: the log (%s)", folder, logs);
    return fail(error, place, message);
}

/* A torn end that a reader finds may be a write under way. */
static spill_code_t open_checked(attempt_t attempt, const spill_pinned_t *pinned, rocksdb_t **db,
                                 spill_error_t *error)
{
    spill_logs_state_t logs;
    char *message = NULL;
    *db = NULL;
    spill_code_t code = pinned ? spill_log_check_pinned(pinned, &logs, error)
                               : spill_log_check(attempt.folder, &logs, error);
    if (code != SPILL_OK)
        return code;
    bool hole = logs.health == SPILL_LOGS_HOLE && !attempt.from->synced && !attempt.read_only;
    if (logs.health > SPILL_LOGS_TORN && !hole)
        return spill_log_fail(attempt.folder, &logs, error);
    if (hole)
        warn(attempt.from, "log durability: changes behind a hole in the logs are dropped: %s",
             logs.file);
    bool whole = logs.health == SPILL_LOGS_WHOLE && !logs.torn;
    *db = try_replay(attempt, whole ? REPLAY_COMPLETE : REPLAY_UP_TO_HOLE, &message);
    return *db ? SPILL_OK : fail_open(error, attempt.folder, message);
}

/*
 * `pinned`: a reader's files, which *kv then owns as it does attempt.files and attempt.hints; NULL
 * for a writer.
 */
static spill_code_t open_pinned(attempt_t attempt, spill_pinned_t *pinned, spill_kv_t **kv,
                                spill_error_t *error)
{
    const spill_rocksdb_options_t *from = attempt.from;
    rocksdb_t *db;
    spill_error_t damage;
    char *found = NULL;
    spill_code_t code = open_checked(attempt, pinned, &db, &damage);
    if (code == SPILL_CORRUPT && from->read_only && from->partial)
        db = open_partial(attempt, pinned, &damage, &found);
    if (!db) {
        if (error)
            *error = damage;
        return code;
    }
    rocksdb_kv_t *made = new_kv(db, attempt.folder, from);
    made->base.damage = found;
    made->files = attempt.files;
    made->hints = attempt.hints;
    made->pinned = pinned;
    *kv = &made->base;
    return SPILL_OK;
}

static spill_code_t open_for_writing(const char *folder, const spill_rocksdb_options_t *from,
                                     spill_kv_t **kv, spill_error_t *error)
{
    attempt_t attempt = {.folder = folder,
                         .from = from,
                         .paranoid = true,
                         .files = spill_engine_files_new(NULL),
                         .hints = bson_malloc0(sizeof(spill_insert_hints_t))};
    spill_code_t code = open_pinned(attempt, NULL, kv, error);
    if (code != SPILL_OK) {
        spill_engine_files_free(attempt.files);
        bson_free(attempt.hints);
    }
    return code;
}

static spill_code_t open_read_only(const char *folder, const spill_rocksdb_options_t *from,
                                   spill_kv_t **kv, spill_error_t *error)
{
    attempt_t attempt = {.folder = folder, .from = from, .read_only = true, .paranoid = true};
    spill_pinned_t *pinned;
    spill_code_t code = spill_pinned_open(folder, &pinned, error);
    if (code != SPILL_OK)
        return code;
    attempt.files = spill_engine_files_new(pinned);
    code = open_pinned(attempt, pinned, kv, error);
    if (code != SPILL_OK) {
        spill_engine_files_free(attempt.files);
        spill_pinned_free(pinned);
    }
    return code;
}

/* Damage that a second view does not have was a write under way. */
static spill_code_t open_reader(const char *folder, const spill_rocksdb_options_t *from,
                                spill_kv_t **kv, spill_error_t *error)
{
    enum { PAUSE_US = 20000 };
    spill_rocksdb_options_t first = *from;
    first.partial = false;
    spill_code_t code = open_read_only(folder, &first, kv, error);
    if (code != SPILL_CORRUPT)
        return code;
    spill_clock_sleep_us(NULL, PAUSE_US);
    return open_read_only(folder, from, kv, error);
}

spill_code_t spill_rocksdb_open(const char *folder, const spill_rocksdb_options_t *from,
                                spill_kv_t **kv, spill_error_t *error)
{
    *kv = NULL;
    SPILL_TRY(spill_engine_check_fork(folder, from->read_only, error));
    spill_code_t code = (from->read_only ? open_reader : open_for_writing)(folder, from, kv, error);
    spill_engine_has_run(from->read_only);
    return code;
}
