/* The life of a connection, and what it sends. */
#include "gateway/relay/connection.h"

#include "gateway/gateway_log.h"

#include <string.h>

const spill_link_events_t *spill_connection_link_events;
const spill_translation_host_t *spill_connection_job_host;

spill_connection_t *spill_connection_new(spill_loop_t *loop, spill_tls_session_t *tls,
                                         const spill_stream_events_t *events)
{
    spill_connection_t *connection = bson_malloc0(sizeof *connection);
    spill_connection_t *first = loop->connections;
    connection->gateway = loop->context;
    connection->loop = loop;
    connection->id = atomic_fetch_add(&connection->gateway->connections, 1) + 1;
    connection->next = first;
    if (first)
        first->previous = connection;
    loop->connections = connection;
    loop->connection_count++;
    spill_stream_init(&connection->client, &loop->uv, tls, events, connection);
    return connection;
}

static void unlink_connection(spill_connection_t *connection)
{
    spill_loop_t *loop = connection->loop;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        loop->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    loop->connection_count--;
}

void spill_connection_free_if_done(spill_connection_t *connection)
{
    spill_loop_t *loop = connection->loop;
    if (!connection->client_closed || connection->link || connection->job)
        return;
    unlink_connection(connection);
    if (connection->numbered && connection->push_turn.recorded)
        spill_connection_forget_numbered(connection);
    else if (connection->numbered)
        spill_connection_end_numbered(connection, NULL);
    spill_connection_release_reply(connection);
    spill_push_turn_end(connection->gateway->served, &connection->push_turn);
    spill_limits_release(connection->gateway->limits, connection->reserved_input);
    spill_buffer_release(&connection->input);
    spill_buffer_release(&connection->first_message);
    spill_rights_free(connection->rights);
    bson_free(connection->slow);
    bson_destroy(connection->hello);
    bson_free(connection);
    spill_loop_emptied(loop);
}

void spill_connection_close(spill_connection_t *connection, const char *why)
{
    if (connection->closing)
        return;
    connection->closing = true;
    if (connection->job)
        spill_translation_job_break(connection->job, why);
    if (connection->link)
        spill_link_close(connection->link);
    spill_stream_close(&connection->client);
}

void spill_connection_malformed(spill_connection_t *connection, const char *why)
{
    spill_metrics_add(&connection->gateway->metrics.malformed, 1);
    spill_gateway_log("malformed message",
                      BCON_NEW("connection", BCON_INT32(connection->id), "cause", BCON_UTF8(why)));
    spill_connection_close(connection, why);
}

bool spill_connection_need_link(spill_connection_t *connection)
{
    spill_gateway_t *gateway = connection->gateway;
    if (connection->link)
        return true;
    connection->link = spill_link_open(&connection->loop->uv, spill_targets_get(gateway->targets),
                                       spill_targets_tls(gateway->targets), gateway->limits,
                                       spill_connection_link_events, connection);
    if (!connection->link)
        spill_connection_close(connection, "the primary has no address that can be tried");
    return connection->link != NULL;
}

size_t spill_connection_unsent(const spill_connection_t *connection)
{
    return connection->link ? spill_link_unsent(connection->link) : 0;
}

bool spill_connection_is_idle(const spill_connection_t *connection)
{
    return !connection->awaiting && connection->passing == 0 && connection->skipping == 0 &&
           connection->input.size == connection->input_at &&
           spill_stream_unsent(&connection->client) == 0 &&
           spill_connection_unsent(connection) == 0;
}

void spill_connection_send(spill_connection_t *connection, const uint8_t *bytes, size_t size)
{
    spill_metrics_add(&connection->gateway->metrics.sent_bytes, (int64_t)size);
    spill_stream_write(&connection->client, bytes, size);
}

void spill_connection_reply(spill_connection_t *connection, int32_t request_id, bool by_query,
                            const bson_t *document)
{
    enum { SCRATCH_BYTES_KEPT = 1 << 20 };
    spill_buffer_t *scratch = &connection->loop->scratch;
    int32_t own_id = ++connection->next_request;
    spill_buffer_clear(scratch);
    bool fits = by_query ? spill_wire_write_reply(scratch, own_id, request_id, document)
                         : spill_wire_write(scratch, own_id, request_id, 0, document, NULL, 0);
    if (fits)
        spill_connection_send(connection, scratch->data, scratch->size);
    else
        spill_connection_close(connection, "the reply is longer than a message can be");
    if (scratch->capacity > SCRATCH_BYTES_KEPT)
        spill_buffer_release(scratch);
}

void spill_connection_reply_with(spill_connection_t *connection, int32_t request_id,
                                 bson_t *document)
{
    uint32_t size = document->len;
    spill_buffer_t *scratch = &connection->loop->scratch;
    if (size <= SPILL_STREAM_SLICE_BYTES) {
        spill_connection_reply(connection, request_id, false, document);
        bson_destroy(document);
        return;
    }
    spill_buffer_clear(scratch);
    bool fits = spill_wire_write_start(scratch, ++connection->next_request, request_id, size);
    spill_buffer_t body = {.data = bson_destroy_with_steal(document, true, NULL), size, size};
    if (fits) {
        spill_connection_send(connection, scratch->data, scratch->size);
        spill_metrics_add(&connection->gateway->metrics.sent_bytes, (int64_t)size);
        spill_stream_give(&connection->client, &body);
    } else {
        spill_connection_close(connection, "the reply is longer than a message can be");
        spill_buffer_release(&body);
    }
}

void spill_connection_end_numbered(spill_connection_t *connection, const bson_t *reply)
{
    spill_retries_end(connection->gateway->retries, &connection->retry_key, connection->retry_txn,
                      (int64_t)uv_now(&connection->loop->uv), reply);
    connection->numbered = false;
}

void spill_connection_forget_numbered(spill_connection_t *connection)
{
    spill_retries_forget(connection->gateway->retries, &connection->retry_key,
                         connection->retry_txn, (int64_t)uv_now(&connection->loop->uv));
    connection->numbered = false;
}

void spill_connection_release_reply(spill_connection_t *connection)
{
    spill_limits_release(connection->gateway->limits, connection->reserved_reply);
    connection->reserved_reply = 0;
}

void spill_connection_note_slow(spill_connection_t *connection, spill_metrics_class_t class)
{
    spill_slow_end(connection->slow, connection->gateway->options->slow_ms, class);
}
