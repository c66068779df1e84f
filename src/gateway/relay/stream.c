/* One TCP connection, with or without TLS. */
#include "gateway/relay/stream.h"

#include <bson/bson.h>
#include <string.h>

static void report_broken(spill_stream_t *stream, const char *why)
{
    if (stream->closing || stream->reported)
        return;
    stream->failed = true;
    stream->reported = true;
    stream->events->broken(stream, why);
}

/* The peer ends in an orderly way: there is nothing more to read. */
static void report_ended(spill_stream_t *stream, const char *why)
{
    if (!stream->closing)
        uv_read_stop((uv_stream_t *)&stream->tcp);
    stream->ended = true;
    report_broken(stream, why);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void start_write(spill_stream_t *stream);
static void encrypt_slice(spill_stream_t *stream);

static size_t slice_of(size_t size)
{
    return size < SPILL_STREAM_SLICE_BYTES ? size : SPILL_STREAM_SLICE_BYTES;
}

static void written(uv_write_t *writing, int status)
{
    spill_stream_t *stream = writing->data;
    stream->is_writing = false;
    stream->sent_at += slice_of(stream->sent.size - stream->sent_at);
    if (stream->closing || status < 0 || stream->sent_at == stream->sent.size) {
        spill_buffer_release(&stream->sent);
        stream->sent_at = 0;
    }
    if (stream->closing)
        return;
    if (status < 0) {
        report_broken(stream, uv_strerror(status));
        return;
    }
    if (stream->failed)
        return;
    if (stream->sent.size > 0 || stream->pending.size > 0)
        start_write(stream);
    else if (stream->plain.size > 0)
        encrypt_slice(stream);
    else
        stream->events->drained(stream);
}

/* Write the next slice. `written` follows in a later turn, after other streams had theirs. */
static void start_write(spill_stream_t *stream)
{
    if (stream->sent.size == 0) {
        stream->sent = stream->pending;
        stream->pending = (spill_buffer_t)SPILL_BUFFER_INIT;
    }
    uv_buf_t bytes = uv_buf_init((char *)stream->sent.data + stream->sent_at,
                                 (unsigned)slice_of(stream->sent.size - stream->sent_at));
    stream->writing.data = stream;
    stream->is_writing = true;
    if (uv_write(&stream->writing, (uv_stream_t *)&stream->tcp, &bytes, 1, written) != 0) {
        stream->is_writing = false;
        stream->failed = true;
        spill_buffer_release(&stream->sent);
        stream->sent_at = 0;
        spill_stream_pause(stream, false); /* the read reports what is wrong */
    }
}

/* Write to the socket at once what it accepts of the first slice, and keep the rest. */
static void write_socket(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    if (stream->failed || size == 0)
        return;
    if (!stream->is_writing) {
        uv_buf_t part = uv_buf_init((char *)bytes, (unsigned)slice_of(size));
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

static void encrypt(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    if (!spill_tls_write(stream->tls, bytes, size)) {
        stream->failed = true;
        spill_stream_pause(stream, false);
    }
}

/* Encrypt the next slice of the plain text, and write it. `written` follows in a later turn. */
static void encrypt_slice(spill_stream_t *stream)
{
    size_t size, part = slice_of(stream->plain.size - stream->plain_at);
    encrypt(stream, stream->plain.data + stream->plain_at, part);
    stream->plain_at += part;
    if (stream->plain_at == stream->plain.size) {
        spill_buffer_release(&stream->plain);
        stream->plain_at = 0;
    }
    const uint8_t *bytes = spill_tls_output(stream->tls, &size);
    if (!stream->failed)
        spill_buffer_append(&stream->pending, bytes, size);
    spill_tls_taken(stream->tls);
    if (!stream->is_writing && stream->pending.size > 0)
        start_write(stream);
}

/* Encrypt and write the first slice, and keep the rest as plain text. */
static void write_tls(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    size_t part = stream->plain.size > 0 ? 0 : slice_of(size);
    if (part > 0) {
        encrypt(stream, bytes, part);
        flush_tls(stream);
    }
    spill_buffer_append(&stream->plain, bytes + part, size - part);
    if (part > 0 && stream->plain.size > 0 && !stream->is_writing && !stream->failed)
        encrypt_slice(stream);
}

void spill_stream_write(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    if (stream->closing || stream->failed)
        return;
    if (!stream->open)
        spill_buffer_append(&stream->early, bytes, size);
    else if (stream->tls)
        write_tls(stream, bytes, size);
    else
        write_socket(stream, bytes, size);
}

void spill_stream_give(spill_stream_t *stream, spill_buffer_t *bytes)
{
    bool usable = !stream->closing && !stream->failed;
    spill_buffer_t *queue = !stream->open ? &stream->early
                            : stream->tls ? &stream->plain
                                          : &stream->pending;
    if (!usable || queue->size > 0 || bytes->size <= SPILL_STREAM_SLICE_BYTES) {
        spill_stream_write(stream, bytes->data, bytes->size);
        spill_buffer_release(bytes);
        return;
    }
    spill_buffer_release(queue);
    *queue = *bytes;
    *bytes = (spill_buffer_t)SPILL_BUFFER_INIT;
    if (!stream->open || stream->is_writing)
        return;
    if (stream->tls)
        encrypt_slice(stream);
    else
        start_write(stream);
}

size_t spill_stream_unsent(const spill_stream_t *stream)
{
    return stream->early.size + stream->plain.size - stream->plain_at + stream->pending.size +
           stream->sent.size - stream->sent_at;
}

static void become_open(spill_stream_t *stream)
{
    spill_buffer_t early = stream->early;
    stream->early = (spill_buffer_t)SPILL_BUFFER_INIT;
    stream->open = true;
    bool was_full = early.size > 0;
    spill_stream_give(stream, &early);
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
        if (got < 0 && spill_tls_ended(stream->tls))
            report_ended(stream, "the peer ended the TLS session");
        else if (got < 0)
            report_broken(stream, "the TLS session failed");
        if (got < 0)
            return;
        stream->events->received(stream, stream->read_buffer, (size_t)got);
    }
    if (!stream->closing)
        flush_tls(stream); /* what TLS itself answers */
}

/* libuv reads on while the buffer is filled. No buffer: other streams come first (UV_ENOBUFS). */
static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)suggested;
    spill_stream_t *stream = handle->data;
    bool may = stream->full_reads < SPILL_STREAM_FULL_READS;
    *buffer = uv_buf_init((char *)stream->read_buffer, may ? SPILL_STREAM_READ_BYTES : 0);
}

static void has_read(uv_stream_t *tcp, ssize_t got, const uv_buf_t *buffer)
{
    spill_stream_t *stream = tcp->data;
    stream->full_reads = got == SPILL_STREAM_READ_BYTES ? stream->full_reads + 1 : 0;
    if (got == 0 || got == UV_ENOBUFS || stream->closing)
        return;
    if (got == UV_EOF)
        report_ended(stream, "the peer closed it");
    else if (got < 0)
        report_broken(stream, uv_strerror((int)got));
    else if (stream->tls)
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
    if (stream->closing || stream->ended || !stream->open)
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
    spill_buffer_release(&stream->plain);
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
