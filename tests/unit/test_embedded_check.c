/* The embedded store's check finds what is wrong with the records of an owner. */
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Owner "ada" with the numbers 0..29 in an array of small documents, and a key to its records. */
typedef struct fixture {
    spill_disk_t *disk;
    spill_store_t *store;
    spill_array_t *array;
    spill_kv_t *kv;
    spill_record_key_t key;
    spill_state_t head;
    char found[4096];
} fixture_t;

static spill_record_key_t owner_key(spill_store_t *store, spill_array_t *array, const char *owner)
{
    spill_record_key_t key;
    spill_binding_t binding;
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t name = SPILL_BUFFER_INIT;
    spill_value_t value = spill_value_from_utf8(&storage, owner);
    assert_int_equal(spill_owner_key(&value, &name, NULL), SPILL_OK);
    assert_int_equal(store->ops->bind(store, spill_array_get_definition(array), &binding, NULL),
                     SPILL_OK);
    spill_record_key_init(&key, binding.array_id, name.data, name.size);
    spill_buffer_release(&name);
    bson_destroy(&storage);
    return key;
}

static void open_fixture(fixture_t *fixture, spill_keep_t keep)
{
    spill_error_t error;
    spill_definition_t definition;
    *fixture = (fixture_t){.disk = spill_disk_new()};
    fixture->store = embedded_on_disk(fixture->disk, SPILL_DURABILITY_FSYNC);
    spill_definition_init(&definition, "feed");
    definition.keep = keep;
    definition.bounds.threshold = 5;
    definition.bounds.page_capacity = 4;
    assert_int_equal(spill_store_define(fixture->store, &definition, &error), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, &error), SPILL_OK);
    assert_int_equal(embedded_append(fixture->array, "ada", 0, 30, &error), SPILL_OK);
    assert_int_equal(embedded_append(fixture->array, "bob", 0, 30, &error), SPILL_OK);
    fixture->kv = spill_kv_memory_open(fixture->disk);
    fixture->key = owner_key(fixture->store, fixture->array, "ada");
    spill_request_t request = {.definition = &definition};
    assert_int_equal(spill_embedded_get_state((spill_embedded_t *)fixture->store, NULL, &request,
                                              &fixture->key, SPILL_HEAD, &fixture->head, &error),
                     SPILL_OK);
    assert_true(fixture->head.present);
    assert_true(fixture->head.pages >= 4);
}

static void close_fixture(fixture_t *fixture)
{
    spill_state_release(&fixture->head);
    fixture->kv->ops->close(fixture->kv, NULL);
    spill_array_close(fixture->array);
    embedded_close(fixture->store);
    spill_disk_free(fixture->disk);
}

/* The store remembers heads that it has written. */
static void reopen_store(fixture_t *fixture)
{
    spill_error_t error;
    spill_array_close(fixture->array);
    embedded_close(fixture->store);
    fixture->store = embedded_on_disk(fixture->disk, SPILL_DURABILITY_FSYNC);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, &error), SPILL_OK);
}

static void put(fixture_t *fixture, const char *value, size_t size)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_batch_put(&batch, fixture->key.data, fixture->key.size, value, size);
    assert_int_equal(fixture->kv->ops->write(fixture->kv, &batch, true, NULL), SPILL_OK);
    spill_batch_release(&batch);
}

static void delete (fixture_t *fixture)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_batch_delete(&batch, fixture->key.data, fixture->key.size);
    assert_int_equal(fixture->kv->ops->write(fixture->kv, &batch, true, NULL), SPILL_OK);
    spill_batch_release(&batch);
}

static void add_text(void *context, const spill_value_t *owner, int64_t page, int invariant,
                     const char *text)
{
    fixture_t *fixture = context;
    size_t used = strlen(fixture->found);
    assert_int_equal(owner->type, BSON_TYPE_UTF8);
    snprintf(fixture->found + used, sizeof fixture->found - used, "%d@%d: %s\n", invariant,
             (int)page, text);
}

/* The check's findings, as lines "invariant@page: text". */
static void assert_found(fixture_t *fixture, const char *expected)
{
    spill_binding_t binding;
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    const spill_definition_t *definition = spill_array_get_definition(fixture->array);
    const spill_store_ops_t *ops = fixture->store->ops;
    fixture->found[0] = '\0';
    assert_int_equal(ops->bind(fixture->store, definition, &binding, &error), SPILL_OK);
    assert_int_equal(
        ops->check(fixture->store, &binding, definition, &owner, add_text, fixture, &error),
        SPILL_OK);
    assert_string_equal(fixture->found, expected);
    bson_destroy(&storage);
    assert_int_equal(embedded_findings(fixture->store, fixture->array, "bob"), 0);
}

