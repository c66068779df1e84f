/*
 * Frames of messages. Sources: the MongoDB wire protocol (mongodb.com/docs, reference
 * mongodb-wire-protocol) and specifications/source/message/OP_MSG.md.
 */
#include "gateway/relay/wire.h"

#include <limits.h>
#include <string.h>

enum { CHECKSUM_BYTES = 4, BODY = 0, SEQUENCE = 1, DOCUMENT_BYTES_MIN = 5 };

/* What a receiver must know of the low 16 flags; the others are optional. */
#define FLAGS_KNOWN (SPILL_WIRE_CHECKSUM | SPILL_WIRE_MORE_TO_COME)
#define FLAGS_REQUIRED 0xFFFFu

static int32_t read_int32(const uint8_t *bytes)
{
    uint32_t value = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24;
    return (int32_t)value;
}

static void append_int32(spill_buffer_t *out, int32_t value)
{
    uint32_t bits = (uint32_t)value;
    uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                        (uint8_t)(bits >> 24)};
    spill_buffer_append(out, bytes, sizeof bytes);
}

spill_code_t spill_wire_read_header(const uint8_t *bytes, int32_t most, spill_wire_header_t *header,
                                    spill_error_t *error)
{
    *header = (spill_wire_header_t){.length = read_int32(bytes),
                                    .request_id = read_int32(bytes + 4),
                                    .response_to = read_int32(bytes + 8),
                                    .opcode = read_int32(bytes + 12)};
    if (header->length < SPILL_WIRE_HEADER_BYTES)
        return spill_fail(error, SPILL_PARSE, "a message of %d bytes is shorter than its header",
                          header->length);
    if (header->length > most)
        return spill_fail(error, SPILL_PARSE, "a message of %d bytes is longer than %d",
                          header->length, most);
    return SPILL_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A message that is being read, up to `end`. */
typedef struct parse {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
} parse_t;

static size_t left_of(const parse_t *parse)
{
    return (size_t)(parse->end - parse->at);
}

static spill_code_t fail_at(const parse_t *parse, const char *what, spill_error_t *error)
{
    return spill_fail(error, SPILL_PARSE, "the message has %s at byte %zu", what,
                      (size_t)(parse->at - parse->start));
}

static spill_code_t take_int32(parse_t *parse, int32_t *value, spill_error_t *error)
{
    if (left_of(parse) < sizeof *value)
        return fail_at(parse, "an integer that is cut off", error);
    *value = read_int32(parse->at);
    parse->at += sizeof *value;
    return SPILL_OK;
}

static spill_code_t take_text(parse_t *parse, const char **text, spill_error_t *error)
{
    const uint8_t *end = memchr(parse->at, '\0', left_of(parse));
    if (!end)
        return fail_at(parse, "a text without an end", error);
    *text = (const char *)parse->at;
    parse->at = end + 1;
    return SPILL_OK;
}

/* Take one document: its length is right, and its last byte is 0. */
static spill_code_t take_document(parse_t *parse, size_t *size, spill_error_t *error)
{
    int32_t length = left_of(parse) < DOCUMENT_BYTES_MIN ? 0 : read_int32(parse->at);
    if (length < DOCUMENT_BYTES_MIN || (size_t)length > left_of(parse) ||
        parse->at[length - 1] != 0)
        return fail_at(parse, "a document with a wrong length", error);
    *size = (size_t)length;
    parse->at += length;
    return SPILL_OK;
}

static spill_code_t take_body(parse_t *parse, bson_t *body, spill_error_t *error)
{
    const uint8_t *start = parse->at;
    size_t size = 0;
    SPILL_TRY(take_document(parse, &size, error));
    if (!bson_init_static(body, start, size))
        return fail_at(parse, "an invalid document before the position", error);
    return SPILL_OK;
}

static spill_code_t take_sequence(parse_t *parse, spill_wire_message_t *message,
                                  spill_error_t *error)
{
    const uint8_t *start = parse->at;
    int32_t size = 0;
    if (message->sequence_count == SPILL_WIRE_SEQUENCES_MAX)
        return fail_at(parse, "too many sections", error);
    spill_wire_sequence_t *sequence = &message->sequences[message->sequence_count++];
    SPILL_TRY(take_int32(parse, &size, error));
    if (size < (int32_t)sizeof size || (size_t)size > (size_t)(parse->end - start)) {
        parse->at = start;
        return fail_at(parse, "a section with a wrong length", error);
    }
    parse_t documents = {parse->start, parse->at, start + size};
    SPILL_TRY(take_text(&documents, &sequence->name, error));
    for (const spill_wire_sequence_t *each = message->sequences; each < sequence; each++)
        if (strcmp(each->name, sequence->name) == 0)
            return fail_at(&documents, "a second section of a name before the position", error);
    sequence->documents = documents.at;
    sequence->bytes = left_of(&documents);
    while (documents.at < documents.end) {
        size_t bytes = 0;
        SPILL_TRY(take_document(&documents, &bytes, error));
    }
    parse->at = documents.end;
    return SPILL_OK;
}

static spill_code_t check_flags(parse_t *parse, uint32_t flags, spill_error_t *error)
{
    if ((flags & FLAGS_REQUIRED & ~FLAGS_KNOWN) != 0)
        return fail_at(parse, "unknown flags before the position", error);
    if ((flags & SPILL_WIRE_CHECKSUM) == 0)
        return SPILL_OK;
    if (left_of(parse) < CHECKSUM_BYTES)
        return fail_at(parse, "no checksum", error);
    parse->end -= CHECKSUM_BYTES;
    uint32_t found = (uint32_t)read_int32(parse->end);
    if (found != spill_crc32c(parse->start, (size_t)(parse->end - parse->start)))
        return fail_at(parse, "a wrong checksum; the sections begin", error);
    return SPILL_OK;
}

static spill_code_t read_msg(parse_t *parse, spill_wire_message_t *message, spill_error_t *error)
{
    int32_t flags = 0;
    bool has_body = false;
    SPILL_TRY(take_int32(parse, &flags, error));
    message->flags = (uint32_t)flags;
    SPILL_TRY(check_flags(parse, message->flags, error));
    while (parse->at < parse->end) {
        uint8_t kind = *parse->at++;
        if (kind == SEQUENCE) {
            SPILL_TRY(take_sequence(parse, message, error));
        } else if (kind == BODY && !has_body) {
            SPILL_TRY(take_body(parse, &message->body, error));
            has_body = true;
        } else {
            return fail_at(parse, kind == BODY ? "a second body" : "a section of unknown kind",
                           error);
        }
    }
    return has_body ? SPILL_OK : fail_at(parse, "no body", error);
}

static spill_code_t read_query(parse_t *parse, spill_wire_message_t *message, spill_error_t *error)
{
    int32_t flags = 0, skipped = 0, returned = 0;
    size_t fields = 0;
    SPILL_TRY(take_int32(parse, &flags, error));
    SPILL_TRY(take_text(parse, &message->ns, error));
    SPILL_TRY(take_int32(parse, &skipped, error));
    SPILL_TRY(take_int32(parse, &returned, error));
    SPILL_TRY(take_body(parse, &message->body, error));
    if (parse->at < parse->end)
        SPILL_TRY(take_document(parse, &fields, error));
    return parse->at == parse->end ? SPILL_OK : fail_at(parse, "bytes after its end", error);
}

spill_code_t spill_wire_read(const uint8_t *bytes, size_t length, spill_wire_message_t *message,
                             spill_error_t *error)
{
    *message = (spill_wire_message_t){0};
    if (length < SPILL_WIRE_HEADER_BYTES)
        return spill_fail(error, SPILL_PARSE, "a message of %zu bytes has no header", length);
    SPILL_TRY(spill_wire_read_header(bytes, INT32_MAX, &message->header, error));
    if ((size_t)message->header.length != length)
        return spill_fail(error, SPILL_PARSE, "a message of %zu bytes gives its length as %d",
                          length, message->header.length);
    parse_t parse = {bytes, bytes + SPILL_WIRE_HEADER_BYTES, bytes + length};
    if (message->header.opcode == SPILL_WIRE_MSG)
        return read_msg(&parse, message, error);
    if (message->header.opcode == SPILL_WIRE_QUERY)
        return read_query(&parse, message, error);
    return spill_fail(error, SPILL_PARSE, "a message has the opcode %d, which is not served",
                      message->header.opcode);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void append_header(spill_buffer_t *out, size_t length, int32_t request_id,
                          int32_t response_to, int32_t opcode)
{
    append_int32(out, (int32_t)length);
    append_int32(out, request_id);
    append_int32(out, response_to);
    append_int32(out, opcode);
}

static void append_start(spill_buffer_t *out, size_t length, int32_t request_id,
                         int32_t response_to, uint32_t flags)
{
    append_header(out, length, request_id, response_to, SPILL_WIRE_MSG);
    append_int32(out, (int32_t)flags);
    spill_buffer_append_byte(out, BODY);
}

static size_t sequence_bytes(const spill_wire_sequence_t *sequence)
{
    return sizeof(int32_t) + strlen(sequence->name) + 1 + sequence->bytes;
}

bool spill_wire_write(spill_buffer_t *out, int32_t request_id, int32_t response_to, uint32_t flags,
                      const bson_t *body, const spill_wire_sequence_t *sequences, size_t count)
{
    size_t length = SPILL_WIRE_HEADER_BYTES + sizeof(int32_t) + 1 + body->len;
    for (size_t i = 0; i < count; i++)
        length += 1 + sequence_bytes(&sequences[i]);
    if (length > INT32_MAX)
        return false;
    spill_buffer_reserve(out, length);
    append_start(out, length, request_id, response_to, flags);
    spill_buffer_append(out, bson_get_data(body), body->len);
    for (size_t i = 0; i < count; i++) {
        spill_buffer_append_byte(out, SEQUENCE);
        append_int32(out, (int32_t)sequence_bytes(&sequences[i]));
        spill_buffer_append(out, sequences[i].name, strlen(sequences[i].name) + 1);
        spill_buffer_append(out, sequences[i].documents, sequences[i].bytes);
    }
    return true;
}

bool spill_wire_write_start(spill_buffer_t *out, int32_t request_id, int32_t response_to,
                            size_t body_bytes)
{
    size_t length = SPILL_WIRE_HEADER_BYTES + sizeof(int32_t) + 1 + body_bytes;
    if (length > INT32_MAX)
        return false;
    append_start(out, length, request_id, response_to, 0);
    return true;
}

bool spill_wire_write_reply(spill_buffer_t *out, int32_t request_id, int32_t response_to,
                            const bson_t *body)
{
    enum { AWAIT_CAPABLE = 8, FIELDS_BYTES = 20 };
    size_t length = SPILL_WIRE_HEADER_BYTES + FIELDS_BYTES + body->len;
    if (length > INT32_MAX)
        return false;
    append_header(out, length, request_id, response_to, SPILL_WIRE_REPLY);
    append_int32(out, AWAIT_CAPABLE);
    append_int32(out, 0); /* the cursor, 8 bytes */
    append_int32(out, 0);
    append_int32(out, 0); /* the position in the cursor */
    append_int32(out, 1); /* the number of documents */
    spill_buffer_append(out, bson_get_data(body), body->len);
    return true;
}
