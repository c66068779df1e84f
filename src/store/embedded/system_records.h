/* System records: named records that belong to no owner (keys.h). */
#ifndef SPILL_STORE_EMBEDDED_SYSTEM_RECORDS_H
#define SPILL_STORE_EMBEDDED_SYSTEM_RECORDS_H

#include "store/embedded/embedded.h"

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
