/*
 * Arguments and calls that the array's interface refuses, and with which code. On the model store,
 * with both values of keep.
 */
#include "support/fault_store.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define DOCUMENT_BYTES (16 * 1024 * 1024)

typedef struct fixture {
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    spill_error_t error;
} fixture_t;

static void open_fixture(fixture_t *fixture, spill_keep_t keep)
{
    spill_definition_t definition;
    *fixture = (fixture_t){.storage = BSON_INITIALIZER};
    spill_definition_init(&definition, "feed");
    definition.keep = keep;
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 3;
    definition.op_window = 3;
    assert_int_equal(spill_store_open("memory:", NULL, &fixture->store, NULL), SPILL_OK);
    assert_int_equal(spill_store_define(fixture->store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "feed", &fixture->array, NULL), SPILL_OK);
    fixture->owner = spill_value_from_utf8(&fixture->storage, "ada");
}

static void close_fixture(fixture_t *fixture)
{
    spill_array_close(fixture->array);
    assert_int_equal(spill_store_close(fixture->store, NULL), SPILL_OK);
    bson_destroy(&fixture->storage);
}

static spill_value_t int64_value(const int64_t *value)
{
    return (spill_value_t){(const uint8_t *)value, sizeof *value, BSON_TYPE_INT64};
}

static void assert_message(const fixture_t *fixture, spill_code_t code, spill_code_t expected,
                           const char *text)
{
    if (code != expected || (code != SPILL_OK && !strstr(fixture->error.message, text)))
        fail_msg("%s (%s) instead of %s: \"%s\"", spill_code_name(code), fixture->error.message,
                 spill_code_name(expected), text);
}

/* Append the numbers 0, 1, ... under an operation id (NULL: none). */
static spill_code_t append_with_op(fixture_t *fixture, int count, const char *id, int64_t base,
                                   spill_append_result_t *result)
{
    static const int64_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    spill_value_t elements[8];
    spill_append_options_t options;
    spill_op_t op = {.id = id, .id_bytes = id ? strlen(id) : 0, .base = base};
    for (int i = 0; i < count; i++)
        elements[i] = int64_value(&numbers[i]);
    spill_append_options_init(&options);
    options.op = id ? &op : NULL;
    return spill_array_append(fixture->array, &fixture->owner, elements, (size_t)count, &options,
                              result, &fixture->error);
}

static int64_t count(fixture_t *fixture)
{
    spill_count_t counted;
    assert_int_equal(spill_array_count(fixture->array, &fixture->owner, &counted, NULL), SPILL_OK);
    return counted.count;
}

static void for_both(void (*test)(fixture_t *fixture))
{
    for (int keep = 0; keep < 2; keep++) {
        fixture_t fixture;
        open_fixture(&fixture, keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST);
        test(&fixture);
        close_fixture(&fixture);
    }
}

/* ---- append ---------------------------------------------------------------------------------- */

static void refuse_elements(fixture_t *fixture)
{
    assert_message(fixture, append_with_op(fixture, 0, NULL, 0, NULL), SPILL_INVALID,
                   "nothing to append");
    spill_value_t cut_off = {(const uint8_t *)"\5", 1, BSON_TYPE_UTF8};
    assert_message(fixture,
                   spill_array_append(fixture->array, &fixture->owner, &cut_off, 1, NULL, NULL,
                                      &fixture->error),
                   SPILL_INVALID, "element 0 is not a well-formed BSON value");
    static const size_t sizes[] = {DOCUMENT_BYTES + 100, DOCUMENT_BYTES - 100};
    static const char *const texts[] = {"no document holds more", "with a document around it"};
    for (int i = 0; i < 2; i++) {
        uint8_t *data = bson_malloc0(sizes[i]);
        uint32_t length = BSON_UINT32_TO_LE((uint32_t)sizes[i] - 4);
        memcpy(data, &length, sizeof length);
        memset(data + 4, 'x', sizes[i] - 5);
        spill_value_t large = {data, (uint32_t)sizes[i], BSON_TYPE_UTF8};
        assert_message(fixture,
                       spill_array_append(fixture->array, &fixture->owner, &large, 1, NULL, NULL,
                                          &fixture->error),
                       SPILL_TOO_BIG, texts[i]);
        assert_int_equal(append_with_op(fixture, 1, NULL, 0, NULL), SPILL_OK);
        assert_message(
            fixture, spill_array_edit(fixture->array, &fixture->owner, i, &large, &fixture->error),
            SPILL_TOO_BIG, "");
        bson_free(data);
    }
    assert_int_equal(count(fixture), 2);
}

