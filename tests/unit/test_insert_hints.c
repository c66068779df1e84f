/*
 * The hints for the engine's memtable: they save comparisons, and all records stay in order.
 * The engine counts comparisons for the thread, but not inside the guarded engine.
 */
#include "bson/key.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/insert_hints.h"
#include "store/embedded/kv_rocksdb.h"
#include "support/embedded.h"
#include "util/error.h"

#include <bson/bson.h>
#include <rocksdb/c.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { INCARNATION = 7, ARRAY = 2 };

static spill_record_key_t key_of(int owner)
{
    char name[24];
    bson_t storage = BSON_INITIALIZER;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    snprintf(name, sizeof name, "owner-%d", owner);
    spill_value_t value = spill_value_from_utf8(&storage, name);
    assert_int_equal(spill_owner_key(&value, &bytes, NULL), SPILL_OK);
    spill_record_key_init(&key, ARRAY, bytes.data, bytes.size);
    bson_destroy(&storage);
    return key;
}

/* What an append writes: an element and the head, both with the element's number. */
static void add_append(spill_batch_t *batch, int owner, int64_t seq)
{
    spill_record_key_t key = key_of(owner);
    spill_record_key_element(&key, INCARNATION, seq);
    spill_batch_put(batch, key.data, key.size, &seq, sizeof seq);
    spill_record_key_kind(&key, SPILL_RECORD_HEAD);
    spill_batch_put(batch, key.data, key.size, &seq, sizeof seq);
}

/* ---- the choice of keys ---------------------------------------------------------------------- */

static size_t find(spill_insert_hints_t *hints, const spill_record_key_t *key)
{
    return spill_insert_hints_find(hints, key->data, key->size);
}

static void second_record_of_an_owner_has_a_hint(void **state)
{
    (void)state;
    spill_insert_hints_t hints = {0};
    spill_record_key_t head = key_of(1), element = key_of(1);
    spill_record_key_kind(&head, SPILL_RECORD_HEAD);
    spill_record_key_element(&element, INCARNATION, 5);
    assert_int_equal(find(&hints, &head), SPILL_INSERT_HINT_NONE); /* they are off at first */
    spill_insert_hints_set(&hints, true);
    assert_int_equal(find(&hints, &head), SPILL_INSERT_HINT_NONE);
    assert_int_equal(find(&hints, &element), SPILL_INSERT_HINT_NONE);
    size_t of_head = find(&hints, &head);
    assert_true(of_head < SPILL_INSERT_HINTS);
    spill_record_key_element(&element, INCARNATION, 6);
    size_t of_element = find(&hints, &element);
    assert_true(of_element < SPILL_INSERT_HINTS);
    assert_int_not_equal(of_element, of_head);
    spill_insert_hints_set(&hints, false);
    assert_int_equal(find(&hints, &head), SPILL_INSERT_HINT_NONE);
}

/* The owners that share a hint take it from each other. */
static void owner_loses_its_hint_to_another(void **state)
{
    (void)state;
    spill_insert_hints_t hints = {.on = true};
    spill_record_key_t first = key_of(0);
    spill_record_key_kind(&first, SPILL_RECORD_HEAD);
    find(&hints, &first);
    size_t hint = find(&hints, &first);
    bool shared = false;
    for (int owner = 1; !shared && owner < 100 * SPILL_INSERT_HINTS; owner++) {
        spill_record_key_t other = key_of(owner);
        spill_record_key_kind(&other, SPILL_RECORD_HEAD);
        assert_int_equal(find(&hints, &other), SPILL_INSERT_HINT_NONE);
        shared = find(&hints, &other) == hint;
    }
    assert_true(shared);
    assert_int_equal(find(&hints, &first), SPILL_INSERT_HINT_NONE);
    assert_int_equal(find(&hints, &first), hint);
}

static void other_records_have_no_hint(void **state)
{
    (void)state;
    static const uint8_t damaged[] = {0, 0, 0, 2, 0xff, 0xff, 0x10};
    spill_insert_hints_t hints = {.on = true};
    spill_record_key_t page = key_of(1), owner = key_of(1);
    spill_record_key_page(&page, 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(find(&hints, &page), SPILL_INSERT_HINT_NONE);
        assert_int_equal(find(&hints, &owner), SPILL_INSERT_HINT_NONE);
        for (size_t size = 0; size <= sizeof damaged; size++)
            assert_int_equal(spill_insert_hints_find(&hints, damaged, size),
                             SPILL_INSERT_HINT_NONE);
    }
}

/* ---- the engine ------------------------------------------------------------------------------ */

/* The comparisons of keys that a run of appends to a new database takes. */
static uint64_t count_comparisons(spill_kv_t *kv, int appends)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    rocksdb_perfcontext_t *counts = rocksdb_perfcontext_create();
    rocksdb_set_perf_level(rocksdb_enable_count);
    rocksdb_perfcontext_reset(counts);
    for (int i = 0; i < appends; i++) {
        add_append(&batch, i % 2, i / 2);
        assert_int_equal(kv->ops->write(kv, &batch, false, NULL), SPILL_OK);
        spill_batch_clear(&batch);
    }
    uint64_t count = rocksdb_perfcontext_metric(counts, rocksdb_user_key_comparison_count);
    rocksdb_perfcontext_destroy(counts);
    spill_batch_release(&batch);
    return count;
}

