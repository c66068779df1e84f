/*
 * One client: its socket, its upstream socket, and what is in progress between them.
 *
 * The relay's files, in the order to read:
 *   wire.c            the frames of messages
 *   stream.c          one TCP connection, with or without TLS (tls.c)
 *   loop.c            a thread with an event loop; serving.c has the events of its sockets
 *   target.c          the primary, found again and again by a thread
 *   link.c            the upstream socket of a client, and the frames of its replies
 *   connection.c      the life of a client's connection
 *   inbound.c         the client's bytes as messages; long ones are passed on in pieces
 *   command_peek.c    the first look at a long message; client_command.c reads a whole one
 *   classify.c        what becomes of a command: a table of commands
 *   dispatch.c        answer it, relay it, or hand it to a worker of ../translate
 *   hello.c           the gateway's answer to hello; own_reply.c makes its error replies
 *   authentication.c  the name of the client's user
 *   limits.c          memory and connections, counted; listen_address.c reads addresses
 *   shared_port.c     gateways of one database that share a port, and none of another one
 *
 * At any time, one command of a client is in progress. Its further messages wait.
 *
 * Threads: the thread of the loop alone.
 */
#ifndef SPILL_GATEWAY_RELAY_CONNECTION_H
#define SPILL_GATEWAY_RELAY_CONNECTION_H

#include "gateway/relay/authentication.h"
#include "gateway/relay/link.h"
#include "gateway/slow.h"
#include "gateway/translate/first_step.h"
#include "gateway/translate/translation_job.h"

typedef struct spill_connection spill_connection_t;

/* What a collected reply is for. */
typedef enum spill_collecting {
    SPILL_COLLECTING_NOTHING,
    SPILL_COLLECTING_HELLO,
    SPILL_COLLECTING_AUTHENTICATION,
    SPILL_COLLECTING_NUMBERED,
    SPILL_COLLECTING_FIRST_STEP,
    SPILL_COLLECTING_JOB
} spill_collecting_t;

struct spill_connection {
    spill_connection_t *previous, *next;
    spill_gateway_t *gateway;
    spill_loop_t *loop;
    spill_stream_t client;
    spill_link_t *link; /* NULL: not opened yet */
    spill_peer_t peer;
    int32_t id;
    int32_t next_request;

    /* The client's bytes, from input.data + input_at on. Empty between messages. */
    spill_buffer_t input;
    size_t input_at;
    size_t reserved_input; /* counted against the limit of memory */
    size_t passing;        /* bytes of the current message that are still to be passed on */
    size_t skipping;       /* ... that are dropped, before the overload error */
    int32_t skipped_request;
    bool skipped_unanswered;
    int64_t waits_since_ms; /* the client owes the rest of a message; 0: it does not */
    bool waits_for_header;

    int64_t received_us; /* when the command to translate arrived (spill_clock_monotonic_us) */
    bool awaiting;       /* a command is in progress */
    uint64_t relayed_ns; /* since when one is relayed */
    spill_slow_t *slow;  /* ... which it is; NULL without --slow-ms */
    bool numbered;       /* ... a write whose reply the gateway remembers (retries.h) */
    spill_retry_key_t retry_key;
    int64_t retry_txn;
    spill_collecting_t collecting;
    int32_t request_id; /* of the command whose reply is collected */
    bool by_query;      /* ... which was an OP_QUERY */
    bson_t *hello;      /* ... the hello */
    char command[16];   /* ... the command that authenticates */
    spill_authentication_t authentication;
    spill_rights_t *rights; /* NULL: no translated command yet */
    spill_translation_job_t *job;
    spill_buffer_t first_message; /* the client's, while its first step is in progress */
    spill_push_turn_t push_turn;
    int64_t first_started_us;
    size_t reserved_reply; /* until the reply of a job is sent */

    bool admitted;           /* counted by the limits */
    bool ending;             /* the client has ended, and the server must still get what it sent */
    int64_t ending_since_ms; /* ... when the server last took a part */
    size_t ending_unsent;    /* ... how much was unsent to the server then */
    bool closing;
    bool client_closed;
};

/* The event tables of serving.c, which the files below it pass on. */
extern const spill_link_events_t *spill_connection_link_events;
extern const spill_translation_host_t *spill_connection_job_host;

/* Make one, as the first of its loop. `tls` becomes its own. */
spill_connection_t *spill_connection_new(spill_loop_t *loop, spill_tls_session_t *tls,
                                         const spill_stream_events_t *events);

/* Close it; it is freed when its sockets are closed and its worker is done. */
void spill_connection_close(spill_connection_t *connection, const char *why);
void spill_connection_free_if_done(spill_connection_t *connection);

/* A malformed message: count it, log it, close the connection. */
void spill_connection_malformed(spill_connection_t *connection, const char *why);

/* Open the upstream link, unless it is open. False: that fails, and the connection is closed. */
bool spill_connection_need_link(spill_connection_t *connection);

/* The bytes that are unsent to the server. */
size_t spill_connection_unsent(const spill_connection_t *connection);

/* Nothing is in progress and nothing is unsent. */
bool spill_connection_is_idle(const spill_connection_t *connection);

/* Send a reply with one document. */
void spill_connection_reply(spill_connection_t *connection, int32_t request_id, bool by_query,
                            const bson_t *document);

/* The same to an OP_MSG. The call takes the document, whose bytes are not copied if it is long. */
void spill_connection_reply_with(spill_connection_t *connection, int32_t request_id,
                                 bson_t *document);

/* Send bytes to the client, counted. */
void spill_connection_send(spill_connection_t *connection, const uint8_t *bytes, size_t size);

/* Remember the reply to the numbered write; NULL: its outcome is unknown. */
void spill_connection_end_numbered(spill_connection_t *connection, const bson_t *reply);
/* A repetition of the numbered write changes nothing twice: carry it out. */
void spill_connection_forget_numbered(spill_connection_t *connection);

/* The command in progress has ended: log it if it was slow. */
void spill_connection_note_slow(spill_connection_t *connection, spill_metrics_class_t class);

/* The reply of a job was sent: release what it held. */
void spill_connection_release_reply(spill_connection_t *connection);

#endif
