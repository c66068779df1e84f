/* Where an owner's operations are: in its document's record, in groups, or in earlier records. */
#include "store/embedded/embedded_codec.h"
#include "store/embedded/op_records.h"

#include <bson/bson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOW = 20 };

typedef struct fixture {
    spill_op_source_t source;
    spill_record_key_t key;
    spill_state_t state;
    spill_batch_t batch;
} fixture_t;

static void open_fixture(fixture_t *fixture)
{
    *fixture = (fixture_t){.source.kv = spill_kv_memory_new(),
                           .state = {.present = true, .incarnation = 5},
                           .batch = SPILL_BATCH_INIT};
    fixture->source.batch = &fixture->batch;
    spill_record_key_init(&fixture->key, 1, (const uint8_t *)"owner", 5);
}

static void write_batch(fixture_t *fixture)
{
    spill_kv_t *kv = fixture->source.kv;
    assert_int_equal(kv->ops->write(kv, &fixture->batch, false, NULL), SPILL_OK);
    spill_batch_clear(&fixture->batch);
}

static void close_fixture(fixture_t *fixture)
{
    spill_state_release(&fixture->state);
    spill_batch_release(&fixture->batch);
    spill_op_source_release(&fixture->source);
    assert_int_equal(fixture->source.kv->ops->close(fixture->source.kv, NULL), SPILL_OK);
}

static spill_op_entry_t entry_of(int64_t ordinal)
{
    spill_op_entry_t entry = {.ordinal = ordinal, .seq = 3 * ordinal, .count = 3};
    entry.id_bytes = (uint8_t)snprintf((char *)entry.id, SPILL_OP_ID_MAX, "op-%d", (int)ordinal);
    return entry;
}

static void add(fixture_t *fixture)
{
    spill_op_entry_t entry = entry_of(fixture->state.op_count++);
    spill_op_add(&fixture->batch, &fixture->key, &fixture->state, &entry, WINDOW);
}

/* As earlier versions did. */
static void add_earlier(fixture_t *fixture)
{
    spill_op_entry_t entry = entry_of(fixture->state.op_count);
    spill_record_key_op(&fixture->key, 5, fixture->state.op_count++);
    spill_op_encode(&entry,
                    spill_batch_put_open(&fixture->batch, fixture->key.data, fixture->key.size));
    spill_batch_put_close(&fixture->batch);
}

static bool has(fixture_t *fixture, int64_t ordinal)
{
    spill_op_entry_t entry, expected = entry_of(ordinal);
    bool found;
    spill_op_source_release(&fixture->source); /* the batch may have changed */
    assert_int_equal(spill_op_read(&fixture->source, &fixture->key, &fixture->state, ordinal,
                                   &entry, &found, NULL),
                     SPILL_OK);
    if (!found)
        return false;
    assert_int_equal(entry.ordinal, ordinal);
    assert_int_equal(entry.seq, expected.seq);
    assert_int_equal(entry.count, expected.count);
    assert_true(spill_op_entry_is(&entry, expected.id, expected.id_bytes));
    return true;
}

/* The record is deleted in between, so a second look-up would find nothing. */
static void one_look_up_serves_a_group(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_op_entry_t entry;
    bool found;
    open_fixture(&fixture);
    for (int i = 0; i < SPILL_OPS_TOGETHER; i++)
        add(&fixture);
    assert_true(has(&fixture, 0));
    spill_record_key_ops(&fixture.key, 5, 0);
    spill_batch_delete(&fixture.batch, fixture.key.data, fixture.key.size);
    for (int ordinal = 1; ordinal < SPILL_OPS_TOGETHER; ordinal++) {
        assert_int_equal(spill_op_read(&fixture.source, &fixture.key, &fixture.state, ordinal,
                                       &entry, &found, NULL),
                         SPILL_OK);
        assert_true(found);
        assert_int_equal(entry.ordinal, ordinal);
    }
    assert_false(has(&fixture, 1));
    close_fixture(&fixture);
}

static void only_groups_have_records(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    for (int i = 1; i < SPILL_OPS_TOGETHER; i++) {
        add(&fixture);
        assert_int_equal(fixture.batch.count, 0);
        assert_int_equal(
            spill_op_list_count(fixture.state.newest_ops.data, fixture.state.newest_ops.size), i);
    }
    add(&fixture);
    assert_int_equal(fixture.batch.count, 1);
    assert_int_equal(fixture.state.newest_ops.size, 0);
    close_fixture(&fixture);
}

/* Whether the records are in a batch or in the engine. */
static void the_window_is_kept_and_little_more(void **state)
{
    (void)state;
    enum { LENGTH = 100 };
    fixture_t fixture;
    open_fixture(&fixture);
    for (int64_t length = 1; length <= LENGTH; length++) {
        add(&fixture);
        if (length % 3 == 0)
            write_batch(&fixture);
        int64_t oldest = length > WINDOW ? length - WINDOW : 0;
        for (int64_t ordinal = oldest; ordinal < length; ordinal++)
            assert_true(has(&fixture, ordinal));
        assert_false(has(&fixture, length));
        for (int64_t ordinal = 0; ordinal < oldest - 2 * SPILL_OPS_TOGETHER; ordinal++)
            assert_false(has(&fixture, ordinal));
    }
    close_fixture(&fixture);
}

