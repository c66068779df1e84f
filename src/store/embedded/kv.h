/*
 * What the embedded store needs of an ordered key-value engine, and nothing more. Keys order as
 * bytes do (memcmp, the shorter first). kv_rocksdb.c is the engine of stores on disk, kv_memory.c
 * one for tests, which can lose what was not synced.
 */
#ifndef SPILL_STORE_EMBEDDED_KV_H
#define SPILL_STORE_EMBEDDED_KV_H

#include "store/embedded/batch.h"

#include <spillway/error.h>

typedef struct spill_kv spill_kv_t;
typedef struct spill_kv_iter spill_kv_iter_t;

typedef struct spill_kv_ops {
    /* The value of a key, into `value` (cleared first). From any thread. */
    spill_code_t (*get)(spill_kv_t *kv, const uint8_t *key, size_t key_bytes, spill_buffer_t *value,
                        bool *found, spill_error_t *error);

    /*
     * Apply a batch: all of it or nothing, visible to readers at once. With `sync` it, and all that
     * was written before, survives a crash of the machine once this returns. One thread at a time.
     * After an error nothing of it is visible, nor will be; but after SPILL_UNKNOWN it may be.
     */
    spill_code_t (*write)(spill_kv_t *kv, const spill_batch_t *batch, bool sync,
                          spill_error_t *error);

    /* An iterator sees the engine as it was when it was made. From any thread; used by one. */
    spill_kv_iter_t *(*iterate)(spill_kv_t *kv);

    /* A copy of the whole into a folder that does not exist. NULL where an engine has no files. */
    spill_code_t (*checkpoint)(spill_kv_t *kv, const char *folder, spill_error_t *error);

    /* Frees `kv`, in every case. */
    spill_code_t (*close)(spill_kv_t *kv, spill_error_t *error);
} spill_kv_ops_t;

struct spill_kv {
    const spill_kv_ops_t *ops;
    char *damage; /* what a partial open could not read, freed by close; NULL: nothing */
};

typedef struct spill_kv_iter_ops {
    void (*seek)(spill_kv_iter_t *iter, const uint8_t *key, size_t key_bytes);
    void (*next)(spill_kv_iter_t *iter);
    /* To the last key below this one. */
    void (*seek_before)(spill_kv_iter_t *iter, const uint8_t *key, size_t key_bytes);
    /* SPILL_OK at the end of the keys; else why the iterator is not valid. */
    spill_code_t (*status)(spill_kv_iter_t *iter, spill_error_t *error);
    void (*free)(spill_kv_iter_t *iter);
} spill_kv_iter_ops_t;

/* Where it stands, if `valid`; the bytes are the engine's, until the iterator moves. */
struct spill_kv_iter {
    const spill_kv_iter_ops_t *ops;
    const void *guard; /* engine_guard.cpp's own; other engines leave it NULL */
    bool valid;
    const uint8_t *key;
    size_t key_bytes;
    const uint8_t *value;
    size_t value_bytes;
};

#endif
