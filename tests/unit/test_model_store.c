/* Direct access to the model store's documents. Even damaged documents can be read. */
#include "support/model_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    spill_store_t *store;
    spill_definition_t definition;
    bson_t owner_storage;
    spill_value_t owner;
    spill_response_t response;
} fixture_t;

static void open_fixture(fixture_t *fixture)
{
    *fixture = (fixture_t){0};
    fixture->store = model_store_open();
    spill_definition_preset(&fixture->definition, "feed-recent", "feed", NULL);
    bson_init(&fixture->owner_storage);
    fixture->owner = spill_value_from_utf8(&fixture->owner_storage, "ada");
}

static void close_fixture(fixture_t *fixture)
{
    spill_response_release(&fixture->response);
    bson_destroy(&fixture->owner_storage);
    spill_store_close(fixture->store, NULL);
}

static spill_request_t request_of(const fixture_t *fixture, spill_request_kind_t kind, int64_t page)
{
    return (spill_request_t){
        .kind = kind,
        .definition = &fixture->definition,
        .owner = &fixture->owner,
        .key = (const uint8_t *)"ada",
        .key_bytes = 3,
        .page = page,
        .read = {.want = SPILL_WANT_FORWARD, .limit = 100},
    };
}

static model_document_t *document_of(const fixture_t *fixture, int64_t page, bool make)
{
    spill_request_t place = request_of(fixture, SPILL_REQUEST_READ, page);
    return model_document(fixture->store, &place, make);
}

static void insert(model_document_t *document, size_t index, int64_t number)
{
    spill_value_t value = {
        .data = (const uint8_t *)&number, .size_bytes = sizeof number, .type = BSON_TYPE_INT64};
    model_document_insert(document, index, &value);
}

/* Compare numbers and values (int64) of the elements, in turn. */
static void assert_run(fixture_t *fixture, int64_t page, size_t count, const int64_t *expected)
{
    spill_request_t read = request_of(fixture, SPILL_REQUEST_READ, page);
    assert_int_equal(spill_store_call(fixture->store, &read, &fixture->response, NULL), SPILL_OK);
    assert_int_equal(fixture->response.run.count, count);
    assert_int_equal(fixture->response.state.live, count);
    for (size_t i = 0; i < count; i++) {
        spill_element_t element = spill_run_element(&fixture->response.run, i);
        int64_t number;
        memcpy(&number, element.value.data, sizeof number);
        assert_int_equal(element.seq, expected[2 * i]);
        assert_int_equal(number, expected[2 * i + 1]);
    }
}

static void numbers_follow_from_positions(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    assert_null(document_of(&fixture, SPILL_HEAD, false));
    assert_null(model_fields(fixture.store,
                             &(spill_request_t){.key = (const uint8_t *)"ada", .key_bytes = 3}));
    model_document_t *head = document_of(&fixture, SPILL_HEAD, true);
    assert_ptr_equal(document_of(&fixture, SPILL_HEAD, true), head);
    head->state.first = 10;
    for (int64_t i = 0; i < 4; i++)
        insert(head, head->count, i);
    assert_run(&fixture, SPILL_HEAD, 4, (int64_t[]){10, 0, 11, 1, 12, 2, 13, 3});
    /* A plain pull, which leaves no deleted number: later elements move up. */
    model_document_remove(head, 1, 1);
    assert_run(&fixture, SPILL_HEAD, 3, (int64_t[]){10, 0, 11, 2, 12, 3});
    spill_seqs_insert(&head->state.deleted, 11);
    assert_run(&fixture, SPILL_HEAD, 3, (int64_t[]){10, 0, 12, 2, 13, 3});
    insert(head, 0, 9); /* $position: 0 */
    assert_run(&fixture, SPILL_HEAD, 4, (int64_t[]){10, 9, 12, 0, 13, 2, 14, 3});
    int64_t changed = 77;
    spill_value_t value = {
        .data = (const uint8_t *)&changed, .size_bytes = sizeof changed, .type = BSON_TYPE_INT64};
    model_document_replace(head, 3, &value);
    assert_run(&fixture, SPILL_HEAD, 4, (int64_t[]){10, 9, 12, 0, 13, 2, 14, 77});
    assert_int_equal(fixture.response.state.live_bytes, 32);
    close_fixture(&fixture);
}

static void unused_deleted_numbers_are_harmless(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    model_document_t *page = document_of(&fixture, 0, true);
    page->state.first = 10;
    insert(page, 0, 1);
    insert(page, 1, 2);
    for (int64_t seq = 0; seq < 5; seq++)
        spill_seqs_insert(&page->state.deleted, seq); /* below the first number */
    spill_seqs_insert(&page->state.deleted, 100);
    assert_run(&fixture, 0, 2, (int64_t[]){10, 1, 11, 2});
    spill_request_t read = request_of(&fixture, SPILL_REQUEST_READ, 0);
    for (read.read.seq = -3; read.read.seq < 120; read.read.seq++) {
        for (int want = SPILL_WANT_FORWARD; want <= SPILL_WANT_BACKWARD; want++) {
            read.read.want = (spill_want_t)want;
            spill_code_t code = spill_store_call(fixture.store, &read, &fixture.response, NULL);
            assert_int_equal(code, SPILL_OK);
            assert_in_range(fixture.response.run.count, 0, 2);
        }
    }
    close_fixture(&fixture);
}

static void moved_page_is_found(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    for (int64_t page = 0; page < 5; page++) {
        document_of(&fixture, page, true)->state.first = 10 * page;
        document_of(&fixture, page, true)->state.incarnation = 4;
    }
    spill_request_t read = request_of(&fixture, SPILL_REQUEST_READ, SPILL_PAGE_HOLDING);
    read.incarnation = 4;
    read.read.pages = 5;
    read.read.seq = 35;
    spill_store_call(fixture.store, &read, &fixture.response, NULL);
    assert_int_equal(fixture.response.state.page, 3);
    document_of(&fixture, 1, false)->state.first = 34;
    spill_store_call(fixture.store, &read, &fixture.response, NULL);
    assert_int_equal(fixture.response.state.page, 1);
    close_fixture(&fixture);
}

static void documents_are_deleted(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    spill_request_t head = request_of(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    spill_request_t page = request_of(&fixture, SPILL_REQUEST_READ, 3);
    document_of(&fixture, SPILL_HEAD, true);
    document_of(&fixture, 3, true);
    bson_t *fields = model_fields(fixture.store, &head);
    assert_int_equal(bson_count_keys(fields), 1);
    model_document_drop(fixture.store, &head);
    model_document_drop(fixture.store, &head);
    assert_null(model_fields(fixture.store, &head));
    assert_non_null(document_of(&fixture, 3, false));
    model_document_drop(fixture.store, &page);
    assert_null(document_of(&fixture, 3, false));
    document_of(&fixture, SPILL_HEAD, true);
    BSON_APPEND_INT32(model_fields(fixture.store, &head), "kept", 1);
    model_document_drop(fixture.store, &head);
    assert_non_null(model_fields(fixture.store, &head));
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_follow_from_positions),
        cmocka_unit_test(unused_deleted_numbers_are_harmless),
        cmocka_unit_test(moved_page_is_found),
        cmocka_unit_test(documents_are_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
