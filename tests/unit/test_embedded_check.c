/* The embedded store's check finds damage in the records of an owner. */
#include "store/embedded/records.h"
#include "support/failing_kv.h"
#include "support/fault_store.h"
#include "support/findings.h"
#include "support/tampered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The test changes ada's records; bob's stay sound. */
typedef struct fixture {
    tampered_t feed;
    spill_state_t head; /* the state of ada's head */
    char found[8192];
} fixture_t;

static void open_fixture(fixture_t *fixture, spill_keep_t keep)
{
    *fixture = (fixture_t){0};
    tampered_t *feed = &fixture->feed;
    tampered_open(feed, keep);
    assert_int_equal(embedded_append(feed->array, "bob", 0, 30, NULL), SPILL_OK);
    spill_request_t request = {.definition = spill_array_get_definition(feed->array)};
    assert_int_equal(spill_embedded_get_state((spill_embedded_t *)feed->store, NULL, &request,
                                              &feed->key, SPILL_HEAD, &fixture->head, NULL),
                     SPILL_OK);
    assert_true(fixture->head.present);
    assert_true(fixture->head.pages >= 4);
}

static void close_fixture(fixture_t *fixture)
{
    spill_state_release(&fixture->head);
    tampered_close(&fixture->feed);
}

static void add_text(void *context, const spill_store_finding_t *finding)
{
    fixture_t *fixture = context;
    size_t used = strlen(fixture->found);
    assert_int_equal(finding->owner->type, BSON_TYPE_UTF8);
    snprintf(fixture->found + used, sizeof fixture->found - used, "%d@%d: %s\n", finding->invariant,
             (int)finding->page, finding->text);
}

/* Compare the check's findings, as lines "invariant@page: text". */
static void assert_found(fixture_t *fixture, const char *expected)
{
    spill_binding_t binding;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    const spill_definition_t *definition = spill_array_get_definition(fixture->feed.array);
    const spill_store_ops_t *ops = fixture->feed.store->ops;
    fixture->found[0] = '\0';
    assert_int_equal(ops->bind(fixture->feed.store, definition, &binding, &error), SPILL_OK);
    assert_int_equal(
        ops->check(fixture->feed.store, &binding, definition, &owner, add_text, fixture, &error),
        SPILL_OK);
    assert_string_equal(fixture->found, expected);
    bson_destroy(&storage);
    assert_int_equal(embedded_findings(fixture->feed.store, fixture->feed.array, "bob"), 0);
}

static void element(fixture_t *fixture, int64_t seq)
{
    spill_record_key_element(&fixture->feed.key, fixture->head.incarnation, seq);
}

static void sound_owner_has_no_findings(void **state)
{
    (void)state;
    for (spill_keep_t keep = SPILL_KEEP_OLDEST; keep <= SPILL_KEEP_NEWEST; keep++) {
        fixture_t fixture;
        bson_t storage = BSON_INITIALIZER;
        open_fixture(&fixture, keep);
        assert_found(&fixture, "");
        spill_value_t owner = spill_value_from_utf8(&storage, "ada");
        assert_int_equal(spill_array_remove(fixture.feed.array, &owner, 29, NULL), SPILL_OK);
        assert_int_equal(spill_array_remove(fixture.feed.array, &owner, 6, NULL), SPILL_OK);
        assert_found(&fixture, "");
        assert_int_equal(spill_array_trim(fixture.feed.array, &owner, 11, NULL), SPILL_OK);
        assert_found(&fixture, "");
        assert_int_equal(spill_array_drop_owner(fixture.feed.array, &owner, NULL), SPILL_OK);
        assert_found(&fixture, "");
        bson_destroy(&storage);
        close_fixture(&fixture);
    }
}

