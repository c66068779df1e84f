/* Batches, keys and values of the embedded store's records. */
#include "store/embedded/embedded_codec.h"
#include "store/embedded/kv.h"
#include "store/embedded/leader_cache.h"
#include "support/state.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- batches --------------------------------------------------------------------------------- */

static void put(spill_batch_t *batch, const char *key, const char *value)
{
    spill_batch_put(batch, (const uint8_t *)key, strlen(key), value, strlen(value));
}

static const spill_change_t *find_in_batch(const spill_batch_t *batch, const char *key)
{
    return spill_batch_find(batch, (const uint8_t *)key, strlen(key));
}

static void assert_value(const spill_batch_t *batch, const char *key, const char *value)
{
    const spill_change_t *change = find_in_batch(batch, key);
    assert_non_null(change);
    assert_int_equal(change->kind, SPILL_CHANGE_PUT);
    assert_int_equal(change->value_bytes, strlen(value));
    assert_memory_equal(spill_batch_value(batch, change), value, strlen(value));
}

static void batch_returns_newest_value(void **state)
{
    (void)state;
    spill_batch_t batch = SPILL_BATCH_INIT;
    assert_null(find_in_batch(&batch, "a"));
    put(&batch, "a", "1");
    put(&batch, "owner-a", "long keys with one end");
    put(&batch, "another owner-a", "too");
    put(&batch, "a", "2");
    assert_value(&batch, "a", "2");
    assert_value(&batch, "owner-a", "long keys with one end");
    spill_batch_delete(&batch, (const uint8_t *)"a", 1);
    assert_int_equal(find_in_batch(&batch, "a")->kind, SPILL_CHANGE_DELETE);
    put(&batch, "a", "");
    assert_value(&batch, "a", "");
    spill_batch_delete_range(&batch, (const uint8_t *)"r", 1, (const uint8_t *)"s", 1);
    assert_null(find_in_batch(&batch, "r"));
    assert_int_equal(batch.count, 7);
    spill_batch_release(&batch);
}

static void batch_rolls_back_to_savepoint(void **state)
{
    (void)state;
    spill_batch_t batch = SPILL_BATCH_INIT;
    put(&batch, "a", "1");
    spill_batch_savepoint_t mark = spill_batch_savepoint(&batch);
    put(&batch, "a", "2");
    put(&batch, "b", "3");
    spill_batch_rewind(&batch, mark);
    assert_value(&batch, "a", "1");
    assert_null(find_in_batch(&batch, "b"));
    put(&batch, "c", "4");
    assert_value(&batch, "c", "4");
    spill_batch_clear(&batch);
    assert_null(find_in_batch(&batch, "a"));
    spill_batch_release(&batch);
}

static void value_may_be_appended_in_place(void **state)
{
    (void)state;
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_buffer_t *value = spill_batch_put_open(&batch, (const uint8_t *)"k", 1);
    spill_buffer_append(value, "first ", 6);
    spill_buffer_append(value, "second", 6);
    spill_batch_put_close(&batch);
    memcpy(spill_batch_put_place(&batch, (const uint8_t *)"p", 1, 3), "xyz", 3);
    assert_value(&batch, "k", "first second");
    assert_value(&batch, "p", "xyz");
    spill_batch_release(&batch);
}

/* ---- large batches --------------------------------------------------------------------------- */

/* A key of one of `series` series with one of `numbers` numbers; some are shorter than a number. */
static size_t random_key(uint64_t *random, uint8_t key[32], uint64_t series, uint64_t numbers)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint64_t of = (*random >> 33) % series, number = BSON_UINT64_TO_BE((*random >> 44) % numbers);
    int prefix = of % 7 == 0 ? 0 : snprintf((char *)key, 24, "owner %" PRIu64, of);
    memcpy(key + prefix, &number, sizeof number);
    return of % 14 == 0 ? 5 : (size_t)prefix + sizeof number;
}

