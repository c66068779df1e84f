/*
 * The first step of an update of one array, made on the loop's thread:
 *
 *   an unmanaged array  the client's own statement, on condition that the array is unmanaged and
 *                       short
 *   a managed one       the library's append, if it needs one update, and no other push to the
 *                       owner is in progress
 *
 * If the server makes it, its reply is the client's, and no worker is needed. If it certainly did
 * not, a worker carries out the command from its beginning.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_FIRST_STEP_H
#define SPILL_GATEWAY_TRANSLATE_FIRST_STEP_H

#include "gateway/activity.h"
#include "gateway/translate/translate.h"

/* A push to an owner that is known to be managed, from its first step to the command's end. */
typedef struct spill_push_turn {
    bool held;
    size_t slot; /* managed_owners.h */
    /* The first step writes the entry of the session: it may be made again, with the same entry. */
    bool recorded;
} spill_push_turn_t;

/*
 * Make the command to send; the caller destroys `body` if the result is true. False: the command
 * begins in another way. Also then *turn may be held: spill_push_turn_end. `activity` may be NULL.
 * `user`: the digest of the client's user. Does not block. Cost: O(size).
 */
bool spill_first_step_make(spill_served_t *served, spill_activity_t *activity,
                           const spill_client_command_t *command, const uint8_t user[8],
                           bson_t *body, spill_push_turn_t *turn);

/* The command has ended. The turn may not be held. */
void spill_push_turn_end(spill_served_t *served, spill_push_turn_t *turn);

/*
 * Is the server's reply the client's? It is if the update was made, or perhaps, and if the server
 * is no primary now. Every other error says that nothing has changed. A step that is recorded has
 * to succeed: after any error a worker may begin.
 */
bool spill_first_step_is_done(const bson_t *reply, const spill_push_turn_t *turn);

#endif
