/*
 * Repair of a damaged log: cut it before the first byte that cannot be read.
 *
 * The logs stay unchanged in the folder, as "damaged-000012.log". A crash after any of these steps
 * does no harm:
 *
 *   1. every log from the cut on gets its second name; the folder is synced
 *   2. the logs behind the cut one lose their first name, the newest first
 *   3. the good part of the cut log is written to "cut-000012.tmp", synced, and renamed to
 *      "000012.log"; the folder is synced
 *
 * Until step 3 is done the logs are still damaged, so that nothing opens the store for writing, and
 * repair can be run again. No step deletes the last name of a log.
 */
#include "store/embedded/logs.h"

#include "bson/key.h"
#include "store/embedded/embedded.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/kv_rocksdb.h"
#include "store/embedded/records.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/file.h"

#include <bson/bson.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a cut drops ------------------------------------------------------------------------ */

enum { ID_BYTES = 4, SLOTS_FIRST = 256 };

static uint64_t hash_owner(const spill_log_losses_t *losses, const spill_log_owner_t *owner)
{
    return spill_hash(losses->bytes.data + owner->key, owner->key_bytes) ^
           (owner->array_id * UINT64_C(0x9e3779b97f4a7c15));
}

static void insert(spill_log_losses_t *losses, size_t index)
{
    size_t slot = (size_t)hash_owner(losses, &losses->owners[index]) % losses->slot_count;
    while (losses->slots[slot] != 0)
        slot = (slot + 1) % losses->slot_count;
    losses->slots[slot] = (uint32_t)index + 1;
}

static void grow(spill_log_losses_t *losses)
{
    losses->slot_count = losses->slot_count == 0 ? SLOTS_FIRST : losses->slot_count * 2;
    bson_free(losses->slots);
    losses->slots = bson_malloc0(losses->slot_count * sizeof *losses->slots);
    for (size_t i = 0; i < losses->count; i++)
        insert(losses, i);
}

/* Find or add an owner. Its key is at the end of the bytes; remove it there if it is known. */
static spill_log_owner_t *find_owner(spill_log_losses_t *losses, const spill_log_owner_t *wanted)
{
    if (losses->count * 2 >= losses->slot_count)
        grow(losses);
    size_t slot = (size_t)hash_owner(losses, wanted) % losses->slot_count;
    for (; losses->slots[slot] != 0; slot = (slot + 1) % losses->slot_count) {
        spill_log_owner_t *owner = &losses->owners[losses->slots[slot] - 1];
        if (owner->array_id == wanted->array_id && owner->key_bytes == wanted->key_bytes &&
            memcmp(losses->bytes.data + owner->key, losses->bytes.data + wanted->key,
                   wanted->key_bytes) == 0) {
            losses->bytes.size = wanted->key;
            return owner;
        }
    }
    if (losses->count == losses->capacity) {
        losses->capacity = losses->capacity == 0 ? SLOTS_FIRST : losses->capacity * 2;
        losses->owners = bson_realloc(losses->owners, losses->capacity * sizeof *losses->owners);
    }
    losses->owners[losses->count] = *wanted;
    losses->slots[slot] = (uint32_t)losses->count + 1;
    return &losses->owners[losses->count++];
}

/* The owner in a record's key, and the record's kind; NULL: the record is of no array. */
static spill_log_owner_t *owner_of(spill_log_losses_t *losses, const uint8_t *key, size_t bytes,
                                   uint8_t *kind)
{
    if (bytes < ID_BYTES)
        return NULL;
    uint32_t id = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
    size_t length = spill_owner_key_length(key + ID_BYTES, bytes - ID_BYTES);
    if (id == 0 || length == 0 || ID_BYTES + length == bytes)
        return NULL; /* system records and other fields */
    *kind = key[ID_BYTES + length];
    spill_log_owner_t wanted = {
        .array_id = id, .key = losses->bytes.size, .key_bytes = length, .elements = 0};
    spill_buffer_append(&losses->bytes, key + ID_BYTES, length);
    return find_owner(losses, &wanted);
}

