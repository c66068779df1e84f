/*
 * Settings for the driver and the meaning of its errors and answers, without a server: write
 * concerns, the code for an error of a write, and the only document of an answer.
 */
#include "store/mongo/mongo.h"
#include "store/server_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- concerns -------------------------------------------------------------------------------- */

static mongoc_uri_t *make_concern(const char *options)
{
    char text[128];
    snprintf(text, sizeof text, "mongodb://127.0.0.1/feeds?%s", options);
    mongoc_uri_t *uri = mongoc_uri_new(text);
    assert_non_null(uri);
    spill_mongo_fill_defaults(uri);
    return uri;
}

static void assert_w(const char *options, int32_t w, bool journal, int64_t timeout_ms)
{
    mongoc_uri_t *uri = make_concern(options);
    const mongoc_write_concern_t *concern = mongoc_uri_get_write_concern(uri);
    assert_int_equal(mongoc_write_concern_get_w(concern), w);
    assert_int_equal(mongoc_write_concern_get_journal(concern), journal);
    assert_int_equal(mongoc_write_concern_get_wtimeout_int64(concern), timeout_ms);
    mongoc_uri_destroy(uri);
}

/* Majority unless the connection string sets w, even if it sets other options. */
static void test_write_concern(void **state)
{
    (void)state;
    assert_w("", MONGOC_WRITE_CONCERN_W_MAJORITY, false, 0);
    assert_w("wTimeoutMS=5000", MONGOC_WRITE_CONCERN_W_MAJORITY, false, 5000);
    assert_w("journal=true", MONGOC_WRITE_CONCERN_W_MAJORITY, true, 0);
    assert_w("journal=true&wTimeoutMS=7", MONGOC_WRITE_CONCERN_W_MAJORITY, true, 7);
    assert_w("w=1", 1, false, 0);
    assert_w("w=2&wTimeoutMS=7", 2, false, 7);
    assert_w("w=majority", MONGOC_WRITE_CONCERN_W_MAJORITY, false, 0);
    mongoc_uri_t *uri = make_concern("w=disks&journal=true");
    assert_string_equal(mongoc_write_concern_get_wtag(mongoc_uri_get_write_concern(uri)), "disks");
    mongoc_uri_destroy(uri);
}

static void test_read_concern(void **state)
{
    (void)state;
    mongoc_uri_t *uri = make_concern("");
    assert_string_equal(mongoc_read_concern_get_level(mongoc_uri_get_read_concern(uri)),
                        "majority");
    mongoc_uri_destroy(uri);
    uri = make_concern("readConcernLevel=local");
    assert_string_equal(mongoc_read_concern_get_level(mongoc_uri_get_read_concern(uri)), "local");
    mongoc_uri_destroy(uri);
}

/* ---- errors ---------------------------------------------------------------------------------- */

enum { WRITE = 1, RETRIES = 2 };

static void assert_meaning(uint32_t domain, uint32_t server_code, const char *message, int flags,
                           spill_code_t code, bool retryable)
{
    spill_mongo_t store = {.place = "here/feeds", .retries = flags & RETRIES};
    bson_error_t cause;
    spill_error_t error;
    bson_set_error(&cause, domain, server_code, "%s", message);
    spill_code_t got = spill_mongo_fail(&store, "users", flags & WRITE, &cause, NULL, &error);
    if (got != code || error.retryable != retryable)
        fail_msg("%u: %s is %s%s, not %s", server_code, message, spill_code_name(got),
                 error.retryable ? ", retryable" : "", spill_code_name(code));
    const bool login = code == SPILL_DENIED && domain != MONGOC_ERROR_SERVER;
    assert_int_equal(error.native, login ? SPILL_SERVER_AUTHENTICATION_FAILED : server_code);
    assert_non_null(strstr(error.message, "here/feeds.users: "));
}

/*
 * A server that is not a primary did not carry out the request. But if the driver has sent it
 * twice, the answer belongs to the second attempt, and the first may have been carried out.
 */
static void test_error_after_driver_retry(void **state)
{
    (void)state;
    static const uint32_t codes[] = {112, 10107, 13435, 13436};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        uint32_t code = codes[i];
        assert_meaning(MONGOC_ERROR_SERVER, code, "no", WRITE, SPILL_IO, true);
        assert_meaning(MONGOC_ERROR_SERVER, code, "no", WRITE | RETRIES, SPILL_UNKNOWN, true);
        assert_meaning(MONGOC_ERROR_SERVER, code, "no", RETRIES, SPILL_IO, true);
        assert_meaning(MONGOC_ERROR_SERVER, code, "no", 0, SPILL_IO, true);
    }
    assert_meaning(MONGOC_ERROR_SERVER_SELECTION, 13053, "none", WRITE | RETRIES, SPILL_IO, true);
}