static void element(fixture_t *fixture, int64_t seq)
{
    spill_record_key_element(&fixture->key, fixture->head.epoch, seq);
}

static void a_sound_owner_has_no_findings(void **state)
{
    (void)state;
    for (spill_keep_t keep = SPILL_KEEP_OLDEST; keep <= SPILL_KEEP_NEWEST; keep++) {
        fixture_t fixture;
        bson_t storage = BSON_INITIALIZER;
        open_fixture(&fixture, keep);
        assert_found(&fixture, "");
        spill_value_t owner = spill_value_from_utf8(&storage, "ada");
        assert_int_equal(spill_array_remove(fixture.array, &owner, 29, NULL), SPILL_OK);
        assert_int_equal(spill_array_remove(fixture.array, &owner, 6, NULL), SPILL_OK);
        assert_found(&fixture, "");
        assert_int_equal(spill_array_trim(fixture.array, &owner, 11, NULL), SPILL_OK);
        assert_found(&fixture, "");
        assert_int_equal(spill_array_drop_owner(fixture.array, &owner, NULL), SPILL_OK);
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
    delete (&fixture);
    element(&fixture, 2);
    delete (&fixture);
    assert_found(&fixture, "2@-1: element 29 has no record\n2@0: element 2 has no record\n");
    assert_int_equal(embedded_holds(fixture.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    assert_non_null(strstr(error.message, "the record of an element is missing"));
    assert_non_null(strstr(error.message, "\"ada\""));
    assert_int_equal(embedded_holds(fixture.array, "bob", 0, 30, &error), SPILL_OK);
    close_fixture(&fixture);
}

static void missing_elements_are_found_keep_oldest(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_OLDEST);
    element(&fixture, 0);
    delete (&fixture);
    assert_found(&fixture, "2@-1: element 0 has no record\n");
    close_fixture(&fixture);
}

static void elements_of_no_document_are_found(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    element(&fixture, 30);
    put(&fixture, "\x0a", 1);
    spill_record_key_element(&fixture.key, fixture.head.epoch - 1, 7);
    put(&fixture, "\x0a", 1);
    char expected[256];
    snprintf(expected, sizeof expected,
             "7@-1: element 30 is in no document\n"
             "7@-1: elements up to 7 of incarnation %lld are in no document\n",
             (long long)fixture.head.epoch - 1);
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
    put(&fixture, "", 0);
    spill_record_key_page(&fixture.key, 2);
    put(&fixture, "no state", 8);
    spill_record_key_op(&fixture.key, fixture.head.epoch, 0);
    put(&fixture, "", 0);
    spill_record_key_kind(&fixture.key, (spill_record_t)0x60);
    put(&fixture, "", 0);
    assert_found(&fixture, "7@2: the record of its state cannot be read\n"
                           "7@-1: element 11 is in no document\n"
                           "7@-1: element 10 is in no document\n"
                           "7@-1: element 9 is in no document\n"
                           "7@-1: element 8 is in no document\n"
                           "7@0: the record of element 3 cannot be read\n"
                           "7@-1: the record of operation 0 cannot be read\n"
                           "7@-1: there is a record of an unknown kind\n");
    assert_int_equal(embedded_holds(fixture.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    close_fixture(&fixture);
}

static void an_unreadable_head_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_record_key_kind(&fixture.key, SPILL_RECORD_HEAD);
    put(&fixture, "no state", 8);
    reopen_store(&fixture);
    assert_int_equal(embedded_append(fixture.array, "ada", 30, 1, &error), SPILL_CORRUPT);
    assert_string_equal(error.message,
                        "owner \"ada\" of 'feed', head: the record of its state cannot be read "
                        "(memory: restore a backup, or export what is readable)");
    assert_int_equal(embedded_append(fixture.array, "bob", 30, 1, &error), SPILL_OK);
    assert_int_equal(embedded_holds(fixture.array, "bob", 0, 31, &error), SPILL_OK);
    assert_found(&fixture, "7@-1: the record of its state cannot be read\n");
    close_fixture(&fixture);
}

static void an_index_that_disagrees_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_record_key_first(&fixture.key, fixture.head.epoch, 4, 1);
    delete (&fixture);
    char expected[512];
    snprintf(expected, sizeof expected,
             "7@-1: element 7 is in no document\n7@-1: element 6 is in no document\n"
             "7@-1: element 5 is in no document\n7@-1: element 4 is in no document\n"
             "7@-1: %lld pages have records, but %lld are in the index\n",
             (long long)fixture.head.pages, (long long)fixture.head.pages - 1);
    assert_found(&fixture, expected);
    put(&fixture, "", 0);
    assert_found(&fixture, "");
    spill_record_key_first(&fixture.key, fixture.head.epoch, 5, 1);
    put(&fixture, "", 0);
    spill_record_key_first(&fixture.key, fixture.head.epoch, 900, 90);
    put(&fixture, "", 0);
    snprintf(expected, sizeof expected,
             "7@90: the index has it, but it has no record\n"
             "7@1: the index has it from 5 on, its record from 4\n"
             "7@-1: %lld pages have records, but %lld are in the index\n",
             (long long)fixture.head.pages, (long long)fixture.head.pages + 2);
    assert_found(&fixture, expected);
    close_fixture(&fixture);
}

static void what_the_engine_cannot_read_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    element(&fixture, 13);
    spill_disk_damage(fixture.disk, fixture.key.data, fixture.key.size);
    assert_found(&fixture, "2@3: its elements: a record in memory was declared damaged\n");
    assert_int_equal(embedded_holds(fixture.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    assert_string_equal(error.message, "owner \"ada\" of 'feed', page 3: a record in memory was "
                                       "declared damaged");
    spill_record_key_kind(&fixture.key, SPILL_RECORD_HEAD);
    spill_disk_damage(fixture.disk, fixture.key.data, fixture.key.size);
    assert_found(&fixture,
                 "2@-1: the record of its state: a record in memory was declared damaged\n");
    spill_disk_damage(fixture.disk, NULL, 0);
    assert_found(&fixture, "");
    close_fixture(&fixture);
}

static void add_finding(void *context, const spill_finding_t *finding)
{
    add_text(context, finding->owner, finding->page, finding->invariant, finding->text);
}

/* What a user of the verifier is told. */
static void assert_verified(fixture_t *fixture, const char *expected)
{
    spill_error_t error;
    spill_verify_summary_t summary;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    fixture->found[0] = '\0';
    spill_code_t code =
        spill_array_verify(fixture->array, &owner, add_finding, fixture, &summary, &error);
    assert_int_equal(code, SPILL_OK);
    assert_string_equal(fixture->found, expected);
    bson_destroy(&storage);
}

/* Pages whose damage the documents' own look and the store's check both meet. */
static void damage_is_told_once(void **state)
{
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        fixture_t fixture;
        open_fixture(&fixture, keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST);
        int64_t seq = keep ? 13 : 18; /* in page 3 */
        element(&fixture, seq);
        spill_disk_damage(fixture.disk, fixture.key.data, fixture.key.size);
        assert_verified(&fixture, "2@3: cannot be read: a record in memory was declared damaged\n");
        spill_disk_damage(fixture.disk, NULL, 0);
        put(&fixture, "", 0);
        assert_verified(&fixture, "2@3: cannot be read: the record of an element cannot be read "
                                  "(memory: restore a backup, or export what is readable)\n");
        close_fixture(&fixture);
    }
}

/* Nothing is counted by an index that cannot be read to its end. */
static void a_damaged_index_is_not_counted(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_record_key_first(&fixture.key, fixture.head.epoch, 4, 1);
    spill_disk_damage(fixture.disk, fixture.key.data, fixture.key.size);
    assert_verified(&fixture,
                    "2@-1: the index of pages: a record in memory was declared damaged\n");
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_owner_has_no_findings),
        cmocka_unit_test(missing_elements_are_found),
        cmocka_unit_test(missing_elements_are_found_keep_oldest),
        cmocka_unit_test(elements_of_no_document_are_found),
        cmocka_unit_test(unreadable_records_are_found),
        cmocka_unit_test(an_unreadable_head_is_found),
        cmocka_unit_test(an_index_that_disagrees_is_found),
        cmocka_unit_test(what_the_engine_cannot_read_is_found),
        cmocka_unit_test(damage_is_told_once),
        cmocka_unit_test(a_damaged_index_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
