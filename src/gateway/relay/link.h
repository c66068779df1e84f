/*
 * The upstream socket of one client connection. Requests are written to it as bytes. Its reply is
 * either passed on as it arrives, or collected into one piece.
 *
 * Threads: the thread of the loop alone.
 */
#ifndef SPILL_GATEWAY_RELAY_LINK_H
#define SPILL_GATEWAY_RELAY_LINK_H

#include "gateway/relay/limits.h"
#include "gateway/relay/stream.h"
#include "gateway/relay/target.h"

typedef struct spill_link spill_link_t;

/* All are called in a turn of the loop, not by the functions below. */
typedef struct spill_link_events {
    void (*reply_part)(void *owner, const uint8_t *bytes, size_t size);
    void (*reply_end)(void *owner); /* all of its reply was passed on */
    /* The whole reply message; the receiver may take the buffer's memory. */
    void (*collected)(void *owner, spill_buffer_t *message);
    void (*drained)(void *owner); /* all bytes are sent */
    void (*broken)(void *owner, const char *why);
    void (*closed)(void *owner); /* the link was freed */
} spill_link_events_t;

/*
 * Connect to the target. The link takes the reference, also if the result is NULL: none of its
 * addresses can be tried.
 */
spill_link_t *spill_link_open(uv_loop_t *loop, spill_target_t *target,
                              const spill_tls_context_t *tls, spill_limits_t *limits,
                              const spill_link_events_t *events, void *owner);

/* Close it; `closed` follows, and no other event. */
void spill_link_close(spill_link_t *link);

/* From now on, expect the reply to this request, and pass it on; or collect it. */
void spill_link_expect_relayed(spill_link_t *link, int32_t request_id);
void spill_link_expect_collected(spill_link_t *link, int32_t request_id);

/*
 * A request is sent that has no reply (moreToCome). Some servers reply all the same (FerretDB 2.7
 * does): the link drops such a reply.
 */
void spill_link_expect_none(spill_link_t *link);

void spill_link_write(spill_link_t *link, const uint8_t *bytes, size_t size);
/* The call takes the buffer's memory, and leaves it empty. */
void spill_link_give(spill_link_t *link, spill_buffer_t *bytes);
size_t spill_link_unsent(const spill_link_t *link);
void spill_link_pause(spill_link_t *link, bool paused);

/* The generation of its target. */
int64_t spill_link_generation(const spill_link_t *link);

#endif