static void add_change(spill_log_losses_t *losses, const spill_log_change_t *change)
{
    uint8_t kind = 0;
    spill_log_owner_t *owner = owner_of(losses, change->key, change->key_bytes, &kind);
    if (!owner)
        return;
    bool element = kind == SPILL_RECORD_ELEMENT;
    if (change->kind == SPILL_CHANGE_PUT)
        owner->elements += element;
    else
        owner->deleted += element;
}

void spill_log_losses_add(spill_log_losses_t *losses, const uint8_t *record, size_t bytes)
{
    spill_log_batch_t batch;
    spill_log_change_t change;
    losses->records++;
    if (!spill_log_batch_open(&batch, record, bytes)) {
        losses->bad++;
        return;
    }
    while (spill_log_batch_next(&batch, &change))
        add_change(losses, &change);
    losses->bad += batch.at.bad != 0;
}

void spill_log_losses_release(spill_log_losses_t *losses)
{
    bson_free(losses->owners);
    bson_free(losses->slots);
    spill_buffer_release(&losses->bytes);
    *losses = (spill_log_losses_t)SPILL_LOG_LOSSES_INIT;
}

typedef struct cutting {
    const char *folder;
    spill_logs_state_t state;
    uint64_t *logs; /* from the one that is cut on */
    size_t count;
    spill_log_losses_t losses;
} cutting_t;

/* ---- records behind the cut ------------------------------------------------------------------ */

/* Add the readable records from `offset` on. */
static void add_records(spill_log_losses_t *losses, FILE *file, int64_t offset)
{
    spill_log_reader_t *reader = bson_malloc(sizeof *reader);
    spill_log_reader_open(reader, file);
    spill_log_step_t step;
    while ((step = spill_log_reader_next(reader)) != SPILL_LOG_END)
        if (step == SPILL_LOG_RECORD && reader->offset >= offset)
            spill_log_losses_add(losses, reader->record, reader->record_bytes);
    spill_log_reader_close(reader);
    bson_free(reader);
}