static void missing_elements_are_found(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    element(&fixture, 29);
    tampered_delete(&fixture.feed);
    element(&fixture, 2);
    tampered_delete(&fixture.feed);
    assert_found(&fixture, "2@-1: element 29 has no record\n2@0: element 2 has no record\n");
    assert_int_equal(embedded_holds(fixture.feed.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    assert_non_null(strstr(error.message, "the record of an element is missing"));
    assert_non_null(strstr(error.message, "\"ada\""));
    assert_int_equal(embedded_holds(fixture.feed.array, "bob", 0, 30, &error), SPILL_OK);
    close_fixture(&fixture);
}

/* A state may claim millions of elements. Each one would be a finding. */
static void many_missing_elements_are_one_finding(void **state)
{
    (void)state;
    enum { FIRST = 30, COUNT = 400, REPORTED = 100 };
    fixture_t fixture;
    char expected[sizeof fixture.found] = "";
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_definition_t wide = *spill_array_get_definition(fixture.feed.array);
    wide.bounds.threshold = 2 * COUNT;
    assert_int_equal(spill_store_define(fixture.feed.store, &wide, NULL), SPILL_OK);
    tampered_reopen(&fixture.feed);
    assert_int_equal(embedded_append(fixture.feed.array, "ada", FIRST, COUNT, NULL), SPILL_OK);
    for (int64_t seq = FIRST; seq < FIRST + COUNT; seq++) {
        element(&fixture, seq);
        tampered_delete(&fixture.feed);
    }
    for (int64_t seq = FIRST + COUNT - 1; seq >= FIRST + COUNT - REPORTED; seq--)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
                 "2@-1: element %d has no record\n", (int)seq);
    strcat(expected, "2@-1: elements 30 to 329 have no records\n");
    assert_found(&fixture, expected);
    close_fixture(&fixture);
}

/* ---- damage that a writer does not change is reported, although the owner changes -------------
 */

typedef struct busy {
    spill_array_t *others;
    int64_t next;
} busy_t;

static void append_after_head(void *context, int64_t index, const spill_request_t *request)
{
    busy_t *writer = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_READ || request->page != SPILL_HEAD)
        return;
    assert_int_equal(embedded_append(writer->others, "ada", writer->next, 4, NULL), SPILL_OK);
    writer->next += 4;
}

static void damage_beside_a_writer_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *reading;
    spill_array_t *verified;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    element(&fixture, 2);
    tampered_delete(&fixture.feed);
    busy_t writer = {.others = fixture.feed.array, .next = 30};
    const fault_hooks_t writes = {.context = &writer, .after = append_after_head};
    fault_wrap(fixture.feed.store, &writes, &reading);
    assert_int_equal(spill_array_open(reading, "feed", &verified, NULL), SPILL_OK);
    assert_verified(verified, "I2@0: cannot be read: the record of an element is missing "
                              "(memory: restore a backup, or export what is readable)\n");
    assert_in_range(writer.next, 34, 1000);
    spill_array_close(verified);
    spill_store_close(reading, NULL);
    close_fixture(&fixture);
}

static void missing_elements_are_found_keep_oldest(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_OLDEST);
    element(&fixture, 0);
    tampered_delete(&fixture.feed);
    assert_found(&fixture, "2@-1: element 0 has no record\n");
    close_fixture(&fixture);
}

static void elements_of_no_document_are_found(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    element(&fixture, 30);
    tampered_put(&fixture.feed, "\x0a", 1);
    spill_record_key_element(&fixture.feed.key, fixture.head.incarnation - 1, 7);
    tampered_put(&fixture.feed, "\x0a", 1);
    char expected[256];
    snprintf(expected, sizeof expected,
             "7@-1: element 30 is in no document\n"
             "7@-1: elements up to 7 of incarnation %lld are in no document\n",
             (long long)fixture.head.incarnation - 1);
    assert_found(&fixture, expected);
    close_fixture(&fixture);
}

