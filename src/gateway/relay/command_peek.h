/*
 * Find the command and the namespace of a long OP_MSG when only its first bytes have arrived. So
 * the relay passes on a message for a collection that is not served while the rest arrives.
 */
#ifndef SPILL_GATEWAY_RELAY_COMMAND_PEEK_H
#define SPILL_GATEWAY_RELAY_COMMAND_PEEK_H

#include "gateway/relay/wire.h"

typedef enum spill_peek_result {
    SPILL_PEEK_KNOWN,
    SPILL_PEEK_MORE,     /* not enough of the message has arrived */
    SPILL_PEEK_UNKNOWN,  /* only the whole message would show it */
    SPILL_PEEK_MALFORMED /* the bytes are no OP_MSG */
} spill_peek_result_t;

/* Borrows from the bytes. */
typedef struct spill_command_peek {
    const char *name;
    const char *database;
    const char *collection; /* NULL: the first field's value is no text */
    bool unanswered;        /* moreToCome */
    bool transaction;       /* a field says that it belongs to a transaction */
    bool complete;          /* all fields of the body were seen */
} spill_command_peek_t;

/*
 * Look at the first `size` bytes of a message of `length` bytes. KNOWN if they contain the first
 * field and $db; `transaction` is certain only if `complete`. Cost: the number of the top level's
 * fields in these bytes.
 */
spill_peek_result_t spill_command_peek(const uint8_t *bytes, size_t size, size_t length,
                                       spill_command_peek_t *peek);

#endif
