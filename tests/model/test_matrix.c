/* The matrix on the stores of one machine. */
#include "model/matrix.h"
#include "model/model.h"
#include "support/embedded.h"
#include "support/model_store.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void model_store(void **state)
{
    (void)state;
    spill_store_t *store = model_store_open();
    spill_error_t error;
    matrix_play(store);
    expect_ok(spill_store_close(store, &error), &error);
}

/* A real RocksDB: after it was closed and opened again, everything is unchanged. */
static void embedded_store(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    spill_store_options_t options;
    spill_error_t error;
    spill_definition_t *definitions;
    size_t count;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    spill_store_t *store = embedded_in_folder(folder, &options);
    matrix_play(store);
    embedded_close(store);
    store = embedded_in_folder(folder, &options);
    expect_ok(spill_store_definitions(store, &definitions, &count, &error), &error);
    assert_int_equal(count, MATRIX_CELLS + MATRIX_REFERENCED + MATRIX_SUBSETS + MATRIX_TOP_N);
    for (size_t i = 0; i < count; i++) {
        spill_array_t *array;
        expect_ok(spill_array_open(store, definitions[i].name, &array, &error), &error);
        model_check_verify(array, NULL);
        spill_array_close(array);
    }
    bson_free(definitions);
    embedded_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_store),
        cmocka_unit_test(embedded_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
