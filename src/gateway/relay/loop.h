/*
 * A thread with an event loop, which owns a listener and the connections that it accepted. All
 * loops listen on one address (SO_REUSEPORT), and the kernel gives each a part of the connections.
 */
#ifndef SPILL_GATEWAY_RELAY_LOOP_H
#define SPILL_GATEWAY_RELAY_LOOP_H

#include "gateway/relay/stream.h"

#include <pthread.h>
#include <stdatomic.h>

#define SPILL_LOOP_TICK_MS 250

typedef struct spill_loop spill_loop_t;

/* What the owner of the connections does. All run on the loop's thread. */
typedef struct spill_loop_events {
    void (*incoming)(spill_loop_t *loop, uv_stream_t *listener);
    void (*tick)(spill_loop_t *loop);  /* each SPILL_LOOP_TICK_MS */
    void (*drain)(spill_loop_t *loop); /* the listener is closed; close what is idle */
    void (*abort)(spill_loop_t *loop); /* close everything */
} spill_loop_events_t;

/* Something that another thread wants the loop to do; part of a larger struct. */
typedef struct spill_post spill_post_t;
struct spill_post {
    spill_post_t *next;
    void (*run)(spill_post_t *post);
};

struct spill_loop {
    uv_loop_t uv; /* its data: read_buffer */
    uv_tcp_t listener;
    uv_async_t wake;
    uv_timer_t timer;
    pthread_t thread;
    bool started;
    const spill_loop_events_t *events;
    void *context;     /* the owner's */
    void *connections; /* the owner's list */
    size_t connection_count;
    spill_buffer_t scratch; /* for one message that is written */
    int64_t now_ms;         /* of the last tick */
    bool draining;
    atomic_int asked; /* 0, or how to end: 1 drain, 2 abort */
    pthread_mutex_t lock;
    spill_post_t *first_post, *last_post;
    uint8_t read_buffer[SPILL_STREAM_READ_BYTES];
};

/*
 * Make a loop that listens on the address. A port of 0 is replaced by the one that the kernel
 * chooses. SPILL_IO names the cause.
 */
spill_code_t spill_loop_new(struct sockaddr_storage *address, const spill_loop_events_t *events,
                            void *context, spill_loop_t **loop, spill_error_t *error);

spill_code_t spill_loop_start(spill_loop_t *loop, spill_error_t *error);

/* Run it on the loop's thread soon, in the order of the calls. Any thread. */
void spill_loop_post(spill_loop_t *loop, spill_post_t *post);

/* Stop listening and end when no connection is left; or close all connections now. Any thread. */
void spill_loop_drain(spill_loop_t *loop);
void spill_loop_abort(spill_loop_t *loop);

/* The owner calls it when its last connection is freed, while draining. */
void spill_loop_emptied(spill_loop_t *loop);

/* Has its thread ended within the time? */
bool spill_loop_ended(spill_loop_t *loop, int64_t wait_ms);

/* After its thread has ended, or without a start. NULL is allowed. */
void spill_loop_free(spill_loop_t *loop);

#endif
