/* Open, close and copy a store; the table of its functions. */
#include "store/embedded/embedded.h"

#include "store/embedded/embedded_codec.h"
#include "store/embedded/folder.h"
#include "store/embedded/kv.h"
#include "store/embedded/kv_rocksdb.h"
#include "util/error.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- copies ---------------------------------------------------------------------------------- */

#define COPY "copy"

/* The temporary folder of the copy, next to its target: "<folder>.partial-<pid>". */
static char *partial_path(const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return bson_strdup_printf("%.*s.partial-%ld", (int)length, folder, (long)getpid());
}

static spill_code_t refuse_existing(const char *folder, spill_error_t *error)
{
    struct stat about;
    if (lstat(folder, &about) == 0)
        return spill_fail(error, SPILL_REFUSED, "%s: exists already; name a folder that does not",
                          folder);
    if (errno == ENOENT)
        return SPILL_OK;
    return spill_fail_errno(error, errno, "%s: cannot be examined", folder);
}

/* Rename without replacing an existing file, if the file system supports that. */
static spill_code_t rename_to_new(const char *from, const char *to, spill_error_t *error)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return SPILL_OK;
    if (errno == EEXIST)
        return spill_fail(error, SPILL_REFUSED, "%s: exists already; name a folder that does not",
                          to);
    if ((errno == EINVAL || errno == ENOSYS) && rename(from, to) == 0)
        return SPILL_OK;
    return spill_fail_errno(error, errno, "%s: cannot put the copy there", to);
}

/* The error names the temporary folder: put the target's name before it. */
static spill_code_t name_target(const char *folder, spill_code_t code, spill_error_t *error)
{
    return spill_fail_prefix(error, code, "%s: no copy was made", folder);
}

/*
 * Check that the engine can open the copy, and the checksums of its files. If a partial copy was
 * requested, damage is only a warning.
 */
static spill_code_t check_copy(spill_embedded_t *store, const char *partial, spill_error_t *error)
{
    spill_error_t damage;
    spill_rocksdb_options_t options = {.read_only = true,
                                       .partial = store->base.options.partial,
                                       .cache_bytes = store->base.options.cache_bytes};
    spill_kv_t *copy;
    SPILL_TRY(spill_kv_rocksdb_open(partial, &options, &copy, error));
    SPILL_TRY(copy->ops->close(copy, error));
    spill_code_t code = spill_backup_check(partial, store->folder, &damage);
    if (code == SPILL_CORRUPT && options.partial) {
        spill_store_log(&store->base, SPILL_LOG_WARNING, "the copy has the same damage: %s",
                        damage.message);
        return SPILL_OK;
    }
    if (code != SPILL_OK && error)
        *error = damage;
    return code;
}

/* The engine writes the copy in a folder that no other user can open: "COPY.tmp", then "COPY". */
static void remove_partial(const char *partial)
{
    static const char *const names[] = {COPY, COPY ".tmp"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *inside = bson_strdup_printf("%s/%s", partial, names[i]);
        spill_folder_remove(inside);
        bson_free(inside);
    }
    spill_folder_remove(partial);
}

static spill_code_t make_copy(spill_embedded_t *store, const char *partial, const char *folder,
                              spill_error_t *error)
{
    bool made;
    unsigned mode = store->base.options.file_mode;
    char *copy = bson_strdup_printf("%s/" COPY, partial);
    spill_code_t code = spill_folder_make(partial, 0600, &made, error);
    if (code == SPILL_OK && !made)
        code = spill_fail(error, SPILL_REFUSED, "%s: exists already; remove it", partial);
    if (code == SPILL_OK)
        code = store->kv->ops->checkpoint(store->kv, copy, error);
    if (code == SPILL_OK && chmod(copy, mode | (mode & 0444U) >> 2U) != 0)
        code = spill_fail_errno(error, errno, "%s", copy);
    if (code == SPILL_OK)
        code = spill_folder_write_label(copy, mode, error);
    if (code == SPILL_OK)
        code = check_copy(store, copy, error);
    code = code == SPILL_OK ? rename_to_new(copy, folder, error) : name_target(folder, code, error);
    if (made)
        remove_partial(partial);
    bson_free(copy);
    return code == SPILL_OK ? spill_folder_sync_parent(folder, error) : code;
}

