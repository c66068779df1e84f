#include "support/wire.h"

#include <bson/bson.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    HEADER_BYTES = 16,
    MESSAGE_BYTES_MAX = 64 << 20, /* servers take 48 000 000 */
    OP_QUERY = 2004,              /* greetings of drivers that do not know the server yet */
    OP_MSG = 2013
};

static uint32_t number_at(const wire_message_t *message, size_t offset)
{
    uint32_t number;
    memcpy(&number, message->bytes + offset, sizeof number);
    return BSON_UINT32_FROM_LE(number);
}

static bool receive_all(int socket, uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t got = recv(socket, bytes, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static void reserve(wire_message_t *message, size_t size)
{
    if (message->capacity >= size)
        return;
    message->bytes = bson_realloc(message->bytes, size);
    message->capacity = size;
}

void wire_release(wire_message_t *message)
{
    bson_free(message->bytes);
    *message = (wire_message_t){0};
}

void wire_copy(const wire_message_t *from, wire_message_t *to)
{
    reserve(to, from->size);
    memcpy(to->bytes, from->bytes, from->size);
    to->size = from->size;
}

bool wire_receive(int socket, wire_message_t *message)
{
    message->size = 0;
    reserve(message, HEADER_BYTES);
    if (!receive_all(socket, message->bytes, HEADER_BYTES))
        return false;
    size_t size = number_at(message, 0);
    if (size < HEADER_BYTES || size > MESSAGE_BYTES_MAX)
        return false;
    reserve(message, size);
    message->size = size;
    return receive_all(socket, message->bytes + HEADER_BYTES, size - HEADER_BYTES);
}

bool wire_send(int socket, const wire_message_t *message, size_t size)
{
    const uint8_t *bytes = message->bytes;
    while (size > 0) {
        ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void put_number(wire_message_t *message, size_t offset, uint32_t number)
{
    number = BSON_UINT32_TO_LE(number);
    memcpy(message->bytes + offset, &number, sizeof number);
}

uint32_t wire_number(const wire_message_t *message)
{
    return number_at(message, 4);
}

uint32_t wire_answered(const wire_message_t *message)
{
    return number_at(message, 8);
}

void wire_error(wire_message_t *message, uint32_t request, int32_t code, const char *text)
{
    enum { BODY = HEADER_BYTES + 5 }; /* 32 bits of flags and the kind of the only section, 0 */
    bson_t *answer =
        BCON_NEW("ok", BCON_DOUBLE(0), "code", BCON_INT32(code), "errmsg", BCON_UTF8(text));
    message->size = BODY + answer->len;
    reserve(message, message->size);
    memset(message->bytes, 0, BODY);
    put_number(message, 0, (uint32_t)message->size);
    put_number(message, 8, request);
    put_number(message, 12, OP_MSG);
    memcpy(message->bytes + BODY, bson_get_data(answer), answer->len);
    bson_destroy(answer);
}

/* ---- what it asks for ------------------------------------------------------------------------ */

/*
 * The document of an OP_MSG: 32 bits of flags, then sections: a byte that tells the kind, and for
 * kind 0 the command's document, for others a run of documents that begins with its length.
 */
static bool command_document(const wire_message_t *message, bson_t *document)
{
    size_t at = HEADER_BYTES + 4;
    while (at + 5 <= message->size) {
        uint32_t size = number_at(message, at + 1);
        if (size < 4 || size > message->size - at - 1)
            return false;
        if (message->bytes[at] == 0)
            return bson_init_static(document, message->bytes + at + 1, size);
        at += 1 + size;
    }
    return false;
}

static bool has_command(const wire_message_t *message, bson_t *document)
{
    return message->size >= HEADER_BYTES && number_at(message, 12) == OP_MSG &&
           command_document(message, document);
}

void wire_command(const wire_message_t *message, char *name, size_t name_size)
{
    bson_t document;
    bson_iter_t iter;
    bson_strncpy(name, "", name_size);
    if (has_command(message, &document) && bson_iter_init(&iter, &document) &&
        bson_iter_next(&iter))
        bson_strncpy(name, bson_iter_key(&iter), name_size);
}

char *wire_command_text(const wire_message_t *message)
{
    bson_t document;
    return has_command(message, &document) ? bson_as_relaxed_extended_json(&document, NULL)
                                           : bson_strdup("");
}

bool wire_is_driver_own(const wire_message_t *message)
{
    static const char *const own[] = {"hello",       "isMaster",  "ismaster",     "ping",
                                      "endSessions", "saslStart", "saslContinue", "authenticate"};
    char name[32];
    if (message->size >= HEADER_BYTES && number_at(message, 12) == OP_QUERY)
        return true;
    wire_command(message, name, sizeof name);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}
