/*
 * The interface of an ordered key-value engine, as far as the embedded store needs it, and batches
 * of changes to write to it. Keys sort by their bytes (memcmp; a prefix first). kv_rocksdb.c is the
 * engine of stores on disk, kv_memory.c the engine of stores in memory.
 */
#ifndef SPILL_STORE_EMBEDDED_KV_H
#define SPILL_STORE_EMBEDDED_KV_H

#include "util/buffer.h"

#include <spillway/error.h>

#include <stdbool.h>

/* ---- batch.c: batches of changes ------------------------------------------------------------- */

/*
 * A list of changes to write in one atomic step. While a caller adds to it, it can look up earlier
 * changes of a key (read your writes).
 */

typedef enum spill_change_kind {
    SPILL_CHANGE_PUT,
    SPILL_CHANGE_DELETE,
    SPILL_CHANGE_DELETE_RANGE /* keys in [key, value) */
} spill_change_kind_t;

/*
 * Two values of each change, for its key and for the key's series. A series has all keys that
 * differ only in their last eight bytes, which are a number in most records.
 */
typedef struct spill_batch_pair {
    uint32_t key;
    uint32_t series;
} spill_batch_pair_t;

/* Keys and values lie in the batch's bytes. */
typedef struct spill_change {
    spill_change_kind_t kind;
    uint32_t key_bytes;
    uint32_t value_bytes;
    size_t key;
    size_t value;
    spill_batch_pair_t hash;
    spill_batch_pair_t older; /* in the lists of its slots: positions + 1; 0: the oldest */
} spill_change_t;

typedef struct spill_batch {
    spill_change_t *changes;
    size_t count;
    size_t capacity;
    spill_buffer_t bytes;
    spill_batch_pair_t *slots; /* by hash, the newest change: its position + 1; 0: none */
    size_t slot_count;         /* a power of two, or 0 */
    bool is_hashed;            /* false: the batch is small, and the slots are empty */
} spill_batch_t;

#define SPILL_BATCH_INIT                                                                           \
    {                                                                                              \
        NULL, 0, 0, SPILL_BUFFER_INIT, NULL, 0, false                                              \
    }

void spill_batch_put(spill_batch_t *batch, const uint8_t *key, size_t key_bytes, const void *value,
                     size_t value_bytes);

/* Put a value of `value_bytes`. The caller fills in the result before it adds another change. */
uint8_t *spill_batch_put_place(spill_batch_t *batch, const uint8_t *key, size_t key_bytes,
                               size_t value_bytes);

/*
 * Put a value of unknown size: append it to the buffer that `open` returns, then call `close`. Add
 * no other change in between.
 */
spill_buffer_t *spill_batch_put_open(spill_batch_t *batch, const uint8_t *key, size_t key_bytes);
void spill_batch_put_close(spill_batch_t *batch);

void spill_batch_delete(spill_batch_t *batch, const uint8_t *key, size_t key_bytes);
void spill_batch_delete_range(spill_batch_t *batch, const uint8_t *from, size_t from_bytes,
                              const uint8_t *to, size_t to_bytes);

/* The newest PUT or DELETE of a key, or NULL. Ranges are ignored. O(1) on average. */
const spill_change_t *spill_batch_find(const spill_batch_t *batch, const uint8_t *key,
                                       size_t key_bytes);

/*
 * The newest PUT or DELETE of a key that has exactly eight bytes behind this prefix; with `newer`,
 * which an earlier call returned, the next older one. NULL: there is none. O(1) on average.
 */
const spill_change_t *spill_batch_find_series(const spill_batch_t *batch, const uint8_t *prefix,
                                              size_t prefix_bytes, const spill_change_t *newer);

const uint8_t *spill_batch_key(const spill_batch_t *batch, const spill_change_t *change);
const uint8_t *spill_batch_value(const spill_batch_t *batch, const spill_change_t *change);

/* A position to which the batch can be rolled back. */
typedef struct spill_batch_savepoint {
    size_t count;
    size_t bytes;
} spill_batch_savepoint_t;

spill_batch_savepoint_t spill_batch_savepoint(const spill_batch_t *batch);
void spill_batch_rewind(spill_batch_t *batch, spill_batch_savepoint_t mark); /* O(its changes) */

void spill_batch_clear(spill_batch_t *batch); /* keeps its memory, unless it is very large */
void spill_batch_release(spill_batch_t *batch);

/* ---- engines --------------------------------------------------------------------------------- */

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

    /*
     * The same, for seeks to records of owners of arrays and steps within the owner's records. A
     * seek to a record SPILL_RECORD_ID is for steps within the entries of its id; other steps may
     * miss such records. Beyond these, other records may be missing. NULL: use iterate.
     */
    spill_kv_iter_t *(*iterate_owner)(spill_kv_t *kv);

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

/* An iterator for records of single owners: ops->iterate_owner, or ops->iterate. */
static inline spill_kv_iter_t *spill_kv_iterate_owner(spill_kv_t *kv)
{
    return kv->ops->iterate_owner ? kv->ops->iterate_owner(kv) : kv->ops->iterate(kv);
}

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

/* ---- kv_memory.c: the engine in memory ------------------------------------------------------- */

/*
 * An ordered engine in memory, for stores named "memory:". Its data ends when it is closed.
 *
 * An iterator holds a lock until it is freed: writers wait meanwhile. So the thread that created it
 * frees it, and does not write before that.
 */

spill_kv_t *spill_kv_memory_new(void);

#endif