spill_code_t spill_embedded_backup(spill_store_t *base, const char *folder, spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    if (!store->kv->ops->checkpoint)
        return spill_fail(error, SPILL_INVALID,
                          "%s: a store in memory has no backup; export its arrays instead",
                          base->uri);
    spill_code_t code = spill_file_refuse_in_store(folder, error);
    if (code == SPILL_OK)
        code = refuse_existing(folder, error);
    if (code != SPILL_OK)
        return code;
    char *partial = partial_path(folder);
    remove_partial(partial); /* left by a killed process with the same number */
    code = make_copy(store, partial, folder, error);
    bson_free(partial);
    return code;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Does it read or delete a range? Then it must not share a batch with other requests. */
static bool needs_range(const spill_request_t *request)
{
    if (spill_needs_window_stats(request))
        return true;
    switch (request->kind) {
    case SPILL_REQUEST_TRIM:
    case SPILL_REQUEST_EMPTY_PAGE:
    case SPILL_REQUEST_DROP_HEAD:
    case SPILL_REQUEST_DROP_PAGE:
    case SPILL_REQUEST_UNMANAGE:
    case SPILL_REQUEST_FORGET:
    case SPILL_REQUEST_REWRITE:
        return true;
    case SPILL_REQUEST_RECOUNT:
        return request->recount.counts || request->recount.indexes;
    default:
        return false;
    }
}

static spill_code_t call(spill_store_t *base, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    spill_response_clear(response);
    if (request->kind == SPILL_REQUEST_READ)
        return spill_embedded_read(store, request, response, error);
    if (base->options.read_only)
        return spill_fail(error, SPILL_READ_ONLY, "%s: is open read-only", base->uri);
    spill_change_call_t change = {store, request, response};
    spill_code_t code = spill_group_commit_run(&store->writer, spill_embedded_decide, &change,
                                               needs_range(request), error);
    if (code != SPILL_OK)
        spill_response_clear(response);
    return code;
}

static spill_slice_t *recall(spill_store_t *base, const spill_recall_t *recall)
{
    return spill_tail_cache_recall(((spill_embedded_t *)base)->tails, recall);
}

/* The context of decide_many. */
typedef struct many {
    spill_embedded_t *store;
    const spill_request_t *requests;
    spill_response_t *responses;
    size_t count;
} many_t;

static spill_code_t decide_many(void *context, spill_batch_t *batch, spill_error_t *error)
{
    const many_t *many = context;
    for (size_t i = 0; i < many->count; i++) {
        spill_change_call_t change = {many->store, &many->requests[i], &many->responses[i]};
        SPILL_TRY(spill_embedded_decide(&change, batch, error));
    }
    return SPILL_OK;
}

static spill_code_t call_many(spill_store_t *base, const spill_request_t *requests, size_t count,
                              spill_response_t *responses, spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    bool alone = false;
    for (size_t i = 0; i < count; i++) {
        spill_response_clear(&responses[i]);
        alone = alone || needs_range(&requests[i]);
    }
    if (base->options.read_only || alone)
        return spill_fail(error, SPILL_REFUSED, "%s: requests one by one", base->uri);
    many_t many = {store, requests, responses, count};
    return spill_group_commit_run(&store->writer, decide_many, &many, false, error);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Forget what a failed write may have left in the caches. */
static void clear_caches(void *context)
{
    spill_embedded_t *store = context;
    spill_head_cache_clear(&store->heads);
    spill_op_cache_clear(&store->ops);
}

static spill_code_t close_store(spill_store_t *base, spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    spill_group_commit_release(&store->writer);
    spill_code_t code = store->kv->ops->close(store->kv, error);
    spill_folder_unlock(store->folder, &store->lock, code == SPILL_OK);
    bson_free(store->folder);
    bson_free(store->bindings);
    spill_definition_index_release(&store->definitions);
    bson_free(store->numbers.shared);
    clear_caches(store);
    spill_tail_cache_free(store->tails);
    spill_read_ahead_free(store->ahead);
    spill_store_base_release(base);
    bson_free(store);
    return code;
}

/* The stores are the same if their paths lead to the same folder. */
static spill_code_t is_same(spill_store_t *store, spill_store_t *other, bool *same,
                            spill_error_t *error)
{
    const char *folders[] = {((spill_embedded_t *)store)->folder,
                             ((spill_embedded_t *)other)->folder};
    struct stat about[2];
    *same = false;
    for (int i = 0; i < 2; i++) {
        if (!folders[i])
            return SPILL_OK;
        if (stat(folders[i], &about[i]) != 0)
            return spill_fail_errno(error, errno, "%s: cannot be examined", folders[i]);
    }
    *same = about[0].st_dev == about[1].st_dev && about[0].st_ino == about[1].st_ino;
    return SPILL_OK;
}

static const char *damage(const spill_store_t *store)
{
    return ((const spill_embedded_t *)store)->kv->damage;
}

static spill_code_t check_label(const spill_store_t *store, spill_error_t *error)
{
    const char *folder = ((const spill_embedded_t *)store)->folder;
    return folder ? spill_folder_check_label(folder, error) : SPILL_OK;
}

/* The functions of every embedded store, whatever its engine. */
#define COMMON_OPS                                                                                 \
    .shared_window = true, .checks_ids = true, .begins_steps = true, .call = call,                 \
    .recall = recall, .call_many = call_many, .bind = spill_embedded_bind,                         \
    .list = {[SPILL_LIST_OWNERS] = spill_embedded_owners,                                          \
             [SPILL_LIST_OVERSIZED] = spill_embedded_oversized,                                    \
             [SPILL_LIST_ORPHANS] = spill_embedded_orphans,                                        \
             [SPILL_LIST_WINDOWS] = spill_embedded_windows},                                       \
    .catalog_get = spill_embedded_catalog_get, .catalog_put = spill_embedded_catalog_put,          \
    .catalog_delete = spill_embedded_catalog_delete,                                               \
    .catalog_names = spill_embedded_catalog_names,                                                 \
    .definitions_beside = spill_embedded_definitions_beside,                                       \
    .definitions_version = spill_embedded_definitions_version, .retire = spill_embedded_retire,    \
    .check = spill_embedded_check, .close = close_store

static const spill_store_ops_t embedded_ops = {
    .name = "embedded",
    COMMON_OPS,
    .same = is_same,
    .backup = spill_embedded_backup,
    .damage = damage,
    .check_label = check_label,
};

static spill_code_t load_dropped_rev(spill_embedded_t *store, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    bool found;
    spill_system_key(&key, SPILL_SYSTEM_DROPPED, "");
    SPILL_TRY(store->kv->ops->get(store->kv, key.data, key.size, &value, &found, error));
    if (!found)
        return SPILL_OK;
    spill_reader_t reader = spill_reader_of(value.data, value.size);
    uint64_t rev = spill_reader_varint(&reader);
    store->dropped_rev = rev <= SPILL_MOMENT_MAX ? (int64_t)rev : 0;
    if (!spill_reader_ended(&reader) || rev > SPILL_MOMENT_MAX)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the record of dropped owners cannot be read: restore a backup",
                          store->base.uri);
    return SPILL_OK;
}

/* Load what only the leader of the group commit uses. */
static spill_code_t load_for_writing(spill_embedded_t *store, spill_error_t *error)
{
    SPILL_TRY(spill_embedded_load_bindings(store, error));
    return load_dropped_rev(store, error);
}

/* The tail cache's share of the caches. */
static int64_t tail_bytes(const spill_store_options_t *options)
{
    return options->cache_bytes / 2;
}

spill_code_t spill_embedded_open_kv(spill_kv_t *kv, const char *uri,
                                    const spill_store_options_t *options, spill_store_t **store,
                                    spill_error_t *error)
{
    *store = NULL;
    spill_code_t code = spill_embedded_format(kv, uri, options->read_only, error);
    if (code == SPILL_CORRUPT && options->read_only)
        code = SPILL_OK; /* other records may be readable */
    if (code != SPILL_OK) {
        kv->ops->close(kv, NULL);
        return code;
    }
    spill_embedded_t *embedded = bson_malloc0(sizeof *embedded);
    spill_store_base_init(&embedded->base, &embedded_ops, uri, options);
    embedded->kv = kv;
    embedded->lock.mark = -1;
    spill_definition_index_init(&embedded->definitions);
    spill_group_commit_init(&embedded->writer, kv, options->durability == SPILL_DURABILITY_FSYNC,
                            &embedded->base.counts.commits, &embedded->base.counts.syncs);
    embedded->writer.bytes = &embedded->base.counts.bytes_written;
    embedded->tails = spill_tail_cache_new(tail_bytes(options), &embedded->base.counts);
    embedded->writer.tails = embedded->tails;
    embedded->ahead = spill_read_ahead_new(kv);
    embedded->writer.ahead = embedded->ahead;
    embedded->writer.undone = clear_caches;
    embedded->writer.undone_context = embedded;
    code = spill_embedded_load_numbers(embedded, error);
    if (code == SPILL_CORRUPT && options->read_only)
        code = SPILL_OK; /* the same */
    if (code == SPILL_OK && !options->read_only)
        code = load_for_writing(embedded, error);
    if (code != SPILL_OK) {
        close_store(&embedded->base, NULL);
        return code;
    }
    *store = &embedded->base;
    return SPILL_OK;
}

/* Check the folder; make it and lock it if the options require it. */
static spill_code_t prepare_folder(const char *path, const spill_store_options_t *options,
                                   spill_folder_lock_t *lock, spill_error_t *error)
{
    spill_folder_kind_t kind;
    lock->mark = -1;
    spill_code_t code = spill_folder_look(path, &kind, error);
    if (code != SPILL_OK)
        return code;
    if (kind == SPILL_FOLDER_MISSING && (options->read_only || options->must_exist))
        return spill_fail(error, SPILL_NOT_FOUND, "%s: there is no store; check the path", path);
    bool made;
    if (!options->read_only && kind == SPILL_FOLDER_MISSING)
        code = spill_folder_make(path, options->file_mode, &made, error);
    if (code != SPILL_OK)
        return code;
    return options->read_only ? spill_folder_compare(path, error)
                              : spill_folder_lock(path, options->file_mode, lock, error);
}

spill_code_t spill_embedded_open(const char *path, const spill_store_options_t *options,
                                 spill_store_t **store, spill_error_t *error)
{
    *store = NULL;
    spill_folder_lock_t lock;
    spill_code_t code = prepare_folder(path, options, &lock, error);
    if (code != SPILL_OK)
        return code;
    spill_rocksdb_options_t engine = {
        .read_only = options->read_only,
        .partial = options->partial,
        .synced = options->durability == SPILL_DURABILITY_FSYNC,
        .cache_bytes = options->cache_bytes - tail_bytes(options),
        .log = options->log,
        .log_context = options->log_context,
    };
    spill_kv_t *kv;
    code = spill_kv_rocksdb_open(path, &engine, &kv, error);
    if (code == SPILL_OK)
        code = spill_embedded_open_kv(kv, path, options, store, error);
    if (code != SPILL_OK) {
        spill_folder_unlock(path, &lock, false);
        return code;
    }
    spill_embedded_t *embedded = (spill_embedded_t *)*store;
    embedded->folder = bson_strdup(path);
    embedded->lock = lock;
    return SPILL_OK;
}

/*
 * The same functions on the engine in memory, without those of folders. `check` reports while it
 * holds an iterator, so that no thread can write; but nothing damages a record in memory.
 */
static const spill_store_ops_t memory_ops = {
    .name = "memory",
    COMMON_OPS,
};

spill_code_t spill_memory_open(const char *uri, const spill_store_options_t *options,
                               spill_store_t **store, spill_error_t *error)
{
    *store = NULL;
    if (options->read_only || options->must_exist)
        return spill_fail(error, SPILL_NOT_FOUND,
                          "%s: a store in memory begins empty, there is none to open %s", uri,
                          options->read_only ? "read-only" : "that must exist");
    SPILL_TRY(spill_embedded_open_kv(spill_kv_memory_new(), uri, options, store, error));
    (*store)->ops = &memory_ops;
    return SPILL_OK;
}
