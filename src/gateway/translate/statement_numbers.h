/* The numbers of a session's operations (spill_session_op_t::number) in one command. */
#ifndef SPILL_GATEWAY_TRANSLATE_STATEMENT_NUMBERS_H
#define SPILL_GATEWAY_TRANSLATE_STATEMENT_NUMBERS_H

#include "util/buffer.h"

#include <spillway/value.h>

#include <stdbool.h>

/* Which numbers each owner has used in this command. {0} is empty. */
typedef struct spill_statement_numbers {
    spill_buffer_t slots; /* a hash table of slot_t, of a power of two; or empty */
    size_t count;         /* slots in use */
} spill_statement_numbers_t;

/*
 * Take `count` numbers (0: one) of the owner, and return the first one. Owners that a server holds
 * for equal (1, 1L and 1.0) are one. `named`: the statement's filter names the owner. The other
 * statements have numbers of their own: if one no longer matches when the command is repeated, the
 * named statements keep their numbers. O(_id).
 */
int32_t spill_numbers_take(spill_statement_numbers_t *numbers, const spill_value_t *owner,
                           bool named, int64_t count);
void spill_numbers_release(spill_statement_numbers_t *numbers);

#endif