/* The newest change below `end` of the key, or of its series; `end`: none. */
static size_t find_slowly(const spill_batch_t *batch, size_t end, const uint8_t *key,
                          size_t key_bytes, size_t compared)
{
    for (size_t i = end; i > 0; i--) {
        const spill_change_t *change = &batch->changes[i - 1];
        if (change->kind != SPILL_CHANGE_DELETE_RANGE && change->key_bytes == key_bytes &&
            memcmp(spill_batch_key(batch, change), key, compared) == 0)
            return i - 1;
    }
    return end;
}

static void assert_found(const spill_batch_t *batch, const uint8_t *key, size_t key_bytes)
{
    size_t count = batch->count, at = find_slowly(batch, count, key, key_bytes, key_bytes);
    const spill_change_t *change = spill_batch_find(batch, key, key_bytes);
    assert_ptr_equal(change, at < count ? &batch->changes[at] : NULL);
    if (key_bytes < sizeof(uint64_t))
        return;
    size_t end = count, prefix_bytes = key_bytes - sizeof(uint64_t);
    change = NULL;
    do {
        at = find_slowly(batch, end, key, key_bytes, prefix_bytes);
        change = spill_batch_find_series(batch, key, prefix_bytes, change);
        assert_ptr_equal(change, at < end ? &batch->changes[at] : NULL);
        end = at;
    } while (change);
}

static void add_random(spill_batch_t *batch, uint64_t *random)
{
    uint8_t key[32];
    size_t key_bytes = random_key(random, key, 40, 8);
    switch (*random >> 60) {
    case 0:
        spill_batch_delete_range(batch, key, key_bytes, (const uint8_t *)"p", 1);
        break;
    case 1:
    case 2:
        spill_batch_delete(batch, key, key_bytes);
        break;
    default:
        spill_batch_put(batch, key, key_bytes, "value", 5);
    }
}

static void large_batch_finds_what_a_search_finds(void **state)
{
    (void)state;
    spill_batch_t batch = SPILL_BATCH_INIT;
    uint8_t key[32];
    uint64_t random = 1;
    for (int round = 0; round < 60; round++) {
        spill_batch_savepoint_t mark = spill_batch_savepoint(&batch);
        for (int i = 0; i < round * 5; i++) {
            if (i == round)
                mark = spill_batch_savepoint(&batch);
            add_random(&batch, &random);
            size_t key_bytes = random_key(&random, key, 40, 8);
            assert_found(&batch, key, key_bytes);
        }
        if (round % 3 == 0)
            spill_batch_rewind(&batch, mark);
        if (round % 5 == 4)
            spill_batch_clear(&batch);
        for (int i = 0; i < 20; i++) {
            size_t key_bytes = random_key(&random, key, 40, 8);
            assert_found(&batch, key, key_bytes);
        }
    }
    spill_batch_release(&batch);
}