static void unreadable_records_are_found(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    element(&fixture, 3);
    tampered_put(&fixture.feed, "", 0);
    spill_record_key_page(&fixture.feed.key, 2);
    tampered_put(&fixture.feed, "no state", 8);
    spill_record_key_op(&fixture.feed.key, fixture.head.incarnation, 0);
    tampered_put(&fixture.feed, "", 0);
    spill_record_key_ops(&fixture.feed.key, fixture.head.incarnation, 8);
    tampered_put(&fixture.feed, "", 0);
    spill_record_key_kind(&fixture.feed.key, (spill_record_t)0x60);
    tampered_put(&fixture.feed, "", 0);
    assert_found(&fixture, "7@2: the record of its state cannot be read\n"
                           "7@-1: element 11 is in no document\n"
                           "7@-1: element 10 is in no document\n"
                           "7@-1: element 9 is in no document\n"
                           "7@-1: element 8 is in no document\n"
                           "7@0: the record of element 3 cannot be read\n"
                           "7@-1: the record of operation 0 cannot be read\n"
                           "7@-1: the record of the operations from 8 on cannot be read\n"
                           "7@-1: there is a record of an unknown kind\n");
    assert_int_equal(embedded_holds(fixture.feed.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    close_fixture(&fixture);
}

static void unreadable_head_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_record_key_kind(&fixture.feed.key, SPILL_RECORD_HEAD);
    tampered_put(&fixture.feed, "no state", 8);
    tampered_reopen(&fixture.feed);
    assert_int_equal(embedded_append(fixture.feed.array, "ada", 30, 1, &error), SPILL_CORRUPT);
    assert_string_equal(error.message,
                        "owner \"ada\" of 'feed', head: the record of its state cannot be read "
                        "(memory: restore a backup, or export what is readable)");
    assert_int_equal(embedded_append(fixture.feed.array, "bob", 30, 1, &error), SPILL_OK);
    assert_int_equal(embedded_holds(fixture.feed.array, "bob", 0, 31, &error), SPILL_OK);
    assert_found(&fixture, "7@-1: the record of its state cannot be read\n");
    close_fixture(&fixture);
}

static void engine_read_errors_are_found(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    element(&fixture, 13);
    disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
    assert_found(&fixture, "2@3: its elements: a record in memory was declared damaged\n");
    assert_int_equal(embedded_holds(fixture.feed.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    assert_string_equal(error.message, "owner \"ada\" of 'feed', page 3: a record in memory was "
                                       "declared damaged");
    spill_record_key_kind(&fixture.feed.key, SPILL_RECORD_HEAD);
    disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
    assert_found(&fixture,
                 "2@-1: the record of its state: a record in memory was declared damaged\n");
    disk_damage(fixture.feed.disk, NULL, 0);
    assert_found(&fixture, "");
    close_fixture(&fixture);
}

/* Both the documents and the store's own check show this damage. */
static void damage_is_reported_once(void **state)
{
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        fixture_t fixture;
        open_fixture(&fixture, keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST);
        int64_t seq = keep ? 13 : 18; /* in page 3 */
        element(&fixture, seq);
        disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
        assert_verified(fixture.feed.array,
                        "I2@3: cannot be read: a record in memory was declared damaged\n");
        disk_damage(fixture.feed.disk, NULL, 0);
        tampered_put(&fixture.feed, "", 0);
        assert_verified(fixture.feed.array,
                        "I2@3: cannot be read: the record of an element cannot be read "
                        "(memory: restore a backup, or export what is readable)\n");
        close_fixture(&fixture);
    }
}

/* A read of many elements fails at a damaged one: the store is read in smaller parts, down to one.
 */
static void long_owner_of_partial_store_is_read(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    spill_verify_summary_t summary;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    assert_int_equal(embedded_append(fixture.feed.array, "ada", 30, 2000, &error), SPILL_OK);
    fixture.feed.store->options.partial = true;
    for (int64_t seq = 7; seq < 2000; seq += 993) {
        element(&fixture, seq);
        tampered_put(&fixture.feed, "", 0);
        assert_int_equal(
            spill_array_verify(fixture.feed.array, &owner, NULL, NULL, &summary, &error), SPILL_OK);
        assert_int_equal(summary.elements, 2029 - (seq - 7) / 993);
        assert_true(summary.findings > 0);
    }
    bson_destroy(&storage);
    close_fixture(&fixture);
}

/* An unreadable head is not a missing head: repair must not delete the pages. */
static void repair_keeps_pages_of_unreadable_head(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        fixture_t fixture;
        spill_error_t error;
        spill_repair_summary_t summary;
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner = spill_value_from_utf8(&storage, "ada");
        open_fixture(&fixture, i % 2 == 0 ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST);
        spill_record_key_kind(&fixture.feed.key, SPILL_RECORD_HEAD);
        disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
        assert_int_equal(spill_array_repair(fixture.feed.array, i < 2 ? &owner : NULL, false, NULL,
                                            NULL, &summary, &error),
                         SPILL_CORRUPT);
        assert_int_equal(summary.findings, 0);
        disk_damage(fixture.feed.disk, NULL, 0);
        assert_int_equal(embedded_holds(fixture.feed.array, "ada", 0, 30, &error), SPILL_OK);
        assert_verified(fixture.feed.array, "");
        bson_destroy(&storage);
        close_fixture(&fixture);
    }
}

/* An index that cannot be read to its end counts nothing. */
static void damaged_index_is_not_counted(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_record_key_first(&fixture.feed.key, fixture.head.incarnation, 4, 1);
    disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
    assert_verified(fixture.feed.array,
                    "I2@-1: the index of pages: a record in memory was declared damaged\n");
    close_fixture(&fixture);
}

static void id_entry(fixture_t *fixture, int64_t seq)
{
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t id = SPILL_BUFFER_INIT;
    spill_value_t value = spill_value_from_utf8(&storage, "x");
    assert_int_equal(spill_element_id_key(&value, false, &id, NULL), SPILL_OK);
    spill_record_key_id(&fixture->feed.key, fixture->head.incarnation, &id, seq);
    spill_buffer_release(&id);
    bson_destroy(&storage);
}

/* A dry run reports the finding; then repair fixes it. */
static void assert_fixed(fixture_t *fixture, int64_t findings)
{
    spill_repair_summary_t look, repaired;
    tampered_reopen(&fixture->feed);
    assert_int_equal(spill_array_repair(fixture->feed.array, NULL, true, NULL, NULL, &look, NULL),
                     SPILL_OK);
    assert_int_equal(look.findings, findings);
    assert_int_equal(
        spill_array_repair(fixture->feed.array, NULL, false, NULL, NULL, &repaired, NULL),
        SPILL_OK);
    assert_int_equal(repaired.findings, findings);
    assert_int_equal(repaired.left, 0);
    assert_found(fixture, "");
}

static void wrong_index_of_pages_is_rebuilt(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_record_key_first(&fixture.feed.key, fixture.head.incarnation, 4, 1);
    tampered_delete(&fixture.feed);
    assert_found(&fixture, "7@1: the index of pages does not have it\n");
    assert_fixed(&fixture, 1);
    spill_record_key_first(&fixture.feed.key, fixture.head.incarnation, 5, 1);
    tampered_put(&fixture.feed, "", 0);
    spill_record_key_first(&fixture.feed.key, fixture.head.incarnation, 900, 90);
    tampered_put(&fixture.feed, "", 0);
    assert_found(&fixture, "7@90: the index has it, but it has no record\n"
                           "7@1: the index has it from 5 on, its record from 4\n");
    assert_fixed(&fixture, 2);
    spill_record_key_first(&fixture.feed.key, fixture.head.incarnation, 4, 1);
    tampered_delete(&fixture.feed);
    spill_record_key_first(&fixture.feed.key, fixture.head.incarnation, 5, 1);
    tampered_put(&fixture.feed, "", 0);
    assert_found(&fixture, "7@1: the index of pages does not have it\n"
                           "7@1: the index has it from 5 on, its record from 4\n");
    assert_fixed(&fixture, 2);
    assert_int_equal(embedded_holds(fixture.feed.array, "ada", 0, 30, NULL), SPILL_OK);
    close_fixture(&fixture);
}

static void wrong_index_of_ids_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    bson_t storage = BSON_INITIALIZER;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    bson_t *document = BCON_NEW("id", "x");
    spill_value_t element_value = spill_value_from_document(document);
    assert_int_equal(spill_array_edit(fixture.feed.array, &owner, 2, &element_value, NULL),
                     SPILL_OK);
    assert_found(&fixture, "");
    id_entry(&fixture, 3);
    tampered_put(&fixture.feed, "", 0);
    assert_found(&fixture, "7@-1: the index of ids has 2 entries; elements account for 1\n");
    assert_fixed(&fixture, 1);
    id_entry(&fixture, 2);
    tampered_delete(&fixture.feed);
    assert_found(&fixture, "7@-1: the id of element 2 has no entry\n");
    id_entry(&fixture, 7);
    tampered_put(&fixture.feed, "", 0);
    id_entry(&fixture, 8);
    tampered_put(&fixture.feed, "", 0);
    assert_fixed(&fixture, 2);
    bson_t id_storage = BSON_INITIALIZER;
    spill_value_t id = spill_value_from_utf8(&id_storage, "x");
    assert_int_equal(spill_array_remove_id(fixture.feed.array, &owner, &id, NULL, NULL), SPILL_OK);
    assert_found(&fixture, "");
    bson_destroy(&id_storage);
    bson_destroy(document);
    bson_destroy(&storage);
    close_fixture(&fixture);
}

