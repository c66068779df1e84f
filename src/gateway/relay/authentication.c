/* The user's name in SASL messages: RFC 5802 (SCRAM) and RFC 4616 (PLAIN). */
#include "gateway/relay/authentication.h"

#include "bson/value.h"
#include "gateway/translate/mention.h"

#include <openssl/evp.h>
#include <string.h>

bool spill_authentication_is(const char *command)
{
    static const char *const commands[] = {"saslStart", "saslContinue", "authenticate", "logout",
                                           NULL};
    return spill_is_one_of(command, commands);
}

bool spill_authentication_is_x509(const bson_t *command)
{
    const char *mechanism = spill_document_text(command, "mechanism", NULL);
    return mechanism && strcmp(mechanism, "MONGODB-X509") == 0;
}

/* Find the name in the client's first message: "n,,n=NAME,r=..." or NUL NAME NUL PASSWORD. */
static bool find_name(const uint8_t *payload, size_t size, const uint8_t **name, size_t *name_bytes)
{
    const uint8_t *start, *end;
    if (size > 0 && payload[0] == '\0') {
        start = payload + 1;
        end = memchr(start, '\0', size - 1);
    } else {
        static const char marker[] = "n=";
        start = memmem(payload, size, marker, sizeof marker - 1);
        if (!start)
            return false;
        start += sizeof marker - 1;
        end = memchr(start, ',', (size_t)(payload + size - start));
    }
    if (!end)
        return false;
    *name = start;
    *name_bytes = (size_t)(end - start);
    return true;
}

/* The digest's beginning of "DATABASE NUL NAME". An attacker cannot choose it: it is SHA-256. */
static void digest_user(const char *database, const uint8_t *name, size_t name_bytes,
                        uint8_t user[SPILL_USER_BYTES])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
        EVP_DigestUpdate(context, database, strlen(database) + 1) == 1 &&
        EVP_DigestUpdate(context, name, name_bytes) == 1 &&
        EVP_DigestFinal_ex(context, digest, &size) == 1 && size >= SPILL_USER_BYTES)
        memcpy(user, digest, SPILL_USER_BYTES);
    EVP_MD_CTX_free(context);
}

void spill_authentication_begin(spill_authentication_t *authentication, const bson_t *command,
                                const char *database)
{
    bson_iter_t iter;
    bson_subtype_t subtype;
    uint32_t size;
    const uint8_t *payload, *name;
    size_t name_bytes;
    const char *own_database =
        spill_document_text(command, "db", NULL); /* of speculativeAuthenticate */
    if (!bson_iter_init_find(&iter, command, "saslStart"))
        return;
    memset(authentication->pending, 0, SPILL_USER_BYTES);
    if (!bson_iter_init_find(&iter, command, "payload") || !BSON_ITER_HOLDS_BINARY(&iter))
        return;
    bson_iter_binary(&iter, &subtype, &size, &payload);
    if (find_name(payload, size, &name, &name_bytes))
        digest_user(own_database ? own_database : database, name, name_bytes,
                    authentication->pending);
}

static bool is_true(const bson_t *document, const char *key)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, key) && bson_iter_as_bool(&iter);
}

bool spill_authentication_end(spill_authentication_t *authentication, const char *command,
                              const bson_t *reply)
{
    if (!is_true(reply, "ok"))
        return false;
    if (strcmp(command, "logout") == 0) {
        memset(authentication, 0, sizeof *authentication);
        return true;
    }
    if (!is_true(reply, "done"))
        return false;
    memcpy(authentication->user, authentication->pending, SPILL_USER_BYTES);
    return true;
}
