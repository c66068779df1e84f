/*
 * Encode and decode the values of records. docs/internals/format.md has their layouts.
 *
 * The decoders accept any bytes. They return true only for a record that the rest of the store can
 * use: values are well-formed, and numbers are so small that sums do not overflow.
 */
#ifndef SPILL_STORE_EMBEDDED_EMBEDDED_CODEC_H
#define SPILL_STORE_EMBEDDED_EMBEDDED_CODEC_H

#include "store/content.h"
#include "store/embedded/keys.h"
#include "store/state.h"
#include "util/buffer.h"

/* Append the state's bytes, without the page's number, which is in the key. */
void spill_state_encode(const spill_state_t *state, bool head, spill_buffer_t *bytes);

/*
 * Fill `state` (and reuse its memory) from a record. Return false if the bytes are not a state of a
 * head (or page); `state` is then absent and empty.
 */
bool spill_state_decode(const uint8_t *data, size_t size, bool head, spill_state_t *state);

/* An operation's entry; its ordinal is in the key. */
void spill_op_encode(const spill_op_entry_t *entry, spill_buffer_t *bytes);
bool spill_op_decode(const uint8_t *data, size_t size, spill_op_entry_t *entry);

/*
 * An element: its type byte and its bytes. The decoded value borrows. Return false if it is not a
 * well-formed BSON value, or not a document although the layout requires one. O(size).
 */
bool spill_element_decode(const spill_definition_t *definition, const uint8_t *data, size_t size,
                          spill_value_t *value);

/*
 * The other fields of the owner with this key: a document whose first field, _id, is that owner.
 * `fields` borrows; do not destroy it. O(size).
 */
bool spill_fields_decode(const uint8_t *data, size_t size, const uint8_t *owner, size_t owner_bytes,
                         bson_t *fields);

/* A document of the catalog. It borrows; do not destroy it. O(size). */
bool spill_catalog_decode(const uint8_t *data, size_t size, bson_t *document);

#endif
