/* Collections with their own collation are refused. */
#include "tools/migrate/migrate.h"

#include "support/memory_admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void set_options(memory_admin_t *memory, const char *name, const char *json)
{
    assert_true(memory_admin_put(memory, name, "{\"_id\": 1}"));
    foreign_collection_t *collection = memory_admin_find(memory, name);
    bson_destroy(collection->options);
    collection->options = bson_new_from_json((const uint8_t *)json, -1, NULL);
    assert_non_null(collection->options);
}

static void only_collations_are_refused(void **state)
{
    (void)state;
    memory_admin_t *memory = memory_admin_new();
    spill_raw_admin_t *admin = &memory->base;
    spill_error_t error;
    set_options(memory, "plain", "{}");
    set_options(memory, "capped", "{\"capped\": true}");
    set_options(memory, "simple", "{\"collation\": {\"locale\": \"simple\"}}");
    set_options(memory, "people", "{\"collation\": {\"locale\": \"en\", \"strength\": 2}}");
    assert_int_equal(spill_collation_check(admin, "plain", &error), SPILL_OK);
    assert_int_equal(spill_collation_check(admin, "capped", &error), SPILL_OK);
    assert_int_equal(spill_collation_check(admin, "simple", &error), SPILL_OK);
    assert_int_equal(spill_collation_check(admin, "nobody", &error), SPILL_OK);
    assert_int_equal(spill_collation_check(admin, "people", &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "'people' has a collation of its own"));
    memory->fail_at = memory->calls + 1;
    assert_int_not_equal(spill_collation_check(admin, "plain", &error), SPILL_OK);
    spill_raw_admin_close(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_collations_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
