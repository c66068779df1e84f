/* Connection strings in messages: which parts are shown. */
#include "util/error.h"
#include "util/redact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <bson/bson.h>
#include <cmocka.h>

/* Every password below contains one of these two words. */
static const char *const SECRETS[] = {"Tr0ub4dor", "h0rse"};

static const struct {
    const char *given;
    const char *shown;
} CASES[] = {
    /* well-formed */
    {"mongodb://u:Tr0ub4dor@h/db", "mongodb://***@h/db"},
    {"mongodb+srv://u:Tr0ub4dor@h.example/db?tls=true", "mongodb+srv://***@h.example/db?tls=true"},
    {"mongodb://Tr0ub4dor@h/db", "mongodb://***@h/db"},
    {"mongodb://u:Tr0ub4dor@h1:1,h2:2/db", "mongodb://***@h1:1,h2:2/db"},
    /* misspelt */
    {"MONGODB://u:Tr0ub4dor@h/db", "MONGODB://***@h/db"},
    {"mongo://u:Tr0ub4dor@h/db", "mongo://***@h/db"},
    {"mongodb:/u:Tr0ub4dor@h/db", "mongodb:/***@h/db"},
    {"mongodb:u:Tr0ub4dor@h", "mongodb:***@h"},
    {"mongodb//u:Tr0ub4dor@h/db", "mongodb//***@h/db"},
    {"mongodb::///u:Tr0ub4dor@h", "mongodb::///***@h"},
    {"mongodb:\\\\u:Tr0ub4dor@h", "mongodb:\\\\***@h"},
    {"monogdb://u:Tr0ub4dor@h/db", "monogdb://***@h/db"},
    {"rocksdb://u:Tr0ub4dor@h", "rocksdb://***@h"},
    {"//u:Tr0ub4dor@h/db", "//***@h/db"},
    {"u:Tr0ub4dor@h/db", "u:***@h/db"},
    {"u:Tr0ub4dor@h:27017", "u:***@h:27017"},
    {"/u:Tr0ub4dor@h/db/LOCK", "/u:***@h/db/LOCK"},
    /* neither a scheme nor a port or a path */
    {"bob:Tr0ub4dor@localhost", "bob:***@localhost"},
    {"bob:Tr0ub4dor@h", "bob:***@h"},
    {"bob:Tr0ub4dor@10.0.0.1", "bob:***@10.0.0.1"},
    {"bob:Tr0ub4dor@[::1]", "bob:***@[::1]"},
    {"bob:Tr0ub4dor@h1,h2", "bob:***@h1,h2"},
    {"bob:Tr0ub4dor@h?tls=true", "bob:***@h?tls=true"},
    {"bob:Tr0ub4dor@h0rse@h", "bob:***@h"},
    {"bob:Tr0ub4dor:h0rse@h", "bob:***@h"},
    {"bob:Tr0ub4dor/h0rse@h", "bob:***@h"},
    {"bob:Tr0ub4dor@mongodb://h", "bob:***@mongodb://h"},
    {"bob:Tr0ub4dor@$HOST", "bob:***@$HOST"},
    {"bob:Tr0ub4dor@", "bob:***@"},
    {":Tr0ub4dor@localhost", ":***@localhost"},
    {"mongodb=bob:Tr0ub4dor@h", "mongodb=bob:***@h"},
    {"SPILLWAY_URI=bob:Tr0ub4dor@localhost", "SPILLWAY_URI=bob:***@localhost"},
    {"rocksdb:bob:Tr0ub4dor@h", "rocksdb:bob:***@h"},
    {"@bob:Tr0ub4dor@h", "@bob:***@h"},
    {"bob%3ATr0ub4dor%40localhost", "bob:***@localhost"},
    {"cannot open bob:Tr0ub4dor@h: No such file", "cannot open bob:***@h: No such file"},
    {"from a:Tr0ub4dor@h1 to b:h0rse@h2", "from a:***@h1 to b:***@h2"},
    /* text before it */
    {"'mongodb://u:Tr0ub4dor@h/db'", "'mongodb://***@h/db'"},
    {"\"mongodb://u:Tr0ub4dor@h/db\"", "\"mongodb://***@h/db\""},
    {" mongodb://u:Tr0ub4dor@h/db", " mongodb://***@h/db"},
    {"SPILLWAY_URI=mongodb://u:Tr0ub4dor@h/db", "SPILLWAY_URI=mongodb://***@h/db"},
    {"SPILLWAY_URI=mongodb://u:Tr0ub4dor h0rse@h/db", "SPILLWAY_URI=mongodb://***@h/db"},
    {"export SPILLWAY_URI='mongodb://u:Tr0ub4dor@h/db'",
     "export SPILLWAY_URI='mongodb://***@h/db'"},
    {"\xEF\xBB\xBFmongodb://u:Tr0ub4dor@h/db", "\xEF\xBB\xBFmongodb://***@h/db"},
    /* characters that should have been encoded */
    {"mongodb://u:Tr0ub4dor@h0rse@h/db", "mongodb://***@h/db"},
    {"mongodb://u:Tr0ub4dor:h0rse@h/db", "mongodb://***@h/db"},
    {"mongodb://u:Tr0ub4dor/h0rse@h/db", "mongodb://***@h/db"},
    {"mongodb://u:1/Tr0ub4dor@h/db", "mongodb://***@h/db"},
    {"mongodb://u:1?Tr0ub4dor@h/db", "mongodb://***@h/db"},
    {"mongodb://u:Tr0ub4dor h0rse@h/db", "mongodb://***@h/db"},
    {"mongodb://u:Tr0ub4dor%20h0rse%ZZ@h/db", "mongodb://***@h/db"},
    {"mongodb://u:Tr0ub4dor'h0rse\"@h/db", "mongodb://***@h/db"},
    {"mongo://u:Tr0ub4dor\nh0rse@h/db", "mongo://***@h/db"},
    {"rocksdb://u:Tr0ub4dor/h0rse @x@h", "rocksdb://***@h"},
    {"mongodb://u:Tr0ub4dor @h/db", "mongodb://***@h/db"},
    /* encoded separators */
    {"mongodb://u%3ATr0ub4dor%40h/db", "mongodb://***@h/db"},
    {"mongo://u%3aTr0ub4dor%40h/db", "mongo://***@h/db"},
    {"mongodb%3A%2F%2Fu%3ATr0ub4dor%40h%2fdb", "mongodb://***@h/db"},
    {"mongodb://u:Tr0ub4dor%40h0rse@h/db", "mongodb://***@h/db"},
    /* no host, or cut off at the end */
    {"mongodb://u:Tr0ub4dor@", "mongodb://***@"},
    {"mongodb://u:Tr0ub4dor", "mongodb://u:***"},
    {"mongodb://u:1Tr0ub4dor/db", "mongodb://u:***"},
    {"rocksdb://u:Tr0ub4dor", "rocksdb://u:***"},
    /* two of them, and text around them */
    {"from mongodb://u:Tr0ub4dor@h1/a to mongo://u:h0rse@h2/b: no",
     "from mongodb://***@h1/a to mongo://***@h2/b: no"},
    {"cannot open mongo://u:Tr0ub4dor@h/db, which should be a file",
     "cannot open mongo://***@h/db, which should be a file"},
    /* other secrets */
    {"mongodb://h/db?tlsCertificateKeyFilePassword=Tr0ub4dor&tls=true",
     "mongodb://h/db?tlsCertificateKeyFilePassword=***&tls=true"},
    {"authMechanismProperties=AWS_SESSION_TOKEN:Tr0ub4dor,SERVICE_NAME:x",
     "authMechanismProperties=AWS_SESSION_TOKEN:***,SERVICE_NAME:x"},
    /* nothing secret: unchanged */
    {"", ""},
    {"mongodb://localhost:27017/shop: no such collection", NULL},
    {"mongodb://HOST:PORT/DATABASE, or @FILE for a file", NULL},
    {"mongodb+srv://cluster.example/shop", NULL},
    {"mongodb://[::1]:27017/shop", NULL},
    {"mongo:27017/shop: no owner \"a@example.org\"", NULL},
    {"'ev' has no owner \"ada@example.org\"", NULL},
    {"mail to ada@example.org: no answer", NULL},
    {"owner: ada@example.org", NULL},
    {"{\"mail\":\"ada@example.org\",\"n\":1}", NULL},
    {"ada@example.org:17: byte 5", NULL},
    {"as of 10:30 @ noon", NULL},
    {"dump/shop/things.bson:17: byte 5", NULL},
    {"rocksdb:/data/a@b/feeds", NULL},
    {"next: --cursor '2026-03:17' --limit 20", NULL},
    {"order:4711@3", NULL},
    {"dump%2Fshop is 50%3A 50% full", NULL},
    {"https://example.org/@ada", NULL},
    {"a: b@c", NULL},
};