static int64_t verify_all(spill_array_t *array)
{
    spill_verify_summary_t summary;
    assert_int_equal(spill_array_verify(array, NULL, NULL, NULL, &summary, NULL), SPILL_OK);
    return summary.findings;
}

/* Delete the first entry of the index of ranks, and add one of an element that never existed. */
static void corrupt_ranks(disk_t *disk, uint32_t array_id, const spill_value_t *owner)
{
    spill_kv_t *kv = disk_open(disk);
    spill_buffer_t owner_key = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_rank_t rank = {0};
    int64_t incarnation = 0, seq;
    assert_int_equal(spill_owner_key(owner, &owner_key, NULL), SPILL_OK);
    spill_record_key_init(&key, array_id, owner_key.data, owner_key.size);
    spill_record_key_kind(&key, SPILL_RECORD_RANK);
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    iter->ops->seek(iter, key.data, key.size);
    assert_true(iter->valid &&
                spill_record_key_is_rank(&key, iter->key, iter->key_bytes, &incarnation, &seq));
    spill_batch_delete(&batch, iter->key, iter->key_bytes);
    spill_record_key_rank(&key, incarnation, &rank, 1000);
    spill_batch_put(&batch, key.data, key.size, NULL, 0);
    iter->ops->free(iter);
    assert_int_equal(kv->ops->write(kv, &batch, true, NULL), SPILL_OK);
    spill_batch_release(&batch);
    spill_buffer_release(&owner_key);
    kv->ops->close(kv, NULL);
}

