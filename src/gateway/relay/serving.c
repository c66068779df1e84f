/* The events of sockets and loops. */
#include "gateway/relay/serving.h"

#include "gateway/gateway_log.h"
#include "gateway/relay/connection.h"
#include "gateway/relay/dispatch.h"
#include "gateway/relay/inbound.h"

/* ---- the client's socket --------------------------------------------------------------------- */

static void client_opened(spill_stream_t *stream)
{
    spill_connection_t *connection = stream->owner;
    connection->waits_since_ms = connection->loop->now_ms;
}

static void client_received(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    spill_inbound_received(stream->owner, bytes, size);
}

static void client_drained(spill_stream_t *stream)
{
    spill_connection_t *connection = stream->owner;
    spill_connection_release_reply(connection);
    if (connection->link)
        spill_link_pause(connection->link, false);
    spill_inbound_continue(connection);
}

static void client_broken(spill_stream_t *stream, const char *why)
{
    if (stream->ended)
        spill_inbound_end(stream->owner);
    else
        spill_connection_close(stream->owner, why);
}

static void client_closed(spill_stream_t *stream)
{
    spill_connection_t *connection = stream->owner;
    connection->client_closed = true;
    if (connection->admitted)
        spill_limits_leave(connection->gateway->limits, &connection->peer);
    spill_connection_free_if_done(connection);
}

static const spill_stream_events_t client_events = {.opened = client_opened,
                                                    .received = client_received,
                                                    .drained = client_drained,
                                                    .broken = client_broken,
                                                    .closed = client_closed};

/* ---- the upstream link ----------------------------------------------------------------------- */

static void link_reply_part(void *owner, const uint8_t *bytes, size_t size)
{
    spill_connection_t *connection = owner;
    spill_connection_send(connection, bytes, size);
    if (!connection->ending &&
        spill_stream_unsent(&connection->client) >= SPILL_STREAM_UNSENT_BYTES_MAX)
        spill_link_pause(connection->link, true);
}

static void link_reply_end(void *owner)
{
    spill_connection_t *connection = owner;
    connection->awaiting = false;
    spill_metrics_duration(&connection->gateway->metrics, SPILL_METRICS_RELAYED,
                           (int64_t)((uv_hrtime() - connection->relayed_ns) / 1000));
    spill_connection_note_slow(connection, SPILL_METRICS_RELAYED);
    spill_inbound_continue(connection);
}

static void link_collected(void *owner, spill_buffer_t *message)
{
    spill_dispatch_collected(owner, message);
    spill_inbound_continue(owner);
}

static void link_drained(void *owner)
{
    spill_inbound_continue(owner);
}

static void link_broken(void *owner, const char *why)
{
    spill_connection_t *connection = owner;
    spill_gateway_t *gateway = connection->gateway;
    spill_metrics_add(&gateway->metrics.failures, 1);
    spill_gateway_log("upstream failed",
                      BCON_NEW("connection", BCON_INT32(connection->id), "cause", BCON_UTF8(why),
                               "in_progress", BCON_BOOL(connection->awaiting)));
    spill_targets_renew(gateway->targets);
    spill_connection_close(connection, why);
}

static void link_closed(void *owner)
{
    spill_connection_t *connection = owner;
    connection->link = NULL;
    spill_connection_free_if_done(connection);
}

static const spill_link_events_t link_events = {.reply_part = link_reply_part,
                                                .reply_end = link_reply_end,
                                                .collected = link_collected,
                                                .drained = link_drained,
                                                .broken = link_broken,
                                                .closed = link_closed};

/* ---- the worker ------------------------------------------------------------------------------ */

static bool job_send(void *owner, int32_t request_id, spill_buffer_t *message)
{
    spill_connection_t *connection = owner;
    if (connection->closing || !spill_connection_need_link(connection))
        return false;
    connection->collecting = SPILL_COLLECTING_JOB;
    spill_link_expect_collected(connection->link, request_id);
    spill_link_give(connection->link, message);
    return true;
}

static void job_done(void *owner)
{
    spill_connection_t *connection = owner;
    spill_dispatch_job_done(connection);
    if (connection->closing)
        spill_connection_free_if_done(connection);
    else
        spill_inbound_continue(connection);
}

static const spill_translation_host_t job_host = {.send = job_send, .done = job_done};

/* ---- the loop -------------------------------------------------------------------------------- */