static void no_secret_is_left(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *expected = CASES[i].shown ? CASES[i].shown : CASES[i].given;
        char *shown = spill_redact(CASES[i].given);
        assert_string_equal(shown, expected);
        for (size_t j = 0; j < sizeof SECRETS / sizeof SECRETS[0]; j++)
            assert_null(strstr(shown, SECRETS[j]));
        char *again = spill_redact(shown);
        assert_string_equal(again, shown);
        bson_free(again);
        bson_free(shown);
    }
}

/* Texts that a message may put around a connection string. */
static void no_secret_is_left_in_a_message(void **context)
{
    (void)context;
    static const char *const formats[] = {"%s: No such file or directory", "'%s' is not a file",
                                          "\"%s\"", "cannot open %s, which should name the store",
                                          "{\"source\":\"%s\"}"};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (size_t j = 0; j < sizeof formats / sizeof formats[0]; j++) {
            char *message = bson_strdup_printf(formats[j], CASES[i].given);
            char *shown = spill_redact(message);
            for (size_t k = 0; k < sizeof SECRETS / sizeof SECRETS[0]; k++)
                if (strstr(shown, SECRETS[k]))
                    fail_msg("%s became %s", message, shown);
            bson_free(shown);
            bson_free(message);
        }
}

/* A secret may begin in the part of a long text that is shown, and end behind it. */
static void no_secret_is_left_in_a_long_text(void **context)
{
    (void)context;
    static const char *const formats[] = {
        "mongodb://u:%s@h/db", "u:%s@h:27017",  "mongodb:u:%s@h",   "//u:%s@h",
        "mongodb://u:%s",      "x?password=%s", "bob:%s@localhost", "mongodb=bob:%s@h"};
    static const size_t before[] = {0, 10, SPILL_REDACT_BYTES_MAX - 9, SPILL_REDACT_BYTES_MAX};
    char secret[2 * SPILL_REDACT_BYTES_MAX + 1] = "";
    for (size_t i = 0; i + 9 < sizeof secret; i += 9)
        memcpy(secret + i, "Tr0ub4dor", 9);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        for (size_t j = 0; j < sizeof before / sizeof before[0]; j++) {
            char *uri = bson_strdup_printf(formats[i], secret);
            char *text = bson_strdup_printf("%*s%s", (int)before[j], "", uri);
            char *shown = spill_redact(text);
            assert_null(strstr(shown, "Tr0"));
            assert_true(strlen(shown) <= SPILL_REDACT_BYTES_MAX + strlen("***..."));
            bson_free(shown);
            bson_free(text);
            bson_free(uri);
        }
}

