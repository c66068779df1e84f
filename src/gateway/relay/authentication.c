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

/* Bytes of a message. */
typedef struct part {
    const uint8_t *bytes;
    size_t size;
} part_t;

/* Take the bytes before the next separator off `from`, and the separator. False: there is none. */
static bool next_part(part_t *from, char separator, part_t *part)
{
    const uint8_t *end = from->size > 0 ? memchr(from->bytes, separator, from->size) : NULL;
    if (!end)
        return false;
    *part = (part_t){from->bytes, (size_t)(end - from->bytes)};
    *from = (part_t){end + 1, from->size - part->size - 1};
    return true;
}

/* Find the name in the client's first message of SCRAM: "FLAG,[a=OTHER],n=NAME,r=...". */
static bool find_scram_name(part_t message, part_t *name)
{
    part_t flag, other;
    if (!next_part(&message, ',', &flag) || !next_part(&message, ',', &other) ||
        !next_part(&message, ',', name) || name->size < 2 || memcmp(name->bytes, "n=", 2) != 0)
        return false;
    *name = (part_t){name->bytes + 2, name->size - 2};
    return true;
}

/* Of PLAIN: "[OTHER] NUL NAME NUL PASSWORD". */
static bool find_plain_name(part_t message, part_t *name)
{
    part_t other;
    return next_part(&message, '\0', &other) && next_part(&message, '\0', name);
}

/* The digest's beginning of "DATABASE NUL NAME". An attacker cannot choose it: it is SHA-256. */
static void digest_user(const char *database, part_t name, uint8_t user[SPILL_USER_BYTES])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
        EVP_DigestUpdate(context, database, strlen(database) + 1) == 1 &&
        EVP_DigestUpdate(context, name.bytes, name.size) == 1 &&
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
    const uint8_t *payload;
    part_t name;
    if (!bson_iter_init_find(&iter, command, "saslStart"))
        return;
    const char *mechanism = spill_document_text(command, "mechanism", "");
    bool plain = strcmp(mechanism, "PLAIN") == 0, scram = strncmp(mechanism, "SCRAM-", 6) == 0;
    memset(authentication->pending, 0, SPILL_USER_BYTES);
    if (!bson_iter_init_find(&iter, command, "payload") || !BSON_ITER_HOLDS_BINARY(&iter))
        return;
    bson_iter_binary(&iter, &subtype, &size, &payload);
    const part_t message = {payload, size};
    if ((plain && find_plain_name(message, &name)) || (scram && find_scram_name(message, &name)))
        digest_user(database, name, authentication->pending);
}

bool spill_authentication_end(spill_authentication_t *authentication, const char *command,
                              const bson_t *reply)
{
    if (!spill_document_is_true(reply, "ok"))
        return false;
    if (strcmp(command, "logout") == 0) {
        memset(authentication, 0, sizeof *authentication);
        return true;
    }
    if (!spill_document_is_true(reply, "done"))
        return false;
    memcpy(authentication->user, authentication->pending, SPILL_USER_BYTES);
    return true;
}