static void invalid_elements_are_refused(void **state)
{
    (void)state;
    for_both(refuse_elements);
}

static void refuse_operations(fixture_t *fixture)
{
    char longest[SPILL_OP_ID_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[SPILL_OP_ID_MAX + 1] = '\0';
    assert_message(fixture, append_with_op(fixture, 1, "", 0, NULL), SPILL_INVALID,
                   "1 to 64 bytes, not 0");
    assert_message(fixture, append_with_op(fixture, 1, longest, 0, NULL), SPILL_INVALID, "not 65");
    assert_message(fixture, append_with_op(fixture, 1, "id", -1, NULL), SPILL_INVALID, "base");
    assert_message(fixture, append_with_op(fixture, 1, "id", SPILL_OP_BASE_MAX + 1, NULL),
                   SPILL_INVALID, "base");
    longest[SPILL_OP_ID_MAX] = '\0';
    assert_message(fixture, append_with_op(fixture, 7, longest, 0, NULL), SPILL_INVALID,
                   "a batch that may be split");
    assert_int_equal(count(fixture), 0);
    assert_int_equal(append_with_op(fixture, 1, longest, 0, NULL), SPILL_OK);
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.version = 99;
    assert_message(fixture,
                   spill_array_append(fixture->array, &fixture->owner, &fixture->owner, 1, &options,
                                      NULL, &fixture->error),
                   SPILL_INVALID, "version 99");
}

static void invalid_operations_are_refused(void **state)
{
    (void)state;
    for_both(refuse_operations);
}

static void repeat_operation(fixture_t *fixture)
{
    spill_append_result_t result;
    assert_int_equal(append_with_op(fixture, 2, "first", 0, &result), SPILL_OK);
    assert_false(result.repeated);
    assert_int_equal(append_with_op(fixture, 2, "first", 0, &result), SPILL_OK);
    assert_true(result.repeated);
    assert_int_equal(result.first, 0);
    assert_int_equal(result.op_base, 1);
    assert_message(fixture, append_with_op(fixture, 1, "first", 0, &result), SPILL_CONFLICT,
                   "owner \"ada\" of 'feed': the operation id was used");
    assert_false(fixture->error.retryable);
    for (int i = 0; i < 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "op%d", i);
        assert_int_equal(append_with_op(fixture, 1, id, 1 + i, &result), SPILL_OK);
    }
    assert_message(fixture, append_with_op(fixture, 2, "first", 0, &result), SPILL_UNKNOWN,
                   "owner \"ada\" of 'feed'");
    assert_false(fixture->error.retryable);
    assert_int_equal(count(fixture), 5);
}

static void operation_older_than_window_is_unknown(void **state)
{
    (void)state;
    for_both(repeat_operation);
}

/* ---- races ----------------------------------------------------------------------------------- */

/* Just before an edit takes effect, another client edits the same document. */
static void edit_first(void *context, int64_t index, const spill_request_t *request)
{
    (void)index;
    fixture_t *fixture = context;
    int64_t other = 7;
    spill_value_t element = int64_value(&other);
    if (request && request->kind == SPILL_REQUEST_EDIT)
        assert_int_equal(
            spill_array_edit(fixture->array, &fixture->owner, 0, &element, &fixture->error),
            SPILL_OK);
}

static void pass_time(void *context, int64_t duration_us)
{
    (void)context;
    (void)duration_us;
}

