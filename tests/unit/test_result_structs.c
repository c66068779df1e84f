/*
 * Structs that the library fills need no initialization, and have a version: every function sets it
 * and zeroes the reserved fields, also after an error, and writes nothing behind the struct.
 */
#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD_BYTES = 32, GARBAGE = 0xA5 };

/* A struct of garbage, with garbage behind it. */
#define GUARDED(type, name)                                                                        \
    struct {                                                                                       \
        type is;                                                                                   \
        uint8_t guard[GUARD_BYTES];                                                                \
    } name;                                                                                        \
    memset(&name, GARBAGE, sizeof name)

static void assert_filled(int version, int expected, const int64_t *reserved, size_t count,
                          const uint8_t *guard)
{
    assert_int_equal(version, expected);
    for (size_t i = 0; i < count; i++)
        assert_true(reserved[i] == 0);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(guard[i], GARBAGE);
}

#define ASSERT_FILLED(name, expected)                                                              \
    assert_filled(name.is.version, expected, name.is.reserved,                                     \
                  sizeof name.is.reserved / sizeof *name.is.reserved, name.guard)

static spill_store_t *open_store(spill_array_t **feed, spill_array_t **months)
{
    spill_store_t *store;
    spill_definition_t definition;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    spill_definition_init(&definition, "feed");
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", feed, NULL), SPILL_OK);
    assert_int_equal(spill_definition_preset(&definition, "reviews-bucket", "months", NULL),
                     SPILL_OK);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "months", months, NULL), SPILL_OK);
    return store;
}

static void every_struct_is_filled(void **state)
{
    (void)state;
    spill_array_t *feed, *months;
    bson_t storage = BSON_INITIALIZER;
    spill_store_t *store = open_store(&feed, &months);
    spill_value_t owner = spill_value_from_utf8(&storage, "ada"), bad = {0};
    for (int good = 0; good < 2; good++) {
        const spill_value_t *name = good ? &owner : &bad;
        GUARDED(spill_append_result_t, appended);
        GUARDED(spill_count_t, count);
        GUARDED(spill_statistics_t, statistics);
        GUARDED(spill_verify_summary_t, verified);
        GUARDED(spill_repair_summary_t, repaired);
        spill_code_t expected = good ? SPILL_OK : SPILL_INVALID;
        assert_int_equal(spill_array_append(feed, name, &owner, 1, NULL, &appended.is, NULL),
                         expected);
        ASSERT_FILLED(appended, SPILL_APPEND_RESULT_VERSION);
        assert_int_equal(spill_array_count(feed, name, &count.is, NULL), expected);
        ASSERT_FILLED(count, SPILL_COUNT_VERSION);
        assert_int_equal(spill_array_verify(feed, name, NULL, NULL, &verified.is, NULL), expected);
        ASSERT_FILLED(verified, SPILL_VERIFY_SUMMARY_VERSION);
        assert_int_equal(spill_array_repair(feed, name, false, NULL, NULL, &repaired.is, NULL),
                         expected);
        ASSERT_FILLED(repaired, SPILL_REPAIR_SUMMARY_VERSION);
        spill_code_t code =
            spill_bucket_statistics(months, name, NULL, NULL, &statistics.is, NULL, NULL);
        assert_int_equal(code, expected);
        ASSERT_FILLED(statistics, SPILL_STATISTICS_VERSION);
    }
    GUARDED(spill_counters_t, counters);
    spill_store_counters(store, &counters.is);
    ASSERT_FILLED(counters, SPILL_COUNTERS_VERSION);
    spill_store_counters(NULL, &counters.is);
    ASSERT_FILLED(counters, SPILL_COUNTERS_VERSION);
    GUARDED(spill_log_cut_t, cut);
    assert_int_equal(spill_store_cut_log("memory:", true, NULL, NULL, &cut.is, NULL), SPILL_OK);
    ASSERT_FILLED(cut, SPILL_LOG_CUT_VERSION);
    spill_array_close(feed);
    spill_array_close(months);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    bson_destroy(&storage);
}

static void errors_are_filled(void **state)
{
    (void)state;
    GUARDED(spill_error_t, error);
    spill_store_t *store;
    assert_int_equal(spill_store_open("nothing:x", NULL, &store, &error.is), SPILL_INVALID);
    assert_filled((int)error.is.code, SPILL_INVALID, error.is.reserved,
                  sizeof error.is.reserved / sizeof *error.is.reserved, error.guard);
}

/* A definition that was not initialized, or is of a later version, is refused. */
static void definitions_have_no_unknown_fields(void **state)
{
    (void)state;
    spill_definition_t definition;
    spill_error_t error;
    spill_definition_init(&definition, "feed");
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_OK);
    for (size_t i = 0; i < sizeof definition.reserved / sizeof *definition.reserved; i++) {
        definition.reserved[i] = 1;
        assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
        assert_non_null(strstr(error.message, "spill_definition_init"));
        definition.reserved[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_struct_is_filled),
        cmocka_unit_test(errors_are_filled),
        cmocka_unit_test(definitions_have_no_unknown_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
