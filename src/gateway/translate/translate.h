/*
 * The translation of commands on served collections: those that have a definition. Nothing here
 * knows sockets: the relay calls spill_translate_classify on its loop for each command, and
 * spill_translate_run in a worker thread if that says so. The latter is straight-line, blocking
 * code.
 *
 * In this folder, C is a served collection, F the array's field in its documents, and PAGES the
 * collection of its pages; q and u are the filter and the change of a statement of an update.
 *
 * The files, in the order to read:
 *   served.c               the collections that are served, and their open arrays; views.c knows
 *                          the views that read them
 *   translate.c            choose the translation of a command, and reply after a failure
 *   translation.c          one command: its context, calls of upstream, errors
 *   workers.c              the threads that carry out commands (translation_job.c)
 *   statement.c            what a statement does to F; statements.c has all those of a command
 *   first_step.c           the first step of most updates, without a worker
 *   translate_update.c     update, statement by statement
 *   change_one.c           a statement for one document (change.h); look.c finds the document;
 *                          statement_numbers.c has its number in a session's operation
 *   change_adopted.c       a managed array without pages: the client's own update
 *   change_many.c          multi: true
 *   translate_modify.c     findAndModify (modify_send.c, modify_reply.c)
 *   translate_bulk.c       bulkWrite, as commands of their own
 *   translate_delete.c     delete; removal.c deletes one owner, ending.c notes that a head ends
 *   translate_find.c       find, count and distinct
 *   asked.c                what a client asked of documents; complete.c completes an array
 *   reply_batch.c          replies with cursors; cursors.c keeps the gateway's own cursors
 *   translate_aggregate.c  aggregate (pipeline.c); mention.c finds mentions of F in expressions,
 *                          pipeline_hide.c hides `spill` from stages
 *   translate_catalog.c    commands on collections and databases
 *   retries.c              the replies to numbered writes
 *   managed_owners.c       owners that were managed when they were last seen
 *   rights.c               what the client's user may do with heads and pages
 */
#ifndef SPILL_GATEWAY_TRANSLATE_TRANSLATE_H
#define SPILL_GATEWAY_TRANSLATE_TRANSLATE_H

#include "gateway/activity.h"
#include "gateway/relay/client_command.h"
#include "gateway/translate/served.h"

/* What becomes of a command. */
typedef enum spill_translation_class {
    SPILL_TRANSLATION_RELAY, /* pass the bytes on, unchanged, and the reply too */
    SPILL_TRANSLATION_RUN    /* call spill_translate_run in a worker */
} spill_translation_class_t;

/*
 * How a translation reaches upstream as the client: on the client's own connection, with its rights
 * and its session. `call` sends one command and waits for its reply. It blocks. `reply` is
 * initialized by the call if it returns SPILL_OK, and is the caller's. An error means that the
 * connection broke or the reply was malformed: the outcome of a write is unknown, and the relay
 * closes the client's connection.
 */
typedef struct spill_client_connection spill_client_connection_t;
struct spill_client_connection {
    spill_code_t (*call)(spill_client_connection_t *connection, const bson_t *body,
                         const spill_wire_sequence_t *sequences, size_t count, bson_t *reply,
                         spill_error_t *error);
    /*
     * Reserve memory for a reply of the gateway's own; false: the limit of --memory is reached, so
     * answer with the overload error. The relay releases it when the reply was sent.
     */
    bool (*reserve)(spill_client_connection_t *connection, size_t bytes);
    int64_t reply_bytes_max; /* what hello announces as maxMessageSizeBytes */
    uint8_t user[8];         /* digest of the user's name; zeros: not authenticated */
    spill_rights_t *rights;  /* what the probe of this connection has shown (served.h) */
    int64_t received_us;     /* when the command arrived (spill_clock_monotonic_us); 0: unknown */
    spill_activity_t *activity; /* NULL: nothing is counted */
    /* Set if the server may have made a statement under the client's txnNumber. */
    bool changed;
};

/* Decide, without blocking and without memory. Any thread. Cost: no more than the command's fields.
 */
spill_translation_class_t spill_translate_classify(const spill_served_t *served,
                                                   const spill_client_command_t *command);

/*
 * Carry out the command and make the reply's document. *close: close the client's connection
 * instead of replying. The call initializes `reply` in every case. Errors become replies, as a
 * server gives them: {ok: 0, code, codeName, errmsg}, or writeErrors. Blocks; any worker thread.
 */
void spill_translate_run(spill_served_t *served, spill_client_connection_t *connection,
                         const spill_client_command_t *command, bson_t *reply, bool *close);

#endif