static void conflict_after_too_many_lost_races(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_store_t *store;
    spill_array_t *array;
    fault_hooks_t hooks = {.context = &fixture, .before = edit_first};
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    fixture.store->options.clock.sleep_us = pass_time;
    assert_int_equal(append_with_op(&fixture, 1, NULL, 0, NULL), SPILL_OK);
    fault_wrap(fixture.store, &hooks, &store);
    assert_int_equal(spill_array_open(store, "feed", &array, NULL), SPILL_OK);
    int64_t mine = 8;
    spill_value_t element = int64_value(&mine);
    spill_error_t error;
    assert_int_equal(spill_array_edit(array, &fixture.owner, 0, &element, &error), SPILL_CONFLICT);
    assert_non_null(strstr(error.message, "owner \"ada\" of 'feed': lost every race"));
    assert_true(error.retryable);
    spill_array_close(array);
    spill_store_close(store, NULL);
    close_fixture(&fixture);
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void refuse_owners(fixture_t *fixture)
{
    bson_t *documents = BCON_NEW("array", "[", BCON_INT32(1), "]", "regex", BCON_REGEX("a", ""),
                                 "undefined", BCON_UNDEFINED);
    bson_iter_t iter;
    bson_iter_init(&iter, documents);
    while (bson_iter_next(&iter)) {
        spill_value_t owner = spill_value_from_iter(&iter);
        spill_count_t counted;
        spill_code_t code = spill_array_append(fixture->array, &owner, &fixture->owner, 1, NULL,
                                               NULL, &fixture->error);
        assert_message(fixture, code, SPILL_INVALID, "");
        code = spill_array_count(fixture->array, &owner, &counted, &fixture->error);
        assert_message(fixture, code, SPILL_INVALID, "");
    }
    bson_destroy(documents);
}

static void invalid_owners_are_refused(void **state)
{
    (void)state;
    for_both(refuse_owners);
}

static void find_nothing(fixture_t *fixture)
{
    spill_array_t *array;
    const spill_value_t *owner = &fixture->owner;
    for (int i = 0; i < 2; i++) { /* first without the owner, then without the element */
        assert_message(fixture, spill_array_edit(fixture->array, owner, 7, owner, &fixture->error),
                       SPILL_NOT_FOUND, "\"ada\" of 'feed'");
        assert_message(fixture, spill_array_remove(fixture->array, owner, 7, &fixture->error),
                       SPILL_NOT_FOUND, "\"ada\" of 'feed'");
        assert_int_equal(append_with_op(fixture, 3, NULL, 0, NULL), SPILL_OK);
    }
    assert_int_equal(spill_array_drop_owner(fixture->array, owner, NULL), SPILL_OK);
    assert_message(fixture, spill_array_drop_owner(fixture->array, owner, &fixture->error),
                   SPILL_NOT_FOUND, "\"ada\" of 'feed'");
    assert_message(fixture, spill_array_open(fixture->store, "nothing", &array, &fixture->error),
                   SPILL_NOT_FOUND, "there are: feed");
    assert_null(array);
}

static void absent_owners_and_elements_are_not_found(void **state)
{
    (void)state;
    for_both(find_nothing);
}

/* ---- reading and walking --------------------------------------------------------------------- */

static void refuse_reads(fixture_t *fixture)
{
    spill_read_options_t wrong[3];
    spill_slice_t *slice = (spill_slice_t *)fixture;
    for (size_t i = 0; i < 3; i++)
        spill_read_options_init(&wrong[i]);
    wrong[0].version = 99;
    wrong[1].limit = -1;
    wrong[2].skip = -1;
    for (size_t i = 0; i < 3; i++) {
        spill_code_t code =
            spill_array_read(fixture->array, &fixture->owner, &wrong[i], &slice, &fixture->error);
        assert_message(fixture, code, SPILL_INVALID, "");
        assert_null(slice);
    }
    /* Ranges without elements are allowed. */
    spill_read_options_t empty[2];
    for (size_t i = 0; i < 2; i++)
        spill_read_options_init(&empty[i]);
    empty[0].after = INT64_MAX;
    empty[1].before = INT64_MIN;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            spill_array_read(fixture->array, &fixture->owner, &empty[i], &slice, &fixture->error),
            SPILL_OK);
        assert_int_equal(slice->count, 0);
        spill_slice_free(slice);
    }
}

