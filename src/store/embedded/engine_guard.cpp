/*
 * The boundary to the engine: its errors. RocksDB reports failures of files as text, but throws C++
 * exceptions if memory or threads run out. Each call of kv_rocksdb.c goes through a function here,
 * which turns an exception into an error. kv_rocksdb.c passes the texts to functions here.
 *
 * The engine is not exception-safe: an exception in a write may leave one of its locks taken. After
 * that, nothing calls the engine again, and the process keeps its memory and its lock on the
 * folder. Acknowledged writes are in the log; the next process replays it.
 */
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <bson/bson.h>
#include <rocksdb/perf_level.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a C function may have the name of a struct */
extern "C" {
#include "store/embedded/kv_rocksdb.h"
#include "util/error.h"
}
#pragma GCC diagnostic pop

/* ---- exceptions ------------------------------------------------------------------------------ */

namespace
{

struct guarded_kv_t {
    spill_kv_t base;
    spill_kv_t *inner;
    char *folder;
    std::atomic<bool> broken; /* an exception interrupted a write */
};

/* Turn the current exception into an error; call it in a handler. `place` is a folder. */
spill_code_t fail_exception(spill_error_t *error, const char *place)
{
    try {
        throw;
    } catch (const std::bad_alloc &) {
        return spill_fail(error, SPILL_NO_MEMORY,
                          "%s: the engine is out of memory; close the store and raise the limit of "
                          "memory (ulimit -v)",
                          place);
    } catch (const std::system_error &problem) {
        bool scarce = problem.code().value() == EAGAIN || problem.code().value() == ENOMEM;
        return spill_fail(error, scarce ? SPILL_NO_MEMORY : SPILL_IO,
                          "%s: the engine cannot start a thread: %s; close the store and raise the "
                          "limits of memory and of processes (ulimit -v, ulimit -u)",
                          place, problem.what());
    } catch (const std::exception &problem) {
        return spill_fail(error, SPILL_IO,
                          "%s: the engine failed: %s; close the store and open it "
                          "again",
                          place, problem.what());
    }
}

/*
 * The engine counts its steps for each thread. Nothing reads these counts, but counting costs a
 * tenth of the instructions of an append. So it is off during a call. Then the level of the
 * application, which may use RocksDB itself, applies again.
 */
class uncounted_t
{
  public:
    uncounted_t() : before_(rocksdb::GetPerfLevel())
    {
        rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
    }
    ~uncounted_t()
    {
        rocksdb::SetPerfLevel(before_);
    }
    uncounted_t(const uncounted_t &) = delete;
    uncounted_t &operator=(const uncounted_t &) = delete;

