#include "suite.h"

#include "store/transition.h"

/* ---- creating a head ------------------------------------------------------------------------- */

static void append_creates_head_if_allowed(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_document(&fixture, SPILL_HEAD, "absent");
    assert_fields(&fixture, NULL);
    int64_t number = 100;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    assert_refused(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "absent");
    append.create = true;
    assert_done(&fixture, &append);
    assert_int_equal(fixture.response.seq, 0);
    assert_true(fixture.response.state.present);
    assert_int_equal(fixture.response.state.live, 1);
    assert_int_equal(fixture.response.state.incarnation, INCARNATION);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100");
    assert_fields(&fixture, "{ \"_id\" : \"ada\" }");
    fixture_close(&fixture);
}

static void append_does_not_create_head_twice(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    int64_t number = 102;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    append.create = true;
    append.incarnation = INCARNATION + 5;
    assert_done(&fixture, &append);
    assert_int_equal(fixture.response.seq, 2);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102");
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102");
    fixture_close(&fixture);
}

static void append_needs_existing_page(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    int64_t number = 5;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, 0, &element, 1);
    append.create = true;
    assert_refused(&fixture, &append);
    spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, 0);
    create.create_page.first = 7;
    assert_done(&fixture, &create);
    append.incarnation = INCARNATION + 1;
    assert_refused(&fixture, &append);
    append.incarnation = INCARNATION;
    assert_done(&fixture, &append);
    assert_int_equal(fixture.response.seq, 7);
    assert_document(&fixture, 0, "rev+0 first=7 | 7=5");
    fixture_close(&fixture);
}

/* ---- room ------------------------------------------------------------------------------------ */

