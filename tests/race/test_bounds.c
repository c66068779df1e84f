/* Bounds change while threads append and read, on the stores of this process. */
#include "support/bounds.h"
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { APPENDS = 60 };

static void memory_store(void **state)
{
    (void)state;
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    bounds_play(store, SPILL_KEEP_NEWEST, APPENDS);
    bounds_play(store, SPILL_KEEP_OLDEST, APPENDS);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
}

static void embedded_store(void **state)
{
    (void)state;
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    bounds_play(store, SPILL_KEEP_NEWEST, APPENDS);
    bounds_play(store, SPILL_KEEP_OLDEST, APPENDS);
    embedded_close(store);
    disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_store),
        cmocka_unit_test(embedded_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