/* The changes that a look-up in the slots compares at most. */
static size_t longest_list(const spill_batch_t *batch)
{
    size_t longest = 0;
    for (size_t i = 0; i < batch->slot_count; i++) {
        size_t length = 0;
        for (uint32_t at = batch->slots[i].key; at > 0; at = batch->changes[at - 1].older.key)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* A look-up compares few of many changes, of one owner's elements or of many owners' heads. */
static void look_up_does_not_depend_on_size(void **state)
{
    (void)state;
    for (uint64_t owners = 1; owners <= 10000; owners *= 10000) {
        spill_batch_t batch = SPILL_BATCH_INIT;
        for (uint64_t i = 0; i < 20000; i++) {
            uint8_t key[32];
            uint64_t number = BSON_UINT64_TO_BE(~(i / owners));
            int prefix = snprintf((char *)key, 24, "owner %08" PRIu64, i % owners);
            memcpy(key + prefix, &number, sizeof number);
            spill_batch_put(&batch, key, (size_t)prefix + sizeof number, NULL, 0);
        }
        assert_true(batch.is_hashed);
        assert_in_range(longest_list(&batch), 1, 12);
        spill_batch_clear(&batch);
        assert_int_equal(longest_list(&batch), 0);
        spill_batch_release(&batch);
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

static spill_record_key_t key_of(uint32_t id, const char *owner)
{
    spill_record_key_t key;
    spill_record_key_init(&key, id, (const uint8_t *)owner, strlen(owner));
    return key;
}

static void assert_before(const spill_record_key_t *left, const spill_record_key_t *right)
{
    size_t common = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->data, right->data, common);
    assert_true(order < 0 || (order == 0 && left->size < right->size));
}

static void records_of_owner_are_in_order(void **state)
{
    (void)state;
    enum { KEYS = 15 };
    spill_record_key_t keys[KEYS];
    for (int i = 0; i < KEYS; i++)
        keys[i] = key_of(7, "owner");
    spill_record_key_kind(&keys[0], SPILL_RECORD_HEAD);
    spill_record_key_element(&keys[1], 200, INT64_MAX);
    spill_record_key_element(&keys[2], 200, 1);
    spill_record_key_element(&keys[3], 200, 0);
    spill_record_key_element(&keys[4], 100, 900); /* of an earlier incarnation */
    spill_record_key_page(&keys[5], 0);
    spill_record_key_page(&keys[6], 256);
    spill_record_key_first(&keys[7], 200, 70, 4);
    spill_record_key_first(&keys[8], 200, 70, 3);
    spill_record_key_first(&keys[9], 200, 60, 2);
    spill_record_key_op(&keys[10], 200, 8);
    spill_record_key_op(&keys[11], 200, 9);
    spill_record_key_ops(&keys[12], 200, 8);
    spill_record_key_kind(&keys[13], SPILL_RECORD_END);
    keys[14] = key_of(8, "");
    for (int i = 0; i + 1 < KEYS; i++)
        assert_before(&keys[i], &keys[i + 1]);
}

static void keys_are_parsed(void **state)
{
    (void)state;
    spill_record_key_t owner = key_of(7, "owner");
    spill_record_key_t key = owner;
    int64_t incarnation, number, page;
    spill_record_key_element(&key, 1234567, 89);
    assert_true(spill_record_key_is_element(&owner, key.data, key.size, &incarnation, &number));
    assert_int_equal(incarnation, 1234567);
    assert_int_equal(number, 89);
    assert_false(
        spill_record_key_is_element(&owner, key.data, key.size - 1, &incarnation, &number));
    assert_false(spill_record_key_is_op(&owner, key.data, key.size, &incarnation, &number));
    assert_int_equal(spill_record_key_kind_of(&owner, key.data, key.size), SPILL_RECORD_ELEMENT);
    spill_record_key_first(&key, 5, 6, 7);
    assert_true(
        spill_record_key_is_first(&owner, key.data, key.size, &incarnation, &number, &page));
    assert_int_equal(incarnation, 5);
    assert_int_equal(number, 6);
    assert_int_equal(page, 7);
    spill_record_key_op(&key, 5, 6);
    assert_true(spill_record_key_is_op(&owner, key.data, key.size, &incarnation, &number));
    assert_int_equal(number, 6);
    assert_false(spill_record_key_is_ops(&owner, key.data, key.size, &incarnation, &number));
    spill_record_key_ops(&key, 5, 16);
    assert_true(spill_record_key_is_ops(&owner, key.data, key.size, &incarnation, &number));
    assert_int_equal(number, 16);
    spill_record_key_ops(&key, 5, 17); /* no group begins there */
    assert_false(spill_record_key_is_ops(&owner, key.data, key.size, &incarnation, &number));
    spill_record_key_page(&key, 12);
    assert_true(spill_record_key_is_page(&owner, key.data, key.size, &page));
    assert_int_equal(page, 12);
    spill_record_key_t other = key_of(7, "other");
    assert_false(spill_record_key_is_page(&other, key.data, key.size, &page));
    assert_int_equal(spill_record_key_kind_of(&other, key.data, key.size), 0);
}

/* ---- values ---------------------------------------------------------------------------------- */

static const spill_seq_run_t deleted_numbers[] = {{1000, 1002, 0}, {1500, 1501, 2}};

static spill_state_t full_head(void)
{
    return (spill_state_t){
        .present = true,
        .incarnation = 1763700000000000,
        .rev = 1763700000000042,
        .first = 1000,
        .live = 900,
        .live_bytes = 180000,
        .deleted = {.runs = (spill_seq_run_t *)deleted_numbers, .run_count = 2, .count = 3},
        .op_count = 77,
        .sealed = true,
        .closed = true,
        .pages = 12,
        .removed = -3,
        .watermark = 500,
        .total = 4000,
        .fields_bytes = 33,
        .intent = true,
        .intent_seq = 640,
        .intent_page = 3};
}

static void states_round_trip(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_state_t head = full_head();
    spill_state_t page = {
        .present = true, .incarnation = 100, .rev = 90, .source_rev = 110, .first = 3};
    spill_state_t back = {0};
    spill_state_encode(&head, true, &bytes);
    assert_true(spill_state_decode(bytes.data, bytes.size, true, &back));
    assert_same_state(&head, &back);
    assert_false(spill_state_decode(bytes.data, bytes.size, false, &back));
    assert_false(back.present);
    spill_buffer_clear(&bytes);
    spill_state_encode(&page, false, &bytes);
    assert_true(spill_state_decode(bytes.data, bytes.size, false, &back));
    assert_same_state(&page, &back);
    assert_false(spill_state_decode(bytes.data, bytes.size, true, &back));
    spill_state_release(&back);
    spill_buffer_release(&bytes);
}

/* Capped with a top-N: millions of deleted numbers need few bytes. */
static void gaps_round_trip(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_state_t head = {.present = true, .incarnation = 7, .rev = 9, .first = 3, .live = 2};
    spill_state_t back = {0};
    head.gaps = true;
    spill_state_encode(&head, true, &bytes);
    assert_true(spill_state_decode(bytes.data, bytes.size, true, &back));
    assert_same_state(&head, &back);
    spill_seqs_insert_run(&head.deleted, 4, 3000000);
    spill_seqs_insert_run(&head.deleted, 3000001, 3000002);
    spill_buffer_clear(&bytes);
    spill_state_encode(&head, true, &bytes);
    assert_in_range(bytes.size, 10, 40);
    assert_true(spill_state_decode(bytes.data, bytes.size, true, &back));
    assert_same_state(&head, &back);
    for (size_t size = 0; size < bytes.size; size++)
        assert_false(spill_state_decode(bytes.data, size, true, &back));
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (spill_state_decode(bytes.data, bytes.size, true, &back))
            for (size_t i = 0; i < back.deleted.run_count; i++)
                assert_in_range(back.deleted.runs[i].end, back.first + 1, spill_state_end(&back));
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    spill_state_release(&head);
    spill_state_release(&back);
    spill_buffer_release(&bytes);
}

static void simple_head_takes_few_bytes(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_state_t head = full_head();
    spill_seqs_clear(&head.deleted);
    head.intent = false;
    spill_state_encode(&head, true, &bytes);
    assert_in_range(bytes.size, 20, 40);
    spill_buffer_release(&bytes);
}

/* A damaged state is refused or decodes to something consistent; it never crashes. */
static void damaged_states_are_harmless(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_state_t head = full_head();
    spill_state_t back = {0};
    spill_state_encode(&head, true, &bytes);
    for (size_t size = 0; size < bytes.size; size++)
        assert_false(spill_state_decode(bytes.data, size, true, &back));
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (spill_state_decode(bytes.data, bytes.size, true, &back)) {
            assert_true(back.first >= 0 && back.live >= 0);
            assert_true(back.intent_seq >= 0 && back.intent_page >= 0);
            assert_true(back.intent || !back.intent_edit);
            for (size_t i = 0; i < back.deleted.run_count; i++) {
                assert_in_range(back.deleted.runs[i].first, back.first, spill_state_end(&back) - 1);
                assert_in_range(back.deleted.runs[i].end, back.first + 1, spill_state_end(&back));
            }
        }
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    spill_buffer_append_byte(&bytes, 0);
    assert_false(spill_state_decode(bytes.data, bytes.size, true, &back));
    spill_state_release(&back);
    spill_buffer_release(&bytes);
}

static void operations_round_trip(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_op_entry_t entry = {.seq = 12345, .count = 20, .id_bytes = 4, .id = "op-1"};
    spill_op_entry_t back;
    spill_op_encode(&entry, &bytes);
    assert_true(spill_op_decode(bytes.data, bytes.size, &back));
    assert_int_equal(back.seq, 12345);
    assert_int_equal(back.count, 20);
    assert_int_equal(back.id_bytes, 4);
    assert_memory_equal(back.id, "op-1", 4);
    assert_false(spill_op_decode(bytes.data, bytes.size - 4, &back)); /* without an id */
    for (int i = 0; i < SPILL_OP_ID_MAX; i++)
        spill_buffer_append_byte(&bytes, 'x');
    assert_false(spill_op_decode(bytes.data, bytes.size, &back));
    spill_buffer_release(&bytes);
}

static void elements_are_a_type_and_bytes(void **state)
{
    (void)state;
    spill_value_t value;
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    assert_true(spill_element_decode(&definition, (const uint8_t *)"\x08\x01", 2, &value));
    assert_int_equal(value.type, BSON_TYPE_BOOL);
    assert_int_equal(value.size_bytes, 1);
    assert_false(spill_element_decode(&definition, (const uint8_t *)"", 0, &value));
    assert_int_equal(value.size_bytes, 0);
    definition.layout = SPILL_LAYOUT_REFERENCE; /* each element is a document */
    assert_false(spill_element_decode(&definition, (const uint8_t *)"\x08\x01", 2, &value));
    assert_true(spill_element_decode(&definition, (const uint8_t *)"\x03\5\0\0\0\0", 6, &value));
}

/* ---- cached heads ---------------------------------------------------------------------------- */

static void cache_head(spill_head_cache_t *cache, const char *key, const char *value)
{
    spill_head_cache_put(cache, (const uint8_t *)key, strlen(key), (const uint8_t *)value,
                         value ? strlen(value) : 0);
}

static void assert_cached(const spill_head_cache_t *cache, const char *key, const char *value)
{
    const spill_head_slot_t *slot = spill_head_cache_find(cache, (const uint8_t *)key, strlen(key));
    if (!value) {
        assert_null(slot);
        return;
    }
    assert_non_null(slot);
    assert_int_equal(slot->value_bytes, strlen(value));
    assert_memory_equal(slot->value, value, strlen(value));
}

static void heads_are_cached(void **state)
{
    (void)state;
    char longer[SPILL_HEAD_CACHE_VALUE_MAX + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    spill_head_cache_t cache = {0};
    assert_cached(&cache, "a", NULL);
    cache_head(&cache, "a", "1");
    assert_cached(&cache, "a", "1");
    assert_cached(&cache, "b", NULL);
    cache_head(&cache, "a", "2");
    assert_cached(&cache, "a", "2");
    cache_head(&cache, "a", longer); /* too long to cache: the old entry is stale and must go */
    assert_cached(&cache, "a", NULL);
    cache_head(&cache, longer, "key");
    assert_cached(&cache, longer, NULL);
    cache_head(&cache, "a", "3");
    cache_head(&cache, "a", NULL);
    assert_cached(&cache, "a", NULL);
    cache_head(&cache, "a", "4");
    spill_head_cache_clear(&cache);
    assert_cached(&cache, "a", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_returns_newest_value),
        cmocka_unit_test(batch_rolls_back_to_savepoint),
        cmocka_unit_test(large_batch_finds_what_a_search_finds),
        cmocka_unit_test(look_up_does_not_depend_on_size),
        cmocka_unit_test(value_may_be_appended_in_place),
        cmocka_unit_test(records_of_owner_are_in_order),
        cmocka_unit_test(keys_are_parsed),
        cmocka_unit_test(states_round_trip),
        cmocka_unit_test(gaps_round_trip),
        cmocka_unit_test(simple_head_takes_few_bytes),
        cmocka_unit_test(damaged_states_are_harmless),
        cmocka_unit_test(operations_round_trip),
        cmocka_unit_test(elements_are_a_type_and_bytes),
        cmocka_unit_test(heads_are_cached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
