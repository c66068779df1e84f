#include "store/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(spill_request_kind_name(SPILL_REQUEST_READ), "READ");
    assert_string_equal(spill_request_kind_name(SPILL_REQUEST_DROP_PAGE), "DROP_PAGE");
    for (int kind = 0; kind < SPILL_REQUEST_KIND_COUNT; kind++)
        assert_true(strlen(spill_request_kind_name((spill_request_kind_t)kind)) > 2);
}

static void new_incarnation_is_later_than_dropped_ones(void **state)
{
    (void)state;
    spill_request_t dated,
        request = {.kind = SPILL_REQUEST_APPEND, .page = SPILL_HEAD, .incarnation = 9};
    assert_ptr_equal(spill_request_dated(&request, 9, &dated), &request);
    request.create = true;
    assert_ptr_equal(spill_request_dated(&request, 8, &dated), &request);
    assert_ptr_equal(spill_request_dated(&request, 9, &dated), &dated);
    assert_int_equal(dated.incarnation, 10);
    assert_int_equal(dated.page, SPILL_HEAD);
    assert_int_equal(request.incarnation, 9);
}

static void empty_request_is_cloned(void **state)
{
    (void)state;
    spill_request_t request = {
        .kind = SPILL_REQUEST_SEAL, .page = 4, .incarnation = 9, .seal.close = true};
    spill_request_t *clone = spill_request_clone(&request);
    assert_memory_equal(clone, &request, sizeof request);
    spill_request_free(clone);
    spill_request_free(NULL);
}

static void assert_value(const spill_value_t *value, const char *bytes)
{
    assert_int_equal(value->size_bytes, strlen(bytes));
    assert_memory_equal(value->data, bytes, strlen(bytes));
    assert_int_equal(value->type, BSON_TYPE_BINARY);
}

static spill_value_t value_of(char *bytes)
{
    return (spill_value_t){
        .data = (uint8_t *)bytes, .size_bytes = (uint32_t)strlen(bytes), .type = BSON_TYPE_BINARY};
}

/* Overwrite or free everything that the original points to before the clone is compared. */
static void clone_owns_its_memory(void **state)
{
    (void)state;
    char owner_bytes[] = "owner", one[] = "first", two[] = "second", id[] = "op-1", key[] = "key";
    spill_value_t owner = value_of(owner_bytes), elements[] = {value_of(one), value_of(two)};
    spill_definition_t definition = {.name = "feed", .op_window = 7};
    spill_op_t op = {.id = id, .id_bytes = 4, .base = 3};
    spill_run_t run = {0};
    spill_run_add(&run, 12, &elements[0]);
    spill_seqs_t deleted = {0};
    spill_seqs_insert(&deleted, 13);
    spill_ops_t ops = {0};
    spill_op_entry_t entry = {.ordinal = 5, .id_bytes = 1, .id = "x"};
    spill_ops_push(&ops, &entry, 10);
    bson_t *update = BCON_NEW("$set", "{", "a", BCON_INT32(1), "}");
    spill_request_t request = {
        .kind = SPILL_REQUEST_APPEND,
        .definition = &definition,
        .owner = &owner,
        .key = (uint8_t *)key,
        .key_bytes = 3,
        .rev = 77,
        .append = {.op = &op,
                   .elements = elements,
                   .element_count = 2,
                   .elements_bytes = 11,
                   .update = update},
    };
    spill_request_t put = {.kind = SPILL_REQUEST_PUT_PAGE,
                           .put_page = {.run = &run, .deleted = &deleted}};
    spill_request_t create = {.kind = SPILL_REQUEST_CREATE_PAGE, .create_page.ops = &ops};
    spill_request_t *clone = spill_request_clone(&request);
    spill_request_t *put_clone = spill_request_clone(&put);
    spill_request_t *create_clone = spill_request_clone(&create);

    memset(&definition, 0, sizeof definition);
    memset(owner_bytes, 'z', 5);
    memset(one, 'z', 5);
    memset(two, 'z', 6);
    memset(id, 'z', 4);
    memset(key, 'z', 3);
    memset(&op, 0, sizeof op);
    memset(elements, 0, sizeof elements);
    spill_run_release(&run);
    spill_seqs_release(&deleted);
    spill_ops_release(&ops);
    bson_destroy(update);

    assert_string_equal(clone->definition->name, "feed");
    assert_int_equal(clone->definition->op_window, 7);
    assert_value(clone->owner, "owner");
    assert_memory_equal(clone->key, "key", 3);
    assert_int_equal(clone->append.element_count, 2);
    assert_value(&clone->append.elements[0], "first");
    assert_value(&clone->append.elements[1], "second");
    assert_int_equal(clone->append.elements_bytes, 11);
    assert_int_equal(clone->append.op->id_bytes, 4);
    assert_memory_equal(clone->append.op->id, "op-1", 4);
    assert_int_equal(clone->append.op->base, 3);
    assert_int_equal(put_clone->put_page.run->count, 1);
    spill_element_t element = spill_run_element(put_clone->put_page.run, 0);
    assert_int_equal(element.seq, 12);
    assert_value(&element.value, "first");
    assert_true(spill_seqs_contains(put_clone->put_page.deleted, 13));
    assert_non_null(spill_ops_find(create_clone->create_page.ops, "x", 1));
    assert_true(bson_has_field(clone->append.update, "$set"));
    assert_int_equal(clone->rev, 77);
    spill_request_t *again = spill_request_clone(clone);
    spill_request_free(clone);
    assert_value(&again->append.elements[1], "second");
    spill_request_free(again);
    spill_request_free(put_clone);
    spill_request_free(create_clone);
}

static void cleared_response_equals_new(void **state)
{
    (void)state;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_response_clear(&response);
    char bytes[] = "bytes";
    spill_value_t value = value_of(bytes);
    spill_op_entry_t entry = {.ordinal = 1};
    response.outcome = SPILL_DONE;
    response.state.present = true;
    spill_seqs_insert(&response.state.deleted, 1);
    spill_run_add(&response.run, 1, &value);
    spill_ops_push(&response.ops, &entry, 3);
    response.op_found = true;
    response.fields = bson_new();
    const void *kept = response.run.entries;
    spill_response_clear(&response);
    assert_int_equal(response.outcome, SPILL_REFUSED_GUARD);
    assert_false(response.state.present);
    assert_int_equal(response.state.deleted.count, 0);
    assert_int_equal(response.run.count, 0);
    assert_int_equal(spill_run_bytes(&response.run), 0);
    assert_int_equal(response.ops.count, 0);
    assert_false(response.op_found);
    assert_null(response.fields);
    assert_ptr_equal(response.run.entries, kept);
    spill_response_release(&response);
    assert_null(response.run.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(new_incarnation_is_later_than_dropped_ones),
        cmocka_unit_test(empty_request_is_cloned),
        cmocka_unit_test(clone_owns_its_memory),
        cmocka_unit_test(cleared_response_equals_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