  private:
    rocksdb::PerfLevel before_;
};

/* Catch only standard exceptions: the cancellation of a thread must pass. */
template <typename Call>
spill_code_t guarded(spill_error_t *error, const char *place, bool *thrown, Call call)
{
    *thrown = false;
    try {
        uncounted_t uncounted;
        return call();
    } catch (const std::exception &) {
        *thrown = true;
        return fail_exception(error, place);
    }
}

spill_code_t fail_broken(const guarded_kv_t *kv, spill_error_t *error)
{
    return spill_fail(error, SPILL_NO_MEMORY,
                      "%s: the engine ran out of memory in a write before; end this process and "
                      "open the store again",
                      kv->folder);
}

/* ---- iterators ------------------------------------------------------------------------------- */

const guarded_kv_t *engine_of(const spill_kv_iter_t *iter)
{
    return static_cast<const guarded_kv_t *>(iter->guard);
}

void stay_failed(spill_kv_iter_t *iter, const uint8_t * /*key*/, size_t /*key_bytes*/)
{
    iter->valid = false;
}

void stay_failed_next(spill_kv_iter_t *iter)
{
    iter->valid = false;
}

spill_code_t broken_status(spill_kv_iter_t *iter, spill_error_t *error)
{
    return fail_broken(engine_of(iter), error);
}

spill_code_t failed_status(spill_kv_iter_t * /*iter*/, spill_error_t *error)
{
    return spill_fail(error, SPILL_NO_MEMORY,
                      "the engine ran out of memory while it read; close the store and raise the "
                      "limit of memory (ulimit -v)");
}

/* Freeing an iterator may take a lock of the engine, so a broken engine keeps its iterators. */
void free_guarded(spill_kv_iter_t *iter)
{
    bool thrown;
    if (engine_of(iter)->broken.load())
        return;
    guarded(nullptr, "", &thrown, [&] {
        spill_rocksdb_iter_ops.free(iter);
        return SPILL_OK;
    });
}

void free_empty(spill_kv_iter_t *iter)
{
    bson_free(iter);
}

/* Functions of an iterator whose last step failed, of one that could not be made, and of
 * iterators of a broken engine. */
const spill_kv_iter_ops_t failed_ops = {stay_failed, stay_failed_next, stay_failed, failed_status,
                                        free_guarded};
const spill_kv_iter_ops_t empty_ops = {stay_failed, stay_failed_next, stay_failed, failed_status,
                                       free_empty};
const spill_kv_iter_ops_t stopped_ops = {stay_failed, stay_failed_next, stay_failed, broken_status,
                                         free_guarded};
const spill_kv_iter_ops_t broken_ops = {stay_failed, stay_failed_next, stay_failed, broken_status,
                                        free_empty};

template <typename Step> void guard_step(spill_kv_iter_t *iter, Step step)
{
    if (engine_of(iter)->broken.load()) {
        iter->valid = false;
        iter->ops = &stopped_ops;
        return;
    }
    try {
        uncounted_t uncounted;
        step();
    } catch (const std::exception &) {
        iter->valid = false;
        iter->ops = &failed_ops;
    }
}

void guarded_seek(spill_kv_iter_t *iter, const uint8_t *key, size_t key_bytes)
{
    guard_step(iter, [&] { spill_rocksdb_iter_ops.seek(iter, key, key_bytes); });
}

void guarded_next(spill_kv_iter_t *iter)
{
    guard_step(iter, [&] { spill_rocksdb_iter_ops.next(iter); });
}

void guarded_seek_before(spill_kv_iter_t *iter, const uint8_t *key, size_t key_bytes)
{
    guard_step(iter, [&] { spill_rocksdb_iter_ops.seek_before(iter, key, key_bytes); });
}

spill_code_t guarded_status(spill_kv_iter_t *iter, spill_error_t *error)
{
    bool thrown;
    if (engine_of(iter)->broken.load())
        return fail_broken(engine_of(iter), error);
    return guarded(error, "an iterator", &thrown,
                   [&] { return spill_rocksdb_iter_ops.status(iter, error); });
}

const spill_kv_iter_ops_t iter_ops = {guarded_seek, guarded_next, guarded_seek_before,
                                      guarded_status, free_guarded};

spill_kv_iter_t *make_empty(const guarded_kv_t *kv, const spill_kv_iter_ops_t *ops)
{
    auto *iter = static_cast<spill_kv_iter_t *>(bson_malloc0(sizeof(spill_kv_iter_t)));
    iter->ops = ops;
    iter->guard = kv;
    return iter;
}

spill_kv_iter_t *guarded_make(spill_kv_t *base, bool owner)
{
    auto *kv = reinterpret_cast<guarded_kv_t *>(base);
    if (kv->broken.load())
        return make_empty(kv, &broken_ops);
    try {
        uncounted_t uncounted;
        spill_kv_iter_t *iter =
            owner ? spill_kv_iterate_owner(kv->inner) : kv->inner->ops->iterate(kv->inner);
        iter->ops = &iter_ops;
        iter->guard = kv;
        return iter;
    } catch (const std::exception &) {
        return make_empty(kv, &empty_ops);
    }
}

spill_kv_iter_t *guarded_iterate(spill_kv_t *base)
{
    return guarded_make(base, false);
}

spill_kv_iter_t *guarded_iterate_owner(spill_kv_t *base)
{
    return guarded_make(base, true);
}

/* ---- the rest -------------------------------------------------------------------------------- */

spill_code_t guarded_get(spill_kv_t *base, const uint8_t *key, size_t key_bytes,
                         spill_buffer_t *value, bool *found, spill_error_t *error)
{
    auto *kv = reinterpret_cast<guarded_kv_t *>(base);
    bool thrown;
    *found = false;
    if (kv->broken.load())
        return fail_broken(kv, error);
    spill_code_t code = guarded(error, kv->folder, &thrown, [&] {
        return kv->inner->ops->get(kv->inner, key, key_bytes, value, found, error);
    });
    if (thrown)
        *found = false;
    return code;
}

/* Whether the interrupted write is in the log is unknown. */
spill_code_t guarded_write(spill_kv_t *base, const spill_batch_t *batch, bool sync,
                           spill_error_t *error)
{
    auto *kv = reinterpret_cast<guarded_kv_t *>(base);
    bool thrown;
    if (kv->broken.load())
        return fail_broken(kv, error);
    spill_code_t code = guarded(error, kv->folder, &thrown, [&] {
        return kv->inner->ops->write(kv->inner, batch, sync, error);
    });
    if (!thrown)
        return code;
    kv->broken.store(true);
    if (error)
        error->code = SPILL_UNKNOWN;
    return SPILL_UNKNOWN;
}

spill_code_t guarded_checkpoint(spill_kv_t *base, const char *folder, spill_error_t *error)
{
    auto *kv = reinterpret_cast<guarded_kv_t *>(base);
    bool thrown;
    if (kv->broken.load())
        return fail_broken(kv, error);
    spill_code_t code = guarded(error, kv->folder, &thrown, [&] {
        return kv->inner->ops->checkpoint(kv->inner, folder, error);
    });
    if (thrown)
        kv->broken.store(true);
    return code;
}

spill_code_t guarded_close(spill_kv_t *base, spill_error_t *error)
{
    auto *kv = reinterpret_cast<guarded_kv_t *>(base);
    bool thrown;
    spill_code_t code =
        kv->broken.load() ? fail_broken(kv, error) : guarded(error, kv->folder, &thrown, [&] {
            return kv->inner->ops->close(kv->inner, error);
        });
    bson_free(kv->folder);
    delete kv;
    return code;
}

const spill_kv_ops_t kv_ops = {guarded_get,           guarded_write,      guarded_iterate,
                               guarded_iterate_owner, guarded_checkpoint, guarded_close};

} // namespace

