/* Operations of sessions, and matches: what a head allows, and what it keeps. */
#include "suite.h"

#include "util/error.h"

#include <stdio.h>

#define HOUR_US ((int64_t)3600 * 1000000)

static spill_session_op_t make_op(uint8_t session, int64_t txn, int32_t number)
{
    return (spill_session_op_t){.session = {1, session},
                                .user = {2},
                                .txn = txn,
                                .number = number,
                                .horizon_us = HOUR_US,
                                .entries_max = 3};
}

/* Append `count` numbers as the operation. A READ then says what the head makes of it. */
static spill_outcome_t append_in(fixture_t *fixture, const spill_session_op_t *op, size_t count)
{
    static const int64_t numbers[4] = {7, 8, 9, 10};
    spill_value_t values[4];
    for (size_t i = 0; i < count; i++)
        values[i] = number_value(&numbers[i]);
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, count);
    append.append.session = op;
    append.create = true;
    return call(fixture, &append);
}

static void judge(fixture_t *fixture, const spill_session_op_t *op, int64_t count)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.session = op;
    read.read.session_count = count;
    assert_done(fixture, &read);
}

/* The operation was applied, `applied` of its `count` numbers: it is refused, and a READ says so.
 */
static void assert_repeated(fixture_t *fixture, const spill_session_op_t *op, size_t count,
                            int64_t applied)
{
    assert_int_equal(append_in(fixture, op, count), SPILL_REFUSED_GUARD);
    judge(fixture, op, (int64_t)count);
    assert_int_equal(fixture->response.session, SPILL_SESSION_REPEATED);
    assert_int_equal(fixture->response.session_applied, applied);
}

static void assert_verdict(fixture_t *fixture, const spill_session_op_t *op,
                           spill_session_verdict_t verdict)
{
    assert_int_equal(append_in(fixture, op, 1), SPILL_REFUSED_GUARD);
    judge(fixture, op, 1);
    assert_int_equal(fixture->response.session, verdict);
}

static void operation_is_applied_once(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_session_op_t first = make_op(1, 5, 0), next = make_op(1, 5, 2), later = make_op(1, 6, 0);
    assert_int_equal(append_in(&fixture, &first, 2), SPILL_DONE); /* makes the head */
    assert_int_equal(fixture.response.seq, 0);
    assert_repeated(&fixture, &first, 2, 2);
    fixture_reopen(&fixture);
    assert_repeated(&fixture, &first, 2, 2);
    assert_int_equal(append_in(&fixture, &next, 1), SPILL_DONE); /* the same transaction */
    assert_int_equal(fixture.response.seq, 2);
    assert_repeated(&fixture, &first, 2, 2);
    assert_repeated(&fixture, &next, 1, 1);
    assert_int_equal(append_in(&fixture, &later, 1), SPILL_DONE);
    assert_repeated(&fixture, &later, 1, 1);
    assert_verdict(&fixture, &first, SPILL_SESSION_TOO_OLD);
    assert_verdict(&fixture, &next, SPILL_SESSION_TOO_OLD);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=7 1=8 2=7 3=7");
    fixture_close(&fixture);
}

static void user_belongs_to_session(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_session_op_t one = make_op(1, 5, 0), other = make_op(1, 5, 0);
    other.user[7] = 1;
    assert_int_equal(append_in(&fixture, &one, 1), SPILL_DONE);
    assert_int_equal(append_in(&fixture, &other, 1), SPILL_DONE);
    assert_repeated(&fixture, &one, 1, 1);
    assert_repeated(&fixture, &other, 1, 1);
    fixture_close(&fixture);
}

/* Numbers may come in any order, in a few runs. */
static void numbers_form_runs(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_session_op_t op = make_op(1, 5, 0);
    for (int32_t i = 2 * (SPILL_SESSION_RUNS_MAX - 1); i >= 0; i -= 2) {
        op.number = i;
        assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    }
    op.number = 2 * SPILL_SESSION_RUNS_MAX;
    assert_verdict(&fixture, &op, SPILL_SESSION_GAPS);
    op.number = 1; /* joins two runs */
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    op.number = 2 * SPILL_SESSION_RUNS_MAX;
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    op.number = 0;
    assert_repeated(&fixture, &op, 4, 3); /* 3 was not applied */
    op.number = 3;
    assert_repeated(&fixture, &op, 2, 0); /* 3 was not, 4 was */
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    op.number = 0;
    assert_repeated(&fixture, &op, 4, 4);
    fixture_close(&fixture);
}

