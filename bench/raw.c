#include "raw.h"

#include "measure.h"
#include "store/embedded/kv_rocksdb.h"

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWNERS = 64, PREFIX_BYTES = 16, HEADER_BYTES = 34, KEY_BYTES = PREFIX_BYTES + 16 };

struct raw {
    rocksdb_t *db;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write;
    rocksdb_writebatch_t *batches[OWNERS];
    pthread_mutex_t locks[OWNERS];
};

static void check(char *message)
{
    if (message)
        measure_stop("the bare engine: %s", message);
}

raw_t *raw_open(const char *folder, bool sync)
{
    char *message = NULL;
    raw_t *raw = calloc(1, sizeof *raw);
    rocksdb_options_t *options =
        spill_kv_rocksdb_options(&(spill_rocksdb_options_t){.cache_bytes = 32 << 20});
    /* The store changes these options for its single writer; use the engine's defaults here. */
    rocksdb_options_set_allow_concurrent_memtable_write(options, 1);
    rocksdb_options_set_enable_write_thread_adaptive_yield(options, 1);
    raw->db = rocksdb_open(options, folder, &message);
    check(message);
    rocksdb_options_destroy(options);
    raw->read = rocksdb_readoptions_create();
    raw->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(raw->write, sync);
    for (int i = 0; i < OWNERS; i++) {
        raw->batches[i] = rocksdb_writebatch_create();
        pthread_mutex_init(&raw->locks[i], NULL);
    }
    return raw;
}

void raw_close(raw_t *raw)
{
    rocksdb_close(raw->db);
    rocksdb_readoptions_destroy(raw->read);
    rocksdb_writeoptions_destroy(raw->write);
    for (int i = 0; i < OWNERS; i++) {
        rocksdb_writebatch_destroy(raw->batches[i]);
        pthread_mutex_destroy(&raw->locks[i]);
    }
    free(raw);
}

/* Header key: prefix. Element key: prefix with 'E', incarnation, number with the newest first. */
static void make_prefix(char *key, int owner, char kind)
{
    char text[PREFIX_BYTES];
    snprintf(text, sizeof text, "owner-%08d", owner);
    memcpy(key, text, PREFIX_BYTES - 1);
    key[PREFIX_BYTES - 1] = kind;
}

static void put_number(char *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        at[i] = (char)(number >> (56 - 8 * i));
}

/* Write an element; with an id key, also that. */
static void append(raw_t *raw, int owner, const void *given, size_t given_bytes, const char *id_key)
{
    char *message = NULL;
    char header_key[PREFIX_BYTES];
    char key[KEY_BYTES];
    char header[HEADER_BYTES] = {0};
    uint8_t element[ELEMENT_BYTES];
    uint64_t number = 0;
    size_t size;
    make_prefix(header_key, owner, 'A');
    char *old = rocksdb_get(raw->db, raw->read, header_key, PREFIX_BYTES, &size, &message);
    check(message);
    if (old)
        memcpy(&number, old, sizeof number);
    rocksdb_free(old);
    make_prefix(key, owner, 'E');
    put_number(key + PREFIX_BYTES, UINT64_MAX - 1);
    put_number(key + PREFIX_BYTES + 8, ~number);
    if (given)
        memcpy(element, given, given_bytes);
    else
        measure_element(element, number);
    number++;
    memcpy(header, &number, sizeof number);
    rocksdb_writebatch_t *batch = raw->batches[owner];
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_put(batch, key, KEY_BYTES, (const char *)element,
                           given ? given_bytes : ELEMENT_BYTES);
    if (id_key) /* leads to the element, so that it can be removed */
        rocksdb_writebatch_put(batch, id_key, KEY_BYTES, header, sizeof number);
    rocksdb_writebatch_put(batch, header_key, PREFIX_BYTES, header, HEADER_BYTES);
    rocksdb_write(raw->db, raw->write, batch, &message);
    check(message);
}

void raw_append(raw_t *raw, int owner)
{
    append(raw, owner, NULL, 0, NULL);
}

void raw_add(raw_t *raw, int owner, int64_t id)
{
    char *message = NULL;
    char key[KEY_BYTES];
    size_t size;
    make_prefix(key, owner, 'I');
    put_number(key + PREFIX_BYTES, UINT64_MAX - 1);
    put_number(key + PREFIX_BYTES + 8, (uint64_t)id);
    char *found = rocksdb_get(raw->db, raw->read, key, KEY_BYTES, &size, &message);
    check(message);
    if (!found)
        append(raw, owner, &id, sizeof id, key);
    rocksdb_free(found);
}

void raw_append_locked(raw_t *raw, int owner)
{
    pthread_mutex_lock(&raw->locks[owner]);
    raw_append(raw, owner);
    pthread_mutex_unlock(&raw->locks[owner]);
}

void raw_newest_page(raw_t *raw, int owner, int limit)
{
    char header_key[PREFIX_BYTES];
    char *page = malloc((size_t)limit * ELEMENT_BYTES);
    size_t size;
    make_prefix(header_key, owner, 'A');
    rocksdb_iterator_t *iter = rocksdb_create_iterator(raw->db, raw->read);
    rocksdb_iter_seek(iter, header_key, PREFIX_BYTES);
    for (int i = 0; i < limit; i++) {
        rocksdb_iter_next(iter);
        if (!rocksdb_iter_valid(iter))
            measure_stop("the bare engine: too few elements");
        rocksdb_iter_key(iter, &size);
        const char *value = rocksdb_iter_value(iter, &size);
        memcpy(page + (size_t)i * ELEMENT_BYTES, value, size);
    }
    rocksdb_iter_destroy(iter);
    free(page);
}
