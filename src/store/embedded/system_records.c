#include "store/embedded/system_records.h"

#include "util/error.h"

#include <stdio.h>
#include <string.h>

void spill_system_release(spill_system_access_t *access)
{
    spill_buffer_release(&access->key);
    spill_buffer_release(&access->value);
}

spill_code_t spill_system_get(spill_system_access_t *access, spill_system_record_t kind,
                              const char *name, spill_error_t *error)
{
    spill_system_key(&access->key, kind, name);
    return spill_embedded_get(access->store, access->batch, access->key.data, access->key.size,
                              &access->value, &access->found, error);
}

void spill_system_put(spill_system_access_t *access, const void *value, size_t value_bytes)
{
    spill_batch_put(access->batch, access->key.data, access->key.size, value, value_bytes);
}

spill_code_t spill_system_corrupt(const spill_system_access_t *access, const char *what,
                                  const char *name, spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT,
                      "%s: the record of %s \"%s\" cannot be read; restore a backup",
                      access->store->base.uri, what, name);
}

bool spill_system_at_name(const spill_kv_iter_t *iter, const spill_buffer_t *prefix, char *name,
                          size_t size)
{
    if (!iter->valid || iter->key_bytes < prefix->size ||
        memcmp(iter->key, prefix->data, prefix->size) != 0)
        return false;
    snprintf(name, size, "%.*s", (int)(iter->key_bytes - prefix->size),
             (const char *)iter->key + prefix->size);
    return true;
}
