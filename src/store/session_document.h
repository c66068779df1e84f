/*
 * The entry of a session as a server's head has it: {txn: T, at: DATE, done: [first, last, ...]},
 * under the session and the user in hexadecimal.
 */
#ifndef SPILL_STORE_SESSION_DOCUMENT_H
#define SPILL_STORE_SESSION_DOCUMENT_H

#include "store/session_entry.h"

enum { SPILL_SESSION_HEX_SIZE = 2 * SPILL_SESSION_KEY_BYTES + 1 };

/* The name of the operation's entry. Returns `hex`. */
const char *spill_session_hex(const spill_session_op_t *op, char hex[SPILL_SESSION_HEX_SIZE]);

/* Append the entry's runs as the array `field`. */
void spill_session_append_done(const spill_session_entry_t *entry, const char *field, bson_t *to);

/* Read an entry, without its key and time. False: it is something else. */
bool spill_session_read(const bson_iter_t *iter, spill_session_entry_t *entry);

#endif