static spill_code_t gather_losses(cutting_t *cutting, spill_log_cut_t *cut, spill_error_t *error)
{
    for (size_t i = 0; i < cutting->count; i++) {
        struct stat about = {0};
        int64_t offset = i == 0 ? cutting->state.offset : 0;
        char *path = spill_log_path(cutting->folder, cutting->logs[i]);
        FILE *file = fopen(path, "rbe");
        spill_code_t code = SPILL_OK;
        if (!file || fstat(fileno(file), &about) != 0)
            code = spill_fail_errno(error, errno, "%s: cannot read", path);
        bson_free(path);
        if (code == SPILL_OK) {
            add_records(&cutting->losses, file, offset);
            cut->bytes += (int64_t)about.st_size - offset;
        }
        if (file)
            fclose(file);
        if (code != SPILL_OK)
            return code;
    }
    cut->records = cutting->losses.records;
    cut->owners = (int64_t)cutting->losses.count;
    for (size_t i = 0; i < cutting->losses.count; i++)
        cut->elements += cutting->losses.owners[i].elements;
    return SPILL_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* The name of the definition with this number; false: none can be read. */
static bool find_definition(spill_kv_t *kv, uint32_t array_id, char *name, size_t size)
{
    spill_buffer_t prefix = SPILL_BUFFER_INIT;
    bool found = false;
    spill_system_key(&prefix, SPILL_SYSTEM_ARRAY, "");
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    iter->ops->seek(iter, prefix.data, prefix.size);
    for (; !found && spill_system_at_name(iter, &prefix, name, size); iter->ops->next(iter)) {
        spill_reader_t value = {.at = iter->value, .end = iter->value + iter->value_bytes};
        found = spill_reader_varint(&value) == array_id && !value.bad;
    }
    iter->ops->free(iter);
    spill_buffer_release(&prefix);
    return found;
}

static void report_owner(const cutting_t *cutting, const spill_log_owner_t *lost, spill_kv_t *kv,
                         spill_log_loss_fn report, void *context)
{
    char name[SPILL_NAME_SIZE];
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner;
    spill_log_loss_t loss = {
        .array_id = lost->array_id, .elements = lost->elements, .deleted = lost->deleted};
    if (kv && find_definition(kv, lost->array_id, name, sizeof name))
        loss.definition = name;
    if (spill_owner_from_key(cutting->losses.bytes.data + lost->key, lost->key_bytes, &storage,
                             &owner))
        loss.owner = &owner;
    report(context, &loss);
    bson_destroy(&storage);
}

static void report_losses(const cutting_t *cutting, spill_log_loss_fn report, void *context)
{
    spill_rocksdb_options_t options = {
        .read_only = true, .partial = true, .cache_bytes = INT64_C(1) << 20};
    spill_kv_t *kv = NULL;
    spill_kv_rocksdb_open(cutting->folder, &options, &kv,
                          NULL); /* if it fails, names are unknown */
    for (size_t i = 0; i < cutting->losses.count; i++)
        report_owner(cutting, &cutting->losses.owners[i], kv, report, context);
    if (kv)
        kv->ops->close(kv, NULL);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int copy_bytes(int from, int to, int64_t bytes)
{
    char block[64 * 1024];
    while (bytes > 0) {
        size_t part = bytes < (int64_t)sizeof block ? (size_t)bytes : sizeof block;
        ssize_t got = read(from, block, part);
        if (got == 0)
            return EIO;
        if (got < 0 && errno == EINTR)
            continue;
        int problem = got < 0 ? errno : spill_write_all(to, block, (size_t)got);
        if (problem != 0)
            return problem;
        bytes -= got;
    }
    return 0;
}

/*
 * Copy the first bytes of a file (-1: all) to `to`, through a temporary file: `to` is then the
 * whole copy or unchanged.
 */
static spill_code_t copy_file(const char *path, int64_t bytes, const char *temporary,
                              const char *to, spill_error_t *error)
{
    struct stat about;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &about) != 0) {
        int problem = errno;
        if (from >= 0)
            close(from);
        return spill_fail_errno(error, problem, "%s: cannot read", path);
    }
    int copy = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    about.st_mode & 0777);
    int problem = copy < 0 || fchmod(copy, about.st_mode & 0777) != 0 ? errno : 0;
    if (problem == 0)
        problem = copy_bytes(from, copy, bytes < 0 ? (int64_t)about.st_size : bytes);
    if (problem == 0 && fsync(copy) != 0)
        problem = errno;
    if (copy >= 0 && close(copy) != 0 && problem == 0)
        problem = errno;
    if (problem == 0 && rename(temporary, to) != 0)
        problem = errno;
    close(from);
    if (problem == 0)
        return SPILL_OK;
    unlink(temporary);
    return spill_fail_errno(error, problem, "%s: cannot write", to);
}

