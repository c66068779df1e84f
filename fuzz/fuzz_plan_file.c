/*
 * The input is a plan file, as a person edits it. Each array to migrate that is read from it must
 * have a definition that can be saved.
 */
#include "definition/schema.h"
#include "fuzz.h"
#include "tools/migrate/planned.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spill_planned_t *arrays;
    size_t count;
    spill_error_t error;
    fuzz_file_t file = fuzz_open(data, size);
    spill_code_t code = spill_plan_file_arrays(file.path, "shop", &arrays, &count, &error);
    REQUIRE(code == SPILL_OK || error.code == code);
    REQUIRE(code != SPILL_OK || count > 0);
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        REQUIRE(spill_definition_check(&arrays[i].definition, &error) == SPILL_OK);
        code = spill_planned_check(&arrays[i], &error);
        REQUIRE(code == SPILL_OK || code == SPILL_INVALID || code == SPILL_REFUSED);
        code = SPILL_OK;
    }
    bson_free(arrays);
    fuzz_close(&file);
    return 0;
}
