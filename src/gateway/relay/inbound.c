/* The client's bytes as messages. */
#include "gateway/relay/inbound.h"

#include "gateway/relay/dispatch.h"
#include "util/error.h"

/* A message of at most this size is handled when it has arrived completely. */
enum { WHOLE_BYTES_MAX = 65536 };

/* What the client may send ahead while a command is in progress. */
enum { AHEAD_BYTES_MAX = 65536 };

static size_t available(const spill_connection_t *connection)
{
    return connection->input.size - connection->input_at;
}

static const uint8_t *next_bytes(const spill_connection_t *connection)
{
    return connection->input.data + connection->input_at;
}

static bool link_is_full(const spill_connection_t *connection)
{
    return spill_connection_unsent(connection) >= SPILL_STREAM_UNSENT_BYTES_MAX;
}

/* Pass a piece of the current message on. Returns its size. */
static size_t pass_on(spill_connection_t *connection, const uint8_t *bytes, size_t size)
{
    size_t part = connection->passing < size ? connection->passing : size;
    spill_link_write(connection->link, bytes, part);
    connection->passing -= part;
    return part;
}

static size_t drop(spill_connection_t *connection, size_t size)
{
    size_t part = connection->skipping < size ? connection->skipping : size;
    connection->skipping -= part;
    if (connection->skipping == 0)
        spill_dispatch_overloaded(connection);
    return part;
}

/* ---- one message ----------------------------------------------------------------------------- */

/* Collect a long message, or drop it and answer that the limit of memory is reached. */
static bool collect_long(spill_connection_t *connection, const spill_wire_header_t *header,
                         bool unanswered)
{
    size_t length = (size_t)header->length;
    if (!spill_limits_reserve(connection->gateway->limits, length)) {
        connection->skipping = length;
        connection->skipped_request = header->request_id;
        connection->skipped_unanswered = unanswered;
        return true;
    }
    connection->reserved_input = length;
    spill_buffer_reserve(&connection->input, length - available(connection));
    return false; /* wait for the rest */
}

/*
 * A part of a long message has arrived: decide what becomes of the message. True: there is more to
 * do at once.
 */
static bool begin_long(spill_connection_t *connection, const spill_wire_header_t *header)
{
    spill_command_peek_t peek;
    if (connection->reserved_input > 0)
        return false; /* it is being collected */
    spill_peek_result_t result = spill_command_peek(next_bytes(connection), available(connection),
                                                    (size_t)header->length, &peek);
    if (result == SPILL_PEEK_MALFORMED) {
        spill_connection_malformed(connection, "a long message does not begin as an OP_MSG");
        return false;
    }
    if (result == SPILL_PEEK_MORE && available(connection) < WHOLE_BYTES_MAX)
        return false;
    if (result != SPILL_PEEK_KNOWN || !spill_dispatch_streams(connection, &peek))
        return collect_long(connection, header, peek.unanswered);
    if (!spill_connection_need_link(connection))
        return false;
    spill_slow_begin(&connection->slow, connection->gateway->options->slow_ms, peek.name,
                     peek.database, peek.collection);
    spill_dispatch_expect_relayed(connection, header->request_id, peek.unanswered);
    connection->passing = (size_t)header->length;
    return true;
}

/* Read the header at `bytes`, if a message may begin. False: it may not, or is malformed. */
static bool read_header(spill_connection_t *connection, const uint8_t *bytes, size_t size,
                        spill_wire_header_t *header)
{
    spill_error_t error;
    if (connection->awaiting || size < SPILL_WIRE_HEADER_BYTES || link_is_full(connection) ||
        spill_stream_unsent(&connection->client) >= SPILL_STREAM_UNSENT_BYTES_MAX)
        return false;
    if (spill_wire_read_header(bytes, spill_gateway_message_bytes_max(connection->gateway), header,
                               &error) != SPILL_OK) {
        spill_connection_malformed(connection, error.message);
        return false;
    }
    bool is_msg = header->opcode == SPILL_WIRE_MSG;
    if (is_msg || (header->opcode == SPILL_WIRE_QUERY && header->length <= WHOLE_BYTES_MAX))
        return true;
    spill_connection_malformed(connection, "a message is neither an OP_MSG nor a hello");
    return false;
}

