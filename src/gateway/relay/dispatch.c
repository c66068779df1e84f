/* What becomes of a client's message. */
#include "gateway/relay/dispatch.h"

#include "bson/value.h"
#include "gateway/gateway_log.h"
#include "gateway/relay/own_reply.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- replies of the gateway's own ------------------------------------------------------------ */

/* Answer an OP_MSG, unless the client reads no reply. */
static void answer_message(spill_connection_t *connection, const spill_wire_message_t *message,
                           const bson_t *document)
{
    bool by_query = message->header.opcode == SPILL_WIRE_QUERY;
    spill_metrics_add(&connection->gateway->metrics.answered, 1);
    if (by_query || (message->flags & SPILL_WIRE_MORE_TO_COME) == 0)
        spill_connection_reply(connection, message->header.request_id, by_query, document);
}

static void refuse(spill_connection_t *connection, const spill_wire_message_t *message,
                   const char *command, spill_own_code_t code, const char *why)
{
    bson_t reply;
    spill_own_error(code, why, &reply);
    spill_gateway_log("refused", BCON_NEW("connection", BCON_INT32(connection->id), "command",
                                          BCON_UTF8(command), "code", BCON_INT32((int32_t)code)));
    answer_message(connection, message, &reply);
    bson_destroy(&reply);
}

void spill_dispatch_overloaded(spill_connection_t *connection)
{
    bson_t reply;
    spill_metrics_add(&connection->gateway->metrics.overloaded, 1);
    if (connection->skipped_unanswered)
        return;
    spill_own_error(SPILL_OWN_OVERLOADED,
                    "spillway: the gateway has reached its limit of memory (--memory); try again "
                    "later",
                    &reply);
    spill_connection_reply(connection, connection->skipped_request, false, &reply);
    bson_destroy(&reply);
}

/* ---- hello ----------------------------------------------------------------------------------- */

static void answer_hello(spill_connection_t *connection, const bson_t *request,
                         const bson_t *relayed, int32_t request_id, bool by_query)
{
    spill_gateway_t *gateway = connection->gateway;
    spill_target_t *target = spill_targets_get(gateway->targets);
    spill_hello_own_t own = {.present = gateway->options->present,
                             .message_bytes_max = spill_gateway_message_bytes_max(gateway),
                             .connection = connection->id,
                             .process = &gateway->process};
    bson_t answer;
    spill_hello_answer(target, &own, request, relayed, &answer);
    spill_target_release(target);
    spill_metrics_add(&gateway->metrics.answered, 1);
    spill_connection_reply(connection, request_id, by_query, &answer);
    bson_destroy(&answer);
}