static spill_tls_session_t *make_session(spill_gateway_t *gateway, bool *failed)
{
    pthread_mutex_lock(&gateway->lock);
    spill_tls_session_t *session = gateway->tls ? spill_tls_session_new(gateway->tls, NULL) : NULL;
    *failed = gateway->tls && !session;
    pthread_mutex_unlock(&gateway->lock);
    return session;
}

static bool admit(spill_connection_t *connection)
{
    struct sockaddr_storage address = {0};
    int size = sizeof address;
    uv_tcp_getpeername(&connection->client.tcp, (struct sockaddr *)&address, &size);
    connection->peer = spill_peer_of((struct sockaddr *)&address);
    const char *refusal = spill_limits_admit(connection->gateway->limits, &connection->peer);
    if (!refusal)
        return true;
    spill_metrics_add(&connection->gateway->metrics.refused, 1);
    spill_gateway_log("connection refused", BCON_NEW("cause", BCON_UTF8(refusal)));
    return false;
}

static void incoming(spill_loop_t *loop, uv_stream_t *listener)
{
    spill_gateway_t *gateway = loop->context;
    bool failed;
    spill_tls_session_t *session = make_session(gateway, &failed);
    spill_connection_t *connection = spill_connection_new(loop, session, &client_events);
    bool accepted = spill_stream_accept(&connection->client, listener);
    connection->admitted = accepted && admit(connection);
    if (!connection->admitted || failed) {
        spill_connection_close(connection, "the connection is not admitted");
        return;
    }
    spill_metrics_add(&gateway->metrics.accepted, 1);
    connection->waits_since_ms = loop->now_ms; /* it owes its first message */
    connection->waits_for_header = true;
}

/* The client has ended. Close its connection if the server takes nothing more of what it sent. */
static void check_ending(spill_connection_t *connection)
{
    enum { STUCK_MS = 10000 };
    size_t unsent = spill_connection_unsent(connection);
    if (unsent != connection->ending_unsent) {
        connection->ending_unsent = unsent;
        connection->ending_since_ms = connection->loop->now_ms;
    }
    if (connection->loop->now_ms - connection->ending_since_ms <= STUCK_MS)
        return;
    spill_metrics_add(&connection->gateway->metrics.failures, 1);
    spill_gateway_log("messages lost",
                      BCON_NEW("connection", BCON_INT32(connection->id), "bytes",
                               BCON_INT64((int64_t)unsent), "cause",
                               BCON_UTF8("the client ended, and the server reads nothing")));
    spill_connection_close(connection, "the server reads nothing of what the client sent");
}

/* Close a connection that owes a part of a message, or whose upstream is not the primary now. */
static void check_connection(spill_connection_t *connection, int64_t generation)
{
    spill_gateway_t *gateway = connection->gateway;
    int64_t most_ms = gateway->options->header_seconds * 1000;
    if (connection->ending) {
        check_ending(connection);
    } else if (connection->waits_since_ms > 0 &&
               connection->loop->now_ms - connection->waits_since_ms > most_ms) {
        spill_metrics_add(&gateway->metrics.timed_out, 1);
        spill_connection_close(connection, "the client did not send the rest of a message");
    } else if (connection->link && spill_link_generation(connection->link) != generation &&
               spill_connection_is_idle(connection)) {
        spill_connection_close(connection, "there is another primary");
    }
}

static void tick(spill_loop_t *loop)
{
    const spill_gateway_t *gateway = loop->context;
    int64_t generation = spill_targets_generation(gateway->targets);
    for (spill_connection_t *each = loop->connections; each; each = each->next)
        if (!each->closing)
            check_connection(each, generation);
}

static void drain(spill_loop_t *loop)
{
    for (spill_connection_t *each = loop->connections; each; each = each->next)
        if (spill_connection_is_idle(each))
            spill_connection_close(each, "the gateway ends");
}

static void abort_all(spill_loop_t *loop)
{
    for (spill_connection_t *each = loop->connections; each; each = each->next)
        spill_connection_close(each, "the gateway ends");
}

const spill_loop_events_t *spill_serving_events(void)
{
    static const spill_loop_events_t events = {
        .incoming = incoming, .tick = tick, .drain = drain, .abort = abort_all};
    spill_connection_link_events = &link_events;
    spill_connection_job_host = &job_host;
    return &events;
}
