/*
 * RocksDB used directly by an application: one record per element, with owner and number as the
 * key, and the next number in the owner's record. One batch writes both while the owner's lock is
 * held. The options are the embedded store's, except for its settings for a single writer.
 */
#include "../measure.h"
#include "peer.h"
#include "store/embedded/kv_rocksdb.h"

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS = 64, KEY_MAX = 96 };

typedef struct engine {
    rocksdb_t *db;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write;
    pthread_mutex_t locks[LOCKS];
} engine_t;

static void check(char *message)
{
    if (message)
        measure_stop("rocksdb: %s", message);
}

static void *open_engine(const peer_place_t *place)
{
    char *message = NULL;
    engine_t *engine = calloc(1, sizeof *engine);
    rocksdb_options_t *options =
        spill_kv_rocksdb_options(&(spill_rocksdb_options_t){.cache_bytes = 32 << 20});
    rocksdb_options_set_allow_concurrent_memtable_write(options, 1);
    rocksdb_options_set_enable_write_thread_adaptive_yield(options, 1);
    engine->db = rocksdb_open(options, place->folder, &message);
    check(message);
    rocksdb_options_destroy(options);
    engine->read = rocksdb_readoptions_create();
    engine->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(engine->write, place->durable);
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&engine->locks[i], NULL);
    return engine;
}

static void close_engine(void *peer)
{
    engine_t *engine = peer;
    rocksdb_close(engine->db);
    rocksdb_readoptions_destroy(engine->read);
    rocksdb_writeoptions_destroy(engine->write);
    free(engine);
}

static void *join(void *peer)
{
    return peer;
}

static void leave(void *connection)
{
    (void)connection;
}

static pthread_mutex_t *lock_of(engine_t *engine, const char *owner)
{
    unsigned hash = 5381;
    for (const char *at = owner; *at != '\0'; at++)
        hash = hash * 33 + (unsigned char)*at;
    return &engine->locks[hash % LOCKS];
}

/* The key: OWNER NUL, then for an element its kind and its number, the lowest first. */
static size_t make_key(char key[KEY_MAX], const char *owner, char kind, uint64_t number)
{
    size_t length = (size_t)snprintf(key, KEY_MAX - 16, "%s", owner) + 1;
    if (kind == '\0')
        return length;
    key[length++] = kind;
    for (int i = 0; i < 8; i++)
        key[length++] = (char)(number >> (56 - 8 * i));
    return length;
}

static uint64_t next_number(engine_t *engine, const char *owner)
{
    char key[KEY_MAX], *message = NULL;
    uint64_t number = 0;
    size_t size;
    char *value =
        rocksdb_get(engine->db, engine->read, key, make_key(key, owner, '\0', 0), &size, &message);
    check(message);
    if (value)
        memcpy(&number, value, sizeof number);
    rocksdb_free(value);
    return number;
}

/* Call this while holding the owner's lock. `id` NULL: none. */
static void put(engine_t *engine, const char *owner, const uint8_t *element, const int64_t *id)
{
    char key[KEY_MAX], *message = NULL;
    uint64_t number = next_number(engine, owner), next = number + 1;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, key, make_key(key, owner, 'e', number), (const char *)element,
                           ELEMENT_BYTES);
    rocksdb_writebatch_put(batch, key, make_key(key, owner, '\0', 0), (const char *)&next,
                           sizeof next);
    if (id)
        rocksdb_writebatch_put(batch, key, make_key(key, owner, 'i', (uint64_t)*id), "", 0);
    rocksdb_write(engine->db, engine->write, batch, &message);
    check(message);
    rocksdb_writebatch_destroy(batch);
}

static int64_t append(void *connection, const char *owner, const uint8_t *element,
                      const peer_op_t *op)
{
    engine_t *engine = connection;
    (void)op;
    pthread_mutex_lock(lock_of(engine, owner));
    put(engine, owner, element, NULL);
    pthread_mutex_unlock(lock_of(engine, owner));
    return 0;
}

static bool add(void *connection, const char *owner, int64_t id, const uint8_t *element)
{
    engine_t *engine = connection;
    char key[KEY_MAX], *message = NULL;
    size_t size;
    pthread_mutex_lock(lock_of(engine, owner));
    char *value = rocksdb_get(engine->db, engine->read, key,
                              make_key(key, owner, 'i', (uint64_t)id), &size, &message);
    check(message);
    if (!value)
        put(engine, owner, element, &id);
    pthread_mutex_unlock(lock_of(engine, owner));
    rocksdb_free(value);
    return value == NULL;
}

static int page(void *connection, const char *owner, int64_t skip, int limit)
{
    engine_t *engine = connection;
    char key[KEY_MAX], copy[ELEMENT_BYTES];
    int64_t last = (int64_t)next_number(engine, owner) - 1 - skip;
    int count = 0;
    if (last < 0)
        return 0;
    size_t prefix = make_key(key, owner, 'e', (uint64_t)last), size;
    rocksdb_iterator_t *iter = rocksdb_create_iterator(engine->db, engine->read);
    for (rocksdb_iter_seek(iter, key, prefix); count < limit && rocksdb_iter_valid(iter);
         rocksdb_iter_prev(iter), count++) {
        const char *at = rocksdb_iter_key(iter, &size);
        if (size != prefix || memcmp(at, key, prefix - 8) != 0)
            break;
        const char *value = rocksdb_iter_value(iter, &size);
        memcpy(copy, value, size < sizeof copy ? size : sizeof copy);
    }
    rocksdb_iter_destroy(iter);
    return count;
}

static void all(void *connection, const char *owner, peer_visit_fn visit, void *context)
{
    engine_t *engine = connection;
    char key[KEY_MAX];
    size_t prefix = make_key(key, owner, 'e', 0), size;
    rocksdb_iterator_t *iter = rocksdb_create_iterator(engine->db, engine->read);
    for (rocksdb_iter_seek(iter, key, prefix); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        const char *at = rocksdb_iter_key(iter, &size);
        if (size != prefix || memcmp(at, key, prefix - 8) != 0)
            break;
        const char *value = rocksdb_iter_value(iter, &size);
        visit(context, (const uint8_t *)value, size);
    }
    rocksdb_iter_destroy(iter);
}

const peer_t peer_rocksdb = {.name = "RocksDB raw",
                             .id = "rocksdb",
                             .home = PEER_HERE,
                             .open = open_engine,
                             .close = close_engine,
                             .join = join,
                             .leave = leave,
                             .append = append,
                             .add = add,
                             .page = page,
                             .all = all};
