/*
 * The MongoDB wire protocol: the frames of messages, as bytes. Nothing here knows sockets.
 *
 * Sources: the MongoDB wire protocol and the OP_MSG specification. All integers are little-endian.
 */
#ifndef SPILL_GATEWAY_RELAY_WIRE_H
#define SPILL_GATEWAY_RELAY_WIRE_H

#include "util/buffer.h"
#include "util/error.h"

#include <bson/bson.h>

#define SPILL_WIRE_HEADER_BYTES 16
#define SPILL_WIRE_MESSAGE_BYTES_MAX 48000000 /* unless the server's hello says otherwise */

typedef enum spill_wire_opcode {
    SPILL_WIRE_REPLY = 1,
    SPILL_WIRE_QUERY = 2004,
    SPILL_WIRE_COMPRESSED = 2012,
    SPILL_WIRE_MSG = 2013
} spill_wire_opcode_t;

/* Flags of an OP_MSG. A flag among the low 16 bits that the receiver does not know is an error. */
#define SPILL_WIRE_CHECKSUM 0x1u
#define SPILL_WIRE_MORE_TO_COME 0x2u
#define SPILL_WIRE_EXHAUST_ALLOWED 0x10000u

typedef struct spill_wire_header {
    int32_t length; /* of the whole message, with this header */
    int32_t request_id;
    int32_t response_to;
    int32_t opcode;
} spill_wire_header_t;

/* A section of kind 1: documents one after the other, under a name such as "documents". */
typedef struct spill_wire_sequence {
    const char *name;
    const uint8_t *documents;
    size_t bytes;
} spill_wire_sequence_t;

#define SPILL_WIRE_SEQUENCES_MAX 4

/* A message that was read; it borrows from the bytes. */
typedef struct spill_wire_message {
    spill_wire_header_t header;
    uint32_t flags; /* OP_MSG */
    const char *ns; /* OP_QUERY: "admin.$cmd" */
    bson_t body;    /* static: the section of kind 0, or the query */
    spill_wire_sequence_t sequences[SPILL_WIRE_SEQUENCES_MAX];
    size_t sequence_count;
} spill_wire_message_t;

/* Read 16 bytes. SPILL_PARSE: the length is below 16 or above `most`. */
spill_code_t spill_wire_read_header(const uint8_t *bytes, int32_t most, spill_wire_header_t *header,
                                    spill_error_t *error);

/*
 * Read a whole OP_MSG or OP_QUERY of header->length bytes: check sections, flags and, if its bit is
 * set, the checksum (crc32c). The body and each document of a sequence lie within the message and
 * their lengths are right; their content is not checked. SPILL_PARSE: the message is malformed; the
 * error names the offset. Cost: O(number of sections and documents), and the checksum's pass.
 */
spill_code_t spill_wire_read(const uint8_t *bytes, size_t length, spill_wire_message_t *message,
                             spill_error_t *error);

/*
 * Append an OP_MSG to `out`. `flags` must not have the checksum's bit. False: it would be longer
 * than a message can be.
 */
bool spill_wire_write(spill_buffer_t *out, int32_t request_id, int32_t response_to, uint32_t flags,
                      const bson_t *body, const spill_wire_sequence_t *sequences, size_t count);

/* Append what comes before the body in an OP_MSG that has no other section. False: as above. */
bool spill_wire_write_start(spill_buffer_t *out, int32_t request_id, int32_t response_to,
                            size_t body_bytes);

/* Append an OP_REPLY with one document to `out`. False: as above. */
bool spill_wire_write_reply(spill_buffer_t *out, int32_t request_id, int32_t response_to,
                            const bson_t *body);

#endif