/* Remember the user whose authentication the hello begins. */
static void note_speculative(spill_connection_t *connection, const bson_t *request)
{
    bson_iter_t iter;
    bson_t speculative;
    const uint8_t *bytes;
    uint32_t size;
    if (!bson_iter_init_find(&iter, request, "speculativeAuthenticate") ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    bson_iter_document(&iter, &size, &bytes);
    if (bson_init_static(&speculative, bytes, size))
        spill_authentication_begin(&connection->authentication, &speculative,
                                   spill_document_text(&speculative, "db", "admin"));
}

static void collect(spill_connection_t *connection, spill_collecting_t collecting,
                    const spill_wire_message_t *message)
{
    connection->collecting = collecting;
    connection->awaiting = true;
    connection->request_id = message->header.request_id;
    connection->by_query = message->header.opcode == SPILL_WIRE_QUERY;
    spill_link_expect_collected(connection->link, connection->request_id);
}

static void relay_hello(spill_connection_t *connection, const spill_wire_message_t *message,
                        const bson_t *request, const char *database)
{
    bson_t copy;
    if (!spill_connection_need_link(connection))
        return;
    note_speculative(connection, request);
    bson_destroy(connection->hello);
    connection->hello = bson_copy(request);
    spill_hello_request(request, database, &copy);
    spill_buffer_t *scratch = &connection->loop->scratch;
    spill_buffer_clear(scratch);
    spill_wire_write(scratch, message->header.request_id, 0, 0, &copy, NULL, 0);
    bson_destroy(&copy);
    collect(connection, SPILL_COLLECTING_HELLO, message);
    spill_link_write(connection->link, scratch->data, scratch->size);
}

static void dispatch_hello(spill_connection_t *connection, const spill_wire_message_t *message,
                           const bson_t *request, const char *database)
{
    if (spill_hello_needs_upstream(request))
        relay_hello(connection, message, request, database);
    else
        answer_hello(connection, request, NULL, message->header.request_id,
                     message->header.opcode == SPILL_WIRE_QUERY);
}

/* Old drivers put the command into {$query: ...}. */
static void unwrap_query(const bson_t *body, bson_t *request)
{
    bson_iter_t iter;
    const uint8_t *bytes;
    uint32_t size;
    bson_init_static(request, bson_get_data(body), body->len);
    if (!bson_iter_init_find(&iter, body, "$query") || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    bson_iter_document(&iter, &size, &bytes);
    bson_init_static(request, bytes, size);
}

/* An OP_QUERY: only hello, by which some drivers begin. */
static void dispatch_query(spill_connection_t *connection, const spill_wire_message_t *message)
{
    bson_t request;
    bson_iter_t iter;
    char database[64];
    unwrap_query(&message->body, &request);
    const char *end = strstr(message->ns, ".$cmd");
    spill_error_t error;
    if (spill_client_command_check(&message->body, &error) != SPILL_OK) {
        spill_connection_malformed(connection, error.message);
        return;
    }
    bool command = end && end[strlen(".$cmd")] == '\0' &&
                   (size_t)(end - message->ns) < sizeof database &&
                   bson_iter_init(&iter, &request) && bson_iter_next(&iter);
    if (!command || !spill_hello_is(bson_iter_key(&iter))) {
        refuse(connection, message, "OP_QUERY", SPILL_OWN_UNSUPPORTED_QUERY,
               "spillway: OP_QUERY is served for hello alone; use a driver that sends OP_MSG");
        return;
    }
    snprintf(database, sizeof database, "%.*s", (int)(end - message->ns), message->ns);
    dispatch_hello(connection, message, &request, database);
}

/* Copy the message. A long one that is all of the input is taken from there. */
static void keep_message(spill_connection_t *connection, const uint8_t *bytes, size_t size,
                         spill_buffer_t *message)
{
    spill_buffer_t *input = &connection->input;
    if (size > SPILL_STREAM_SLICE_BYTES && bytes == input->data && size == input->size) {
        spill_buffer_release(message);
        *message = *input;
        *input = (spill_buffer_t)SPILL_BUFFER_INIT;
        connection->input_at = 0;
        return;
    }
    spill_buffer_clear(message);
    spill_buffer_append(message, bytes, size);
}

/* Send the message to the server. Its bytes may be gone afterwards. */
static void pass_message(spill_connection_t *connection, const uint8_t *bytes, size_t size)
{
    spill_buffer_t message = SPILL_BUFFER_INIT;
    if (size <= SPILL_STREAM_SLICE_BYTES) {
        spill_link_write(connection->link, bytes, size);
        return;
    }
    keep_message(connection, bytes, size, &message);
    spill_link_give(connection->link, &message);
}

/* ---- commands -------------------------------------------------------------------------------- */

void spill_dispatch_expect_relayed(spill_connection_t *connection, int32_t request_id,
                                   bool unanswered)
{
    spill_metrics_add(&connection->gateway->metrics.relayed, 1);
    connection->awaiting = !unanswered;
    connection->relayed_ns = uv_hrtime();
    if (unanswered)
        spill_link_expect_none(connection->link);
    else
        spill_link_expect_relayed(connection->link, request_id);
}

static void relay(spill_connection_t *connection, const uint8_t *bytes, size_t size,
                  const spill_client_command_t *command)
{
    if (!spill_connection_need_link(connection))
        return;
    if (connection->numbered) {
        spill_metrics_add(&connection->gateway->metrics.relayed, 1);
        collect(connection, SPILL_COLLECTING_NUMBERED, command->message);
    } else {
        spill_dispatch_expect_relayed(connection, command->message->header.request_id,
                                      command->unanswered);
    }
    pass_message(connection, bytes, size);
}

static void relay_authentication(spill_connection_t *connection, const uint8_t *bytes, size_t size,
                                 const spill_client_command_t *command)
{
    const spill_wire_message_t *message = command->message;
    if (spill_authentication_is_x509(&message->body)) {
        refuse(connection, message, command->name, SPILL_OWN_AUTHENTICATION_FAILED,
               "spillway: the client's certificate ends at the gateway, so MONGODB-X509 cannot "
               "log in to the server behind it; use a user with SCRAM-SHA-256");
        return;
    }
    if (!spill_connection_need_link(connection))
        return;
    spill_metrics_add(&connection->gateway->metrics.relayed, 1);
    spill_authentication_begin(&connection->authentication, &message->body, command->database);
    snprintf(connection->command, sizeof connection->command, "%s", command->name);
    if (command->unanswered)
        spill_link_expect_none(connection->link);
    else
        collect(connection, SPILL_COLLECTING_AUTHENTICATION, message);
    spill_link_write(connection->link, bytes, size);
}

/* A standalone server may ignore a transaction and say that it is done. */
static bool refuses_transaction(const spill_connection_t *connection)
{
    return spill_targets_standalone(connection->gateway->targets);
}

/* Does the gateway remember the replies to numbered writes? */
static bool remembers(const spill_connection_t *connection)
{
    return connection->gateway->retries != NULL && refuses_transaction(connection);
}

static void refuse_retry(spill_connection_t *connection, const spill_client_command_t *command,
                         spill_retry_t result)
{
    switch (result) {
    case SPILL_RETRY_TOO_OLD:
        refuse(connection, command->message, command->name, SPILL_OWN_TRANSACTION_TOO_OLD,
               "spillway: the session has made a later write");
        break;
    case SPILL_RETRY_FULL:
        refuse(connection, command->message, command->name, SPILL_OWN_OVERLOADED,
               "spillway: too many sessions have written in the last minutes");
        break;
    default:
        refuse(connection, command->message, command->name, SPILL_OWN_UNKNOWN_OUTCOME,
               "spillway: the first try of this write is in progress, or its outcome is unknown: "
               "read what it wrote, then decide");
        break;
    }
}

/* A write with a number, to a server that ignores it: note it, or answer that it is a repetition.
 * True: it was answered. */
static bool answers_repeated(spill_connection_t *connection, const spill_client_command_t *command)
{
    bson_t reply;
    if (command->txn_number < 0 || command->session == NULL || command->unanswered ||
        !remembers(connection))
        return false;
    connection->retry_txn = command->txn_number;
    memcpy(connection->retry_key.session, command->session, sizeof connection->retry_key.session);
    memcpy(connection->retry_key.user, connection->authentication.user,
           sizeof connection->retry_key.user);
    spill_retry_t result =
        spill_retries_begin(connection->gateway->retries, &connection->retry_key,
                            connection->retry_txn, (int64_t)uv_now(&connection->loop->uv), &reply);
    connection->numbered = result == SPILL_RETRY_FIRST;
    if (result == SPILL_RETRY_FIRST)
        return false;
    if (result == SPILL_RETRY_REPEATED) {
        answer_message(connection, command->message, &reply);
        bson_destroy(&reply);
    } else {
        refuse_retry(connection, command, result);
    }
    return true;
}

/* Carry out the command in a worker. The job takes the message's memory. */
static void start_job(spill_connection_t *connection, spill_buffer_t *message)
{
    spill_gateway_t *gateway = connection->gateway;
    if (!connection->rights)
        connection->rights = spill_rights_new();
    spill_client_connection_t own = {.reply_bytes_max = spill_gateway_message_bytes_max(gateway),
                                     .rights = connection->rights,
                                     .received_us = connection->received_us};
    memcpy(own.user, connection->authentication.user, sizeof own.user);
    connection->awaiting = true;
    /* The job has the message now. A reply before it may be unsent. */
    connection->reserved_reply += connection->reserved_input;
    connection->reserved_input = 0;
    connection->job = spill_translation_job_start(
        gateway, connection->loop, spill_connection_job_host, connection, message, &own);
}

/* Send the first step of an update of one array. False: the command begins in another way. */
static bool start_first_step(spill_connection_t *connection, const spill_client_command_t *command)
{
    enum { MESSAGE_BYTES_MAX = 65536 }; /* what a loop may spend its time on */
    bson_t body;
    spill_buffer_t *scratch = &connection->loop->scratch;
    if (command->message->header.length > MESSAGE_BYTES_MAX ||
        !spill_first_step_make(connection->gateway->served, connection->gateway->activity, command,
                               connection->authentication.user, &body, &connection->push_turn))
        return false;
    if (spill_connection_need_link(connection)) {
        connection->first_started_us = spill_clock_monotonic_us(NULL);
        spill_buffer_clear(scratch);
        spill_wire_write(scratch, command->message->header.request_id, 0, 0, &body, NULL, 0);
        collect(connection, SPILL_COLLECTING_FIRST_STEP, command->message);
        spill_link_write(connection->link, scratch->data, scratch->size);
    }
    bson_destroy(&body);
    return true;
}

static void translate(spill_connection_t *connection, const uint8_t *bytes, size_t size,
                      const spill_client_command_t *command)
{
    spill_buffer_t *message = &connection->first_message;
    spill_metrics_add(&connection->gateway->metrics.translated, 1);
    connection->received_us = spill_clock_monotonic_us(NULL);
    keep_message(connection, bytes, size, message);
    if (!start_first_step(connection, command))
        start_job(connection, message);
}

void spill_dispatch_message(spill_connection_t *connection, const uint8_t *bytes, size_t size)
{
    spill_wire_message_t message;
    spill_client_command_t command;
    spill_error_t error;
    if (spill_wire_read(bytes, size, &message, &error) != SPILL_OK) {
        spill_connection_malformed(connection, error.message);
        return;
    }
    if (message.header.opcode == SPILL_WIRE_QUERY) {
        dispatch_query(connection, &message);
        return;
    }
    if (spill_client_command_read(&message, &command, &error) != SPILL_OK) {
        spill_connection_malformed(connection, error.message);
        return;
    }
    spill_slow_begin(&connection->slow, connection->gateway->options->slow_ms, command.name,
                     command.database, command.collection);
    if (spill_hello_is(command.name))
        dispatch_hello(connection, &message, &message.body, NULL);
    else if (spill_authentication_is(command.name))
        relay_authentication(connection, bytes, size, &command);
    else if ((command.starts_transaction || command.in_transaction) &&
             refuses_transaction(connection))
        refuse(connection, &message, command.name, SPILL_OWN_ILLEGAL_OPERATION,
               "spillway: transactions need a replica set or a sharded cluster behind the gateway");
    else if (answers_repeated(connection, &command))
        return;
    else if (spill_translate_classify(connection->gateway->served, &command) ==
             SPILL_TRANSLATION_RUN)
        translate(connection, bytes, size, &command);
    else
        relay(connection, bytes, size, &command);
}

bool spill_dispatch_streams(const spill_connection_t *connection, const spill_command_peek_t *peek)
{
    static const char *const writes[] = {"insert", "update", "delete", NULL};
    const spill_gateway_t *gateway = connection->gateway;
    if (peek->transaction || (!peek->complete && refuses_transaction(connection)) ||
        remembers(connection)) /* a txnNumber may stand anywhere in the body */
        return false;
    for (size_t i = 0; writes[i] && peek->collection; i++)
        if (strcmp(peek->name, writes[i]) == 0)
            return !spill_served_find(gateway->served, peek->database, peek->collection) &&
                   !spill_served_hidden(gateway->served, peek->database, peek->collection);
    return false;
}

/* ---- the ends of commands -------------------------------------------------------------------- */

static void end_authentication(spill_connection_t *connection, const spill_buffer_t *bytes,
                               const spill_wire_message_t *reply)
{
    if (spill_authentication_end(&connection->authentication, connection->command, &reply->body)) {
        spill_rights_free(connection->rights);
        connection->rights = NULL;
    }
    spill_connection_send(connection, bytes->data, bytes->size);
}

/* Remember the reply to a numbered write before the client gets it. */
static void end_write(spill_connection_t *connection, const spill_buffer_t *bytes,
                      const spill_wire_message_t *reply)
{
    if (connection->numbered)
        spill_connection_end_numbered(connection, &reply->body);
    spill_connection_send(connection, bytes->data, bytes->size);
}

/* The first step of an update has ended: either the update has, or a worker begins it again. */
static void end_first_step(spill_connection_t *connection, const spill_buffer_t *bytes,
                           const spill_wire_message_t *reply)
{
    if (!spill_first_step_is_done(&reply->body, &connection->push_turn)) {
        connection->push_turn.recorded = false;
        start_job(connection, &connection->first_message);
        return;
    }
    spill_buffer_release(&connection->first_message);
    spill_push_turn_end(connection->gateway->served, &connection->push_turn);
    spill_metrics_duration(&connection->gateway->metrics, SPILL_METRICS_WRITE,
                           spill_clock_monotonic_us(NULL) - connection->first_started_us);
    spill_connection_note_slow(connection, SPILL_METRICS_WRITE);
    end_write(connection, bytes, reply);
}

void spill_dispatch_collected(spill_connection_t *connection, spill_buffer_t *message)
{
    spill_collecting_t collecting = connection->collecting;
    spill_wire_message_t reply;
    spill_error_t error;
    connection->collecting = SPILL_COLLECTING_NOTHING;
    if (collecting == SPILL_COLLECTING_JOB) {
        spill_translation_job_reply(connection->job, message);
        return;
    }
    if (spill_wire_read(message->data, message->size, &reply, &error) != SPILL_OK) {
        spill_connection_close(connection, "the server sent a malformed message");
        return;
    }
    connection->awaiting = false;
    if (collecting != SPILL_COLLECTING_FIRST_STEP)
        spill_connection_note_slow(connection, SPILL_METRICS_RELAYED);
    if (collecting == SPILL_COLLECTING_AUTHENTICATION)
        end_authentication(connection, message, &reply);
    else if (collecting == SPILL_COLLECTING_NUMBERED)
        end_write(connection, message, &reply);
    else if (collecting == SPILL_COLLECTING_FIRST_STEP)
        end_first_step(connection, message, &reply);
    else
        answer_hello(connection, connection->hello, &reply.body, connection->request_id,
                     connection->by_query);
}

/* A job has ended. Its write may be repeated if that cannot change anything twice. */
static void note_job(spill_connection_t *connection, bool close, bool changed, const bson_t *reply)
{
    bool done = !close && spill_document_is_true(reply, "ok");
    if (done || changed) {
        spill_connection_end_numbered(connection, close ? NULL : reply);
        return;
    }
    spill_connection_forget_numbered(connection);
}

void spill_dispatch_job_done(spill_connection_t *connection)
{
    int32_t request_id;
    bool unanswered, close, changed;
    size_t reserved;
    bson_t reply;
    spill_metrics_class_t class = spill_translation_job_class(connection->job);
    spill_translation_job_take(connection->job, &request_id, &unanswered, &reply, &close, &changed,
                               &reserved);
    spill_push_turn_end(connection->gateway->served, &connection->push_turn);
    if (connection->numbered)
        note_job(connection, close, changed, &reply);
    spill_connection_note_slow(connection, class);
    connection->reserved_reply += reserved;
    connection->job = NULL;
    connection->awaiting = false;
    if (close)
        spill_connection_close(connection, "the outcome of a translated command is unknown");
    if (!close && !unanswered && !connection->closing)
        spill_connection_reply_with(connection, request_id, &reply);
    else
        bson_destroy(&reply);
    if (spill_stream_unsent(&connection->client) == 0)
        spill_connection_release_reply(connection);
}
