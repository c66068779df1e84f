/* Long messages pass a stream in slices, so that the other streams of its loop get their turns. */
#include "gateway/relay/stream.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG_BYTES = 24 << 20, SHORT_BYTES = 1000 };

/* The loop with one stream, and its peer: a thread with a blocking socket. */
typedef struct pair {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_prepare_t turn; /* runs once in each turn */
    spill_stream_t stream;
    uint8_t *read_buffer;
    pthread_t peer;
    struct sockaddr_in address;
    spill_buffer_t to_write; /* by the stream, when it is open */
    size_t peer_writes;      /* bytes; else the peer reads all that comes */
    size_t before;           /* this turn: unsent or received bytes */
    size_t most;             /* bytes of the turn with most of them */
    size_t received;
    bool right; /* all bytes were the expected ones */
    bool opened, ended;
} pair_t;

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 31 + at / 977);
}

static void fill(spill_buffer_t *buffer, size_t from, size_t size)
{
    uint8_t *bytes = spill_buffer_reserve(buffer, size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(from + i);
    buffer->size += size;
}

static bool is_right(const uint8_t *bytes, size_t from, size_t size)
{
    bool right = true;
    for (size_t i = 0; i < size; i++)
        right = right && bytes[i] == byte_at(from + i);
    return right;
}

/* ---- the peer -------------------------------------------------------------------------------- */

static void write_all(int descriptor, size_t size)
{
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    fill(&bytes, 0, size);
    for (size_t at = 0; at < size;) {
        ssize_t part = write(descriptor, bytes.data + at, size - at);
        if (part <= 0)
            break;
        at += (size_t)part;
    }
    spill_buffer_release(&bytes);
}

static void read_all(pair_t *pair, int descriptor)
{
    static uint8_t bytes[65536];
    size_t expected = LONG_BYTES + SHORT_BYTES;
    pair->right = true;
    while (pair->received < expected) {
        ssize_t part = read(descriptor, bytes, sizeof bytes);
        if (part <= 0)
            break;
        pair->right = pair->right && is_right(bytes, pair->received, (size_t)part);
        pair->received += (size_t)part;
    }
}

static void *be_peer(void *context)
{
    pair_t *pair = context;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(descriptor, (struct sockaddr *)&pair->address, sizeof pair->address) == 0) {
        if (pair->peer_writes > 0)
            write_all(descriptor, pair->peer_writes);
        else
            read_all(pair, descriptor);
    }
    close(descriptor); /* the stream breaks, and the loop ends */
    return NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void note_turn(uv_prepare_t *turn)
{
    pair_t *pair = turn->data;
    if (!pair->opened || pair->ended)
        return;
    size_t now = pair->peer_writes > 0 ? pair->received : spill_stream_unsent(&pair->stream);
    size_t bytes = now > pair->before ? now - pair->before : pair->before - now;
    pair->most = bytes > pair->most ? bytes : pair->most;
    pair->before = now;
}

static void received(spill_stream_t *stream, const uint8_t *bytes, size_t size)
{
    pair_t *pair = stream->owner;
    pair->right = pair->right && is_right(bytes, pair->received, size);
    pair->received += size;
}

static void drained(spill_stream_t *stream)
{
    (void)stream;
}

static void broken(spill_stream_t *stream, const char *why)
{
    pair_t *pair = stream->owner;
    (void)why;
    pair->ended = true;
    spill_stream_close(stream);
}

static void closed(spill_stream_t *stream)
{
    pair_t *pair = stream->owner;
    uv_close((uv_handle_t *)&pair->listener, NULL);
    uv_close((uv_handle_t *)&pair->turn, NULL);
}

static const spill_stream_events_t events = {
    .received = received, .drained = drained, .broken = broken, .closed = closed};

static void incoming(uv_stream_t *listener, int status)
{
    pair_t *pair = listener->data;
    spill_buffer_t rest = SPILL_BUFFER_INIT;
    assert_int_equal(status, 0);
    spill_stream_init(&pair->stream, &pair->loop, NULL, &events, pair);
    assert_true(spill_stream_accept(&pair->stream, listener));
    pair->opened = true;
    if (pair->peer_writes > 0)
        return;
    spill_stream_give(&pair->stream, &pair->to_write);
    assert_null(pair->to_write.data);
    fill(&rest, LONG_BYTES, SHORT_BYTES);
    spill_stream_write(&pair->stream, rest.data, rest.size); /* comes behind it */
    pair->before = spill_stream_unsent(&pair->stream);
    assert_true(pair->before + 2 * SPILL_STREAM_SLICE_BYTES >= LONG_BYTES + SHORT_BYTES);
    spill_buffer_release(&rest);
}

static void run(pair_t *pair)
{
    int size = sizeof pair->address;
    pair->read_buffer = bson_malloc(SPILL_STREAM_READ_BYTES);
    assert_int_equal(uv_loop_init(&pair->loop), 0);
    pair->loop.data = pair->read_buffer;
    pair->right = true;
    uv_tcp_init(&pair->loop, &pair->listener);
    uv_prepare_init(&pair->loop, &pair->turn);
    pair->listener.data = pair->turn.data = pair;
    pair->address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(uv_tcp_bind(&pair->listener, (struct sockaddr *)&pair->address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&pair->listener, 1, incoming), 0);
    uv_tcp_getsockname(&pair->listener, (struct sockaddr *)&pair->address, &size);
    uv_prepare_start(&pair->turn, note_turn);
    assert_int_equal(pthread_create(&pair->peer, NULL, be_peer, pair), 0);
    uv_run(&pair->loop, UV_RUN_DEFAULT);
    pthread_join(pair->peer, NULL);
    assert_int_equal(uv_loop_close(&pair->loop), 0);
    bson_free(pair->read_buffer);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_long_message_is_sent_in_slices(void **state)
{
    static pair_t pair;
    (void)state;
    fill(&pair.to_write, 0, LONG_BYTES);
    run(&pair);
    assert_true(pair.right);
    assert_int_equal(pair.received, LONG_BYTES + SHORT_BYTES);
    assert_in_range(pair.most, 1, 10 * SPILL_STREAM_SLICE_BYTES);
}

static void a_long_message_is_received_in_slices(void **state)
{
    static pair_t pair;
    (void)state;
    pair.peer_writes = LONG_BYTES;
    run(&pair);
    assert_true(pair.right);
    assert_int_equal(pair.received, LONG_BYTES);
    assert_in_range(pair.most, 1, SPILL_STREAM_FULL_READS * SPILL_STREAM_READ_BYTES);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_message_is_sent_in_slices),
        cmocka_unit_test(a_long_message_is_received_in_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
