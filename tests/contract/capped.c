/* Capped arrays: which elements an append drops, and how the others can be changed. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static void open_capped(fixture_t *fixture, const contract_kind_t *kind)
{
    spill_definition_t definition;
    make_definition(&definition, "feed", SPILL_KEEP_NEWEST);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    fixture_open_with(fixture, kind, &definition);
}

/* Append label, label + 1, ... to a head of at most `cap` elements; with an id, as an operation. */
static spill_outcome_t append_capped(fixture_t *fixture, int64_t cap, int64_t label, size_t count,
                                     const spill_op_t *op)
{
    int64_t numbers[64];
    spill_value_t values[64];
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = label + (int64_t)i;
        values[i] = number_value(&numbers[i]);
    }
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, count);
    append.create = true;
    append.limits = (spill_limits_t){.slots_max = cap, .bytes_max = 100000};
    append.append.op = op;
    return call(fixture, &append);
}

static void append_any(fixture_t *fixture, int64_t cap, int64_t label, size_t count, int64_t first)
{
    assert_int_equal(append_capped(fixture, cap, label, count, NULL), SPILL_DONE);
    assert_int_equal(fixture->response.seq, first);
    assert_int_equal(fixture->response.state.live + (int64_t)fixture->response.state.deleted.count +
                         fixture->response.state.first,
                     first + (int64_t)count);
}

static void remove_number(fixture_t *fixture, int64_t rev, int64_t seq)
{
    spill_request_t remove = make_request(fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION + rev;
    remove.change.seq = seq;
    assert_done(fixture, &remove);
}

static void append_drops_oldest(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    for (int64_t i = 0; i < 3; i++)
        append_any(&fixture, 3, 100 + i, 1, i);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102");
    append_any(&fixture, 3, 103, 1, 3);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=1 low=1 | 1=101 2=102 3=103");
    append_any(&fixture, 3, 104, 2, 4);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=3 low=3 | 3=103 4=104 5=105");
    append_any(&fixture, 5, 106, 1, 6); /* the cap may change */
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=3 low=3 | 3=103 4=104 5=105 6=106");
    append_any(&fixture, 2, 107, 1, 7);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=6 low=6 | 6=106 7=107");
    fixture_close(&fixture);
}

static void batch_over_cap_keeps_its_last(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    append_any(&fixture, 3, 100, 8, 0); /* creates the head */
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=5 low=5 | 5=105 6=106 7=107");
    append_any(&fixture, 3, 108, 60, 8);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=65 low=65 | 65=165 66=166 67=167");
    append_any(&fixture, 3, 168, 3, 68);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=68 low=68 | 68=168 69=169 70=170");
    fixture_close(&fixture);
}

static void removed_element_frees_room(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    append_any(&fixture, 3, 100, 3, 0);
    remove_number(&fixture, 0, 1);
    append_any(&fixture, 3, 103, 1, 3);
    assert_document(&fixture, SPILL_HEAD, "rev+1 gone=1 | 0=100 2=102 3=103");
    append_any(&fixture, 3, 104, 1, 4); /* drops the deleted number, too */
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 low=2 | 2=102 3=103 4=104");
    append_any(&fixture, 3, 105, 1, 5);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=3 low=3 | 3=103 4=104 5=105");
    remove_number(&fixture, 1, 3); /* the oldest: no deleted number to remember */
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=4 low=4 | 4=104 5=105");
    remove_number(&fixture, 2, 5);
    remove_number(&fixture, 3, 4);
    assert_document(&fixture, SPILL_HEAD, "rev+4 first=6 low=6 |");
    append_any(&fixture, 3, 106, 1, 6);
    assert_document(&fixture, SPILL_HEAD, "rev+4 first=6 low=6 | 6=106");
    fixture_close(&fixture);
}

/* A byte bound that three elements of one size exceed. */
static void append_drops_oldest_until_bytes_fit(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    for (int i = 0; i < 4; i++) {
        spill_value_t element = text_value(400, (char)('a' + i));
        spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
        append.create = true;
        append.limits.slots_max = 10;
        append.limits.bytes_max =
            spill_document_base_bytes(&fixture.definition, &fixture.owner, true) + 3 * 400 + 100;
        append.limits.bytes_max += SPILL_OP_BYTES;
        assert_done(&fixture, &append);
        assert_int_equal(fixture.response.seq, i);
        assert_int_equal(fixture.response.state.live, i < 3 ? i + 1 : 3);
        bson_free((void *)element.data);
    }
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=1 low=1 | 1=#400 2=#400 3=#400");
    spill_value_t large = text_value(5000, 'x'); /* over the bound: kept alone */
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &large, 1);
    append.limits = (spill_limits_t){.slots_max = 10, .bytes_max = 2000};
    assert_done(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=4 low=4 | 4=#5000");
    bson_free((void *)large.data);
    fixture_close(&fixture);
}

static void element_over_document_limit_is_refused(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    append_any(&fixture, 3, 100, 2, 0);
    spill_value_t large = text_value(SPILL_DOCUMENT_BYTES_MAX - 100, 'x');
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &large, 1);
    append.limits = (spill_limits_t){.slots_max = 3, .bytes_max = 100000};
    assert_refused(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101");
    bson_free((void *)large.data);
    fixture_close(&fixture);
}

static void operations_outlive_their_elements(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    spill_op_t a = {.id = "a", .id_bytes = 1}, b = {.id = "b", .id_bytes = 1, .base = 1};
    assert_int_equal(append_capped(&fixture, 2, 100, 3, &a), SPILL_DONE);
    assert_int_equal(append_capped(&fixture, 2, 103, 2, &b), SPILL_DONE);
    assert_int_equal(fixture.response.seq, 3);
    append_any(&fixture, 2, 105, 2, 5);
    assert_int_equal(append_capped(&fixture, 2, 100, 3, &a), SPILL_REFUSED_GUARD);
    assert_int_equal(append_capped(&fixture, 2, 103, 2, &b), SPILL_REFUSED_GUARD);
    fixture_reopen(&fixture);
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+3 b@1:3+2");
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=5 n=2 low=5 | 5=105 6=106");
    fixture_close(&fixture);
}

static void dropped_element_cannot_be_changed(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    append_any(&fixture, 2, 100, 3, 0);
    int64_t number = 7;
    spill_value_t element = number_value(&number);
    spill_request_t edit = make_request(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD);
    edit.rev = INCARNATION;
    edit.change.element = &element;
    assert_refused(&fixture, &edit);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION;
    assert_refused(&fixture, &remove);
    edit.change.seq = 1; /* the oldest that is left */
    assert_done(&fixture, &edit);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=1 low=1 | 1=7 2=102");
    append_any(&fixture, 2, 103, 1, 3);
    edit.rev++;
    assert_refused(&fixture, &edit); /* dropped since the head was read */
    remove.rev++;
    remove.change.seq = 1;
    assert_refused(&fixture, &remove);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 low=2 | 2=102 3=103");
    fixture_close(&fixture);
}

static void trim_removes_from_the_rest(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    append_any(&fixture, 3, 100, 5, 0);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION;
    trim.change.watermark = 2; /* already dropped */
    assert_refused(&fixture, &trim);
    trim.change.watermark = 4;
    assert_done(&fixture, &trim);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=4 low=4 | 4=104");
    trim.rev = INCARNATION + 1;
    trim.change.watermark = 5;
    assert_done(&fixture, &trim);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=5 low=5 |");
    append_any(&fixture, 3, 105, 4, 5);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=6 low=6 | 6=106 7=107 8=108");
    fixture_close(&fixture);
}

static void append_updates_other_fields_when_capped(void **state)
{
    fixture_t fixture;
    open_capped(&fixture, *state);
    int64_t numbers[4];
    spill_value_t values[4];
    bson_t *update = BCON_NEW("$inc", "{", "visits", BCON_INT32(1), "}");
    for (int64_t i = 0; i < 4; i++) {
        numbers[i] = 100 + i;
        values[i] = number_value(&numbers[i]);
        spill_request_t append = make_append(&fixture, SPILL_HEAD, &values[i], 1);
        append.create = true;
        append.append.update = update;
        append.limits = (spill_limits_t){.slots_max = 2, .bytes_max = 100000};
        assert_done(&fixture, &append);
    }
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=2 low=2 | 2=102 3=103");
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"visits\" : 4 }");
    bson_destroy(update);
    drop_head(&fixture, INCARNATION, 0);
    assert_fields(&fixture, NULL);
    fixture_close(&fixture);
}

