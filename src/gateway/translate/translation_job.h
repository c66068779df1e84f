/*
 * One command of a client in a worker thread. The worker runs spill_translate_run; the loop sends
 * what that asks for on the client's own upstream connection, and gets the reply.
 *
 * While a job exists, its connection must stay in memory and start no other command.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_TRANSLATION_JOB_H
#define SPILL_GATEWAY_TRANSLATE_TRANSLATION_JOB_H

#include "gateway/gateway_state.h"
#include "gateway/relay/loop.h"
#include "gateway/translate/translate.h"

typedef struct spill_translation_job spill_translation_job_t;

/* What the job needs of its connection; called on the loop's thread. */
typedef struct spill_translation_host {
    /*
     * Send a message on the upstream connection and collect its reply. It may take the memory.
     * False: the connection is broken.
     */
    bool (*send)(void *owner, int32_t request_id, spill_buffer_t *message);
    /* The worker has ended: spill_translation_job_take reads the result. */
    void (*done)(void *owner);
} spill_translation_host_t;

/*
 * Start. `message` has a whole message, which was read without an error; the job takes its memory.
 * `connection` is what spill_translate_run gets, with its fields but `call` and `reserve`.
 */
spill_translation_job_t *spill_translation_job_start(spill_gateway_t *gateway, spill_loop_t *loop,
                                                     const spill_translation_host_t *host,
                                                     void *owner, spill_buffer_t *message,
                                                     spill_client_connection_t *connection);

/* The reply to the request that `send` has sent; or the connection broke. */
void spill_translation_job_reply(spill_translation_job_t *job, spill_buffer_t *message);
void spill_translation_job_break(spill_translation_job_t *job, const char *why);

/* Does the client want no reply (moreToCome)? Call it before spill_translation_job_take. */
bool spill_translation_job_unanswered(const spill_translation_job_t *job);

/* The class of its command. Call it before spill_translation_job_take. */
spill_metrics_class_t spill_translation_job_class(const spill_translation_job_t *job);

/*
 * Take the result and free the job. The caller destroys `reply`. *close: close the client's
 * connection. *changed: spill_client_connection_t. *reserved: bytes that stay counted against the
 * limit of memory until the reply is sent.
 */
void spill_translation_job_take(spill_translation_job_t *job, int32_t *request_id, bool *unanswered,
                                bson_t *reply, bool *close, bool *changed, size_t *reserved);

#endif