static void young_entries_stay(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    for (uint8_t i = 0; i < 3; i++) {
        spill_session_op_t op = make_op(i, 5, 0);
        assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    }
    spill_session_op_t fourth = make_op(3, 5, 0), first = make_op(0, 5, 0);
    assert_verdict(&fixture, &fourth, SPILL_SESSION_FULL);
    spill_request_t forget = make_request(&fixture, SPILL_REQUEST_FORGET, SPILL_HEAD);
    forget.forget.horizon_us = HOUR_US;
    assert_done(&fixture, &forget);
    assert_verdict(&fixture, &fourth, SPILL_SESSION_FULL);
    assert_repeated(&fixture, &first, 1, 1);
    first.txn = 6; /* its entry is replaced */
    assert_int_equal(append_in(&fixture, &first, 1), SPILL_DONE);
    assert_verdict(&fixture, &fourth, SPILL_SESSION_FULL);
    forget.forget.horizon_us = -HOUR_US; /* they count as old */
    assert_done(&fixture, &forget);
    assert_int_equal(append_in(&fixture, &fourth, 1), SPILL_DONE);
    assert_repeated(&fixture, &fourth, 1, 1);
    judge(&fixture, &first, 1);
    assert_int_equal(fixture.response.session, SPILL_SESSION_NEW);
    assert_sound(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=7 1=7 2=7 3=7 4=7");
    fixture_close(&fixture);
}

/* Spills, removals and appends without a session leave the entries. */
static void entries_survive_other_steps(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_session_op_t op = make_op(1, 5, 0);
    assert_int_equal(append_in(&fixture, &op, 2), SPILL_DONE);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_page(&fixture, 0, 2);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION + 1;
    remove.change.seq = 3;
    assert_done(&fixture, &remove);
    assert_repeated(&fixture, &op, 2, 2);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=2 gone=3 pages=1 | 2=100 4=102");
    op.txn = 6; /* the head has deleted numbers, so that the quick guard does not hold */
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    assert_repeated(&fixture, &op, 1, 1);
    op.number = 1;
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    assert_repeated(&fixture, &op, 1, 1);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void entries_end_with_head(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_session_op_t op = make_op(1, 5, 0);
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    drop_head(&fixture, INCARNATION, 0);
    spill_request_t forget = make_request(&fixture, SPILL_REQUEST_FORGET, SPILL_HEAD);
    assert_refused(&fixture, &forget);
    begin_again(&fixture, 200, 1);
    judge(&fixture, &op, 1);
    assert_int_equal(fixture.response.session, SPILL_SESSION_NEW);
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    assert_repeated(&fixture, &op, 1, 1);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* ---- several members, updates of fields ------------------------------------------------------ */

static void members_are_applied_together(void **state)
{
    fixture_t fixture;
    const contract_kind_t *kind = *state;
    if (!kind->combines)
        return;
    fixture_open(&fixture, kind, SPILL_KEEP_NEWEST);
    spill_session_op_t one = make_op(1, 5, 0), two = make_op(2, 9, 0);
    one.entries_max = two.entries_max = 8;
    int64_t numbers[] = {1, 2, 3};
    spill_value_t values[] = {number_value(&numbers[0]), number_value(&numbers[1]),
                              number_value(&numbers[2])};
    spill_member_t members[] = {{.session = &one, .count = 1}, {.session = &two, .count = 2}};
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, values, 3);
    append.append.members = members;
    append.append.member_count = 2;
    assert_done(&fixture, &append);
    assert_refused(&fixture, &append);
    assert_repeated(&fixture, &one, 1, 1);
    assert_repeated(&fixture, &two, 2, 2);
    one.txn = 6; /* the other one is repeated */
    assert_refused(&fixture, &append);
    two.number = 2;
    assert_done(&fixture, &append);
    two.number = 0;
    assert_repeated(&fixture, &two, 4, 4);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=1 2=2 3=3 4=1 5=2 6=3");
    fixture_close(&fixture);
}

/* The other fields; on a server, their size includes the entries. */
static void assert_json(fixture_t *fixture, const char *expected)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_fields = true;
    assert_done(fixture, &read);
    assert_non_null(fixture->response.fields);
    assert_fields_read(fixture, expected);
}

static void update_of_fields_is_applied_once(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *update = BCON_NEW("$inc", "{", "hits", BCON_INT64(1), "}");
    spill_session_op_t op = make_op(1, 5, 0);
    spill_request_t fields = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    fields.append.update = update;
    fields.append.session = &op;
    assert_refused(&fixture, &fields); /* no head */
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    assert_done(&fixture, &fields);
    assert_refused(&fixture, &fields);
    judge(&fixture, &op, 1);
    assert_int_equal(fixture.response.session, SPILL_SESSION_REPEATED);
    op.number = 1;
    assert_done(&fixture, &fields);
    op.txn = 4;
    assert_refused(&fixture, &fields);
    assert_json(&fixture, "{ \"_id\" : \"ada\", \"hits\" : 2 }");
    bson_destroy(update);
    fixture_close(&fixture);
}

/* ---- match ----------------------------------------------------------------------------------- */

static void set_version(fixture_t *fixture, int32_t version)
{
    bson_t *update = BCON_NEW("$set", "{", "version", BCON_INT32(version), "}");
    spill_request_t fields = make_request(fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    fields.append.update = update;
    assert_done(fixture, &fields);
    bson_destroy(update);
}

static void assert_unmatched(fixture_t *fixture, const bson_t *match, bool unmatched)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.match = match;
    assert_done(fixture, &read);
    assert_int_equal(fixture->response.unmatched, unmatched);
}

static void append_needs_match(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    int64_t number = 7;
    spill_value_t value = number_value(&number);
    SPILL_SCOPED(bson_destroy) bson_t any = BSON_INITIALIZER;
    bson_t *match = BCON_NEW("version", "{", "$gte", BCON_INT32(3), "}");
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &value, 1);
    append.append.match = &any;
    assert_refused(&fixture, &append); /* no head */
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    assert_done(&fixture, &append);
    append.append.match = match;
    assert_refused(&fixture, &append);
    assert_unmatched(&fixture, match, true);
    set_version(&fixture, 3);
    assert_done(&fixture, &append);
    assert_unmatched(&fixture, match, false);
    set_version(&fixture, 2);
    assert_refused(&fixture, &append);
    assert_unmatched(&fixture, &any, false);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=7 2=7");
    bson_destroy(match);
    fixture_close(&fixture);
}

