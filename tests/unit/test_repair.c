/* Repair completes what crashed clients left, on the stores that keep documents themselves. */
#include "support/corrupted.h"
#include "support/embedded.h"
#include "support/half_done.h"
#include "support/miscounted.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void memory(void **state)
{
    (void)state;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    half_done_repaired(store);
    corrupted_summaries_fixed(store);
    miscounted_fixed(store);
    corrupted_beside_appender(store);
    spill_store_close(store, NULL);
}

static void embedded(void **state)
{
    (void)state;
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    half_done_repaired(store);
    corrupted_summaries_fixed(store);
    miscounted_fixed(store);
    corrupted_beside_appender(store);
    embedded_close(store);
    disk_free(disk);
}

/* Repair of all owners repairs each of them, without omissions. */
static void each_owner(void **state)
{
    (void)state;
    spill_store_t *store;
    spill_error_t error;
    spill_repair_summary_t summary;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    spill_array_t *array = embedded_array(store, "feed", 2, 2);
    const char *const owners[] = {"ada", "bob", "eve"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(embedded_append(array, owners[i], 0, 9, NULL), SPILL_OK);
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, &summary, &error),
                     SPILL_OK);
    assert_int_equal(summary.owners, 3);
    assert_int_equal(summary.findings, 0);
    spill_array_close(array);
    spill_store_close(store, NULL);
}

/* ---- how often the store's own records are checked ------------------------------------------- */

static const spill_store_ops_t *embedded_ops;
static int checks;

static spill_code_t count_check(spill_store_t *store, const spill_binding_t *binding,
                                const spill_definition_t *definition, const spill_value_t *owner,
                                spill_store_finding_fn report, void *context, spill_error_t *error)
{
    checks++;
    return embedded_ops->check(store, binding, definition, owner, report, context, error);
}

static void sound_owner_is_checked_once(void **state)
{
    (void)state;
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_FSYNC);
    embedded_ops = store->ops;
    spill_store_ops_t counting = *embedded_ops;
    counting.check = count_check;
    store->ops = &counting;
    spill_array_t *array = embedded_array(store, "feed", 2, 2);
    spill_repair_summary_t summary;
    assert_int_equal(embedded_append(array, "ada", 0, 9, NULL), SPILL_OK);
    assert_int_equal(embedded_append(array, "bob", 0, 9, NULL), SPILL_OK);
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.owners, 2);
    assert_int_equal(checks, 2);
    spill_array_close(array);
    store->ops = embedded_ops;
    embedded_close(store);
    disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory),
        cmocka_unit_test(embedded),
        cmocka_unit_test(each_owner),
        cmocka_unit_test(sound_owner_is_checked_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