/* The same without hints: the engine with the store's options, written to by its own interface. */
static uint64_t count_without_hints(const char *folder, int appends)
{
    char *message = NULL;
    spill_batch_t batch = SPILL_BATCH_INIT;
    rocksdb_options_t *options =
        spill_kv_rocksdb_options(&(spill_rocksdb_options_t){.cache_bytes = 1 << 20});
    rocksdb_t *db = rocksdb_open(options, folder, &message);
    assert_null(message);
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    rocksdb_perfcontext_t *counts = rocksdb_perfcontext_create();
    rocksdb_set_perf_level(rocksdb_enable_count);
    rocksdb_perfcontext_reset(counts);
    for (int i = 0; i < appends; i++) {
        add_append(&batch, i % 2, i / 2);
        for (size_t j = 0; j < batch.count; j++) {
            const spill_change_t *change = &batch.changes[j];
            rocksdb_put(db, write, (const char *)spill_batch_key(&batch, change), change->key_bytes,
                        (const char *)spill_batch_value(&batch, change), change->value_bytes,
                        &message);
            assert_null(message);
        }
        spill_batch_clear(&batch);
    }
    uint64_t count = rocksdb_perfcontext_metric(counts, rocksdb_user_key_comparison_count);
    rocksdb_perfcontext_destroy(counts);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    spill_batch_release(&batch);
    return count;
}

static void hints_save_comparisons(void **state)
{
    enum { APPENDS = 4000 };
    (void)state;
    spill_rocksdb_options_t options = {.cache_bytes = 1 << 20};
    spill_kv_t *kv;
    assert_int_equal(spill_rocksdb_open(embedded_new_folder(), &options, &kv, NULL), SPILL_OK);
    uint64_t with = count_comparisons(kv, APPENDS);
    assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
    uint64_t without = count_without_hints(embedded_new_folder(), APPENDS);
    assert_true(with > 0);
    assert_true(with * 5 < without * 4); /* about two thirds if the engine checks its assertions */
}

/* The library does not change what the application's own use of the engine counts. */
static void application_keeps_its_counts(void **state)
{
    (void)state;
    spill_rocksdb_options_t options = {.cache_bytes = 1 << 20};
    spill_kv_t *kv;
    assert_int_equal(spill_kv_rocksdb_open(embedded_new_folder(), &options, &kv, NULL), SPILL_OK);
    assert_int_equal(count_comparisons(kv, 100), 0);
    assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
    char *message = NULL;
    rocksdb_options_t *own = rocksdb_options_create();
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    rocksdb_options_set_create_if_missing(own, 1);
    rocksdb_t *db = rocksdb_open(own, embedded_new_folder(), &message);
    assert_null(message);
    rocksdb_perfcontext_t *counts = rocksdb_perfcontext_create();
    rocksdb_perfcontext_reset(counts);
    rocksdb_put(db, write, "a", 1, "", 0, &message);
    rocksdb_put(db, write, "b", 1, "", 0, &message);
    assert_null(message);
    assert_true(rocksdb_perfcontext_metric(counts, rocksdb_user_key_comparison_count) > 0);
    rocksdb_perfcontext_destroy(counts);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(own);
}

/* ---- records --------------------------------------------------------------------------------- */

enum { OWNERS = 300 };

static void check_record(const spill_kv_iter_t *iter, const spill_record_key_t *key, int64_t seq)
{
    assert_true(iter->valid);
    assert_int_equal(iter->key_bytes, key->size);
    assert_memory_equal(iter->key, key->data, key->size);
    assert_int_equal(iter->value_bytes, sizeof seq);
    assert_memory_equal(iter->value, &seq, sizeof seq);
}

/* Each owner has a head with the number of the newest element, then all elements, newest first. */
static void check_records(spill_kv_t *kv, const int64_t *next)
{
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    for (int owner = 0; owner < OWNERS; owner++) {
        spill_record_key_t key = key_of(owner);
        spill_record_key_kind(&key, SPILL_RECORD_HEAD);
        iter->ops->seek(iter, key.data, key.size);
        if (next[owner] > 0)
            check_record(iter, &key, next[owner] - 1);
        for (int64_t seq = next[owner] - 1; seq >= 0; seq--) {
            iter->ops->next(iter);
            spill_record_key_element(&key, INCARNATION, seq);
            check_record(iter, &key, seq);
        }
    }
    assert_int_equal(iter->ops->status(iter, NULL), SPILL_OK);
    iter->ops->free(iter);
}

/* Single appends, some owners far more often than others, between large batches and flushes. */
static void records_are_in_order(void **state)
{
    enum { STEPS = 30000, LARGE = 40 };
    (void)state;
    spill_rocksdb_options_t options = {.cache_bytes = 1 << 20};
    const char *folder = embedded_new_folder();
    spill_batch_t batch = SPILL_BATCH_INIT;
    int64_t next[OWNERS] = {0};
    uint32_t random = 1;
    spill_kv_t *kv;
    assert_int_equal(spill_kv_rocksdb_open(folder, &options, &kv, NULL), SPILL_OK);
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525 + 1013904223;
        int owner = (int)(random >> 16) % ((random >> 8) % 4 == 0 ? OWNERS : 3);
        int appends = (random >> 4) % 64 == 0 ? LARGE : 1;
        for (int i = 0; i < appends; i++)
            add_append(&batch, owner, next[owner]++);
        assert_int_equal(kv->ops->write(kv, &batch, false, NULL), SPILL_OK);
        spill_batch_clear(&batch);
        if (step == STEPS / 2) { /* a new memtable has no hints yet */
            assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
            assert_int_equal(spill_kv_rocksdb_open(folder, &options, &kv, NULL), SPILL_OK);
        }
    }
    check_records(kv, next);
    assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
    spill_batch_release(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_record_of_an_owner_has_a_hint),
        cmocka_unit_test(owner_loses_its_hint_to_another),
        cmocka_unit_test(other_records_have_no_hint),
        cmocka_unit_test(hints_save_comparisons),
        cmocka_unit_test(application_keeps_its_counts),
        cmocka_unit_test(records_are_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