/* The test would not end if the cost grew with the square of the length. */
static void long_texts_cost_little(void **context)
{
    (void)context;
    static const char *const parts[] = {":",        "a:",        "a@", "://",  "a.b-", "mongo",
                                        "mongodb:", "password=", "/",  "a@b:", "a:b@c"};
    enum { BYTES = 8 * 1024 * 1024 };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t length = strlen(parts[i]);
        char *text = bson_malloc0(BYTES + 1);
        for (size_t at = 0; at + length <= BYTES; at += length)
            memcpy(text + at, parts[i], length);
        char *shown = spill_redact(text);
        assert_true(strlen(shown) > 3);
        bson_free(shown);
        bson_free(text);
    }
}

static void errors_contain_no_secret(void **context)
{
    (void)context;
    spill_error_t error;
    char padding[SPILL_ERROR_MESSAGE_SIZE - 20];
    memset(padding, 'x', sizeof padding - 1);
    padding[sizeof padding - 1] = '\0';
    spill_fail(&error, SPILL_INVALID, "'mongo://u:Tr0ub4dor@h/db' is not a store");
    assert_string_equal(error.message, "'mongo://***@h/db' is not a store");
    spill_fail(&error, SPILL_INVALID, "%s rocksdb://u:Tr0ub4dor h0rse@h/db", padding);
    assert_null(strstr(error.message, "Tr0"));
    spill_fail_errno(&error, 2, "mongodb:/u:Tr0ub4dor@h/db");
    assert_null(strstr(error.message, "Tr0"));
    spill_fail_prefix(&error, SPILL_IO, "MONGODB://u:Tr0ub4dor@h/db");
    assert_null(strstr(error.message, "Tr0"));
}

static void paths_are_not_redacted(void **context)
{
    (void)context;
    static const char *const paths[] = {"feeds.db", "rocksdb:feeds.db", "/data/a:b@c/d",
                                        "./a@b",    "C:/feeds",         "rocksdb:/data/a@b"};
    static const char *const uris[] = {"mongo://u:p@h/db", "rocksdb://u:p@h", " mongodb://u:p@h",
                                       "X=mongodb://u:p@h", "'mongodb:/u:p@h'"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_false(spill_resembles_secret_uri(paths[i]));
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++)
        assert_true(spill_resembles_secret_uri(uris[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_secret_is_left),
        cmocka_unit_test(no_secret_is_left_in_a_message),
        cmocka_unit_test(no_secret_is_left_in_a_long_text),
        cmocka_unit_test(long_texts_cost_little),
        cmocka_unit_test(errors_contain_no_secret),
        cmocka_unit_test(paths_are_not_redacted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
