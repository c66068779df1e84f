/* A thread with an event loop. */
#include "gateway/relay/loop.h"

#include "util/clock.h"
#include "util/error.h"

#include <bson/bson.h>
#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

enum { BACKLOG = 1024, ASKED_DRAIN = 1, ASKED_ABORT = 2 };

/* ---- turns ----------------------------------------------------------------------------------- */

static void has_incoming(uv_stream_t *listener, int status)
{
    spill_loop_t *loop = listener->data;
    if (status == 0)
        loop->events->incoming(loop, listener);
}

static void tick(uv_timer_t *timer)
{
    spill_loop_t *loop = timer->data;
    loop->now_ms = (int64_t)uv_now(&loop->uv);
    loop->events->tick(loop);
}

static void close_own_handles(spill_loop_t *loop)
{
    if (!uv_is_closing((uv_handle_t *)&loop->timer))
        uv_close((uv_handle_t *)&loop->timer, NULL);
    if (!uv_is_closing((uv_handle_t *)&loop->wake))
        uv_close((uv_handle_t *)&loop->wake, NULL);
}

void spill_loop_emptied(spill_loop_t *loop)
{
    if (loop->draining && loop->connection_count == 0)
        close_own_handles(loop);
}

/* What was asked by spill_loop_drain and spill_loop_abort. */
static void begin_end(spill_loop_t *loop)
{
    int asked = atomic_load(&loop->asked);
    if (asked >= ASKED_DRAIN && !loop->draining) {
        loop->draining = true;
        uv_close((uv_handle_t *)&loop->listener, NULL);
        loop->events->drain(loop);
    }
    if (asked == ASKED_ABORT)
        loop->events->abort(loop);
    spill_loop_emptied(loop);
}

static void woken(uv_async_t *wake)
{
    spill_loop_t *loop = wake->data;
    pthread_mutex_lock(&loop->lock);
    spill_post_t *post = loop->first_post;
    loop->first_post = loop->last_post = NULL;
    pthread_mutex_unlock(&loop->lock);
    while (post) {
        spill_post_t *next = post->next;
        post->run(post);
        post = next;
    }
    if (atomic_load(&loop->asked))
        begin_end(loop);
}

void spill_loop_post(spill_loop_t *loop, spill_post_t *post)
{
    post->next = NULL;
    pthread_mutex_lock(&loop->lock);
    if (loop->first_post)
        loop->last_post->next = post;
    else
        loop->first_post = post;
    loop->last_post = post;
    pthread_mutex_unlock(&loop->lock);
    uv_async_send(&loop->wake);
}

void spill_loop_drain(spill_loop_t *loop)
{
    int none = 0;
    atomic_compare_exchange_strong(&loop->asked, &none, ASKED_DRAIN);
    uv_async_send(&loop->wake);
}

void spill_loop_abort(spill_loop_t *loop)
{
    atomic_store(&loop->asked, ASKED_ABORT);
    uv_async_send(&loop->wake);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* A socket that other loops, and other processes of this user, can share. */
static spill_code_t bind_shared(struct sockaddr_storage *address, int *descriptor,
                                spill_error_t *error)
{
    int on = 1;
    socklen_t size = sizeof *address;
    *descriptor = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*descriptor < 0)
        return spill_fail_errno(error, errno, "cannot make a socket");
    setsockopt(*descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(*descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    socklen_t used =
        address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (bind(*descriptor, (struct sockaddr *)address, used) != 0 ||
        getsockname(*descriptor, (struct sockaddr *)address, &size) != 0) {
        int cause = errno;
        close(*descriptor);
        return spill_fail_errno(error, cause, "cannot listen there");
    }
    return SPILL_OK;
}

static spill_code_t listen_on(spill_loop_t *loop, struct sockaddr_storage *address,
                              spill_error_t *error)
{
    int descriptor;
    SPILL_TRY(bind_shared(address, &descriptor, error));
    int status = uv_tcp_open(&loop->listener, descriptor);
    if (status != 0) {
        close(descriptor);
        return spill_fail(error, SPILL_IO, "cannot listen there: %s", uv_strerror(status));
    }
    status = uv_listen((uv_stream_t *)&loop->listener, BACKLOG, has_incoming);
    if (status != 0)
        return spill_fail(error, SPILL_IO, "cannot listen there: %s", uv_strerror(status));
    return SPILL_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

spill_code_t spill_loop_new(struct sockaddr_storage *address, const spill_loop_events_t *events,
                            void *context, spill_loop_t **loop, spill_error_t *error)
{
    spill_loop_t *made = bson_malloc0(sizeof *made);
    *loop = made;
    made->events = events;
    made->context = context;
    pthread_mutex_init(&made->lock, NULL);
    uv_loop_init(&made->uv);
    made->uv.data = made->read_buffer;
    uv_tcp_init(&made->uv, &made->listener);
    uv_async_init(&made->uv, &made->wake, woken);
    uv_timer_init(&made->uv, &made->timer);
    made->listener.data = made->wake.data = made->timer.data = made;
    made->now_ms = (int64_t)uv_now(&made->uv);
    return listen_on(made, address, error);
}

static void *run_loop(void *context)
{
    spill_loop_t *loop = context;
    uv_timer_start(&loop->timer, tick, SPILL_LOOP_TICK_MS, SPILL_LOOP_TICK_MS);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    return NULL;
}

spill_code_t spill_loop_start(spill_loop_t *loop, spill_error_t *error)
{
    if (pthread_create(&loop->thread, NULL, run_loop, loop) != 0)
        return spill_fail(error, SPILL_IO, "no thread can be started");
    loop->started = true;
    return SPILL_OK;
}

bool spill_loop_ended(spill_loop_t *loop, int64_t wait_ms)
{
    if (!loop->started)
        return true;
    struct timespec until = spill_clock_after_us(wait_ms * 1000);
    if (pthread_clockjoin_np(loop->thread, NULL, CLOCK_MONOTONIC, &until) != 0)
        return false;
    loop->started = false;
    return true;
}

void spill_loop_free(spill_loop_t *loop)
{
    if (!loop)
        return;
    if (!uv_is_closing((uv_handle_t *)&loop->listener))
        uv_close((uv_handle_t *)&loop->listener, NULL);
    close_own_handles(loop);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    uv_loop_close(&loop->uv);
    spill_buffer_release(&loop->scratch);
    pthread_mutex_destroy(&loop->lock);
    bson_free(loop);
}