/* Create six reviews of "ada" and a wrong index of their ranks. */
static disk_t *make_corrupt_ranks(void)
{
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    spill_definition_t definition;
    spill_array_t *array;
    spill_binding_t binding;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    assert_int_equal(spill_definition_preset(&definition, "reviews-subset", "reviews", NULL),
                     SPILL_OK);
    strcpy(definition.sort_field, "rating");
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "reviews", &array, NULL), SPILL_OK);
    for (int i = 0; i < 6; i++) {
        bson_t *review = BCON_NEW("rating", BCON_INT32(i));
        spill_value_t element_value = spill_value_from_document(review);
        assert_int_equal(spill_array_append(array, &owner, &element_value, 1, NULL, NULL, NULL),
                         SPILL_OK);
        bson_destroy(review);
    }
    assert_int_equal(verify_all(array), 0);
    assert_int_equal(store->ops->bind(store, &definition, &binding, NULL), SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
    corrupt_ranks(disk, binding.array_id, &owner);
    bson_destroy(&storage);
    return disk;
}

static void wrong_index_of_ranks_is_rebuilt(void **state)
{
    (void)state;
    spill_array_t *array;
    spill_repair_summary_t summary;
    disk_t *disk = make_corrupt_ranks();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    assert_int_equal(spill_array_open(store, "reviews", &array, NULL), SPILL_OK);
    int64_t found = verify_all(array);
    assert_int_equal(found, 2); /* a wrong sum, and the element without its rank */
    assert_int_equal(spill_array_repair(array, NULL, true, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_true(summary.findings >= found);
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, found);
    assert_int_equal(summary.left, 0);
    assert_int_equal(verify_all(array), 0);
    spill_array_close(array);
    embedded_close(store);
    disk_free(disk);
}

/*
 * Run a repair in which engine call `at` fails. Return false if the repair ended before that call.
 */
static bool interrupt_repair(failing_kv_way_t way, int64_t at)
{
    failing_kv_plan_t plan = {.way = way, .at = at};
    disk_t *disk = make_corrupt_ranks();
    spill_store_options_t options;
    spill_store_t *store;
    spill_array_t *array;
    spill_repair_summary_t summary;
    spill_error_t error = {0};
    spill_store_options_init(&options);
    assert_int_equal(spill_embedded_open_kv(failing_kv_open(disk_open(disk), &plan), "memory",
                                            &options, &store, &error),
                     SPILL_OK);
    assert_int_equal(spill_array_open(store, "reviews", &array, &error), SPILL_OK);
    plan.calls = 0;
    plan.armed = true;
    spill_code_t code = spill_array_repair(array, NULL, false, NULL, NULL, &summary, &error);
    plan.armed = false;
    if (code != SPILL_OK) {
        assert_true(plan.struck);
        assert_true(error.message[0] != '\0');
    } else if (!plan.struck) {
        assert_int_equal(summary.left, 0);
    }
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, &summary, &error),
                     SPILL_OK);
    assert_int_equal(summary.left, 0);
    assert_int_equal(verify_all(array), 0);
    spill_array_close(array);
    embedded_close(store);
    disk_free(disk);
    return plan.struck;
}