/* Several callers' appends in one step; the first of them drop out at once. */
static void combined_append_drops_its_first(void **state)
{
    const contract_kind_t *kind = *state;
    if (!kind->combines)
        return;
    fixture_t fixture;
    open_capped(&fixture, kind);
    int64_t numbers[5] = {100, 101, 102, 103, 104};
    spill_value_t values[5];
    for (size_t i = 0; i < 5; i++)
        values[i] = number_value(&numbers[i]);
    spill_op_t a = {.id = "a", .id_bytes = 1}, b = {.id = "b", .id_bytes = 1};
    spill_member_t members[] = {{.op = &a, .count = 2}, {.op = &b, .count = 3}};
    spill_request_t append = make_append(&fixture, SPILL_HEAD, values, 5);
    append.create = true;
    append.append.members = members;
    append.append.member_count = 2;
    append.limits = (spill_limits_t){.slots_max = 2, .bytes_max = 100000};
    assert_done(&fixture, &append);
    assert_refused(&fixture, &append);
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+2 b@1:2+3");
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=3 n=2 low=3 | 3=103 4=104");
    fixture_close(&fixture);
}

void add_capped_tests(suite_t *suite)
{
    SUITE_ADD(suite, append_drops_oldest);
    SUITE_ADD(suite, batch_over_cap_keeps_its_last);
    SUITE_ADD(suite, removed_element_frees_room);
    SUITE_ADD(suite, append_drops_oldest_until_bytes_fit);
    SUITE_ADD(suite, element_over_document_limit_is_refused);
    SUITE_ADD(suite, operations_outlive_their_elements);
    SUITE_ADD(suite, dropped_element_cannot_be_changed);
    SUITE_ADD(suite, trim_removes_from_the_rest);
    SUITE_ADD(suite, append_updates_other_fields_when_capped);
    SUITE_ADD(suite, combined_append_drops_its_first);
}