static void slots_are_bounded(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION;
    remove.change.seq = 1;
    assert_done(&fixture, &remove); /* a removal frees no slot: 3 slots are used */

    int64_t numbers[] = {103, 104};
    spill_value_t elements[] = {number_value(&numbers[0]), number_value(&numbers[1])};
    spill_request_t append = make_append(&fixture, SPILL_HEAD, elements, 2);
    append.limits.slots_max = 4;
    assert_refused(&fixture, &append);
    append.append.element_count = 1;
    append.append.elements_bytes = 8;
    assert_done(&fixture, &append);
    assert_refused(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+1 gone=1 removed=1 | 0=100 2=102 3=103");
    fixture_close(&fixture);
}

static void bytes_are_bounded(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_value_t elements[] = {text_value(500, 'a'), text_value(500, 'b'), text_value(500, 'c')};
    spill_request_t append = make_append(&fixture, SPILL_HEAD, elements, 3);
    append.create = true;
    append.limits.bytes_max = 1600;
    assert_refused(&fixture, &append);
    append.append.element_count = 2;
    append.append.elements_bytes = 1000;
    assert_done(&fixture, &append);
    append.append.element_count = 1;
    append.append.elements_bytes = 500;
    assert_refused(&fixture, &append);

    /* The limit is spill_state_document_bytes, to the byte. */
    spill_state_t *head = &fixture.response.state;
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    assert_done(&fixture, &read);
    append.limits.bytes_max = spill_state_document_bytes(
        &fixture.definition, &fixture.owner, true, head, head->live + 1, head->live_bytes + 500);
    append.limits.bytes_max--;
    assert_refused(&fixture, &append);
    append.limits.bytes_max++;
    assert_done(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=#500 1=#500 2=#500");
    for (int i = 0; i < 3; i++)
        bson_free((void *)elements[i].data);
    fixture_close(&fixture);
}

/*
 * A document without the array may have other fields. A client that reads why its append was
 * refused must reach the same conclusion as the store; otherwise it retries forever.
 */
static void read_explains_why_new_head_is_full(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_value_t elements[] = {text_value(50, 'a'), text_value(50, 'b')};
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    spill_request_t fields = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    bson_t *update = BCON_NEW("$set", "{", "story", BCON_UTF8("longer than the other fields"), "}");
    fields.append.update = update;
    assert_done(&fixture, &fields);
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    assert_done(&fixture, &drop);
    assert_document(&fixture, SPILL_HEAD, "absent");

    spill_state_t empty = {.op_count = 0};
    spill_request_t append = make_append(&fixture, SPILL_HEAD, elements, 2);
    append.create = true;
    append.limits.bytes_max = spill_state_document_bytes(&fixture.definition, &fixture.owner, true,
                                                         &empty, 2, append.append.elements_bytes);
    assert_refused(&fixture, &append);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    for (; call(&fixture, &append) != SPILL_DONE; append.limits.bytes_max++) {
        assert_done(&fixture, &read);
        assert_int_equal(spill_append_refusal(&append, &fixture.response.state, NULL),
                         SPILL_REFUSAL_FULL);
    }
    bson_destroy(update);
    bson_free((void *)elements[0].data);
    bson_free((void *)elements[1].data);
    fixture_close(&fixture);
}

static void element_over_bound_gets_own_document(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_value_t large = text_value(5000, 'x');
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &large, 1);
    append.create = true;
    append.limits.bytes_max = 1000;
    assert_done(&fixture, &append);
    assert_refused(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=#5000");

    fixture_owner(&fixture, "bob");
    spill_value_t larger = text_value(SPILL_DOCUMENT_BYTES_MAX, 'x');
    append = make_append(&fixture, SPILL_HEAD, &larger, 1);
    append.create = true;
    assert_refused(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "absent");
    bson_free((void *)large.data);
    bson_free((void *)larger.data);
    fixture_close(&fixture);
}

static void sealed_document_refuses_appends(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, SPILL_HEAD);
    assert_done(&fixture, &seal);
    int64_t number = 1;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    append.create = true;
    assert_refused(&fixture, &append);
    fixture_close(&fixture);
}

/* ---- operations ------------------------------------------------------------------------------ */

static spill_outcome_t append_op(fixture_t *fixture, const char *id, int64_t base, size_t count)
{
    int64_t number = 7;
    spill_value_t elements[] = {number_value(&number), number_value(&number)};
    spill_op_t op = {.id = id, .id_bytes = strlen(id), .base = base};
    spill_request_t append = make_append(fixture, SPILL_HEAD, elements, count);
    append.create = true;
    append.append.op = &op;
    return call(fixture, &append);
}

static void operation_is_applied_once(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_int_equal(append_op(&fixture, "a", 0, 1), SPILL_DONE);
    assert_int_equal(fixture.response.state.op_count, 1);
    assert_int_equal(append_op(&fixture, "a", 0, 1), SPILL_REFUSED_GUARD);
    assert_int_equal(append_op(&fixture, "b", 0, 2), SPILL_DONE);
    append_numbers(&fixture, SPILL_HEAD, 100, 1); /* without an operation: op_count stays */
    assert_document(&fixture, SPILL_HEAD, "rev+0 n=2 | 0=7 1=7 2=7 3=100");
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+1 b@1:1+2");

    spill_op_t op = {.id = "b", .id_bytes = 1};
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.op = &op;
    assert_done(&fixture, &read);
    assert_true(fixture.response.op_found);
    assert_int_equal(fixture.response.op.ordinal, 1);
    assert_int_equal(fixture.response.op.seq, 1);
    assert_int_equal(fixture.response.op.count, 2);
    op.id = "c";
    assert_done(&fixture, &read);
    assert_false(fixture.response.op_found);
    fixture_close(&fixture);
}

static void operation_older_than_window_is_refused(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_int_equal(append_op(&fixture, "a", 0, 1), SPILL_DONE);
    assert_int_equal(append_op(&fixture, "b", 1, 1), SPILL_DONE);
    assert_int_equal(append_op(&fixture, "c", 1, 1), SPILL_DONE);
    /* op_count was 3, base + window is 4 */
    assert_int_equal(append_op(&fixture, "d", 1, 1), SPILL_DONE);
    assert_ops(&fixture, SPILL_HEAD, "b@1:1+1 c@2:2+1 d@3:3+1");
    assert_int_equal(append_op(&fixture, "a", 0, 1), SPILL_REFUSED_GUARD); /* stale */
    assert_int_equal(append_op(&fixture, "e", 1, 1), SPILL_REFUSED_GUARD); /* 4 >= 1 + 3 */
    assert_int_equal(append_op(&fixture, "e", 2, 1), SPILL_DONE);
    fixture_reopen(&fixture);
    assert_ops(&fixture, SPILL_HEAD, "c@2:2+1 d@3:3+1 e@4:4+1");
    fixture_close(&fixture);
}

static void a_window_can_shrink_and_grow(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_int_equal(append_op(&fixture, "a", 0, 1), SPILL_DONE);
    assert_int_equal(append_op(&fixture, "b", 0, 1), SPILL_DONE);
    assert_int_equal(append_op(&fixture, "c", 0, 1), SPILL_DONE);
    fixture.definition.op_window = 1;
    assert_int_equal(append_op(&fixture, "d", 3, 1), SPILL_DONE);
    assert_ops(&fixture, SPILL_HEAD, "d@3:3+1");
    fixture.definition.op_window = 2;
    assert_int_equal(append_op(&fixture, "e", 4, 1), SPILL_DONE);
    assert_ops(&fixture, SPILL_HEAD, "d@3:3+1 e@4:4+1");
    fixture_close(&fixture);
}

static void operation_ids_compare_all_bytes(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    char longest[SPILL_OP_ID_MAX + 1];
    memset(longest, 'x', SPILL_OP_ID_MAX);
    longest[SPILL_OP_ID_MAX] = '\0';
    assert_int_equal(append_op(&fixture, longest, 0, 1), SPILL_DONE);
    assert_int_equal(append_op(&fixture, longest, 0, 1), SPILL_REFUSED_GUARD);
    assert_int_equal(append_op(&fixture, longest + 1, 0, 1), SPILL_DONE);
    longest[SPILL_OP_ID_MAX - 1] = 'y';
    assert_int_equal(append_op(&fixture, longest, 0, 1), SPILL_DONE);
    fixture_close(&fixture);
}

/* ---- the head's other fields ----------------------------------------------------------------- */

static void append_updates_other_fields(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *update =
        BCON_NEW("$set", "{", "name", "Ada", "}", "$inc", "{", "posts", BCON_INT32(1), "}");
    int64_t number = 1;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    append.create = true;
    append.append.update = update;
    assert_done(&fixture, &append);
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"name\" : \"Ada\", \"posts\" : 1 }");
    assert_done(&fixture, &append);
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"name\" : \"Ada\", \"posts\" : 2 }");
    append.limits.slots_max = 2;
    assert_refused(&fixture, &append); /* all or nothing */
    fixture_reopen(&fixture);
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"name\" : \"Ada\", \"posts\" : 2 }");
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=1 1=1");
    bson_destroy(update);
    fixture_close(&fixture);
}

