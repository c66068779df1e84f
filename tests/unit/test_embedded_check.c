/* The embedded store's check finds what is wrong with the records of an owner. */
#include "support/tampered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Beside ada's records, which change, those of "bob" stay sound. */
typedef struct fixture {
    tampered_t feed;
    spill_state_t head; /* ada's */
    char found[4096];
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
    spill_record_key_element(&fixture->feed.key, fixture->head.epoch, seq);
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
    spill_record_key_element(&fixture.feed.key, fixture.head.epoch - 1, 7);
    tampered_put(&fixture.feed, "\x0a", 1);
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
    tampered_put(&fixture.feed, "", 0);
    spill_record_key_page(&fixture.feed.key, 2);
    tampered_put(&fixture.feed, "no state", 8);
    spill_record_key_op(&fixture.feed.key, fixture.head.epoch, 0);
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
                           "7@-1: there is a record of an unknown kind\n");
    assert_int_equal(embedded_holds(fixture.feed.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    close_fixture(&fixture);
}

static void an_unreadable_head_is_found(void **state)
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

static void an_index_that_disagrees_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    spill_record_key_first(&fixture.feed.key, fixture.head.epoch, 4, 1);
    tampered_delete(&fixture.feed);
    char expected[512];
    snprintf(expected, sizeof expected,
             "7@-1: element 7 is in no document\n7@-1: element 6 is in no document\n"
             "7@-1: element 5 is in no document\n7@-1: element 4 is in no document\n"
             "7@-1: %lld pages have records, but %lld are in the index\n",
             (long long)fixture.head.pages, (long long)fixture.head.pages - 1);
    assert_found(&fixture, expected);
    tampered_put(&fixture.feed, "", 0);
    assert_found(&fixture, "");
    spill_record_key_first(&fixture.feed.key, fixture.head.epoch, 5, 1);
    tampered_put(&fixture.feed, "", 0);
    spill_record_key_first(&fixture.feed.key, fixture.head.epoch, 900, 90);
    tampered_put(&fixture.feed, "", 0);
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
    spill_disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
    assert_found(&fixture, "2@3: its elements: a record in memory was declared damaged\n");
    assert_int_equal(embedded_holds(fixture.feed.array, "ada", 0, 30, &error), SPILL_CORRUPT);
    assert_string_equal(error.message, "owner \"ada\" of 'feed', page 3: a record in memory was "
                                       "declared damaged");
    spill_record_key_kind(&fixture.feed.key, SPILL_RECORD_HEAD);
    spill_disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
    assert_found(&fixture,
                 "2@-1: the record of its state: a record in memory was declared damaged\n");
    spill_disk_damage(fixture.feed.disk, NULL, 0);
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
        spill_array_verify(fixture->feed.array, &owner, add_finding, fixture, &summary, &error);
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
        spill_disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
        assert_verified(&fixture, "2@3: cannot be read: a record in memory was declared damaged\n");
        spill_disk_damage(fixture.feed.disk, NULL, 0);
        tampered_put(&fixture.feed, "", 0);
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
    spill_record_key_first(&fixture.feed.key, fixture.head.epoch, 4, 1);
    spill_disk_damage(fixture.feed.disk, fixture.feed.key.data, fixture.feed.key.size);
    assert_verified(&fixture,
                    "2@-1: the index of pages: a record in memory was declared damaged\n");
    close_fixture(&fixture);
}

static void id_entry(fixture_t *fixture, int64_t seq)
{
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t id = SPILL_BUFFER_INIT;
    spill_value_t value = spill_value_from_utf8(&storage, "x");
    assert_int_equal(spill_element_id_key(&value, &id, NULL), SPILL_OK);
    spill_record_key_id(&fixture->feed.key, fixture->head.epoch, &id, seq);
    spill_buffer_release(&id);
    bson_destroy(&storage);
}

static void an_index_of_ids_that_disagrees_is_found(void **state)
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
    assert_found(&fixture, "7@-1: the index of ids has 2 entries, of which 1 are those of an "
                           "element\n");
    tampered_delete(&fixture.feed);
    id_entry(&fixture, 2);
    tampered_delete(&fixture.feed);
    assert_found(&fixture, "7@-1: the id of element 2 has no entry\n");
    bson_destroy(document);
    bson_destroy(&storage);
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
        cmocka_unit_test(an_index_of_ids_that_disagrees_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
