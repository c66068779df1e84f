/* The engine's filters find each id, also in tables of earlier versions, whose filters lack ids. */
#include "bson/key.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/kv_rocksdb.h"
#include "support/embedded.h"

#include <bson/bson.h>
#include <rocksdb/c.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { IDS = 200, INCARNATION = 7 };

/* ---- the filter of earlier versions: an owner's records have one entry ----------------------- */

static size_t owner_bytes(const char *key, size_t key_bytes)
{
    size_t length =
        key_bytes > 4 ? spill_owner_key_length((const uint8_t *)key + 4, key_bytes - 4) : 0;
    return length > 0 && 4 + length < key_bytes ? 4 + length : 0;
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

static const char *earlier_name(void *context)
{
    (void)context;
    return "spillway.owner";
}

static void free_nothing(void *context)
{
    (void)context;
}

/* ---- records --------------------------------------------------------------------------------- */

/* The index entry of element `number`, whose id is the number. */
static spill_record_key_t entry_key(int number, int64_t seq)
{
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t owner = SPILL_BUFFER_INIT, id = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    bson_iter_t at;
    spill_value_t name = spill_value_from_utf8(&storage, "ada");
    assert_int_equal(spill_owner_key(&name, &owner, NULL), SPILL_OK);
    bson_reinit(&storage);
    BSON_APPEND_INT32(&storage, "", number);
    assert_true(bson_iter_init_find(&at, &storage, ""));
    spill_value_t value = spill_value_from_iter(&at);
    assert_int_equal(spill_owner_key(&value, &id, NULL), SPILL_OK);
    spill_record_key_init(&key, 2, owner.data, owner.size);
    spill_record_key_id(&key, INCARNATION, &id, seq);
    spill_buffer_release(&owner);
    spill_buffer_release(&id);
    bson_destroy(&storage);
    return key;
}

/* Write the even ids into a table, as this version or an earlier one does. */
static void write_table(const char *folder, bool earlier)
{
    char *message = NULL;
    rocksdb_options_t *options =
        spill_kv_rocksdb_options(&(spill_rocksdb_options_t){.cache_bytes = 1 << 20});
    if (earlier)
        rocksdb_options_set_prefix_extractor(
            options, rocksdb_slicetransform_create(NULL, free_nothing, owner_of, has_owner,
                                                   is_owner, earlier_name));
    rocksdb_t *db = rocksdb_open(options, folder, &message);
    assert_null(message);
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    for (int number = 0; number < IDS; number += 2) {
        spill_record_key_t key = entry_key(number, 1000 + number);
        rocksdb_put(db, write, (const char *)key.data, key.size, "", 0, &message);
        assert_null(message);
    }
    rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &message);
    assert_null(message);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

/* Is the element with this id found by a seek to any lower number? */
static bool finds(spill_kv_t *kv, int number)
{
    spill_record_key_t from = entry_key(number, 5), entry = entry_key(number, 1000 + number);
    spill_kv_iter_t *iter = spill_kv_iterate_owner(kv);
    iter->ops->seek(iter, from.data, from.size);
    bool found = iter->valid && iter->key_bytes == entry.size &&
                 memcmp(iter->key, entry.data, entry.size) == 0;
    assert_int_equal(iter->ops->status(iter, NULL), SPILL_OK);
    iter->ops->free(iter);
    return found;
}

static void each_id_is_found(void **state)
{
    (void)state;
    for (int earlier = 0; earlier < 2; earlier++) {
        const char *folder = embedded_new_folder();
        spill_rocksdb_options_t options = {.cache_bytes = 1 << 20};
        spill_kv_t *kv;
        write_table(folder, earlier == 1);
        assert_int_equal(spill_kv_rocksdb_open(folder, &options, &kv, NULL), SPILL_OK);
        for (int number = 0; number < IDS; number++)
            assert_int_equal(finds(kv, number), number % 2 == 0);
        spill_batch_t batch = SPILL_BATCH_INIT; /* the others come into the memtable */
        for (int number = 1; number < IDS; number += 2) {
            spill_record_key_t key = entry_key(number, 1000 + number);
            spill_batch_put(&batch, key.data, key.size, NULL, 0);
        }
        assert_int_equal(kv->ops->write(kv, &batch, false, NULL), SPILL_OK);
        for (int number = 0; number < IDS; number++)
            assert_true(finds(kv, number));
        spill_batch_release(&batch);
        assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_id_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
