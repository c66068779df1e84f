/*
 * The interface of an ordered key-value engine, as far as the embedded store needs it. Keys sort by
 * their bytes (memcmp; a prefix first). kv_rocksdb.c is the engine of stores on disk, kv_memory.c
 * the engine of stores in memory.
 */
#ifndef SPILL_STORE_EMBEDDED_KV_H
#define SPILL_STORE_EMBEDDED_KV_H

#include "store/embedded/batch.h"

#include <spillway/error.h>

typedef struct spill_kv spill_kv_t;
typedef struct spill_kv_iter spill_kv_iter_t;

typedef struct spill_kv_ops {
    /* Read the value of a key into `value` (cleared first). Any thread. */
    spill_code_t (*get)(spill_kv_t *kv, const uint8_t *key, size_t key_bytes, spill_buffer_t *value,
                        bool *found, spill_error_t *error);

    /*
     * Apply a batch atomically; readers see it at once. After a call with `sync` returns, this
     * batch and all earlier ones survive a crash of the machine. One thread at a time. After an
     * error no change of the batch is or becomes visible; after SPILL_UNKNOWN the batch may be
     * visible.
     */
    spill_code_t (*write)(spill_kv_t *kv, const spill_batch_t *batch, bool sync,
                          spill_error_t *error);

    /* An iterator reads the engine as of the call. Any thread; one thread at a time uses it. */
    spill_kv_iter_t *(*iterate)(spill_kv_t *kv);

    /* Copy the database into a new folder. NULL if the engine has no files. */
    spill_code_t (*checkpoint)(spill_kv_t *kv, const char *folder, spill_error_t *error);

    /* Frees `kv`, also after an error. */
    spill_code_t (*close)(spill_kv_t *kv, spill_error_t *error);
} spill_kv_ops_t;

struct spill_kv {
    const spill_kv_ops_t *ops;
    char *damage; /* what a partial open could not read, freed by close; or NULL */
};

typedef struct spill_kv_iter_ops {
    void (*seek)(spill_kv_iter_t *iter, const uint8_t *key, size_t key_bytes);
    void (*next)(spill_kv_iter_t *iter);
    /* Go to the last key below this one. */
    void (*seek_before)(spill_kv_iter_t *iter, const uint8_t *key, size_t key_bytes);
    /* Why the iterator is not valid; SPILL_OK at the end of the keys. */
    spill_code_t (*status)(spill_kv_iter_t *iter, spill_error_t *error);
    void (*free)(spill_kv_iter_t *iter);
} spill_kv_iter_ops_t;

/* The current record, if `valid`. The engine owns the bytes; they last until the iterator moves. */
struct spill_kv_iter {
    const spill_kv_iter_ops_t *ops;
    const void *guard; /* for engine_guard.cpp only; NULL in other engines */
    bool valid;
    const uint8_t *key;
    size_t key_bytes;
    const uint8_t *value;
    size_t value_bytes;
};

/* Why an iterator stopped; SPILL_OK if it is valid, too. */
static inline spill_code_t spill_kv_iter_stop(spill_kv_iter_t *iter, spill_error_t *error)
{
    return iter->valid ? SPILL_OK : iter->ops->status(iter, error);
}

/* For SPILL_SCOPED. */
static inline void spill_kv_iter_release(spill_kv_iter_t **iter)
{
    if (*iter)
        (*iter)->ops->free(*iter);
}

#endif