static bool same_file(const char *left, const char *right)
{
    struct stat one, other;
    return lstat(left, &one) == 0 && lstat(right, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Give a log its second name. An earlier try may have done that already. */
static spill_code_t keep_log(const char *folder, uint64_t log, char *kept, size_t size,
                             spill_error_t *error)
{
    enum { NAMES_MAX = 1000 };
    char *path = spill_log_path(folder, log);
    char *to = NULL;
    int problem = EEXIST;
    for (int i = 1; problem == EEXIST && i <= NAMES_MAX; i++) {
        char more[16] = "";
        if (i > 1)
            snprintf(more, sizeof more, "-%d", i);
        bson_free(to);
        snprintf(kept, size, "damaged-%06" PRIu64 "%s.log", log, more);
        to = bson_strdup_printf("%s/%s", folder, kept);
        problem = link(path, to) == 0 ? 0 : errno;
        problem = problem == EEXIST && same_file(path, to) ? 0 : problem;
    }
    spill_code_t code = SPILL_OK;
    if (problem == EPERM || problem == ENOTSUP || problem == EMLINK) { /* no hard links possible */
        char *temporary = bson_strdup_printf("%s/cut-%06" PRIu64 ".tmp", folder, log);
        code = copy_file(path, -1, temporary, to, error);
        bson_free(temporary);
    } else if (problem != 0) {
        code = spill_fail_errno(error, problem, "%s: cannot keep the log under this name", to);
    }
    bson_free(to);
    bson_free(path);
    return code;
}

static spill_code_t keep_logs(const cutting_t *cutting, spill_log_cut_t *cut, spill_error_t *error)
{
    for (size_t i = cutting->count; i > 0; i--) {
        spill_code_t code =
            keep_log(cutting->folder, cutting->logs[i - 1], cut->kept, sizeof cut->kept, error);
        if (code != SPILL_OK)
            return code;
    }
    return spill_folder_sync(cutting->folder, error);
}

static spill_code_t drop_newer_logs(const cutting_t *cutting, spill_error_t *error)
{
    for (size_t i = cutting->count; i > 1; i--) {
        char *path = spill_log_path(cutting->folder, cutting->logs[i - 1]);
        spill_code_t code = SPILL_OK;
        if (unlink(path) != 0)
            code = spill_fail_errno(error, errno, "%s: cannot delete", path);
        bson_free(path);
        if (code == SPILL_OK)
            code = spill_folder_sync(cutting->folder, error);
        if (code != SPILL_OK)
            return code;
    }
    return SPILL_OK;
}

static spill_code_t cut_file(const cutting_t *cutting, spill_error_t *error)
{
    char *path = spill_log_path(cutting->folder, cutting->logs[0]);
    char *temporary =
        bson_strdup_printf("%s/cut-%06" PRIu64 ".tmp", cutting->folder, cutting->logs[0]);
    spill_code_t code = copy_file(path, cutting->state.offset, temporary, path, error);
    bson_free(temporary);
    bson_free(path);
    return code == SPILL_OK ? spill_folder_sync(cutting->folder, error) : code;
}

static spill_code_t cut_logs(const cutting_t *cutting, spill_log_cut_t *cut, spill_error_t *error)
{
    spill_logs_state_t after;
    spill_code_t code = keep_logs(cutting, cut, error);
    if (code == SPILL_OK)
        code = drop_newer_logs(cutting, error);
    if (code == SPILL_OK)
        code = cut_file(cutting, error);
    if (code == SPILL_OK)
        code = spill_log_check(cutting->folder, &after, error);
    if (code == SPILL_OK && after.health > SPILL_LOGS_TORN)
        code = spill_log_fail(cutting->folder, &after, error);
    return code;
}

/* ---- the repair ------------------------------------------------------------------------------ */

static spill_code_t cut_damage(cutting_t *cutting, bool look_only, spill_log_loss_fn report,
                               void *context, spill_log_cut_t *cut, spill_error_t *error)
{
    const spill_logs_state_t *state = &cutting->state;
    cut->needed = true;
    cut->offset = state->offset;
    snprintf(cut->file, sizeof cut->file, "%s", state->file);
    snprintf(cut->reason, sizeof cut->reason, "%s", state->what);
    spill_code_t code =
        spill_log_numbers(cutting->folder, state->log, &cutting->logs, &cutting->count, error);
    if (code == SPILL_OK)
        code = gather_losses(cutting, cut, error);
    if (code == SPILL_OK && report)
        report_losses(cutting, report, context);
    if (code == SPILL_OK && !look_only)
        code = cut_logs(cutting, cut, error);
    spill_log_losses_release(&cutting->losses);
    bson_free(cutting->logs);
    return code;
}

spill_code_t spill_embedded_cut_log(const char *folder, bool look_only, spill_log_loss_fn report,
                                    void *context, spill_log_cut_t *cut, spill_error_t *error)
{
    spill_folder_kind_t kind;
    spill_folder_lock_t lock = {.mark = -1};
    cutting_t cutting = {.folder = folder, .losses = SPILL_LOG_LOSSES_INIT};
    spill_code_t code = spill_folder_look(folder, &kind, error);
    if (code != SPILL_OK)
        return code;
    if (kind == SPILL_FOLDER_MISSING)
        return spill_fail(error, SPILL_NOT_FOUND, "%s: there is no store; check the path", folder);
    code = look_only ? spill_folder_compare(folder, error)
                     : spill_folder_lock(folder, 0600, &lock, error);
    if (code != SPILL_OK)
        return code;
    code = spill_log_check(folder, &cutting.state, error);
    if (code == SPILL_OK && cutting.state.health == SPILL_LOGS_LOST)
        code = spill_log_fail(folder, &cutting.state, error);
    else if (code == SPILL_OK && cutting.state.health > SPILL_LOGS_TORN)
        code = cut_damage(&cutting, look_only, report, context, cut, error);
    spill_folder_unlock(folder, &lock, false);
    return code;
}
