#include "support/tampered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static spill_record_key_t owner_key(spill_store_t *store, spill_array_t *array, const char *owner)
{
    spill_record_key_t key;
    spill_binding_t binding;
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t name = SPILL_BUFFER_INIT;
    spill_value_t value = spill_value_from_utf8(&storage, owner);
    assert_int_equal(spill_owner_key(&value, &name, NULL), SPILL_OK);
    assert_int_equal(store->ops->bind(store, spill_array_get_definition(array), &binding, NULL),
                     SPILL_OK);
    spill_record_key_init(&key, binding.array_id, name.data, name.size);
    spill_buffer_release(&name);
    bson_destroy(&storage);
    return key;
}

static void open_array(tampered_t *tampered)
{
    tampered->store = embedded_on_disk(tampered->disk, SPILL_DURABILITY_FSYNC);
    assert_int_equal(spill_array_open(tampered->store, "feed", &tampered->array, NULL), SPILL_OK);
}

static void close_array(tampered_t *tampered)
{
    spill_array_close(tampered->array);
    embedded_close(tampered->store);
}

static void define(disk_t *disk, spill_keep_t keep)
{
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    definition.keep = keep;
    strcpy(definition.id_field, "id");
    definition.bounds.threshold = 5;
    definition.bounds.page_capacity = 4;
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    embedded_close(store);
}

void tampered_open(tampered_t *tampered, spill_keep_t keep)
{
    *tampered = (tampered_t){.disk = disk_new()};
    define(tampered->disk, keep);
    open_array(tampered);
    assert_int_equal(embedded_append(tampered->array, "ada", 0, 30, NULL), SPILL_OK);
    tampered->kv = disk_open(tampered->disk);
    tampered->key = owner_key(tampered->store, tampered->array, "ada");
}

void tampered_close(tampered_t *tampered)
{
    tampered->kv->ops->close(tampered->kv, NULL);
    close_array(tampered);
    disk_free(tampered->disk);
}

void tampered_reopen(tampered_t *tampered)
{
    close_array(tampered);
    open_array(tampered);
}

static void write_batch(tampered_t *tampered, spill_batch_t *batch)
{
    assert_int_equal(tampered->kv->ops->write(tampered->kv, batch, true, NULL), SPILL_OK);
    spill_batch_release(batch);
}

void tampered_put(tampered_t *tampered, const void *value, size_t size_bytes)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_batch_put(&batch, tampered->key.data, tampered->key.size, value, size_bytes);
    write_batch(tampered, &batch);
}

void tampered_delete(tampered_t *tampered)
{
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_batch_delete(&batch, tampered->key.data, tampered->key.size);
    write_batch(tampered, &batch);
}
