/* One TCP connection, with or without TLS. */
#include "gateway/relay/stream.h"

#include <bson/bson.h>
#include <string.h>

static void report_broken(spill_stream_t *stream, const char *why)
{
    if (stream->closing)
        return;
    stream->failed = true;
    stream->events->broken(stream, why);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void start_write(spill_stream_t *stream);

static void written(uv_write_t *writing, int status)
{
    spill_stream_t *stream = writing->data;
    stream->is_writing = false;
    spill_buffer_release(&stream->sent);
    if (stream->closing)
        return;
    if (status < 0) {
        report_broken(stream, uv_strerror(status));
        return;
    }
    if (stream->pending.size > 0)
        start_write(stream);
    else
        stream->events->drained(stream);
}

static void start_write(spill_stream_t *stream)
{
    stream->sent = stream->pending;
    stream->pending = (spill_buffer_t)SPILL_BUFFER_INIT;
    uv_buf_t bytes = uv_buf_init((char *)stream->sent.data, (unsigned)stream->sent.size);
    stream->writing.data = stream;
    stream->is_writing = true;
    if (uv_write(&stream->writing, (uv_stream_t *)&stream->tcp, &bytes, 1, written) != 0) {
        stream->is_writing = false;
        stream->failed = true;
        spill_buffer_release(&stream->sent);
        spill_stream_pause(stream, false); /* the read reports what is wrong */
    }
}

/* Write to the socket at once what it accepts, and keep the rest. */
static void write_socket(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    if (stream->failed || size == 0)
        return;
    if (!stream->is_writing) {
        uv_buf_t part = uv_buf_init((char *)bytes, (unsigned)size);
        int accepted = uv_try_write((uv_stream_t *)&stream->tcp, &part, 1);
        if (accepted < 0 && accepted != UV_EAGAIN) {
            stream->failed = true;
            spill_stream_pause(stream, false);
            return;
        }
        done = accepted > 0 ? (size_t)accepted : 0;
    }
    if (done == size)
        return;
    spill_buffer_append(&stream->pending, bytes + done, size - done);
    if (!stream->is_writing)
        start_write(stream);
}

/* Send what TLS has produced. */
static void flush_tls(spill_stream_t *stream)
{
    size_t size;
    const uint8_t *bytes = spill_tls_output(stream->tls, &size);
    write_socket(stream, bytes, size);
    spill_tls_taken(stream->tls);
}

void spill_stream_write(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    if (stream->closing || stream->failed)
        return;
    if (!stream->open) {
        spill_buffer_append(&stream->early, bytes, size);
        return;
    }
    if (!stream->tls) {
        write_socket(stream, bytes, size);
        return;
    }
    if (!spill_tls_write(stream->tls, bytes, size)) {
        stream->failed = true;
        spill_stream_pause(stream, false);
    }
    flush_tls(stream);
}

size_t spill_stream_unsent(const spill_stream_t *stream)
{
    return stream->early.size + stream->pending.size + (stream->is_writing ? stream->sent.size : 0);
}

static void become_open(spill_stream_t *stream)
{
    spill_buffer_t early = stream->early;
    stream->early = (spill_buffer_t)SPILL_BUFFER_INIT;
    stream->open = true;
    spill_stream_write(stream, early.data, early.size);
    bool was_full = early.size > 0;
    spill_buffer_release(&early);
    if (stream->events->opened)
        stream->events->opened(stream);
    if (was_full && !stream->closing && spill_stream_unsent(stream) == 0)
        stream->events->drained(stream);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool continue_handshake(spill_stream_t *stream)
{
    char why[200];
    spill_tls_state_t state = spill_tls_handshake(stream->tls, why, sizeof why);
    flush_tls(stream); /* also the alert that says what is wrong */
    if (state == SPILL_TLS_FAILED)
        report_broken(stream, why);
    if (state == SPILL_TLS_OPEN)
        become_open(stream);
    return state == SPILL_TLS_OPEN && !stream->closing;
}

static void receive_tls(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    spill_tls_receive(stream->tls, bytes, size);
    if (!stream->open && !continue_handshake(stream))
        return;
    int got;
    while (!stream->closing &&
           (got = spill_tls_read(stream->tls, stream->read_buffer, SPILL_STREAM_READ_BYTES)) != 0) {
        if (got < 0) {
            report_broken(stream, "the peer ended the TLS session");
            return;
        }
        stream->events->received(stream, stream->read_buffer, (size_t)got);
    }
    if (!stream->closing)
        flush_tls(stream); /* what TLS itself answers */
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)suggested;
    spill_stream_t *stream = handle->data;
    *buffer = uv_buf_init((char *)stream->read_buffer, SPILL_STREAM_READ_BYTES);
}

static void has_read(uv_stream_t *tcp, ssize_t got, const uv_buf_t *buffer)
{
    spill_stream_t *stream = tcp->data;
    if (got == 0 || stream->closing)
        return;
    if (got < 0) {
        report_broken(stream, got == UV_EOF ? "the peer closed it" : uv_strerror((int)got));
        return;
    }
    if (stream->tls)
        receive_tls(stream, (const uint8_t *)buffer->base, (size_t)got);
    else
        stream->events->received(stream, (const uint8_t *)buffer->base, (size_t)got);
}

static void start_reading(spill_stream_t *stream)
{
    if (uv_read_start((uv_stream_t *)&stream->tcp, give_buffer, has_read) == 0)
        stream->reading = true;
}

void spill_stream_pause(spill_stream_t *stream, bool paused)
{
    stream->paused = paused && !stream->failed;
    if (stream->closing || !stream->open)
        return;
    if (stream->paused && stream->reading) {
        uv_read_stop((uv_stream_t *)&stream->tcp);
        stream->reading = false;
    } else if (!stream->paused && !stream->reading) {
        start_reading(stream);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

void spill_stream_init(spill_stream_t *stream, uv_loop_t *loop, spill_tls_session_t *tls,
                       const spill_stream_events_t *events, void *owner)
{
    *stream =
        (spill_stream_t){.read_buffer = loop->data, .events = events, .owner = owner, .tls = tls};
    uv_tcp_init(loop, &stream->tcp);
    stream->tcp.data = stream;
}

bool spill_stream_accept(spill_stream_t *stream, uv_stream_t *listener)
{
    if (uv_accept(listener, (uv_stream_t *)&stream->tcp) != 0)
        return false;
    uv_tcp_nodelay(&stream->tcp, 1);
    stream->open = !stream->tls;
    start_reading(stream);
    return true;
}

static void connected(uv_connect_t *connecting, int status)
{
    spill_stream_t *stream = connecting->data;
    if (stream->closing)
        return;
    if (status < 0) {
        report_broken(stream, uv_strerror(status));
        return;
    }
    uv_tcp_nodelay(&stream->tcp, 1);
    start_reading(stream);
    if (stream->tls)
        continue_handshake(stream);
    else
        become_open(stream);
}

bool spill_stream_connect(spill_stream_t *stream, const struct sockaddr *address)
{
    stream->connecting.data = stream;
    return uv_tcp_connect(&stream->connecting, &stream->tcp, address, connected) == 0;
}

static void has_closed(uv_handle_t *handle)
{
    spill_stream_t *stream = handle->data;
    spill_buffer_release(&stream->early);
    spill_buffer_release(&stream->pending);
    if (!stream->is_writing)
        spill_buffer_release(&stream->sent);
    spill_tls_session_free(stream->tls);
    stream->tls = NULL;
    stream->events->closed(stream);
}

void spill_stream_close(spill_stream_t *stream)
{
    if (stream->closing)
        return;
    if (stream->tls && stream->open && !stream->failed) {
        spill_tls_end(stream->tls);
        flush_tls(stream);
    }
    stream->closing = true;
    uv_close((uv_handle_t *)&stream->tcp, has_closed);
}
