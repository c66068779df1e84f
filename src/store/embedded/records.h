/* Records of the store: states of documents, and system records. */
#ifndef SPILL_STORE_EMBEDDED_RECORDS_H
#define SPILL_STORE_EMBEDDED_RECORDS_H

#include "store/embedded/embedded.h"

/* Read a record, from the batch if it has the key, else from the engine. `batch` may be NULL. */
spill_code_t spill_embedded_get(spill_embedded_t *store, const spill_batch_t *batch,
                                const uint8_t *key, size_t key_bytes, spill_buffer_t *value,
                                bool *found, spill_error_t *error);

/* The same, from this engine. */
spill_code_t spill_kv_get_after(spill_kv_t *kv, const spill_batch_t *batch, const uint8_t *key,
                                size_t key_bytes, spill_buffer_t *value, bool *found,
                                spill_error_t *error);

/*
 * Read the state of the head or of a page; it is absent if there is no record. A caller with a
 * batch is the leader of the group commit.
 */
spill_code_t spill_embedded_get_state(spill_embedded_t *store, const spill_batch_t *batch,
                                      const spill_request_t *request, spill_record_key_t *key,
                                      int64_t page, spill_state_t *state, spill_error_t *error);

/*
 * Has an element of the owner, from the head's watermark on, the id of an element of the append?
 * For the leader: `batch` has its changes so far. Uses `key`. Cost: a seek for each element.
 * (unique_ids.c)
 */
spill_code_t spill_embedded_has_id(spill_embedded_t *store, const spill_request_t *append,
                                   const spill_state_t *head, const spill_batch_t *batch,
                                   spill_record_key_t *key, bool *has, spill_error_t *error);

/* Write a state record under the document's key. */
void spill_embedded_put_state(spill_embedded_t *store, const spill_record_key_t *key, bool head,
                              const spill_state_t *state, spill_batch_t *batch);

/* Fail with SPILL_CORRUPT and name the document as spill_embedded_place does. */
spill_code_t spill_embedded_corrupt(const spill_embedded_t *store, const spill_request_t *request,
                                    int64_t page, spill_error_t *error, const char *what);

/*
 * Put the document's name before an error, if it is not the requested document. The store's caller
 * names owner, array and the requested document.
 */
spill_code_t spill_embedded_place(const spill_request_t *request, int64_t page, spill_code_t code,
                                  spill_error_t *error);

/* Set the key of a document's state record. */
void spill_embedded_state_key(spill_record_key_t *key, int64_t page);

/* ---- system records: named records that belong to no owner (keys.c) -------------------------- */

/* Access to system records, through a batch and the engine or the engine alone. */
typedef struct spill_system_access {
    spill_embedded_t *store;
    spill_batch_t *batch; /* NULL: the engine alone */
    spill_buffer_t key;   /* of the record that was read last */
    spill_buffer_t value; /* ... and its value, if `found` */
    bool found;
} spill_system_access_t;

void spill_system_release(spill_system_access_t *access);

spill_code_t spill_system_get(spill_system_access_t *access, spill_system_record_t kind,
                              const char *name, spill_error_t *error);

/* Put a value under the key of the record that was read last. */
void spill_system_put(spill_system_access_t *access, const void *value, size_t value_bytes);

/* SPILL_CORRUPT: "the record of <what> <name> cannot be read". */
spill_code_t spill_system_corrupt(const spill_system_access_t *access, const char *what,
                                  const char *name, spill_error_t *error);

/* If the iterator is at a key that begins with `prefix`, set the name, the rest of the key. */
bool spill_system_at_name(const spill_kv_iter_t *iter, const spill_buffer_t *prefix, char *name,
                          size_t size);

#endif
