/* Which numbered writes are carried out, and what repeated ones are answered. */
#include "gateway/translate/managed_owners.h"
#include "gateway/translate/retries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MEMORY = 100000 };

static spill_retry_key_t key_of(int session)
{
    spill_retry_key_t key;
    memset(&key, 0, sizeof key);
    memcpy(key.session, &session, sizeof session);
    return key;
}

/* Begin a write; a reply must have n. */
static void expect(spill_retries_t *retries, int session, int64_t txn, int64_t now_ms,
                   spill_retry_t expected, int n)
{
    bson_t reply;
    bson_iter_t iter;
    spill_retry_key_t key = key_of(session);
    spill_retry_t result = spill_retries_begin(retries, &key, txn, now_ms, &reply);
    assert_int_equal(result, expected);
    if (result != SPILL_RETRY_REPEATED)
        return;
    assert_true(bson_iter_init_find(&iter, &reply, "n"));
    assert_int_equal(bson_iter_as_int64(&iter), n);
    bson_destroy(&reply);
}

static void end(spill_retries_t *retries, int session, int64_t txn, int64_t now_ms, int n)
{
    spill_retry_key_t key = key_of(session);
    bson_t *reply = BCON_NEW("n", BCON_INT32(n), "ok", BCON_DOUBLE(1));
    spill_retries_end(retries, &key, txn, now_ms, reply);
    bson_destroy(reply);
}

static void a_write_is_carried_out_once(void **state)
{
    spill_limits_t *limits = spill_limits_new(MEMORY, 1, 1);
    spill_retries_t *retries = spill_retries_new(limits, 10);
    spill_retry_key_t key = key_of(1);
    (void)state;
    expect(retries, 1, 5, 0, SPILL_RETRY_FIRST, 0);
    expect(retries, 1, 5, 0, SPILL_RETRY_UNKNOWN, 0); /* in progress */
    expect(retries, 2, 5, 0, SPILL_RETRY_FIRST, 0);   /* another session */
    end(retries, 1, 5, 0, 7);
    assert_true(spill_limits_memory(limits) > 0);
    expect(retries, 1, 5, 1, SPILL_RETRY_REPEATED, 7);
    expect(retries, 1, 5, 1, SPILL_RETRY_REPEATED, 7);
    expect(retries, 1, 4, 1, SPILL_RETRY_TOO_OLD, 0);
    expect(retries, 1, 6, 1, SPILL_RETRY_FIRST, 0);
    end(retries, 1, 5, 1, 8); /* too late: the session has made a later write */
    expect(retries, 1, 6, 1, SPILL_RETRY_UNKNOWN, 0);
    spill_retries_end(retries, &key, 6, 1, NULL);
    expect(retries, 1, 6, 1, SPILL_RETRY_UNKNOWN, 0);
    spill_retries_free(retries);
    assert_int_equal(spill_limits_memory(limits), 0);
    spill_limits_free(limits);
}

static void a_write_without_effect_is_carried_out_again(void **state)
{
    spill_limits_t *limits = spill_limits_new(MEMORY, 1, 1);
    spill_retries_t *retries = spill_retries_new(limits, 10);
    spill_retry_key_t key = key_of(1);
    (void)state;
    expect(retries, 1, 5, 0, SPILL_RETRY_FIRST, 0);
    spill_retries_forget(retries, &key, 5, 0);
    expect(retries, 1, 4, 0, SPILL_RETRY_UNKNOWN, 0); /* an earlier write that comes late */
    expect(retries, 1, 5, 0, SPILL_RETRY_FIRST, 0);
    end(retries, 1, 5, 0, 7);
    spill_retries_forget(retries, &key, 5, 0); /* it has ended */
    expect(retries, 1, 5, 0, SPILL_RETRY_REPEATED, 7);
    spill_retries_free(retries);
    spill_limits_free(limits);
}

/* Sessions leave the table by age alone; those in progress stay. */
static void sessions_are_bounded(void **state)
{
    enum { SESSIONS = 3, LATER = SPILL_RETRY_HORIZON_MS + 1 };
    spill_limits_t *limits = spill_limits_new(MEMORY, 1, 1);
    spill_retries_t *retries = spill_retries_new(limits, SESSIONS);
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        expect(retries, i, 1, 0, SPILL_RETRY_FIRST, 0);
    end(retries, 0, 1, 0, 1);
    end(retries, 1, 1, 10, 1);
    expect(retries, SESSIONS, 1, LATER - 1, SPILL_RETRY_FULL, 0);
    expect(retries, SESSIONS, 1, LATER, SPILL_RETRY_FIRST, 0); /* instead of session 0 */
    expect(retries, 1, 1, LATER, SPILL_RETRY_REPEATED, 1);
    expect(retries, 2, 1, 3 * LATER, SPILL_RETRY_UNKNOWN, 0);
    expect(retries, 1, 1, 3 * LATER, SPILL_RETRY_FIRST, 0);
    spill_retries_free(retries);
    spill_limits_free(limits);
}

/* A reply that has no room is not kept: the repetition learns that the outcome is unknown. */
static void long_replies_are_not_kept(void **state)
{
    static const size_t sizes[] = {SPILL_RETRY_REPLY_BYTES_MAX, MEMORY / 2};
    static const int64_t memories[] = {10 * SPILL_RETRY_REPLY_BYTES_MAX, 1000};
    static uint8_t data[SPILL_RETRY_REPLY_BYTES_MAX];
    (void)state;
    for (int i = 0; i < 2; i++) {
        spill_limits_t *limits = spill_limits_new(memories[i], 1, 1);
        spill_retries_t *retries = spill_retries_new(limits, 10);
        spill_retry_key_t key = key_of(1);
        bson_t *reply = BCON_NEW("x", BCON_BIN(BSON_SUBTYPE_BINARY, data, (uint32_t)sizes[i]));
        expect(retries, 1, 1, 0, SPILL_RETRY_FIRST, 0);
        spill_retries_end(retries, &key, 1, 0, reply);
        expect(retries, 1, 1, 0, SPILL_RETRY_UNKNOWN, 0);
        assert_int_equal(spill_limits_memory(limits), 0);
        bson_destroy(reply);
        spill_retries_free(retries);
        spill_limits_free(limits);
    }
}

static void owners_are_known_from_their_first_note(void **state)
{
    static spill_managed_owners_t owners;
    spill_value_t one = {.data = (const uint8_t *)"one", .size_bytes = 3, .type = BSON_TYPE_UTF8};
    spill_value_t other = one;
    other.type = BSON_TYPE_BINARY;
    (void)state;
    assert_int_equal(spill_managed_since(&owners, "c", &one, 1000), -1);
    spill_managed_note(&owners, "c", &one, 1000);
    spill_managed_note(&owners, "c", &one, 1050);
    assert_int_equal(spill_managed_since(&owners, "c", &one, 1100), 100);
    assert_int_equal(spill_managed_since(&owners, "d", &one, 1100), -1);
    assert_int_equal(spill_managed_since(&owners, "c", &other, 1100), -1);
    spill_managed_forget(&owners, "c", &other);
    assert_int_equal(spill_managed_since(&owners, "c", &one, 1100), 100);
    spill_managed_forget(&owners, "c", &one);
    assert_int_equal(spill_managed_since(&owners, "c", &one, 1100), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_is_carried_out_once),
        cmocka_unit_test(a_write_without_effect_is_carried_out_again),
        cmocka_unit_test(sessions_are_bounded),
        cmocka_unit_test(long_replies_are_not_kept),
        cmocka_unit_test(owners_are_known_from_their_first_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
