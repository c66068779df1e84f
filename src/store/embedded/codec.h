/*
 * Values of records: bytes and back. docs/internals/format.md draws them.
 *
 * The decoders accept any bytes. They return true only for a record that the rest of the store can
 * work on: values are well-formed, and numbers lie in ranges in which sums do not overflow.
 */
#ifndef SPILL_STORE_EMBEDDED_CODEC_H
#define SPILL_STORE_EMBEDDED_CODEC_H

#include "store/embedded/keys.h"
#include "store/ops.h"
#include "store/state.h"
#include "util/buffer.h"

/* Append the state's bytes. The page's number is not among them: it is in the key. */
void spill_state_encode(const spill_state_t *state, bool head, spill_buffer_t *bytes);

/*
 * Fill `state` (its memory is used again) from a record. False if the bytes are not a state of that
 * kind of document; `state` is then absent and empty.
 */
bool spill_state_decode(const uint8_t *data, size_t size, bool head, spill_state_t *state);

/* An operation's entry; its ordinal is in the key. */
void spill_op_encode(const spill_op_entry_t *entry, spill_buffer_t *bytes);
bool spill_op_decode(const uint8_t *data, size_t size, spill_op_entry_t *entry);

/*
 * An element: its type byte and its bytes. The decoded value borrows. False if it is not a
 * well-formed BSON value, or if it is no document and the layout stores each element as a document.
 * O(size).
 */
bool spill_element_decode(const spill_definition_t *definition, const uint8_t *data, size_t size,
                          spill_value_t *value);

/*
 * The other fields of the owner that has this key: a document whose _id is first and is that owner.
 * `fields` borrows, and is not to be destroyed. O(size).
 */
bool spill_fields_decode(const uint8_t *data, size_t size, const uint8_t *owner, size_t owner_bytes,
                         bson_t *fields);

/* A document of the catalog. It borrows, and is not to be destroyed. O(size). */
bool spill_catalog_decode(const uint8_t *data, size_t size, bson_t *document);

#endif