/* Must the operation be found? Records are read in order, so do not release the source. */
static void read_in_order(fixture_t *fixture, int64_t ordinal, bool expected)
{
    spill_op_entry_t entry, added = entry_of(ordinal);
    bool found;
    assert_int_equal(spill_op_read(&fixture->source, &fixture->key, &fixture->state, ordinal,
                                   &entry, &found, NULL),
                     SPILL_OK);
    assert_int_equal(found, expected);
    if (found)
        assert_true(spill_op_entry_is(&entry, added.id, added.id_bytes));
}

/* Some records are in the engine, the later ones in the batch, which deletes the record `deleted`.
 */
static void records_are_read_in_order(void **state)
{
    (void)state;
    enum { GROUPS = 6, LENGTH = GROUPS * SPILL_OPS_TOGETHER + 3, LARGE_WINDOW = 1000 };
    for (int written = 0; written <= GROUPS; written++)
        for (int deleted = 0; deleted < GROUPS; deleted++) {
            fixture_t fixture;
            open_fixture(&fixture);
            while (fixture.state.op_count < LENGTH) {
                spill_op_entry_t entry = entry_of(fixture.state.op_count++);
                spill_op_add(&fixture.batch, &fixture.key, &fixture.state, &entry, LARGE_WINDOW);
                if (fixture.state.op_count == (int64_t)written * SPILL_OPS_TOGETHER)
                    write_batch(&fixture);
            }
            spill_record_key_ops(&fixture.key, 5, (int64_t)deleted * SPILL_OPS_TOGETHER);
            spill_batch_delete(&fixture.batch, fixture.key.data, fixture.key.size);
            for (int64_t ordinal = 0; ordinal < LENGTH; ordinal++)
                read_in_order(&fixture, ordinal, ordinal / SPILL_OPS_TOGETHER != deleted);
            for (int64_t first = GROUPS; first-- > 0;) /* back, and forward from there */
                for (int64_t group = first; group < GROUPS && group < first + 3; group++)
                    read_in_order(&fixture, group * SPILL_OPS_TOGETHER, group != deleted);
            close_fixture(&fixture);
        }
}

/* The first group has only the operations that have no record of an earlier version. */
static void records_of_earlier_versions_are_read(void **state)
{
    (void)state;
    for (int earlier = 1; earlier < 2 * SPILL_OPS_TOGETHER; earlier++) {
        fixture_t fixture;
        open_fixture(&fixture);
        while (fixture.state.op_count < earlier)
            add_earlier(&fixture);
        while (fixture.state.op_count < WINDOW) {
            add(&fixture);
            for (int64_t ordinal = 0; ordinal < fixture.state.op_count; ordinal++)
                assert_true(has(&fixture, ordinal));
        }
        close_fixture(&fixture);
    }
}

static void a_drop_deletes_all_records(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    spill_embedded_t store = {.kv = fixture.source.kv};
    for (int i = 0; i < 5; i++)
        add_earlier(&fixture);
    for (int i = 0; i < WINDOW; i++)
        add(&fixture);
    spill_buffer_clear(&fixture.state.newest_ops); /* they end with the document's record */
    write_batch(&fixture);
    assert_int_equal(spill_ops_delete(&store, &fixture.key, 5, &fixture.batch, NULL), SPILL_OK);
    write_batch(&fixture);
    for (int64_t ordinal = 0; ordinal < fixture.state.op_count; ordinal++)
        assert_false(has(&fixture, ordinal));
    close_fixture(&fixture);
}

static void damaged_lists_are_found(void **state)
{
    (void)state;
    spill_buffer_t list = SPILL_BUFFER_INIT, record = SPILL_BUFFER_INIT;
    spill_state_t head = {.present = true, .incarnation = 5, .rev = 5, .op_count = 9}, back = {0};
    spill_op_entry_t entry = entry_of(7);
    assert_int_equal(spill_op_list_count(list.data, list.size), 0);
    spill_op_list_add(&list, &entry);
    assert_int_equal(spill_op_list_count(list.data, list.size), 1);
    for (size_t size = 0; size < list.size; size++)
        assert_int_equal(spill_op_list_count(list.data, size), 0);
    spill_op_list_add(&list, &entry);
    spill_buffer_append(&head.newest_ops, list.data, list.size);
    spill_state_encode(&head, true, &record);
    assert_true(spill_state_decode(record.data, record.size, true, &back));
    assert_true(spill_buffer_equal(&back.newest_ops, &list));
    for (size_t size = 0; size < record.size; size++) /* one operation may be missing */
        assert_int_equal(spill_state_decode(record.data, size, true, &back),
                         size == record.size - list.size / 2);
    head.op_count = 1; /* fewer than the list has */
    spill_buffer_clear(&record);
    spill_state_encode(&head, true, &record);
    assert_false(spill_state_decode(record.data, record.size, true, &back));
    for (int i = 2; i <= SPILL_OPS_TOGETHER; i++)
        spill_op_list_add(&list, &entry);
    assert_int_equal(spill_op_list_count(list.data, list.size), 0); /* too many */
    spill_state_release(&head);
    spill_state_release(&back);
    spill_buffer_release(&list);
    spill_buffer_release(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_look_up_serves_a_group),
        cmocka_unit_test(only_groups_have_records),
        cmocka_unit_test(the_window_is_kept_and_little_more),
        cmocka_unit_test(records_are_read_in_order),
        cmocka_unit_test(records_of_earlier_versions_are_read),
        cmocka_unit_test(a_drop_deletes_all_records),
        cmocka_unit_test(damaged_lists_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