static void interrupted_index_repair_can_be_repeated(void **state)
{
    (void)state;
    for (failing_kv_way_t way = FAILING_KV_ERROR; way < FAILING_KV_WAYS; way++) {
        int64_t at = 0;
        while (interrupt_repair(way, at))
            at++;
        assert_in_range(at, 20, 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_owner_has_no_findings),
        cmocka_unit_test(missing_elements_are_found),
        cmocka_unit_test(many_missing_elements_are_one_finding),
        cmocka_unit_test(damage_beside_a_writer_is_found),
        cmocka_unit_test(missing_elements_are_found_keep_oldest),
        cmocka_unit_test(elements_of_no_document_are_found),
        cmocka_unit_test(unreadable_records_are_found),
        cmocka_unit_test(unreadable_head_is_found),
        cmocka_unit_test(wrong_index_of_pages_is_rebuilt),
        cmocka_unit_test(engine_read_errors_are_found),
        cmocka_unit_test(damage_is_reported_once),
        cmocka_unit_test(long_owner_of_partial_store_is_read),
        cmocka_unit_test(repair_keeps_pages_of_unreadable_head),
        cmocka_unit_test(damaged_index_is_not_counted),
        cmocka_unit_test(wrong_index_of_ids_is_found),
        cmocka_unit_test(wrong_index_of_ranks_is_rebuilt),
        cmocka_unit_test(interrupted_index_repair_can_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
