/* Combined appends: the appends of several callers in one step, for stores that combine. */
#include "suite.h"

enum { MEMBERS = 3 };

/* Append one element per operation in one request. */
static spill_outcome_t append_members(fixture_t *fixture, const char *const ids[MEMBERS],
                                      int64_t base)
{
    static const int64_t numbers[MEMBERS] = {100, 101, 102};
    spill_value_t elements[MEMBERS];
    spill_op_t ops[MEMBERS];
    spill_member_t members[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        elements[i] = number_value(&numbers[i]);
        if (ids)
            ops[i] = (spill_op_t){.id = ids[i], .id_bytes = strlen(ids[i]), .base = base};
        members[i] = (spill_member_t){.op = ids ? &ops[i] : NULL, .count = 1};
    }
    spill_request_t append = make_append(fixture, SPILL_HEAD, elements, MEMBERS);
    append.create = true;
    append.append.members = members;
    append.append.member_count = MEMBERS;
    return call(fixture, &append);
}

static void combined_append_creates_head(void **state)
{
    static const char *const ids[MEMBERS] = {"a", "b", "c"};
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_int_equal(append_members(&fixture, ids, 0), SPILL_DONE);
    assert_int_equal(fixture.response.state.op_count, MEMBERS);
    assert_document(&fixture, SPILL_HEAD, "rev+0 n=3 | 0=100 1=101 2=102");
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+1 b@1:1+1 c@2:2+1");
    fixture_close(&fixture);
}

static void seen_operation_refuses_combined_append(void **state)
{
    static const char *const first[MEMBERS] = {"a", "b", "c"};
    static const char *const second[MEMBERS] = {"d", "c", "e"};
    static const char *const third[MEMBERS] = {"d", "e", "f"};
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_int_equal(append_members(&fixture, first, 0), SPILL_DONE);
    assert_int_equal(append_members(&fixture, second, 3), SPILL_REFUSED_GUARD);
    assert_document(&fixture, SPILL_HEAD, "rev+0 n=3 | 0=100 1=101 2=102");
    assert_int_equal(append_members(&fixture, third, 3), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+0 n=6 | 0=100 1=101 2=102 3=100 4=101 5=102");
    assert_ops(&fixture, SPILL_HEAD, "d@3:3+1 e@4:4+1 f@5:5+1"); /* the window holds 3 operations */
    fixture_close(&fixture);
}

static void combined_append_without_operations(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    assert_int_equal(append_members(&fixture, NULL, 0), SPILL_DONE);
    assert_int_equal(append_members(&fixture, NULL, 0), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102 3=100 4=101 5=102");
    assert_ops(&fixture, SPILL_HEAD, "");
    fixture_close(&fixture);
}

void add_combined_tests(suite_t *suite)
{
    SUITE_ADD(suite, combined_append_creates_head);
    SUITE_ADD(suite, seen_operation_refuses_combined_append);
    SUITE_ADD(suite, combined_append_without_operations);
}