/* Handle the message at the input's start, if it has arrived. True: there is more to do at once. */
static bool next_message(spill_connection_t *connection)
{
    spill_wire_header_t header;
    const uint8_t *bytes = next_bytes(connection);
    size_t size = available(connection);
    if (!read_header(connection, bytes, size, &header))
        return false;
    size_t length = (size_t)header.length;
    if (size < length)
        return length > WHOLE_BYTES_MAX && begin_long(connection, &header);
    connection->input_at += length;
    spill_dispatch_message(connection, bytes, length); /* may take the input's memory */
    spill_limits_release(connection->gateway->limits, connection->reserved_input);
    connection->reserved_input = 0;
    return true;
}

/* One step. True: another one may follow. */
static bool step(spill_connection_t *connection)
{
    size_t size = available(connection);
    if (connection->passing > 0) {
        if (size == 0 || link_is_full(connection))
            return false;
        connection->input_at += pass_on(connection, next_bytes(connection), size);
        return true;
    }
    if (connection->skipping > 0) {
        connection->input_at += drop(connection, size);
        return size > 0;
    }
    return next_message(connection);
}

/* ---- all messages ---------------------------------------------------------------------------- */

/* Stop reading while the server is slower than the client, or the client is ahead. */
static void pause_client(spill_connection_t *connection)
{
    bool full = connection->passing > 0 && link_is_full(connection);
    bool ahead = connection->passing == 0 &&
                 available(connection) >= connection->reserved_input + AHEAD_BYTES_MAX;
    spill_stream_pause(&connection->client, full || ahead);
}

/* Note since when the client owes the rest of a message; each piece counts, but for the header. */
static void note_wait(spill_connection_t *connection)
{
    size_t size = available(connection);
    bool owes = !connection->client.paused &&
                (connection->passing > 0 || connection->skipping > 0 ||
                 (size > 0 && !connection->awaiting && !link_is_full(connection)));
    bool header = owes && connection->passing == 0 && connection->skipping == 0 &&
                  size < SPILL_WIRE_HEADER_BYTES;
    if (!owes)
        connection->waits_since_ms = 0;
    else if (!header || !connection->waits_for_header || connection->waits_since_ms == 0)
        connection->waits_since_ms = connection->loop->now_ms;
    connection->waits_for_header = header;
}

/* Are bytes unsent to the server, or is a command without a reply in progress here? */
static bool owes_server(const spill_connection_t *connection)
{
    return spill_connection_unsent(connection) > 0 ||
           (connection->job && spill_translation_job_unanswered(connection->job));
}

void spill_inbound_continue(spill_connection_t *connection)
{
    while (!connection->closing && step(connection)) {
    }
    if (connection->closing)
        return;
    if (available(connection) == 0) {
        spill_buffer_release(&connection->input);
        connection->input_at = 0;
    } else if (connection->input_at > WHOLE_BYTES_MAX) {
        spill_buffer_t rest = SPILL_BUFFER_INIT;
        spill_buffer_append(&rest, next_bytes(connection), available(connection));
        spill_buffer_release(&connection->input);
        connection->input = rest;
        connection->input_at = 0;
    }
    pause_client(connection);
    note_wait(connection);
    if (connection->ending && !owes_server(connection))
        spill_connection_close(connection, "the client ended");
    else if (connection->loop->draining && spill_connection_is_idle(connection))
        spill_connection_close(connection, "the gateway ends");
}

/* Are the bytes a whole message, and nothing before it waits? Then they need no copy. */
static bool is_one_message(spill_connection_t *connection, const uint8_t *bytes, size_t size)
{
    spill_wire_header_t header;
    return connection->passing == 0 && connection->skipping == 0 && available(connection) == 0 &&
           read_header(connection, bytes, size, &header) && (size_t)header.length == size;
}

void spill_inbound_received(spill_connection_t *connection, const uint8_t *bytes, size_t size)
{
    spill_metrics_add(&connection->gateway->metrics.received_bytes, (int64_t)size);
    if (connection->passing > 0 && available(connection) == 0 && !link_is_full(connection)) {
        size_t part = pass_on(connection, bytes, size); /* without a copy */
        bytes += part;
        size -= part;
    }
    if (is_one_message(connection, bytes, size))
        spill_dispatch_message(connection, bytes, size);
    else
        spill_buffer_append(&connection->input, bytes, size);
    spill_inbound_continue(connection);
}

void spill_inbound_end(spill_connection_t *connection)
{
    connection->ending = true;
    connection->ending_since_ms = connection->loop->now_ms;
    connection->ending_unsent = spill_connection_unsent(connection);
    if (connection->link)
        spill_link_pause(connection->link, false); /* a server that cannot send may not read */
    spill_inbound_continue(connection);
}