static void invalid_reads_are_refused(void **state)
{
    (void)state;
    for_both(refuse_reads);
}

static bool stop_owners(void *context, const spill_value_t *owner)
{
    (void)owner;
    ++*(int *)context;
    return false;
}

static bool stop_elements(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)element;
    return stop_owners(context, owner);
}

static bool stop_documents(void *context, const char *collection, const bson_t *document)
{
    (void)collection;
    (void)document;
    return stop_owners(context, NULL);
}

static void stop(fixture_t *fixture)
{
    int visits = 0;
    spill_array_t *array = fixture->array;
    assert_int_equal(append_with_op(fixture, 8, NULL, 0, NULL), SPILL_OK);
    assert_int_equal(spill_array_owners(array, stop_owners, &visits, NULL), SPILL_CANCELLED);
    assert_int_equal(spill_array_export(array, NULL, stop_elements, &visits, NULL),
                     SPILL_CANCELLED);
    assert_int_equal(spill_array_export(array, &fixture->owner, stop_elements, &visits, NULL),
                     SPILL_CANCELLED);
    assert_int_equal(spill_array_documents(array, NULL, true, stop_documents, &visits, NULL),
                     SPILL_CANCELLED);
    assert_int_equal(visits, 4);
}

static void walk_can_be_cancelled(void **state)
{
    (void)state;
    for_both(stop);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void contradict(fixture_t *fixture)
{
    spill_definition_t next = *spill_array_get_definition(fixture->array);
    strcpy(next.count_field, "howMany");
    assert_int_equal(spill_store_define(fixture->store, &next, NULL), SPILL_OK);
    assert_message(fixture, append_with_op(fixture, 1, NULL, 0, NULL), SPILL_NOT_FOUND,
                   "open the array again");
    spill_array_close(fixture->array);
    assert_int_equal(spill_array_open(fixture->store, next.name, &fixture->array, NULL), SPILL_OK);
    assert_int_equal(append_with_op(fixture, 1, NULL, 0, NULL), SPILL_OK);
    strcpy(next.count_field, "many");
    assert_message(fixture, spill_store_define(fixture->store, &next, &fixture->error),
                   SPILL_REFUSED, "countField cannot change from 'howMany' to 'many'");
    strcpy(next.count_field, "howMany");
    next.bounds.threshold = 9;
    assert_int_equal(spill_store_define(fixture->store, &next, NULL), SPILL_OK);
}

static void definition_must_match_data(void **state)
{
    (void)state;
    for_both(contradict);
}

/* An answer without elements may own memory. A sanitizer notices if it is not freed. */
static void read_after_the_last(fixture_t *fixture)
{
    int64_t numbers[5] = {0, 1, 2, 3, 4};
    spill_value_t elements[5];
    spill_read_options_t options;
    spill_slice_t *slice;
    for (int i = 0; i < 5; i++)
        elements[i] = int64_value(&numbers[i]);
    assert_int_equal(spill_array_append(fixture->array, &fixture->owner, elements, 5, NULL, NULL,
                                        &fixture->error),
                     SPILL_OK);
    assert_int_equal(spill_array_remove(fixture->array, &fixture->owner, 4, &fixture->error),
                     SPILL_OK);
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.after = 3;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            spill_array_read(fixture->array, &fixture->owner, &options, &slice, &fixture->error),
            SPILL_OK);
        assert_int_equal(slice->count, 0);
        assert_false(slice->more);
        spill_slice_free(slice);
    }
}

static void reads_after_the_last_element_are_empty(void **state)
{
    (void)state;
    for_both(read_after_the_last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_elements_are_refused),
        cmocka_unit_test(invalid_operations_are_refused),
        cmocka_unit_test(operation_older_than_window_is_unknown),
        cmocka_unit_test(conflict_after_too_many_lost_races),
        cmocka_unit_test(invalid_owners_are_refused),
        cmocka_unit_test(absent_owners_and_elements_are_not_found),
        cmocka_unit_test(invalid_reads_are_refused),
        cmocka_unit_test(reads_after_the_last_element_are_empty),
        cmocka_unit_test(walk_can_be_cancelled),
        cmocka_unit_test(definition_must_match_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
