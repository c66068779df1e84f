/* The upstream socket of one client connection, and the frames of its replies. */
#include "gateway/relay/link.h"

#include "gateway/relay/wire.h"
#include "util/error.h"

#include <limits.h>
#include <string.h>

/* What must be read of a message to know its end and whether another one follows. */
enum { FLAGS_BYTES = 4, HEAD_BYTES = SPILL_WIRE_HEADER_BYTES + FLAGS_BYTES };

typedef enum expected { EXPECT_NOTHING, EXPECT_RELAYED, EXPECT_COLLECTED } expected_t;

struct spill_link {
    spill_stream_t stream;
    uv_loop_t *loop;
    const spill_tls_context_t *tls;
    spill_limits_t *limits;
    const spill_link_events_t *events;
    void *owner;
    spill_target_t *target;
    size_t address;        /* that is being tried, or is connected */
    spill_buffer_t unsent; /* kept from one address to the next */
    bool retrying;
    bool closing;

    expected_t expected;
    int32_t request_id;       /* of the request with the expected reply */
    size_t unanswered;        /* requests without a reply, to which the server might reply */
    bool dropping;            /* the message that is arriving is such a reply */
    bool follows;             /* the message that is arriving follows another one of its reply */
    uint8_t head[HEAD_BYTES]; /* of the message that is arriving */
    size_t head_bytes;
    size_t left; /* of the message behind its head */
    bool more;   /* moreToCome: another message follows */
    spill_buffer_t collected;
    size_t reserved; /* counted against the limit of memory */
};

static const spill_stream_events_t stream_events;

