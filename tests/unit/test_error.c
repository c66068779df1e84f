/* Error objects, code names, the version and the clock. */
#include "util/clock.h"
#include "util/error.h"

#include <spillway/version.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <time.h>

static void test_every_code_has_a_name(void **state)
{
    (void)state;
    for (int code = SPILL_OK; code <= SPILL_CANCELLED; code++) {
        assert_true(strlen(spill_code_name((spill_code_t)code)) > 0);
        assert_true(strlen(spill_code_text((spill_code_t)code)) > 0);
        for (int other = SPILL_OK; other < code; other++)
            assert_string_not_equal(spill_code_name((spill_code_t)code),
                                    spill_code_name((spill_code_t)other));
    }
    assert_string_equal(spill_code_name(SPILL_NOT_FOUND), "NOT_FOUND");
    assert_string_equal(spill_code_text(SPILL_NO_SPACE), "no space left");
}

static void test_code_out_of_range_has_name(void **state)
{
    (void)state;
    assert_string_equal(spill_code_name((spill_code_t)(SPILL_TIMED_OUT + 1)), "UNDEFINED");
    assert_string_equal(spill_code_text((spill_code_t)-1), "no such code");
}

static void test_fail_fills(void **state)
{
    (void)state;
    spill_error_t error;
    memset(&error, 0xa5, sizeof error);
    assert_int_equal(spill_fail(&error, SPILL_INVALID, "owner %d: %s", 7, "bad"), SPILL_INVALID);
    assert_int_equal(error.code, SPILL_INVALID);
    assert_int_equal(error.native, 0);
    assert_false(error.retryable);
    assert_string_equal(error.message, "owner 7: bad");
    assert_int_equal(spill_fail_retryable(&error, SPILL_CONFLICT, "lost"), SPILL_CONFLICT);
    assert_true(error.retryable);
}

static void test_reason_stays_until_next_failure(void **state)
{
    (void)state;
    spill_error_t error;
    memset(&error, 0xa5, sizeof error);
    spill_fail(&error, SPILL_REFUSED, "no");
    assert_int_equal(error.reason, SPILL_REASON_NONE);
    assert_int_equal(spill_fail_because(&error, SPILL_REFUSED, SPILL_REASON_UNMANAGED),
                     SPILL_REFUSED);
    spill_fail_prefix(&error, SPILL_REFUSED, "owner");
    assert_int_equal(error.reason, SPILL_REASON_UNMANAGED);
    spill_fail(&error, SPILL_REFUSED, "no");
    assert_int_equal(error.reason, SPILL_REASON_NONE);
    assert_int_equal(spill_fail_because(NULL, SPILL_REFUSED, SPILL_REASON_UNMANAGED),
                     SPILL_REFUSED);
}

static void test_error_may_be_null(void **state)
{
    (void)state;
    assert_int_equal(spill_fail(NULL, SPILL_PARSE, "x"), SPILL_PARSE);
    assert_int_equal(spill_fail_retryable(NULL, SPILL_BUSY, "x"), SPILL_BUSY);
    assert_int_equal(spill_fail_errno(NULL, ENOSPC, "x"), SPILL_NO_SPACE);
    assert_int_equal(spill_fail_prefix(NULL, SPILL_CORRUPT, "x"), SPILL_CORRUPT);
}

static void test_errno_maps(void **state)
{
    (void)state;
    static const struct {
        int native;
        spill_code_t code;
    } cases[] = {
        {ENOSPC, SPILL_NO_SPACE}, {EDQUOT, SPILL_NO_SPACE}, {EACCES, SPILL_DENIED},
        {EPERM, SPILL_DENIED},    {EROFS, SPILL_DENIED},    {ENOENT, SPILL_NOT_FOUND},
        {EIO, SPILL_IO},          {EMFILE, SPILL_IO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spill_error_t error;
        assert_int_equal(spill_fail_errno(&error, cases[i].native, "cannot open '%s'", "/x"),
                         cases[i].code);
        assert_int_equal(error.code, cases[i].code);
        assert_int_equal(error.native, cases[i].native);
        assert_non_null(strstr(error.message, "cannot open '/x': "));
        assert_non_null(strstr(error.message, strerror(cases[i].native)));
    }
}

static void test_prefix_goes_before(void **state)
{
    (void)state;
    spill_error_t error;
    spill_fail_errno(&error, ENOSPC, "write");
    assert_int_equal(spill_fail_prefix(&error, SPILL_IO, "line %d", 3), SPILL_IO);
    assert_int_equal(error.code, SPILL_IO);
    assert_int_equal(error.native, ENOSPC);
    assert_true(strncmp(error.message, "line 3: write: ", 15) == 0);
}

static void test_an_argument_may_be_the_message_itself(void **state)
{
    (void)state;
    spill_error_t error;
    spill_fail(&error, SPILL_PARSE, "inner");
    spill_fail(&error, SPILL_PARSE, "outer (%s)", error.message);
    assert_string_equal(error.message, "outer (inner)");
}

static void test_long_messages_are_cut(void **state)
{
    (void)state;
    char text[2 * SPILL_ERROR_MESSAGE_SIZE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    spill_error_t error;
    spill_fail(&error, SPILL_IO, "%s", text);
    assert_int_equal(strlen(error.message), SPILL_ERROR_MESSAGE_SIZE - 1);
    spill_fail_prefix(&error, SPILL_IO, "%s", text);
    assert_int_equal(strlen(error.message), SPILL_ERROR_MESSAGE_SIZE - 1);
    spill_fail_errno(&error, EIO, "%s", text);
    assert_int_equal(strlen(error.message), SPILL_ERROR_MESSAGE_SIZE - 1);
}

static void test_version_is_the_headers(void **state)
{
    (void)state;
    assert_string_equal(spill_version(), SPILL_VERSION);
}

static void test_clock_is_the_systems(void **state)
{
    (void)state;
    int64_t before = (int64_t)time(NULL);
    int64_t now_us = spill_clock_now_us(NULL);
    /* time() may round down a time that the finer clock has passed; it never runs ahead. */
    assert_true(now_us >= before * 1000000);
    spill_clock_sleep_us(NULL, 0);
    spill_clock_sleep_us(NULL, -5);
    spill_clock_sleep_us(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_a_name),
        cmocka_unit_test(test_code_out_of_range_has_name),
        cmocka_unit_test(test_fail_fills),
        cmocka_unit_test(test_reason_stays_until_next_failure),
        cmocka_unit_test(test_error_may_be_null),
        cmocka_unit_test(test_errno_maps),
        cmocka_unit_test(test_prefix_goes_before),
        cmocka_unit_test(test_an_argument_may_be_the_message_itself),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_version_is_the_headers),
        cmocka_unit_test(test_clock_is_the_systems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