static void other_fields_count_for_byte_bound(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    spill_value_t text = text_value(900, 'x');
    bson_t update = BSON_INITIALIZER, set;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    spill_value_append(&text, &set, "story");
    bson_append_document_end(&update, &set);

    int64_t number = 1;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    append.limits.bytes_max = 1000;
    append.append.update = &update;
    assert_refused(&fixture, &append);
    assert_fields(&fixture, "{ \"_id\" : \"ada\" }");
    append.append.update = NULL;
    assert_done(&fixture, &append);
    bson_free((void *)text.data);
    bson_destroy(&update);
    fixture_close(&fixture);
}

static void invalid_update_changes_nothing(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    bson_t *update =
        BCON_NEW("$set", "{", "a", BCON_INT32(1), "}", "$inc", "{", "_id", BCON_INT32(1), "}");
    int64_t number = 1;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    append.append.update = update;
    spill_error_t error;
    assert_int_equal(spill_store_call(fixture.store, &append, &fixture.response, &error),
                     SPILL_INVALID);
    assert_fields(&fixture, "{ \"_id\" : \"ada\" }");
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100");
    bson_destroy(update);
    fixture_close(&fixture);
}

static void fields_update_without_append(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *update = BCON_NEW("$max", "{", "best", BCON_INT32(3), "}");
    spill_request_t request = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    request.append.update = update;
    assert_refused(&fixture, &request);
    request.create = true;
    assert_done(&fixture, &request);
    assert_done(&fixture, &request);
    assert_document(&fixture, SPILL_HEAD, "rev+0 |");
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"best\" : 3 }");
    bson_destroy(update);
    fixture_close(&fixture);
}

static void updated_fields_fit_document(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    spill_value_t text = text_value(SPILL_DOCUMENT_BYTES_MAX - 100, 'x');
    bson_t update = BSON_INITIALIZER, set;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    spill_value_append(&text, &set, "story");
    bson_append_document_end(&update, &set);
    spill_request_t request = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    request.append.update = &update;
    assert_refused(&fixture, &request);
    assert_fields(&fixture, "{ \"_id\" : \"ada\" }");
    bson_free((void *)text.data);
    bson_destroy(&update);
    fixture_close(&fixture);
}

void add_append_tests(suite_t *suite)
{
    SUITE_ADD(suite, append_creates_head_if_allowed);
    SUITE_ADD(suite, append_does_not_create_head_twice);
    SUITE_ADD(suite, append_needs_existing_page);
    SUITE_ADD(suite, slots_are_bounded);
    SUITE_ADD(suite, bytes_are_bounded);
    SUITE_ADD(suite, read_explains_why_new_head_is_full);
    SUITE_ADD(suite, element_over_bound_gets_own_document);
    SUITE_ADD(suite, sealed_document_refuses_appends);
    SUITE_ADD(suite, operation_is_applied_once);
    SUITE_ADD(suite, operation_older_than_window_is_refused);
    SUITE_ADD(suite, a_window_can_shrink_and_grow);
    SUITE_ADD(suite, operation_ids_compare_all_bytes);
    SUITE_ADD(suite, append_updates_other_fields);
    SUITE_ADD(suite, other_fields_count_for_byte_bound);
    SUITE_ADD(suite, invalid_update_changes_nothing);
    SUITE_ADD(suite, fields_update_without_append);
    SUITE_ADD(suite, updated_fields_fit_document);
}
