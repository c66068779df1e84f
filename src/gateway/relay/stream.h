/*
 * One TCP connection on a loop, with or without TLS. Its owner gets bytes by callbacks and writes
 * without waiting: what the socket does not accept at once is kept, and `unsent` counts it.
 *
 * Threads: the thread of the stream's loop alone.
 */
#ifndef SPILL_GATEWAY_RELAY_STREAM_H
#define SPILL_GATEWAY_RELAY_STREAM_H

#include "gateway/relay/tls.h"
#include "util/buffer.h"

#include <uv.h>

#define SPILL_STREAM_READ_BYTES 65536

/*
 * Long messages are written in slices. libuv 1.44 writes up to nine of them in one turn of its
 * loop, and a stream fills its buffer at most four times in a turn. So the other streams of the
 * loop wait about half a millisecond.
 */
#define SPILL_STREAM_SLICE_BYTES 65536
#define SPILL_STREAM_FULL_READS 4

/* A writer should pause while a stream has this much unsent. */
#define SPILL_STREAM_UNSENT_BYTES_MAX (256 * 1024)

typedef struct spill_stream spill_stream_t;

typedef struct spill_stream_events {
    void (*opened)(spill_stream_t *stream); /* connected, and TLS is set up; may be NULL */
    void (*received)(spill_stream_t *stream, const uint8_t *bytes, size_t size);
    void (*drained)(spill_stream_t *stream); /* all bytes are sent */
    /*
     * The peer ended (then stream->ended is set), or an error: at most once, and not after
     * spill_stream_close. Nothing is read or accepted for writing afterwards.
     */
    void (*broken)(spill_stream_t *stream, const char *why);
    void (*closed)(spill_stream_t *stream); /* its memory may be freed */
} spill_stream_events_t;

struct spill_stream {
    uv_tcp_t tcp;
    uv_connect_t connecting;
    uv_write_t writing;
    uint8_t *read_buffer; /* of the loop, SPILL_STREAM_READ_BYTES */
    const spill_stream_events_t *events;
    void *owner;
    spill_tls_session_t *tls; /* NULL: without */
    spill_buffer_t early;     /* written before it was open */
    spill_buffer_t plain;     /* TLS: not encrypted yet, from plain_at on */
    size_t plain_at;
    spill_buffer_t pending; /* behind the bytes that are being written */
    spill_buffer_t sent;    /* being written in slices, from sent_at on */
    size_t sent_at;
    size_t full_reads; /* in this turn, that have filled the buffer */
    bool open;
    bool reading;
    bool paused;
    bool is_writing;
    bool ended;    /* the peer ended in an orderly way: all that it sent was received */
    bool reported; /* as broken */
    bool failed;   /* a write failed: further ones are dropped, and the next read reports it */
    bool closing;
};

/* Set it up on a loop whose data is the read buffer. `tls` becomes the stream's own. */
void spill_stream_init(spill_stream_t *stream, uv_loop_t *loop, spill_tls_session_t *tls,
                       const spill_stream_events_t *events, void *owner);

/* Accept the next connection of a listener, and begin to read. False: it is broken already. */
bool spill_stream_accept(spill_stream_t *stream, uv_stream_t *listener);

/* Connect. True: `opened` or `broken` follows, in a later turn of the loop. */
bool spill_stream_connect(spill_stream_t *stream, const struct sockaddr *address);

/* Write, also before it is open. */
void spill_stream_write(spill_stream_t *stream, const uint8_t *bytes, size_t size);

/* Write, and take the buffer's memory: long bytes are not copied. The buffer is empty afterwards.
 */
void spill_stream_give(spill_stream_t *stream, spill_buffer_t *bytes);

size_t spill_stream_unsent(const spill_stream_t *stream);

/* Stop and start to read. Some bytes may still arrive after a pause. */
void spill_stream_pause(spill_stream_t *stream, bool paused);

/*
 * Close it; `closed` follows in a later turn of the loop, and no other event. What is unsent is
 * lost.
 */
void spill_stream_close(spill_stream_t *stream);

#endif
