/* Listing the owners of an embedded array with a damaged record. */
#include "bson/key.h"
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"ada", "bob", "cyd", "dan"};
enum { NAMES = sizeof names / sizeof *names };

typedef struct fixture {
    disk_t *disk;
    spill_store_t *store;
    spill_array_t *array;
    spill_record_key_t key; /* of cyd's record of other fields */
    char met[64];
} fixture_t;

static void open_fixture(fixture_t *fixture)
{
    *fixture = (fixture_t){.disk = disk_new()};
    fixture->store = embedded_on_disk(fixture->disk, SPILL_DURABILITY_LOG);
    fixture->array = embedded_array(fixture->store, "feed", 5, 4);
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(embedded_append(fixture->array, names[i], 0, 1, NULL), SPILL_OK);
    spill_binding_t binding;
    const spill_definition_t *definition = spill_array_get_definition(fixture->array);
    assert_int_equal(fixture->store->ops->bind(fixture->store, definition, &binding, NULL),
                     SPILL_OK);
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t owner = SPILL_BUFFER_INIT;
    spill_value_t cyd = spill_value_from_utf8(&storage, "cyd");
    assert_int_equal(spill_owner_key(&cyd, &owner, NULL), SPILL_OK);
    spill_record_key_init(&fixture->key, binding.collection_id, owner.data, owner.size);
    spill_buffer_release(&owner);
    bson_destroy(&storage);
}

static void close_fixture(fixture_t *fixture)
{
    spill_array_close(fixture->array);
    embedded_close(fixture->store);
    disk_free(fixture->disk);
}

static bool note_owner(void *context, const spill_value_t *owner)
{
    fixture_t *fixture = context;
    size_t used = strlen(fixture->met);
    snprintf(fixture->met + used, sizeof fixture->met - used, "%s ", (const char *)owner->data + 4);
    return true;
}

static void assert_earlier_owners_listed(fixture_t *fixture)
{
    spill_error_t error;
    assert_int_equal(spill_array_owners(fixture->array, note_owner, fixture, &error),
                     SPILL_CORRUPT);
    assert_string_equal(fixture->met, "ada bob ");
    assert_int_equal(error.code, SPILL_CORRUPT);
}

static void malformed_fields_end_list(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_kv_t *kv = disk_open(fixture.disk);
    spill_batch_put(&batch, fixture.key.data, fixture.key.size, "damage", 6);
    assert_int_equal(kv->ops->write(kv, &batch, true, NULL), SPILL_OK);
    kv->ops->close(kv, NULL);
    spill_batch_release(&batch);
    assert_earlier_owners_listed(&fixture);
    close_fixture(&fixture);
}

static void unreadable_fields_end_list(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    disk_damage(fixture.disk, fixture.key.data, fixture.key.size);
    assert_earlier_owners_listed(&fixture);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_fields_end_list),
        cmocka_unit_test(unreadable_fields_end_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