spill_code_t spill_kv_rocksdb_open(const char *folder, const spill_rocksdb_options_t *options,
                                   spill_kv_t **kv, spill_error_t *error)
{
    bool thrown;
    guarded_kv_t *made = nullptr;
    *kv = nullptr;
    spill_code_t code = guarded(error, folder, &thrown, [&] {
        made = new guarded_kv_t{{&kv_ops, nullptr}, nullptr, nullptr, {false}};
        return spill_rocksdb_open(folder, options, &made->inner, error);
    });
    if (code != SPILL_OK) {
        delete made;
        return code;
    }
    made->folder = bson_strdup(folder);
    made->base.damage = made->inner->damage; /* which the inner one frees */
    *kv = &made->base;
    return SPILL_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

namespace
{

struct meaning_t {
    const char *text;
    spill_code_t code;
    const char *advice;
};

/* The first line with a text that is in the message applies. */
const meaning_t meanings[] = {
    {"No space left on device", SPILL_NO_SPACE, "make room, then open the store again"},
    {"Disk quota exceeded", SPILL_NO_SPACE, "raise the quota, then open the store again"},
    {"File too large", SPILL_NO_SPACE, "raise the file size limit, then open the store again"},
    {"Permission denied", SPILL_DENIED, "check who owns the folder and its files"},
    {"Operation not permitted", SPILL_DENIED, "check who owns the folder and its files"},
    {"Read-only file system", SPILL_DENIED, "open it read-only"},
    {"Resource temporarily unavailable", SPILL_BUSY, "another process has it open"},
    {"lock hold by current process", SPILL_BUSY, "this process has it open already"},
    {"No such file or directory", SPILL_CORRUPT,
     "a file is missing: restore a backup; `spillway export --partial' writes what can be read"},
    {"Corruption", SPILL_CORRUPT,
     "restore a backup; `spillway export --partial' writes what can be read"},
    {"does not exist (create_if_missing is false)", SPILL_NOT_FOUND, "check the path"},
};

const meaning_t *meaning_of(const char *message)
{
    static const meaning_t other = {"", SPILL_IO, "check the disk and the store's folder"};
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strstr(message, meanings[i].text))
            return &meanings[i];
    return &other;
}

/* RocksDB reports a missing table file by the name that it would have in LevelDB. */
void correct_name(char *text)
{
    for (char *at = text; (at = strstr(at, ".ldb:")) != nullptr;)
        memcpy(at, ".sst", 4);
}

} // namespace

spill_code_t spill_engine_code(const char *message)
{
    return meaning_of(message)->code;
}

bool spill_engine_sync_failed(const char *message)
{
    return strstr(message, "While fdatasync") != nullptr ||
           strstr(message, "While fsync") != nullptr ||
           strstr(message, "While sync_file_range") != nullptr;
}

spill_code_t spill_engine_fail(spill_error_t *error, const char *place, const char *message)
{
    const meaning_t *meaning = meaning_of(message);
    spill_fail(error, meaning->code, "%s: %s (%s)", place, message, meaning->advice);
    if (error) {
        correct_name(error->message);
        error->retryable = meaning->code == SPILL_BUSY;
    }
    return meaning->code;
}

/* ---- the check of a table file --------------------------------------------------------------- */

spill_code_t spill_engine_check(const char *path, const char *name, spill_error_t *error)
{
    bool thrown;
    return guarded(error, name, &thrown, [&] {
        char *message = spill_engine_check_table(path);
        if (!message)
            return SPILL_OK;
        std::string text(message);
        bson_free(message);
        size_t at = text.find(path);
        if (at != std::string::npos)
            text.replace(at, std::strlen(path), "the file");
        return spill_engine_fail(error, name, text.c_str());
    });
}