static void break_link(spill_link_t *link, const char *why)
{
    if (!link->closing)
        link->events->broken(link->owner, why);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* False: the stream is not connected, but must be closed. */
static bool try_address(spill_link_t *link)
{
    spill_tls_session_t *session =
        link->tls ? spill_tls_session_new(link->tls, link->target->primary.host) : NULL;
    spill_stream_init(&link->stream, link->loop, session, &stream_events, link);
    if (link->tls && !session)
        return false;
    return spill_stream_connect(&link->stream,
                                (struct sockaddr *)&link->target->addresses[link->address]);
}

spill_link_t *spill_link_open(uv_loop_t *loop, spill_target_t *target,
                              const spill_tls_context_t *tls, spill_limits_t *limits,
                              const spill_link_events_t *events, void *owner)
{
    spill_link_t *link = bson_malloc0(sizeof *link);
    link->loop = loop;
    link->target = target;
    link->tls = tls;
    link->limits = limits;
    link->events = events;
    link->owner = owner;
    if (target->address_count > 0 && try_address(link))
        return link;
    /* Its stream may be open: free it without its owner. */
    link->owner = NULL;
    link->closing = true;
    if (link->stream.tcp.data)
        spill_stream_close(&link->stream);
    else
        bson_free(link);
    spill_target_release(target);
    return NULL;
}

/* A connection that fails before it is open: try the next address. */
static bool try_next(spill_link_t *link)
{
    if (link->stream.open || link->address + 1 >= link->target->address_count)
        return false;
    link->address++;
    link->retrying = true;
    link->unsent = link->stream.early;
    link->stream.early = (spill_buffer_t)SPILL_BUFFER_INIT;
    spill_stream_close(&link->stream);
    return true;
}

static void stream_broken(spill_stream_t *stream, const char *why)
{
    spill_link_t *link = stream->owner;
    if (!try_next(link))
        break_link(link, why);
}

static void free_link(spill_link_t *link)
{
    spill_limits_release(link->limits, link->reserved);
    spill_buffer_release(&link->collected);
    spill_buffer_release(&link->unsent);
    bson_free(link);
}

static void stream_closed(spill_stream_t *stream)
{
    spill_link_t *link = stream->owner;
    if (link->retrying && !link->closing) {
        spill_buffer_t unsent = link->unsent;
        link->unsent = (spill_buffer_t)SPILL_BUFFER_INIT;
        link->retrying = false;
        bool tried = try_address(link);
        if (tried)
            spill_stream_write(&link->stream, unsent.data, unsent.size);
        spill_buffer_release(&unsent);
        if (!tried)
            break_link(link, "the next address of the primary cannot be tried");
        return;
    }
    void *owner = link->owner;
    const spill_link_events_t *events = link->events;
    if (owner)
        spill_target_release(link->target);
    free_link(link);
    if (owner)
        events->closed(owner);
}

void spill_link_close(spill_link_t *link)
{
    if (link->closing)
        return;
    link->closing = true;
    spill_stream_close(&link->stream);
}

/* ---- replies --------------------------------------------------------------------------------- */

void spill_link_expect_relayed(spill_link_t *link, int32_t request_id)
{
    link->expected = EXPECT_RELAYED;
    link->request_id = request_id;
}

void spill_link_expect_collected(spill_link_t *link, int32_t request_id)
{
    link->expected = EXPECT_COLLECTED;
    link->request_id = request_id;
}

void spill_link_expect_none(spill_link_t *link)
{
    link->unanswered++;
}

/* Reserve memory for a reply that will be collected. */
static bool begin_collecting(spill_link_t *link, size_t length, const char **why)
{
    *why = "the server sent several messages for one reply";
    if (link->more || link->reserved > 0)
        return false;
    *why = "--memory is reached by the reply of the server";
    if (!spill_limits_reserve(link->limits, length))
        return false;
    link->reserved = length;
    spill_buffer_reserve(&link->collected, length);
    return true;
}

/* The head of a message has arrived. False: it is malformed, unexpected, or too large to collect.
 */
static bool read_head(spill_link_t *link, const char **why)
{
    spill_wire_header_t header;
    *why = "the server sent a malformed message";
    if (spill_wire_read_header(link->head, INT32_MAX, &header, NULL) != SPILL_OK ||
        header.length <= HEAD_BYTES ||
        (header.opcode != SPILL_WIRE_MSG && header.opcode != SPILL_WIRE_REPLY))
        return false;
    link->left = (size_t)header.length - HEAD_BYTES;
    link->more = header.opcode == SPILL_WIRE_MSG &&
                 (link->head[SPILL_WIRE_HEADER_BYTES] & SPILL_WIRE_MORE_TO_COME) != 0;
    bool other = link->expected == EXPECT_NOTHING || header.response_to != link->request_id;
    link->dropping = !link->follows && other && link->unanswered > 0;
    *why = "the server sent a message without a request";
    if (link->dropping || link->expected != EXPECT_COLLECTED)
        return link->dropping || link->expected == EXPECT_RELAYED;
    return begin_collecting(link, (size_t)header.length, why);
}

static void end_reply(spill_link_t *link)
{
    expected_t expected = link->expected;
    link->expected = EXPECT_NOTHING;
    if (expected == EXPECT_RELAYED) {
        link->events->reply_end(link->owner);
        return;
    }
    spill_limits_release(link->limits, link->reserved);
    link->reserved = 0;
    spill_buffer_t message = link->collected;
    link->collected = (spill_buffer_t)SPILL_BUFFER_INIT;
    link->events->collected(link->owner, &message);
    spill_buffer_release(&message);
}

static void end_message(spill_link_t *link)
{
    link->head_bytes = 0;
    if (link->dropping) {
        link->unanswered--;
        return;
    }
    link->follows = link->more;
    if (!link->more)
        end_reply(link);
}

/* Pass a piece of the message on, or collect it, or drop it. */
static void take_piece(spill_link_t *link, const uint8_t *bytes, size_t size)
{
    if (link->dropping)
        return;
    if (link->expected == EXPECT_RELAYED)
        link->events->reply_part(link->owner, bytes, size);
    else
        spill_buffer_append(&link->collected, bytes, size);
}

/*
 * Take a piece that begins with a head, or with the rest of one. Returns the bytes to skip: those
 * of a head that arrived in parts, which was taken from link->head. *why is set: the link breaks.
 */
static size_t take_head(spill_link_t *link, const uint8_t *bytes, size_t size, size_t *head,
                        const char **why)
{
    size_t before = link->head_bytes;
    size_t part = HEAD_BYTES - before < size ? HEAD_BYTES - before : size;
    memcpy(link->head + before, bytes, part);
    link->head_bytes += part;
    *head = 0;
    if (link->head_bytes < HEAD_BYTES)
        return part;
    const char *cause;
    if (!read_head(link, &cause)) {
        *why = cause;
        return part;
    }
    if (before == 0) {
        *head = part; /* it is passed on together with what follows */
        return 0;
    }
    take_piece(link, link->head, HEAD_BYTES);
    return part;
}

static void stream_received(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    spill_link_t *link = stream->owner;
    const char *why = NULL;
    while (size > 0 && !link->closing) {
        size_t head = 0;
        if (link->head_bytes < HEAD_BYTES) {
            size_t skipped = take_head(link, bytes, size, &head, &why);
            bytes += skipped;
            size -= skipped;
            if (why)
                break;
            if (link->head_bytes < HEAD_BYTES)
                return;
        }
        size_t part = link->left < size - head ? link->left : size - head;
        take_piece(link, bytes, head + part);
        link->left -= part;
        bytes += head + part;
        size -= head + part;
        if (link->left == 0 && !link->closing)
            end_message(link);
    }
    if (why)
        break_link(link, why);
}

static void stream_drained(spill_stream_t *stream)
{
    spill_link_t *link = stream->owner;
    if (!link->closing)
        link->events->drained(link->owner);
}

static const spill_stream_events_t stream_events = {.received = stream_received,
                                                    .drained = stream_drained,
                                                    .broken = stream_broken,
                                                    .closed = stream_closed};

/* ---- writing --------------------------------------------------------------------------------- */

void spill_link_write(spill_link_t *link, const uint8_t *bytes, size_t size)
{
    if (link->retrying)
        spill_buffer_append(&link->unsent, bytes, size);
    else
        spill_stream_write(&link->stream, bytes, size);
}

void spill_link_give(spill_link_t *link, spill_buffer_t *bytes)
{
    if (!link->retrying) {
        spill_stream_give(&link->stream, bytes);
        return;
    }
    spill_link_write(link, bytes->data, bytes->size);
    spill_buffer_release(bytes);
}

size_t spill_link_unsent(const spill_link_t *link)
{
    return link->unsent.size + spill_stream_unsent(&link->stream);
}

void spill_link_pause(spill_link_t *link, bool paused)
{
    if (!link->retrying)
        spill_stream_pause(&link->stream, paused);
}

int64_t spill_link_generation(const spill_link_t *link)
{
    return link->target->generation;
}