static void test_unclear_errors(void **state)
{
    (void)state;
    static const uint32_t codes[] = {1,  6,   7,   8,    50,    64,    89,
                                     91, 189, 262, 9001, 11600, 11601, 11602};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_meaning(MONGOC_ERROR_SERVER, codes[i], "eh", WRITE, SPILL_UNKNOWN, true);
        assert_meaning(MONGOC_ERROR_SERVER, codes[i], "eh", 0, SPILL_IO, true);
    }
    assert_meaning(MONGOC_ERROR_STREAM, 4, "cut", WRITE, SPILL_UNKNOWN, true);
    assert_meaning(MONGOC_ERROR_STREAM, 4, "cut", 0, SPILL_IO, true);
    assert_meaning(MONGOC_ERROR_SERVER, 43, "the cursor is gone", 0, SPILL_IO, true);
}

static void test_certain_errors(void **state)
{
    (void)state;
    static const struct {
        uint32_t code;
        const char *message;
        spill_code_t meaning;
    } errors[] = {
        {13, "unauthorized", SPILL_DENIED},
        {18, "authentication failed", SPILL_DENIED},
        {1, "permission denied for table x", SPILL_DENIED},
        {2, "bad value", SPILL_INVALID},
        {100, "no such write concern", SPILL_INVALID},
        {10334, "too large", SPILL_TOO_BIG},
        {5, "Size 17 is larger than MaxDocSize 16", SPILL_TOO_BIG},
        {59, "no such command", SPILL_IO},
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        for (int flags = 0; flags < 4; flags++)
            assert_meaning(MONGOC_ERROR_SERVER, errors[i].code, errors[i].message, flags,
                           errors[i].meaning, false);
}

/* Errors of each of the driver's own domains; the code has no other meaning. */
static void test_domains(void **state)
{
    (void)state;
    static const struct {
        uint32_t domain;
        uint32_t code;
        spill_code_t write;
        spill_code_t read;
        bool retryable;
    } errors[] = {
        {MONGOC_ERROR_CLIENT, MONGOC_ERROR_CLIENT_AUTHENTICATE, SPILL_DENIED, SPILL_DENIED, false},
        {MONGOC_ERROR_CLIENT, MONGOC_ERROR_CLIENT_NOT_READY, SPILL_IO, SPILL_IO, false},
        {MONGOC_ERROR_SASL, 2, SPILL_DENIED, SPILL_DENIED, false},
        {MONGOC_ERROR_SCRAM, 1, SPILL_DENIED, SPILL_DENIED, false},
        {MONGOC_ERROR_PROTOCOL, 17, SPILL_UNKNOWN, SPILL_IO, true},
        {MONGOC_ERROR_WRITE_CONCERN, 64, SPILL_UNKNOWN, SPILL_IO, true},
        {MONGOC_ERROR_BSON, 1, SPILL_INVALID, SPILL_INVALID, false},
        {MONGOC_ERROR_SERVER, 8000, SPILL_DENIED, SPILL_DENIED, false},
        {MONGOC_ERROR_SERVER, 17419, SPILL_TOO_BIG, SPILL_TOO_BIG, false},
        {MONGOC_ERROR_SERVER, 17420, SPILL_TOO_BIG, SPILL_TOO_BIG, false},
        {MONGOC_ERROR_SERVER, 9, SPILL_INVALID, SPILL_INVALID, false},
        {MONGOC_ERROR_SERVER, 14, SPILL_INVALID, SPILL_INVALID, false},
        {MONGOC_ERROR_SERVER, 28, SPILL_INVALID, SPILL_INVALID, false},
        {MONGOC_ERROR_SERVER, 40, SPILL_INVALID, SPILL_INVALID, false},
        {MONGOC_ERROR_SERVER, 52, SPILL_INVALID, SPILL_INVALID, false},
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        assert_meaning(errors[i].domain, errors[i].code, "oh", WRITE, errors[i].write,
                       errors[i].retryable);
        assert_meaning(errors[i].domain, errors[i].code, "oh", 0, errors[i].read,
                       errors[i].retryable);
    }
}

/*
 * The server's label says that the write may have been carried out. The caller may want no message.
 */
static void test_label_of_unclear_write(void **state)
{
    (void)state;
    spill_mongo_t store = {.place = "here/feeds"};
    bson_error_t cause;
    spill_error_t error;
    bson_t *labelled = BCON_NEW("errorLabels", "[", "RetryableWriteError", "]");
    bson_t *other = BCON_NEW("errorLabels", "[", "TransientTransactionError", "]");
    bson_set_error(&cause, MONGOC_ERROR_SERVER, 59, "no");
    assert_int_equal(spill_mongo_fail(&store, NULL, true, &cause, labelled, &error), SPILL_UNKNOWN);
    assert_string_equal(error.message, "here/feeds: no");
    assert_true(error.retryable);
    assert_int_equal(spill_mongo_fail(&store, NULL, true, &cause, other, &error), SPILL_IO);
    assert_false(error.retryable);
    assert_int_equal(spill_mongo_fail(&store, NULL, true, &cause, labelled, NULL), SPILL_UNKNOWN);
    bson_destroy(labelled);
    bson_destroy(other);
}

/* ---- several insertions in one call ---------------------------------------------------------- */

/* An answer to an insertion of three documents, which the driver split into several commands. */
static bool all_answered(int inserted, int duplicate, int other, bool refused[3])
{
    bson_error_t cause;
    bson_t reply = BSON_INITIALIZER, errors, one;
    bson_set_error(&cause, MONGOC_ERROR_SERVER, 11000, "duplicate key");
    memset(refused, 0, 3 * sizeof *refused);
    BSON_APPEND_INT32(&reply, "insertedCount", inserted);
    BSON_APPEND_ARRAY_BEGIN(&reply, "writeErrors", &errors);
    for (int i = 0; i < 2; i++) {
        int index = i == 0 ? duplicate : other;
        if (index < 0)
            continue;
        BSON_APPEND_DOCUMENT_BEGIN(&errors, i == 0 ? "0" : "1", &one);
        BSON_APPEND_INT32(&one, "index", index);
        BSON_APPEND_INT32(&one, "code", i == 0 ? 11000 : 8);
        bson_append_document_end(&errors, &one);
    }
    bson_append_array_end(&reply, &errors);
    bool all = spill_mongo_read_refusals(&cause, &reply, 3, refused);
    bson_destroy(&reply);
    return all;
}

static void test_every_insertion_must_be_answered(void **state)
{
    (void)state;
    bool refused[3];
    assert_true(all_answered(2, 1, -1, refused));
    assert_true(!refused[0] && refused[1] && !refused[2]);
    assert_false(all_answered(1, 1, -1, refused)); /* one document was not sent */
    assert_false(all_answered(0, 0, -1, refused));
    assert_false(all_answered(1, 1, 2, refused)); /* one document failed in another way */
}

/* Does this answer prove that each of three documents was inserted or is a duplicate? */
static bool proves(bson_t *reply, uint32_t domain)
{
    bool refused[3] = {false, false, false};
    bson_error_t cause;
    bson_set_error(&cause, domain, 11000, "duplicate key");
    bool all = spill_mongo_read_refusals(&cause, reply, 3, refused);
    bson_destroy(reply);
    return all;
}

#define DUPLICATE(index) "{", "index", index, "code", BCON_INT32(11000), "}"
#define TWO_INSERTED "insertedCount", BCON_INT32(2), "writeErrors"

/* Without a proof the result of the insertion is unknown: no element may get lost. */
static void test_odd_answer_proves_nothing(void **state)
{
    (void)state;
    const uint32_t server = MONGOC_ERROR_SERVER;
    assert_true(proves(BCON_NEW(TWO_INSERTED, "[", DUPLICATE(BCON_INT64(2)), "]"), server));
    assert_false(
        proves(BCON_NEW(TWO_INSERTED, "[", DUPLICATE(BCON_INT64(2)), "]"), MONGOC_ERROR_STREAM));
    assert_false(proves(BCON_NEW("insertedCount", BCON_INT32(3)), server));
    assert_false(proves(BCON_NEW(TWO_INSERTED, BCON_INT32(1)), server));
    assert_false(proves(BCON_NEW(TWO_INSERTED, "[", BCON_INT32(1), "]"), server));
    assert_false(
        proves(BCON_NEW(TWO_INSERTED, "[", "{", "index", BCON_INT32(0), "}", "]"), server));
    assert_false(
        proves(BCON_NEW(TWO_INSERTED, "[", "{", "code", BCON_INT32(11000), "}", "]"), server));
    assert_false(proves(BCON_NEW(TWO_INSERTED, "[", DUPLICATE(BCON_INT32(-1)), "]"), server));
    assert_false(proves(BCON_NEW(TWO_INSERTED, "[", DUPLICATE(BCON_INT32(3)), "]"), server));
    assert_false(proves(BCON_NEW(TWO_INSERTED, "[", DUPLICATE(BCON_UTF8("x")), "]"), server));
    assert_false(proves(BCON_NEW("writeErrors", "[", DUPLICATE(BCON_INT32(0)), "]"), server));
    assert_false(proves(BCON_NEW("insertedCount", BCON_INT32(1), "writeErrors", "[",
                                 DUPLICATE(BCON_INT32(1)), DUPLICATE(BCON_INT32(1)), "]"),
                        server));
    assert_false(proves(BCON_NEW(TWO_INSERTED, "[", DUPLICATE(BCON_INT32(2)), "]",
                                 "writeConcernErrors", "[", "{", "code", BCON_INT32(64), "}", "]"),
                        server));
}

/* ---- the documents of one answer ------------------------------------------------------------- */

enum { LIMIT = 3 };

/* Add the document's field "a"; stop after a negative one. */
static bool add_number(void *context, const bson_t *document)
{
    int *sum = context;
    bson_iter_t iter;
    assert_true(bson_iter_init_find(&iter, document, "a"));
    *sum += bson_iter_int32(&iter);
    return bson_iter_int32(&iter) >= 0;
}

/* Read the reply, and destroy it. Return the sum of the fields "a". */
static int sum_numbers(bson_t *reply, spill_code_t expected, const char *message)
{
    const spill_mongo_t store = {.place = "server/feeds", .database = "feeds"};
    spill_error_t error = {0};
    int sum = 0;
    assert_int_equal(
        spill_mongo_visit_answer(&store, "users", reply, LIMIT, add_number, &sum, &error),
        expected);
    if (message)
        assert_non_null(strstr(error.message, message));
    bson_destroy(reply);
    return sum;
}

#define CURSOR(namespace, ...)                                                                     \
    BCON_NEW("cursor", "{", "id", BCON_INT64(0), "ns", namespace, "firstBatch", __VA_ARGS__, "}")

#define NUMBER(number) "{", "a", BCON_INT32(number), "}"

/* It ends after LIMIT documents, or when the visitor has enough. */
static void test_answer(void **state)
{
    (void)state;
    bson_t *one = CURSOR("feeds.users", "[", NUMBER(7), "]");
    bson_t *many = CURSOR("feeds.users", "[", NUMBER(1), NUMBER(2), NUMBER(4), NUMBER(8), "]");
    bson_t *enough = CURSOR("feeds.users", "[", NUMBER(1), NUMBER(-2), NUMBER(4), "]");
    assert_int_equal(sum_numbers(one, SPILL_OK, NULL), 7);
    assert_int_equal(sum_numbers(many, SPILL_OK, NULL), 7);
    assert_int_equal(sum_numbers(enough, SPILL_OK, NULL), -1);
    assert_int_equal(sum_numbers(CURSOR("feeds.users", "[", "]"), SPILL_OK, NULL), 0);
}

static void test_wrong_cursor(void **state)
{
    (void)state;
    sum_numbers(bson_new(), SPILL_CORRUPT, "no cursor");
    sum_numbers(BCON_NEW("cursor", BCON_INT32(1)), SPILL_CORRUPT, "no cursor");
    sum_numbers(BCON_NEW("cursor", "{", "ns", "feeds.users", "}"), SPILL_CORRUPT, "no cursor");
    sum_numbers(CURSOR("feeds.users", "{", "}"), SPILL_CORRUPT, "no cursor");
    sum_numbers(CURSOR("feeds.users", "[", BCON_INT32(1), "]"), SPILL_CORRUPT, "no document");
    sum_numbers(CURSOR("feeds.others", "[", "]"), SPILL_CORRUPT, "namespace 'feeds.others'");
    sum_numbers(CURSOR("users", "[", "]"), SPILL_CORRUPT, "namespace 'users'");
    sum_numbers(BCON_NEW("cursor", "{", "firstBatch", "[", "]", "}"), SPILL_CORRUPT,
                "namespace ''");
}

/* A document whose text is not closed by a zero byte. */
static void test_malformed_answer(void **state)
{
    static const uint8_t malformed[] = {15, 0, 0, 0, 2, 'a', 0, 3, 0, 0, 0, 'x', 'y', 'z', 0};
    bson_t document;
    (void)state;
    assert_true(bson_init_static(&document, malformed, sizeof malformed));
    sum_numbers(CURSOR("feeds.users", "[", BCON_DOCUMENT(&document), "]"), SPILL_CORRUPT,
                "not valid BSON");
}

static int load_driver(void **state)
{
    (void)state;
    return spill_driver_load(NULL) == SPILL_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_concern),
        cmocka_unit_test(test_read_concern),
        cmocka_unit_test(test_error_after_driver_retry),
        cmocka_unit_test(test_unclear_errors),
        cmocka_unit_test(test_certain_errors),
        cmocka_unit_test(test_domains),
        cmocka_unit_test(test_label_of_unclear_write),
        cmocka_unit_test(test_odd_answer_proves_nothing),
        cmocka_unit_test(test_every_insertion_must_be_answered),
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_wrong_cursor),
        cmocka_unit_test(test_malformed_answer),
    };
    return cmocka_run_group_tests(tests, load_driver, NULL);
}
