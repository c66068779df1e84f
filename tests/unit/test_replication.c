/* The lag of secondaries, from answers to replSetGetStatus. */
#include "store/replication.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>

enum { PRIMARY = 1, SECONDARY = 2, RECOVERING = 3, DOWN = 8, ARBITER = 7 };

typedef struct member {
    int state;
    int64_t time_ms; /* -1: none */
} member_t;

static void make_status(const member_t *members, size_t count, bson_t *status)
{
    bson_t list, member;
    const char *keys[] = {"0", "1", "2", "3", "4"};
    bson_init(status);
    BSON_APPEND_ARRAY_BEGIN(status, "members", &list);
    for (size_t i = 0; i < count; i++) {
        BSON_APPEND_DOCUMENT_BEGIN(&list, keys[i], &member);
        BSON_APPEND_INT32(&member, "state", members[i].state);
        if (members[i].time_ms >= 0)
            BSON_APPEND_DATE_TIME(&member, "optimeDate", members[i].time_ms);
        bson_append_document_end(&list, &member);
    }
    bson_append_array_end(status, &list);
}

static void expect_lag(const member_t *members, size_t count, bool found, double expected)
{
    bson_t status;
    double lag_s;
    make_status(members, count, &status);
    assert_int_equal(spill_replication_lag_of(&status, &lag_s), found);
    assert_true(lag_s == expected);
    bson_destroy(&status);
}

static void test_lag_of_the_last_secondary(void **state)
{
    (void)state;
    const member_t members[] = {
        {SECONDARY, 98500}, {PRIMARY, 100000}, {SECONDARY, 93000}, {SECONDARY, 100000}};
    expect_lag(members, 4, true, 7.0);
}

static void test_members_that_do_not_count(void **state)
{
    (void)state;
    const member_t members[] = {
        {PRIMARY, 100000}, {DOWN, 0}, {RECOVERING, 1000}, {ARBITER, -1}, {SECONDARY, 100500}};
    expect_lag(members, 5, true, 0);
    expect_lag(members, 1, true, 0);
}

static void test_no_primary(void **state)
{
    (void)state;
    const member_t members[] = {{SECONDARY, 98500}, {SECONDARY, 93000}};
    bson_t empty = BSON_INITIALIZER;
    double lag_s;
    expect_lag(members, 2, false, 0);
    assert_false(spill_replication_lag_of(&empty, &lag_s));
    BSON_APPEND_INT32(&empty, "members", 1);
    assert_false(spill_replication_lag_of(&empty, &lag_s));
    bson_destroy(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lag_of_the_last_secondary),
        cmocka_unit_test(test_members_that_do_not_count),
        cmocka_unit_test(test_no_primary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
