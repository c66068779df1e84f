/*
 * The first step of an update of one plain array, made on the loop's thread: the client's own
 * statement, with the conditions that the array is plain and short. If the server makes it, its
 * reply is the client's, and no worker is needed. If it certainly did not, a worker carries out the
 * command from its beginning.
 */
#ifndef SPILL_GATEWAY_FIRST_STEP_H
#define SPILL_GATEWAY_FIRST_STEP_H

#include "gateway/translate.h"

/*
 * Make the command to send; the caller destroys `body` if the result is true. False: the command is
 * of another kind, or the owner is known to be managed. Does not block. Cost: O(size).
 */
bool spill_first_step_make(spill_served_t *served, const spill_client_command_t *command,
                           bson_t *body);

/*
 * Is the server's reply the client's? It is if the update was made, or perhaps, and if the server
 * is no primary now. Every other error says that nothing has changed.
 */
bool spill_first_step_is_done(const bson_t *reply);

#endif