static void update_of_fields_needs_match(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *match = BCON_NEW("version", BCON_INT32(1));
    bson_t *update = BCON_NEW("$inc", "{", "version", BCON_INT32(1), "}");
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    set_version(&fixture, 1);
    spill_request_t fields = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    fields.append.update = update;
    fields.append.match = match;
    assert_done(&fixture, &fields);
    assert_refused(&fixture, &fields);
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"version\" : 2 }");
    bson_destroy(match);
    bson_destroy(update);
    fixture_close(&fixture);
}

/* A session's operation may also give a head without pages other elements. */
static void rewrite_is_applied_once(void **state)
{
    static const int64_t numbers[] = {5, 6};
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_session_op_t op = make_op(1, 5, 0);
    spill_run_t run = {0};
    for (int64_t i = 0; i < 2; i++) {
        spill_value_t value = number_value(&numbers[i]);
        spill_run_add(&run, 3 + i, &value);
    }
    spill_request_t rewrite = make_request(&fixture, SPILL_REQUEST_REWRITE, SPILL_HEAD);
    rewrite.rev = INCARNATION;
    rewrite.rewrite.run = &run;
    rewrite.rewrite.end = 2;
    rewrite.rewrite.session = &op;
    rewrite.rewrite.session_count = 1;
    assert_refused(&fixture, &rewrite);
    rewrite.rewrite.end = 3;
    assert_done(&fixture, &rewrite);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=3 n=3 low=3 | 3=5 4=6");
    assert_refused(&fixture, &rewrite);
    rewrite.rev = INCARNATION + 1;
    rewrite.rewrite.end = 5;
    assert_refused(&fixture, &rewrite);
    judge(&fixture, &op, 1);
    assert_int_equal(fixture.response.session, SPILL_SESSION_REPEATED);
    op.number = 1;
    assert_int_equal(append_in(&fixture, &op, 1), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=3 n=3 low=3 | 3=5 4=6 5=7");
    spill_run_release(&run);
    fixture_close(&fixture);
}

void add_session_tests(suite_t *suite)
{
    SUITE_ADD(suite, operation_is_applied_once);
    SUITE_ADD(suite, user_belongs_to_session);
    SUITE_ADD(suite, numbers_form_runs);
    SUITE_ADD(suite, young_entries_stay);
    SUITE_ADD(suite, entries_survive_other_steps);
    SUITE_ADD(suite, entries_end_with_head);
    SUITE_ADD(suite, members_are_applied_together);
    SUITE_ADD(suite, update_of_fields_is_applied_once);
    SUITE_ADD(suite, rewrite_is_applied_once);
    SUITE_ADD(suite, append_needs_match);
    SUITE_ADD(suite, update_of_fields_needs_match);
}
