/* The user of a connection, from the authentication that passes through the gateway. */
#include "gateway/relay/authentication.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t nobody[SPILL_USER_BYTES] = {0};

static bool reply(spill_authentication_t *authentication, const char *command, double ok, bool done)
{
    bson_t *document = BCON_NEW("ok", BCON_DOUBLE(ok), "done", BCON_BOOL(done));
    bool changed = spill_authentication_end(authentication, command, document);
    bson_destroy(document);
    return changed;
}

/* Begin with saslStart; `size` bytes of the client's first message. */
static void begin(spill_authentication_t *authentication, const char *mechanism,
                  const char *database, const char *payload, size_t size)
{
    bson_t *start =
        BCON_NEW("saslStart", BCON_INT32(1), "mechanism", BCON_UTF8(mechanism), "payload",
                 BCON_BIN(BSON_SUBTYPE_BINARY, (const uint8_t *)payload, (uint32_t)size));
    spill_authentication_begin(authentication, start, database);
    bson_destroy(start);
}

#define BEGIN(authentication, database, payload)                                                   \
    begin(authentication, "SCRAM-SHA-256", database, payload, sizeof(payload) - 1)
#define BEGIN_PLAIN(authentication, database, payload)                                             \
    begin(authentication, "PLAIN", database, payload, sizeof(payload) - 1)

static void user_is_known_at_the_end(void **state)
{
    (void)state;
    spill_authentication_t one = {0}, other = {0};
    BEGIN(&one, "admin", "n,,n=ada,r=x");
    assert_memory_equal(one.user, nobody, sizeof nobody);
    assert_false(reply(&one, "saslStart", 1, false));
    assert_memory_equal(one.user, nobody, sizeof nobody);
    assert_false(reply(&one, "saslContinue", 0, true)); /* a wrong password */
    assert_memory_equal(one.user, nobody, sizeof nobody);
    assert_true(reply(&one, "saslContinue", 1, true));
    assert_memory_not_equal(one.user, nobody, sizeof nobody);

    /* The mechanism does not matter; the database does, and so does each letter. */
    BEGIN_PLAIN(&other, "admin", "\0ada\0secret");
    assert_true(reply(&other, "saslStart", 1, true));
    assert_memory_equal(one.user, other.user, sizeof nobody);
    BEGIN(&other, "shop", "n,,n=ada,r=x");
    assert_true(reply(&other, "saslContinue", 1, true));
    assert_memory_not_equal(one.user, other.user, sizeof nobody);
    BEGIN(&other, "admin", "n,,n=adb,r=x");
    assert_true(reply(&other, "saslContinue", 1, true));
    assert_memory_not_equal(one.user, other.user, sizeof nobody);

    assert_true(reply(&one, "logout", 1, false));
    assert_memory_equal(one.user, nobody, sizeof nobody);
}

/* Servers ignore a field `db` of saslStart: a client must not choose by it who it is. */
static void a_client_does_not_choose_its_database(void **state)
{
    (void)state;
    static const char payload[] = "n,,n=ada,r=x";
    spill_authentication_t one = {0}, other = {0};
    BEGIN(&one, "shop", "n,,n=ada,r=x");
    bson_t *start = BCON_NEW(
        "saslStart", BCON_INT32(1), "mechanism", "SCRAM-SHA-256", "payload",
        BCON_BIN(BSON_SUBTYPE_BINARY, (const uint8_t *)payload, (uint32_t)sizeof payload - 1), "db",
        "admin");
    spill_authentication_begin(&other, start, "shop");
    bson_destroy(start);
    assert_true(reply(&one, "saslContinue", 1, true));
    assert_true(reply(&other, "saslContinue", 1, true));
    assert_memory_equal(one.user, other.user, sizeof nobody);
}

static void malformed_payloads_name_nobody(void **state)
{
    (void)state;
    spill_authentication_t one = {0};
    BEGIN(&one, "admin", "n,,n=ada");
    assert_memory_equal(one.pending, nobody, sizeof nobody);
    BEGIN_PLAIN(&one, "admin", "\0ada");
    assert_memory_equal(one.pending, nobody, sizeof nobody);
    BEGIN(&one, "admin", "");
    assert_memory_equal(one.pending, nobody, sizeof nobody);
    bson_t *text = BCON_NEW("saslStart", BCON_INT32(1), "mechanism", BCON_UTF8("SCRAM-SHA-1"),
                            "payload", BCON_UTF8("n,,n=ada,r=x"));
    spill_authentication_begin(&one, text, "admin");
    assert_memory_equal(one.pending, nobody, sizeof nobody);
    bson_destroy(text);
}

/* Only the user who proves the password counts, whatever other texts the message has. */
static void another_name_in_the_message_is_no_user(void **state)
{
    (void)state;
    spill_authentication_t ada = {0}, other = {0};
    BEGIN(&ada, "admin", "n,,n=ada,r=x");
    BEGIN(&other, "admin", "n,a=n=eve,n=ada,r=x");
    assert_memory_equal(ada.pending, other.pending, sizeof nobody);
    BEGIN(&other, "admin", "n,,n=ada,r=x\0eve\0");
    assert_memory_equal(ada.pending, other.pending, sizeof nobody);
    BEGIN(&other, "admin", "n,,r=n=eve,n=ada,r=x");
    assert_memory_equal(other.pending, nobody, sizeof nobody);
    begin(&other, "MONGODB-OIDC", "admin", "n,,n=ada,r=x", 12);
    assert_memory_equal(other.pending, nobody, sizeof nobody);
    BEGIN_PLAIN(&other, "admin", "eve\0ada\0n=eve,");
    assert_memory_equal(ada.pending, other.pending, sizeof nobody);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_is_known_at_the_end),
        cmocka_unit_test(a_client_does_not_choose_its_database),
        cmocka_unit_test(malformed_payloads_name_nobody),
        cmocka_unit_test(another_name_in_the_message_is_no_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
