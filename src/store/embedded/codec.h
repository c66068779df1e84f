/* Values of records: bytes and back. docs/format.md draws them. */
#ifndef SPILL_STORE_EMBEDDED_CODEC_H
#define SPILL_STORE_EMBEDDED_CODEC_H

#include "store/ops.h"
#include "store/state.h"
#include "util/buffer.h"

/* Append the state's bytes. The page's number is not among them: it is in the key. */
void spill_state_encode(const spill_state_t *state, bool head, spill_buffer_t *bytes);

/*
 * Fill `state` (its memory is used again) from a record. False when the bytes are not a state of
 * that kind of document; `state` is then absent.
 */
bool spill_state_decode(const uint8_t *data, size_t size, bool head, spill_state_t *state);

/* An operation's entry; its ordinal is in the key. */
void spill_op_encode(const spill_op_entry_t *entry, spill_buffer_t *bytes);
bool spill_op_decode(const uint8_t *data, size_t size, spill_op_entry_t *entry);

/* An element: its type byte and its bytes. The decoded value borrows. */
bool spill_element_decode(const uint8_t *data, size_t size, spill_value_t *value);

#endif
